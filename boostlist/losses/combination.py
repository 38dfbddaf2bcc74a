"""Weighted sums of losses: ``CsListMLE() + 0.3 * Pointwise()`` is a loss like any other.

Value, gradient, diagonal and Hessian-vector product add. The sum is scaled as a whole when it serves as an objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from boostlist.losses.base import DIAG, GRADIENT, VALUE, BoundLoss, Curvature, Loss, Traits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist._typing import FloatArray
    from boostlist.queries import Queries

_COSTS = ("n", "n G", "n log n", "n k", "n^2")


@dataclass(frozen=True, repr=False)
class Sum(Loss):
    """A weighted sum of losses; write it with ``+`` and ``*``.

    Parameters
    ----------
    terms
        Pairs of a factor > 0 and a loss.
    """

    terms: tuple[tuple[float, Loss], ...]

    def __post_init__(self) -> None:
        for factor, loss in self.terms:
            if not (np.isfinite(factor) and factor > 0):
                raise ValueError(f"the factor of {loss!r} is {factor}; it must be finite and > 0")

    @classmethod
    def of(cls, *terms: tuple[float, Loss]) -> Sum:
        """Make a sum, with the terms of sums among the terms spread out."""
        flat: list[tuple[float, Loss]] = []
        for factor, loss in terms:
            inner = loss.terms if isinstance(loss, Sum) else ((1.0, loss),)
            flat += [(float(factor) * f, term) for f, term in inner]
        return cls(terms=tuple(flat))

    def __repr__(self) -> str:
        return " + ".join(f"{loss!r}" if factor == 1 else f"{factor:g} * {loss!r}" for factor, loss in self.terms)

    @property
    def traits(self) -> Traits:
        """What all terms promise; an exact diagonal and a majorizer add up to neither."""
        traits = [loss.traits for _, loss in self.terms]
        kinds = {t.diag for t in traits}
        return Traits(
            diag=kinds.pop() if len(kinds) == 1 else "heuristic",
            convex=all(t.convex for t in traits),
            shift_invariant=all(t.shift_invariant for t in traits),
            hessp=all(t.hessp for t in traits),
            conservative=all(t.conservative for t in traits),
            sampled=any(t.sampled for t in traits),
            step=min(t.step for t in traits),
            cost=max((t.cost for t in traits), key=lambda cost: _COSTS.index(cost) if cost in _COSTS else len(_COSTS)),
        )

    def with_grades(self, grades: tuple[float, ...]) -> Sum:
        """Return the sum with this label set in every term that has one and was given none."""
        return Sum(terms=tuple((factor, loss.with_grades(grades)) for factor, loss in self.terms))

    def bind(self, queries: Queries) -> BoundLoss:
        """Bind every term."""
        return BoundSum.of(*((factor, term.bind(queries)) for factor, term in self.terms))


class BoundSum(BoundLoss):
    """A sum of losses that are bound to the same queries; make one with `BoundSum.of`."""

    def __init__(self, terms: tuple[tuple[float, BoundLoss], ...]) -> None:
        super().__init__(Sum(terms=tuple((factor, term.loss) for factor, term in terms)), terms[0][1].queries)
        self._terms = terms

    @classmethod
    def of(cls, *terms: tuple[float, BoundLoss]) -> BoundSum:
        """Make a sum, with the terms of sums among the terms spread out."""
        return cls(tuple((float(factor) * f, inner) for factor, term in terms for f, inner in term.terms))

    @property
    def terms(self) -> tuple[tuple[float, BoundLoss], ...]:
        """Factor and bound loss of each term."""
        return self._terms

    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:  # noqa: D102
        total = tuple(np.zeros(n) for n in (self.queries.n_queries, f.size, f.size))
        for factor, term in self._terms:
            for asked, out, part in zip((VALUE, GRADIENT, DIAG), total, term.evaluate(f, need), strict=True):
                if need & asked:
                    out += factor * part  # not in place: `part` may be the term's own
        return total[0], total[1], total[2]

    def hessp(self, f: ArrayLike) -> Callable[[ArrayLike], FloatArray]:  # noqa: D102
        products = [(factor, term.hessp(f)) for factor, term in self._terms]
        return lambda v: reduce(np.add, (factor * product(v) for factor, product in products))

    def curvature(self, f: ArrayLike) -> Curvature | None:  # noqa: D102
        parts = [(factor, term.curvature(f)) for factor, term in self._terms]
        known = [(factor, part) for factor, part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return lambda lo, hi, X: reduce(np.add, (factor * part(lo, hi, X) for factor, part in known))
