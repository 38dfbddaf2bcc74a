r"""Smoothed ERR of long lists, by `difference_sums`; the formulas are those of `smoothed`.

For u = x_i - x_j, s_ij = sigma(-u), and for documents j of a grade with R_j = R, the functions

    F(u) = log(1 - R sigma(-u)),   Y(u) = sigma'(u) R / (1 - R sigma(-u)),   Y(-u)

are analytic in the strip of sigma, and constant far out: F falls from 0 to log(1 - R). They are summed grade by grade:

    log T_i = log(R_i / h_i) + sum_j F_j(x_i - x_j)
    sum_j w_kj G_kj = T_k/h_k sum_j w_kj + T_k sum_j Y_j(x_k - x_j)
    sum_j w_kj G_jk = sum_j w_kj T_j/h_j + sum_j T_j Y_k(-(x_k - x_j))

with Y_j that of the grade of j; gradient and diagonal are the difference and the sum of the last two lines. O(n) for
each grade of positive gain: a double loop where there are many.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.difference_sums import (
    CURVATURES,
    SLOPES,
    TOLERANCE,
    Profile,
    expand,
    lay_out,
    profile,
    row_sums,
    sum_time,
)
from boostlist.losses.long_lists import in_order, last_zero
from boostlist.losses.shared_loops import scatter
from boostlist.parallel import compiled

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.losses.smoothed_loops import ERRTables

MOST_GRADES = 16
"""More grades of positive gain are left to the double loop."""

# What one of n^2 pairs takes in the double loop, in ns, by the number of sums that replace it.
_PAIR = 0.2


class LongERR(NamedTuple):
    """Tables of the sums.

    Attributes
    ----------
    soft
        E, E' and E'' of c = 1.
    stop
        F, Y and Y(-u) of each R, three after three, with the reach of the furthest.
    F0, Y0
        F(0) and Y(0) of each R.
    which
        Which R each level has, -1 for 0.
    """

    soft: Profile
    stop: Profile
    F0: FloatArray
    Y0: FloatArray
    which: IntArray
    tables: ERRTables


def _functions(u: FloatArray, R: float, rest: float) -> list[FloatArray]:
    below, above = 1 / (1 + np.exp(-u)), 1 / (1 + np.exp(u))  # sigma(u), sigma(-u)
    going_on = np.where(u < 0, np.log(rest + R * below), np.log1p(-R * above))
    return [going_on, below * above * R / (rest + R * below), below * above * R / (rest + R * above)]


def long_err(tables: ERRTables) -> LongERR | None:
    """Return the tables, or None where there are many grades."""
    R, where, index = np.unique(tables.R, return_index=True, return_inverse=True)
    positive = R > 0
    if positive.sum() > MOST_GRADES:
        return None
    pairs = [(float(r), float(tables.rest[i])) for r, i in zip(R[positive], where[positive], strict=True)]
    far = math.log(8 / TOLERANCE * max(1.0, *(r / rest for r, rest in pairs)))

    def functions(u: FloatArray) -> list[FloatArray]:
        return [function for r, rest in pairs for function in _functions(u, r, rest)]

    tail = [row for _, rest in pairs for row in ([math.log(rest), 0.0, 0.0], [0.0] * 3, [0.0] * 3)]
    stop = expand(functions, tail, math.pi, far, TOLERANCE)
    at_zero = np.array([_functions(np.zeros(1), r, rest) for r, rest in pairs])[:, :2, 0]
    number = np.cumsum(positive) - 1
    own = np.where(positive, number, -1)[index.reshape(-1)]
    return LongERR(profile(1.0), stop, at_zero[:, 0].copy(), at_zero[:, 1].copy(), own, tables)


@compiled
def soft_err(lists, f, need, out, tables, done):  # type: ignore[no-untyped-def]
    """Value, gradient and majorizer of smoothed ERR."""
    levels, stop = tables.tables.levels, tables.stop
    tau, grades = tables.tables.tau, tables.F0.size
    for q in lists.query:
        x, order, bounds = in_order(q, lists, f, 1 / tau, levels)
        n = x.size
        box, t = np.empty(n, np.int64), np.empty(n)
        number = lay_out(x, stop.half, box, t)
        if _PAIR * n * n < sum_time(n, number.size, stop.reach, 3, 2 * grades):
            continue
        layout, whole = (box, t, number), slice(0, n)
        own_levels = slice(levels.start[q], levels.start[q + 1])
        which, R = tables.which[own_levels], tables.tables.R[own_levels]
        gained = slice(last_zero(R, bounds), n)  # documents without a gain come first
        # Sums over all: E', E'', then E'' with t; over the grades: F and Y, then Y(-u) with T.
        soft, part, single = np.empty((n, 2)), np.empty((n, 2)), np.empty((n, 1))
        going_on, own, T, one = np.zeros(n), np.zeros(n), np.zeros(n), np.ones(n)
        row_sums(layout, whole, one, whole, tables.soft, SLOPES, CURVATURES, soft)
        for g in range(which.size):
            r = which[g]
            if r >= 0:
                rows = slice(bounds[g], bounds[g + 1])
                T[rows] = R[g]
                row_sums(layout, rows, one, gained, stop, 3 * r, 3 * r + 1, part)
                part[rows, 0] -= tables.F0[r]
                part[rows, 1] -= tables.Y0[r]
                going_on[gained] += part[gained, 0]
                own[gained] += part[gained, 1]
        h = 0.5 * (n + 1 - soft[:, 0])
        T *= np.exp(going_on) / h
        t_h = T / h
        own = t_h * 0.5 * (soft[:, 1] - 0.5) + T * own
        row_sums(layout, whole, t_h, whole, tables.soft, CURVATURES, CURVATURES, single)
        other = 0.5 * (single[:, 0] - 0.5 * t_h)
        for g in range(which.size):
            r = which[g]
            if r >= 0:
                rows = slice(bounds[g], bounds[g + 1])
                row_sums(layout, whole, T, rows, stop, 3 * r + 2, 3 * r + 2, single)
                other[rows] += single[rows, 0] - T[rows] * tables.Y0[r]
        factor = lists.weight[q] / tau
        query = slice(lists.start[q], lists.start[q + 1])
        scatter(other - own, factor, order, out.gradient[query])
        scatter(np.maximum(other + own, 0.0), 2 * factor / tau, order, out.diag[query])
        out.value[q] = 1 - np.sum(T)
        done[q] = True
