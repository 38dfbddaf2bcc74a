"""The rounded hinge, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import PairwiseHinge
from boostlist.losses.smoothed_hinge import SmoothedHinge


@pytest.mark.parametrize("width", [0.5, 1e-3])
def test_rounded_hinge_by_pairs(width):
    rng = np.random.default_rng(0)
    y, f = rng.integers(0, 3, 30).astype(float), rng.normal(0, 2, 30)
    sizes, weight = [12, 18], [2.0, 0.5]
    queries = Queries.from_sizes(y, sizes, weight)
    bound = SmoothedHinge(hinge=PairwiseHinge(weights="grade"), width=width).bind(queries)
    value, gradient, hessian, kink = 0.0, np.zeros(30), np.zeros((30, 30)), 0.0
    for first, n, factor in zip([0, 12], sizes, weight, strict=True):
        rows = range(first, first + n)
        for i, j in ((i, j) for i in rows for j in rows if y[i] > y[j]):
            V, d = factor * (y[i] - y[j]) / n, f[i] - f[j]
            alpha = np.clip((1 - d) / width, 0, 1)
            value += V * (0 if d >= 1 else (1 - d) ** 2 / (2 * width) if d > 1 - width else 1 - d - width / 2)
            gradient[i] -= V * alpha
            gradient[j] += V * alpha
            if 1 - width < d < 1:
                hessian[np.ix_([i, j], [i, j])] += V / width * np.array([[1, -1], [-1, 1]])
            kink += V * max(1 - d, 0) - V * alpha * (1 - d)
    np.testing.assert_allclose(bound.value(f), value, rtol=1e-10)
    np.testing.assert_allclose(bound.gradient_hessian(f), [gradient, np.diag(hessian)], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(np.column_stack([bound.hessp(f)(e) for e in np.eye(30)]), hessian, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(bound.kink(f), kink, rtol=1e-6, atol=1e-10)
