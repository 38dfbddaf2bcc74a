"""L-BFGS against SciPy's, and at its ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from boostlist.datasets import make_ranking
from boostlist.losses import registry
from boostlist.solvers import Limits, MatrixDesign, Problem, Reason, follow, lbfgs, minimize_lbfgs


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
    assert counted.calls <= 1.5 * calls + 10


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_an_ill_conditioned_parabola(scale):
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    A = scale * (Q * np.logspace(0, 4, 12)) @ Q.T
    b = scale * rng.normal(size=12)
    solution = follow(
        minimize_lbfgs(lambda w: (0.5 * w @ A @ w - b @ w, A @ w - b), np.zeros(12)), Limits(1e-9 * scale)
    )
    np.testing.assert_allclose(solution.w, np.linalg.solve(A, b), rtol=1e-5, atol=1e-8)


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


@pytest.mark.parametrize(
    ("base", "convex", "reason"), [(1e3, False, "NO_STEP"), (1e3, True, "KINK"), (1, True, "NO_STEP")]
)
def test_a_kink_is_convergence_only_of_a_convex_function_that_is_near_its_minimum(base, convex, reason):
    def kink(w):
        return base + abs(float(w[0])) + 0.5 * float(w @ w), np.sign(w) + w

    solution = follow(minimize_lbfgs(kink, np.array([0.3]), penalised_convex=convex), Limits(1e-8, 200))
    assert solution.convergence.reason is Reason[reason]
    assert abs(solution.w[0]) < 1e-6
    # Next to the kink the gradient is 1.
    assert solution.convergence.gap == pytest.approx(0.5, rel=1e-3)


def test_a_function_that_belies_its_gradient_has_not_converged():
    def uphill(w):
        return 1.0 + float(w @ w), -2 * w

    solution = follow(minimize_lbfgs(uphill, np.ones(3)), Limits(1e-8, 100))
    assert solution.convergence.reason is Reason.NO_STEP
    assert not solution.convergence.converged
    assert "no step lowers the loss at gradient norm 3.46" in solution.convergence.message
