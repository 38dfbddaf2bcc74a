r"""Kernels of the Markov random field losses; notation and formulas are those of `markov`.

WpLL runs over blocks of documents in ascending order of grade, label by label, so that all but the exponentials are
vector operations. The diagonal is taken as gamma^2 [ sum_i W_i Var_{P_i} s + W_k ( Var_{P_k} a - 2 Cov_{P_k}(a, s) ) ],
with s = sign(v - y_k).

WUB runs over pairs, document i after j in ascending order of grade. For y_i > y_j both derivatives in d are rational in
r = e^{-gamma d}: with den = 2 r + b (1 + r^2),

    slope / gamma = -2 r (1 + b r) / den,   curvature / gamma^2 = 2 b r (2 b r + 1 + r^2) / den^2

so that one exp per document is enough. A tied pair has the same with gamma added to the slope and gamma d to the value;
over a grade these additions are a sum with known coefficients.
"""

from __future__ import annotations

import numpy as np

from boostlist.losses.base import VALUE
from boostlist.losses.pairwise_kernels import gather, gather_with_weights
from boostlist.losses.ratios import BLOCK, FAR, exponentials, ratios, row_kernel
from boostlist.parallel import kernel, longest

# A label of probability e^-100 counts for nothing beside one of at least 1 / 64, and exp is slow where it underflows.
_NOTHING = -100.0
# Times the largest factor, |L|^2 e^(2 FAR), this is still finite.
_LARGE = 1e100


@kernel
def _margins(f, order, first, last, document, index, gamma, a, S):  # type: ignore[no-untyped-def]
    """Fill gamma a(v) and gamma S(v) for every v of the label set; scores are taken about the first."""
    a[:] = 0.0
    S[:] = 0.0
    for g in range(first, last):
        for i in range(document[g], document[g + 1]):
            S[index[g]] += f[order[i]] - f[0]
        a[index[g]] = document[g + 1] - document[g]
    number, total = np.sum(a), np.sum(S)
    below = sum_below = 0.0
    for v in range(a.size):
        count, scores = a[v], S[v]
        a[v] = gamma * (2 * below + count - number)
        S[v] = gamma * (2 * sum_below + scores - total)
        below += count
        sum_below += scores


@kernel
def _softmax(x, a, S, P, top, Z):  # type: ignore[no-untyped-def]
    """Fill the rows v of P with softmax_v(a(v) x - S(v)), and top and Z with log-sum-exp as top + log Z."""
    n = x.size
    top[:] = -np.inf
    Z[:] = 0.0
    for v in range(a.size):
        for k in range(n):
            top[k] = max(top[k], a[v] * x[k] - S[v])
    for v in range(a.size):
        row = P[v * BLOCK : v * BLOCK + n]
        for k in range(n):
            row[k] = np.exp(max(a[v] * x[k] - S[v] - top[k], _NOTHING))
        for k in range(n):
            Z[k] += row[k]
    for v in range(a.size):
        row = P[v * BLOCK : v * BLOCK + n]
        for k in range(n):
            row[k] /= Z[k]


@row_kernel
def _moments(P, a, own, mean, square):  # type: ignore[no-untyped-def]
    """Add a label with probability P and margin a to the moments of a(v) - a(y)."""
    for k in range(P.size):
        step = a - own[k]
        mean[k] += step * P[k]
        square[k] += step * step * P[k]


@row_kernel
def _signed_moments(P, sign, a, own, mean, mixed):  # type: ignore[no-untyped-def]
    """Add a label v with sign = sign(v - y) to the means of the sign and of sign (a(v) - a(y))."""
    for k in range(P.size):
        p = sign * P[k]
        mean[k] += p
        mixed[k] += (a - own[k]) * p


@row_kernel
def _spreads(P, W, below):  # type: ignore[no-untyped-def]
    """Return sum W P and the sum of W times the variance of sign(v - u), u being the label of probability P.

    below holds the probability of lower labels than u, and moves on to the next.
    """
    probability = variance = 0.0
    for k in range(P.size):
        p, rest = P[k], 1 - P[k]
        probability += W[k] * p
        variance += W[k] * (4 * below[k] * (rest - below[k]) + p * rest)
        below[k] += p
    return probability, variance


@kernel
def _signed_sums(D, gamma):  # type: ignore[no-untyped-def]
    """Replace D(u) by gamma sum_v sign(v - u) D(v)."""
    total, below = np.sum(D), 0.0
    for v in range(D.size):
        D[v], below = gamma * (total - 2 * below - D[v]), below + D[v]


@kernel
def wpll(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, need, value, gradient, diag, gamma, labels, index, order, level_start, document, W
):
    """Value, gradient and diagonal of the weighted pseudo-likelihood."""
    a, P = np.empty(labels), np.empty(labels * BLOCK)
    S, D, C = np.empty_like(a), np.empty_like(a), np.empty_like(a)
    x, top, Z, own, W_ = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    mean, square, below = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    sign, mixed = np.empty(BLOCK), np.empty(BLOCK)
    edge = np.empty(labels + 1, np.int64)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        fq, gradient_q, diag_q = f[rows], gradient[rows], diag[rows]
        first, last = level_start[q], level_start[q + 1]
        if fq.size == 1:
            gradient_q[0] = diag_q[0] = 0.0
            value[q] = W[first] * np.log(labels)
            continue
        _margins(fq, order, first, last, document, index, gamma, a, S)
        # In ascending order of grade, the documents edge[v]:edge[v + 1] have the label v.
        edge[:] = fq.size
        D[:] = 0.0
        C[:] = 0.0
        at = 0
        for g in range(first, last):
            edge[at : index[g] + 1] = document[g] - rows.start
            at = index[g] + 1
            D[index[g]] = -W[g] * (document[g + 1] - document[g])
        loss = 0.0
        for left in range(0, fq.size, BLOCK):
            part = order[rows][left : left + BLOCK]
            n = part.size
            for k in range(n):
                x[k] = fq[part[k]] - fq[0]
                mean[k] = square[k] = below[k] = sign[k] = mixed[k] = 0.0
            for g in range(first, last):
                low, high = max(document[g] - rows.start - left, 0), min(document[g + 1] - rows.start - left, n)
                for k in range(low, high):
                    own[k] = a[index[g]]
                    W_[k] = W[g]
            _softmax(x[:n], a, S, P, top[:n], Z[:n])
            for v in range(labels):
                row = P[v * BLOCK : v * BLOCK + n]
                _moments(row, a[v], own[:n], mean[:n], square[:n])
                lower, upper = max(edge[v] - left, 0), max(edge[v + 1] - left, 0)
                if lower > 0:
                    _signed_moments(row[:lower], 1.0, a[v], own[:lower], sign[:lower], mixed[:lower])
                if upper < n:
                    _signed_moments(row[upper:], -1.0, a[v], own[upper:n], sign[upper:n], mixed[upper:n])
                probability, variance = _spreads(row, W_[:n], below[:n])
                D[v] += probability
                C[v] += variance
            for k in range(n):
                covariance = mixed[k] - mean[k] * sign[k]
                gradient_q[part[k]] = W_[k] * mean[k]
                diag_q[part[k]] = W_[k] * (square[k] - mean[k] * mean[k] - 2 * gamma * covariance)
            if need & VALUE:
                for g in range(first, last):
                    y = index[g]
                    low, high = max(document[g] - rows.start - left, 0), min(document[g + 1] - rows.start - left, n)
                    for k in range(low, high):
                        loss += W[g] * (np.log(Z[k]) + top[k] - (a[y] * x[k] - S[y]))
        value[q] = loss
        _signed_sums(D, gamma)
        for g in range(first, last):
            y = index[g]
            for i in range(document[g], document[g + 1]):
                gradient_q[order[i]] = weight[q] * (gradient_q[order[i]] - D[y])
                diag_q[order[i]] = weight[q] * max(diag_q[order[i]] + gamma * gamma * C[y], 0.0)


@kernel
def wpll_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, gamma, labels, index, order, level_start, document, W
):
    """Hessian-vector product of the weighted pseudo-likelihood."""
    a, P = np.empty(labels), np.empty(labels * BLOCK)
    S, dS, D = np.empty_like(a), np.empty_like(a), np.empty_like(a)
    x_, top, Z = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        fq, vq, out_q = f[rows], v[rows], out[rows]
        first, last = level_start[q], level_start[q + 1]
        _margins(vq, order, first, last, document, index, gamma, a, dS)
        _margins(fq, order, first, last, document, index, gamma, a, S)
        D[:] = 0.0
        for g in range(first, last):
            y = index[g]
            for left in range(document[g], document[g + 1], BLOCK):
                part = order[left : min(left + BLOCK, document[g + 1])]
                x = x_[: part.size]
                for k in range(part.size):
                    x[k] = fq[part[k]] - fq[0]
                _softmax(x, a, S, P, top[: part.size], Z[: part.size])
                for k in range(part.size):
                    dx = vq[part[k]] - vq[0]
                    mean = own = 0.0
                    for u in range(labels):
                        mean += P[u * BLOCK + k] * (a[u] * dx - dS[u])
                    for u in range(labels):
                        change = W[g] * P[u * BLOCK + k] * (a[u] * dx - dS[u] - mean)
                        own += change * (a[u] - a[y])
                        D[u] += change
                    out_q[part[k]] = own
        _signed_sums(D, gamma)
        for g in range(first, last):
            for i in range(document[g], document[g + 1]):
                out_q[order[i]] = weight[q] * (out_q[order[i]] - D[index[g]])


@row_kernel
def _wub_row(r, A, B, a, b, labels_1, gradient, diag):  # type: ignore[no-untyped-def]
    """Take W slope from the gradient of the documents j, add W curvature to their diagonal, and return both sums.

    labels_1 is |L| - 1. The slope is that of a lower document j.
    """
    slopes = curvatures = 0.0
    for j in range(r.size):
        square = r[j] * r[j]
        inverse = 2 / (2 * r[j] + labels_1 * (1 + square))
        br = labels_1 * r[j]
        W = (a - A[j]) * (b - B[j])
        slope = W * (1 + br) * (r[j] * inverse)
        curvature = 0.5 * W * (2 * br + 1 + square) * (br * inverse * inverse)
        gradient[j] += slope
        diag[j] += curvature
        slopes += slope
        curvatures += curvature
    return slopes, curvatures


@row_kernel
def _wub_hessp_row(r, A, B, a, b, labels_1, vi, v, out):  # type: ignore[no-untyped-def]
    """Add W curvature (v_j - v_i) to the lower documents, and return its sum."""
    total = 0.0
    for j in range(r.size):
        square = r[j] * r[j]
        inverse = 1 / (2 * r[j] + labels_1 * (1 + square))
        W = (a - A[j]) * (b - B[j])
        curvature = W * (2 * labels_1 * r[j] * inverse) * ((2 * labels_1 * r[j] + 1 + square) * inverse)
        change = curvature * (v[j] - vi)
        out[j] += change
        total += change
    return total


@kernel
def _wub_value_row(near, x, r, A, B, a, b, labels_1, xi):  # type: ignore[no-untyped-def]
    """Return the sum of W log(|L| (1 + b cosh) e^{-gamma d}), with one logarithm for many pairs of the same weight.

    z is the product of the arguments less 1, so that arguments close to 1 keep their digits.
    """
    size = labels_1 + 1
    total = z = W = 0.0
    for j in range(r.size):
        Wj = (a - A[j]) * (b - B[j])
        if Wj != W or z > _LARGE:
            total += W * np.log1p(z)
            W, z = Wj, 0.0
        gap = x[j] - xi
        if near or abs(gap) < FAR:
            excess = (0.5 * size * labels_1 - 1) + size * r[j] * (1 + 0.5 * labels_1 * r[j])
            z += excess + excess * z
        else:
            total += Wj * (np.log(0.5 * size * labels_1) + abs(gap) + gap)
    return total + W * np.log1p(z)


@kernel
def wub(  # type: ignore[no-untyped-def]
    lo,
    hi,
    start,
    weight,
    f,
    need,
    value,
    gradient,
    diag,
    labels_1,
    gamma,
    kappa,
    alpha,
    beta,
    order,
    level_start,
    document,
    A,
    B,
):
    """Value, gradient and diagonal of the weighted upper bound."""
    x = np.empty(longest(lo, hi, start))
    E, a, b = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    slope, curvature = np.empty_like(x), np.empty_like(x)
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
        slope[:n] = 0.0
        curvature[:n] = 0.0
        for i in range(n):
            x[i] *= gamma[q]
        near = exponentials(x[:n], E)
        loss = 0.0
        tied = alpha * beta
        for left in range(0, n, BLOCK):
            for g in range(first, last):
                lower, upper = document[g] - begin, document[g + 1] - begin
                for i in range(max(lower, left + 1), upper):
                    high = min(left + BLOCK, i if tied > 0 else lower)
                    if high <= left:
                        continue
                    ai, bi = alpha + a[i], beta + b[i]
                    r, aj, bj = ratio[: high - left], a[left:high], b[left:high]
                    ratios(near, x, E, i, left, high, r)
                    s, c = _wub_row(r, aj, bj, ai, bi, labels_1, slope[left:high], curvature[left:high])
                    slope[i] -= s
                    curvature[i] += c
                    if need & VALUE:
                        loss += _wub_value_row(near, x[left:high], r, aj, bj, ai, bi, labels_1, x[i])
        # A tied pair, i after j, was taken for an ordered one: -gamma d too much, in the sum over its grade.
        if tied > 0:
            for g in range(first, last):
                lower, upper = document[g] - begin, document[g + 1] - begin
                for i in range(lower, upper):
                    surplus = tied * (2 * i + 1 - lower - upper)
                    slope[i] += surplus
                    loss += surplus * (x[i] - x[lower])
        scale = weight[q] * kappa[q] * gamma[q]
        for i in range(n):
            gradient_q[order[begin + i]] = scale * slope[i]
            diag_q[order[begin + i]] = scale * gamma[q] * curvature[i]
        value[q] = kappa[q] * loss


@kernel
def wub_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, labels_1, gamma, kappa, alpha, beta, order, level_start, document, A, B
):
    """Hessian-vector product of the weighted upper bound."""
    x = np.empty(longest(lo, hi, start))
    E, a, b = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    direction, product = np.empty_like(x), np.empty_like(x)
    ratio = np.empty(BLOCK)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        out_q = out[rows]
        first, last = level_start[q], level_start[q + 1]
        begin, n = document[first], rows.stop - rows.start
        gather_with_weights(f[rows], order, first, last, document, A, B, x, a, b)
        gather(v[rows], order[rows], direction)
        product[:n] = 0.0
        for i in range(n):
            x[i] *= gamma[q]
        near = exponentials(x[:n], E)
        for left in range(0, n, BLOCK):
            # Tied pairs have W = alpha beta, so that all documents before i can be taken together.
            for i in range(left + 1, n):
                high = min(left + BLOCK, i)
                r = ratio[: high - left]
                ratios(near, x, E, i, left, high, r)
                product[i] -= _wub_hessp_row(
                    r,
                    a[left:high],
                    b[left:high],
                    alpha + a[i],
                    beta + b[i],
                    labels_1,
                    direction[i],
                    direction[left:high],
                    product[left:high],
                )
        scale = weight[q] * kappa[q] * gamma[q] ** 2
        for i in range(n):
            out_q[order[begin + i]] = scale * product[i]
