"""Latency of `TreeRanker.predict` for one list of 100 documents, beside the bare booster's, on one thread.

python benchmarks/serving.py

Medians of 500 calls each, taken by turns; the ratio counts, not the microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import xgboost as xgb

from boostlist import TreeRanker
from boostlist.datasets import make_ranking

CALLS = 500
DOCUMENTS = 100


def medians(*functions: Callable[[], object]) -> list[float]:
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(CALLS):
        for function, taken in zip(functions, seconds, strict=True):
            begin = time.perf_counter()
            function()
            taken.append(time.perf_counter() - begin)
    return [float(np.median(taken)) for taken in seconds]


def main() -> None:
    train = make_ranking(300, seed=0)
    X = np.ascontiguousarray(train.X[:DOCUMENTS])
    for backend in ("lightgbm", "xgboost"):
        ranker = TreeRanker(backend=backend, n_estimators=200, n_jobs=1).fit(train.X, train.y, train.qid)
        booster = ranker.booster_

        def bare(backend: str = backend, booster: object = booster) -> object:
            if backend == "lightgbm":
                return booster.predict(X, raw_score=True, num_threads=1)  # type: ignore[attr-defined]
            return booster.predict(xgb.DMatrix(X, nthread=1), output_margin=True)  # type: ignore[attr-defined]

        theirs, ours = medians(bare, lambda ranker=ranker: ranker.predict(X))  # type: ignore[misc]
        print(f"{backend:10} bare {1e6 * theirs:6.0f} us   TreeRanker {1e6 * ours:6.0f} us   ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
