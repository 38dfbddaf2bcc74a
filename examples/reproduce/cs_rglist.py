"""He, Cost-Sensitive Learning for Listwise Ranking Functions (2016), tables 1 to 3.

    python cs_rglist.py FOLDER [--folds 1,2]

The folder is named after its data set (OHSUMED, MQ2008, ...). Paper: linear models on LETOR 3.0 and 4.0; C, at first
from 1e-4 to 1, then around the best, chosen on the validation part by AvgNDCG, the mean of NDCG@1 to 10; ListMLE by
gradient descent that stops early; tied grades in file order. Here: C from 1e-2 to 1e3 by AvgNDCG; tied grades by
Breslow's rule and, in rows of their own with nothing else changed, in file order; ListMLE by Newton's method with the
same penalty, to the optimum. Queries without relevant documents score 0. Tables 2 and 3 are the paper's TD2003 and
NP2004, which are printed beside whatever set is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from _tables import Method, parse_arguments, print_methods, ranks, read_folds, wants

from boostlist import LinearRanker
from boostlist.datasets import RankingData
from boostlist.losses import CsRgList, ListMLE, Loss
from boostlist.metrics import NDCG, AvgNDCG

# Table 1: ListMLE, cs-RgList with pCf = 3.
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
# Table 2, TD2003: AvgNDCG and NDCG@1, 3, 5, 7, 9 by pCf.
PENALTY = {
    1: (0.260, 0.180, 0.275, 0.273, 0.269, 0.267),
    2: (0.294, 0.260, 0.300, 0.304, 0.294, 0.290),
    3: (0.298, 0.280, 0.306, 0.303, 0.300, 0.292),
    4: (0.324, 0.360, 0.323, 0.322, 0.318, 0.315),
    5: (0.330, 0.360, 0.325, 0.333, 0.325, 0.316),
    6: (0.340, 0.380, 0.342, 0.341, 0.331, 0.326),
}
# Table 3, NP2004: NDCG@1 to 10.
BY_RANK = {
    "ListMLE": (0.493, 0.611, 0.648, 0.682, 0.690, 0.697, 0.697, 0.697, 0.701, 0.701),
    "cs-RgList": (0.573, 0.657, 0.681, 0.710, 0.717, 0.725, 0.730, 0.734, 0.738, 0.738),
}
SELECT = AvgNDCG(k=10)
LOSSES: dict[str, ListMLE | CsRgList] = {"ListMLE": ListMLE(), "cs-RgList": CsRgList(pcf=3)}


def linear(loss: Loss) -> Callable[[RankingData], Sequence[LinearRanker]]:
    """Return the candidates: one for each C."""
    return lambda train: [LinearRanker(loss, C=float(C)) for C in np.logspace(-2, 3, 11)]


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments(__doc__ or "")
    folds = read_folds(arguments)
    name = arguments.folder.resolve().name
    ndcg = {f"N@{k}": NDCG(k=k) for k in range(1, 11)}
    if wants(arguments, "1") or wants(arguments, "3"):
        metrics = {"AvgNDCG": SELECT, **ndcg}
        first = dict(zip(LOSSES, PAPER.get(name, ()), strict=False))
        methods = []
        for loss in LOSSES:
            figures = {"AvgNDCG": first[loss]} if loss in first else {}
            methods.append(Method(loss, linear(LOSSES[loss]), figures))
            methods.append(Method(f"{loss}, ties in file order", linear(replace(LOSSES[loss], ties="order")), figures))
        for loss, average in zip(LOSSES, PAPER["NP2004"], strict=True):
            methods.append(Method(f"{loss}, NP2004", None, {"AvgNDCG": average, **ranks("N", BY_RANK[loss])}))
        print_methods(f"Tables 1 and 3: {name}; the paper's NP2004 below", methods, folds, SELECT, metrics)
    if wants(arguments, "2"):
        metrics = {"AvgNDCG": SELECT, **{rank: ndcg[rank] for rank in ("N@1", "N@3", "N@5", "N@7", "N@9")}}
        methods = [
            Method(f"pCf {pcf}", linear(CsRgList(pcf=pcf)), dict(zip(metrics, figures, strict=True)))
            for pcf, figures in PENALTY.items()
        ]
        print_methods(f"Table 2: the paper's TD2003 beside {name}", methods, folds, SELECT, metrics)


if __name__ == "__main__":
    main()
