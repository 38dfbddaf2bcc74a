"""What the default prices of IntervalRank rest on: NDCG@10 by lam1 and lam2, on validation and on test parts.

    python benchmarks/interval_prices.py --results FOLDER [--data FOLDER] [--sets sample OHSUMED] [--lam1 1 100 inf]

Trees as `TreeRanker` grows them: LightGBM, learning rate 0.05, at most 500 rounds, early stopping after 50 on
validation NDCG@10, the squared-error term beside the loss unless ``--pointwise 0`` is given. Every figure is the mean
over 7 and 15 leaves and over five folds, one seed. The prices are chosen by the first table; the second tells how well
such a choice carries over. Besides the real sets there is "web" of benchmarks/study.py, a made one with five grades.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

from study import CRITERION, Study

import boostlist

SETS = ("sample", "OHSUMED", "OHSUMED25", "MQ2008", "MQ2007", "web")
LAM1 = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
LAM2 = (0.1, 1.0, 10.0)
LEAVES = (7, 15)


def mean(study: Study, pointwise: float | None, part: str, name: str, lam1: float, lam2: float) -> float:
    """Return the mean NDCG@10 over folds and sizes of trees, of the validation or the test parts."""
    model = f"lightgbm:interval_rank?lam1={lam1:g}&lam2={lam2:g}"
    model += "" if pointwise is None else f"&pointwise={pointwise:g}"
    values = []
    for leaves, (k, fold) in product(LEAVES, enumerate(study.folds(name))):
        trained = study.trained(name, model, {"num_leaves": leaves, "extra_trees": False}, 0, k)
        values.append(CRITERION.mean(getattr(trained, part), getattr(fold, part).queries))
    return sum(values) / len(values)


def print_table(title: str, sets: list[str], prices: list[tuple[float, float]], cell: Callable[..., float]) -> None:
    """Print a Markdown table: a row for each pair of prices, a column for each set, and the mean over sets."""
    figures = {name: [cell(name, *price) for price in prices] for name in sets}
    print(f"\n## {title}\n\n| lam1 | lam2 | {' | '.join(sets)} | mean |\n|{' --- |' * (len(sets) + 3)}")
    for i, (lam1, lam2) in enumerate(prices):
        row = [figures[name][i] for name in sets]
        cells = " | ".join(f"{value:.4f}".lstrip("0") for value in (*row, sum(row) / len(row)))
        print(f"| {lam1:g} | {lam2:g} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=os.environ.get("BOOSTLIST_DATA"))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--lam1", nargs="+", type=float, default=list(LAM1))
    parser.add_argument("--lam2", nargs="+", type=float, default=list(LAM2))
    parser.add_argument("--pointwise", type=float, help="share of the squared-error term")
    options = parser.parse_args()
    boostlist.set_threads(1)
    study = Study(options.results, None if options.data is None else Path(options.data))
    sets = [name for name in options.sets if study.has(name)]
    prices = list(product(options.lam1, options.lam2))
    for part, title in {"vali": "Validation", "test": "Test"}.items():
        print_table(title, sets, prices, partial(mean, study, options.pointwise, part))


if __name__ == "__main__":
    main()
