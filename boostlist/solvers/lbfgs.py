r"""L-BFGS, for any function with a gradient, convex or not.

Liu, Nocedal, *On the limited memory BFGS method for large scale optimization* (1989): p = -H gradient, where H is made
of the last steps s and changes of gradient y by the recursion of Nocedal and Wright, *Numerical Optimization* (2006),
algorithm 7.4. A step along p meets the conditions of Wolfe

    F(w + t p) <= F(w) + 1e-4 t p'gradient(w),    p'gradient(w + t p) >= 0.9 p'gradient(w)

found by bracketing. Within rounding of F, where the first says nothing, the slope has to become flatter in absolute
value instead, so that the gradient can be brought down further than F can tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from boostlist._typing import FloatArray
from boostlist.solvers.convergence import Convergence, Iteration, Reason
from boostlist.solvers.following import Iterate, Iterates
from boostlist.solvers.problem import Problem

Function = Callable[[FloatArray], tuple[float, FloatArray]]
"""A function with its gradient: w -> (F, gradient)."""

_MEMORY = 20
_ARMIJO, _CURVATURE = 1e-4, 0.9
# Relative size of a change of F that is lost in rounding.
_ROUNDING = 1e-12
_TRIALS = 40
# A fit stalls if in so many steps F falls by no more than this part of its value, and the gradient norm not to half.
_STALL_STEPS, _STALL_FALL = 20, 1e-10
# Where no step lowers the loss further, a gradient this much smaller than the first is the optimum but for rounding.
_SMALL = 1e-5
# At the minimum of a loss with kinks, such as a hinge loss, the gradient need not vanish. There the fit has converged
# if the distance to the minimum is at most this share of the value.
_GAP = 1e-3


class _Point(NamedTuple):
    """A point, F there and its gradient."""

    w: FloatArray
    F: float
    gradient: FloatArray


def lbfgs(problem: Problem, w: FloatArray) -> Iterates:
    """Minimise by limited-memory quasi-Newton steps."""
    return minimize_lbfgs(problem.value_gradient, w, penalised_convex=problem.bound.loss.traits.convex)


def minimize_lbfgs(function: Function, w: FloatArray, penalised_convex: bool = False) -> Iterates:
    """Minimise a function given with its gradient.

    `penalised_convex` says that it is 1/2 |w|^2 plus a convex function; then the distance to the minimum is known.
    """
    at = _Point(w, *function(w))
    memory: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=_MEMORY)
    record: list[Iteration] = []
    while True:
        norm = float(np.linalg.norm(at.gradient))
        record.append(Iteration(len(record), at.F, norm, 0.0))
        yield Iterate(at.w, at.F, norm)
        step = None if _stalled(record) else _step(function, at, memory)
        if step is None:
            return _verdict(record, penalised_convex)
        s, y = step.w - at.w, step.gradient - at.gradient
        if s @ y > np.finfo(np.float64).eps * (y @ y):
            memory.append((s, y))
        at = step


def _stalled(record: list[Iteration]) -> bool:
    """Whether over the last steps neither the loss nor the smallest gradient norm has fallen."""
    before, after = record[:-_STALL_STEPS], record[-_STALL_STEPS:]
    if not before:
        return False
    least_before, least = (min(each.gradient_norm for each in part) for part in (before, after))
    last = record[-1].loss
    return before[-1].loss - last <= _STALL_FALL * abs(last) and least > 0.5 * least_before


def _verdict(record: list[Iteration], penalised_convex: bool) -> Reason:
    """Say what it means that no step lowers the loss any more."""
    first, last = record[0], record[-1]
    if last.gradient_norm <= _SMALL * max(1.0, first.gradient_norm):
        return Reason.ROUNDING
    at_kink = penalised_convex and Convergence(record, Reason.KINK).gap <= _GAP * last.loss
    return Reason.KINK if at_kink else Reason.NO_STEP


def _step(function: Function, at: _Point, memory: deque[tuple[FloatArray, FloatArray]]) -> _Point | None:
    """Return a lower point along the quasi-Newton direction or, where there is none, along the gradient."""
    p = -_inverse_hessian_product(memory, at.gradient)
    # Without memory nothing is known of the scale of F: a first step of length 1 at most.
    t = 1.0 if memory else 1.0 / max(1.0, float(np.linalg.norm(p)))
    found = _line_search(function, at, p, t)
    if found is None and memory:
        memory.clear()
        return _step(function, at, memory)
    return found


def _inverse_hessian_product(memory: deque[tuple[FloatArray, FloatArray]], gradient: FloatArray) -> FloatArray:
    q = gradient.copy()
    alphas = []
    for s, y in reversed(memory):
        alphas.append(float(s @ q) / float(s @ y))
        q -= alphas[-1] * y
    if memory:
        s, y = memory[-1]
        q *= float(s @ y) / float(y @ y)
    for s, y in memory:
        q += (alphas.pop() - float(y @ q) / float(s @ y)) * s
    return q


def _line_search(function: Function, at: _Point, p: FloatArray, t: float) -> _Point | None:
    """Return a point that meets Wolfe's conditions, or None if there is none within rounding."""
    slope = float(at.gradient @ p)
    rounding = _ROUNDING * abs(at.F)
    # The step sought is between low and high; F is low enough at low, and falls from there.
    low, F_low, slope_low, high = 0.0, at.F, slope, np.inf
    for _ in range(_TRIALS):
        w = at.w + t * p
        point = _Point(w, *function(w))
        with np.errstate(over="ignore", invalid="ignore"):  # far out a trial may be infinite, and is shortened
            slope_t = float(point.gradient @ p)
        F_t, fall = point.F, _ARMIJO * t * slope
        flatter = F_t <= at.F + rounding and abs(slope_t) <= -_CURVATURE * slope
        if not (F_t <= at.F + fall or flatter):
            # The minimum of the parabola through both ends, where that is inside.
            width = t - low
            bend = F_t - F_low - width * slope_low
            guess = -0.5 * width * slope_low / bend if bend > 0 else 0.5
            high, t = t, low + width * min(max(guess, 0.1), 0.9)
        elif slope_t < _CURVATURE * slope:
            # Still falling steeply: on to where the slope would vanish if it changed at the same rate.
            rate = (slope_t - slope_low) / (t - low)
            ahead = -slope_t / rate if rate > 0 else np.inf
            room = 0.9 * (high - t) if np.isfinite(high) else 9 * t
            least = 0.1 * (high - t) if np.isfinite(high) else t
            low, F_low, slope_low, t = t, F_t, slope_t, t + min(max(ahead, least), room)
        else:
            return point
    return None
