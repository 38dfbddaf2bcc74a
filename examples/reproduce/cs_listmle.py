"""Olinto, Kernelized Cost-Sensitive Listwise Ranking (MSc thesis, RIT 2016), tables 5.2 to 5.6.

    python cs_listmle.py FOLDER [--folds 1,2] [--tables 5.6]

Thesis: MSLR-WEB10K, five folds, no choice of settings. Its program departs from its text in ways that decide its
figures; `_thesis.py` lists them, and is a literal port of it. Every cell has three figures:

    printed / standard protocol / the thesis's program, literally

Standard: whole lists, features scaled to 0..1 within the query, truncation k in the loss only, Newton's method to the
optimum, kernels with the thesis's vanilla parameters ("special": with those) and a basis of 200 training documents, C
chosen on the validation part by NDCG@10. Program: first k documents, its own metric. The rows "file order" and "random
order" are what no model at all gets. The thesis has no such rows: the first figure of "random order" is that of made
lists, with grades drawn independently with shares of 52, 32, 13, 2 and 1 %, what we take those of MSLR-WEB10K to be.

Table 5.6 has the iterations of the program, and of solver="diagonal-by-query", which follows its rule with the
derivatives of the loss; below it are those of the program with its errors mended one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import _thesis as thesis
import numpy as np
from _tables import choose, fit, map_fold, parse_arguments, progress, read_folds, wants

from boostlist import KernelRanker, LinearRanker, RankSVM
from boostlist.datasets import Fold, RankingData
from boostlist.losses import CsListMLE, ListNet
from boostlist.metrics import NDCG

CUTS = (3, 5, 10)
COLUMNS = {"at.3": 3, "at.5": 5, "at.10": 10, "special": 10}
LANDMARKS = 200
KERNELS = {"gaussian": "gaussian", "laplace": "laplace-as-printed", "polynomial": "polynomial", "tanh": "tanh"}
NO_MODEL = ("file order", "random order")
SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)
SELECT = NDCG(k=10)

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

Figures = dict[int, float]


def first_documents(k: int) -> Callable[[RankingData], RankingData]:
    """Return what keeps the first k documents of each query, features divided by their norm within the query."""

    def cut(data: RankingData) -> RankingData:
        start = data.queries.start
        place = np.arange(data.n_documents) - np.repeat(start[:-1], np.diff(start))
        rows = np.flatnonzero(place < k)
        return RankingData(data.X[rows], data.y[rows], data.qid[rows]).normalize("query-l2")

    return cut


def standard(method: str, column: str, landmarks: int) -> list[Any]:
    """Return the candidates of the standard protocol."""
    loss = CsListMLE(k=COLUMNS[column])
    if method == "plain":
        return [LinearRanker(loss, C=C, max_iter=100) for C in (10.0, 100.0, 1000.0)]
    return [KernelRanker(loss, C=C, max_iter=100, **kernel(method, column, landmarks)) for C in (10.0, 300.0)]


def kernel(method: str, column: str, n_landmarks: int) -> dict[str, Any]:
    """Return the parameters of a kernel ranker with the thesis's setting of a column."""
    setting = "special" if column == "special" else "vanilla"
    return {"kernel": KERNELS[method], "setting": setting, "n_landmarks": n_landmarks, "random_state": 0}


def by_query(method: str, column: str) -> Any:
    """Return the model of the thesis's text, trained by its program's rule."""
    loss, rule = CsListMLE(weights="grade"), {"solver": "diagonal-by-query", "tol": 1e-3, "max_iter": 200}
    if method == "plain":
        return LinearRanker(loss, **rule)  # type: ignore[arg-type]
    return KernelRanker(loss, basis="query", **kernel(method, column, COLUMNS[column]), **rule)  # type: ignore[arg-type]


def mean(figures: Iterable[Mapping[int, float]]) -> Figures:
    """Return the mean over folds of each figure."""
    rows = list(figures)
    return {k: float(np.mean([row[k] for row in rows])) for k in rows[0]}


def test_figures(candidates: Sequence[Any], folds: Sequence[Fold]) -> Figures:
    """Return NDCG@k of the standard protocol."""
    models = [choose(candidates, fold, SELECT) for fold in folds]
    return mean(
        {k: NDCG(k=k).mean(model.predict(fold.test.X), fold.test.queries) for k in CUTS}
        for model, fold in zip(models, folds, strict=True)
    )


def figures_without_model(order: str, folds: Sequence[Fold]) -> Figures:
    """Return NDCG@k of documents in the order of the file, or its mean over all orders."""
    ties: Any = "stable" if order == "file order" else "average"
    return mean(
        {k: NDCG(k=k, ties=ties).mean(np.zeros(fold.test.n_documents), fold.test.queries) for k in CUTS}
        for fold in folds
    )


def parameters(column: str, fold: Fold) -> Mapping[str, float]:
    """Return the parameters with which the program trains a kernel."""
    return thesis.special(fold.train.n_features) if column == "special" else thesis.VANILLA


def program_figures(method: str, column: str, folds: Sequence[Fold]) -> Figures:
    """Return NDCG@k of the thesis's program."""
    size = COLUMNS[column]
    figures = []
    for fold in folds:
        lists = thesis.Lists.of(fold.test, size)
        if method == "random order":
            figures.append({k: thesis.random_order(lists, k) for k in CUTS if k <= size})
            continue
        scores = np.zeros(lists.y.shape)
        if method != "file order":
            w, _ = thesis.train(thesis.Lists.of(fold.train, size), method, parameters(column, fold))
            scores = thesis.test_scores(lists, method, w)
        figures.append({k: thesis.ndcg(lists, scores, k) for k in CUTS if k <= size})
    return mean(figures)


def program_iterations(method: str, column: str, folds: Sequence[Fold], mended: Sequence[str] = ()) -> str:
    """Return the iterations of the program, and * if weights overflow in any of the folds."""
    found = [
        thesis.train(thesis.Lists.of(fold.train, COLUMNS[column]), method, parameters(column, fold), mended)
        for fold in folds
    ]
    overflow = "" if all(np.isfinite(w).all() for w, _ in found) else "*"
    return summary([iterations for _, iterations in found]) + overflow


def summary(iterations: Sequence[int]) -> str:
    """Return the median over folds, and the range where they differ."""
    low, high = min(iterations), max(iterations)
    return f"{np.median(iterations):.0f}" + (f" ({low}-{high})" if low < high else "")


def print_table(title: str, columns: Iterable[str], rows: Mapping[str, Sequence[str]]) -> None:
    """Print a Markdown table."""
    names = list(columns)
    print(f"\n{title}\n\n| | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def cell(*figures: float | None) -> str:
    """Return the figures with strokes between them."""
    return " / ".join("-" if figure is None else f"{figure:.4f}" for figure in figures)


def print_baselines(whole: Sequence[Fold]) -> None:
    """Print table 5.2, which has no figures of the program: the thesis does not show that of its baselines."""
    models: dict[str, list[Any]] = {
        "ListNet": [LinearRanker(ListNet(), C=C) for C in (1.0, 10.0, 100.0)],
        "RankSVM": [RankSVM(C=C) for C in (0.001, 0.01, 0.1)],
    }
    rows = {}
    for name, candidates in models.items():
        ours = test_figures(candidates, whole)
        rows[name] = [cell(BASELINES[name][i], ours[k]) for i, k in enumerate(CUTS)]
        progress(f"{name}: done")
    print_table("Table 5.2: printed / standard protocol", [f"NDCG@{k}" for k in CUTS], rows)


def print_figures(folds: Sequence[Fold], whole: Sequence[Fold], landmarks: int) -> None:
    """Print tables 5.3 to 5.5."""
    found: dict[tuple[str, str], tuple[Figures, Figures]] = {}
    for method in (*KERNELS, "plain", *NO_MODEL):
        for column in COLUMNS:
            if method == "plain" and column == "special":
                continue
            begin = time.perf_counter()
            if method in NO_MODEL:
                ours = figures_without_model(method, whole)
            else:
                ours = test_figures(standard(method, column, landmarks), whole)
            found[method, column] = ours, program_figures(method, column, folds)
            progress(f"{method} {column}: {time.perf_counter() - begin:.0f} s")
    for number, k in zip((3, 4, 5), CUTS, strict=True):
        rows = {}
        for method in (*KERNELS, "plain", *NO_MODEL):
            cells = []
            for i, (column, size) in enumerate(COLUMNS.items()):
                printed = PRINTED[k].get(method, (None,) * 4)[i]
                if method == "random order" and size >= k:
                    printed = thesis.random_order(thesis.independent_lists(SHARES, size), k)
                shown = (method, column) in found and size >= k
                ours, theirs = found.get((method, column), ({}, {}))
                cells.append(cell(printed, ours[k], theirs[k]) if shown else "")
            rows[method] = cells
        print_table(f"Table 5.{number}: NDCG@{k}", COLUMNS, rows)


def print_iterations(folds: Sequence[Fold]) -> None:
    """Print table 5.6, and the same for the program with each of its errors mended."""
    cut = {k: [map_fold(fold, first_documents(k)) for fold in folds] for k in CUTS}
    rows: dict[str, list[str]] = {}
    mended: dict[str, list[str]] = {}
    for method in (*KERNELS, "plain"):
        for i, (column, size) in enumerate(COLUMNS.items()):
            if method == "plain" and column == "special":
                continue
            ours = summary([fit(by_query(method, column), fold.train).n_iter_ for fold in cut[size]])
            literal = program_iterations(method, column, folds)
            rows.setdefault(method, []).append(f"{ITERATIONS[method][i]} / {literal} / {ours}")
            each = [program_iterations(method, column, folds, [error]) for error in thesis.ERRORS]
            mended[f"{method}, {column}"] = [literal, *each, program_iterations(method, column, folds, thesis.ERRORS)]
            progress(f"iterations of {method} {column}: done")
    rows["plain"].append("")
    title = "Table 5.6, iterations: printed / program / solver by query; median (range) of folds, * overflow in one"
    print_table(title, COLUMNS, rows)
    print_table("Iterations of the program with errors mended", ("none", *thesis.ERRORS, "all"), mended)


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments(__doc__ or "", ("5.2", "5.3", "5.6"))
    folds = read_folds(arguments)
    whole = [map_fold(fold, lambda data: data.normalize("query-minmax")) for fold in folds]
    if wants(arguments, "5.2"):
        print_baselines(whole)
    if wants(arguments, "5.6"):
        print_iterations(folds)
    if wants(arguments, "5.3"):
        print_figures(folds, whole, 20 if arguments.quick else LANDMARKS)


if __name__ == "__main__":
    main()
