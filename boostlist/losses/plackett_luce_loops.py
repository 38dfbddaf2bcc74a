r"""Loops of the Plackett-Luce family, for the formula of `plackett_luce`: derivatives by sums over grades.

With O_g the sum of e^f over grade g, L_g that over all lower grades, and Z_j = L_g + t_j O_g at the stages j of the
grade, all t_j = 1 by Breslow's rule, let

    s0 = sum W / Z,  s1 = sum W t / Z,  r0 = sum W / Z^2,  r1 = sum W t / Z^2,  r2 = sum W t^2 / Z^2

over its stages, c_g and e_g the sums of s0 and r0 over higher grades, and V_g and V_<g the sums of e^f v over the grade
and below it:

    gradient_k = e^{f_k} (c_g + s1) - mean of W over the grade,   H_kk = e^{f_k} (c_g + s1) - e^{2 f_k} (e_g + r2)
    (H v)_k = e^{f_k} [ v_k (c_g + s1) - (r1 V_<g + r2 V_g) - sum over h > g of (r0 V_<h + r1 V_h) ]

For a matrix X of features with sums x_g and x_<g of e^f x, likewise,

    X'HX = sum_k e^{f_k} (c_g + s1) x_k x_k' - sum_g [ x_<g (r0 x_<g + r1 x_g)' + x_g (r1 x_<g + r2 x_g)' ]

All sums are prefix or suffix sums over grades: O(n). Sums of e^f over a grade and below are kept relative to e^{m_g},
m_g the largest score among them, since a grade may lie hundreds below the list's maximum: scores 0, -800, -801 would
give 0/0 otherwise. Where scores do not spread so far, m_g is the list's maximum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.base import VALUE
from boostlist.losses.exponential import exp
from boostlist.losses.shared_loops import NEAR, gather_scores, stage_rows
from boostlist.parallel import compiled, inner

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.levels import Levels


class Tables(NamedTuple):
    """What the loops read: direction, rule for ties, levels, weights.

    Attributes
    ----------
    sign
        -1 where the list is built from the bottom, else 1.
    efron
        Whether tied documents go by Efron's rule, else Breslow's.
    levels
        The levels, in the direction in which the list is built.
    W
        Stage weight of each level; under Efron's rule of each place, in ascending order, as ``levels.order`` has them.
    """

    sign: float
    efron: bool
    levels: Levels
    W: FloatArray


class Sweep(NamedTuple):
    """For the scores x = sign * f of a query, grades ascending: p_i = e^{x_i - m_g}, m_g, own = O_g, lower = L_g.

    The last two are relative to e^{m_g}.
    """

    p: FloatArray
    m: FloatArray
    own: FloatArray
    lower: FloatArray


@compiled
def _sweep(most):  # type: ignore[no-untyped-def]
    """Return room for so many documents."""
    return Sweep(np.empty(most), np.empty(most), np.empty(most), np.empty(most))


@inner
def _forward(q, f, tables, sweep):  # type: ignore[no-untyped-def]
    """Fill the sweep for query q; return its levels first:last, and where its documents begin."""
    sign, order, document = tables.sign, tables.levels.order, tables.levels.document
    first, last = tables.levels.start[q], tables.levels.start[q + 1]
    p, m, own, lower = sweep
    begin, n = document[first], document[last] - document[first]
    lowest, highest = gather_scores(f, sign, order, begin, n, p)
    near = highest - lowest < NEAR
    if near:
        for i in range(n):
            p[i] = exp(p[i] - highest)
    top, total = highest if near else -np.inf, 0.0
    for g in range(first, last):
        low, high = document[g] - begin, document[g + 1] - begin
        if not near:
            below = top
            for i in range(low, high):
                top = max(top, p[i])
            for i in range(low, high):
                p[i] = np.exp(p[i] - top)
            total *= np.exp(below - top)
        grade = 0.0
        for i in range(low, high):
            grade += p[i]
        m[g - first] = top
        own[g - first] = grade
        lower[g - first] = total
        total += grade
    return first, last, begin


@inner
def _breslow_sums(n, W, own, lower):  # type: ignore[no-untyped-def]
    """Return s0, s1, r0, r1, r2 of a grade with n documents and the weight W by Breslow's rule."""
    s = n * W / (own + lower)
    r = s / (own + lower)
    return s, s, r, r, r


@inner
def _efron_sums(W, own, lower):  # type: ignore[no-untyped-def]
    """Return s0, s1, r0, r1, r2 of a grade whose places have the weights W by Efron's rule."""
    s0 = s1 = r0 = r1 = r2 = 0.0
    for j in range(W.size):
        t = (j + 1) / W.size
        Z = lower + t * own
        s = W[j] / Z
        r = s / Z
        s0 += s
        s1 += t * s
        r0 += r
        r1 += t * r
        r2 += t * t * r
    return s0, s1, r0, r1, r2


@inner
def _efron_loss(W, own, lower, gap):  # type: ignore[no-untyped-def]
    """Return sum W (gap + log Z) over the stages of a grade."""
    loss = 0.0
    for j in range(W.size):
        loss += W[j] * (gap + np.log(lower + (j + 1) / W.size * own))
    return loss


@compiled
def plackett_luce(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Write value, gradient and diagonal."""
    sign, efron, levels, W = tables
    order, document = levels.order, levels.document
    sweep = _sweep(lists.longest)
    p, m, own, lower = sweep
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        fq, gradient, diag = f[rows], out.gradient[rows], out.diag[rows]
        first, last, begin = _forward(q, f, tables, sweep)
        c = e = loss = 0.0
        top = m[last - first - 1]
        for g in range(last - 1, first - 1, -1):
            low, high = document[g], document[g + 1]
            if m[g - first] < top:
                t = np.exp(m[g - first] - top)
                c *= t
                e *= t * t
                top = m[g - first]
            n, grade, below = high - low, own[g - first], lower[g - first]
            if efron:
                s0, s1, r0, _, r2 = _efron_sums(W[low:high], grade, below)
            else:
                s0, s1, r0, _, r2 = _breslow_sums(n, W[g], grade, below)
            # The grade's own stages, s1 p - mean W, from n p - O and L: a list in perfect order keeps its digits.
            slope, push = s1 / n, s0 * below / n
            for i in range(low, high):
                pi = p[i - begin]
                gradient[order[i]] = weight * sign * (pi * c + (slope * (n * pi - grade) - push))
                diag[order[i]] = weight * max(pi * (c + s1) - pi * pi * (e + r2), 0.0)
            c += s0
            e += r0
            if need & VALUE:
                if n == 1 and below <= grade:
                    loss += (W[low] if efron else W[g]) * np.log1p(below / grade)
                    continue
                gap = 0.0
                for i in range(low, high):
                    gap += (top - sign * fq[order[i]]) / n
                if efron:
                    loss += _efron_loss(W[low:high], grade, below, gap)
                else:
                    loss += n * W[g] * (gap + np.log(grade + below))
        out.value[q] = loss


@compiled
def plackett_luce_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    """Write H v."""
    _, efron, levels, W = tables
    order, document = levels.order, levels.document
    sweep = _sweep(lists.longest)
    p, m, own, lower = sweep
    V, V_lower = np.empty_like(m), np.empty_like(m)
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        vq, out_q = v[rows], out[rows]
        first, last, begin = _forward(q, f, tables, sweep)
        pv, top = 0.0, m[0]
        for g in range(first, last):
            if m[g - first] > top:
                pv *= np.exp(top - m[g - first])
                top = m[g - first]
            grade = 0.0
            for i in range(document[g], document[g + 1]):
                grade += p[i - begin] * vq[order[i]]
            V[g - first], V_lower[g - first] = grade, pv
            pv += grade
        c = d = 0.0
        for g in range(last - 1, first - 1, -1):
            low, high = document[g], document[g + 1]
            if m[g - first] < top:
                t = np.exp(m[g - first] - top)
                c *= t
                d *= t
                top = m[g - first]
            n, grade, below = high - low, own[g - first], lower[g - first]
            if efron:
                s0, s1, r0, r1, r2 = _efron_sums(W[low:high], grade, below)
            else:
                s0, s1, r0, r1, r2 = _breslow_sums(n, W[g], grade, below)
            Vg, Vl = V[g - first], V_lower[g - first]
            mean = d + r1 * Vl + r2 * Vg
            for i in range(low, high):
                out_q[order[i]] = weight * p[i - begin] * (vq[order[i]] * (c + s1) - mean)
            c += s0
            d += r0 * Vl + r1 * Vg


@compiled
def plackett_luce_stages(lists, f, stages, tables):  # type: ignore[no-untyped-def]
    """Write S, A and B of X'HX."""
    _, efron, levels, W = tables
    order, document = levels.order, levels.document
    sweep = _sweep(lists.longest)
    p, m, own, lower = sweep
    columns = stages.X.shape[1]
    x, x_lower = np.empty(columns), np.empty(columns)
    for q in lists.query:
        weight = lists.weight[q]
        X, S, A, B = stage_rows(q, lists, stages)
        first, last, begin = _forward(q, f, tables, sweep)
        x_lower[:] = 0.0
        top = m[0]
        for g in range(first, last):
            low, high = document[g], document[g + 1]
            if m[g - first] > top:
                x_lower *= np.exp(top - m[g - first])
                top = m[g - first]
            x[:] = 0.0
            for i in range(low, high):
                pi, row = p[i - begin], order[i]
                for k in range(columns):
                    x[k] += pi * (X[row, k] - X[0, k])
            n, grade, below = high - low, own[g - first], lower[g - first]
            if efron:
                _, _, r0, r1, r2 = _efron_sums(W[low:high], grade, below)
            else:
                _, _, r0, r1, r2 = _breslow_sums(n, W[g], grade, below)
            half = 0.5 * weight
            if efron:
                a = 2 * (g - first)
                for k in range(columns):
                    A[a, k] = half * (r0 * x_lower[k] + r1 * x[k])
                    B[a, k] = x_lower[k]
                    A[a + 1, k] = half * (r1 * x_lower[k] + r2 * x[k])
                    B[a + 1, k] = x[k]
                    x_lower[k] += x[k]
            else:
                for k in range(columns):
                    x_lower[k] += x[k]
                    A[g - first, k] = half * r0 * x_lower[k]
                    B[g - first, k] = x_lower[k]
        c = 0.0
        for g in range(last - 1, first - 1, -1):
            low, high = document[g], document[g + 1]
            if m[g - first] < top:
                c *= np.exp(m[g - first] - top)
                top = m[g - first]
            n, grade, below = high - low, own[g - first], lower[g - first]
            if efron:
                s0, s1, _, _, _ = _efron_sums(W[low:high], grade, below)
            else:
                s0, s1, _, _, _ = _breslow_sums(n, W[g], grade, below)
            for i in range(low, high):
                root, row = np.sqrt(weight * p[i - begin] * (c + s1)), order[i]
                for k in range(columns):
                    S[row, k] = root * (X[row, k] - X[0, k])
            c += s0
