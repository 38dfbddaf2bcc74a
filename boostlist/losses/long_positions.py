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

from boostlist.losses.difference_sums import CURVATURES, SLOPES, GradedSums, graded_sums, lay_out, pays, row_sums
from boostlist.losses.long_lists import in_order
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
def _differences(x, c, others, profile, out):  # type: ignore[no-untyped-def]
    """Fill out with a bound on sum_j w_kj |c_j - c_k|, exact but for pairs within a group; others is sum_j w_kj."""
    n = x.size
    order, bounds = _group(c)
    groups = bounds.size - 1
    y, weight, sums = np.empty(n), np.ones((2, n)), np.empty((4, 1, n))
    for i in range(n):
        y[i] = x[order[i]]
        weight[1, i] = c[order[i]]
    V = Factors(1.0, 1.0, np.zeros(groups), np.zeros(groups))
    for turn in range(2):
        totals = np.empty((2, groups))
        pair = GradedSums(sums[2 * turn], sums[2 * turn + 1], totals[0], totals[1])
        graded_sums(np.inf, y, weight[turn], bounds, V, profile, CURVATURES, CURVATURES, pair)
    below, above, below_c, above_c = sums[0, 0], sums[1, 0], sums[2, 0], sums[3, 0]
    for g in range(groups):
        own = weight[1, bounds[g] : bounds[g + 1]]
        low, high = np.min(own), np.max(own)
        for i in range(bounds[g], bounds[g + 1]):
            k, ck = order[i], weight[1, i]
            between = 0.5 * (ck * (below[i] - above[i]) - (below_c[i] - above_c[i]))
            within = others[k] - 0.5 * (below[i] + above[i])
            out[k] = max(between, 0.0) + max(within, 0.0) * max(ck - low, high - ck)


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
        if not pays(tables.pair, n, number.size, 1, 2, profile.reach):
            continue
        bare = 0  # documents without a gain come first; they have c = e = 0, and their positions do not matter
        for g in range(bounds.size - 1):
            bare = bounds[g + 1] if positions.a[levels.start[q] + g] == 0 else bare
        layout, whole, gained = (box, t, number), slice(0, n), slice(bare, n)
        sums, one, pull, bend = np.empty((2, n)), np.ones(n), np.empty(n), np.zeros(n)
        c, e, S, apart = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
        # The sums over all documents hold each with itself: E'(0) = 0, E''(0) = 1/2.
        row_sums(layout, whole, one, gained, profile, SLOPES, CURVATURES, sums)
        for i in range(bare, n):
            c[i] = 0.5 * (n + 1 - sums[0, i])
            e[i] = S[i] = 0.5 * (sums[1, i] - 0.5)
        out.value[q] = 1 - positions.scale[q] * position_terms(q, positions, c, e)
        for turn in range(2 if positions.cut < np.inf else 1):
            w = e if turn else c
            row_sums(layout, gained, w, whole, profile, CURVATURES, CURVATURES, sums[:1])
            for i in range(n):
                around = 0.5 * (sums[0, i] - 0.5 * w[i])
                if turn:
                    bend[i] = around + w[i] * S[i]
                else:
                    pull[i] = around - w[i] * S[i]
                    apart[i] = around
        # A bare document differs by c_j from the others, these by c_k from it, and among themselves by c_j - c_k.
        row_sums(layout, slice(0, bare), one, gained, profile, CURVATURES, CURVATURES, sums[:1])
        for i in range(bare, n):
            S[i] -= 0.5 * sums[0, i]
        _differences(x[gained], c[gained], S[gained], profile, apart[gained])
        for i in range(bare, n):
            apart[i] += 0.5 * sums[0, i] * c[i]
        factor = lists.weight[q] * positions.scale[q] / tau
        for i in range(n):
            row = lists.start[q] + order[i]
            out.gradient[row] = factor * pull[i]
            out.diag[row] = 2 * factor / tau * (apart[i] + bend[i])
        done[q] = True
