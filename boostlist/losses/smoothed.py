r"""Smoothed metrics: NDCG, reciprocal rank and ERR of soft positions.

Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), eq. 6-7, after Qin, Liu, Li (2010). The position of a
document counts those ahead of it softly, with a temperature tau: for s_ij = sigma((f_j - f_i) / tau),

    h_i = 1 + sum_{j != i} s_ij

    SmoothNDCG:  l = 1 - sum_i a_i b(h_i) / DCG_max,  b(h) = 1 / log2(1 + h)
    SmoothMRR:   l = 1 - mean over the documents of the best grade of 1 / h_i
    SmoothERR:   l = 1 - sum_i T_i,  T_i = R_i / h_i prod_{j != i} (1 - R_j s_ij),  R = a / (a_max + 1)

with a the gain, and R = (2^y - 1) / 2^{y_max} for a = 2^y - 1. For NDCG at a cut-off k the discount b is multiplied by
the soft gate 1 / (1 + (h / (k + 1/2))^{4 / tau}), which for tau -> 0 is 1 at the positions up to k and 0 beyond, and
DCG_max is that of k positions. The gate fades by a power of h, not exponentially: at equal scores all positions are
about n / 2, and a document there must still feel which way is up.

These losses are not convex. Write w_ij = sigma'((f_j - f_i) / tau) = s_ij s_ji. For NDCG and MRR, with c_i = dl/dh_i,

    gradient_k = 1/tau sum_j w_kj (c_j - c_k),   D_k = 2/tau^2 sum_j w_kj ( |c_j - c_k| + e_j S_j + e_k S_k )

D majorizes H. The pair {k, j} has in H the curvature (c_k - c_j) sigma'' / tau^2 along f_k - f_j; |sigma''| <= sigma',
and the matrix (1, -1; -1, 1) is below 2 on the diagonal. In h the losses are concave, but for the gate: there e_i >= 0
is the positive part of d^2 l / dh_i^2, which multiplies u u' <= diag(|u| |u|_1), u = grad h_i, and S_i = sum_j w_ij.

Without the gate, every Newton step with a learning rate up to 1 lowers l. For D_k >= 2 |gradient_k| / tau, so that no
step, nor the mean of steps in a leaf, exceeds tau / 2, no difference of scores changes by more than tau, and sigma' by
no more than a factor e. From this and l being concave in h, l(f + s) <= l(f) + gradient' s + (e - 2) s' D s.

For ERR, with G_ij = -dT_i / ds_ij = T_i [ 1/h_i + R_j / (1 - R_j s_ij) ],

    gradient_k = 1/tau sum_j w_kj (G_jk - G_kj),   D_k = 2/tau^2 sum_j w_kj (G_jk + G_kj)

D majorizes H: the second derivative of T_i in the s_ij is positive semi-definite but for -T_i rho^2 on the diagonal,
rho = R_j / (1 - R_j s_ij), and |rho sigma'' + rho^2 sigma'^2| <= rho sigma' because rho sigma' <= s_ij.

O(n^2), but only pairs with a document of positive gain count (MRR: of the best grade), and they need no exp of their
own. Queries of one grade contribute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boostlist.checks import check_k
from boostlist.gains import Gain, check_gain, gains
from boostlist.losses.base import CompiledLoss, Traits
from boostlist.losses.ratios import BLOCK, exponentials, ratios
from boostlist.losses.shared_loops import gather, spread_by_grade
from boostlist.losses.weights import Grades, check_grades, discount_sums, label_set
from boostlist.parallel import compiled, longest, vectorized

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.levels import Levels
    from boostlist.queries import Queries


@vectorized
def _position_row(r, h, S):  # type: ignore[no-untyped-def]
    """Add s_ji to h_j and w to S_j for the ratios r_j = e^{(f_j - f_i) / tau}, and return the sums of s_ij and w."""
    ahead = slopes = 0.0
    for j in range(r.size):
        inverse = 1 / (1 + r[j])
        s = r[j] * inverse
        w = s * inverse
        h[j] += inverse
        S[j] += w
        ahead += s
        slopes += w
    return ahead, slopes


@vectorized
def _position_gradient_row(r, c, e, ci, ei, gradient, diag):  # type: ignore[no-untyped-def]
    """Add w (c_i - c_j) to the gradient and w (|c_i - c_j| + e_i + e_j) to the diagonal of j, and return both sums."""
    pulls = curvatures = 0.0
    for j in range(r.size):
        inverse = 1 / (1 + r[j])
        w = r[j] * inverse * inverse
        gap = ci - c[j]
        pull = w * gap
        curvature = w * (abs(gap) + ei + e[j])
        gradient[j] += pull
        diag[j] += curvature
        pulls += pull
        curvatures += curvature
    return pulls, curvatures


@compiled
def _discount(h, cut, power):  # type: ignore[no-untyped-def]
    """Return the discount 1 / log(1 + h) times its gate, minus its slope, and minus its bend where that is negative."""
    log = np.log1p(h)
    b = 1 / log
    slope = -b * b / (1 + h)
    if cut == np.inf:
        return b, -slope, 0.0
    bend = b * b * (1 + 2 * b) / ((1 + h) * (1 + h))
    t = np.exp(-abs(power * np.log(h / cut)))
    gate = 1 / (1 + t) if h < cut else t / (1 + t)
    gate_slope = -power / h * t / ((1 + t) * (1 + t))
    gate_bend = -gate_slope / h * (1 + power * (1 - 2 * gate))
    return (
        b * gate,
        -(slope * gate + b * gate_slope),
        max(-(bend * gate + 2 * slope * gate_slope + b * gate_bend), 0.0),
    )


class PositionTables(NamedTuple):
    """tau; whether b(h) = 1 / h; the cut-off; 1 / DCG_max by query; the levels, with the gain of each."""

    tau: float
    reciprocal: bool
    cut: float
    scale: FloatArray
    levels: Levels
    a: FloatArray


class ERRTables(NamedTuple):
    """tau; the levels, with R and 1 - R of each."""

    tau: float
    levels: Levels
    R: FloatArray
    rest: FloatArray


@compiled
def _soft_positions(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    tau, reciprocal, cut, scale, levels, a = tables
    document = levels.document
    most = longest(lists.query, lists.start)
    x, E, h, S = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    pull, curvature = np.empty(most), np.empty(most)
    ratio = np.empty(BLOCK)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        gradient, diag, order = out.gradient[rows], out.diag[rows], levels.order[rows]
        first, last = levels.start[q], levels.start[q + 1]
        begin, n = rows.start, order.size
        gather(f[rows], order, x)
        for i in range(n):
            x[i] /= tau
        near = exponentials(x[:n], E)
        # Documents without a gain come first, and among themselves do not matter.
        lowest = first
        while a[lowest] == 0:
            lowest += 1
        bare = document[lowest] - begin
        h[:n] = 1.0
        S[:n] = 0.0
        for left in range(0, n, BLOCK):
            for i in range(max(bare, left + 1), n):
                right = min(left + BLOCK, i)
                r = ratio[: right - left]
                ratios(near, x, E, i, left, right, r)
                ahead, slopes = _position_row(r, h[left:right], S[left:right])
                h[i] += ahead
                S[i] += slopes
        # h becomes c, and S becomes e S.
        gained = 0.0
        h[:bare] = 0.0
        S[:bare] = 0.0
        for g in range(lowest, last):
            for i in range(document[g] - begin, document[g + 1] - begin):
                if reciprocal:
                    b, c, e = 1 / h[i], 1 / (h[i] * h[i]), 0.0
                else:
                    b, c, e = _discount(h[i], cut, 4 / tau)
                gained += a[g] * b
                h[i] = a[g] * c
                S[i] = a[g] * e * S[i]
        pull[:n] = 0.0
        curvature[:n] = 0.0
        for left in range(0, n, BLOCK):
            for i in range(max(bare, left + 1), n):
                right = min(left + BLOCK, i)
                r = ratio[: right - left]
                ratios(near, x, E, i, left, right, r)
                p, c = _position_gradient_row(
                    r, h[left:right], S[left:right], h[i], S[i], pull[left:right], curvature[left:right]
                )
                pull[i] -= p
                curvature[i] += c
        factor = lists.weight[q] * scale[q] / tau
        for i in range(n):
            gradient[order[i]] = factor * pull[i]
            diag[order[i]] = 2 * factor / tau * curvature[i]
        out.value[q] = 1 - scale[q] * gained


@vectorized
def _err_row(r, rest, rest_i, h, T):  # type: ignore[no-untyped-def]
    """Add s_ji to h_j and multiply T_j by 1 - R_i s_ji; return the sum of s_ij and the product of 1 - R_j s_ij.

    rest is 1 - R.
    """
    ahead, product = 0.0, 1.0
    for j in range(r.size):
        inverse = 1 / (1 + r[j])
        h[j] += inverse
        T[j] *= (r[j] + rest_i) * inverse
        ahead += r[j] * inverse
        product *= (1 + rest[j] * r[j]) * inverse
    return ahead, product


@vectorized
def _err_gradient_row(r, R, rest, t, T, Ri, rest_i, ti, Ti, gradient, diag):  # type: ignore[no-untyped-def]
    """Add w (G_ij - G_ji) to the gradient and w (G_ij + G_ji) to the diagonal of j, and return both sums; t = T / h."""
    pulls = curvatures = 0.0
    for j in range(r.size):
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
    return pulls, curvatures


@compiled
def _err(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    tau, levels = tables.tau, tables.levels
    document = levels.document
    most = longest(lists.query, lists.start)
    x, E, R, rest = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    h, T, pull, curvature = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    ratio = np.empty(BLOCK)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        gradient, diag, order = out.gradient[rows], out.diag[rows], levels.order[rows]
        first, last = levels.start[q], levels.start[q + 1]
        n = order.size
        gather(f[rows], order, x)
        spread_by_grade(first, last, document, tables.R, R)
        spread_by_grade(first, last, document, tables.rest, rest)
        for i in range(n):
            x[i] /= tau
        near = exponentials(x[:n], E)
        bare = 0
        while bare < n and R[bare] == 0:
            bare += 1
        h[:n] = 1.0
        T[:n] = R[:n]
        for left in range(0, n, BLOCK):
            for i in range(max(bare, left + 1), n):
                right = min(left + BLOCK, i)
                r = ratio[: right - left]
                ratios(near, x, E, i, left, right, r)
                ahead, product = _err_row(r, rest[left:right], rest[i], h[left:right], T[left:right])
                h[i] += ahead
                T[i] *= product
        gained = 0.0
        for i in range(n):
            T[i] /= h[i]
            gained += T[i]
            h[i] = T[i] / h[i]
        pull[:n] = 0.0
        curvature[:n] = 0.0
        for left in range(0, n, BLOCK):
            for i in range(max(bare, left + 1), n):
                right = min(left + BLOCK, i)
                r = ratio[: right - left]
                ratios(near, x, E, i, left, right, r)
                p, c = _err_gradient_row(
                    r,
                    R[left:right],
                    rest[left:right],
                    h[left:right],
                    T[left:right],
                    R[i],
                    rest[i],
                    h[i],
                    T[i],
                    pull[left:right],
                    curvature[left:right],
                )
                pull[i] -= p
                curvature[i] += c
        factor = lists.weight[q] / tau
        for i in range(n):
            gradient[order[i]] = factor * pull[i]
            diag[order[i]] = 2 * factor / tau * curvature[i]
        out.value[q] = 1 - gained


@dataclass(frozen=True, kw_only=True)
class Smoothed(CompiledLoss):
    """Common part of the family: the temperature.

    Parameters
    ----------
    tau
        Temperature of the soft positions, > 0: the difference of scores at which an order counts as 73 % certain.
    """

    tau: float = 1.0

    traits = Traits(diag="majorizer", convex=False, shift_invariant=True, cost="n^2")

    def __post_init__(self) -> None:
        if not (np.isfinite(self.tau) and self.tau > 0):
            raise ValueError(f"tau must be finite and > 0, got {self.tau}")

    def idle(self, queries: Queries, tables: Any) -> IntArray:
        """Return the queries of a single grade."""
        return np.flatnonzero(np.diff(queries.levels.start) == 1)


@dataclass(frozen=True, kw_only=True)
class SmoothNDCG(Smoothed):
    """1 - NDCG@k of soft positions.

    Parameters
    ----------
    tau
        As for `Smoothed`.
    k
        Cut-off; None for the whole list.
    gain
        Gain a: ``"exp2"`` for 2^y - 1, ``"linear"`` for y, or a table by grade.

    References
    ----------
    Qin, Liu, Li: A general approximation framework for direct optimization of information retrieval measures.
    Information Retrieval 13, 2010.
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 6-7, table 7.
    """

    k: int | None = None
    gain: Gain = "exp2"

    loop = staticmethod(_soft_positions)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_k(self.k)
        object.__setattr__(self, "gain", check_gain(self.gain))

    def tables(self, queries: Queries) -> PositionTables:
        """Return the cut-off, 1 / DCG_max and the gains."""
        levels = queries.levels
        a = gains(levels.label, self.gain)
        ideal = levels.sum_by_query(a * discount_sums(queries, self.k))
        scale = np.divide(1, ideal, out=np.zeros_like(ideal), where=ideal > 0)
        cut = np.inf if self.k is None else self.k + 0.5
        return PositionTables(float(self.tau), False, cut, scale, levels, a)

    def idle(self, queries: Queries, tables: PositionTables) -> IntArray:
        """Return the queries of a single grade or with DCG_max = 0."""
        return np.union1d(super().idle(queries, tables), np.flatnonzero(tables.scale == 0))


@dataclass(frozen=True, kw_only=True)
class SmoothMRR(Smoothed):
    """1 - the reciprocal of the soft position of the best documents, the mean over them where several are best.

    Parameters
    ----------
    tau
        As for `Smoothed`.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 6-7.
    """

    loop = staticmethod(_soft_positions)

    def tables(self, queries: Queries) -> PositionTables:
        """Return the best documents in the place of gains."""
        levels = queries.levels
        best = np.where(levels.position == 1, 1 / levels.sizes, 0.0)
        return PositionTables(float(self.tau), True, np.inf, np.ones(queries.n_queries), levels, best)


@dataclass(frozen=True, kw_only=True)
class SmoothERR(Smoothed):
    """1 - expected reciprocal rank of soft positions.

    Parameters
    ----------
    tau
        As for `Smoothed`.
    gain
        Gain a in the chance R that a document satisfies: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set, for a_max in R; None for the labels seen when binding. Give it when shards of a data set must agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 6-7, table 7.
    """

    gain: Gain = "exp2"
    grades: Grades = None

    loop = staticmethod(_err)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def tables(self, queries: Queries) -> ERRTables:
        """Return R and 1 - R."""
        levels = queries.levels
        a = gains(levels.label, self.gain)
        top = gains(label_set(queries, self.grades)[-1:], self.gain) + 1
        return ERRTables(float(self.tau), levels, a / top, (top - a) / top)
