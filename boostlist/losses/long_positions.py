r"""Smoothed NDCG and reciprocal rank of long lists, by `difference_sums`; the formulas are those of `smoothed`.

With E(u) = 2 log(2 cosh(u/2)), sigma(-u) = 1/2 - E'(u)/2 and sigma'(u) = E''(u)/2. Positions and gradients are sums
over all documents as they stand,

    h_i = (n + 1)/2 - 1/2 sum_j E'(x_i - x_j),   gradient_k = 1/tau [ sum_j w_kj c_j - c_k sum_j w_kj ]

In the diagonal, sum_j w_kj |c_j - c_k| is not: it wants documents with a larger c apart from those with a smaller one.
Up to a thousand or so documents of positive gain have a double loop, more where scores spread far. Others are put into
groups of c, four to the octave where c is large, as if these were grades: exact between groups, and within a group the
difference is taken to be the largest that c_k can have there. So D is a little larger than for short lists, and still
majorizes H.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boostlist.losses.difference_sums import (
    CURVATURES,
    SLOPES,
    Layout,
    Profile,
    add_sums,
    double_loop_time,
    lay_out_lists,
    list_sums,
    moments,
    profile,
    sum_time,
    translation_time,
)
from boostlist.losses.long_lists import Part, counting_pairs, side_by_side
from boostlist.losses.ratios import exponentials, ratios
from boostlist.losses.smoothed_loops import PositionTables, position_terms
from boostlist.parallel import REORDERED, compiled, inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import FloatArray, IntArray
    from boostlist.losses.compiled import Outputs
    from boostlist.queries import Queries

# Groups of c: the first is for c = 0, the last for the largest; and where they lie, in octaves below that.
_GROUPS = 64
_OCTAVES, _BELOW = (-25.0, -18.0, -10.0, 0.0), (-63.0, -56.0, -40.0, 0.0)
# Times in ns, about: of a document, beyond one sum and by groups, and of one of n^2 pairs in `_differences`.
_MORE, _GROUPED, _PAIR = 11, 140, 0.135


class LongPositions(NamedTuple):
    """Tables of the sums.

    Attributes
    ----------
    a
        Gain of each level.
    pair
        As `LongTables` has it.
    """

    profile: Profile
    a: FloatArray
    tables: PositionTables
    pair: FloatArray

    @classmethod
    def of(cls, pair: float, tables: PositionTables, queries: Queries) -> LongPositions:
        """Make the tables; `pair` is what a pair takes where all count."""
        levels = queries.levels
        return cls(profile(1.0), tables.a[levels.document[:-1]], tables, pair * counting_pairs(tables.bare, levels))

    @property
    def density(self) -> FloatArray:
        """As `LongTables` has it."""
        return np.full_like(self.pair, 1 / (self.tables.tau * self.profile.width))

    def time(self, query: IntArray, n: Any, boxes: Any) -> Any:
        """Return what the sums take, as `LongTables` has it."""
        return (
            sum_time(self.profile, 5, n, boxes)
            + _MORE * n
            + np.minimum(*self.times(n - self.tables.bare[query], boxes))
        )

    def times(self, gained: IntArray, boxes: Any) -> tuple[Any, Any]:
        """Return what sum_j w_kj |c_j - c_k| takes over some documents of positive gain, by pairs and by groups."""
        # c falls with the score: of documents of one gain, few groups share a box.
        translations = translation_time(self.profile, 4, _GROUPS + 4 * boxes, boxes)
        return double_loop_time(_PAIR, gained), _GROUPED * gained + translations


@inlined
def _differences_row(r, i, c, out):  # type: ignore[no-untyped-def]
    """Add w |c_i - c_j| to out_j, j < i, for the ratios r_j = e^{x_j - x_i}, and put the sum into out_i."""
    total, ci = 0.0, c[i]
    for j in range(np.uint64(i)):
        inverse = 1 / (1 + r[j])
        difference = r[j] * inverse * inverse * abs(ci - c[j])
        out[j] += difference
        total += difference
    out[i] = total


@partial(compiled, liberties=REORDERED)
def _differences(x, c, E, ratio, out):  # type: ignore[no-untyped-def]
    """Fill out with sum_j w_kj |c_j - c_k| over the documents of a list; E and ratio are room for it."""
    near = exponentials(x, x.size, E)
    for i in range(x.size):
        ratios(near, x, E, i, 0, i, ratio)
        _differences_row(ratio, i, c, out)


def _grouped_differences(layout: Layout, c: FloatArray, others: FloatArray, profile: Profile) -> FloatArray:
    """Return a bound on sum_j w_kj |c_j - c_k|, given c_k and sum_j w_kj, for the documents k and j of each list.

    It is exact but for pairs within a group.
    """
    lists, sizes = len(layout.rows), layout.rows[:, 1] - layout.rows[:, 0]
    largest = np.maximum(np.maximum.reduceat(c, layout.rows[:, 0]), np.finfo(np.float64).tiny)
    with np.errstate(divide="ignore"):
        octaves = np.log2(c / np.repeat(largest, sizes))
    group = np.maximum(np.floor(np.interp(octaves, _OCTAVES, _BELOW)) + _GROUPS - 1, c > 0)
    key = (np.repeat(_GROUPS * np.arange(lists), sizes) + group).astype(np.int16)
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=_GROUPS * lists)
    ends = np.cumsum(counts)
    ranges = np.stack((ends - counts, ends), axis=1).reshape(lists, _GROUPS, 2)
    c, grouped = c[order], layout.some(layout.rows, order)

    def sums(sets: FloatArray, seen: NDArray[np.bool_]) -> FloatArray:
        total = np.zeros((c.size, 1))
        add_sums(grouped, sets, seen, ranges, profile, CURVATURES, total)
        return 0.5 * total[:, 0]

    def less_higher(own: FloatArray) -> FloatArray:
        """Return the moments of all lower groups less those of all higher ones."""
        passed = np.cumsum(own, axis=0)
        return np.asarray(2 * passed - own - passed[-1])

    whole, seen = moments(grouped, grouped.one, ranges, profile)
    charged, _ = moments(grouped, c, ranges, profile)
    between = c * sums(less_higher(whole), seen) - sums(less_higher(charged), seen)
    within = others[order] - sums(whole.sum(axis=0) - whole, seen)
    filled = counts > 0
    low, high = (
        np.repeat(extreme.reduceat(c, (ends - counts)[filled]), counts[filled]) for extreme in (np.minimum, np.maximum)
    )
    bound = np.empty(c.size)
    bound[order] = np.maximum(between, 0.0) + np.maximum(within, 0.0) * np.maximum(c - low, high - c)
    return bound


def soft_positions(
    part: Part, f: FloatArray, need: int, out: Outputs, tables: LongPositions, done: NDArray[np.bool_]
) -> None:
    """Value, gradient and majorizer of smoothed NDCG and reciprocal rank."""
    lists, whole = part.lists, part.rows
    positions, profile = tables.tables, tables.profile
    x = part.in_order(f, np.full_like(lists.weight, 1 / positions.tau))
    layout = lay_out_lists(whole, x, profile, tables.pair[lists.query], partial(tables.time, lists.query))
    found = layout.found
    done[lists.query] = found
    if not found.any():
        return
    # Documents without a gain come first; they have c = e = 0, and their positions do not matter.
    first = whole[:, 0] + positions.bare[lists.query]
    rows = side_by_side(first, whole[:, 1])
    number = rows[:, 1] - rows[:, 0]
    top = np.arange(rows[-1, 1]) + np.repeat(first - rows[:, 0], number)
    gained = layout.some(rows, top)

    def sums(w: FloatArray, targets: Layout) -> FloatArray:
        """Return 2 sum_j w_kj w_j over documents j with a gain, k included, for which w_kk = 1/4."""
        total = np.zeros((targets.box.size, 1))
        list_sums(gained, w, targets, profile, CURVATURES, total)
        return total[:, 0]

    # The sums hold each document with itself: E'(0) = 0, E''(0) = 1/2.
    ahead = np.zeros((top.size, 2))
    list_sums(layout, layout.one, gained, profile, SLOPES, ahead)
    h, S = 0.5 * (np.repeat(whole[:, 1] - whole[:, 0] + 1, number) - ahead[:, 0]), 0.5 * (ahead[:, 1] - 0.5)
    a, c, e, b = part.by_document(tables.a)[top], h, S.copy(), np.empty_like(h)
    position_terms(0, a.size, 0, a, positions.reciprocal, positions.gated, positions.cut, 4 / positions.tau, c, e, b)
    out.value[lists.query] = 1 - positions.scale[lists.query] * np.add.reduceat(b, rows[:, 0])
    others, pull = 0.5 * (sums(gained.one, gained) - 0.5), sums(c, layout)
    pull[top] -= c * (0.5 + 2 * S)
    factor = lists.weight * positions.scale / positions.tau
    part.write(pull, 0.5 * factor, done, out.gradient)
    apart, few = np.zeros_like(c), np.less_equal(*tables.times(number, layout.boxes))
    if (found & few).any():
        gained_x, work = x[top], np.empty((2, number[few].max()))
        for lo, hi in rows[found & few]:
            _differences(gained_x[lo:hi], c[lo:hi], *work, apart[lo:hi])
    many = found & ~few
    if many.any():
        chosen = np.repeat(many, number)
        apart[chosen] = _grouped_differences(gained.lists(many), c[chosen], others[chosen], profile)
    # A bare document differs by c_j from the others, these by c_k from it, among themselves by c_j - c_k.
    bend = pull
    bend[top] = 2 * (apart + np.maximum(S - others, 0.0) * c)
    if positions.gated:
        bend += sums(e, layout)
        bend[top] += e * (2 * S - 0.5)
    part.write(bend, factor / positions.tau, done, out.diag)
