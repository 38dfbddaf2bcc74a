"""Which rule for ties of the Plackett-Luce losses ranks best: test NDCG@10, and differences to Breslow's rule.

Linear models and trees of LightGBM (learning rate .05, at most 500 rounds, early stopping). Their setting is chosen in
every fold on the validation part: C from 0.1 to 1000 on features scaled to 0..1 within the query; 7 or 15 leaves. Rows
of a table differ by the rule alone. p: randomization test over all test queries, Holm-corrected within the table.

    python benchmarks/ties.py --results FOLDER [--data FOLDER] [--sets OHSUMED MQ2008] [--losses listmle]
                              [--models linear]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from study import Setting, Study

from boostlist.evaluation import significance

RULES = ("breslow", "efron", "random", "order")
LOSSES = ("listmle", "weighted_pl", "cs_rglist")
GRIDS: dict[str, list[Setting]] = {
    "linear": [{"C": C, "features": "query-minmax"} for C in (0.1, 1.0, 10.0, 100.0, 1000.0)],
    "lightgbm": [{"num_leaves": leaves} for leaves in (7, 15)],
}


def print_table(study: Study, name: str, kind: str, losses: Sequence[str]) -> None:
    """Print the figures of every rule on a set: NDCG@10, and in brackets the difference to Breslow's rule and p."""
    columns = []
    for loss in losses:
        by_query = {rule: study.single(name, f"{kind}:{loss}?ties={rule}", GRIDS[kind], [0]) for rule in RULES}
        table = significance.table(by_query, baseline=RULES[0]).set_index("a")
        columns.append([f"{by_query[RULES[0]].mean():.4f}"])
        for rule in RULES[1:]:
            difference, p = table.loc[rule, ["difference", "randomization"]]
            columns[-1].append(f"{by_query[rule].mean():.4f} ({difference:+.4f}, p {p:.2f})")
    print(f"\n{name}, {kind}\n\n| ties | {' | '.join(losses)} |\n| --- |{' --: |' * len(losses)}")
    for rule, *cells in zip(RULES, *columns, strict=True):
        print(f"| {rule} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="where trainings are stored")
    parser.add_argument("--data", type=Path, help="folder with OHSUMED, MQ2008, MQ2007")
    parser.add_argument("--sets", nargs="+", default=["sample", "OHSUMED", "MQ2008", "MQ2007"])
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=LOSSES)
    parser.add_argument("--models", nargs="+", default=list(GRIDS), choices=list(GRIDS))
    arguments = parser.parse_args()
    study = Study(arguments.results, arguments.data)
    for name in filter(study.has, arguments.sets):
        for kind in arguments.models:
            print_table(study, name, kind, arguments.losses)


if __name__ == "__main__":
    main()
