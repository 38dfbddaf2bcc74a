"""What a score is worth: rising maps from scores to expected labels, fitted to data that a ranker has not seen.

`Logistic` is a curve with two parameters, of the cross-entropy's least value for labels as shares t = y / top of the
largest label, as Platt (1999) has it for probabilities:

    y(f) = top / (1 + e^-z),   z = slope f + start,   slope >= 0,   minimise sum of weight x (log(1 + e^z) - t z)

so that expected labels add up to the true ones. `Isotonic` is, of all functions that never fall, the one with the least
squared error: steps, with straight lines in between, and constant beyond the scores that were seen. Equal labels for
different scores are its price; that it takes every shape its merit. docs/production.md has figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from boostlist._typing import FloatArray
from boostlist.checks import warn

Method = Literal["logistic", "isotonic"]

_STEEPEST = 50.0  # in units of the scores' deviation: a step, where labels are as good as decided


@dataclass(frozen=True)
class Logistic:
    """A logistic curve from 0 to the largest label."""

    top: float
    slope: float
    start: float

    @classmethod
    def fitted(cls, scores: FloatArray, labels: FloatArray, weight: FloatArray) -> Self:
        """Fit the curve."""
        top, unit = float(labels.max()), float(scores.std()) or 1.0
        if top == 0:
            warn("all labels are 0, and so is what is expected of every score")
            return cls(0.0, 0.0, 0.0)
        x, t, w = (scores - scores.mean()) / unit, labels / top, weight / weight.sum()

        def value_gradient(p: FloatArray) -> tuple[float, FloatArray]:
            z = p[0] * x + p[1]
            error = w * (expit(z) - t)
            return float(np.sum(w * (np.logaddexp(0, z) - t * z))), np.array([np.sum(error * x), np.sum(error)])

        slope, start = minimize(
            value_gradient, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=[(0, _STEEPEST), (None, None)],
            options={"gtol": 1e-10, "ftol": 1e-14},
        ).x  # fmt: skip
        if slope == 0:
            warn("labels do not rise with the scores, so that the same is expected of every score")
        return cls(top, float(slope / unit), float(start - slope * scores.mean() / unit))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the expected labels of documents with these scores."""
        return np.asarray(self.top * expit(self.slope * scores + self.start))


@dataclass(frozen=True)
class Isotonic:
    """Isotonic regression: scores, ascending, at which the map bends, and its values there."""

    scores: tuple[float, ...]
    labels: tuple[float, ...]

    @classmethod
    def fitted(cls, scores: FloatArray, labels: FloatArray, weight: FloatArray) -> Self:
        """Fit the steps."""
        from sklearn.isotonic import IsotonicRegression

        found = IsotonicRegression().fit(scores, labels, sample_weight=weight)
        return cls(tuple(found.X_thresholds_.tolist()), tuple(found.y_thresholds_.tolist()))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the expected labels of documents with these scores."""
        return np.interp(scores, self.scores, self.labels)


METHODS: dict[Method, type[Logistic] | type[Isotonic]] = {"logistic": Logistic, "isotonic": Isotonic}
"""The maps by name."""
