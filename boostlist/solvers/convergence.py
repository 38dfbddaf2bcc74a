"""What happened during a fit: loss, gradient norm and time of every iteration."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Iteration:
    """The state after an iteration.

    Attributes
    ----------
    number
        0 for the start.
    loss
        Value of what is minimised, penalty included.
    gradient_norm
        Euclidean norm of its gradient.
    seconds
        Time since the start of the fit.
    """

    number: int
    loss: float
    gradient_norm: float
    seconds: float


@dataclass(frozen=True)
class Convergence:
    """The course of a fit.

    Attributes
    ----------
    iterations
        The start and every iteration.
    converged
        Whether the fit ended because nothing was left to gain.
    message
        Why it ended.
    """

    iterations: Sequence[Iteration]
    converged: bool
    message: str

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return self.iterations[-1].number if self.iterations else 0

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each iteration."""
        import pandas as pd

        return pd.DataFrame([vars(iteration) for iteration in self.iterations])

    def plot(self, ax: Any = None, label: str | None = None) -> Any:
        """Plot the gradient norm against time on a logarithmic scale; return the axes. Needs matplotlib."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.gca()
        seconds = [iteration.seconds for iteration in self.iterations]
        ax.semilogy(seconds, [iteration.gradient_norm for iteration in self.iterations], marker=".", label=label)
        ax.set_xlabel("seconds")
        ax.set_ylabel("gradient norm")
        return ax


Callback = Callable[[Iteration], object]
"""Called after each iteration; a true result ends the fit."""


class Stopped(Exception):  # noqa: N818 - not an error: it ends a solver from within
    """Ends a solver; its text says why."""

    def __init__(self, message: str, converged: bool) -> None:
        super().__init__(message)
        self.converged = converged


@dataclass
class Monitor:
    """Watches a solver: keeps the last iterate and the record, reports, and ends the fit.

    Attributes
    ----------
    tol
        Gradient norm at which the fit has converged.
    max_iter
        Largest number of iterations.
    verbose
        Whether to print a line for each iteration.
    callback
        Called after each iteration.
    w
        The last iterate.
    """

    tol: float
    max_iter: int
    verbose: bool = False
    callback: Callback | None = None
    w: FloatArray = field(default_factory=lambda: np.zeros(0))
    iterations: list[Iteration] = field(default_factory=list)
    _begin: float = field(default_factory=time.perf_counter)

    def __call__(self, w: FloatArray, loss: float, gradient_norm: float) -> None:
        """Take note of an iterate.

        Raises
        ------
        Stopped
            If the fit has converged, was stopped by the callback or has used up its iterations.
        """
        self.w = w.copy()
        seconds = time.perf_counter() - self._begin
        iteration = Iteration(len(self.iterations), float(loss), float(gradient_norm), seconds)
        self.iterations.append(iteration)
        if self.verbose:
            print(f"{iteration.number:5d}  loss {loss:.12g}  gradient norm {gradient_norm:.3g}  {seconds:.2f} s")
        if not np.isfinite(loss):
            raise Stopped("the loss is no longer finite", converged=False)
        if gradient_norm <= self.tol:
            raise Stopped(f"gradient norm {gradient_norm:.3g} <= tol", converged=True)
        if self.callback is not None and self.callback(iteration):
            raise Stopped("stopped by the callback", converged=False)
        if iteration.number >= self.max_iter:
            raise Stopped(f"max_iter={self.max_iter} reached at gradient norm {gradient_norm:.3g}", converged=False)

    def record(self, stopped: Stopped) -> Convergence:
        """Return the record of a fit that has ended."""
        return Convergence(tuple(self.iterations), stopped.converged, str(stopped))
