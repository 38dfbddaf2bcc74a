"""What happened during a fit: why it ended, and loss, gradient norm and time of every iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_MORE = "Raise max_iter or tol, lower C, or scale the features"
_NO_MORE = "Raise tol, lower C, or scale the features"


class Reason(Enum):
    """Why a fit ended.

    Attributes
    ----------
    converged
        Whether nothing was left to gain.
    text
        The reason in words, with names of what `Convergence.message` fills in.
    remedy
        What to do about it, where something can be done.
    """

    SMALL_GRADIENT = True, "gradient norm {gradient_norm:.3g} <= tol"
    SMALL_CHANGE = True, "the last step changed less than tol"
    ROUNDING = True, "gradient norm {gradient_norm:.3g} is as small as rounding allows"
    KINK = True, "the loss falls no further, at most {gap:.3g} above its minimum"
    NO_STAGE = True, "no feature lowers the loss any further"
    ALL_STAGES = True, "all {number} stages are done"
    ITERATIONS = False, "max_iter={number} reached at gradient norm {gradient_norm:.3g}", _MORE
    NO_STEP = False, "no step lowers the loss at gradient norm {gradient_norm:.3g}", _NO_MORE
    NOT_FINITE = False, "the loss, or the norm of its gradient, is no longer finite", _NO_MORE
    NO_WEIGHTS = False, "all weights are 0", _NO_MORE
    CALLBACK = False, "stopped by the callback"
    INTERRUPTED = False, "interrupted"

    def __init__(self, converged: bool, text: str, remedy: str = "") -> None:
        self.converged = converged
        self.text = text
        self.remedy = remedy


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


Callback = Callable[[Iteration], object]
"""Called after each iteration; a true result ends the fit."""


@dataclass(frozen=True)
class Convergence:
    """The course of a fit.

    Attributes
    ----------
    iterations
        The start and every iteration.
    reason
        Why it ended.
    """

    iterations: Sequence[Iteration]
    reason: Reason

    def __getstate__(self) -> dict[str, Any]:
        # By name: what stores estimators without pickle, as skops does, cannot make a member of an enumeration.
        return {"iterations": self.iterations, "reason": self.reason.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, reason=Reason[state["reason"]])

    @property
    def converged(self) -> bool:
        """Whether the fit ended because nothing was left to gain."""
        return self.reason.converged

    @property
    def message(self) -> str:
        """Why it ended, in words."""
        last = self.iterations[-1]
        return self.reason.text.format(number=last.number, gradient_norm=last.gradient_norm, gap=self.gap)

    @property
    def gap(self) -> float:
        """Largest possible distance of the last loss to the minimum, where the function is 1/2 |w|^2 + a convex one.

        Such a function is nowhere more than 1/2 |gradient|^2 above its minimum, kinks or not; so the last value is no
        more than that above, plus what has been lost or gained since then.
        """
        last = self.iterations[-1].loss
        return min(each.gradient_norm**2 / 2 + last - each.loss for each in self.iterations)

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return self.iterations[-1].number

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
