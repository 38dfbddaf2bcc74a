r"""Newton's method: p = -(I + c Phi'H Phi)^{-1} gradient, then a step along p.

Two ways to p: ``newton`` builds the matrix and factorises it, ``newton-cg`` solves by conjugate gradients with products
H v, and stops the sooner the further away the optimum is. Since scores are linear in w, a step of any length costs one
evaluation of the loss on known scores, f + t Phi p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from boostlist._typing import FloatArray
from boostlist.solvers.convergence import Reason
from boostlist.solvers.following import Iterate, Iterates
from boostlist.solvers.problem import Problem

Direction = Callable[[Problem, FloatArray, FloatArray], FloatArray]

_ARMIJO = 1e-4
_CURVATURE = 0.9
# Relative size of a change of F that is lost in rounding; below it only the slope tells whether a step was good.
_ROUNDING = 1e-12
# A promised fall of F, relative to F, so small that failing to reach it is the fault of rounding.
_STALL = 1e-9
_HALVINGS = 60


def newton(problem: Problem, w: FloatArray) -> Iterates:
    """Minimise with the full Hessian and its Cholesky factor."""
    return _descend(problem, w, _cholesky_direction)


def newton_cg(problem: Problem, w: FloatArray) -> Iterates:
    """Minimise by truncated Newton steps: conjugate gradients on products H v."""
    return _descend(problem, w, _cg_direction)


def _cholesky_direction(problem: Problem, f: FloatArray, gradient: FloatArray) -> FloatArray:
    H = problem.c * problem.design.hessian(problem.bound, f)
    diagonal = np.einsum("ii->i", H)
    diagonal += 1.0
    # Phi'H Phi is positive semi-definite but for rounding; a shift of that size restores it.
    shift = np.finfo(np.float64).eps * diagonal.max()
    while True:
        try:
            return -np.asarray(cho_solve(cho_factor(H, lower=True), gradient))
        except LinAlgError:
            diagonal += shift
            shift *= 10


def _cg_direction(problem: Problem, f: FloatArray, gradient: FloatArray) -> FloatArray:
    hessp = problem.bound.hessp(f)
    p = np.zeros_like(gradient)
    residual = -gradient
    direction = residual.copy()
    norm = float(residual @ residual)
    # Superlinear: the relative residual that is good enough shrinks with the gradient.
    enough = norm * min(0.25, np.sqrt(norm)) ** 2
    for _ in range(10 * len(gradient)):
        product = direction + problem.c * problem.design.back(hessp(problem.design.scores(direction)))
        step = norm / float(direction @ product)
        p += step * direction
        residual -= step * product
        previous, norm = norm, float(residual @ residual)
        if norm <= enough:
            break
        direction = residual + (norm / previous) * direction
    return p


@dataclass(frozen=True, eq=False)
class _Point:
    """A point on the line w + t p: F there, and the loss's gradient in f."""

    t: float
    F: float
    loss_gradient: FloatArray


def _descend(problem: Problem, w: FloatArray, direction: Direction) -> Iterates:
    f = problem.design.scores(w)
    value, loss_gradient = problem.bound.value_gradient(f)
    F, previous = 0.5 * float(w @ w) + problem.c * value, np.inf
    while True:
        gradient = w + problem.c * problem.design.back(loss_gradient)
        norm = float(np.linalg.norm(gradient))
        yield Iterate(w, F, norm)
        p = direction(problem, f, gradient)
        slope = float(gradient @ p)
        if -slope <= _ROUNDING * abs(F) and norm > 0.5 * previous:
            return Reason.ROUNDING
        previous = norm
        step = _line_search(problem, w, f, p, F, slope)
        if step is None:
            # Convex, so that p points downhill: a promise too small to be kept is the fault of rounding.
            return Reason.ROUNDING if -slope <= _STALL * abs(F) else Reason.NO_STEP
        # Scores are computed afresh rather than added up, so that no error grows over the iterations.
        w = w + step.t * p
        f = problem.design.scores(w)
        F, loss_gradient = step.F, step.loss_gradient


def _line_search(
    problem: Problem, w: FloatArray, f: FloatArray, p: FloatArray, F: float, slope: float
) -> _Point | None:
    """Return a point that lowers F enough: by Armijo's rule or, within rounding of F, by a flatter slope."""
    f_p = problem.design.scores(p)
    w_p, p_p, w_w = float(w @ p), float(p @ p), float(w @ w)
    t = 1.0
    for _ in range(_HALVINGS):
        value, loss_gradient = problem.bound.value_gradient(f + t * f_p)
        F_t = 0.5 * (w_w + 2 * t * w_p + t * t * p_p) + problem.c * value
        slope_t = w_p + t * p_p + problem.c * float(np.sum(loss_gradient * f_p))
        flatter = abs(slope_t) <= -_CURVATURE * slope and F_t <= F + _ROUNDING * abs(F)
        if F_t <= F + _ARMIJO * t * slope or flatter:
            return _Point(t, F_t, loss_gradient)
        # Convex: the slope changes sign between 0 and t, and its secant says where.
        secant = slope / (slope - slope_t) if slope_t > slope else 0.5
        t *= min(max(secant, 0.1), 0.5)
    return None
