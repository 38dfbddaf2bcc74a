r"""Smoothed NDCG and reciprocal rank of long lists, by `difference_sums`; the formulas are those of `smoothed`.

With E(u) = 2 log(2 cosh(u/2)), sigma(-u) = 1/2 - E'(u)/2 and sigma'(u) = E''(u)/2. Positions and gradients are sums
over all documents as they stand,

    h_i = (n + 1)/2 - 1/2 sum_j E'(x_i - x_j),   gradient_k = 1/tau [ sum_j w_kj c_j - c_k sum_j w_kj ]

In the diagonal, sum_j w_kj |c_j - c_k| is not: it wants documents with a larger c apart from those with a smaller one.
Documents of positive gain are put into groups of c, four to the octave, as if these were grades: exact between groups,
and within a group the difference is taken to be the largest that c_k can have there. So D is a little larger than for
short lists, and still majorizes H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.difference_sums import CURVATURES, SLOPES, lay_out, row_sums, sum_time
from boostlist.losses.graded_sums import graded_sums
from boostlist.losses.long_lists import in_order, last_zero
from boostlist.losses.shared_loops import gather, scatter
from boostlist.losses.smoothed_loops import position_terms
from boostlist.losses.weights import Factors
from boostlist.parallel import compiled

if TYPE_CHECKING:
    from boostlist.losses.difference_sums import Profile
    from boostlist.losses.smoothed_loops import PositionTables

# Groups of c: the first is for c = 0, the last for the largest; below 2^-31 of that, all are in one.
_GROUPS = 128


class LongPositions(NamedTuple):
    """What one of n^2 pairs takes in the double loop, in ns, by the number of sums that replace it; and the tables."""

    pair: float
    profile: Profile
    tables: PositionTables


@compiled
def _group(c):  # type: ignore[no-untyped-def]
    """Return the documents in ascending order of their group of c, and where each group that occurs begins."""
    top = np.max(c)
    group, count = np.empty(c.size, np.int64), np.zeros(_GROUPS + 1, np.int64)
    for i in range(c.size):
        octaves = np.log2(c[i] / top) if c[i] > 0 else -np.inf
        group[i] = 0 if c[i] == 0 else max(_GROUPS - 1 + int(np.floor(4 * octaves)), 1)
        count[group[i] + 1] += 1
    place = np.cumsum(count)
    bounds = place[np.append(count[1:] > 0, True)]
    order = np.empty(c.size, np.int64)
    for i in range(c.size):
        order[place[group[i]]] = i
        place[group[i]] += 1
    return order, bounds


@compiled
def _bound(order, bounds, c, others, sums, out):  # type: ignore[no-untyped-def]
    """Fill out with what `_differences` promises, from sums of w_kj and of w_kj c_j over lower and higher groups."""
    for g in range(bounds.size - 1):
        own = c[bounds[g] : bounds[g + 1]]
        low, high = np.min(own), np.max(own)
        for i in range(bounds[g], bounds[g + 1]):
            k = order[i]
            between = 0.5 * (c[i] * (sums[0, i] - sums[1, i]) - (sums[2, i] - sums[3, i]))
            within = others[k] - 0.5 * (sums[0, i] + sums[1, i])
            out[k] = max(between, 0.0) + max(within, 0.0) * max(c[i] - low, high - c[i])


@compiled
def _differences(x, c, others, profile, out):  # type: ignore[no-untyped-def]
    """Fill out with a bound on sum_j w_kj |c_j - c_k|, exact but for pairs within a group; others is sum_j w_kj."""
    n = x.size
    order, bounds = _group(c)
    y, weight, sums = np.empty(n), np.ones((2, n)), np.zeros((4, n, 1))
    gather(x, order, y)
    gather(c, order, weight[1])
    zero = np.zeros(bounds.size - 1)
    V = Factors(1.0, 1.0, zero, zero)
    for turn in range(2):
        below, above = sums[2 * turn], sums[2 * turn + 1]
        graded_sums(np.inf, y, weight[turn], bounds, V, profile, CURVATURES, CURVATURES, below, above)
    _bound(order, bounds, weight[1], others, sums[:, :, 0], out)


@compiled
def _positions(sums, c, S, e):  # type: ignore[no-untyped-def]
    """Fill c with h, and S and e with sum_j w_kj. The sums hold each document with itself: E'(0) = 0, E''(0) = 1/2."""
    n, bare = c.size, c.size - sums.shape[0]
    for i in range(bare, n):
        c[i] = 0.5 * (n + 1 - sums[i - bare, 0])
        S[i] = e[i] = 0.5 * (sums[i - bare, 1] - 0.5)


@compiled
def _around(sums, w, S, sign, around, out):  # type: ignore[no-untyped-def]
    """Fill around_k = sum_j w_kj w_j and out_k = around_k +- w_k sum_j w_kj."""
    for i in range(w.size):
        around[i] = 0.5 * (sums[i, 0] - 0.5 * w[i])
        out[i] = around[i] + sign * w[i] * S[i]


@compiled
def _bare_pairs(c, S, among, apart):  # type: ignore[no-untyped-def]
    """Add to apart what documents of positive gain differ by from bare ones."""
    for i in range(c.size):
        apart[i] += max(S[i] - among[i], 0.0) * c[i]


@compiled
def soft_positions(lists, f, need, out, tables, done):  # type: ignore[no-untyped-def]
    """Value, gradient and majorizer of smoothed NDCG and reciprocal rank."""
    positions, profile = tables.tables, tables.profile
    tau, levels = positions.tau, positions.levels
    for q in lists.query:
        x, order, bounds = in_order(q, lists, f, 1 / tau, levels)
        n = x.size
        box, t = np.empty(n, np.int64), np.empty(n)
        number = lay_out(x, profile.half, box, t)
        if tables.pair * n * n < sum_time(n, number.size, profile.reach, 2, 1):
            continue
        # Documents without a gain come first; they have c = e = 0, and their positions do not matter.
        gained = slice(last_zero(positions.a[levels.start[q] : levels.start[q + 1]], bounds), n)
        layout, whole = (box, t, number), slice(0, n)
        sums, single, one, among = np.empty((n, 2)), np.empty((n, 1)), np.ones(n), np.empty(n)
        c, e, S, bend = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
        apart, pull = np.empty(n), np.empty(n)
        row_sums(layout, whole, one, gained, profile, SLOPES, CURVATURES, sums)
        _positions(sums[gained], c, S, e)
        out.value[q] = 1 - positions.scale[q] * position_terms(q, positions, c, e)
        if positions.cut < np.inf:
            row_sums(layout, gained, e, whole, profile, CURVATURES, CURVATURES, single)
            _around(single, e, S, 1.0, among, bend)
        row_sums(layout, gained, c, whole, profile, CURVATURES, CURVATURES, single)
        _around(single, c, S, -1.0, apart, pull)
        # A bare document differs by c_j from the others, these by c_k from it, and among themselves by c_j - c_k.
        row_sums(layout, gained, one, gained, profile, CURVATURES, CURVATURES, single)
        _around(single[gained], one[gained], S[gained], 0.0, among[gained], among[gained])
        _differences(x[gained], c[gained], among[gained], profile, apart[gained])
        _bare_pairs(c[gained], S[gained], among[gained], apart[gained])
        bend += apart
        factor = lists.weight[q] * positions.scale[q] / tau
        rows = slice(lists.start[q], lists.start[q + 1])
        scatter(pull, factor, order, out.gradient[rows])
        scatter(bend, 2 * factor / tau, order, out.diag[rows])
        done[q] = True
