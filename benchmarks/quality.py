"""Do boostlist's rankers win? Test NDCG@10 beside the hosts' own objectives and CatBoost, one protocol for all.

Five folds, learning rate 0.05, at most 500 rounds, early stopping after 50 on validation NDCG@10. A single model is
chosen on validation: 7, 15 or 31 leaves (CatBoost: depth 3, 4 or 6), splits drawn at random or not (LightGBM:
extra_trees; XGBoost: half of the features at a split or all) and, with `--rates`, the learning rate. The first seed
chooses; figures are means over three seeds, for CatBoost, which takes ten times as long, of one. Other parameters are
`TreeRanker`'s defaults, which for a host's own objective are the host's. A bag is the sum of 8 models in units of their
spread, as many as `EnsembleRanker()` has: of LightGBM 7 and 15 leaves, each with extra_trees and four seeds; of
CatBoost depth 4 and 6, four seeds. `TreeRanker()` and `EnsembleRanker()` choose nothing but their number of rounds and,
the latter, the members' weights. Its members are trained one by one, to be stored and shared with defaults.py.

NDCG has gain 2^y - 1, a query without relevant documents scores 0, ties are in row order. Intervals are bootstrap
intervals of the mean over queries; p-values are of Fisher's randomization test over the queries of all real sets
together (OHSUMED25 has OHSUMED's queries and takes no part), with Holm's correction for the number of rivals.

    python benchmarks/quality.py --results FOLDER [--data FOLDER] [--sets OHSUMED MQ2008 MQ2007 OHSUMED25 sample]
        [--models lightgbm:lambdarank bag TreeRanker EnsembleRanker] [--rates 0.05 0.1] [--seeds 3]

`--data` (or the variable BOOSTLIST_DATA) is the folder that holds the real sets. Every training is stored under
`--results` when it ends; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from study import RATE, Setting, Study

import boostlist
from boostlist.ensemble import default_members
from boostlist.evaluation.significance import holm, mean_interval, randomization

SEEDS = {"lightgbm": (0, 1, 2), "xgboost": (0, 1, 2), "catboost": (0,)}
BAG_SEEDS = (0, 1, 2, 3)
SETS = ("OHSUMED", "MQ2008", "MQ2007", "OHSUMED25", "sample")
POOLED = ("OHSUMED", "MQ2008", "MQ2007")

Contender = Callable[[Study, str], Any]
"""Test NDCG@10 by query, given the study and the name of a set."""
Values = Mapping[str, Mapping[str, Any]]
"""Test NDCG@10 by query, by model and set."""


def grid(**axes: Any) -> list[Setting]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


GRIDS = {
    "lightgbm": grid(num_leaves=(7, 15, 31), extra_trees=(False, True)),
    "xgboost": grid(num_leaves=(7, 15, 31), colsample_bynode=(1.0, 0.5)),
    "catboost": grid(depth=(3, 4, 6)),
    # Far slower than the others, so without a choice: the depth with the best test figures on the two small sets.
    "catboost:YetiRank:mode=NDCG": grid(depth=(4,)),
}
BAGS = {
    "lightgbm:lambdarank": grid(num_leaves=(7, 15), extra_trees=(True,)),
    "catboost:YetiRank": grid(depth=(4, 6)),
}
SINGLE = (
    "lightgbm:lambdarank",
    "lightgbm:rank_xendcg",
    "xgboost:rank:ndcg",
    "catboost:QueryRMSE",
    "catboost:YetiRank",
    "catboost:YetiRank:mode=NDCG",
)


def rivals(rates: Sequence[float], n_seeds: int) -> dict[str, Contender]:
    """Return what boostlist's defaults are measured against: single models and bags of equal cost."""

    def single(model: str) -> Contender:
        family = model.partition(":")[0]
        sizes = GRIDS.get(model, GRIDS[family])
        settings = [size if rate == RATE else {**size, "learning_rate": rate} for rate in rates for size in sizes]
        return lambda study, name: study.single(name, model, settings, SEEDS[family][:n_seeds])

    def bag(model: str, settings: list[Setting]) -> Contender:
        return lambda study, name: study.sum(name, [(model, each, seed) for each in settings for seed in BAG_SEEDS])

    return {model: single(model) for model in SINGLE} | {f"bag of {model}": bag(model, g) for model, g in BAGS.items()}


def ours(n_seeds: int) -> dict[str, Contender]:
    """Return boostlist's defaults."""
    seeds = SEEDS["lightgbm"][:n_seeds]
    model, setting = training(boostlist.TreeRanker())
    members = [training(member) for _, member in default_members()]

    def ensemble(study: Study, name: str) -> Any:
        sums = [study.sum(name, [(*member, seed) for member in members], fitted=True) for seed in seeds]
        return np.mean(sums, axis=0)

    return {
        "TreeRanker()": lambda study, name: study.single(name, model, [setting], seeds),
        "EnsembleRanker()": ensemble,
    }


def training(ranker: boostlist.TreeRanker) -> tuple[str, Setting]:
    """Return model and setting of a ranker, what None stands for included."""
    tree = ranker.tree_parameters()
    return f"lightgbm:{ranker.objective}", {"num_leaves": tree.num_leaves, "extra_trees": tree.extra_trees}


def print_means(values: Values, sets: Sequence[str]) -> None:
    """Print mean NDCG@10 of every model on every set, with the half width of its interval."""
    print(f"\n| | {' | '.join(sets)} |\n|{' --- |' * (len(sets) + 1)}")
    for label, by_set in values.items():
        cells = []
        for name in sets:
            low, high = mean_interval(by_set[name])
            cells.append(f"{by_set[name].mean():.4f} ± {(high - low) / 2:.3f}".replace("0.", "."))
        print(f"| {label} | {' | '.join(cells)} |")


def print_differences(values: Values, sets: Sequence[str], label: str) -> None:
    """Print by how much a model is ahead of the others on each set, in the mean of the sets, and over all queries."""
    others = [other for other in values if other != label]
    differences = {other: [values[label][name] - values[other][name] for name in sets] for other in others}
    pooled = {other: np.concatenate(parts) for other, parts in differences.items()}
    p = holm([randomization(d, np.zeros_like(d)) for d in pooled.values()])
    print(f"\n| {label} against | {' | '.join(sets)} | mean of sets | all queries | p (Holm) |")
    print(f"|{' --- |' * (len(sets) + 4)}")
    for other, corrected in zip(others, p, strict=True):
        means = [d.mean() for d in differences[other]]
        figures = [*means, float(np.mean(means)), pooled[other].mean()]
        cells = " | ".join(f"{figure:+.4f}".replace("0.", ".") for figure in figures)
        print(f"| {other} | {cells} | {corrected:.4f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=os.environ.get("BOOSTLIST_DATA"))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--models", nargs="+", help="beginnings of the models to train and show; all by default")
    parser.add_argument("--rates", nargs="+", type=float, default=[RATE], help="what single rivals choose from")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds figures are means over, at most 3")
    options = parser.parse_args()
    boostlist.set_threads(1)
    study = Study(options.results, None if options.data is None else Path(options.data))
    sets = [name for name in options.sets if study.has(name)]
    defaults = ours(options.seeds)
    models = {
        label: model
        for label, model in (rivals(options.rates, options.seeds) | defaults).items()
        if not options.models or label.startswith(tuple(options.models))
    }
    by_set = {name: {label: model(study, name) for label, model in models.items()} for name in sets}
    values = {label: {name: by_set[name][label] for name in sets} for label in models}
    print_means(values, sets)
    pooled = [name for name in sets if name in POOLED]
    for label in defaults:
        if pooled and label in values:
            print_differences(values, pooled, label)


if __name__ == "__main__":
    main()
