"""Solvers on problems whose optimum is known, and steps by hand."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import cho_factor

from boostlist import Queries
from boostlist.datasets import make_ranking
from boostlist.losses import BoundLoss, CsListMLE, Pointwise, registry
from boostlist.solvers import SOLVERS, Limits, MatrixDesign, Problem, Reason, follow, refusal
from boostlist.solvers.newton import _cholesky_direction

newton = sys.modules["boostlist.solvers.newton"]  # the package has a function of that name


def ridge():
    """Return a problem that is a ridge regression, and its solution by the normal equations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * [1, 10, 0.1, 1, 1, 1]
    queries = Queries.from_sizes(rng.integers(0, 4, 50), [20, 30])
    problem = Problem(MatrixDesign(X), Pointwise().bind(queries), 3.0)
    target = 2**queries.labels - 1
    return problem, np.linalg.solve(np.eye(6) + 3 * X.T @ X, 3 * X.T @ target)


def solve(name, problem, w, tol, max_iter=500):
    return follow(SOLVERS[name].iterates(problem, w), Limits(tol, max_iter))


@pytest.mark.parametrize("name", ["newton", "newton-cg", "lbfgs"])
def test_a_parabola(name):
    problem, best = ridge()
    solution = solve(name, problem, np.zeros(6), 1e-8)
    assert solution.convergence.reason is Reason.SMALL_GRADIENT
    np.testing.assert_allclose(solution.w, best, rtol=1e-6, atol=1e-9)
    if name == "newton":
        assert solution.convergence.n_iter == 1


@pytest.mark.parametrize("name", ["newton", "newton-cg", "lbfgs"])
def test_the_record_has_value_and_gradient_of_the_problem(name):
    problem, _ = ridge()
    start = np.linspace(-1, 2, 6)
    solution = solve(name, problem, start, 0.0, max_iter=1)
    assert solution.convergence.reason in (Reason.ITERATIONS, Reason.ROUNDING)
    for w, iteration in zip((start, solution.w), solution.convergence.iterations, strict=True):
        value, gradient = problem.value_gradient(w)
        assert iteration.loss == pytest.approx(value)
        assert iteration.gradient_norm == pytest.approx(np.linalg.norm(gradient), abs=1e-8)


def test_a_solver_refuses_a_loss_that_lacks_what_it_needs():
    """RankCosine is not convex; the hinge has no curvature; CsListMLE has all."""
    for name in SOLVERS:
        assert refusal(name, CsListMLE()) is None
        for loss, reason in (
            ("rank_cosine", "needs a convex loss"),
            ("pairwise_hinge", "offers no Hessian-vector product"),
        ):
            said = refusal(name, registry[loss]())
            assert said is None if name == "lbfgs" else reason in said


def test_a_start_at_the_optimum_takes_no_iteration():
    problem, best = ridge()
    record = solve("newton", problem, best, 1e-6).convergence
    assert record.n_iter == 0
    assert record.message.endswith("<= tol")


@pytest.mark.parametrize("name", ["newton", "newton-cg", "lbfgs"])
def test_precision_ends_the_fit_without_a_complaint(name):
    problem, _ = ridge()
    record = solve(name, problem, np.zeros(6), 0.0).convergence
    assert record.reason is Reason.ROUNDING
    assert "as small as rounding allows" in record.message


@pytest.mark.parametrize("name", ["cs_rglist", "wpll", "listnet"])
@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
def test_the_gradient_falls_further_than_the_loss_can_tell(name, solver):
    """At F = 1e5 the loss has no digits left where the gradient norm is 1e-4."""
    data = make_ranking(30, docs=8, n_features=10, seed=1).normalize("zscore")
    bound = registry[name]().bind(data.queries)
    problem = Problem(MatrixDesign(data.X), bound, 1e5 / bound.value(np.zeros(len(data.y))))
    assert solve(solver, problem, np.zeros(10), 1e-6).convergence.reason is Reason.SMALL_GRADIENT


def test_conjugate_gradients_end_the_later_the_nearer_the_optimum():
    """On a parabola the residual that is left of the linear system is the next gradient."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40)) * np.logspace(0, -2, 40)
    queries = Queries.from_sizes(rng.integers(0, 3, 300), [100, 200])
    problem = Problem(MatrixDesign(X), Pointwise().bind(queries), 1.0)
    norms = [each.gradient_norm for each in solve("newton-cg", problem, np.zeros(40), 1e-9).convergence.iterations]
    assert norms[-1] <= 1e-9
    for before, after in pairwise(norms):
        assert after <= before * min(0.25, before**0.5) * (1 + 1e-6) + 1e-9
    assert norms[2] > 1e-9  # yet not all the way at once


class Indefinite(MatrixDesign):
    """A design whose I + Hessian has a given matrix."""

    def __init__(self, matrix):
        super().__init__(np.eye(len(matrix)))
        self.matrix = matrix

    def hessian(self, bound, f):
        return self.matrix - np.eye(len(self.matrix))


@pytest.mark.parametrize("size", [1.0, 1e12])
@pytest.mark.parametrize("least", [-1e-15, -3e-13, 1e-9])
def test_a_hessian_that_rounding_made_indefinite_is_shifted_by_as_little(size, least, monkeypatch):
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    values = size * np.array([least, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 1.0])
    matrix = (Q * values) @ Q.T
    gradient = Q @ np.array([0.0, *rng.normal(size=7)])  # nothing along the direction of the error
    problem = Problem(Indefinite((matrix + matrix.T) / 2), Pointwise().bind(Queries.from_sizes([0, 1], [2])), 1.0)
    tries = []
    monkeypatch.setattr(newton, "cho_factor", lambda H, lower: tries.append(H.copy()) or cho_factor(H, lower=lower))
    p = _cholesky_direction(problem, np.zeros(8), gradient)
    assert len(tries) <= 6
    assert np.trace(tries[-1] - tries[0]) / 8 <= size * max(20 * -least, 3e-15 if least < 0 else 0)
    exact = -Q[:, 1:] @ ((Q.T @ gradient)[1:] / values[1:])
    across = Q[:, 0] @ p  # what rounding puts along the flat direction is not the matter
    np.testing.assert_allclose(p - across * Q[:, 0], exact, rtol=1e-6, atol=1e-8 * np.abs(exact).max())


class Rising(BoundLoss):
    """A loss that is larger at each call, whatever its gradient promises."""

    level = 0.0

    def evaluate(self, f, need):
        self.level += 10.0
        return np.full(1, self.base + self.level), np.ones_like(f), np.ones_like(f)

    def hessp(self, f):
        return lambda v: np.zeros_like(f)


@pytest.mark.parametrize(("base", "reason"), [(1.0, Reason.NO_STEP), (1e12, Reason.ROUNDING)])
def test_where_no_step_lowers_the_loss(base, reason):
    bound = Rising(Pointwise(), Queries.from_sizes([0, 1], [2]))
    bound.base = base
    record = solve("newton", Problem(MatrixDesign(np.eye(2)), bound, 1.0), np.zeros(2), 1e-8).convergence
    assert (record.reason, record.n_iter) == (reason, 0)


class OneScore(BoundLoss):
    """A loss of a single score, given by its value and first and second derivative."""

    def __init__(self, value, first, second):
        super().__init__(Pointwise(), Queries.from_sizes([1.0], [1]))
        self.parts = value, first, second

    def evaluate(self, f, need):
        return tuple(np.array([part(f[0])]) for part in self.parts)

    def hessp(self, f):
        return lambda v: self.parts[2](f[0]) * np.asarray(v)


def minimised(bound, start, c=1.0):
    return solve("newton", Problem(MatrixDesign(np.eye(1)), bound, c), np.array([start]), 1e-6)


def test_a_small_fall_is_no_convergence_while_the_gradient_is_large():
    """Far out, Newton steps on (1 + f^2)^(1/2) are too long, and falls are small beside the constant."""
    root = OneScore(
        lambda f: 1e7 + (1 + f * f) ** 0.5, lambda f: f * (1 + f * f) ** -0.5, lambda f: (1 + f * f) ** -1.5
    )
    solution = minimised(root, 100.0, c=1e3)
    assert solution.convergence.reason is Reason.SMALL_GRADIENT
    assert abs(solution.w[0]) < 1e-8


@pytest.mark.parametrize(("left", "reason"), [(0.45, Reason.ITERATIONS), (0.55, Reason.ROUNDING)])
def test_rounding_ends_the_fit_where_a_step_leaves_more_than_half_of_the_gradient(left, reason):
    """The gradient is that of the penalty, w itself; F cannot tell falls of it beside the constant."""
    flat = Problem(MatrixDesign(np.eye(1)), OneScore(lambda f: 1e15, lambda f: 0.0, lambda f: 0.0), 1.0)
    iterates = newton._descend(flat, np.ones(1), lambda problem, f, gradient: (left - 1) * gradient)
    record = follow(iterates, Limits(max_iter=5)).convergence
    norms = [iteration.gradient_norm for iteration in record.iterations]
    np.testing.assert_allclose(norms, left ** np.arange(6 if reason is Reason.ITERATIONS else 2))
    assert record.reason is reason


def test_where_the_loss_cannot_tell_the_slope_of_the_penalty_counts():
    noise = iter([0.0, *[0.6] * 200])  # more than the penalty falls by, yet lost beside the constant
    solution = minimised(OneScore(lambda f: 1e12 + next(noise), lambda f: 0.0, lambda f: 0.0), 1.0)
    assert (solution.convergence.reason, solution.convergence.n_iter) == (Reason.SMALL_GRADIENT, 1)


def test_a_step_that_is_too_short_but_falls_is_taken():
    """At the bend the second derivative is large, so that the Newton step is short and the slope after it as before."""
    bend = OneScore(
        lambda f: -1.025 * f + 0.025 * (f * f + 1e-6) ** 0.5,
        lambda f: -1.025 + 0.025 * f * (f * f + 1e-6) ** -0.5,
        lambda f: 0.025 * 1e-6 * (f * f + 1e-6) ** -1.5,
    )
    solution = minimised(bend, 0.0)
    assert solution.convergence.reason is Reason.SMALL_GRADIENT
    assert solution.convergence.iterations[1].loss - solution.convergence.iterations[-1].loss > 0
    assert solution.w[0] == pytest.approx(1.0, abs=1e-4)


def differences(function, w, step=1e-4):
    """Return gradient and second derivatives by central differences."""
    e = step * np.eye(len(w))
    first = np.array([(function(w + d) - function(w - d)) / (2 * step) for d in e])
    return first, np.array([(function(w + d) - 2 * function(w) + function(w - d)) / step**2 for d in e])


def test_the_diagonal_solver_takes_the_step_of_the_thesis():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[:, 2] = 1.0  # no second derivative: left alone
    queries = Queries.from_sizes(rng.integers(0, 3, 30), [10, 20])
    bound = CsListMLE().bind(queries)
    iterates = SOLVERS["diagonal"].iterates(Problem(MatrixDesign(X), bound, 0.25), np.zeros(3))
    first, second = next(iterates), next(iterates)
    np.testing.assert_allclose(first.w, 10 / np.sqrt(3))
    gradient, curvature = differences(lambda w: bound.value(X @ w), first.w)
    step = first.w - [*(gradient[:2] / curvature[:2]), 0.0]
    np.testing.assert_allclose(second.w, 10 * step / np.linalg.norm(step), rtol=1e-3)
    assert first.loss == pytest.approx(0.25 * bound.value(X @ first.w))
    assert first.gradient_norm == pytest.approx(0.25 * np.linalg.norm(gradient), rel=1e-6)
    assert first.change == np.inf
    assert second.change == pytest.approx(abs(second.loss - first.loss))
    assert second.loss != pytest.approx(first.loss)


def test_the_diagonal_solver_ends_where_all_weights_vanish():
    """For (w - 0)^2 the first step leads to w = 0, which has no direction."""
    queries = Queries.from_sizes(np.zeros(4), [4])
    problem = Problem(MatrixDesign(np.eye(4)), Pointwise().bind(queries), 1.0)
    record = solve("diagonal", problem, np.zeros(4), 0.0).convergence
    assert (record.reason, record.n_iter) == (Reason.NO_WEIGHTS, 0)


def test_by_query_the_mean_of_all_steps_so_far_is_taken():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[:, 2] = np.repeat([0.7, -130.0, 200.0], 10)  # constant in each query, of any size: left alone
    queries = Queries.from_sizes(rng.integers(0, 3, 30), [10, 10, 10], query_weight=[1.0, 2.0, 1.0])
    bound = registry["listnet"]().bind(queries)
    iterates = SOLVERS["diagonal-by-query"].iterates(Problem(MatrixDesign(X), bound, 0.25, norm=3.0), np.zeros(3))
    found = [next(iterates) for _ in range(4)]
    np.testing.assert_array_equal(found[0].w, [0.05, 0.05, 0.05])
    assert found[0].change == np.inf
    steps = []
    for before, after in pairwise(found):
        ratios = []
        for q in range(3):
            one = registry["listnet"]().bind(Queries.from_sizes(queries.labels[10 * q : 10 * q + 10], [10]))
            gradient, curvature = differences(lambda w, q=q, one=one: one.value(X[10 * q : 10 * q + 10] @ w), before.w)
            ratios.append([*(gradient[:2] / curvature[:2]), 0.0])
        steps.append(np.average(ratios, axis=0, weights=[1.0, 2.0, 1.0]))
        w = before.w - np.mean(steps, axis=0)
        np.testing.assert_allclose(after.w, 3 * w / np.linalg.norm(w), rtol=1e-4)
        assert after.change == pytest.approx(np.abs(after.w - before.w).max())
        assert after.loss == pytest.approx(0.25 * bound.value(X @ after.w))
        gradient, _ = differences(lambda w: bound.value(X @ w), after.w)
        assert after.gradient_norm == pytest.approx(0.25 * np.linalg.norm(gradient), rel=1e-5)
