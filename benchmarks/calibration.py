"""Which monotone map makes an expected grade of a score: what `predict_relevance` rests on.

python benchmarks/calibration.py [FOLDERS ...]

For each set of folds - the sample, and the folders given - and two losses, trees are trained with early stopping on
validation data. Three maps from score to grade are fitted to validation data and judged on test data: those of
`boostlist.calibration`, a logistic curve and isotonic regression, and a straight line by least squares. Shown are the
share of the grades' variance that is explained, in per cent, and the calibration error: the mean over tenths of the
documents, by predicted grade, of the difference between predicted and true mean grade. Means over folds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from boostlist import TreeRanker
from boostlist._typing import FloatArray
from boostlist.calibration import Isotonic, Logistic
from boostlist.datasets import find_folds, load_sample

Map = Callable[[FloatArray], FloatArray]


def logistic(f: FloatArray, y: FloatArray) -> Map:
    return Logistic.fitted(f, y, np.ones(len(y)))


def isotonic(f: FloatArray, y: FloatArray) -> Map:
    return Isotonic.fitted(f, y, np.ones(len(y)))


def line(f: FloatArray, y: FloatArray) -> Map:
    slope, start = np.polyfit(f, y, 1)
    return lambda f: slope * f + start


def calibration_error(predicted: FloatArray, y: FloatArray) -> float:
    tenths = np.array_split(np.argsort(predicted, kind="stable"), 10)
    return float(np.mean([abs(predicted[rows].mean() - y[rows].mean()) for rows in tenths]))


def main() -> None:
    sets = {"sample": [load_sample(i) for i in range(1, 6)]}
    sets |= {str(folder).rstrip("/").rpartition("/")[2]: list(find_folds(folder)) for folder in sys.argv[1:]}
    print(f"{'set':10}{'loss':20}{'map':10}{'explained':>10}{'error':>8}")
    for name, folds in sets.items():
        for loss in ("pairwise_logistic", "cs_listmle"):
            found: dict[str, list[tuple[float, float]]] = {}
            for fold in folds:
                train, vali, test = fold.train, fold.vali, fold.test
                ranker = TreeRanker(loss, n_estimators=400, random_state=0, n_jobs=1)
                ranker.fit(train.X, train.y, train.qid, eval_set=[(vali.X, vali.y, vali.qid)], early_stopping_rounds=50)
                for fit in (logistic, isotonic, line):
                    predicted = fit(ranker.predict(vali.X), vali.y)(ranker.predict(test.X))
                    explained = 100 * (1 - np.mean((predicted - test.y) ** 2) / test.y.var())
                    found.setdefault(fit.__name__, []).append((explained, calibration_error(predicted, test.y)))
            for fit_name, values in found.items():
                explained, error = np.mean(values, axis=0)
                print(f"{name:10}{loss:20}{fit_name:10}{explained:>9.1f}%{error:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
