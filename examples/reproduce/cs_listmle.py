"""Olinto, Kernelized Cost-Sensitive Listwise Ranking (MSc thesis, RIT 2016), tables 5.2 to 5.6.

    python cs_listmle.py FOLDER [--folds 1,2]

Thesis: MSLR-WEB10K, five folds, no choice of settings. Its program departs from its text: it trains on and ranks only
the first k documents of each query in file order (k = 3, 5, 10: "at.k"), and its NDCG@m is relative to the best order
of the m documents that were ranked first, not of the list. Such figures are high and say little: the rows "file order"
show what no model at all gets. Every cell has three figures:

    printed / standard protocol / the thesis's own protocol

Standard: whole lists, features scaled to 0..1 within the query, truncation k in the loss only, Newton's method to the
optimum, kernels scaled by the data ("special": with the thesis's parameters), C chosen on the validation part by
NDCG@10. Own: first k documents, features divided by their norm within the query, weights of the appendix,
coordinate-wise steps with normalised weights, at most 200. One thing is not repeated: theta belonged to the positions
of a list, so that no function of the features was learned; here the kernel's basis are 200 training documents.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from _tables import choose, map_fold, parse_arguments, read_folds

from boostlist import KernelRanker, LinearRanker, RankSVM
from boostlist.datasets import Fold, RankingData
from boostlist.losses import CsListMLE, ListNet
from boostlist.metrics import NDCG
from boostlist.queries import Queries

CUTS = (3, 5, 10)
COLUMNS = ("at.3", "at.5", "at.10", "special")
LANDMARKS = 200
KERNELS = ("gaussian", "laplace", "polynomial", "tanh")

# Tables 5.3 to 5.5, by metric, method and column; 5.6, iterations; 5.2, ListNet and RankSVM.
PRINTED: dict[int, dict[str, tuple[float | None, ...]]] = {
    3: {
        "gaussian": (0.5763, 0.5736, 0.5693, 0.5548),
        "laplace": (0.5765, 0.5673, 0.5705, 0.5637),
        "polynomial": (0.6011, 0.6040, 0.6178, 0.5126),
        "tanh": (0.5824, 0.5904, 0.5666, 0.5743),
        "plain": (0.5817, 0.5984, 0.6316, None),
    },
    5: {
        "gaussian": (None, 0.5948, 0.5933, 0.5755),
        "laplace": (None, 0.5882, 0.5984, 0.5850),
        "polynomial": (None, 0.6177, 0.6293, 0.5455),
        "tanh": (None, 0.6058, 0.5947, 0.5986),
        "plain": (None, 0.6122, 0.6425, None),
    },
    10: {
        "gaussian": (None, None, 0.5860, 0.5757),
        "laplace": (None, None, 0.5876, 0.5813),
        "polynomial": (None, None, 0.6175, 0.5579),
        "tanh": (None, None, 0.5941, 0.5917),
        "plain": (None, None, 0.6276, None),
    },
}
ITERATIONS = {
    "gaussian": (7, 3, 4, 3),
    "laplace": (2, 75, 2, 3),
    "polynomial": (3, 5, 6, 2),
    "tanh": (11, 20, 2, 17),
    "plain": (2, 3, 4, None),
}
BASELINES = {"ListNet": (0.6028, 0.6243, 0.6116), "RankSVM": (0.4662, 0.5120, 0.5325)}


@dataclass(frozen=True)
class ThesisNDCG:
    """DCG of the first k ranks over the DCG of the best order of the documents at these ranks; 0 if that is 0."""

    k: int

    def mean(self, scores: Any, queries: Queries) -> float:
        """Return the mean over queries."""
        values = []
        for a, b in pairwise(queries.start.tolist()):
            first = np.argsort(-scores[a:b], kind="stable")[: self.k]
            gains = 2.0 ** queries.labels[a:b][first] - 1
            discount = 1 / np.log2(2 + np.arange(len(gains)))
            best = float(np.sort(gains)[::-1] @ discount)
            values.append(float(gains @ discount) / best if best > 0 else 0.0)
        return float(np.mean(values))


class FileOrder:
    """Rank nothing: all scores are equal, so that documents stay in the order of the file."""

    n_iter_ = 0

    def fit(self, X: Any, y: Any, qid: Any) -> FileOrder:
        """Learn nothing."""
        return self

    def predict(self, X: Any) -> Any:
        """Return zeros."""
        return np.zeros(X.shape[0])


def first_documents(k: int) -> Callable[[RankingData], RankingData]:
    """Return what keeps the first k documents of each query, features divided by their norm within the query."""

    def cut(data: RankingData) -> RankingData:
        start = data.queries.start
        place = np.arange(data.n_documents) - np.repeat(start[:-1], np.diff(start))
        rows = np.flatnonzero(place < k)
        return RankingData(data.X[rows], data.y[rows], data.qid[rows]).normalize("query-l2")

    return cut


def standard(method: str, column: str) -> list[Any]:
    """Return the candidates of the standard protocol."""
    if method == "file order":
        return [FileOrder()]
    loss = CsListMLE(k=int(column[3:]) if column != "special" else 10)
    if method == "plain":
        return [LinearRanker(loss, C=C, max_iter=100) for C in (10.0, 100.0, 1000.0)]
    setting: Any = "special" if column == "special" else "median"
    common: dict[str, Any] = {"kernel": method, "setting": setting, "n_landmarks": LANDMARKS, "random_state": 0}
    return [KernelRanker(loss, C=C, max_iter=100, **common) for C in (10.0, 300.0)]


def own(method: str, column: str) -> list[Any]:
    """Return the one model of the thesis's protocol."""
    if method == "file order":
        return [FileOrder()]
    steps: dict[str, Any] = {"solver": "diagonal", "tol": 1e-3, "max_iter": 200}
    if method == "plain":
        return [LinearRanker(CsListMLE(weights="grade"), **steps)]
    setting: Any = "special" if column == "special" else "vanilla"
    common: dict[str, Any] = {"kernel": method, "setting": setting, "n_landmarks": LANDMARKS, "random_state": 0}
    return [KernelRanker(CsListMLE(weights="grade"), **common, **steps)]


def measure(
    candidates: Callable[[], Sequence[Any]], folds: Iterable[Fold], metrics: Mapping[int, Any]
) -> tuple[dict[int, float], float]:
    """Return the mean of the metrics over folds, and of the number of iterations."""
    values: dict[int, list[float]] = {k: [] for k in metrics}
    iterations = []
    for fold in folds:
        model = choose(candidates(), fold, NDCG(k=10))
        scores = model.predict(fold.test.X)
        iterations.append(model.n_iter_)
        for k, metric in metrics.items():
            values[k].append(metric.mean(scores, fold.test.queries))
    return {k: float(np.mean(each)) for k, each in values.items()}, float(np.mean(iterations))


def print_table(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n{title}\n\n| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def cell(*figures: float | None, digits: int = 4) -> str:
    """Return the figures with strokes between them."""
    return " / ".join("-" if figure is None else f"{figure:.{digits}f}" for figure in figures)


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments(__doc__ or "")
    folds = read_folds(arguments)
    whole = [map_fold(fold, lambda data: data.normalize("query-minmax")) for fold in folds]
    cut = {k: [map_fold(fold, first_documents(k)) for fold in folds] for k in CUTS}
    plain = {k: NDCG(k=k) for k in CUTS}
    theirs = {k: ThesisNDCG(k) for k in CUTS}

    rows = {}
    baselines: dict[str, list[Any]] = {
        "ListNet": [LinearRanker(ListNet(), C=C) for C in (1.0, 10.0, 100.0)],
        "RankSVM": [RankSVM(C=C) for C in (0.001, 0.01, 0.1)],
    }
    for name, models in baselines.items():
        ours, _ = measure(lambda models=models: models, whole, plain)  # type: ignore[misc]
        same, _ = measure(lambda models=models: models, whole, theirs)  # type: ignore[misc]
        rows[name] = [cell(BASELINES[name][i], ours[k], same[k]) for i, k in enumerate(CUTS)]
    print_table(
        "Table 5.2; for the thesis's protocol only its metric, on whole lists", [f"NDCG@{k}" for k in CUTS], rows
    )

    found = {}
    for method in (*KERNELS, "plain", "file order"):
        for j, column in enumerate(COLUMNS):
            if method == "plain" and column == "special":
                continue
            k = CUTS[j] if column != "special" else 10
            found[method, column] = (
                measure(lambda method=method, column=column: standard(method, column), whole, plain),  # type: ignore[misc]
                measure(lambda method=method, column=column: own(method, column), cut[k], theirs),  # type: ignore[misc]
            )
            print(f"  {method} {column}: done", file=sys.stderr, flush=True)
    for number, k in zip((3, 4, 5), CUTS, strict=True):
        rows = {}
        for method in (*KERNELS, "plain", "file order"):
            printed = PRINTED[k].get(method, (None,) * 4)
            rows[method] = [
                cell(printed[j], found[method, column][0][0][k], found[method, column][1][0][k])
                if (method, column) in found and (column == "special" or CUTS[j] >= k)
                else ""
                for j, column in enumerate(COLUMNS)
            ]
        print_table(f"Table 5.{number}: NDCG@{k}", COLUMNS, rows)
    rows = {
        method: [
            cell(ITERATIONS[method][j], found[method, column][0][1], found[method, column][1][1], digits=0)
            if (method, column) in found
            else ""
            for j, column in enumerate(COLUMNS)
        ]
        for method in (*KERNELS, "plain")
    }
    print_table("Table 5.6: iterations, mean over folds", COLUMNS, rows)


if __name__ == "__main__":
    main()
