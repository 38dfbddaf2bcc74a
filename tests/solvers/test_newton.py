"""Solvers on problems whose optimum is known."""

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import Pointwise
from boostlist.solvers import SOLVERS, MatrixDesign, Monitor, Problem, Stopped


def ridge():
    """Return a problem that is a ridge regression, and its solution by the normal equations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * [1, 10, 0.1, 1, 1, 1]
    queries = Queries.from_sizes(rng.integers(0, 4, 50), [20, 30])
    problem = Problem(MatrixDesign(X), Pointwise().bind(queries), 3.0)
    target = 2**queries.labels - 1
    return problem, np.linalg.solve(np.eye(6) + 3 * X.T @ X, 3 * X.T @ target)


@pytest.mark.parametrize("name", ["newton", "newton-cg", "lbfgs"])
def test_a_parabola(name):
    problem, solution = ridge()
    monitor = Monitor(1e-8, 500)
    with pytest.raises(Stopped) as stopped:
        SOLVERS[name](problem, np.zeros(6), monitor)
    assert stopped.value.converged
    np.testing.assert_allclose(monitor.w, solution, rtol=1e-6, atol=1e-9)
    if name == "newton":
        assert len(monitor.iterations) == 2


def test_the_record_has_value_and_gradient_of_the_problem():
    problem, _ = ridge()
    monitor = Monitor(1e-8, 1)
    with pytest.raises(Stopped, match="max_iter=1 reached") as stopped:
        SOLVERS["lbfgs"](problem, np.zeros(6), monitor)
    assert not stopped.value.converged
    value, gradient = problem.value_gradient(monitor.w)
    assert monitor.iterations[-1].loss == pytest.approx(value)
    assert monitor.iterations[-1].gradient_norm == pytest.approx(np.linalg.norm(gradient))


def test_a_start_at_the_optimum_takes_no_iteration():
    problem, solution = ridge()
    monitor = Monitor(1e-6, 100)
    with pytest.raises(Stopped, match="<= tol"):
        SOLVERS["newton"](problem, solution, monitor)
    assert len(monitor.iterations) == 1


def test_precision_ends_the_fit_without_a_complaint():
    problem, _ = ridge()
    monitor = Monitor(0.0, 100)
    with pytest.raises(Stopped, match="as small as rounding allows") as stopped:
        SOLVERS["newton"](problem, np.zeros(6), monitor)
    assert stopped.value.converged
