r"""CS-ListMLE: cost-sensitive ListMLE, a convex bound on 1 - NDCG@k.

Olinto, *Kernelized Cost-Sensitive Listwise Ranking* (2016), eq. 3.14-3.21, after Lu et al. (2010):

    l = 1/DCG sum_j beta_j log2( 1 + sum_{t: y_t < y_j} alpha_jt e^{f_t - f_j} )

With the discount b(r) = 1 / log2(1 + r), its slope Db(r) = -ln 2 / ((1 + r) ln^2(1 + r)) for r <= k and 0 beyond, the
gain a, the label position pi, DCG = sum over pi_j <= k of a_j b(pi_j), and weights w_jt = alpha_jt beta_j

- ``weights="ndcg"`` (theorem 3): w_jt = c_j + c_t, c = -a Db(pi), beta_j = sum_t w_jt. Then l + C2 >= 1 - NDCG@k with
  C2 = [ sum_i a_i / log2(1 + k) (dropped for k = None) + sum over tied pairs of (c_i + c_j) ] / DCG.
- ``weights="grade"`` (the appendix): w_jt = (y_j - y_t) / sum y, beta_j = y_j / sum y.

A query with DCG = 0 contributes nothing, nor does a document with beta_j = 0. With kappa = 1 / (DCG ln 2),
T_j = sum_{t: y_t < y_j} w_jt e^{f_t} / beta_j, r_j = 1 / (e^{f_j} + T_j) and q = T r,

    gradient_i = kappa ( e^{f_i} V_i - beta_i q_i ),   V_i = sum_{j: y_j > y_i} w_ji r_j
    H_ii = kappa ( beta_i q_i (1 - q_i) + e^{f_i} V_i - e^{2 f_i} Q_i )
    Q_i = sum_{j: y_j > y_i} w_ji^2 r_j^2 / beta_j
    (H v)_i = kappa ( beta_i (1 - q_i)(v_i - vbar_i) + e^{f_i} [ v_i V_i - sum_{j: y_j > y_i} w_ji r_j vbar_j ] )
    vbar_j = (1 - q_j) v_j + r_j sum_{t: y_t < y_j} w_jt e^{f_t} v_t / beta_j

Every document j spreads pi_j = (1 - q_j) on itself and q_j on the lower grades, there with mean x: xbar_j. Hence

    X'HX = sum_i D_i x_i x_i' - sum_g ( a_g b_g' + b_g a_g' ),   D_i = kappa ( beta_i q_i (1 - q_i) + e^{f_i} V_i )
    b_g = xbar_g,   a_g = kappa sum_{j in g} beta_j ( q_j (1 - q_j) x_j + q_j^2 xbar_g / 2 )

(H is derived from l; eq. 3.21 and 4.3 of the thesis are not its second derivative.) Both weightings are separable in j
and t, so T, V and Q are sums over grades: O(n), also when all labels differ, where the thesis needs O(n^2). For "ndcg"
they are sums of r times powers of c; for "grade" the same moments are taken about the current grade and moved from
grade to grade by non-negative steps, since y_j - y_t taken apart would cancel.

Every sum of exponentials is relative to the largest score in it: r_j to m_<, the largest score among lower grades, and
V, Q to m_<=, that of grades up to the document's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from boostlist.checks import check_choice, check_k
from boostlist.gains import Gain, check_gain, gains
from boostlist.losses.base import VALUE, Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.exponential import exp
from boostlist.losses.shared_loops import NEAR, gather_scores, stage_rows
from boostlist.parallel import compiled, inlined, inner

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.levels import Levels
    from boostlist.queries import Queries


class Tables(NamedTuple):
    """Whether weights are by grade; kappa by query; the levels, with c and beta of each."""

    graded: bool
    kappa: FloatArray
    levels: Levels
    c: FloatArray
    beta: FloatArray


class Sweep(NamedTuple):
    """By document of a query, grades ascending: p = e^{f - m_<=} and r, relative to m_<; by grade: m_<= and T."""

    p: FloatArray
    r: FloatArray
    m: FloatArray
    T: FloatArray


@inlined
def _sweep(most):  # type: ignore[no-untyped-def]
    """Return room for so many documents."""
    return Sweep(np.empty(most), np.empty(most), np.empty(most), np.empty(most))


@inlined
def _lower_sum(graded, c, beta, g, first, E, F):  # type: ignore[no-untyped-def]
    """Return T_g and F, given E and F over the grades below g; for "grade", F = sum (y_g - y_t) e^{f_t} moves along."""
    if graded:
        if g > first:
            F += (c[g] - c[g - 1]) * E
        T = F
    else:
        T = c[g] * E + F
    return (T / beta[g] if beta[g] > 0 else 0.0), F


@inner
def _forward(q, f, tables, sweep):  # type: ignore[no-untyped-def]
    """Fill the sweep for query q; return its levels first:last, and where its documents begin."""
    graded, c, beta, order, document = tables.graded, tables.c, tables.beta, tables.levels.order, tables.levels.document
    first, last = tables.levels.start[q], tables.levels.start[q + 1]
    p, r, m, T = sweep
    begin, n = document[first], document[last] - document[first]
    lowest, highest = gather_scores(f, 1.0, order, begin, n, r)
    near = highest - lowest < NEAR
    if near:
        for i in range(n):
            p[i] = exp(r[i] - highest)
    top = highest if near else -np.inf
    below, E, F = top, 0.0, 0.0
    for g in range(first, last):
        low, high = document[g] - begin, document[g + 1] - begin
        t, F = _lower_sum(graded, c, beta, g, first, E, F)
        growth = shrink = 1.0
        if not near:
            for i in range(low, high):
                top = max(top, r[i])
            for i in range(low, high):
                p[i] = np.exp(r[i] - top)
            growth, shrink = np.exp(min(top - below, NEAR)), np.exp(below - top)
        total = 0.0
        for i in range(low, high):
            total += p[i]
        if t == 0:
            for i in range(low, high):
                r[i] = 0.0
        elif top - below < NEAR:
            for i in range(low, high):
                r[i] = 1 / (p[i] * growth + t)
        else:
            for i in range(low, high):
                r[i] = 1 / (np.exp(r[i] - below) + t)
        E = E * shrink + total
        F = F * shrink + (0.0 if graded else c[g] * total)
        below = top
        m[g - first], T[g - first] = top, t
    return first, last, begin


@compiled
def _cs_listmle(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    graded, levels, c, beta = tables.graded, tables.levels, tables.c, tables.beta
    order, document = levels.order, levels.document
    sweep = _sweep(lists.longest)
    p, r, m, T = sweep
    for query in lists.query:
        rows = slice(lists.start[query], lists.start[query + 1])
        fq, gradient, diag = f[rows], out.gradient[rows], out.diag[rows]
        first, last, begin = _forward(query, f, tables, sweep)
        scale = lists.weight[query] * tables.kappa[query]
        # Moments over higher grades, relative to m_<=: of r in R, V; of r^2 / beta in S, P, Q (degrees 0, 1, 2).
        R = V = S = P = Q = loss = 0.0
        for g in range(last - 1, first - 1, -1):
            low, high = document[g], document[g + 1]
            if graded:
                if g + 1 < last:
                    d = c[g + 1] - c[g]
                    Q += d * (2 * P + d * S)
                    P += d * S
                    V += d * R
                V_g, Q_g = V, Q
            else:
                V_g, Q_g = V + c[g] * R, Q + c[g] * (2 * P + c[g] * S)
            t = T[g - first]
            r1 = r2 = 0.0
            for i in range(low, high):
                ri, pi = r[i - begin], p[i - begin]
                q = t * ri
                bq, pV = beta[g] * q, pi * V_g
                gradient[order[i]] = scale * (pV - bq)
                diag[order[i]] = scale * (bq * max(1 - q, 0.0) + max(pV - pi * pi * Q_g, 0.0))
                r1 += ri
                r2 += ri * ri
            if g == first:
                break
            # The next grade down reads these sums relative to its own m_<=, which is m_< of this grade, as r is.
            below, top = m[g - first - 1], m[g - first]
            if below < top:
                t = np.exp(below - top)
                R, V = R * t, V * t
                S, P, Q = S * t * t, P * t * t, Q * t * t
            t = T[g - first]
            if t > 0:
                r2 /= beta[g]
                R += r1
                S += r2
                if not graded:
                    V += c[g] * r1
                    P += c[g] * r2
                    Q += c[g] * c[g] * r2
            if need & VALUE and t > 0:
                for i in range(low, high):
                    x = fq[order[i]] - below
                    # log(1 + T e^{-x}), by the form that keeps its digits
                    loss += beta[g] * (np.log1p(t * np.exp(-x)) if x > -NEAR else np.log(np.exp(x) + t) - x)
        out.value[query] = tables.kappa[query] * loss


@compiled
def _cs_listmle_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    graded, levels, c, beta = tables.graded, tables.levels, tables.c, tables.beta
    order, document = levels.order, levels.document
    sweep = _sweep(lists.longest)
    p, r, m, T = sweep
    vbar = np.empty_like(p)
    for query in lists.query:
        rows = slice(lists.start[query], lists.start[query + 1])
        vq, out_q = v[rows], out[rows]
        first, last, begin = _forward(query, f, tables, sweep)
        scale = lists.weight[query] * tables.kappa[query]
        E = F = 0.0
        top = m[0]
        for g in range(first, last):
            Tv, F = _lower_sum(graded, c, beta, g, first, E, F)
            total = 0.0
            for i in range(document[g], document[g + 1]):
                vi, ri = vq[order[i]], r[i - begin]
                vbar[i - begin] = vi + ri * (Tv - T[g - first] * vi)
                total += p[i - begin] * vi
            shrink = np.exp(top - m[g - first])
            top = m[g - first]
            E = E * shrink + total
            F = F * shrink + (0.0 if graded else c[g] * total)
        R = V = Rv = Vv = 0.0
        for g in range(last - 1, first - 1, -1):
            if graded:
                if g + 1 < last:
                    d = c[g + 1] - c[g]
                    V += d * R
                    Vv += d * Rv
                V_g, Vv_g = V, Vv
            else:
                V_g, Vv_g = V + c[g] * R, Vv + c[g] * Rv
            r1 = r1v = 0.0
            for i in range(document[g], document[g + 1]):
                vi, ri = vq[order[i]], r[i - begin]
                own = beta[g] * (1 - T[g - first] * ri) * (vi - vbar[i - begin]) if ri > 0 else 0.0
                out_q[order[i]] = scale * (own + p[i - begin] * (vi * V_g - Vv_g))
                r1 += ri
                r1v += ri * vbar[i - begin]
            if g > first:
                t = np.exp(m[g - first - 1] - m[g - first])
                R, V, Rv, Vv = R * t + r1, V * t, Rv * t + r1v, Vv * t
                if not graded:
                    V += c[g] * r1
                    Vv += c[g] * r1v


@compiled
def _lower_means(first, last, tables, sweep, X, scale, A, B):  # type: ignore[no-untyped-def]
    """Fill a_g and b_g for the grades of a query, ascending; X is taken relative to its first row."""
    graded, c, beta, order, document = tables.graded, tables.c, tables.beta, tables.levels.order, tables.levels.document
    p, r, m, T = sweep
    columns = X.shape[1]
    E, F = np.zeros(columns), np.zeros(columns)
    top = m[0]
    begin = document[first]
    for g in range(first, last):
        b, a = B[g - first], A[g - first]
        a[:] = 0.0
        t = T[g - first]
        for k in range(columns):
            lower, F[k] = _lower_sum(graded, c, beta, g, first, E[k], F[k])
            b[k] = lower / t if t > 0 else 0.0
        shrink = np.exp(top - m[g - first])
        top = m[g - first]
        E *= shrink
        F *= shrink
        squares = 0.0
        for i in range(document[g], document[g + 1]):
            pi, row, q = p[i - begin], order[i], t * r[i - begin]
            own = scale * beta[g] * q * max(1 - q, 0.0)
            squares += scale * beta[g] * q * q
            weight = 0.0 if graded else c[g] * pi
            for k in range(columns):
                x = X[row, k] - X[0, k]
                a[k] += own * x
                E[k] += pi * x
                F[k] += weight * x
        for k in range(columns):
            a[k] += 0.5 * squares * b[k]


@compiled
def _cs_listmle_stages(lists, f, stages, tables):  # type: ignore[no-untyped-def]
    graded, levels, c, beta = tables.graded, tables.levels, tables.c, tables.beta
    order, document = levels.order, levels.document
    sweep = _sweep(lists.longest)
    p, r, m, T = sweep
    for query in lists.query:
        X, S, A, B = stage_rows(query, lists, stages)
        first, last, begin = _forward(query, f, tables, sweep)
        scale = lists.weight[query] * tables.kappa[query]
        _lower_means(first, last, tables, sweep, X, scale, A, B)
        R = V = 0.0
        for g in range(last - 1, first - 1, -1):
            if graded:
                if g + 1 < last:
                    V += (c[g + 1] - c[g]) * R
                V_g = V
            else:
                V_g = V + c[g] * R
            r1 = 0.0
            for i in range(document[g], document[g + 1]):
                ri, row = r[i - begin], order[i]
                q = T[g - first] * ri
                root = np.sqrt(scale * (beta[g] * q * max(1 - q, 0.0) + p[i - begin] * V_g))
                for k in range(X.shape[1]):
                    S[row, k] = root * (X[row, k] - X[0, k])
                r1 += ri
            if g > first:
                t = np.exp(m[g - first - 1] - m[g - first])
                R, V = R * t + r1, V * t
                if not graded:
                    V += c[g] * r1


@dataclass(frozen=True, kw_only=True)
class CsListMLE(CompiledLoss):
    """Cost-sensitive ListMLE: a convex upper bound on 1 - NDCG@k, up to a constant.

    Parameters
    ----------
    k
        Cut-off of the NDCG that is bounded; None for the whole list.
    weights
        ``"ndcg"``: the weights of theorem 3, by gain and slope of the discount. ``"grade"``: differences of grades, the
        weights of the thesis's appendix.
    gain
        Gain a: ``"exp2"`` for 2^y - 1, ``"linear"`` for y, or a table by grade.

    References
    ----------
    Olinto: Kernelized cost-sensitive listwise ranking. Master's thesis, RIT 2016. Eq. 3.14-3.20 and appendix.
    """

    k: int | None = None
    weights: Literal["ndcg", "grade"] = "ndcg"
    gain: Gain = "exp2"

    family = "bound on NDCG"
    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, step=4.0, cost="n")
    loop = staticmethod(_cs_listmle)
    hessp_loop = staticmethod(_cs_listmle_hessp)
    stage_loop = staticmethod(_cs_listmle_stages)

    def __post_init__(self) -> None:
        check_choice("weights", self.weights, ("ndcg", "grade"))
        check_k(self.k)
        object.__setattr__(self, "gain", check_gain(self.gain))

    def tables(self, queries: Queries) -> Tables:
        """Return kappa, c and beta."""
        levels = queries.levels
        count, position = levels.sizes, levels.position
        a = gains(levels.label, self.gain)
        log = np.log1p(position)
        inside = position <= (self.k or np.inf)
        if self.weights == "grade":
            kappa = levels.sum_by_query(count * levels.label)
            c = beta = levels.label
        else:
            # Only ratios of gains count. Relative to the largest of the query their squares are finite.
            a = a / np.maximum(a[levels.start[1:] - 1], np.finfo(float).tiny)[levels.query]
            kappa = np.ones(queries.n_queries)
            c = np.where(inside, a * np.log(2) / ((1 + position) * log**2), 0.0)
            beta = levels.sum_below(c * count) + c * levels.sum_below(count.astype(np.float64))
        kappa *= levels.sum_by_query(np.where(inside, count * a * np.log(2) / log, 0.0))
        kappa = np.divide(1 / np.log(2), kappa, out=np.zeros_like(kappa), where=kappa > 0)
        return Tables(self.weights == "grade", kappa, levels, c, beta)

    def idle(self, queries: Queries, tables: Tables) -> IntArray:
        """Return the queries with DCG = 0."""
        return np.flatnonzero(tables.kappa == 0)
