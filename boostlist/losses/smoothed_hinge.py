r"""The hinge (1 - d)_+ with its kink rounded off, for solvers that need curvature.

Over a width h > 0 below the margin the slope rises from -1 to 0 evenly (Chapelle, *Training a support vector machine in
the primal* (2007), has the same for classification):

    phi_h(d) = [ (1 - d)_+^2 - (1 - h - d)_+^2 ] / (2 h)

which is 1 - d - h/2 where d <= 1 - h, (1 - d)^2 / (2 h) in between and 0 from 1 on: two squared hinges, whose sums over
pairs cost O(n log n) (`pairwise_hinge`). Since phi_h <= (1 - d)_+, its minimum is below that of the hinge. The slopes
-alpha of phi_h are a point of the dual problem of the hinge, and what this is short of the primal value is

    kink = sum over pairs of V (1 - d)_+ - V alpha (1 - d)  >= 0

to which only pairs within the width contribute, at most h/4 each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from boostlist.losses.base import BoundLoss, Loss, Traits
from boostlist.losses.pairwise import PairwiseHinge, UnitMarginHinge

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist._typing import FloatArray
    from boostlist.queries import Queries


@dataclass(frozen=True, kw_only=True)
class SmoothedHinge(Loss):
    """A pairwise hinge, rounded off over a width.

    Parameters
    ----------
    hinge
        The hinge, with its weights of pairs.
    width
        h, above 0 and below 1.
    """

    hinge: PairwiseHinge
    width: float

    family = "pairwise"
    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, cost="n log n")

    def bind(self, queries: Queries) -> BoundSmoothedHinge:
        """Bind the two squared hinges."""
        return BoundSmoothedHinge(self, queries)


class BoundSmoothedHinge(BoundLoss):
    """The difference of two bound squared hinges."""

    loss: SmoothedHinge

    def __init__(self, loss: SmoothedHinge, queries: Queries) -> None:
        super().__init__(loss, queries)
        V = loss.hinge
        outer = UnitMarginHinge(weights=V.weights, normalize=V.normalize, gain=V.gain, grades=V.grades)
        self._outer = outer.bind(queries)
        self._inner = replace(outer, margin=1 - loss.width).bind(queries)
        self._hinge = V.bind(queries)

    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:  # noqa: D102
        parts = zip(self._outer.evaluate(f, need), self._inner.evaluate(f, need), strict=True)
        value, gradient, diag = ((a - b) / (2 * self.loss.width) for a, b in parts)
        return value, gradient, np.maximum(diag, 0.0)

    def hessp(self, f: ArrayLike) -> Callable[[ArrayLike], FloatArray]:  # noqa: D102
        outer, inner = self._outer.hessp(f), self._inner.hessp(f)
        return lambda v: (outer(v) - inner(v)) / (2 * self.loss.width)

    def kink(self, f: ArrayLike) -> float:
        """Return what the dual point is short of the hinge's value."""
        f, h = self.queries.scores(f), self.loss.width
        squares = self._outer.value(f) - self._inner.value(f)
        # (1 - h - d)_+ is 1 - h times a hinge of scaled scores.
        inner = (1 - h) * self._hinge.value(f / (1 - h))
        return max(self._hinge.value(f) + inner - squares / h, 0.0)
