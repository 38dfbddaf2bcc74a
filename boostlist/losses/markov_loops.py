r"""Loops of the Markov random field losses; notation and formulas are those of `markov`.

WpLL runs over blocks of documents in ascending order of grade, label by label, so that all is vector operations. The
diagonal is taken as gamma^2 [ sum_i W_i Var_{P_i} s + W_k ( Var_{P_k} a - 2 Cov_{P_k}(a, s) ) ], with
s = sign(v - y_k). As a(v) ascends, s (a(v) - a(y_k)) = |a(v) - a(y_k)|.

WUB runs over pairs, document i after j in ascending order of grade. For y_i > y_j both derivatives in d are rational in
r = e^{-gamma d}: with c = 1 / b and den = 1 + 2 c r + r^2,

    slope / gamma = -2 r (c + r) / den,   curvature / gamma^2 = 2 r (2 r + c (1 + r^2)) / den^2

so that one exp per document is enough. A tied pair has the same with gamma added to the slope and gamma d to the value;
over a grade these additions are a sum with known coefficients.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.base import VALUE
from boostlist.losses.exponential import exp
from boostlist.losses.ratios import FAR, exponentials, ratios
from boostlist.losses.shared_loops import gather, scatter, scatter_both, spread_by_grade
from boostlist.parallel import REORDERED, compiled, inlined, inner, vectorized

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.levels import Levels
    from boostlist.losses.weights import Factors

# Documents that WpLL works on at a time: their scratch stays in the fastest cache however long the list is.
_BLOCK = 256
# A label of probability e^-100 counts for nothing beside one of at least 1 / 64, and exp is slow where it underflows.
_NOTHING = -100.0
# Times the largest argument, |L|^2 e^(2 FAR), this is still finite.
_LARGE = 1e100


class WpLLTables(NamedTuple):
    """gamma by query, |L|; the levels, with the place of each in L and its W."""

    gamma: FloatArray
    labels: int
    levels: Levels
    place: IntArray
    W: FloatArray


class WUBTables(NamedTuple):
    """c = 1 / b and the factor |L| b; gamma and kappa by query; W / kappa as factors by level; the levels."""

    c: float
    factor: float
    gamma: FloatArray
    kappa: FloatArray
    W: Factors
    levels: Levels


@vectorized
def _sum(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(x.size):
        total += x[k]
    return total


@inner
def _margins(x, first, last, gamma, tables, a, S):  # type: ignore[no-untyped-def]
    """Fill gamma a(v) and gamma S(v) for every v of the label set, the scores x being in ascending order of grade."""
    document, place = tables.levels.document, tables.place
    begin = document[first]
    a[:] = 0.0
    S[:] = 0.0
    for g in range(first, last):
        S[place[g]] = _sum(x[document[g] - begin : document[g + 1] - begin])
        a[place[g]] = document[g + 1] - document[g]
    number, total = np.sum(a), np.sum(S)
    below = sum_below = 0.0
    for v in range(a.size):
        count, scores = a[v], S[v]
        a[v] = gamma * (2 * below + count - number)
        S[v] = gamma * (2 * sum_below + scores - total)
        below += count
        sum_below += scores


@vectorized
def _raise_top(x, a, S, E, top):  # type: ignore[no-untyped-def]
    for k in range(x.size):
        E[k] = a * x[k] - S
        top[k] = max(top[k], E[k])


@vectorized
def _add_label(top, E, Z):  # type: ignore[no-untyped-def]
    for k in range(E.size):
        E[k] = exp(max(E[k] - top[k], _NOTHING))
        Z[k] += E[k]


@inner
def _softmax(x, a, S, E, top, Z):  # type: ignore[no-untyped-def]
    """Fill the rows v of E with e^{a(v) x - S(v) - top}, top with the largest exponent, and Z with the sums of rows.

    The exponents are kept from the one pass to the other: computed again, perhaps with another rounding, at scores of
    1e20 the largest would differ from itself by thousands.
    """
    top[:] = -np.inf
    Z[:] = 0.0
    for v in range(a.size):
        _raise_top(x, a[v], S[v], E[v * _BLOCK : v * _BLOCK + x.size], top)
    for v in range(a.size):
        _add_label(top, E[v * _BLOCK : v * _BLOCK + x.size], Z)


@vectorized
def _moments(E, inverse, a, own, mean, square, mixed):  # type: ignore[no-untyped-def]
    """Add a label v with probability E inverse to the means of d = a(v) - a(y), d^2 and d sign(v - y) = |d|."""
    for k in range(E.size):
        p = E[k] * inverse[k]
        step = a - own[k]
        mean[k] += step * p
        square[k] += step * step * p
        mixed[k] += abs(step) * p


@vectorized
def _spreads(E, inverse, W, lead):  # type: ignore[no-untyped-def]
    """Return sum W P and the sum of W Var sign(v - u) = W [ 1 - P - (E sign)^2 ], for the label u with P = E inverse.

    lead holds the probability of u and above less that of labels below u, and moves on to the next.
    """
    probability = variance = 0.0
    for k in range(E.size):
        p = E[k] * inverse[k]
        sign = lead[k] - p
        probability += W[k] * p
        variance += W[k] * ((1 - p) - sign * sign)
        lead[k] = sign - p
    return probability, variance


@inner
def _signed_sums(D, gamma):  # type: ignore[no-untyped-def]
    """Replace D(u) by gamma sum_v sign(v - u) D(v)."""
    total, below = np.sum(D), 0.0
    for v in range(D.size):
        D[v], below = gamma * (total - 2 * below - D[v]), below + D[v]


@compiled
def wpll(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal of the weighted pseudo-likelihood."""
    gammas, labels, levels, place, W = tables
    document = levels.document
    a, E = np.empty(labels), np.empty(labels * _BLOCK)
    S, D, C = np.empty_like(a), np.empty_like(a), np.empty_like(a)
    scores = np.empty(lists.longest)
    slope, curvature = np.empty_like(scores), np.empty_like(scores)
    top_, Z_, inverse_, own_ = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    mean_, square_, mixed_ = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    W_, lead_, sign_ = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for q in lists.query:
        rows, weight, gamma = slice(lists.start[q], lists.start[q + 1]), lists.weight[q], gammas[q]
        gradient, diag, order = out.gradient[rows], out.diag[rows], levels.order[rows]
        begin, size = rows.start, order.size
        first, last = levels.start[q], levels.start[q + 1]
        if size == 1:
            gradient[0] = diag[0] = 0.0
            out.value[q] = W[first] * np.log(labels)
            continue
        gather(f, levels.order, begin, size, scores)
        # Only differences count; f[begin] is as good a zero as any.
        for k in range(size):
            scores[k] -= f[begin]
        _margins(scores, first, last, gamma, tables, a, S)
        D[:] = 0.0
        C[:] = 0.0
        for g in range(first, last):
            D[place[g]] = -W[g] * (document[g + 1] - document[g])
        loss = 0.0
        for left in range(0, size, _BLOCK):
            n = min(_BLOCK, size - left)
            x, top, Z, inverse, own, Wk = scores[left : left + n], top_[:n], Z_[:n], inverse_[:n], own_[:n], W_[:n]
            mean, square, mixed, lead, sign = mean_[:n], square_[:n], mixed_[:n], lead_[:n], sign_[:n]
            mean[:] = 0.0
            square[:] = 0.0
            mixed[:] = 0.0
            lead[:] = 1.0
            for g in range(first, last):
                low, high = max(document[g] - begin - left, 0), min(document[g + 1] - begin - left, n)
                for k in range(low, high):
                    own[k] = a[place[g]]
                    Wk[k] = W[g]
            _softmax(x, a, S, E, top, Z)
            for k in range(n):
                inverse[k] = 1 / Z[k]
            g = first
            for v in range(labels):
                Ev = E[v * _BLOCK : v * _BLOCK + n]
                _moments(Ev, inverse, a[v], own, mean, square, mixed)
                probability, variance = _spreads(Ev, inverse, Wk, lead)
                D[v] += probability
                C[v] += variance
                if g < last and place[g] == v:
                    low, high = max(document[g] - begin - left, 0), min(document[g + 1] - begin - left, n)
                    for k in range(low, high):
                        sign[k] = lead[k] + Ev[k] * inverse[k]
                        if need & VALUE:
                            loss += W[g] * (np.log(Z[k]) + top[k] - (a[v] * x[k] - S[v]))
                    g += 1
            slopes, curvatures = slope[left : left + n], curvature[left : left + n]
            for k in range(n):
                slopes[k] = Wk[k] * mean[k]
            for k in range(n):
                covariance = mixed[k] - mean[k] * sign[k]
                curvatures[k] = Wk[k] * (square[k] - mean[k] * mean[k] - 2 * gamma * covariance)
        out.value[q] = loss
        _signed_sums(D, gamma)
        for g in range(first, last):
            v = place[g]
            for k in range(document[g] - begin, document[g + 1] - begin):
                gradient[order[k]] = weight * (slope[k] - D[v])
                diag[order[k]] = weight * max(curvature[k] + gamma * gamma * C[v], 0.0)


@compiled
def wpll_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    """Hessian-vector product of the weighted pseudo-likelihood."""
    gammas, labels, levels, place, W = tables
    document = levels.document
    a, E = np.empty(labels), np.empty(labels * _BLOCK)
    S, dS, D = np.empty_like(a), np.empty_like(a), np.empty_like(a)
    x, top, Z = np.empty(lists.longest), np.empty(_BLOCK), np.empty(_BLOCK)
    dx = np.empty_like(x)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        begin, out_q, order = rows.start, out[rows], levels.order[rows]
        first, last = levels.start[q], levels.start[q + 1]
        gather(f, levels.order, begin, out_q.size, x)
        gather(v, levels.order, begin, out_q.size, dx)
        for k in range(out_q.size):
            x[k] -= f[begin]
            dx[k] -= v[begin]
        _margins(dx, first, last, gammas[q], tables, a, dS)
        _margins(x, first, last, gammas[q], tables, a, S)
        D[:] = 0.0
        for g in range(first, last):
            y = place[g]
            for left in range(document[g], document[g + 1], _BLOCK):
                n = min(_BLOCK, document[g + 1] - left)
                _softmax(x[left - begin : left - begin + n], a, S, E, top[:n], Z[:n])
                for k in range(n):
                    direction = dx[left - begin + k]
                    mean = own = 0.0
                    for u in range(labels):
                        mean += E[u * _BLOCK + k] * (a[u] * direction - dS[u])
                    mean /= Z[k]
                    for u in range(labels):
                        change = W[g] * E[u * _BLOCK + k] / Z[k] * (a[u] * direction - dS[u] - mean)
                        own += change * (a[u] - a[y])
                        D[u] += change
                    out_q[order[left - begin + k]] = own
        _signed_sums(D, gammas[q])
        for g in range(first, last):
            for i in range(document[g] - begin, document[g + 1] - begin):
                out_q[order[i]] = lists.weight[q] * (out_q[order[i]] - D[place[g]])


@inlined
def _wub_row(r, i, hi, W, A, B, c, gradient, diag):  # type: ignore[no-untyped-def]
    """Add W slope, for i less W slope, to the gradients and W curvature to the diagonals of i and the documents :hi.

    The slope is that of a lower document j.
    """
    slopes = curvatures = 0.0
    a, b = W.alpha + A[i], W.beta + B[i]
    for j in range(np.uint64(hi)):
        square = 1 + r[j] * r[j]
        inverse = 2 / (square + 2 * c * r[j])
        Wj = (a - A[j]) * (b - B[j])
        slope = Wj * (c + r[j]) * (r[j] * inverse)
        curvature = 0.5 * Wj * (2 * r[j] + c * square) * (r[j] * inverse * inverse)
        gradient[j] += slope
        diag[j] += curvature
        slopes += slope
        curvatures += curvature
    gradient[i] -= slopes
    diag[i] += curvatures


@inlined
def _wub_hessp_row(r, i, W, A, B, c, v, out):  # type: ignore[no-untyped-def]
    """Add W curvature (v_j - v_i) to the documents j < i, and take it from i."""
    total, vi = 0.0, v[i]
    a, b = W.alpha + A[i], W.beta + B[i]
    for j in range(np.uint64(i)):
        square = 1 + r[j] * r[j]
        inverse = 1 / (square + 2 * c * r[j])
        curvature = (a - A[j]) * (b - B[j]) * (2 * r[j] * inverse) * ((2 * r[j] + c * square) * inverse)
        change = curvature * (v[j] - vi)
        out[j] += change
        total += change
    out[i] -= total


@inner
def _wub_value_row(near, x, r, i, hi, W, A, B, c, factor):  # type: ignore[no-untyped-def]
    """Return the sum of W log(factor (c + cosh) e^{-gamma d}) over j < hi, a logarithm for many pairs of one weight.

    z is the product of the arguments less 1, so that arguments close to 1 keep their digits.
    """
    total = z = weight = 0.0
    a, b = W.alpha + A[i], W.beta + B[i]
    for j in range(hi):
        Wj = (a - A[j]) * (b - B[j])
        if Wj != weight or z > _LARGE:
            total += weight * np.log1p(z)
            weight, z = Wj, 0.0
        gap = x[j] - x[i]
        if near or abs(gap) < FAR:
            excess = (0.5 * factor - 1) + factor * r[j] * (c + 0.5 * r[j])
            z += excess + excess * z
        else:
            total += Wj * (np.log(0.5 * factor) + abs(gap) + gap)
    return total + weight * np.log1p(z)


@partial(compiled, liberties=REORDERED)
def wub(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal of the weighted upper bound."""
    c, W, levels = tables.c, tables.W, tables.levels
    order, document = levels.order, levels.document
    most = lists.longest
    x, E, A, B = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    r, slope, curvature = np.empty(most), np.empty(most), np.empty(most)
    tied = W.alpha * W.beta
    for q in lists.query:
        first, last, begin = levels.start[q], levels.start[q + 1], lists.start[q]
        n, gamma, kappa = lists.start[q + 1] - begin, tables.gamma[q], tables.kappa[q]
        gather(f, order, begin, n, x)
        spread_by_grade(first, last, document, W.A, A)
        spread_by_grade(first, last, document, W.B, B)
        for i in range(n):
            x[i] *= gamma
            slope[i] = curvature[i] = 0.0
        near = exponentials(x, n, E)
        loss = 0.0
        for g in range(first, last):
            lower = document[g] - begin
            for i in range(lower, document[g + 1] - begin):
                high = i if tied > 0 else lower
                ratios(near, x, E, i, 0, high, r)
                _wub_row(r, i, high, W, A, B, c, slope, curvature)
                if need & VALUE:
                    loss += _wub_value_row(near, x, r, i, high, W, A, B, c, tables.factor)
        # A tied pair, i after j, was taken for an ordered one: -gamma d too much, in the sum over its grade.
        if tied > 0:
            for g in range(first, last):
                lower, upper = document[g] - begin, document[g + 1] - begin
                for i in range(lower, upper):
                    surplus = tied * (2 * i + 1 - lower - upper)
                    slope[i] += surplus
                    loss += surplus * (x[i] - x[lower])
        scale = lists.weight[q] * kappa * gamma
        scatter_both(scale, slope, scale * gamma, curvature, order, begin, n, out)
        out.value[q] = kappa * loss


@partial(compiled, liberties=REORDERED)
def wub_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    """Hessian-vector product of the weighted upper bound."""
    c, W, levels = tables.c, tables.W, tables.levels
    order, document = levels.order, levels.document
    most = lists.longest
    x, E, A, B = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    r, direction, product = np.empty(most), np.empty(most), np.empty(most)
    for q in lists.query:
        first, last, begin = levels.start[q], levels.start[q + 1], lists.start[q]
        n, gamma = lists.start[q + 1] - begin, tables.gamma[q]
        gather(f, order, begin, n, x)
        gather(v, order, begin, n, direction)
        spread_by_grade(first, last, document, W.A, A)
        spread_by_grade(first, last, document, W.B, B)
        for i in range(n):
            x[i] *= gamma
            product[i] = 0.0
        near = exponentials(x, n, E)
        # Tied pairs have W = alpha beta, so that all documents before i can be taken together.
        for i in range(n):
            ratios(near, x, E, i, 0, i, r)
            _wub_hessp_row(r, i, W, A, B, c, direction, product)
        scale = lists.weight[q] * tables.kappa[q] * gamma**2
        scatter(scale, product, order, begin, n, out)
