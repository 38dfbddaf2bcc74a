r"""Smoothed ERR of long lists, by `difference_sums`; the formulas are those of `smoothed`.

For u = x_i - x_j, s_ij = sigma(-u), and for documents j of a grade with R_j = R, the functions

    F(u) = log(1 - R sigma(-u)),   Y(u) = sigma'(u) R / (1 - R sigma(-u)),   Y(-u)

are analytic in the strip of sigma, and constant far out: F falls from 0 to log(1 - R). With them

    log T_i = log(R_i / h_i) + sum_j F_j(x_i - x_j)
    sum_j w_kj G_kj = T_k/h_k sum_j w_kj + T_k sum_j Y_j(x_k - x_j)
    sum_j w_kj G_jk = sum_j w_kj T_j/h_j + sum_j T_j Y_k(-(x_k - x_j))

with Y_j that of the grade of j; gradient and diagonal are the difference and the sum of the last two lines. Up to some
grades are summed one by one, O(n G). In v = -log(1 - R), too, F and Y are analytic in a strip of pi,

    F = log( sigma(u) + e^{-v} sigma(-u) ),

so that a few R_q at Chebyshev nodes of v do for any number of grades: F_j = sum_q L_q(v_j) F_q, with L_q the
polynomials that are 1 at one node and 0 at the others. A document then counts as L_q(v_j) documents of each R_q.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boostlist.losses.difference_sums import (
    CURVATURES,
    SLOPES,
    TOLERANCE,
    Layout,
    Profile,
    add_polynomials,
    coefficients,
    expand,
    lay_out_lists,
    list_sums,
    moments,
    profile,
    sum_time,
)
from boostlist.losses.long_lists import Part, counting_pairs, documents_without

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import FloatArray, IntArray
    from boostlist.losses.compiled import Outputs
    from boostlist.losses.smoothed_loops import ERRTables

# Grades of positive gain up to which they are summed one by one; and the most nodes for more, which are too few where
# grades go beyond 11, with gains of 2^y - 1.
_FEW_GRADES, _MOST_NODES = 16, 40
# Time of a document in ns, about, beyond one sum; and by each of these nodes.
_MORE, _NODE = 16, 10


class LongERR(NamedTuple):
    """Tables of the sums.

    Attributes
    ----------
    soft
        E, E' and E'' of c = 1.
    stop
        F, Y and Y(-u) of each R_q, three after three, with the reach of the furthest.
    nodes
        Number of the R_q.
    alike
        Where the documents of each R_q begin and end in each query, if there are no others; else None.
    L
        By node and level: L_q(v); None if levels are nodes.
    bare
        Documents with R = 0, by query.
    pair
        As `LongTables` has it.
    """

    soft: Profile
    stop: Profile
    nodes: int
    alike: IntArray | None
    L: FloatArray | None
    bare: IntArray
    tables: ERRTables
    pair: FloatArray

    @property
    def density(self) -> FloatArray:
        """As `LongTables` has it."""
        return np.full_like(self.pair, 1 / (self.tables.tau * self.stop.width))

    def time(self, query: IntArray, n: Any, boxes: Any) -> Any:
        """Return what the sums take, as `LongTables` has it."""
        each = _MORE if self.L is None else _MORE + _NODE * self.nodes
        return sum_time(self.stop, 3, n, boxes, 2 * self.nodes) + each * n


def _functions(u: FloatArray, R: float, rest: float) -> list[FloatArray]:
    below, above = 1 / (1 + np.exp(-u)), 1 / (1 + np.exp(u))  # sigma(u), sigma(-u)
    going_on = np.where(u < 0, np.log(rest + R * below), np.log1p(-R * above))
    return [going_on, below * above * R / (rest + R * below), below * above * R / (rest + R * above)]


def long_err(pair: float, tables: ERRTables) -> LongERR | None:
    """Return the tables, or None where too many nodes would be needed; `pair` is what a pair takes where all count."""
    levels, bare = tables.levels, documents_without(tables.R, tables.levels)
    R, where = np.unique(tables.R, return_index=True)
    R, rest = R[R > 0], tables.rest[where[R > 0]]
    far = math.log(8 / TOLERANCE * (R / rest).max(initial=1.0))
    alike = L = None
    if len(R) <= _FEW_GRADES:
        counts = np.array([levels.sum_by_query(levels.sizes * (r == tables.R)) for r in R]).astype(np.int64)
        ends = bare + np.cumsum(counts, axis=0)  # R ascends with the grade
        alike = np.stack((ends - counts, ends), axis=2)
    else:
        v = -np.log(rest)
        middle, radius = (v[-1] + v[0]) / 2, max((v[-1] - v[0]) / 2, 1e-3)
        number = math.ceil(math.log(100 / TOLERANCE) / math.asinh(math.pi / radius))
        if number > _MOST_NODES:
            return None
        angle = (np.arange(number) + 0.5) * np.pi / number
        rest = np.exp(-(middle + radius * np.cos(angle)))
        R = 1 - rest
        degree = np.arange(number)
        place = np.arccos(np.clip((-np.log(tables.rest) - middle) / radius, -1, 1))
        to_coefficients = 2 / number * np.cos(np.outer(angle, degree))
        to_coefficients[:, 0] /= 2
        L = to_coefficients @ np.cos(np.outer(degree, place))
    pairs = list(zip(R.tolist(), rest.tolist(), strict=True))

    def functions(u: FloatArray) -> list[FloatArray]:
        return [function for r, one_less in pairs for function in _functions(u, r, one_less)]

    tail = [row for _, one_less in pairs for row in ([math.log(one_less), 0.0, 0.0], [0.0] * 3, [0.0] * 3)]
    stop = expand(functions, tail, math.pi, far, TOLERANCE)
    return LongERR(profile(1.0), stop, len(R), alike, L, bare, tables, pair * counting_pairs(bare, levels))


def soft_err(part: Part, f: FloatArray, need: int, out: Outputs, tables: LongERR, done: NDArray[np.bool_]) -> None:
    """Value, gradient and majorizer of smoothed ERR."""
    tau, lists = tables.tables.tau, part.lists
    x = part.in_order(f, np.full_like(lists.weight, 1 / tau))
    whole, n = part.rows, part.size
    layout = lay_out_lists(whole, x, tables.stop, tables.pair[lists.query], partial(tables.time, lists.query))
    done[lists.query] = layout.found
    if not layout.found.any():
        return
    gained = whole.copy()  # documents without a gain come first
    gained[:, 0] += tables.bare[lists.query]
    R = part.by_document(tables.tables.R)
    # Sums over all: E', E'', then E'' with t; over the nodes: F and Y, then Y(-u) with T. Less each document itself.
    soft, stops = np.zeros((2, n, 2))
    near = layout.within(tables.stop.reach)
    list_sums(layout, layout.one, layout, tables.soft, SLOPES, soft)
    _stops(part, layout, near, gained, tables, stops)
    F0, Y0 = np.log1p(-0.5 * R), 0.25 * R / (1 - 0.5 * R)
    h = 0.5 * (np.repeat(whole[:, 1] - whole[:, 0], whole[:, 1] - whole[:, 0]) + 1 - soft[:, 0])
    T = R * np.exp(stops[:, 0] - F0) / h
    t_h = T / h
    own = t_h * 0.5 * (soft[:, 1] - 0.5) + T * (stops[:, 1] - Y0)
    others, stopped = np.zeros((n, 1)), np.zeros((n, 1))
    list_sums(layout, t_h, layout, tables.soft, CURVATURES, others)
    _stopped(part, layout, near, gained, tables, T, stopped)
    other = 0.5 * (others[:, 0] - 0.5 * t_h) + stopped[:, 0] - T * Y0
    factor = lists.weight / tau
    part.write(other - own, factor, done, out.gradient)
    part.write(np.maximum(other + own, 0.0), 2 / tau * factor, done, out.diag)
    out.value[lists.query] = 1 - np.add.reduceat(T, whole[:, 0])


def _ranges(part: Part, tables: LongERR) -> IntArray:
    """Return where the documents of each R_q are, by list and node."""
    assert tables.alike is not None
    return np.ascontiguousarray(part.rows[:, :1, None] + tables.alike[:, part.lists.query].transpose(1, 0, 2))


def _stops(part: Part, layout: Layout, near: IntArray, gained: IntArray, tables: LongERR, out: FloatArray) -> None:
    """Add sum_j F_j(x_i - x_j) and sum_j Y_j(x_i - x_j)."""
    all_boxes = np.ones((1, layout.number.size), np.bool_)
    if tables.L is None:
        whole = moments(layout, layout.one, _ranges(part, tables), tables.stop).of
        sets = (whole[q : q + 1] for q in range(tables.nodes))
    else:
        counts = (part.by_document(each) for each in tables.L)
        sets = (moments(layout, count, gained[:, None], tables.stop).of for count in counts)
    polynomials = (
        coefficients(layout, near, own, all_boxes, tables.stop, slice(3 * q, 3 * q + 2)) for q, own in enumerate(sets)
    )
    add_polynomials(layout, reduce(np.add, polynomials), layout.one, gained[:, None], out)


def _stopped(
    part: Part, layout: Layout, near: IntArray, gained: IntArray, tables: LongERR, T: FloatArray, out: FloatArray
) -> None:
    """Add sum_j T_j Y_i(-(x_i - x_j))."""
    all_boxes = np.ones((1, layout.number.size), np.bool_)
    whole = moments(layout, T, gained[:, None], tables.stop).of
    polynomials = [
        coefficients(layout, near, whole, all_boxes, tables.stop, slice(3 * q + 2, 3 * q + 3))
        for q in range(tables.nodes)
    ]
    if tables.L is None:
        add_polynomials(layout, np.concatenate(polynomials), layout.one, _ranges(part, tables), out)
        return
    for each, found in zip(tables.L, polynomials, strict=True):
        add_polynomials(layout, found, part.by_document(each), gained[:, None], out)
