"""Loops of the smoothed metrics over the pairs of short lists; notation and formulas are those of `smoothed`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.long_lists import documents_without
from boostlist.losses.ratios import exponentials, ratios
from boostlist.losses.shared_loops import gather, scatter_both, spread_by_grade
from boostlist.parallel import REORDERED, compiled, inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import FloatArray, IntArray
    from boostlist.levels import Levels


@inlined
def _position_row(r, i, h, S):  # type: ignore[no-untyped-def]
    """Add s_ij to h_i and s_ji to h_j, and w to S_i and S_j, for j < i and r_j = e^{(f_j - f_i) / tau}."""
    ahead = slopes = 0.0
    for j in range(np.uint64(i)):
        inverse = 1 / (1 + r[j])
        s = r[j] * inverse
        w = s * inverse
        h[j] += inverse
        S[j] += w
        ahead += s
        slopes += w
    h[i] += ahead
    S[i] += slopes


@inlined
def _position_gradient_row(r, i, c, e, gradient, diag):  # type: ignore[no-untyped-def]
    """Add w (c_i - c_j), for i less it, to the gradients and w (|c_i - c_j| + e_i + e_j) to the diagonals of j <= i."""
    pulls = curvatures = 0.0
    ci, ei = c[i], e[i]
    for j in range(np.uint64(i)):
        inverse = 1 / (1 + r[j])
        w = r[j] * inverse * inverse
        gap = ci - c[j]
        pull = w * gap
        curvature = w * (abs(gap) + ei + e[j])
        gradient[j] += pull
        diag[j] += curvature
        pulls += pull
        curvatures += curvature
    gradient[i] -= pulls
    diag[i] += curvatures


@inlined
def _discount(h, gated, cut, power):  # type: ignore[no-untyped-def]
    """Return the discount 1 / log(1 + h) times its gate, minus its slope, and minus its bend where that is negative."""
    log = np.log1p(h)
    b = 1 / log
    slope = -b * b / (1 + h)
    if gated is None:
        return b, -slope, 0.0
    bend = b * b * (1 + 2 * b) / ((1 + h) * (1 + h))
    t = np.exp(-abs(power * np.log(h / cut)))
    gate = 1 / (1 + t) if h < cut else t / (1 + t)
    gate_slope = -power / h * t / ((1 + t) * (1 + t))
    gate_bend = -gate_slope / h * (1 + power * (1 - 2 * gate))
    bend = bend * gate + 2 * slope * gate_slope + b * gate_bend
    return (
        b * gate,
        -(slope * gate + b * gate_slope),
        -bend if bend < 0 else 0.0,
    )


class PositionTables(NamedTuple):
    """Tables of smoothed NDCG and reciprocal rank.

    Attributes
    ----------
    tau
        Temperature.
    reciprocal
        Whether b(h) = 1 / h.
    gated, cut
        True and the cut-off k + 1/2; None and infinity where there is none, so that the gate is not compiled.
    scale
        1 / DCG_max, by query.
    bare
        How many documents have no gain, by query: they come first, and among themselves do not matter.
    order
        That of `Levels`.
    a
        Gain of each document in that order.
    """

    tau: float
    reciprocal: bool
    gated: bool | None
    cut: float
    scale: FloatArray
    bare: IntArray
    order: NDArray[np.int32]
    a: FloatArray

    @classmethod
    def of(
        cls, tau: float, reciprocal: bool, k: int | None, scale: FloatArray, levels: Levels, a: FloatArray
    ) -> PositionTables:
        """Make the tables; a is the gain of each level."""
        gains = np.repeat(a, levels.sizes)
        gated, cut = (None, np.inf) if k is None else (True, k + 0.5)
        return cls(float(tau), reciprocal, gated, cut, scale, documents_without(a, levels), levels.order, gains)


@compiled
def position_terms(lo, hi, begin, a, reciprocal, gated, cut, power, h, S, b):  # type: ignore[no-untyped-def]
    """Turn h into c and S into e S for the documents lo:hi, of the gains a from `begin` on, and fill b with a b(h)."""
    for i in range(lo, hi):
        gain = a[begin + i]
        if gain == 0:
            h[i] = S[i] = b[i] = 0.0
            continue
        if reciprocal:
            discount, c, e = 1 / h[i], 1 / (h[i] * h[i]), 0.0
        else:
            discount, c, e = _discount(h[i], gated, cut, power)
        b[i] = gain * discount
        h[i] = gain * c
        S[i] *= gain * e


class ERRTables(NamedTuple):
    """tau; the levels, with R and 1 - R of each."""

    tau: float
    levels: Levels
    R: FloatArray
    rest: FloatArray


@partial(compiled, liberties=REORDERED)
def soft_positions(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and majorizer of smoothed NDCG and reciprocal rank."""
    tau, scale, order, a = tables.tau, tables.scale, tables.order, tables.a
    most = lists.longest
    x, E, h, S = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    r, b, pull, curvature = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for q in lists.query:
        begin = lists.start[q]
        n = lists.start[q + 1] - begin
        gather(f, order, begin, n, x)
        for i in range(n):
            x[i] /= tau
            h[i], S[i], pull[i], curvature[i] = 1.0, 0.0, 0.0, 0.0
        near = exponentials(x, n, E)
        bare = tables.bare[q]
        for i in range(bare, n):
            ratios(near, x, E, i, 0, i, r)
            _position_row(r, i, h, S)
        for i in range(bare):
            h[i] = S[i] = 0.0
        position_terms(bare, n, begin, a, tables.reciprocal, tables.gated, tables.cut, 4 / tau, h, S, b)
        gained = 0.0
        for i in range(bare, n):
            gained += b[i]
        for i in range(bare, n):
            ratios(near, x, E, i, 0, i, r)
            _position_gradient_row(r, i, h, S, pull, curvature)
        factor = lists.weight[q] * scale[q] / tau
        scatter_both(factor, pull, 2 * factor / tau, curvature, order, begin, n, out)
        out.value[q] = 1 - scale[q] * gained


@inlined
def _err_row(r, i, rest, h, T):  # type: ignore[no-untyped-def]
    """Add s_ij to h_i, s_ji to h_j; multiply T_i by 1 - R_j s_ij, T_j by 1 - R_i s_ji, for j < i; rest is 1 - R."""
    ahead, product, rest_i = 0.0, 1.0, rest[i]
    for j in range(np.uint64(i)):
        inverse = 1 / (1 + r[j])
        h[j] += inverse
        T[j] *= (r[j] + rest_i) * inverse
        ahead += r[j] * inverse
        product *= (1 + rest[j] * r[j]) * inverse
    h[i] += ahead
    T[i] *= product


@inlined
def _err_gradient_row(r, i, R, rest, t, T, gradient, diag):  # type: ignore[no-untyped-def]
    """Add w (G_ij - G_ji), for i less it, to the gradients and w (G_ij + G_ji) to the diagonals, j <= i; t = T / h."""
    pulls = curvatures = 0.0
    Ri, rest_i, ti, Ti = R[i], rest[i], t[i], T[i]
    for j in range(np.uint64(i)):
        inverse = 1 / (1 + r[j])
        s = r[j] * inverse
        w = s * inverse
        # w R_j / (1 - R_j s_ij) and w R_i / (1 - R_i s_ji)
        own = ti * w + Ti * R[j] * (s / (1 + rest[j] * r[j]))
        other = t[j] * w + T[j] * Ri * (s / (r[j] + rest_i))
        gradient[j] += own - other
        diag[j] += own + other
        pulls += own - other
        curvatures += own + other
    gradient[i] -= pulls
    diag[i] += curvatures


@partial(compiled, liberties=REORDERED)
def err(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and majorizer of smoothed ERR."""
    tau, levels = tables.tau, tables.levels
    order, document = levels.order, levels.document
    most = lists.longest
    x, E, R, rest = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    r, h, T, pull, curvature = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for q in lists.query:
        first, last, begin = levels.start[q], levels.start[q + 1], lists.start[q]
        n = lists.start[q + 1] - begin
        gather(f, order, begin, n, x)
        spread_by_grade(first, last, document, tables.R, R)
        spread_by_grade(first, last, document, tables.rest, rest)
        for i in range(n):
            x[i] /= tau
            h[i], T[i], pull[i], curvature[i] = 1.0, R[i], 0.0, 0.0
        near = exponentials(x, n, E)
        bare = 0
        while bare < n and R[bare] == 0:
            bare += 1
        for i in range(bare, n):
            ratios(near, x, E, i, 0, i, r)
            _err_row(r, i, rest, h, T)
        gained = 0.0
        for i in range(n):
            T[i] /= h[i]
            gained += T[i]
            h[i] = T[i] / h[i]
        for i in range(bare, n):
            ratios(near, x, E, i, 0, i, r)
            _err_gradient_row(r, i, R, rest, h, T, pull, curvature)
        factor = lists.weight[q] / tau
        scatter_both(factor, pull, 2 * factor / tau, curvature, order, begin, n, out)
        out.value[q] = 1 - gained
