"""What the solvers minimise: F(w) = 1/2 |w|^2 + c loss(Phi w)."""

from __future__ import annotations

from dataclasses import dataclass

from boostlist._typing import FloatArray
from boostlist.losses.base import BoundLoss
from boostlist.solvers.design import Design


@dataclass(frozen=True, eq=False)
class Problem:
    """A design, a loss bound to its rows, and the weight of the loss against the penalty.

    Attributes
    ----------
    design
        The features Phi.
    bound
        The loss of the scores.
    c
        Factor on the loss, > 0.
    norm
        |w| that ``diagonal-by-query`` keeps; without effect on other solvers.
    """

    design: Design
    bound: BoundLoss
    c: float
    norm: float = 1.0

    def value_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return F and its gradient w + c Phi'(gradient of the loss)."""
        value, slope = self.bound.value_gradient(self.design.scores(w))
        return 0.5 * float(w @ w) + self.c * value, w + self.c * self.design.back(slope)
