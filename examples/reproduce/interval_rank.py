"""Moon, Smola, Chang and Zheng, IntervalRank (WSDM 2010), table 1.

    python interval_rank.py FOLDER [--folds 1,2]

Paper: OHSUMED with 25 features, 125 trees; the number of leaves, the step length and the two slack weights were tuned
on the validation part, the criterion is not stated. Here: 125 trees of LightGBM with 4, 8 or 16 leaves, two step
lengths, three pairs of slack weights, by the mean of NDCG@1 to 5 on the validation part; LETOR 3.0's metrics. The text
defines P@k and MAP by the highest grade, but the figures that it quotes for other methods are LETOR's, where grade 1
counts too. Differences: LETOR now gives 45 features; the paper solved the interval problem by a barrier method that
stops early. RankSVM and ListNet are boostlist's linear models, C chosen in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from _tables import Method, parse_arguments, print_methods, ranks, read_folds

from boostlist import LinearRanker, RankSVM, TreeRanker
from boostlist.datasets import RankingData
from boostlist.losses import GBRank, IntervalRank, ListMLE, ListNet, Loss, Pointwise
from boostlist.losses.base import Hessian
from boostlist.metrics import AvgNDCG, conventions, get

LETOR = conventions("letor3")
METRICS = {
    **{f"N@{k}": get(f"ndcg@{k}", **LETOR["ndcg"]) for k in range(1, 6)},
    **{f"P@{k}": get(f"p@{k}", **LETOR["p"]) for k in range(1, 6)},
    "MAP": get("map", **LETOR["map"]),
}
SELECT = AvgNDCG(k=5)
SLACKS = ((1.0, 1.0), (10.0, 1.0), (1.0, 10.0))


def trees(losses: Sequence[Loss], hessian: Hessian = "loss") -> list[TreeRanker]:
    """Return the candidates: every loss, number of leaves and step length."""
    fixed: dict[str, Any] = {"n_estimators": 125, "extra_trees": False, "pointwise": 0, "n_jobs": 1}
    return [
        TreeRanker(loss.objective(hessian=hessian), num_leaves=leaves, learning_rate=nu, **fixed)
        for loss, leaves, nu in product(losses, (4, 8, 16), (0.03, 0.1))
    ]


def interval_rank(hessian: Hessian = "unit", lam3: float = 0.0) -> list[TreeRanker]:
    """Return the candidates: with unit Hessian, functional gradient descent as in the paper; else Newton steps."""
    return trees([IntervalRank(lam1=lam1, lam2=lam2, lam3=lam3) for lam1, lam2 in SLACKS], hessian)


def linear(train: RankingData) -> list[Any]:
    """Return linear ListNet."""
    return [LinearRanker(ListNet(), C=C) for C in (1.0, 10.0, 100.0)]


def svm(train: RankingData) -> list[Any]:
    """Return RankSVM."""
    return [RankSVM(C=C) for C in (0.001, 0.01, 0.1)]


def published(*figures: float) -> dict[str, float]:
    """Return a row of the printed table by metric."""
    return {**ranks("N", figures[:5]), **ranks("P", figures[5:10]), "MAP": figures[10]}


METHODS = [
    Method(
        "RankBoost",
        None,
        published(0.4632, 0.4504, 0.4555, 0.4543, 0.4494, 0.5576, 0.5481, 0.5609, 0.5580, 0.5447, 0.4411),
    ),
    Method(
        "RankSVM",
        svm,
        published(0.4958, 0.4331, 0.4207, 0.4240, 0.4164, 0.5974, 0.5494, 0.5427, 0.5443, 0.5319, 0.4334),
    ),
    Method(
        "FRank", None, published(0.5300, 0.5008, 0.4812, 0.4694, 0.4588, 0.6429, 0.6195, 0.5925, 0.5840, 0.5638, 0.4439)
    ),
    Method(
        "ListNet",
        linear,
        published(0.5326, 0.4810, 0.4732, 0.4561, 0.4432, 0.6524, 0.6093, 0.6016, 0.5745, 0.5502, 0.4457),
    ),
    Method(
        "AdaRank.MAP",
        None,
        published(0.5388, 0.4789, 0.4682, 0.4721, 0.4613, 0.6338, 0.5959, 0.5895, 0.5887, 0.5674, 0.4487),
    ),
    Method(
        "AdaRank.NDCG",
        None,
        published(0.5330, 0.4922, 0.4790, 0.4688, 0.4673, 0.6719, 0.6236, 0.5984, 0.5838, 0.5767, 0.4498),
    ),
    Method(
        "IntervalRank",
        lambda train: interval_rank(),
        published(0.5628, 0.5448, 0.4900, 0.4703, 0.4609, 0.6892, 0.6522, 0.5768, 0.5556, 0.5488, 0.4466),
    ),
    Method("IntervalRank_Reg", lambda train: interval_rank(lam3=0.3)),
    Method("IntervalRank, Newton steps", lambda train: interval_rank("loss")),
    Method("GBDT", lambda train: trees([Pointwise()])),
    Method("GBRank", lambda train: trees([GBRank()])),
    Method("ListMLE + pointwise", lambda train: trees([ListMLE() + 0.3 * Pointwise(centred=True)])),
]


def main() -> None:
    """Print the table."""
    arguments = parse_arguments(__doc__ or "")
    folds = read_folds(arguments)
    print_methods("Table 1, and below it the other losses of section 4.3 on trees", METHODS, folds, SELECT, METRICS)


if __name__ == "__main__":
    main()
