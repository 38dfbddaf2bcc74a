from __future__ import annotations

import numpy as np
import pytest

from boostlist.datasets import make_ranking
from boostlist.losses import registry
from boostlist.solvers import MatrixDesign, Monitor, Problem, Stopped, lbfgs, minimize_lbfgs


def test_a_loss_with_kinks_converges_where_it_falls_no_further():
    data = make_ranking(30, docs=8, n_features=10, seed=1).normalize("zscore")
    problem = Problem(MatrixDesign(data.X), registry["pairwise_hinge"]().bind(data.queries), 0.1)
    monitor = Monitor(tol=1e-8, max_iter=2000)
    with pytest.raises(Stopped, match=r"the loss falls no further, at most .* above its minimum") as stopped:
        lbfgs(problem, np.zeros(10), monitor)
    assert stopped.value.converged
    reached = monitor.iterations[-1]
    assert reached.gradient_norm > 1e-3
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            value, _ = problem.value_gradient(monitor.w + size * rng.standard_normal(10))
            assert value >= reached.loss - reached.gradient_norm**2 / 2


def test_a_function_that_belies_its_gradient_has_not_converged():
    def uphill(w):
        return 1.0 + float(w @ w), -2 * w

    with pytest.raises(Stopped, match="no step that lowers the loss at gradient norm") as stopped:
        minimize_lbfgs(uphill, np.ones(3), Monitor(tol=1e-8, max_iter=100))
    assert not stopped.value.converged
