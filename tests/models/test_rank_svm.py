"""RankSVM on the hinge: the optimum of a QP solver, and its bound on the distance to it."""

from __future__ import annotations

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest

from boostlist import RankSVM


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


def test_choices_are_checked():
    X, y, sizes = small_data(0)
    with pytest.raises(ValueError, match="loss must be one of 'squared_hinge', 'hinge'"):
        RankSVM(loss="logistic").fit(X, y, group=sizes)
    with pytest.raises(ValueError, match="solver of the hinge must be one of"):
        RankSVM(loss="hinge", solver="lbfgs").fit(X, y, group=sizes)
