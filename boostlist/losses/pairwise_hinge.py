r"""Loops of the hinge losses in O(n log n): sums over the pairs that violate their margin.

Only pairs y_i > y_j with x_j - x_i > -margin count: x = f, margin 1 for the hinge (1 - d)_+, and x = f - t, margin 0
for the squared hinge (t_i - t_j - d)_+^2 = (x_j - x_i)_+^2. With V as in `pairwise_loops` and sums over those pairs
only, L_i over the documents below i and U_i over those above,

- hinge: gradient = U(1) - L(1), value = sum_i L_i(1) + sum_i f_i gradient_i
- squared hinge: gradient = 2 [ (L(1) + U(1)) x - L(x) - U(x) ], H_ii = 2 (L(1) + U(1)),
  H v = 2 [ (L(1) + U(1)) v - L(v) - U(v) ], value = 1/2 sum_i x_i gradient_i, as it is homogeneous of degree 2 in x

Grades are taken eight at a time. Such a group is sorted by x, and at every position running sums are kept, one for each
grade that a document may have: its L and U are the sums at the positions where the margin ceases to be violated. Then
neighbouring groups are merged, two by two, until one is left. When lower grades meet higher ones, a pointer runs over
the one side while the other is walked through: O(n log n) for sorting and O(n) in each of the log G rounds. There the
weights are taken apart at the lowest grade A0, B0 of the higher side,

    V_ij / kappa = (a_i + a_j)(b_i + b_j),  a_i = alpha + A_i - A0, a_j = A0 - A_j, b likewise, all >= 0.

Within a group there is no branch that depends on the scores: a wrong guess of the processor costs more than a few
comparisons. Indices that are read from arrays are made unsigned, as signed ones are tested for counting from the end.
"""

from __future__ import annotations

import numpy as np

from boostlist.losses.pairwise_loops import gather, sums_below
from boostlist.parallel import compiled, longest

# Grades that are taken together. More would cost more than the rounds of merging that they save.
_GRADES = 8
# Documents that are sorted by counting, and by how many at once.
_RUN, _LANES = 128, 16


@compiled
def _violations(x, z, margin, a, b, alpha, beta, A0, B0, low, high, L, U, total):  # type: ignore[no-untyped-def]
    """Add L(1), U(1) and L(z) + U(z) over low x high, both sorted by x, to L, U and total; without z leave total."""
    m00 = m10 = m01 = m11 = z00 = z10 = z01 = z11 = 0.0
    j = low.size - 1
    for position in range(high.size - 1, -1, -1):
        i = high[position]
        while j >= 0 and x[low[j]] - x[i] > -margin:
            k = low[j]
            aj, bj = A0 - a[k], B0 - b[k]
            m00 += 1
            m10 += aj
            m01 += bj
            m11 += aj * bj
            if z is not None:
                z00 += z[k]
                z10 += aj * z[k]
                z01 += bj * z[k]
                z11 += aj * bj * z[k]
            j -= 1
        ai, bi = alpha + a[i] - A0, beta + b[i] - B0
        L[i] += ai * (bi * m00 + m01) + bi * m10 + m11
        if z is not None:
            total[i] += ai * (bi * z00 + z01) + bi * z10 + z11
    m00 = m10 = m01 = m11 = z00 = z10 = z01 = z11 = 0.0
    i = 0
    for position in range(low.size):
        j = low[position]
        while i < high.size and x[j] - x[high[i]] > -margin:
            k = high[i]
            ai, bi = alpha + a[k] - A0, beta + b[k] - B0
            m00 += 1
            m10 += ai
            m01 += bi
            m11 += ai * bi
            if z is not None:
                z00 += z[k]
                z10 += ai * z[k]
                z01 += bi * z[k]
                z11 += ai * bi * z[k]
            i += 1
        aj, bj = A0 - a[j], B0 - b[j]
        U[j] += aj * (bj * m00 + m01) + bj * m10 + m11
        if z is not None:
            total[j] += aj * (bj * z00 + z01) + bj * z10 + z11


@compiled
def _sort_run(x, lo, hi, run, seen, key, out):  # type: ignore[no-untyped-def]
    """Sort the documents lo:hi, at most _RUN, by counting for each one those that are smaller."""
    n = hi - lo
    padded = (n + _LANES - 1) // _LANES * _LANES
    for k in range(padded):
        run[k] = x[lo + k] if k < n else np.inf
        seen[k] = 0
    for k in range(n):
        xk, smaller = run[k], 0
        for j in range(padded):
            smaller += run[j] < xk
        rank = np.uint64(smaller)
        at = np.uint64(lo) + rank + np.uint64(seen[rank])
        seen[rank] += 1
        key[at] = xk
        out[at] = lo + k


@compiled
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


@compiled
def _frontiers(key, margin, first, last):  # type: ignore[no-untyped-def]
    """Find where the margin ceases to be violated, for documents sorted by key.

    A document at position p violates it with all from first[p] on, were they of lower grade, and with all before
    last[p], were they of higher grade. Beyond the documents, key has an element to spare.
    """
    n = key.size - 1
    key[n] = np.inf
    if margin == 0:  # then they are the ends of the ties
        begin, end = 0, n
        for p in range(n):
            begin = begin if p == 0 or key[p] == key[p - 1] else p
            last[p] = begin
        for p in range(n - 1, -1, -1):
            end = end if key[p] == key[p + 1] else p + 1
            first[p] = end
        return
    low = high = steps = np.uint64(0)
    while high < np.uint64(n):
        first[high] = low
        last[low] = high
        low += np.uint64(key[low] - key[high] <= -margin)
        steps += np.uint64(1)
        high = steps - low
    last[low:] = n


@compiled
def _add(before, weights, z, after):  # type: ignore[no-untyped-def]
    """Fill after = before + weights z."""
    for g in range(_GRADES):
        after[g] = before[g] + weights[g] * z


@compiled
def _violations_within(documents, grade, z, above, below, first, last, N, Z, L, U, total):  # type: ignore[no-untyped-def]
    """Fill L, U and total as in `_violations` over all pairs of documents, whose grades are counted from 0.

    N_kg and Z_kg are L(1) and L(z) of a document of grade g over documents[k:], then U(1) and U(z) over documents[:k].
    """
    n = documents.size
    N[n] = Z[n] = 0.0
    for k in range(n - 1, -1, -1):
        weights = above[np.uint64(grade[k])]
        _add(N[k + 1], weights, 1.0, N[k])
        if z is not None:
            _add(Z[k + 1], weights, z[np.uint64(documents[k])], Z[k])
    for k in range(n):
        i, g, end = np.uint64(documents[k]), np.uint64(grade[k]), np.uint64(first[k])
        L[i] = N[end, g]
        if z is not None:
            total[i] = Z[end, g]
    N[0] = Z[0] = 0.0
    for k in range(n):
        weights = below[np.uint64(grade[k])]
        _add(N[k], weights, 1.0, N[k + 1])
        if z is not None:
            _add(Z[k], weights, z[np.uint64(documents[k])], Z[k + 1])
    for k in range(n):
        i, g, end = np.uint64(documents[k]), np.uint64(grade[k]), np.uint64(last[k])
        U[i] = N[end, g]
        if z is not None:
            total[i] += Z[end, g]


@compiled
def workspace(lo, hi, start, level_start):  # type: ignore[no-untyped-def]
    """Return what `violation_sums` works on, large enough for each of the queries lo <= q < hi."""
    size = longest(lo, hi, start)
    edge = np.empty(longest(lo, hi, level_start) + 1, np.int64)
    doubles = np.empty((4, size + 1))
    counts = np.empty((2, size + 1), np.int64)
    documents = np.empty((3, size), np.int32)
    run = np.empty(_RUN), np.empty(_RUN, np.int64)
    weights = np.zeros((2, _GRADES, _GRADES))
    sums = np.empty((2, size + 1, _GRADES))
    return edge, doubles, counts, documents, run, weights, sums


@compiled
def violation_sums(  # type: ignore[no-untyped-def]
    x, z, margin, first, last, alpha, beta, document, A, B, space, L, U, total
):
    """Fill L, U and total over all pairs of grades of a query; x, z and these in ascending order of grade."""
    edge, (key, key_spare, a, b), (front, back), (sorted_, spare, level), (run, seen), (above, below), (N, Z) = space
    begin = document[first]
    grades = last - first
    for g in range(grades + 1):
        edge[g] = document[first + g] - begin
    for bottom in range(0, grades, _GRADES):
        top = min(bottom + _GRADES, grades)
        lo, hi = edge[bottom], edge[top]
        for left in range(lo, hi, _RUN):
            _sort_run(x, left, min(left + _RUN, hi), run, seen, key, sorted_)
        length = _RUN
        while length < hi - lo:
            for left in range(lo, hi - length, 2 * length):
                _merge(key, sorted_, left, left + length, min(left + 2 * length, hi), key_spare, spare)
            length *= 2
        for g in range(bottom, top):
            i = first + g
            level[edge[g] : edge[g + 1]] = g - bottom
            for h in range(bottom, g):
                j = first + h
                V = (alpha + A[i] - A[j]) * (beta + B[i] - B[j])
                above[h - bottom, g - bottom] = below[g - bottom, h - bottom] = V
        for k in range(lo, hi):
            spare[k] = level[np.uint64(sorted_[k])]
        _frontiers(key[lo : hi + 1], margin, front, back[: hi - lo + 1])
        _violations_within(sorted_[lo:hi], spare[lo:hi], z, above, below, front, back, N, Z, L, U, total)
    if grades <= _GRADES:
        return
    for g in range(grades):
        a[edge[g] : edge[g + 1]] = A[first + g]
        b[edge[g] : edge[g + 1]] = B[first + g]
    width = _GRADES
    while width < grades:
        for g in range(0, grades - width, 2 * width):
            lo, middle, hi = edge[g], edge[g + width], edge[min(g + 2 * width, grades)]
            low, high = sorted_[lo:middle], sorted_[middle:hi]
            # The documents are numbered by grade: the first number of the higher side has its lowest grade.
            _violations(x, z, margin, a, b, alpha, beta, a[middle], b[middle], low, high, L, U, total)
            _merge(key, sorted_, lo, middle, hi, key_spare, spare)
        width *= 2


@compiled
def centred(f, order, x):  # type: ignore[no-untyped-def]
    """Fill x with the scores in the given order, less the first of them: only differences count."""
    middle = f[order[0]]
    for i in range(order.size):
        x[i] = f[np.uint64(order[i])] - middle


@compiled
def hinge(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, need, value, gradient, diag, kappa, alpha, beta, order, level_start, document, A, B
):
    """Value, gradient and heuristic diagonal of the hinge loss."""
    x, L, U, total = np.empty((4, longest(lo, hi, start)))
    X, below = np.empty((2, longest(lo, hi, level_start)))
    space = workspace(lo, hi, start, level_start)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        gradient_q, diag_q = gradient[rows], diag[rows]
        if kappa[q] == 0:
            gradient_q[:] = 0.0
            diag_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        fq, order_q = f[rows], order[rows]
        centred(fq, order_q, x)
        violation_sums(x, None, 1.0, first, last, alpha, beta, document, A, B, space, L, U, total)
        for g in range(first, last):
            X[g - first] = document[g + 1] - document[g]
        sums_below(first, last, alpha, beta, A, B, X, below)
        pairs = loss = 0.0
        for g in range(last - first):
            pairs += X[g] * below[g]
        scale = weight[q] * kappa[q]
        diag_q[:] = scale * 2 * pairs / fq.size
        for i in range(fq.size):
            lead = U[i] - L[i]
            gradient_q[np.uint64(order_q[i])] = scale * lead
            loss += L[i] + x[i] * lead
        value[q] = kappa[q] * max(loss, 0.0)


@compiled
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
    x, L, U, total = np.empty((4, longest(lo, hi, start)))
    space = workspace(lo, hi, start, level_start)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        gradient_q, diag_q = gradient[rows], diag[rows]
        if kappa[q] == 0:
            gradient_q[:] = 0.0
            diag_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        begin, order_q = document[first], order[rows]
        centred(f[rows], order_q, x)
        for g in range(first, last):
            for i in range(document[g] - begin, document[g + 1] - begin):
                x[i] -= targets[g]
        violation_sums(x, x, 0.0, first, last, alpha, beta, document, A, B, space, L, U, total)
        loss = 0.0
        for g in range(first, last):
            low, high = document[g] - begin, document[g + 1] - begin
            tie, scale = lam1[q] * (high - low), 2 * weight[q]
            mean = np.mean(x[low:high]) if tie > 0 else 0.0
            for i in range(low, high):
                count = kappa[q] * (L[i] + U[i])
                own, tied = count * x[i] - kappa[q] * total[i], tie * (x[i] - mean)
                row = np.uint64(order_q[i])
                gradient_q[row] = scale * (own + tied)
                diag_q[row] = scale * (count + (tie - lam1[q]))
                loss += x[i] * own + (x[i] - mean) * tied
        value[q] = max(loss, 0.0)


@compiled
def squared_hinge_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, kappa, alpha, beta, order, level_start, document, A, B, targets, lam1
):
    """Product of the generalised Hessian of the squared hinge loss and a vector."""
    x, z, L, U, total = np.empty((5, longest(lo, hi, start)))
    space = workspace(lo, hi, start, level_start)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        out_q = out[rows]
        if kappa[q] == 0:
            out_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        begin, order_q = document[first], order[rows]
        centred(f[rows], order_q, x)
        gather(v[rows], order_q, z)
        for g in range(first, last):
            for i in range(document[g] - begin, document[g + 1] - begin):
                x[i] -= targets[g]
        violation_sums(x, z, 0.0, first, last, alpha, beta, document, A, B, space, L, U, total)
        for g in range(first, last):
            low, high = document[g] - begin, document[g + 1] - begin
            mean = np.mean(z[low:high])
            for i in range(low, high):
                own = kappa[q] * ((L[i] + U[i]) * z[i] - total[i])
                out_q[order_q[i]] = 2 * weight[q] * (own + lam1[q] * (high - low) * (z[i] - mean))
