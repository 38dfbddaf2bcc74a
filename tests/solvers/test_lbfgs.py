"""L-BFGS against SciPy's, and at its ends."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from boostlist import Queries
from boostlist.datasets import make_ranking
from boostlist.losses import BoundLoss, Pointwise, RankCosine, registry
from boostlist.solvers import Iteration, Limits, MatrixDesign, Problem, Reason, follow, lbfgs, minimize_lbfgs
from boostlist.solvers.lbfgs import _line_search, _Point, _stalled, _step


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, w):
        self.calls += 1
        return self.function(w)


def reference(function, start, tol):
    """Return SciPy's minimum and its number of calls."""
    counted = Counted(function)
    options = {"maxcor": 20, "maxiter": 5000, "maxfun": 10**6, "ftol": 0.0, "gtol": tol}
    return minimize(counted, start, jac=True, method="L-BFGS-B", options=options), counted.calls


@pytest.mark.parametrize("n", [2, 10, 60])
def test_rosenbrock(n):
    counted = Counted(lambda w: (rosen(w), rosen_der(w)))
    solution = follow(minimize_lbfgs(counted, np.full(n, -1.2)), Limits(1e-8, 5000))
    assert solution.convergence.reason is Reason.SMALL_GRADIENT
    found, calls = reference(counted.function, np.full(n, -1.2), 1e-8)
    # From this start, n >= 4 may also end in the local minimum near (-1, 1, ..., 1).
    assert solution.convergence.iterations[-1].loss == pytest.approx(found.fun, abs=1e-9)
    assert counted.calls <= 1.1 * calls + 5


@pytest.mark.parametrize(("scale", "offset"), [(1e-6, 0.0), (1.0, 0.0), (1e6, 0.0), (1.0, 1e6)])
def test_an_ill_conditioned_parabola(scale, offset):
    """With the offset the loss soon looks flat, and only the gradient tells that there is a way to go."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    A = scale * (Q * np.logspace(0, 4, 12)) @ Q.T
    b = scale * rng.normal(size=12)

    def parabola(w):
        return offset + 0.5 * w @ A @ w - b @ w, A @ w - b

    solution = follow(minimize_lbfgs(parabola, np.zeros(12)), Limits(1e-6 * scale))
    assert solution.convergence.reason is Reason.SMALL_GRADIENT
    assert np.linalg.norm(A @ solution.w - b) <= 1e-6 * scale
    np.testing.assert_allclose(solution.w, np.linalg.solve(A, b), atol=1e-5)


def test_the_first_step_has_length_1_at_most():
    tried = []

    def steep(w):
        tried.append(w.copy())
        return 500 * float(w @ w), 1000 * w

    start = np.array([3.0, 4.0])
    follow(minimize_lbfgs(steep, start), Limits(1e-6))
    assert np.linalg.norm(tried[1] - start) == pytest.approx(1)
    tried.clear()
    follow(minimize_lbfgs(lambda w: (1e-6 * float(w @ w), tried.append(w.copy()) or 2e-6 * w), start), Limits(1e-12))
    np.testing.assert_allclose(tried[1], start - 2e-6 * start)


@pytest.mark.parametrize("t", [1e-4, 1e-2, 1.0, 30.0])
@pytest.mark.parametrize(
    "function", [lambda x: (x**2 / 2, x), lambda x: (np.cosh(x), np.sinh(x)), lambda x: (x**4, 4 * x**3)]
)
def test_a_step_meets_wolfes_conditions(function, t):
    """However short or long the first trial is: F falls by a part of what the slope promises, and flattens."""
    start = np.array([2.0])
    F, slope = function(start[0])
    at = _Point(start, F, np.array([slope]))
    found = _line_search(lambda w: (function(w[0])[0], np.array([function(w[0])[1]])), at, -at.gradient, t)
    step = (start[0] - found.w[0]) / slope
    assert F - 1e-4 * step * slope**2 >= found.F
    assert -found.gradient[0] * slope >= -0.9 * slope**2


def test_a_fit_stalls_where_neither_loss_nor_gradient_falls():
    def record(norms, losses=()):
        losses = losses or [1.0] * len(norms)
        return [Iteration(i, loss, norm, 0.0) for i, (loss, norm) in enumerate(zip(losses, norms, strict=True))]

    assert _stalled(record([1.0] * 21))
    assert not _stalled(record([1.0] * 20))
    assert not _stalled(record([1.0] * 20 + [0.4]))  # the gradient has fallen to less than half
    assert _stalled(record([0.4] + [1.0] * 20))  # but for what was reached before
    assert not _stalled(record([1.0] * 21, [1.0 - 1e-9 * i for i in range(21)]))


def test_where_the_memory_misleads_the_gradient_leads():
    def parabola(w):
        with np.errstate(over="ignore", invalid="ignore"):
            return 0.5 * float(w @ w), w

    start = np.array([3.0, 4.0])
    e = np.array([1.0, 0.0])
    memory = deque([(1e150 * e, 1e-150 * e)])  # as if F had no curvature at all
    step = _step(parabola, _Point(start, *parabola(start)), memory)
    assert not memory
    assert parabola(start)[0] > step.F
    np.testing.assert_allclose(step.w / np.linalg.norm(step.w), start / 5)


def test_steps_on_the_way_to_infinity_are_shortened():
    """Exp overflows at the first long step."""

    def function(w):
        with np.errstate(over="ignore"):
            e = np.exp(w**2)
        return float(np.sum(e - w)), 2 * w * e - 1

    solution = follow(minimize_lbfgs(function, np.array([5.0, -4.0])), Limits(1e-9, 500))
    assert solution.convergence.converged
    w = solution.w
    np.testing.assert_allclose(2 * w * np.exp(w**2), 1, atol=1e-8)


def test_a_loss_with_kinks_converges_where_it_falls_no_further():
    data = make_ranking(30, docs=8, n_features=10, seed=1).normalize("zscore")
    problem = Problem(MatrixDesign(data.X), registry["pairwise_hinge"]().bind(data.queries), 0.1)
    solution = follow(lbfgs(problem, np.zeros(10)), Limits(1e-8, 2000))
    assert solution.convergence.reason is Reason.KINK
    reached = solution.convergence.iterations[-1]
    gap = solution.convergence.gap
    assert solution.convergence.message == f"the loss falls no further, at most {gap:.3g} above its minimum"
    assert reached.gradient_norm > 1e-3
    assert 0 < gap <= 1e-3 * reached.loss
    found, _ = reference(problem.value_gradient, np.zeros(10), 1e-8)
    assert reached.loss <= found.fun * (1 + 1e-6)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            value, _ = problem.value_gradient(solution.w + size * rng.standard_normal(10))
            assert value >= reached.loss - gap


class BoundKink(BoundLoss):
    """|f| above a constant, said to be some other loss."""

    def __init__(self, loss, base):
        super().__init__(loss, Queries.from_sizes([1.0], [1]))
        self.base = base

    def evaluate(self, f, need):
        return self.base + np.abs(f), np.sign(f), np.ones(1)


@pytest.mark.parametrize(
    ("loss", "base", "reason"),
    [(RankCosine(), 1e3, Reason.NO_STEP), (Pointwise(), 1e3, Reason.KINK), (Pointwise(), 1.0, Reason.NO_STEP)],
)
def test_a_kink_is_convergence_only_of_a_convex_function_that_is_near_its_minimum(loss, base, reason):
    problem = Problem(MatrixDesign(np.eye(1)), BoundKink(loss, base), 1.0)
    solution = follow(lbfgs(problem, np.array([0.3])), Limits(1e-8, 200))
    assert solution.convergence.reason is reason
    assert abs(solution.w[0]) < 1e-6
    # Next to the kink the gradient is 1.
    assert solution.convergence.gap == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("start", [(2.0, -3.0), (-1.5, 4.0), (10.0, 10.0), (0.1, 7.0)])
def test_the_loss_never_rises(start):
    """On hills and dales, where a flat point may be a summit."""

    def hills(w):
        return float(np.sum(w**2 / 20 + np.cos(3 * w))), w / 10 - 3 * np.sin(3 * w)

    record = follow(minimize_lbfgs(hills, np.array(start)), Limits(1e-10, 500)).convergence
    losses = np.array([each.loss for each in record.iterations])
    assert record.converged
    assert np.all(np.diff(losses) <= 1e-12 * np.abs(losses[1:]))
    assert np.sum(np.diff(losses) < 0) >= 3


def test_rounding_is_told_by_the_size_of_the_first_gradient():
    rng = np.random.default_rng(0)
    X, b = rng.normal(size=(20, 8)), 1e13 * rng.normal(size=8)
    A = 1e13 * X.T @ X
    record = follow(minimize_lbfgs(lambda w: (0.5 * w @ A @ w - b @ w, A @ w - b), np.ones(8)), Limits())
    assert record.convergence.reason is Reason.ROUNDING
    assert record.convergence.iterations[-1].gradient_norm > 1e-5


def test_a_function_that_belies_its_gradient_has_not_converged():
    def uphill(w):
        return 1.0 + float(w @ w), -2 * w

    solution = follow(minimize_lbfgs(uphill, np.ones(3)), Limits(1e-8, 100))
    assert solution.convergence.reason is Reason.NO_STEP
    assert not solution.convergence.converged
    assert "no step lowers the loss at gradient norm 3.46" in solution.convergence.message
