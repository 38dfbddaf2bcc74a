"""Tran, Phung and Venkatesh, Learning Rank Functionals: An Empirical Study (2011), tables 5 to 9.

    python functionals.py FOLDER [--folds 1,2] [--tables 5,8]

Paper: 519 features of the Yahoo! challenge, 1,568 queries for training and 1,520 for testing, features with mean 0 and
deviation 1, L-BFGS with a Gaussian prior of unstated strength. Here: whatever set is given, its folds, and the strength
of the prior chosen on the validation part by ERR from four values. These are relative to the curvature of the loss at
scores of 0, so that a weighting that makes the loss smaller does not get a stronger prior. The figures of different
sets cannot be compared; what can is the order of the rows: which threshold, aggregation or weighting helps.
ERR takes the largest label of the set for the best grade.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from _tables import Method, cross_validate, parse_arguments, print_grid, print_methods, read_folds, wants, zscore

from boostlist import LinearRanker, QuadraticRanker
from boostlist.boosters.objective import automatic_scale
from boostlist.datasets import RankingData
from boostlist.losses import (
    WUB,
    GroupPL,
    ListMLE,
    Loss,
    PairwiseHinge,
    PairwiseLogistic,
    PairwiseQuadratic,
    ReversePL,
    SmoothERR,
    SmoothNDCG,
    WeightedPL,
    WpLL,
)
from boostlist.metrics import ERR, NDCG

METRICS = {"N@1": NDCG(k=1), "N@5": NDCG(k=5), "N@10": NDCG(k=10), "ERR": ERR()}
PRIORS = (0.01, 0.1, 1.0, 10.0)

# Table 5: threshold -> figures of the paper; None is the linear model.
QUADRATIC = {
    None: (0.6941, 0.6638, 0.6848, 0.4979),
    0.00: (0.6792, 0.6480, 0.6742, 0.4889),
    0.05: (0.6979, 0.6630, 0.6862, 0.4989),
    0.10: (0.7020, 0.6651, 0.6887, 0.5019),
    0.15: (0.7090, 0.6666, 0.6897, 0.5048),
    0.20: (0.7112, 0.6716, 0.6931, 0.5038),
    0.25: (0.6942, 0.6636, 0.6877, 0.4991),
    0.30: (0.6926, 0.6519, 0.6730, 0.4960),
}
# Table 6. What the paper calls geometric mean is log(mean(exp f)).
GROUPS = {
    "object level": (ListMLE(), (0.6796, 0.6518, 0.6777, 0.4845)),
    "min": (GroupPL(aggregation="min"), (0.6027, 0.6098, 0.6430, 0.4561)),
    "max": (GroupPL(aggregation="max"), (0.6875, 0.6555, 0.6796, 0.4961)),
    "arithmetic mean": (GroupPL(aggregation="mean"), (0.6773, 0.6465, 0.6727, 0.4892)),
    "geometric mean": (GroupPL(aggregation="logmeanexp"), (0.6855, 0.6539, 0.6784, 0.4918)),
}
PLAIN: dict[str, Any] = {"weights": "uniform", "normalize": None}
SMOOTHED = {
    "pairwise quadratic": (PairwiseQuadratic(**PLAIN), (0.6608, 0.6462, 0.6712, 0.4789)),
    "pairwise logistic": (PairwiseLogistic(**PLAIN), (0.6617, 0.6473, 0.6717, 0.4801)),
    "pairwise hinge": (PairwiseHinge(**PLAIN), (0.6573, 0.6462, 0.6718, 0.4787)),
    "NDCG optimisation": (SmoothNDCG(), (0.6676, 0.6439, 0.6712, 0.4871)),
    "ERR optimisation": (SmoothERR(), (0.6683, 0.6355, 0.6606, 0.4871)),
}
# Table 8: weight of a document -> ERR of WPL, RPL, WpLL.
STAGES: dict[str, tuple[Any, tuple[float, ...]]] = {
    "1": ("uniform", (0.4845, 0.4980, 0.4882)),
    "r": ("grade", (0.4955, 0.4944, 0.4980)),
    "sqrt r": ("sqrt_grade", (0.4915, 0.4957, 0.4979)),
    "(2^r - 1) / (2^L - 1)": ("gain", (0.4993, 0.4876, 0.4999)),
    "1 / pi": ("reciprocal", (0.5017, 0.4989, 0.5013)),
    "1 / log(1 + pi)": ("log", (0.4977, 0.4998, 0.4979)),
}
# Table 9: weight of a pair -> ERR of quadratic, logistic, hinge, WUB.
PAIRS: dict[str, tuple[Any, Any, tuple[float, ...]]] = {
    "1": ("uniform", None, (0.4789, 0.4801, 0.4787, 0.4829)),
    "1 / N": ("uniform", "documents", (0.4881, 0.4885, 0.4864, 0.4912)),
    "dr": ("grade", None, (0.4789, 0.4834, 0.4772, 0.4854)),
    "dr / N": ("grade", "documents", (0.4883, 0.4909, 0.4885, 0.4918)),
    "dR deta / N": ("dcg", "documents", (0.4928, 0.4962, 0.4935, 0.4976)),
    "dR deta / DCG max": ("dcg", "dcg", (0.4916, 0.4964, 0.4917, 0.4950)),
    "dR deta": ("dcg", None, (0.4903, 0.4936, 0.4903, 0.4939)),
    "dR": ("gain", None, (0.4903, 0.4936, 0.4903, 0.4939)),
    "dR / N": ("gain", "documents", (0.4952, 0.4979, 0.4953, 0.4977)),
}


def trained_on(loss: Loss, make: Callable[..., Any] = LinearRanker) -> Callable[[RankingData], Sequence[Any]]:
    """Return the candidates: one for each strength of the prior, relative to the curvature of the loss."""

    def candidates(train: RankingData) -> Sequence[Any]:
        scale = automatic_scale(loss.bind(train.queries))
        return [make(loss, C=prior * scale, solver="lbfgs", tol=1e-3 * prior, max_iter=100) for prior in PRIORS]

    return candidates


def row(name: str, loss: Loss, figures: Sequence[float], make: Callable[..., Any] = LinearRanker) -> Method:
    """Return a method with the paper's figures."""
    return Method(name, trained_on(loss, make), dict(zip(METRICS, figures, strict=True)))


def cell(loss: Loss, figure: float) -> Method:
    """Return a method of which the paper gives the ERR only."""
    return Method(repr(loss), trained_on(loss), {"ERR": figure})


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments(__doc__ or "")
    folds = [zscore(fold) for fold in read_folds(arguments)]

    def err(method: Method) -> float:
        return cross_validate(method, folds, ERR(), {"ERR": ERR()}).mean("ERR")

    def table(title: str, methods: Sequence[Method]) -> None:
        print_methods(title, methods, folds, ERR(), METRICS)

    if wants(arguments, "6"):
        table("Table 6: group-level rank functionals", [row(name, *given) for name, given in GROUPS.items()])
    if wants(arguments, "8"):
        grid = {
            name: [
                cell(kind(weights=weights), figure)
                for kind, figure in zip((WeightedPL, ReversePL, WpLL), figures, strict=True)
            ]
            for name, (weights, figures) in STAGES.items()
        }
        print_grid("Table 8: ERR by the weight of a document, paper / boostlist", grid, ("WPL", "RPL", "WpLL"), err)
    if wants(arguments, "7"):
        table("Table 7: approximate metric optimisation", [row(name, *given) for name, given in SMOOTHED.items()])
    if wants(arguments, "9"):
        kinds = (PairwiseQuadratic, PairwiseLogistic, PairwiseHinge, WUB)
        grid = {
            name: [
                cell(kind(weights=weights, normalize=normalize), figure)
                for kind, figure in zip(kinds, figures, strict=True)
            ]
            for name, (weights, normalize, figures) in PAIRS.items()
        }
        names = ("quadratic", "logistic", "hinge", "WUB")
        print_grid("Table 9: ERR by the weight of a pair, paper / boostlist", grid, names, err)
    if wants(arguments, "5"):
        loss = PairwiseLogistic(weights="gain", normalize="documents")
        methods = [
            row("linear", loss, figures)
            if rho is None
            else row(f"rho {rho:.2f}", loss, figures, partial(QuadraticRanker, rho=rho))
            for rho, figures in QUADRATIC.items()
        ]
        table("Table 5: second-order features by the threshold rho, weighted pairwise logistic loss", methods)


if __name__ == "__main__":
    main()
