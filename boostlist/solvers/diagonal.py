r"""Coordinate-wise steps with normalised weights: algorithms 2 and 3 of Olinto (2016), kept for reproduction.

``diagonal`` is what the text describes: on the loss L of all queries,

    w_l <- w_l - (dL/dw_l) / (d^2L/dw_l^2),   w <- 10 w / |w|

until L changes by no more than `tol`. ``diagonal-by-query`` is what the thesis's program does: it takes such a step for
the loss L_q of each query, and moves by the mean of them over all queries and all iterations t so far,

    w_l <- w_l - mean over t' <= t and q of (dL_q/dw_l) / (d^2L_q/dw_l^2) at the weights of t',   w <- r w / |w|

with r = 1 for the linear and 10 for the kernel model, from 0.05 in every coordinate, until no coordinate changes by
more than `tol`; its tol is 0.001 and its largest number of iterations 200. What an iteration adds to the mean shrinks
like 1/t. (The program's derivatives are not those of its loss, see examples/reproduce/_thesis.py; these are.)

As |w| is fixed, the penalty 1/2 |w|^2 has no influence. The steps treat coordinates as if they did not act on each
other, so that with correlated features the loss may rise and the iteration need not converge; ``newton`` does what
these algorithms mean to.
"""

from __future__ import annotations

import numpy as np

from boostlist._typing import FloatArray
from boostlist.solvers.convergence import Reason
from boostlist.solvers.following import Iterate, Iterates
from boostlist.solvers.problem import Problem

_NORM = 10.0
_START = 0.05
# A second derivative below this part of the sum of its terms' sizes is rounding: the coordinate has no influence.
_FLAT = 1e-12


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


def diagonal_by_query(problem: Problem, w: FloatArray) -> Iterates:
    """Move by the mean of each query's steps, over all iterations so far; only the length of the start w counts."""
    w, change = np.full_like(w, _START), np.inf
    total, iterations = np.zeros_like(w), 0
    while np.any(w):
        f = problem.design.scores(w)
        value, slope = problem.bound.value_gradient(f)
        norm = float(np.linalg.norm(problem.design.back(slope)))
        yield Iterate(w, problem.c * value, problem.c * norm, change)
        total, iterations = total + _mean_step(problem, f, slope), iterations + 1
        step = w - total / iterations
        step *= problem.norm / max(float(np.linalg.norm(step)), np.finfo(np.float64).tiny)
        change, w = float(np.abs(step - w).max()), step
    return Reason.NO_WEIGHTS


def _mean_step(problem: Problem, f: FloatArray, slope: FloatArray) -> FloatArray:
    """Return the mean over queries, by their weight, of first over second derivative in each coordinate."""
    queries, hessp = problem.bound.queries, problem.bound.hessp(f)
    size = np.abs(problem.bound.gradient_hessian(f)[1])
    share = queries.weight / queries.weight.sum()
    step = np.empty(problem.design.n_columns)
    for column in range(len(step)):
        v = problem.design.column(column)
        first, second, scale = (np.add.reduceat(v * each, queries.start[:-1]) for each in (slope, hessp(v), size * v))
        curved = second > _FLAT * scale
        step[column] = share @ np.divide(first, second, out=np.zeros_like(first), where=curved)
    return step
