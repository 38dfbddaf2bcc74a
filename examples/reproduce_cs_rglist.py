"""Reproduce table 1 of He, *Cost-Sensitive Learning for Listwise Ranking Functions*: cs-RgList against ListMLE.

    python examples/reproduce_cs_rglist.py FOLDER [FOLDER ...]

A folder is named after its data set (OHSUMED, MQ2008, ...) and holds LETOR folds Fold1 to Fold5, or the parts S1 to S5.
For each fold C is chosen on the validation queries by AvgNDCG, the mean of NDCG@1 to NDCG@10; queries without relevant
documents score 0. The paper's ListMLE is another trainer than ours: gradient descent without a penalty, stopped early.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from boostlist import LinearRanker
from boostlist.datasets import Fold, load_folds
from boostlist.losses import CsRgList, ListMLE, Loss
from boostlist.metrics import AvgNDCG

PAPER = {
    "OHSUMED": (0.451, 0.473),
    "MQ2007": (0.335, 0.400),
    "MQ2008": (0.380, 0.438),
    "HP2003": (0.639, 0.756),
    "NP2003": (0.672, 0.692),
    "TD2003": (0.251, 0.298),
    "HP2004": (0.642, 0.656),
    "NP2004": (0.662, 0.700),
    "TD2004": (0.225, 0.261),
}
LOSSES: dict[str, Loss] = {"ListMLE": ListMLE(), "cs-RgList": CsRgList(pcf=3)}
CHOICES = np.logspace(-2, 3, 11)
METRIC = AvgNDCG(k=10, empty=0)


def evaluate(loss: Loss, fold: Fold) -> tuple[float, float, int]:
    """Return AvgNDCG on the test queries, the C chosen on the validation queries, and the number of iterations."""
    best: tuple[float, LinearRanker] | None = None
    for C in CHOICES:
        ranker = LinearRanker(loss, C=float(C)).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        value = METRIC.mean(ranker.predict(fold.vali.X), fold.vali.queries)
        if best is None or value > best[0]:
            best = value, ranker
    assert best is not None
    ranker = best[1]
    return METRIC.mean(ranker.predict(fold.test.X), fold.test.queries), ranker.C, ranker.n_iter_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    print(f"{'data':<10}{'loss':<12}{'AvgNDCG':>8}{'paper':>8}   C by fold; Newton iterations")
    for folder in parser.parse_args().folders:
        folds = list(load_folds(folder))
        paper = dict(zip(LOSSES, PAPER.get(folder.resolve().name, (np.nan, np.nan)), strict=True))
        for name, loss in LOSSES.items():
            results = [evaluate(loss, fold) for fold in folds]
            values, chosen, iterations = zip(*results, strict=True)
            print(
                f"{folder.resolve().name:<10}{name:<12}{np.mean(values):8.3f}{paper[name]:8.3f}   "
                f"{', '.join(f'{C:g}' for C in chosen)}; {min(iterations)} to {max(iterations)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
