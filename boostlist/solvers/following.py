"""The one loop around all solvers: a solver yields iterates, and `follow` decides how long it goes on.

A solver is a generator. It yields an `Iterate` at the start and after every step, and returns the `Reason` if it cannot
go on. It knows neither tolerance nor number of iterations, and prints nothing.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from boostlist._typing import FloatArray
from boostlist.solvers.convergence import Callback, Convergence, Iteration, Reason


class Iterate(NamedTuple):
    """Where a solver is.

    Attributes
    ----------
    w
        The weights; a solver does not write into what it has yielded.
    loss, gradient_norm
        As `Iteration` has them.
    change
        What the last step changed, for a solver whose rule is to end when that is small; None for one that ends at a
        small gradient.
    """

    w: FloatArray
    loss: float
    gradient_norm: float = np.nan
    change: float | None = None


Iterates = Generator[Iterate, None, Reason]


class Limits(NamedTuple):
    """When to end a fit: at a gradient norm, or a change, of at most `tol`, or after `max_iter` iterations."""

    tol: float = 0.0
    max_iter: float = np.inf


@dataclass(frozen=True, eq=False)
class Solution:
    """The end of a fit.

    Attributes
    ----------
    w
        The last iterate.
    convergence
        The record.
    interruption
        What interrupted the fit after its first iterate, such as Ctrl-C; to be raised when the iterate is safe.
    """

    w: FloatArray
    convergence: Convergence
    interruption: BaseException | None = None


def follow(iterates: Iterates, limits: Limits, verbose: bool = False, callback: Callback | None = None) -> Solution:
    """Run a solver to its end.

    Parameters
    ----------
    iterates
        A solver at work.
    limits
        When to end it.
    verbose
        Whether to print a line for each iteration.
    callback
        Called after each iteration; a true result ends the fit.
    """
    begin = time.perf_counter()
    record: list[Iteration] = []
    w = np.zeros(0)
    interruption = None
    try:
        while True:
            try:
                found = next(iterates)
            except StopIteration as stop:
                reason: Reason = stop.value
                break
            w = found.w
            seconds = time.perf_counter() - begin
            record.append(Iteration(len(record), float(found.loss), float(found.gradient_norm), seconds))
            if verbose:
                _print(record[-1])
            ended = _ended(found, record[-1], limits, callback)
            if ended is not None:
                reason = ended
                break
    except BaseException as error:
        if not record:
            raise
        reason, interruption = Reason.INTERRUPTED, error
    iterates.close()
    return Solution(w, Convergence(tuple(record), reason), interruption)


def _ended(found: Iterate, iteration: Iteration, limits: Limits, callback: Callback | None) -> Reason | None:
    if not np.isfinite(found.loss) or np.isinf(found.gradient_norm):
        return Reason.NOT_FINITE
    if found.change is None and found.gradient_norm <= limits.tol:
        return Reason.SMALL_GRADIENT
    if callback is not None and callback(iteration):
        return Reason.CALLBACK
    if found.change is not None and found.change <= limits.tol:
        return Reason.SMALL_CHANGE
    return Reason.ITERATIONS if iteration.number >= limits.max_iter else None


def _print(iteration: Iteration) -> None:
    print(
        f"{iteration.number:5d}  loss {iteration.loss:.12g}  gradient norm {iteration.gradient_norm:.3g}  "
        f"{iteration.seconds:.2f} s"
    )
