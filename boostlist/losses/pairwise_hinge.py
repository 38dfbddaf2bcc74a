r"""Kernels of the hinge losses in O(n log n): sums over the pairs that violate their margin, by merging.

Only pairs y_i > y_j with x_j - x_i > -margin count: x = f, margin 1 for the hinge (1 - d)_+, and x = f - t, margin 0
for the squared hinge (t_i - t_j - d)_+^2 = (x_j - x_i)_+^2. With V as in `pairwise_kernels` and sums over those pairs
only, L_i over the documents below i and U_i over those above,

- hinge: gradient = U(1) - L(1), value = sum_i L_i(1) + sum_i f_i gradient_i
- squared hinge: gradient = 2 [ (L(1) + U(1)) x - L(x) - U(x) ], H_ii = 2 (L(1) + U(1)),
  H v = 2 [ (L(1) + U(1)) v - L(v) - U(v) ], value = 1/2 sum_i x_i gradient_i, as it is homogeneous of degree 2 in x

Each grade is sorted by x; then neighbouring groups of grades are merged, two by two, until one is left. When lower
grades meet higher ones, a pointer runs over the one side while the other is walked through in order, adding up the
documents that violate the margin: O(n log n) for sorting and O(n) in each of the log G rounds. The weights are taken
apart at the lowest grade A0, B0 of the higher side,

    V_ij / kappa = (a_i + a_j)(b_i + b_j),  a_i = alpha + A_i - A0, a_j = A0 - A_j, b likewise, all >= 0.
"""

from __future__ import annotations

import numpy as np

from boostlist.losses.pairwise_kernels import gather, gather_with_weights, sums_below
from boostlist.parallel import kernel, longest


@kernel
def _violations(x, z, margin, a, b, alpha, beta, A0, B0, low, high, count, lead, total):  # type: ignore[no-untyped-def]
    """Add L(1) + U(1), U(1) - L(1), L(z) + U(z) over low x high, both sorted by x, to count, lead and total."""
    m00 = m10 = m01 = m11 = z00 = z10 = z01 = z11 = 0.0
    j = low.size - 1
    for position in range(high.size - 1, -1, -1):
        i = high[position]
        while j >= 0 and x[low[j]] - x[i] > -margin:
            k = low[j]
            aj, bj, zj = A0 - a[k], B0 - b[k], z[k]
            m00 += 1
            m10 += aj
            m01 += bj
            m11 += aj * bj
            z00 += zj
            z10 += aj * zj
            z01 += bj * zj
            z11 += aj * bj * zj
            j -= 1
        ai, bi = alpha + a[i] - A0, beta + b[i] - B0
        L = ai * (bi * m00 + m01) + bi * m10 + m11
        count[i] += L
        lead[i] -= L
        total[i] += ai * (bi * z00 + z01) + bi * z10 + z11
    m00 = m10 = m01 = m11 = z00 = z10 = z01 = z11 = 0.0
    i = 0
    for position in range(low.size):
        j = low[position]
        while i < high.size and x[j] - x[high[i]] > -margin:
            k = high[i]
            ai, bi, zi = alpha + a[k] - A0, beta + b[k] - B0, z[k]
            m00 += 1
            m10 += ai
            m01 += bi
            m11 += ai * bi
            z00 += zi
            z10 += ai * zi
            z01 += bi * zi
            z11 += ai * bi * zi
            i += 1
        aj, bj = A0 - a[j], B0 - b[j]
        U = aj * (bj * m00 + m01) + bj * m10 + m11
        count[j] += U
        lead[j] += U
        total[j] += aj * (bj * z00 + z01) + bj * z10 + z11


@kernel
def _merge(x, low, high, out):  # type: ignore[no-untyped-def]
    """Merge two lists of documents that are sorted by x."""
    i = j = 0
    for position in range(out.size):
        if j == high.size or (i < low.size and x[low[i]] <= x[high[j]]):
            out[position] = low[i]
            i += 1
        else:
            out[position] = high[j]
            j += 1


@kernel
def _sort(x, out, spare):  # type: ignore[no-untyped-def]
    """Sort the documents in out by x: insertion in runs of 16, then merging."""
    run = 16
    n = out.size
    for lo in range(0, n, run):
        for i in range(lo + 1, min(lo + run, n)):
            document = out[i]
            j = i
            while j > lo and x[out[j - 1]] > x[document]:
                out[j] = out[j - 1]
                j -= 1
            out[j] = document
    while run < n:
        for lo in range(0, n, 2 * run):
            middle, hi = min(lo + run, n), min(lo + 2 * run, n)
            _merge(x, out[lo:middle], out[middle:hi], spare[lo:hi])
        out[:] = spare
        run *= 2


@kernel
def _violation_sums(  # type: ignore[no-untyped-def]
    x, z, margin, a, b, alpha, beta, first, last, document, edge, sorted_, spare, count, lead, total
):
    """Fill count, lead and total over all pairs of grades of a query; all arrays in ascending order of grade."""
    begin = document[first]
    n = document[last] - begin
    count[:n] = 0.0
    lead[:n] = 0.0
    total[:n] = 0.0
    groups = last - first
    for g in range(groups + 1):
        edge[g] = document[first + g] - begin
    for g in range(groups):
        group = slice(edge[g], edge[g + 1])
        for i in range(edge[g], edge[g + 1]):
            sorted_[i] = i
        _sort(x, sorted_[group], spare[group])
    while groups > 1:
        merged = 0
        for g in range(0, groups, 2):
            lo = edge[g]
            if g + 1 < groups:
                middle, hi = edge[g + 1], edge[g + 2]
                low, high = sorted_[lo:middle], sorted_[middle:hi]
                # The documents are numbered by grade: the first number of the higher side has its lowest grade.
                _violations(x, z, margin, a, b, alpha, beta, a[middle], b[middle], low, high, count, lead, total)
                _merge(x, low, high, spare[lo:hi])
                sorted_[lo:hi] = spare[lo:hi]
            edge[merged] = lo
            merged += 1
        edge[merged] = n
        groups = merged


@kernel
def hinge(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, need, value, gradient, diag, kappa, alpha, beta, order, level_start, document, A, B
):
    """Value, gradient and heuristic diagonal of the hinge loss."""
    size = longest(lo, hi, start)
    x = np.empty(size)
    a, b, count = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    lead, total = np.empty_like(x), np.empty_like(x)
    sorted_ = np.empty(size, np.int32)
    spare = np.empty_like(sorted_)
    edge = np.empty(longest(lo, hi, level_start) + 1, np.int64)
    X = np.empty(edge.size)
    below = np.empty_like(X)
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
        middle = x[0]
        for i in range(n):
            x[i] -= middle
        _violation_sums(x, x, 1.0, a, b, alpha, beta, first, last, document, edge, sorted_, spare, count, lead, total)
        for g in range(first, last):
            X[g - first] = document[g + 1] - document[g]
        sums_below(first, last, alpha, beta, A, B, X, below)
        pairs = loss = 0.0
        for g in range(last - first):
            pairs += X[g] * below[g]
        scale = weight[q] * kappa[q]
        for i in range(n):
            gradient_q[order[begin + i]] = scale * lead[i]
            diag_q[order[begin + i]] = scale * 2 * pairs / n
            loss += 0.5 * (count[i] - lead[i]) + x[i] * lead[i]
        value[q] = kappa[q] * max(loss, 0.0)


@kernel
def squared_hinge(  # type: ignore[no-untyped-def]
    lo,
    hi,
    start,
    weight,
    f,
    need,
    value,
    gradient,
    diag,
    kappa,
    alpha,
    beta,
    order,
    level_start,
    document,
    A,
    B,
    targets,
    lam1,
):
    """Value, gradient and diagonal of the squared hinge loss with a term lam1 (f_i - f_j)^2 for tied pairs."""
    size = longest(lo, hi, start)
    x = np.empty(size)
    a, b, count = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    lead, total = np.empty_like(x), np.empty_like(x)
    sorted_ = np.empty(size, np.int32)
    spare = np.empty_like(sorted_)
    edge = np.empty(longest(lo, hi, level_start) + 1, np.int64)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        gradient_q, diag_q = gradient[rows], diag[rows]
        if kappa[q] == 0:
            gradient_q[:] = 0.0
            diag_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        begin = document[first]
        gather_with_weights(f[rows], order, first, last, document, A, B, x, a, b)
        middle = x[0]
        for g in range(first, last):
            for i in range(document[g] - begin, document[g + 1] - begin):
                x[i] = x[i] - middle - targets[g]
        _violation_sums(x, x, 0.0, a, b, alpha, beta, first, last, document, edge, sorted_, spare, count, lead, total)
        loss = 0.0
        for g in range(first, last):
            low, high = document[g] - begin, document[g + 1] - begin
            mean = 0.0
            for i in range(low, high):
                mean += x[i]
            mean /= high - low
            for i in range(low, high):
                own = kappa[q] * (count[i] * x[i] - total[i])
                tied = lam1[q] * (high - low) * (x[i] - mean)
                gradient_q[order[begin + i]] = 2 * weight[q] * (own + tied)
                diag_q[order[begin + i]] = 2 * weight[q] * (kappa[q] * count[i] + lam1[q] * (high - low - 1))
                loss += x[i] * own + (x[i] - mean) * tied
        value[q] = max(loss, 0.0)


@kernel
def squared_hinge_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, kappa, alpha, beta, order, level_start, document, A, B, targets, lam1
):
    """Product of the generalised Hessian of the squared hinge loss and a vector."""
    size = longest(lo, hi, start)
    x = np.empty(size)
    z, a, b = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    count, lead, total = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    sorted_ = np.empty(size, np.int32)
    spare = np.empty_like(sorted_)
    edge = np.empty(longest(lo, hi, level_start) + 1, np.int64)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        out_q = out[rows]
        if kappa[q] == 0:
            out_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        begin = document[first]
        gather_with_weights(f[rows], order, first, last, document, A, B, x, a, b)
        gather(v[rows], order[rows], z)
        middle = x[0]
        for g in range(first, last):
            for i in range(document[g] - begin, document[g + 1] - begin):
                x[i] = x[i] - middle - targets[g]
        _violation_sums(x, z, 0.0, a, b, alpha, beta, first, last, document, edge, sorted_, spare, count, lead, total)
        for g in range(first, last):
            low, high = document[g] - begin, document[g + 1] - begin
            mean = 0.0
            for i in range(low, high):
                mean += z[i]
            mean /= high - low
            for i in range(low, high):
                own = kappa[q] * (count[i] * z[i] - total[i])
                out_q[order[begin + i]] = 2 * weight[q] * (own + lam1[q] * (high - low) * (z[i] - mean))
