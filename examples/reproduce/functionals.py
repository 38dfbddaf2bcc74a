"""Tran, Phung and Venkatesh, Learning Rank Functionals: An Empirical Study (2011), tables 5 to 9.

    python functionals.py FOLDER [--folds 1,2] [--tables 5,8]

Paper: 519 features of the Yahoo! challenge, 1,568 queries for training and 1,520 for testing, features with mean 0 and
deviation 1, L-BFGS with a Gaussian prior of unstated strength. Here: whatever set is given, its folds, and the strength
of the prior chosen on the validation part by ERR from four values. These are relative to the curvature of the loss at
scores of 0, so that a weighting that makes the loss smaller does not get a stronger prior. Convex losses are trained by
Newton's method, others by L-BFGS, both to the optimum: after 100 iterations of L-BFGS rounding can move a figure. Only
min and max of table 6, which have kinks, may end before it, after 2,000. The figures of different sets cannot be
compared; what can is the order of the rows: which threshold, aggregation or weighting helps. ERR takes the largest
label of the set for the best grade.

The paper's Plackett-Luce losses are likelihoods of a permutation, and it does not say which one a list with tied grades
has. Tables 6 and 8 have three: row order, the mean over three random orders, and Breslow's rule, by which tied
documents share a stage (the default here). Table 8 has two more columns than the paper: its weights in pointwise
regression (eq. 8) and in group-level Plackett-Luce.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from _tables import (
    Measured,
    Method,
    cross_validate,
    parse_arguments,
    print_differences,
    print_grid,
    print_methods,
    read_folds,
    wants,
    zscore,
)

from boostlist import LinearRanker, QuadraticRanker
from boostlist.boosters.objective import automatic_scale
from boostlist.datasets import Fold, RankingData
from boostlist.losses import (
    WUB,
    GroupPL,
    ListMLE,
    Loss,
    PairwiseHinge,
    PairwiseLogistic,
    PairwiseQuadratic,
    Pointwise,
    ReversePL,
    SmoothERR,
    SmoothNDCG,
    WeightedPL,
    WpLL,
)
from boostlist.metrics import ERR, NDCG, Metric
from boostlist.models.quadratic import product_correlations
from boostlist.solvers import refusal

ERR_ONLY = {"ERR": ERR()}
METRICS = {"N@1": NDCG(k=1), "N@5": NDCG(k=5), "N@10": NDCG(k=10), "ERR": ERR()}
PRIORS = (0.01, 0.1, 1.0, 10.0)

# Table 5: threshold -> number of features and figures of the paper; None is the linear model.
QUADRATIC = {
    None: (519, (0.6941, 0.6638, 0.6848, 0.4979)),
    0.00: (134_477, (0.6792, 0.6480, 0.6742, 0.4889)),
    0.05: (53_394, (0.6979, 0.6630, 0.6862, 0.4989)),
    0.10: (26_318, (0.7020, 0.6651, 0.6887, 0.5019)),
    0.15: (14_425, (0.7090, 0.6666, 0.6897, 0.5048)),
    0.20: (7_114, (0.7112, 0.6716, 0.6931, 0.5038)),
    0.25: (2_983, (0.6942, 0.6636, 0.6877, 0.4991)),
    0.30: (1_294, (0.6926, 0.6519, 0.6730, 0.4960)),
}
OBJECTS = (0.6796, 0.6518, 0.6777, 0.4845)
SEEDS = 3
# Table 6 below the level of objects. What the paper calls geometric mean is log(mean(exp f)).
GROUPS = {
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
TIES = ("order", "random", "breslow")
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
    solver = {} if refusal("newton", loss) is None else {"solver": "lbfgs"}

    def candidates(train: RankingData) -> Sequence[Any]:
        scale = automatic_scale(loss.bind(train.queries))
        return [make(loss, C=prior * scale, tol=1e-4 * prior, max_iter=2000, **solver) for prior in PRIORS]

    return candidates


def row(name: str, loss: Loss, figures: Sequence[float], make: Callable[..., Any] = LinearRanker) -> Method:
    """Return a method with the paper's figures."""
    return Method(name, trained_on(loss, make), dict(zip(METRICS, figures, strict=True)))


def cell(loss: Loss, figure: float | None = None) -> Method:
    """Return a method of which the paper gives the ERR only, or nothing."""
    return Method(repr(loss), trained_on(loss), {} if figure is None else {"ERR": figure})


def draws(loss: Loss) -> list[Loss]:
    """Return the loss under several orders of tied documents if it draws one; else itself."""
    random = getattr(loss, "ties", None) == "random"
    return [replace(loss, seed=seed) for seed in range(SEEDS)] if random else [loss]  # type: ignore[call-arg]


def measured(loss: Loss, folds: Sequence[Fold], metrics: Mapping[str, Metric]) -> Measured:
    """Return the test figures of a loss, the mean over its draws."""
    found = [cross_validate(cell(each), folds, ERR(), metrics) for each in draws(loss)]
    by_fold = {name: zip(*(each.values[name] for each in found), strict=True) for name in metrics}
    return Measured({name: [np.mean(values, axis=0) for values in each] for name, each in by_fold.items()})


def print_objects(folds: Sequence[Fold]) -> None:
    """Print the rows of table 6 that rank objects, under each rule for ties."""
    print("\nTable 6, object level by the rule for ties\n")
    print(f"| | | {' | '.join(METRICS)} |")
    print(f"|---|---|{'---|' * len(METRICS)}")
    print(f"| object level | paper | {' | '.join(f'{figure:.4f}' for figure in OBJECTS)} |")
    for ties in TIES:
        means = " | ".join(f"{value:.4f}" for value in measured(ListMLE(ties=ties), folds, METRICS).means().values())
        print(f"| object level, {ties} | boostlist | {means} |", flush=True)


def print_stages(folds: Sequence[Fold]) -> None:
    """Print table 8: ERR by the weight of a document, a column for each loss and rule for ties."""
    losses: dict[str, Callable[[Any], Loss]] = {
        **{f"WPL, {ties}": partial(WeightedPL, ties=ties) for ties in TIES},
        **{f"RPL, {ties}": partial(ReversePL, ties=ties) for ties in TIES},
        "WpLL": WpLL,
        "pointwise": Pointwise,
        "group level": GroupPL,
    }
    print("\nTable 8: ERR by the weight of a document\n")
    print(f"| | paper: WPL, RPL, WpLL | {' | '.join(losses)} |")
    print(f"|---|---|{'---|' * len(losses)}")
    found = {}
    for name, (weights, figures) in STAGES.items():
        row = {f"{kind}: {name}": measured(make(weights=weights), folds, ERR_ONLY) for kind, make in losses.items()}
        found.update(row)
        printed = ", ".join(f"{figure:.4f}" for figure in figures)
        ours = " | ".join(f"{each.mean('ERR'):.4f}" for each in row.values())
        print(f"| {name} | {printed} | {ours} |", flush=True)
    pairs = [(f"WPL, {ties}: {name}", f"WPL, {ties}: 1") for ties in TIES for name in ("r", "1 / pi")]
    print_differences("Table 8, what weights add to WPL", found, pairs, "ERR")


def features(folds: Sequence[Fold], rho: float | None) -> str:
    """Return the number of features of a row of table 5, products included: the least and the most of the folds."""
    counts = []
    for fold in folds:
        correlation = np.abs(product_correlations(fold.train.X, fold.train.y))
        products = 0 if rho is None else np.count_nonzero(np.triu(correlation >= rho))
        counts.append(fold.train.n_features + int(products))
    return f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments(__doc__ or "", ("5", "6", "7", "8", "9"))
    folds = [zscore(fold) for fold in read_folds(arguments)]

    def err(method: Method) -> float:
        return cross_validate(method, folds, ERR(), ERR_ONLY).mean("ERR")

    def table(title: str, methods: Sequence[Method]) -> None:
        print_methods(title, methods, folds, ERR(), METRICS)

    if wants(arguments, "6"):
        print_objects(folds)
        table("Table 6: group-level rank functionals", [row(name, *given) for name, given in GROUPS.items()])
    if wants(arguments, "8"):
        print_stages(folds)
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
        methods = []
        for rho, (count, figures) in QUADRATIC.items():
            make = LinearRanker if rho is None else partial(QuadraticRanker, rho=rho, solver="newton-cg")
            name = "linear" if rho is None else f"rho {rho:.2f}"
            methods.append(row(f"{name}: {count:,} features, here {features(folds, rho)}", loss, figures, make))
        table("Table 5: second-order features by the threshold rho, weighted pairwise logistic loss", methods)


if __name__ == "__main__":
    main()
