"""Put the documents of one query in order of score, as far as a metric looks.

Loops here know a single order: score descending, equal scores by row. The other rules for ties are made from it: for
``"worst"`` and ``"best"`` the rows are put in order of grade when a metric is bound (`tie_order`); for ``"average"`` a
run of equal scores is taken as a whole (`tie`), and each of its ranks holds the mean gain of the run. That is the
expected gain of the rank over all orders of the run (McSherry and Najork, "Computing information retrieval performance
measures efficiently in the presence of tied scores", ECIR 2008).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.arrays import frozen
from boostlist.checks import check_choice, check_k
from boostlist.metrics.base import BoundMetric, Metric
from boostlist.ordering import rank, room
from boostlist.parallel import compiled, inner, over_queries
from boostlist.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ties = Literal["stable", "worst", "best", "average"]
"""Order of documents with equal scores: by row, lowest grade first, highest grade first, or the mean of all orders."""


@dataclass(frozen=True)
class RankingMetric(Metric):
    """Base of the metrics that look at the first k ranks of a list ordered by score.

    Parameters
    ----------
    k
        Number of ranks that count; None for all.
    ties
        Order of equal scores: ``"stable"`` by row, ``"worst"``, ``"best"``, or ``"average"`` over all orders.
    """

    k: int | None = None
    _: KW_ONLY
    ties: Ties = "stable"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_k(self.k)
        check_choice("ties", self.ties, ("stable", "worst", "best", "average"))

    @property
    def average(self) -> bool:
        """Whether values are expectations over the orders of equal scores."""
        return self.ties == "average"

    def ranks(self, queries: Queries) -> int:
        """Return the number of ranks to look at: k, or less where no list is that long."""
        longest = int(queries.sizes.max(initial=0))
        return longest if self.k is None else min(self.k, longest)

    def bind_sum(
        self,
        queries: Queries,
        gain: FloatArray,
        weight: FloatArray,
        *,
        divisor: FloatArray,
        empty: NDArray[np.bool_],
        offset: IntArray | None = None,
    ) -> BoundMetric:
        """Bind the sum of gain x weight over the first ranks: the form of DCG, precision and all their kin.

        Parameters
        ----------
        queries
            What to bind to.
        gain
            Gain of each document.
        weight
            Weight of each rank, one set for all queries or, with an offset, one for each.
        divisor, empty
            As in `BoundMetric`.
        offset
            Where in ``weight`` the ranks of each query begin.
        """
        if offset is None:
            offset = np.zeros(queries.n_queries, np.int64)
        order = tie_order(queries, self.ties)
        ranked = gain if order is None else gain[order]
        args = (frozen(ranked), self.ranks(queries), self.average, frozen(weight), frozen(offset))
        return BoundMetric(self, queries, weighted_gains, args, divisor, empty, order)


def without_gain(queries: Queries, gain: FloatArray) -> NDArray[np.bool_]:
    """Return whether all documents of a query have gain 0, for each query."""
    return np.add.reduceat(gain > 0, queries.start[:-1]) == 0 if queries.n_queries else np.zeros(0, np.bool_)


def ideal_sum(queries: Queries, gain: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the largest sum of gain x weight that any order of each query reaches, for weights that do not rise."""
    offset, ideal = np.zeros(queries.n_queries, np.int64), np.empty(queries.n_queries)
    args = (frozen(gain), frozen(gain), len(weight), False, frozen(weight), frozen(offset))
    over_queries(weighted_gains, queries.start, queries.start, *args, ideal)
    return ideal


def tie_order(queries: Queries, ties: Ties) -> IntArray | None:
    """Return the rows in the order in which equal scores are to be ranked, or None where they stand in it already."""
    if ties in ("stable", "average"):
        return None
    levels = queries.levels if ties == "worst" else queries.levels.descending()
    return np.repeat(queries.start[:-1], queries.sizes) + levels.order


@inner
def tie(f, gain, order, m, r):  # type: ignore[no-untyped-def]
    """Return size and total gain of the run of equal scores that begins at rank r of the m ranks in ``order``."""
    s = f[order[r]]
    size, total = 0, 0.0
    while r + size < m and f[order[r + size]] == s:
        total += gain[order[r + size]]
        size += 1
    if r + size == m and m < len(f):
        # The run reaches the last rank and may go on behind it.
        size, total = 0, 0.0
        for i in range(len(f)):
            if f[i] == s:
                total += gain[i]
                size += 1
    return size, total


@compiled
def ranked_gains(f, gain, k, average, room):  # type: ignore[no-untyped-def]
    """Return the (expected) gain of each of the first k ranks, in ``room.gain``."""
    order, ranked = room.order, room.gain
    m = rank(f, k, room, True)
    r = 0
    while r < m:
        size, total = tie(f, gain, order, m, r) if average else (1, gain[order[r]])
        for i in range(r, min(r + size, m)):
            ranked[i] = total / size
        r += size
    return ranked[:m]


@compiled
def weighted_gains(lo, hi, start, f, gain, k, average, weight, offset, out):  # type: ignore[no-untyped-def]
    """Sum (expected) gain x weight over the first k ranks of each query, whose weights begin at its offset."""
    space = room(range(lo, hi), start)
    for q in range(lo, hi):
        a, b = start[q], start[q + 1]
        ranked = ranked_gains(f[a:b], gain[a:b], k, average, space)
        total = 0.0
        for r in range(len(ranked)):
            total += ranked[r] * weight[offset[q] + r]
        out[q] = total
