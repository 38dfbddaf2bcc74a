r"""Loops of the smooth pairwise losses: quadratic and exponential in O(n), logistic in O(n^2).

The weight of a pair y_i > y_j is V_ij = kappa (alpha + A_i - A_j)(beta + B_i - B_j), see `weights.pair_weights`.
Multiplied out it is a sum of at most four products of a term of i and a term of j, so sums over all lower grades need
one pass over the grades. With moments about the current grade g, over the documents j below it and a payload x,

    M00 = sum x_j,  M10 = sum (alpha + A_g - A_j) x_j,  M01 = sum (beta + B_g - B_j) x_j,  M11 = sum V_gj x_j / kappa

a step to the next grade, dA and dB higher, is M11 += dA M01 + dB M10 + dA dB M00, M10 += dA M00, M01 += dB M00: nothing
is subtracted. Below, L_i(x) = sum_{j: y_j < y_i} V_ij x_j and U_i(x) = sum_{k: y_k > y_i} V_ki x_k.

- Quadratic, sum V (1 - d)^2, d = f_i - f_j, and s = L(1) + U(1):
      gradient = 2 [ s f - L(f) - U(f) - L(1) + U(1) ],  H_ii = 2 s_i,  H v = 2 [ s v - L(v) - U(v) ]
- Exponential, sum V e^{-d}, with E = e^f:
      gradient = E U(1/E) - L(E)/E,  H_ii = E U(1/E) + L(E)/E,  H v = H_ii v - E U(v/E) - L(v E)/E
- Logistic, sum V log(1 + e^{-d}), with p_ij = e^{f_j} / (e^{f_i} + e^{f_j}):
      gradient_i = sum_k V_ki p_ki - sum_j V_ij p_ij,  H_ij = -V p (1 - p) for a pair,  H_ii = -sum_j H_ij
"""

from __future__ import annotations

import numpy as np

from boostlist.losses.base import VALUE
from boostlist.losses.ratios import BLOCK, FAR, exponentials, ratios, vectorized
from boostlist.parallel import compiled, longest

# Sums of e^{2 _CAP} over the pairs of a list are finite.
_CAP = 300.0
# Times a ratio, at most e^FAR, this is still finite.
_LARGE = 1e150


@compiled
def sums_below(first, last, alpha, beta, A, B, X, out):  # type: ignore[no-untyped-def]
    """Fill out_g = L_g(x) / kappa from the sums X_h of x over each grade."""
    m00 = m10 = m01 = m11 = 0.0
    for g in range(first, last):
        if g > first:
            dA, dB = A[g] - A[g - 1], B[g] - B[g - 1]
            m11 += dA * m01 + dB * (m10 + dA * m00)
            m10 += dA * m00
            m01 += dB * m00
        out[g - first] = m11
        x = X[g - first]
        m00 += x
        m10 += alpha * x
        m01 += beta * x
        m11 += alpha * beta * x


@compiled
def sums_above(first, last, alpha, beta, A, B, X, out):  # type: ignore[no-untyped-def]
    """Fill out_g = U_g(x) / kappa from the sums X_h of x over each grade."""
    m00 = m10 = m01 = m11 = 0.0
    for g in range(last - 1, first - 1, -1):
        if g < last - 1:
            dA, dB = A[g + 1] - A[g], B[g + 1] - B[g]
            m11 += dA * m01 + dB * (m10 + dA * m00)
            m10 += dA * m00
            m01 += dB * m00
        out[g - first] = m11
        x = X[g - first]
        m00 += x
        m10 += alpha * x
        m01 += beta * x
        m11 += alpha * beta * x


@compiled
def _laplacian(x, order, first, last, document, alpha, beta, A, B, X, below, above, s, lead):  # type: ignore[no-untyped-def]
    """Fill by grade: s, its antisymmetric twin lead = L(1) - U(1), and X = L(x) + U(x)."""
    for g in range(first, last):
        X[g - first] = document[g + 1] - document[g]
    sums_below(first, last, alpha, beta, A, B, X, below)
    sums_above(first, last, alpha, beta, A, B, X, above)
    for g in range(last - first):
        s[g] = below[g] + above[g]
        lead[g] = below[g] - above[g]
    for g in range(first, last):
        total = 0.0
        for i in range(document[g], document[g + 1]):
            total += x[order[i]]
        X[g - first] = total
    sums_below(first, last, alpha, beta, A, B, X, below)
    sums_above(first, last, alpha, beta, A, B, X, above)
    for g in range(last - first):
        X[g] = below[g] + above[g]


@compiled
def quadratic(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, need, value, gradient, diag, kappa, alpha, beta, order, level_start, document, A, B
):
    """Value, gradient and diagonal of the quadratic loss."""
    u = np.empty(longest(lo, hi, start))
    X = np.empty(longest(lo, hi, level_start))
    below, above, s = np.empty_like(X), np.empty_like(X), np.empty_like(X)
    lead = np.empty_like(X)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        fq, gradient_q, diag_q = f[rows], gradient[rows], diag[rows]
        if kappa[q] == 0:
            gradient_q[:] = 0.0
            diag_q[:] = 0.0
            continue
        # Only differences count; about the mean their squares keep their digits.
        mean = fq[0] + np.mean(fq - fq[0])
        for i in range(fq.size):
            u[i] = fq[i] - mean
        first, last = level_start[q], level_start[q + 1]
        _laplacian(u, order, first, last, document, alpha, beta, A, B, X, below, above, s, lead)
        scale = 2 * weight[q] * kappa[q]
        loss = 0.0
        for g in range(first, last):
            sg, push, Xg = s[g - first], lead[g - first], X[g - first]
            for i in range(document[g], document[g + 1]):
                ui = u[order[i]]
                gradient_q[order[i]] = scale * (sg * ui - Xg - push)
                diag_q[order[i]] = scale * sg
                # Pair by pair d^2 - 2 d + 1; the sum of V over pairs is half that of s over documents.
                loss += ui * (sg * ui - Xg - 2 * push) + 0.5 * sg
        value[q] = kappa[q] * max(loss, 0.0)


@compiled
def quadratic_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, kappa, alpha, beta, order, level_start, document, A, B
):
    """Hessian-vector product of the quadratic loss."""
    x = np.empty(longest(lo, hi, start))
    X = np.empty(longest(lo, hi, level_start))
    below, above, s = np.empty_like(X), np.empty_like(X), np.empty_like(X)
    lead = np.empty_like(X)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        vq, out_q = v[rows], out[rows]
        x[: vq.size] = vq
        first, last = level_start[q], level_start[q + 1]
        _laplacian(x, order, first, last, document, alpha, beta, A, B, X, below, above, s, lead)
        scale = 2 * weight[q] * kappa[q]
        for g in range(first, last):
            for i in range(document[g], document[g + 1]):
                out_q[order[i]] = scale * (s[g - first] * vq[order[i]] - X[g - first])


@compiled
def _capped_exponentials(f, E):  # type: ignore[no-untyped-def]
    """Fill E = e^{f - c}, c the middle of the scores, with scores cut to within `_CAP` of it."""
    low, high = np.inf, -np.inf
    for i in range(f.size):
        low = min(low, f[i])
        high = max(high, f[i])
    middle = low + 0.5 * (high - low)
    for i in range(f.size):
        E[i] = np.exp(min(max(f[i] - middle, -_CAP), _CAP))


@compiled
def _exponential_sums(  # type: ignore[no-untyped-def]
    E, v, order, first, last, document, alpha, beta, A, B, up, down, below, above
):
    """Fill by grade below = L(v E) and above = U(v / E)."""
    for g in range(first, last):
        upper = lower = 0.0
        for i in range(document[g], document[g + 1]):
            e, x = E[order[i]], v[order[i]]
            upper += x * e
            lower += x / e
        up[g - first] = upper
        down[g - first] = lower
    sums_below(first, last, alpha, beta, A, B, up, below)
    sums_above(first, last, alpha, beta, A, B, down, above)


@compiled
def exponential(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, need, value, gradient, diag, kappa, alpha, beta, order, level_start, document, A, B
):
    """Value, gradient and diagonal of the exponential loss."""
    E = np.empty(longest(lo, hi, start))
    one = np.ones_like(E)
    up = np.empty(longest(lo, hi, level_start))
    down, below, above = np.empty_like(up), np.empty_like(up), np.empty_like(up)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        gradient_q, diag_q = gradient[rows], diag[rows]
        if kappa[q] == 0:
            gradient_q[:] = 0.0
            diag_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        _capped_exponentials(f[rows], E)
        _exponential_sums(E, one, order, first, last, document, alpha, beta, A, B, up, down, below, above)
        scale = weight[q] * kappa[q]
        loss = 0.0
        for g in range(first, last):
            L, U = below[g - first], above[g - first]
            for i in range(document[g], document[g + 1]):
                e = E[order[i]]
                over, under = L / e, e * U
                gradient_q[order[i]] = scale * (under - over)
                diag_q[order[i]] = scale * (under + over)
                loss += over
        value[q] = kappa[q] * loss


@compiled
def exponential_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, kappa, alpha, beta, order, level_start, document, A, B
):
    """Hessian-vector product of the exponential loss."""
    E = np.empty(longest(lo, hi, start))
    one, x = np.ones_like(E), np.empty_like(E)
    up = np.empty(longest(lo, hi, level_start))
    down, below, above = np.empty_like(up), np.empty_like(up), np.empty_like(up)
    below_v, above_v = np.empty_like(up), np.empty_like(up)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        vq, out_q = v[rows], out[rows]
        x[: vq.size] = vq
        first, last = level_start[q], level_start[q + 1]
        _capped_exponentials(f[rows], E)
        _exponential_sums(E, one, order, first, last, document, alpha, beta, A, B, up, down, below, above)
        _exponential_sums(E, x, order, first, last, document, alpha, beta, A, B, up, down, below_v, above_v)
        scale = weight[q] * kappa[q]
        for g in range(first, last):
            for i in range(document[g], document[g + 1]):
                e, vi = E[order[i]], vq[order[i]]
                over, under = vi * below[g - first] - below_v[g - first], vi * above[g - first] - above_v[g - first]
                out_q[order[i]] = scale * (over / e + e * under)


@vectorized
def _logistic_row(x, A, B, a, b, gradient, diag):  # type: ignore[no-untyped-def]
    """Add V p to the gradient and V p (1 - p) to the diagonal of lower documents, and return the sums of both."""
    pull = curvature = 0.0
    for j in range(x.size):
        r = 1 / (1 + x[j])
        Vp = (a - A[j]) * (b - B[j]) * (x[j] * r)
        Vw = Vp * r
        gradient[j] += Vp
        diag[j] += Vw
        pull += Vp
        curvature += Vw
    return pull, curvature


@vectorized
def _logistic_hessp_row(x, A, B, a, b, vi, v, out):  # type: ignore[no-untyped-def]
    """Add V p (1 - p)(v_j - v_i) to the lower documents, and return its sum."""
    total = 0.0
    for j in range(x.size):
        r = 1 / (1 + x[j])
        change = (a - A[j]) * (b - B[j]) * (x[j] * r * r) * (v[j] - vi)
        out[j] += change
        total += change
    return total


@compiled
def _softplus_row(near, x, ratio, A, B, a, b, xi):  # type: ignore[no-untyped-def]
    """Return the sum of V log(1 + e^{x_j - x_i}), with one logarithm for many pairs of the same weight.

    z = (1 + r_1)(1 + r_2)... - 1 is multiplied up rather than the product itself, which would swallow small ratios.
    """
    total = z = V = 0.0
    for j in range(ratio.size):
        Vj = (a - A[j]) * (b - B[j])
        if Vj != V or z > _LARGE:
            total += V * np.log1p(z)
            V, z = Vj, 0.0
        if near or abs(x[j] - xi) < FAR:
            z += ratio[j] + ratio[j] * z
        else:
            total += Vj * max(x[j] - xi, 0.0)
    return total + V * np.log1p(z)


@compiled
def gather(values, order, out):  # type: ignore[no-untyped-def]
    """Fill out with the values in the given order."""
    for i in range(order.size):
        out[i] = values[order[i]]


@compiled
def gather_with_weights(f, order, first, last, document, A, B, x, a, b):  # type: ignore[no-untyped-def]
    """Fill x with the scores in ascending order of grade, and a, b with the A and B of their grades."""
    begin = document[first]
    gather(f, order[begin : document[last]], x)
    for g in range(first, last):
        a[document[g] - begin : document[g + 1] - begin] = A[g]
        b[document[g] - begin : document[g + 1] - begin] = B[g]


@compiled
def logistic(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, need, value, gradient, diag, kappa, alpha, beta, order, level_start, document, A, B
):
    """Value, gradient and diagonal of the logistic loss."""
    x = np.empty(longest(lo, hi, start))
    E, a, b = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    pull, curvature = np.empty_like(x), np.empty_like(x)
    ratio = np.empty(BLOCK)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        gradient_q, diag_q = gradient[rows], diag[rows]
        if kappa[q] == 0:
            gradient_q[:] = 0.0
            diag_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        begin, n = document[first], rows.stop - rows.start
        gather_with_weights(f[rows], order, first, last, document, A, B, x, a, b)
        pull[:n] = 0.0
        curvature[:n] = 0.0
        near = exponentials(x[:n], E)
        loss = 0.0
        for left in range(0, n, BLOCK):
            for g in range(first + 1, last):
                right = min(left + BLOCK, document[g] - begin)
                if right <= left:
                    continue
                part, aj, bj = ratio[: right - left], a[left:right], b[left:right]
                pull_j, curvature_j = pull[left:right], curvature[left:right]
                for i in range(document[g] - begin, document[g + 1] - begin):
                    ai, bi = alpha + a[i], beta + b[i]
                    ratios(near, x, E, i, left, right, part)
                    Vp, Vw = _logistic_row(part, aj, bj, ai, bi, pull_j, curvature_j)
                    pull[i] -= Vp
                    curvature[i] += Vw
                    if need & VALUE:
                        loss += _softplus_row(near, x[left:right], part, aj, bj, ai, bi, x[i])
        scale = weight[q] * kappa[q]
        for i in range(n):
            gradient_q[order[begin + i]] = scale * pull[i]
            diag_q[order[begin + i]] = scale * curvature[i]
        value[q] = kappa[q] * loss


@compiled
def logistic_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, kappa, alpha, beta, order, level_start, document, A, B
):
    """Hessian-vector product of the logistic loss."""
    x = np.empty(longest(lo, hi, start))
    E, a, b = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    direction, product = np.empty_like(x), np.empty_like(x)
    ratio = np.empty(BLOCK)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        out_q = out[rows]
        if kappa[q] == 0:
            out_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        begin, n = document[first], rows.stop - rows.start
        gather_with_weights(f[rows], order, first, last, document, A, B, x, a, b)
        gather(v[rows], order[rows], direction)
        product[:n] = 0.0
        near = exponentials(x[:n], E)
        for left in range(0, n, BLOCK):
            for g in range(first + 1, last):
                right = min(left + BLOCK, document[g] - begin)
                if right <= left:
                    continue
                part, columns = ratio[: right - left], slice(left, right)
                for i in range(document[g] - begin, document[g + 1] - begin):
                    ratios(near, x, E, i, left, right, part)
                    product[i] -= _logistic_hessp_row(
                        part,
                        a[columns],
                        b[columns],
                        alpha + a[i],
                        beta + b[i],
                        direction[i],
                        direction[columns],
                        product[columns],
                    )
        for i in range(n):
            out_q[order[begin + i]] = weight[q] * kappa[q] * product[i]
