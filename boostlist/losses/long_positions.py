r"""Smoothed NDCG and reciprocal rank of long lists, by `difference_sums`; the formulas are those of `smoothed`.

With E(u) = 2 log(2 cosh(u/2)), sigma(-u) = 1/2 - E'(u)/2 and sigma'(u) = E''(u)/2. Positions and gradients are sums
over all documents as they stand,

    h_i = (n + 1)/2 - 1/2 sum_j E'(x_i - x_j),   gradient_k = 1/tau [ sum_j w_kj c_j - c_k sum_j w_kj ]

In the diagonal, sum_j w_kj |c_j - c_k| is not: it wants documents with a larger c apart from those with a smaller one.
Up to some hundred documents of positive gain have a double loop. More are put into groups of c, four to the octave, as
if these were grades: exact between groups, and within a group the difference is taken to be the largest that c_k can
have there. So D is a little larger than for short lists, and still majorizes H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.arrays import frozen
from boostlist.losses.difference_sums import CURVATURES, SLOPES, Profile, lay_out_lists, list_sums, profile
from boostlist.losses.graded_sums import graded_sums
from boostlist.losses.long_lists import Part, documents_without, side_by_side
from boostlist.losses.ratios import exponentials, ratios
from boostlist.losses.smoothed_loops import PositionTables, position_terms
from boostlist.losses.weights import Factors
from boostlist.parallel import compiled, vectorized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import FloatArray, IntArray
    from boostlist.losses.compiled import Outputs

# Groups of c: the first is for c = 0, the last for the largest; below 2^-31 of that, all are in one.
_GROUPS = 128
# Documents of positive gain up to which a double loop over them takes less time than sums over groups.
_FEW = 800


class LongPositions(NamedTuple):
    """Tables of the sums.

    Attributes
    ----------
    pair
        What one of n^2 pairs takes in the double loop, in ns, by the number of sums that replace it.
    bare
        Documents without a gain, by query.
    """

    pair: float
    profile: Profile
    bare: IntArray
    tables: PositionTables

    @classmethod
    def of(cls, pair: float, tables: PositionTables) -> LongPositions:
        """Count the documents without a gain of each query."""
        return cls(pair, profile(1.0), documents_without(tables.a, tables.levels), tables)


@vectorized
def _differences_row(r, c, ci, out):  # type: ignore[no-untyped-def]
    """Add w |c_i - c_j| to out_j, for the ratios r_j = e^{x_j - x_i}, and return the sum."""
    total = 0.0
    for j in range(r.size):
        inverse = 1 / (1 + r[j])
        difference = r[j] * inverse * inverse * abs(ci - c[j])
        out[j] += difference
        total += difference
    return total


@compiled
def _differences(rows, x, c, out):  # type: ignore[no-untyped-def]
    """Fill out with sum_j w_kj |c_j - c_k|."""
    E, ratio = np.empty(_FEW), np.empty(_FEW)
    for r in range(rows.shape[0]):
        own = slice(rows[r, 0], rows[r, 1])
        y, d, total = x[own], c[own], out[own]
        near = exponentials(y, E)
        for i in range(y.size):
            ratios(near, y, E, i, 0, i, ratio)
            total[i] = _differences_row(ratio[:i], d, d[i], total)


@compiled
def _group(rows, c, order, bounds):  # type: ignore[no-untyped-def]
    """Put the documents of each list in ascending order of their group of c.

    Return which groups each list has; bounds says where each of them begins.
    """
    group, place = np.empty(c.size, np.int64), np.empty(_GROUPS, np.int64)
    grades, used = np.empty_like(rows), 0
    for r in range(rows.shape[0]):
        begin, end = rows[r, 0], rows[r, 1]
        top = 0.0
        for i in range(begin, end):
            top = max(top, c[i])
        place[:] = 0
        for i in range(begin, end):
            octaves = np.log2(c[i] / top) if c[i] > 0 else -np.inf
            group[i] = 0 if c[i] == 0 else max(_GROUPS - 1 + int(np.floor(4 * octaves)), 1)
            place[group[i]] += 1
        grades[r, 0], at = used, begin
        for g in range(_GROUPS):
            if place[g]:
                bounds[used] = at
                used += 1
            at, place[g] = at + place[g], at
        grades[r, 1] = used
        for i in range(begin, end):
            order[place[group[i]]] = i
            place[group[i]] += 1
    bounds[used] = c.size
    return grades


@compiled
def _bound(order, bounds, groups, c, others, sums, out):  # type: ignore[no-untyped-def]
    """Fill out with the bound of `_grouped_differences`, from sums of w_kj and w_kj c_j over lower and higher ones."""
    for g in range(groups):
        low, high = np.inf, -np.inf
        for i in range(bounds[g], bounds[g + 1]):
            low, high = min(low, c[i]), max(high, c[i])
        for i in range(bounds[g], bounds[g + 1]):
            k = order[i]
            between = 0.5 * (c[i] * (sums[0, i, 0] - sums[1, i, 0]) - (sums[2, i, 0] - sums[3, i, 0]))
            within = others[k] - 0.5 * (sums[0, i, 0] + sums[1, i, 0])
            out[k] = max(between, 0.0) + max(within, 0.0) * max(c[i] - low, high - c[i])


def _grouped_differences(
    rows: IntArray, x: FloatArray, c: FloatArray, others: FloatArray, profile: Profile, out: FloatArray
) -> None:
    """Fill out with a bound on sum_j w_kj |c_j - c_k|, exact but for pairs within a group; others is sum_j w_kj."""
    order, bounds = np.empty(x.size, np.int64), np.empty(x.size + 1, np.int64)
    grades = _group(rows, c, order, bounds)
    y, sums, zero = x[order], np.zeros((4, x.size, 1)), np.zeros(grades[-1, 1])
    for turn, weight in enumerate((np.ones(x.size), c[order])):
        below, above = sums[2 * turn], sums[2 * turn + 1]
        graded_sums(grades, np.inf, y, weight, bounds, Factors(1.0, 1.0, zero, zero), profile, CURVATURES, below, above)
    _bound(order, bounds, zero.size, weight, others, sums, out)


@compiled
def _terms(lists, rows, gained, positions, sums, found, c, S, e, value):  # type: ignore[no-untyped-def]
    """Fill c, S = sum_j w_kj and e, and write the values."""
    for r in range(rows.shape[0]):
        if not found[r]:
            continue
        q, begin, end = lists.query[r], rows[r, 0], rows[r, 1]
        n = end - begin
        for i in range(gained[r, 0], end):
            # The sums hold each document with itself: E'(0) = 0, E''(0) = 1/2.
            c[i] = 0.5 * (n + 1 - sums[i, 0])
            S[i] = e[i] = 0.5 * (sums[i, 1] - 0.5)
        value[q] = 1 - positions.scale[q] * position_terms(q, positions, c[begin:end], e[begin:end])


def soft_positions(
    part: Part, f: FloatArray, need: int, out: Outputs, tables: LongPositions, done: NDArray[np.bool_]
) -> None:
    """Value, gradient and majorizer of smoothed NDCG and reciprocal rank."""
    lists, whole, n = part.lists, part.rows, part.size
    positions, profile = tables.tables, tables.profile
    x = part.in_order(f, frozen(np.full_like(lists.weight, 1 / positions.tau)))
    layout = lay_out_lists(whole, x, tables.pair, 2, profile)
    found = layout.boxes > 0
    done[lists.query] = found
    if not found.any():
        return
    # Documents without a gain come first; they have c = e = 0, and their positions do not matter.
    gained = whole.copy()
    gained[:, 0] += tables.bare[lists.query]

    def sums(w: FloatArray, targets: IntArray) -> FloatArray:
        """Return 2 sum_j w_kj w_j over documents j with a gain, k included, for which w_kk = 1/4."""
        total = np.zeros((n, 1))
        list_sums(layout, gained, w, targets, profile, CURVATURES, total)
        return total[:, 0]

    ahead = np.zeros((n, 2))
    list_sums(layout, whole, layout.one, gained, profile, SLOPES, ahead)
    c, S, e = np.zeros((3, n))
    _terms(lists, whole, gained, positions, ahead, found, c, S, e, out.value)
    among, bend = sums(layout.one, gained), sums(c, whole)
    pull = bend.copy()
    few = gained[:, 1] - gained[:, 0] <= _FEW
    for chosen in (found & few, found & ~few):
        if chosen.any():
            rows = side_by_side(*gained[chosen].T)
            top = np.arange(rows[-1, 1]) + np.repeat(gained[chosen, 0] - rows[:, 0], rows[:, 1] - rows[:, 0])
            x_top, c_top, others, apart = x[top], c[top], 0.5 * (among[top] - 0.5), np.empty(top.size)
            if few[chosen].any():
                _differences(rows, x_top, c_top, apart)
            else:
                _grouped_differences(rows, x_top, c_top, others, profile, apart)
            pull[top] -= c_top * (0.5 + 2 * S[top])
            # A bare document differs by c_j from the others, these by c_k from it, among themselves by c_j - c_k.
            bend[top] = 2 * (apart + np.maximum(S[top] - others, 0.0) * c_top)
    if positions.cut < np.inf:
        bend += sums(e, whole) + e * (2 * S - 0.5)
    factor = lists.weight * positions.scale / positions.tau
    part.write(pull, 0.5 * factor, done, out.gradient)
    part.write(bend, factor / positions.tau, done, out.diag)
