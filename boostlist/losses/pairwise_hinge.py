r"""Kernels of the hinge losses in O(n log n): sums over the pairs that violate their margin, by merging.

Only pairs y_i > y_j with x_j - x_i > -margin count: x = f, margin 1 for the hinge (1 - d)_+, and x = f - t, margin 0
for the squared hinge (t_i - t_j - d)_+^2 = (x_j - x_i)_+^2. With V as in `pairwise_kernels` and sums over those pairs
only, L_i over the documents below i and U_i over those above,

- hinge: gradient = U(1) - L(1), value = sum_i L_i(1) + sum_i f_i gradient_i
- squared hinge: gradient = 2 [ (L(1) + U(1)) x - L(x) - U(x) ], H_ii = 2 (L(1) + U(1)),
  H v = 2 [ (L(1) + U(1)) v - L(v) - U(v) ], value = 1/2 sum_i x_i gradient_i, as it is homogeneous of degree 2 in x

Grades are taken sixteen at a time. Such a group is sorted by x and walked through once downwards and once upwards, a
pointer running ahead over the documents that violate the margin and adding them up grade by grade. Then neighbouring
groups are merged, two by two, until one is left. When lower grades meet higher ones, the pointer runs over the one side
while the other is walked through: O(n log n) for sorting and O(n) in each of the log G rounds. There the weights are
taken apart at the lowest grade A0, B0 of the higher side,

    V_ij / kappa = (a_i + a_j)(b_i + b_j),  a_i = alpha + A_i - A0, a_j = A0 - A_j, b likewise, all >= 0.

Sorting has no branch that depends on the scores: a wrong guess of the processor costs more than a few comparisons.
Indices that are read from arrays are made unsigned, as signed ones are tested for counting from the end.
"""

from __future__ import annotations

import numpy as np

from boostlist.losses.pairwise_kernels import gather, gather_with_weights, sums_below
from boostlist.parallel import kernel, longest

# Grades that are taken together. More would cost more than the rounds of merging that they save.
_GRADES = 16
# Documents that are sorted by counting, a whole number of vectors.
_RUN = 64


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
def _sort_run(x, lo, hi, run, smaller, seen, key, out):  # type: ignore[no-untyped-def]
    """Sort the documents lo:hi, at most _RUN, by counting for each one those that are smaller."""
    n = hi - lo
    for k in range(_RUN):
        run[k] = x[lo + k] if k < n else np.inf
        smaller[k] = 0.0
        seen[k] = 0
    for j in range(n):
        xj = run[j]
        for k in range(_RUN):
            smaller[k] += 1.0 if xj < run[k] else 0.0
    for k in range(n):
        rank = int(smaller[k])
        at = lo + rank + seen[rank]
        seen[rank] += 1
        key[at] = run[k]
        out[at] = lo + k


@kernel
def _merge(key, documents, lo, middle, hi, key_spare, spare):  # type: ignore[no-untyped-def]
    """Merge the neighbouring lists lo:middle and middle:hi of documents, which are sorted by key."""
    one, end, at = np.uint64(1), np.uint64(hi), np.uint64(lo)
    i, j = at, np.uint64(middle)
    half = j
    while i < half and j < end:
        key_i, key_j = key[i], key[j]
        first = np.uint64(key_i <= key_j)
        key_spare[at] = min(key_i, key_j)
        spare[at] = documents[j + first * (i - j)]
        i += first
        at += one
        j = half + at - i
    while i < half:
        key_spare[at] = key[i]
        spare[at] = documents[i]
        i += one
        at += one
    # What is left of the higher list is in its place already.
    for k in range(lo, np.int64(at)):
        key[k] = key_spare[k]
        documents[k] = spare[k]


@kernel
def _violations_within(  # type: ignore[no-untyped-def]
    key, documents, lo, hi, z, margin, level, V, N, Z, count, lead, total
):
    """Fill count, lead and total as in `_violations` over all pairs of documents[lo:hi], whose grades level counts."""
    N[:] = 0.0
    Z[:] = 0.0
    ahead = hi - 1
    for position in range(hi - 1, lo - 1, -1):
        while ahead >= lo and key[ahead] - key[position] > -margin:
            j = np.uint64(documents[ahead])
            g = np.uint64(level[j])
            N[g] += 1
            Z[g] += z[j]
            ahead -= 1
        i = np.uint64(documents[position])
        g = np.uint64(level[i])
        L = Lz = 0.0
        for h in range(g):
            L += V[g, h] * N[h]
            Lz += V[g, h] * Z[h]
        count[i] = L
        lead[i] = -L
        total[i] = Lz
    N[:] = 0.0
    Z[:] = 0.0
    ahead = lo
    for position in range(lo, hi):
        while ahead < hi and key[position] - key[ahead] > -margin:
            i = np.uint64(documents[ahead])
            g = np.uint64(level[i])
            zi = z[i]
            for h in range(g):
                v = V[g, h]
                N[h] += v
                Z[h] += v * zi
            ahead += 1
        j = np.uint64(documents[position])
        g = np.uint64(level[j])
        U = N[g]
        count[j] += U
        lead[j] += U
        total[j] += Z[g]


@kernel
def violation_sums(  # type: ignore[no-untyped-def]
    x, z, margin, a, b, alpha, beta, first, last, document, edge, sorted_, spare, count, lead, total
):
    """Fill count, lead and total over all pairs of grades of a query; all arrays in ascending order of grade."""
    begin = document[first]
    grades = last - first
    for g in range(grades + 1):
        edge[g] = document[first + g] - begin
    key, key_spare = np.empty(edge[grades]), np.empty(edge[grades])
    run, smaller, seen = np.empty(_RUN), np.empty(_RUN), np.empty(_RUN, np.int64)
    V, N, Z = np.empty((_GRADES, _GRADES)), np.empty(_GRADES), np.empty(_GRADES)
    for bottom in range(0, grades, _GRADES):
        top = min(bottom + _GRADES, grades)
        lo, hi = edge[bottom], edge[top]
        for left in range(lo, hi, _RUN):
            _sort_run(x, left, min(left + _RUN, hi), run, smaller, seen, key, sorted_)
        length = _RUN
        while length < hi - lo:
            for left in range(lo, hi - length, 2 * length):
                _merge(key, sorted_, left, left + length, min(left + 2 * length, hi), key_spare, spare)
            length *= 2
        # Between merges the spare array is free to hold the grades.
        for g in range(bottom, top):
            i = edge[g]
            spare[i : edge[g + 1]] = g - bottom
            for h in range(bottom, g):
                j = edge[h]
                V[g - bottom, h - bottom] = (alpha + a[i] - a[j]) * (beta + b[i] - b[j])
        _violations_within(key, sorted_, lo, hi, z, margin, spare, V, N, Z, count, lead, total)
    width = _GRADES
    while width < grades:
        for g in range(0, grades - width, 2 * width):
            lo, middle, hi = edge[g], edge[g + width], edge[min(g + 2 * width, grades)]
            low, high = sorted_[lo:middle], sorted_[middle:hi]
            # The documents are numbered by grade: the first number of the higher side has its lowest grade.
            _violations(x, z, margin, a, b, alpha, beta, a[middle], b[middle], low, high, count, lead, total)
            _merge(key, sorted_, lo, middle, hi, key_spare, spare)
        width *= 2


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
        violation_sums(x, x, 1.0, a, b, alpha, beta, first, last, document, edge, sorted_, spare, count, lead, total)
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
        violation_sums(x, x, 0.0, a, b, alpha, beta, first, last, document, edge, sorted_, spare, count, lead, total)
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
        violation_sums(x, z, 0.0, a, b, alpha, beta, first, last, document, edge, sorted_, spare, count, lead, total)
        for g in range(first, last):
            low, high = document[g] - begin, document[g + 1] - begin
            mean = 0.0
            for i in range(low, high):
                mean += z[i]
            mean /= high - low
            for i in range(low, high):
                own = kappa[q] * (count[i] * z[i] - total[i])
                out_q[order[begin + i]] = 2 * weight[q] * (own + lam1[q] * (high - low) * (z[i] - mean))
