r"""Coordinate-wise steps with normalised weights: algorithms 2 and 3 of Olinto (2016), kept for reproduction.

    w_l <- w_l - (dL/dw_l) / (d^2L/dw_l^2),   w <- 10 w / |w|

until the loss changes by less than `tol`. As |w| is fixed, the penalty 1/2 |w|^2 has no influence. The steps treat
coordinates as if they did not act on each other, so that with correlated features the loss may rise and the iteration
need not converge; ``newton`` does what these algorithms mean to. The norm 10 and the start with equal weights are those
of the thesis's appendix.
"""

from __future__ import annotations

import numpy as np

from boostlist._typing import FloatArray
from boostlist.solvers.convergence import Reason
from boostlist.solvers.following import Iterate, Iterates
from boostlist.solvers.problem import Problem

_NORM = 10.0


def diagonal(problem: Problem, w: FloatArray) -> Iterates:
    """Take coordinate-wise Newton steps, normalising w after each; only the length of the start w counts."""
    design, bound = problem.design, problem.bound
    w, previous = np.ones_like(w), np.inf
    while np.any(w):
        w = _NORM * w / np.linalg.norm(w)
        f = design.scores(w)
        value, slope = bound.value_gradient(f)
        gradient = design.back(slope)
        F = problem.c * value
        yield Iterate(w, F, problem.c * float(np.linalg.norm(gradient)), abs(previous - F))
        previous = F
        second = np.diagonal(design.hessian(bound, f))
        w = w - np.divide(gradient, second, out=np.zeros_like(gradient), where=second > 0)
    return Reason.NO_WEIGHTS
