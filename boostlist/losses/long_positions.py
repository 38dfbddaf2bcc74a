r"""Smoothed NDCG and reciprocal rank of long lists, by `difference_sums`; the formulas are those of `smoothed`.

With E(u) = 2 log(2 cosh(u/2)), sigma(-u) = 1/2 - E'(u)/2 and sigma'(u) = E''(u)/2. Positions and gradients are sums
over all documents as they stand,

    h_i = (n + 1)/2 - 1/2 sum_j E'(x_i - x_j),   gradient_k = 1/tau [ sum_j w_kj c_j - c_k sum_j w_kj ]

In the diagonal, sum_j w_kj |c_j - c_k| is not: it wants documents with a larger c apart from those with a smaller one.
They are put into groups of c, four to the octave, as if these were grades: exact between groups, and within a group the
difference is taken to be the largest that c_k can have there. So D is a little larger than for short lists, and still
majorizes H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.difference_sums import CURVATURES, SLOPES, GradedSums, all_sums, graded_sums
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
def _differences(x, c, S, profile, out):  # type: ignore[no-untyped-def]
    """Fill out with a bound on sum_j w_kj |c_j - c_k|, exact but for pairs within a group; S is sum_j w_kj."""
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
            others = 0.5 * (ck * (below[i] - above[i]) - (below_c[i] - above_c[i]))
            same = S[k] - 0.5 * (below[i] + above[i])
            out[k] = max(others, 0.0) + max(same, 0.0) * max(ck - low, high - ck)


@compiled
def soft_positions(lists, f, need, out, tables, done):  # type: ignore[no-untyped-def]
    """Value, gradient and majorizer of smoothed NDCG and reciprocal rank."""
    positions, profile = tables.tables, tables.profile
    tau = positions.tau
    for q in lists.query:
        x, order, _ = in_order(q, lists, f, 1 / tau, positions.levels)
        n = x.size
        rows = slice(lists.start[q], lists.start[q + 1])
        gradient, diag = out.gradient[rows], out.diag[rows]
        sums, weight, S = np.empty((2, n)), np.ones((3, n)), np.empty(n)
        pull, bend = np.zeros(n), np.zeros(n)
        for turn in range(3 if positions.cut < np.inf else 2):
            # The sums hold each document with itself: E'(0) = 0, E''(0) = 1/2.
            first = SLOPES if turn == 0 else CURVATURES
            if not all_sums(tables.pair, x, weight[turn], profile, first, CURVATURES, sums):
                break
            if turn == 0:
                for i in range(n):
                    weight[1, i] = 0.5 * (n + 1 - sums[0, i])
                    weight[2, i] = S[i] = 0.5 * (sums[1, i] - 0.5)
                out.value[q] = 1 - positions.scale[q] * position_terms(q, positions, weight[1], weight[2])
                done[q] = True
            for i in range(n):
                w = weight[turn, i]
                if turn == 1:
                    pull[i] = 0.5 * (sums[0, i] - 0.5 * w) - w * S[i]
                elif turn == 2:
                    bend[i] = 0.5 * (sums[0, i] - 0.5 * w) + w * S[i]
        if not done[q]:
            continue
        difference = sums[1]
        _differences(x, weight[1], S, profile, difference)
        factor = lists.weight[q] * positions.scale[q] / tau
        for i in range(n):
            gradient[order[i]] = factor * pull[i]
            diag[order[i]] = 2 * factor / tau * (difference[i] + bend[i])
