"""Solvers on problems whose optimum is known."""

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import Pointwise
from boostlist.solvers import SOLVERS, Limits, MatrixDesign, Problem, Reason, follow


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
    solution = solve(name, problem, np.zeros(6), 0.0, max_iter=1)
    assert solution.convergence.reason in (Reason.ITERATIONS, Reason.ROUNDING)
    value, gradient = problem.value_gradient(solution.w)
    assert solution.convergence.iterations[-1].loss == pytest.approx(value)
    assert solution.convergence.iterations[-1].gradient_norm == pytest.approx(np.linalg.norm(gradient), abs=1e-9)


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
