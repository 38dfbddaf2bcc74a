"""What the defaults rest on: mean test NDCG@10 by loss, extra_trees, panel of an ensemble, and what else was tried.

The protocol of benchmarks/quality.py, but for the choice, with one seed. Where a title says nothing of leaves, figures
are means over num_leaves 7 and 15, which is steadier than the figure of the better one.
Besides the real sets and the sample there are two made ones: "web" (180 queries of about 120 documents, 136 features)
and "answers" (600 lists with one right answer).

The last column is the difference to the first row: the mean over the sets, and its standard error over queries, paired.
OHSUMED25 has OHSUMED's queries and takes no part in it.

    python benchmarks/defaults.py --results FOLDER [--data FOLDER] [--sets OHSUMED MQ2008 web] [--tables Ties Objective]

Trainings are shared with quality.py if the folder of results is the same.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from study import MADE, Study

import boostlist

SETS = ("OHSUMED", "OHSUMED25", "MQ2008", "MQ2007", *MADE, "sample")
POOLED = tuple(name for name in SETS if name != "OHSUMED25")
LEAVES = (7, 15)
FOUR = ("pairwise_logistic", "wub", "cs_listmle", "listmle")
OTHERS = (
    "weighted_pl",
    "rank_cosine",
    "isotonic",
    "interval_rank",
    "pairwise_exponential",
    "reverse_pl",
    "yeti_rank",
    "lambda_loss",
)
PLAIN, EXTRA = False, True

Member = tuple[str, int, bool]
"""Objective, leaves, extra_trees."""
Training = tuple[str, dict[str, object], int]
"""Model, setting and seed."""
Row = Callable[[Study, str], Any]
"""Test NDCG@10 by query, given the study and the name of a set."""


def sizes(objective: str, extra_trees: bool = PLAIN) -> list[Member]:
    return [(objective, leaves, extra_trees) for leaves in LEAVES]


def panel(losses: Iterable[str], *trees: tuple[int, bool]) -> list[Member]:
    return [(loss, leaves, extra_trees) for loss in losses for leaves, extra_trees in trees]


def training(member: Member) -> Training:
    """Return the training of a member."""
    objective, leaves, extra_trees = member
    return f"lightgbm:{objective}", {"num_leaves": leaves, "extra_trees": extra_trees}, 0


def alone(members: list[Member]) -> Row:
    """Return the mean over members."""

    def values(study: Study, name: str) -> Any:
        each = [study.single(name, model, [setting], [seed]) for model, setting, seed in map(training, members)]
        return np.mean(each, axis=0)

    return values


def together(members: list[Member], *others: Training, fitted: bool = False, seeds: Sequence[int] = (0,)) -> Row:
    """Return the sum of members and others, its weights fitted to the validation part or not; the mean over seeds."""

    def values(study: Study, name: str) -> Any:
        trainings = [[(*training(member)[:2], seed) for member in members] for seed in seeds]
        return np.mean([study.sum(name, [*each, *others], fitted=fitted) for each in trainings], axis=0)

    return values


DEFAULT = panel(FOUR, (7, EXTRA), (15, EXTRA))
TABLES: dict[str, dict[str, Row]] = {
    "Objective (15 leaves)": {
        f"{name}{', extra_trees' * extra_trees}": alone([(name, 15, extra_trees)])
        for name in (*FOUR, "lambdarank")
        for extra_trees in (PLAIN, EXTRA)
    },
    "More objectives": {
        f"{name}{', extra_trees' * extra_trees}": alone(sizes(name, extra_trees))
        for name in OTHERS
        for extra_trees in (PLAIN, EXTRA)
    },
    "Pointwise term": {
        f"{name}, {share:g}": alone(sizes(f"{name}?pointwise={share:g}"))
        for name in ("wub", "cs_listmle", "listmle", "pairwise_logistic")
        for share in (0.0, 0.3, 1.0)
    },
    "min_child_weight": {
        f"{weight:g}": alone(sizes(f"cs_listmle?min_child_weight={weight:g}")) for weight in (5, 20, 60)
    },
    "Ties (listmle)": {rule: alone(sizes(f"listmle?ties={rule}")) for rule in ("breslow", "order")},
    "Trees (pairwise_logistic, 15 leaves, extra_trees)": {
        label: alone([(f"pairwise_logistic?{options}", 15, EXTRA)])
        for label, options in {
            "as by default": "max_bin=255",
            "half of the features a tree": "colsample_bytree=0.5",
            "60 % of the queries a round": "subsample_queries=0.6",
            "half of the features a split": "feature_fraction_bynode=0.5",
            "learning_rate 0.025, 1,000 rounds": "learning_rate=0.025&n_estimators=1000&early_stopping_rounds=100",
            "learning_rate 0.1": "learning_rate=0.1",
            "leaves drawn to their parents, path_smooth 10": "path_smooth=10",
            "63 bins": "max_bin=63",
            "a squared-error term of the same curvature": "pointwise=1.0",
            "reg_lambda 10": "reg_lambda=10",
            "min_child_weight 60": "min_child_weight=60",
            "pairs divided by the ideal DCG": "normalize=dcg",
        }.items()
    },
    "Leaves (extra_trees)": {
        f"{name}, {leaves}": alone([(name, leaves, EXTRA)])
        for name in ("pairwise_logistic", "wub", "lambdarank")
        for leaves in (15, 7, 31)
    },
    "pcf of cs_rglist (15 leaves, extra_trees)": {
        f"{pcf:g}": alone([(f"cs_rglist?pcf={pcf:g}", 15, EXTRA)]) for pcf in (1.0, 1.3, 1.732, 3.0)
    },
    "Shapes (sum of four losses)": {
        "7 and 15 leaves, both with extra_trees": together(DEFAULT),
        "15 leaves, and 7 leaves with extra_trees": together(panel(FOUR, (15, PLAIN), (7, EXTRA))),
        "15 leaves, and 15 leaves with extra_trees": together(panel(FOUR, (15, PLAIN), (15, EXTRA))),
        "15 leaves, and 31 leaves with extra_trees": together(panel(FOUR, (15, PLAIN), (31, EXTRA))),
        "15 and 31 leaves, both with extra_trees": together(panel(FOUR, (15, EXTRA), (31, EXTRA))),
        "31 leaves with extra_trees": together(panel(FOUR, (31, EXTRA))),
        **{f"without {loss}": together([member for member in DEFAULT if member[0] != loss]) for loss in FOUR},
    },
    "Members (sum of the four losses and others)": {
        "four losses": together(DEFAULT),
        "with a second seed of each": together(DEFAULT, *((*training(member)[:2], 1) for member in DEFAULT)),
        **{
            f"with {name}": together([*DEFAULT, *panel([name], (7, EXTRA), (15, EXTRA))])
            for name in ("yeti_rank", "lambda_loss", "rank_xendcg", "lambdarank", "pointwise?centred=true")
        },
        **{
            f"with a linear {name}": together(DEFAULT, (f"linear:{name}?C=1", {"features": "zscore"}, 0))
            for name in ("listmle", "cs_rglist")
        },
    },
    "Weights (three seeds)": {
        label: together(DEFAULT, fitted=fitted, seeds=(0, 1, 2))
        for label, fitted in {"uniform": False, "fitted": True}.items()
    },
    "Features (sum of four losses, 15 leaves, and 7 leaves with extra_trees)": {
        f"{label} a tree": together(panel([loss + options for loss in FOUR], (15, PLAIN), (7, EXTRA)))
        for label, options in {"all of them": "", "half of them": "?colsample_bytree=0.5"}.items()
    },
}


def difference(values: list[Any], base: list[Any]) -> str:
    """Return the mean over sets of the difference, and its standard error."""
    differences = [a - b for a, b in zip(values, base, strict=True)]
    if not differences:
        return ""
    mean = np.mean([d.mean() for d in differences])
    error = np.sqrt(np.sum([d.var() / len(d) for d in differences])) / len(differences)
    return f"{mean:+.4f} ({error:.4f})".replace("0.", ".") if error else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=os.environ.get("BOOSTLIST_DATA"))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--tables", nargs="+", help="words that titles of tables begin with; all by default")
    options = parser.parse_args()
    boostlist.set_threads(1)
    study = Study(options.results, None if options.data is None else Path(options.data))
    sets = [name for name in options.sets if study.has(name)]
    pooled = [name for name in sets if name in POOLED]
    for title, rows in TABLES.items():
        if options.tables and not title.startswith(tuple(options.tables)):
            continue
        by_set = {name: [values(study, name) for values in rows.values()] for name in sets}
        print(f"\n## {title}\n\n| | {' | '.join(sets)} | difference |\n|{' --- |' * (len(sets) + 2)}")
        for i, label in enumerate(rows):
            cells = " | ".join(f"{by_set[name][i].mean():.4f}".lstrip("0") for name in sets)
            last = difference(*([by_set[name][j] for name in pooled] for j in (i, 0)))
            print(f"| {label} | {cells} | {last} |", flush=True)


if __name__ == "__main__":
    main()
