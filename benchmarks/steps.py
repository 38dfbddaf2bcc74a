"""What the bound on steps (`Traits.step`) does: where training would diverge without it, and what it costs elsewhere.

First table: training loss after 50 rounds of LightGBM, as a multiple of its start. "One relevant": lists of 1,500
documents, and a feature tells the relevant one; default parameters. "21 grades": lists of 25; rate 1, leaves of one
document. Second: mean test NDCG@10 over the folds of data sets, TreeRanker with early stopping, with and without the
bound, and the standard error of the difference over queries.

    python benchmarks/steps.py [FOLDER ...]
"""

from __future__ import annotations

import sys
import warnings
from typing import Literal

import lightgbm as lgb
import numpy as np

from boostlist import Queries, TreeRanker, metrics
from boostlist.datasets import find_folds
from boostlist.losses import Loss, registry

Step = float | Literal["auto"]

BOUNDED = [name for name, loss in registry.items() if np.isfinite(loss().traits.step)]


def one_relevant(lists: int = 6, documents: int = 1_500) -> tuple[np.ndarray, Queries]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(lists * documents, 5)), np.zeros(lists * documents)
    best = documents * np.arange(lists) + rng.integers(documents, size=lists)
    y[best] = 1
    X[best, 0] += 30
    return X, Queries.from_sizes(y, np.full(lists, documents))


def many_grades(lists: int = 60, documents: int = 25) -> tuple[np.ndarray, Queries]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(lists * documents, 5))
    y = np.clip(np.round(8 + 4 * (X[:, 0] + 0.5 * rng.normal(size=len(X)))), 0, 20)
    return X, Queries.from_sizes(y, np.full(lists, documents))


def growth(loss: Loss, step: Step, X: np.ndarray, queries: Queries, params: dict[str, float]) -> float:
    """Return the training loss after 50 rounds over that at the start."""
    train = lgb.Dataset(X, queries.labels, group=queries.sizes)
    booster = lgb.train({"objective": loss.objective(step=step), "verbose": -1} | params, train, 50)
    bound = loss.bind(queries)
    return bound.value(booster.predict(X)) / bound.value(np.zeros(len(X)))


def quality(loss: Loss, step: Step, folder: str) -> np.ndarray:
    """Return test NDCG@10 of every query of all folds."""
    values = []
    for fold in find_folds(folder, sparse=False):
        train, vali, test = fold.train, fold.vali, fold.test
        ranker = TreeRanker(loss.objective(step=step), n_estimators=150, learning_rate=0.1, extra_trees=False, n_jobs=1)
        ranker.fit(train.X, train.y, train.qid, eval_set=[(vali.X, vali.y, vali.qid)], early_stopping_rounds=30)
        values.append(metrics.NDCG(10).per_query(ranker.predict(test.X), test.queries))
    return np.concatenate(values)


def main() -> None:
    warnings.simplefilter("ignore")
    print("| training loss after 50 rounds | one relevant | without bound | 21 grades | without bound |")
    print("| --- | --- | --- | --- | --- |")
    for name in BOUNDED:
        row = [
            growth(registry[name](), step, *data, params)
            for data, params in (
                (one_relevant(), {}),
                (many_grades(), {"learning_rate": 1.0, "min_data_in_leaf": 1}),
            )
            for step in ("auto", np.inf)
        ]
        print(f"| {name} | {' | '.join(f'x {value:,.3g}' for value in row)} |", flush=True)
    for folder in sys.argv[1:]:
        print(f"\n| {find_folds(folder).name} | NDCG@10 | without bound | difference | its standard error |")
        print("| --- | --- | --- | --- | --- |")
        for name in BOUNDED:
            held, free = (quality(registry[name](), step, folder) for step in ("auto", np.inf))
            error = np.std(held - free) / np.sqrt(len(held))
            print(
                f"| {name} | {held.mean():.4f} | {free.mean():.4f} | {np.mean(held - free):+.4f} | {error:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
