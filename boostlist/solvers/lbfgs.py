"""L-BFGS from SciPy, for any loss with a gradient and any model, convex or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from boostlist._typing import FloatArray
from boostlist.solvers.convergence import Monitor, Stopped
from boostlist.solvers.problem import Problem

_MEMORY = 20
# Where no step lowers the loss further, a gradient this much smaller than the first is the optimum but for rounding.
_SMALL = 1e-5
# At the minimum of a loss with kinks, such as a hinge loss, the gradient need not vanish. There the fit has converged
# if the distance to the minimum is at most this share of the value.
_GAP = 1e-3


def lbfgs(problem: Problem, w: FloatArray, monitor: Monitor) -> None:
    """Minimise by limited-memory quasi-Newton steps."""
    minimize_lbfgs(problem.value_gradient, w, monitor, penalised_convex=problem.bound.loss.traits.convex)


def minimize_lbfgs(
    value_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    w: FloatArray,
    monitor: Monitor,
    penalised_convex: bool = False,
) -> None:
    """Minimise a function given with its gradient, and report each iterate.

    `penalised_convex` says that it is 1/2 |w|^2 plus a convex function: then it is nowhere more than |gradient|^2 / 2
    above its minimum, kinks or not.
    """
    last: tuple[FloatArray, float, float] | None = None

    def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal last
        value, gradient = value_gradient(x)
        last = (x.copy(), value, float(np.linalg.norm(gradient)))
        return value, gradient

    def note(x: FloatArray) -> None:
        # SciPy calls back with the point it evaluated last; the norm is known already.
        if last is None or not np.array_equal(x, last[0]):
            evaluate(x)
        assert last is not None
        monitor(*last)

    note(w)
    start = monitor.iterations[0].gradient_norm
    # SciPy's bounds are set out of reach: the monitor ends the fit.
    options = {"maxcor": _MEMORY, "maxiter": monitor.max_iter + 1, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0}
    minimize(evaluate, w, jac=True, method="L-BFGS-B", callback=note, options=options)  # type: ignore[call-overload]
    norm = monitor.iterations[-1].gradient_norm
    if norm <= _SMALL * max(1.0, start):
        raise Stopped(f"gradient norm {norm:.3g} is as small as rounding allows", converged=True)
    gap = 0.5 * norm**2
    if penalised_convex and gap <= _GAP * monitor.iterations[-1].loss:
        raise Stopped(f"the loss falls no further, at most {gap:.3g} above its minimum", converged=True)
    raise Stopped(f"L-BFGS finds no step that lowers the loss at gradient norm {norm:.3g}", converged=False)
