"""Qin et al., Query-Level Loss Functions for Information Retrieval (2008): figures 2 to 8 and table 5.

    python rank_cosine.py FOLDER [--folds 1,2] [--tables 4,5,7,C] [--pictures]

Paper: TREC 2003 topic distillation (figure 3) and OHSUMED with 30 features (figure 4), four folds; a commercial set
(figures 5 to 8, table 5). Its results are curves; of their values the text has these: on TREC, MAP of about 0.13 for
BM25, 0.18 for RankBoost and 0.21 for RankCosine, and RankCosine 4 points above the others in P@1; on OHSUMED,
RankCosine above all others in NDCG@1 to 10, and the others alike; over five training sets, NDCG@10 from 0.557 to 0.576
for RankBoost, 0.597 for RankCosine with little variation; p-values of RankCosine against the two-layer RankNet below
0.008.

Here: four folds of all queries of the set given, drawn at random once. Of a fold's three training parts one chooses the
settings by NDCG@10; then the method is trained on all three. Relevant for MAP and P@n is the highest grade, as in the
paper. RankSVM is the hinge at its optimum, as SVMlight has it; RankBoost has weak learners of 0 and 1; both RankNets
are trained to the end and not by stochastic steps. BM25's place is taken by the single feature that ranks the training
part best, for the sets do not name features. "per query" divides by the pairs of the query (equations 16-18).

4: figures 3, 4 and 6, accuracy. 5: t-tests of table 5 over all test queries. 7: figures 7 and 8, five samples of 38 %
of the training queries (the paper's 500 of 1,300) in each fold; the spread is the difference between the best and the
worst of the five. C: RankCosine less RankSVM by the strength of RankSVM's penalty, nothing chosen. --pictures writes
figures 2 and 5, relevant documents and pairs by query, to the working folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from _baselines import Normalize, RankBoost, TwoLayerRankNet
from _tables import Measured, Method, choose, fit, one_line, parse_arguments, progress, read_folds, wants
from sklearn.base import BaseEstimator, clone

from boostlist import LinearRanker, RankCosineRanker, RankSVM, TreeRanker
from boostlist.datasets import Fold, RankingData
from boostlist.evaluation import significance
from boostlist.losses import PairwiseExponential, PairwiseLogistic
from boostlist.metrics import NDCG, Metric, get
from boostlist.queries import Queries

NDCG10 = NDCG(k=10)
SHOWN = ("MAP", "P@1", "P@2", "P@3", "P@5", "P@7", "P@10", "N@1", "N@2", "N@3", "N@5", "N@7", "N@10")
FOLDS = 4
SHARE, SAMPLES = 500 / 1300, 5
PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
# Table 5: p-values of NDCG@1 to 10.
PRINTED = (7.51e-3, 6.16e-3, 2.02e-4, 6.58e-6, 4.36e-6, 2.04e-6, 2.43e-6, 1.14e-6, 4.19e-6, 8.27e-8)


class SingleFeature(BaseEstimator):
    """Rank by the feature that has the highest NDCG@10 on the training data."""

    def fit(self, X: Any, y: Any, qid: Any) -> SingleFeature:
        """Choose the feature."""
        queries = Queries.from_qid(y, qid)
        self.feature_ = int(np.argmax([NDCG10.mean(X[:, j], queries) for j in range(X.shape[1])]))
        return self

    def predict(self, X: Any) -> Any:
        """Return the feature."""
        return X[:, self.feature_]


def svm(normalize: Normalize, choices: Sequence[float]) -> list[Any]:
    """Return Ranking SVM."""
    return [RankSVM(loss="hinge", C=C, normalize=normalize) for C in choices]


def boosted(normalize: Normalize) -> list[Any]:
    """Return RankBoost."""
    return [RankBoost(rounds=rounds, normalize=normalize) for rounds in (30, 100, 300)]


def stumps(normalize: Normalize) -> list[Any]:
    """Return stumps of LightGBM on RankBoost's loss."""
    loss = PairwiseExponential(weights="uniform", normalize=normalize)
    fixed: dict[str, Any] = {"num_leaves": 2, "extra_trees": False, "learning_rate": 0.1, "pointwise": 0, "n_jobs": 1}
    return [TreeRanker(loss, n_estimators=trees, **fixed) for trees in (50, 150)]


def logistic(normalize: Normalize, choices: Sequence[float]) -> list[Any]:
    """Return linear RankNet."""
    loss = PairwiseLogistic(weights="uniform", normalize=normalize)
    return [LinearRanker(loss, C=C, solver="lbfgs", tol=1e-3 * C, max_iter=100) for C in choices]


def two_layers(normalize: Normalize, choices: Sequence[float]) -> list[Any]:
    """Return two-layer RankNet."""
    return [TwoLayerRankNet(C=C, normalize=normalize, max_iter=60) for C in choices]


def row(name: str, candidates: Callable[[], list[Any]]) -> Method:
    """Return a method whose candidates are the same for all data."""
    return Method(name, lambda train: candidates())


COSINE, NET = "RankCosine", "two-layer RankNet"
METHODS = [
    row("best single feature", lambda: [SingleFeature()]),
    row("RankSVM", partial(svm, None, (0.001, 0.01, 0.1, 1.0))),
    row("RankBoost", partial(boosted, None)),
    row("stumps of LightGBM", partial(stumps, None)),
    row("linear RankNet", partial(logistic, None, (0.01, 0.1, 1.0))),
    row(NET, partial(two_layers, None, (0.001, 0.01, 0.1))),
    row(COSINE, lambda: [RankCosineRanker(n_stages=stages) for stages in (10, 50, 200)]),
]
PER_QUERY = [
    row("RankSVM per query", partial(svm, "pairs", (1.0, 10.0, 100.0, 1000.0))),
    row("RankBoost per query", partial(boosted, "pairs")),
    row("stumps of LightGBM per query", partial(stumps, "pairs")),
    row("linear RankNet per query", partial(logistic, "pairs", (10.0, 100.0, 1000.0))),
    row(f"{NET} per query", partial(two_layers, "pairs", (1.0, 10.0, 100.0))),
]


def four_folds(folds: Sequence[Fold]) -> list[Fold]:
    """Return four folds of all queries: a part for testing, the next one for choosing, two for training."""
    with one_line():
        whole = RankingData.concat([folds[0].train, folds[0].vali, folds[0].test])
    order = np.random.default_rng(0).permutation(whole.n_queries)
    edges = np.linspace(0, len(order), FOLDS + 1).astype(int)
    parts = [np.sort(order[lo:hi]) for lo, hi in pairwise(edges)]
    turned = [[parts[(k + i) % FOLDS] for i in range(FOLDS)] for k in range(FOLDS)]
    return [
        Fold(k + 1, whole.select(np.sort(np.concatenate(rest))), whole.select(vali), whole.select(test))
        for k, (test, vali, *rest) in enumerate(turned)
    ]


def test_scores(method: Method, fold: Fold) -> Any:
    """Choose on the validation part, train on both parts, and return the scores of the test part."""
    assert method.candidates is not None
    chosen = clone(choose(method.candidates(fold.train), fold, NDCG10))
    return fit(chosen, RankingData.concat([fold.train, fold.vali])).predict(fold.test.X)


def measure(method: Method, folds: Sequence[Fold], metrics: Mapping[str, Metric]) -> Measured:
    """Return the test figures."""
    values: dict[str, list[Any]] = {name: [] for name in metrics}
    for fold in folds:
        scores = test_scores(method, fold)
        for name, metric in metrics.items():
            values[name].append(metric.per_query(scores, fold.test.queries))
        progress(f"{method.name}: fold {fold.number}")
    return Measured(values)


def print_accuracy(folds: Sequence[Fold], metrics: Mapping[str, Metric]) -> dict[str, Measured]:
    """Print the figures of all methods, and return them."""
    print(f"\nFigures 3, 4 and 6: accuracy\n\n| | {' | '.join(SHOWN)} |\n|---|{'---|' * len(SHOWN)}")
    found = {}
    for method in METHODS + PER_QUERY:
        found[method.name] = measure(method, folds, metrics)
        print(f"| {method.name} | {' | '.join(f'{found[method.name].mean(name):.4f}' for name in SHOWN)} |", flush=True)
    return found


def print_tests(found: Mapping[str, Measured]) -> None:
    """Print the paired t-tests of table 5."""
    print(
        f"\nTable 5: {COSINE} less {NET}, paired t-test\n\n| NDCG@n | paper's p | difference | p |\n|---|---|---|---|"
    )
    for n, printed in enumerate(PRINTED, 1):
        each = significance.compare(*(found[name].per_query(f"N@{n}") for name in (COSINE, NET)))
        print(f"| {n} | {printed:.2e} | {each.difference:+.4f} | {each.t_test:.4f} |", flush=True)


def sampled(fold: Fold) -> list[Fold]:
    """Return the fold with five random samples of its training queries."""
    rng = np.random.default_rng(fold.number)
    size = max(2, round(SHARE * fold.train.n_queries))
    chosen = (np.sort(rng.choice(fold.train.n_queries, size, replace=False)) for _ in range(SAMPLES))
    return [Fold(fold.number, fold.train.select(queries), fold.vali, fold.test) for queries in chosen]


def test_value(method: Method, fold: Fold) -> float:
    """Return NDCG@10 on the test part of the candidate that is best on the validation part."""
    assert method.candidates is not None
    model = choose(method.candidates(fold.train), fold, NDCG10)
    return NDCG10.mean(model.predict(fold.test.X), fold.test.queries)


def print_robustness(folds: Sequence[Fold]) -> None:
    """Print the mean over training sets and folds, and the spread over training sets."""
    print("\nFigures 7 and 8: NDCG@10 over five training sets\n")
    print("| | mean | spread | lowest | highest |\n|---|---|---|---|---|")
    for method in METHODS[1:] + PER_QUERY:
        values = np.array([[test_value(method, part) for part in sampled(fold)] for fold in folds])
        by_set = values.mean(axis=0)
        spread = np.mean(values.max(axis=1) - values.min(axis=1))
        cells = f"{values.mean():.4f} | {spread:.4f} | {by_set.min():.4f} | {by_set.max():.4f}"
        print(f"| {method.name} | {cells} |", flush=True)
        progress(f"{method.name}: five samples of {len(folds)} folds")


def print_penalties(folds: Sequence[Fold]) -> None:
    """Print RankCosine less RankSVM for each C, both trained on all of the training data."""
    print("\nRankCosine less RankSVM in NDCG@10, by the C of RankSVM\n")
    print("| C | RankSVM | RankCosine | difference | p, t-test |\n|---|---|---|---|---|")
    metrics = {"N@10": NDCG10}
    cosine = measure(row(COSINE, lambda: [RankCosineRanker(n_stages=200)]), folds, metrics)
    for C in PENALTIES:
        machine = measure(row(f"RankSVM, C={C:g}", partial(svm, None, (C,))), folds, metrics)
        each = significance.compare(cosine.per_query("N@10"), machine.per_query("N@10"))
        cells = f"{machine.mean('N@10'):.4f} | {cosine.mean('N@10'):.4f} | {each.difference:+.4f} | {each.t_test:.4f}"
        print(f"| {C:g} | {cells} |", flush=True)


def draw(folds: Sequence[Fold], highest: float) -> None:
    """Write the histograms of figures 2 and 5, over all queries of the set."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    whole = RankingData.concat([fold.test for fold in folds])
    start = whole.queries.start
    grades = [np.unique(whole.y[lo:hi], return_counts=True) for lo, hi in pairwise(start)]
    relevant = [int(counts[values >= highest].sum()) for values, counts in grades]
    pairs = [int((counts.sum() ** 2 - (counts**2).sum()) // 2) for _, counts in grades]
    for number, values, what in ((2, relevant, "relevant documents"), (5, pairs, "pairs of documents to be ordered")):
        figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
        axes.hist(values, bins=30, color="#4477aa")
        axes.set_xlabel(f"{what} of a query")
        axes.set_ylabel("queries")
        figure.savefig(f"rank_cosine_figure_{number}.png", dpi=120)
        plt.close(figure)
        progress(f"figure {number} is in rank_cosine_figure_{number}.png")


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments(
        __doc__ or "", ("4", "5", "7", "C"), {"--pictures": "write figures 2 and 5 to the working folder"}
    )
    folds = four_folds(read_folds(arguments))[: 1 if arguments.quick else FOLDS]
    highest = max(float(fold.train.y.max()) for fold in folds)
    metrics = {
        "MAP": get("map", threshold=highest),
        **{f"P@{k}": get(f"p@{k}", threshold=highest) for k in range(1, 11)},
        **{f"N@{k}": get(f"ndcg@{k}") for k in range(1, 11)},
    }
    if arguments.pictures:
        draw(folds, highest)
    if wants(arguments, "4") or wants(arguments, "5"):
        print_tests(print_accuracy(folds, metrics))
    if wants(arguments, "C"):
        print_penalties(folds)
    if wants(arguments, "7"):
        print_robustness(folds)


if __name__ == "__main__":
    main()
