"""RankSVM on the hinge: the optimum of a QP solver, its bound on the distance to it, and the rounded hinge."""

from __future__ import annotations

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest

from boostlist import Queries, RankSVM
from boostlist.losses import PairwiseHinge
from boostlist.losses.smoothed_hinge import SmoothedHinge


def small_data(seed, queries=6, features=4):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, queries)
    X = rng.normal(size=(sizes.sum(), features))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X)) + 1), 0, 3)
    return X, y, sizes


def pairs_of(y, sizes):
    start = np.concatenate(([0], np.cumsum(sizes)))
    return [[(i, j) for i in range(lo, hi) for j in range(lo, hi) if y[i] > y[j]] for lo, hi in pairwise(start)]


def by_quadratic_program(X, y, sizes, C, normalize):
    w = cp.Variable(X.shape[1])
    total = 0
    for pairs in pairs_of(y, sizes):
        if pairs:
            i, j = np.transpose(pairs)
            total += cp.sum(cp.pos(1 - (X[i] - X[j]) @ w)) / (len(pairs) if normalize else 1)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + C / len(sizes) * total))
    problem.solve(solver=cp.CLARABEL)
    return problem.value, w.value


@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
@pytest.mark.parametrize(("C", "normalize"), [(0.01, None), (1.0, None), (100.0, None), (100.0, "pairs")])
def test_hinge_reaches_the_optimum(C, normalize, solver):
    for seed in range(3):
        X, y, sizes = small_data(seed)
        minimum, w = by_quadratic_program(X, y, sizes, C, normalize)
        model = RankSVM(loss="hinge", C=C, normalize=normalize, solver=solver).fit(X, y, group=sizes)
        found = model.convergence_.iterations[-1].loss
        assert abs(found - minimum) <= 3e-7 * minimum
        # By strong convexity 1/2 |difference|^2 is at most the excess.
        assert np.linalg.norm(model.coef_ - w) <= np.sqrt(2 * 3e-7 * minimum) + 1e-6
        assert model.convergence_.converged
        assert found - minimum <= model.convergence_.gap + 1e-8 * minimum


def test_every_iterate_is_within_its_bound():
    X, y, sizes = small_data(5, queries=12)
    minimum, _ = by_quadratic_program(X, y, sizes, 10.0, None)
    model = RankSVM(loss="hinge", C=10.0).fit(X, y, group=sizes)
    for each in model.convergence_.iterations:
        assert -1e-7 * minimum <= each.loss - minimum <= each.gradient_norm**2 / 2 + 1e-7 * minimum


def test_hinge_with_a_kernel():
    X, y, sizes = small_data(6)
    model = RankSVM(loss="hinge", kernel="gaussian", C=1000.0).fit(X, y, group=sizes)
    assert model.convergence_.converged
    # Documents that differ can be told apart: with little penalty every pair keeps its margin.
    f = model.predict(X)
    assert min(f[i] - f[j] for pairs in pairs_of(y, sizes) for i, j in pairs) > 0.9


@pytest.mark.parametrize("width", [0.5, 1e-3])
def test_rounded_hinge_by_pairs(width):
    rng = np.random.default_rng(0)
    y, f = rng.integers(0, 3, 30).astype(float), rng.normal(0, 2, 30)
    sizes, weight = [12, 18], [2.0, 0.5]
    queries = Queries.from_sizes(y, sizes, weight)
    bound = SmoothedHinge(hinge=PairwiseHinge(weights="grade"), width=width).bind(queries)
    value, gradient, hessian, kink = 0.0, np.zeros(30), np.zeros((30, 30)), 0.0
    for n, factor, pairs in zip(sizes, weight, pairs_of(y, sizes), strict=True):
        for i, j in pairs:
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


def test_choices_are_checked():
    X, y, sizes = small_data(0)
    with pytest.raises(ValueError, match="loss must be one of 'squared_hinge', 'hinge'"):
        RankSVM(loss="logistic").fit(X, y, group=sizes)
    with pytest.raises(ValueError, match="solver of the hinge must be one of"):
        RankSVM(loss="hinge", solver="lbfgs").fit(X, y, group=sizes)
