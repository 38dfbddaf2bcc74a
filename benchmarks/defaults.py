"""What the defaults rest on: mean test NDCG@10 by loss, extra_trees, panel of an ensemble, and what else was tried.

The protocol of benchmarks/quality.py, but for the choice: every figure is the mean over num_leaves 7 and 15, which is
steadier than the figure of the better one, with one seed; a sum has members of both sizes. Besides the real sets there
are two made ones: "web" (180 queries of about 120 documents, 136 features) and "answers" (600 lists
with one right answer).

    python benchmarks/defaults.py --results FOLDER [--data FOLDER] [--sets OHSUMED MQ2008 web] [--tables Ties Objective]

Trainings are shared with quality.py if the folder of results is the same.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from study import MADE, Study

import boostlist

SETS = ("OHSUMED", "MQ2008", "MQ2007", *MADE)
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


def sizes(objective: str, extra_trees: bool = PLAIN) -> list[Member]:
    return [(objective, leaves, extra_trees) for leaves in LEAVES]


def panel(losses: tuple[str, ...], *trees: tuple[int, bool]) -> list[Member]:
    return [(loss, leaves, extra_trees) for loss in losses for leaves, extra_trees in trees]


ALONE: dict[str, dict[str, list[Member]]] = {
    "Objective": {
        f"{name}{', extra_trees' * extra_trees}": sizes(name, extra_trees)
        for name in (*FOUR, "lambdarank")
        for extra_trees in (PLAIN, EXTRA)
    },
    "More objectives": {
        f"{name}{', extra_trees' * extra_trees}": sizes(name, extra_trees)
        for name in OTHERS
        for extra_trees in (PLAIN, EXTRA)
    },
    "Pointwise term": {
        f"{name}, {share:g}": sizes(f"{name}?pointwise={share:g}")
        for name in ("wub", "cs_listmle", "listmle", "pairwise_logistic")
        for share in (0.0, 0.3, 1.0)
    },
    "min_child_weight": {f"{weight:g}": sizes(f"cs_listmle?min_child_weight={weight:g}") for weight in (5, 20, 60)},
    "Ties (listmle)": {rule: sizes(f"listmle?ties={rule}") for rule in ("breslow", "order")},
    "pcf of cs_rglist (15 leaves, extra_trees)": {
        f"{pcf:g}": [(f"cs_rglist?pcf={pcf:g}", 15, EXTRA)] for pcf in (1.0, 1.3, 1.732, 3.0)
    },
}
TOGETHER: dict[str, dict[str, list[Member]]] = {
    "Sums": {
        "four losses, 7 and 15 leaves": panel(FOUR, (7, PLAIN), (15, PLAIN)),
        "the same, extra_trees": panel(FOUR, (7, EXTRA), (15, EXTRA)),
        "four losses, 15 leaves, and 7 leaves with extra_trees": panel(FOUR, (15, PLAIN), (7, EXTRA)),
        "four losses, 7 leaves, and 15 leaves with extra_trees": panel(FOUR, (7, PLAIN), (15, EXTRA)),
        "four losses, 7 leaves": panel(FOUR, (7, PLAIN)),
        "without listmle": panel(("wub", "cs_listmle", "pairwise_logistic"), (15, PLAIN), (7, EXTRA)),
        "all four trees of cs_listmle": [*sizes("cs_listmle"), *sizes("cs_listmle", EXTRA)],
        "all four trees of wub": [*sizes("wub"), *sizes("wub", EXTRA)],
        "all four trees of lambdarank": [*sizes("lambdarank"), *sizes("lambdarank", EXTRA)],
    },
}


def training(member: Member) -> tuple[str, dict[str, object], int]:
    """Return model, setting and seed of a training."""
    objective, leaves, extra_trees = member
    return f"lightgbm:{objective}", {"num_leaves": leaves, "extra_trees": extra_trees}, 0


def mean_alone(study: Study, name: str, members: list[Member]) -> float:
    each = [study.single(name, model, [setting], [seed]) for model, setting, seed in map(training, members)]
    return float(sum(values.mean() for values in each) / len(each))


def mean_together(study: Study, name: str, members: list[Member]) -> float:
    return float(study.sum(name, map(training, members)).mean())


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
    for tables, mean in ((ALONE, mean_alone), (TOGETHER, mean_together)):
        for title, rows in tables.items():
            if options.tables and not title.startswith(tuple(options.tables)):
                continue
            figures = {name: [mean(study, name, members) for members in rows.values()] for name in sets}
            print(f"\n## {title}\n\n| | {' | '.join(sets)} |\n|{' --- |' * (len(sets) + 1)}")
            for i, label in enumerate(rows):
                cells = " | ".join(f"{figures[name][i]:.4f}".lstrip("0") for name in sets)
                print(f"| {label} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
