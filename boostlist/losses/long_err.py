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
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.difference_sums import (
    CURVATURES,
    SLOPES,
    TOLERANCE,
    Profile,
    expand,
    lay_out_lists,
    list_sums,
    profile,
    sum_time,
)
from boostlist.losses.long_lists import Part, documents_without

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import FloatArray, IntArray
    from boostlist.losses.compiled import Outputs
    from boostlist.losses.smoothed_loops import ERRTables

MOST_GRADES = 16
"""More grades of positive gain are left to the double loop."""


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
    alike
        Where the documents of each R begin and end in each query.
    bare
        Documents with R = 0, by query.
    pair
        What one of n^2 pairs takes in the double loop, in ns, by the number of sums that replace it.
    """

    soft: Profile
    stop: Profile
    F0: FloatArray
    Y0: FloatArray
    which: IntArray
    alike: IntArray
    bare: IntArray
    tables: ERRTables
    pair: float = 0.4


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
    levels, bare = tables.levels, documents_without(tables.R, tables.levels)
    counts = np.array([levels.sum_by_query(levels.sizes * (own == r)) for r in range(len(pairs))]).astype(np.int64)
    ends = bare + np.cumsum(counts, axis=0)  # R ascends with the grade
    alike = np.stack((ends - counts, ends), axis=2)
    return LongERR(profile(1.0), stop, at_zero[:, 0], at_zero[:, 1], own, alike, bare, tables)


def soft_err(part: Part, f: FloatArray, need: int, out: Outputs, tables: LongERR, done: NDArray[np.bool_]) -> None:
    """Value, gradient and majorizer of smoothed ERR."""
    stop, tau = tables.stop, tables.tables.tau
    lists = part.lists
    x = part.in_order(f, np.full_like(lists.weight, 1 / tau))
    whole, n, grades = part.rows, part.size, tables.F0.size
    layout = lay_out_lists(whole, x, stop, tables.pair, partial(sum_time, stop, 3, rounds=2 * grades))
    done[lists.query] = layout.found
    if not layout.found.any():
        return
    gained = whole.copy()  # documents without a gain come first
    gained[:, 0] += tables.bare[lists.query]
    # Documents of each R, in every list: they lie side by side.
    which, R = part.by_document(tables.which), part.by_document(tables.tables.R)
    alike = [whole[:, :1] + tables.alike[r, lists.query] for r in range(grades)]
    # Sums over all: E', E'', then E'' with t; over the grades: F and Y, then Y(-u) with T. Less each document itself.
    soft, stops = np.zeros((2, n, 2))
    list_sums(layout, whole, layout.one, whole, tables.soft, SLOPES, soft)
    for r in range(grades):
        list_sums(layout, alike[r], layout.one, gained, stop, 3 * r, stops)
    F0, Y0 = np.append(tables.F0, 0.0)[which], np.append(tables.Y0, 0.0)[which]
    h = 0.5 * (np.repeat(whole[:, 1] - whole[:, 0], whole[:, 1] - whole[:, 0]) + 1 - soft[:, 0])
    T = R * np.exp(stops[:, 0] - F0) / h
    t_h = T / h
    own = t_h * 0.5 * (soft[:, 1] - 0.5) + T * (stops[:, 1] - Y0)
    others, stopped = np.zeros((n, 1)), np.zeros((n, 1))
    list_sums(layout, whole, t_h, whole, tables.soft, CURVATURES, others)
    for r in range(grades):
        list_sums(layout, whole, T, alike[r], stop, 3 * r + 2, stopped)
    other = 0.5 * (others[:, 0] - 0.5 * t_h) + stopped[:, 0] - T * Y0
    factor = lists.weight / tau
    part.write(other - own, factor, done, out.gradient)
    part.write(np.maximum(other + own, 0.0), 2 / tau * factor, done, out.diag)
    out.value[lists.query] = 1 - np.add.reduceat(T, whole[:, 0])
