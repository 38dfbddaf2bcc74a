r"""Loops of the hinge losses in O(n log n): sums over the pairs that violate their margin.

Only pairs y_i > y_j with x_j - x_i > -m count, for the margin m: x = f, m = 1 for the hinge (1 - d)_+; for the squared
hinge (m + t_i - t_j - d)_+^2 = (m + x_j - x_i)_+^2, x = f - t. With V as in `pairwise_loops` and sums over those pairs
only, L_i over the documents below i and U_i over those above,

- hinge: gradient = U(1) - L(1), value = sum_i L_i(1) + sum_i f_i gradient_i
- squared hinge: gradient = 2 [ (L(1) + U(1)) x - L(x) - U(x) + m (U(1) - L(1)) ], H_ii = 2 (L(1) + U(1)),
  H v = 2 [ (L(1) + U(1)) v - L(v) - U(v) ], and (m - d)^2 = m^2 - 2 m d + d^2 summed from the side of the documents is
  value = sum_i [ m^2 / 2 (L(1) + U(1)) + 2 m (U(1) - L(1)) x_i + x_i ((L(1) + U(1)) x - L(x) - U(x))_i ]

Grades are taken eight at a time. Such a group is sorted by x, and at every position running sums are kept, one for each
grade that a document may have: its L and U are the sums at the positions where the margin ceases to be violated. Then
neighbouring groups are merged, two by two, until one is left. When lower grades meet higher ones, a pointer runs over
the one side while the other is walked through: O(n log n) for sorting and O(n) in each of the log G rounds. There the
weights are taken apart at the lowest grade A0, B0 of the higher side,

    V_ij / kappa = (a_i + a_j)(b_i + b_j),  a_i = alpha + A_i - A0, a_j = A0 - A_j, b likewise, all >= 0.

Within a group no branch depends on the scores, for the reason that `sorting` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.pairwise_loops import PairTables
from boostlist.losses.shared_loops import gather, spread_by_grade, sums_below
from boostlist.losses.weights import Factors
from boostlist.parallel import compiled, inlined, inner
from boostlist.sorting import SortSpace, merge, sort, sort_space

if TYPE_CHECKING:
    from boostlist._typing import AnyArray, FloatArray, IntArray
    from boostlist.levels import Levels

# Grades that are taken together. More would cost more than the rounds of merging that they save.
_GRADES = 8


class HingeTables(NamedTuple):
    """`PairTables`, with the margin, the target t of each level, and the weight of tied pairs by query.

    many is None where no query has more than `_GRADES` grades: then what merges groups of grades is not compiled.
    """

    kappa: FloatArray
    V: Factors
    levels: Levels
    margin: float
    targets: FloatArray
    lam1: FloatArray
    many: bool | None


def hinge_tables(pairs: PairTables, margin: float, targets: FloatArray, lam1: FloatArray) -> HingeTables:
    """Return the tables of a hinge loss."""
    many = np.diff(pairs.levels.start).max(initial=0) > _GRADES
    return HingeTables(*pairs, margin, targets, lam1, True if many else None)


class Space(NamedTuple):
    """What `_violation_sums` works in.

    Attributes
    ----------
    edge
        Where each grade begins, in ascending order of grade.
    key, document
        Scores in ascending order, group by group, and the documents that have them.
    first, last
        Where the margin ceases to be violated, by position.
    grade
        Grade of each document within its group.
    a, b
        Factors of the weights by document.
    above, below
        Weights of the pairs of grades of a group.
    N, Z
        Running sums of weights and of weights times z.
    """

    edge: IntArray
    key: FloatArray
    document: AnyArray
    first: IntArray
    last: IntArray
    grade: AnyArray
    a: FloatArray
    b: FloatArray
    above: FloatArray
    below: FloatArray
    N: FloatArray
    Z: FloatArray
    sort: SortSpace


class Sums(NamedTuple):
    """L(1), U(1) and, if there is a z, L(z) + U(z), by document in ascending order of grade, as x and z are."""

    L: FloatArray
    U: FloatArray
    total: FloatArray


@inner
def _violations(x, z, margin, V, middle, low, high, sums):  # type: ignore[no-untyped-def]
    """Add what is due to low x high, both sorted by x, to the sums; without z leave their total.

    V is by document, and `middle` has the lowest grade of the higher side.
    """
    alpha, beta, a, b = V
    A0, B0 = a[middle], b[middle]
    L, U, total = sums
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


@inner
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


@inner
def _add(before, weights, z, after):  # type: ignore[no-untyped-def]
    """Fill after = before + weights z."""
    for g in range(_GRADES):
        after[g] = before[g] + weights[g] * z


@inner
def _violations_within(documents, grade, z, space, sums):  # type: ignore[no-untyped-def]
    """Fill the sums over all pairs of documents, whose grades are counted from 0.

    N_kg and Z_kg are L(1) and L(z) of a document of grade g over documents[k:], then U(1) and U(z) over documents[:k].
    """
    n, N, Z = documents.size, space.N, space.Z
    L, U, total = sums
    N[n] = Z[n] = 0.0
    for k in range(n - 1, -1, -1):
        weights = space.above[np.uint64(grade[k])]
        _add(N[k + 1], weights, 1.0, N[k])
        if z is not None:
            _add(Z[k + 1], weights, z[np.uint64(documents[k])], Z[k])
    for k in range(n):
        i, g, end = np.uint64(documents[k]), np.uint64(grade[k]), np.uint64(space.first[k])
        L[i] = N[end, g]
        if z is not None:
            total[i] = Z[end, g]
    N[0] = Z[0] = 0.0
    for k in range(n):
        weights = space.below[np.uint64(grade[k])]
        _add(N[k], weights, 1.0, N[k + 1])
        if z is not None:
            _add(Z[k], weights, z[np.uint64(documents[k])], Z[k + 1])
    for k in range(n):
        i, g, end = np.uint64(documents[k]), np.uint64(grade[k]), np.uint64(space.last[k])
        U[i] = N[end, g]
        if z is not None:
            total[i] += Z[end, g]


@inlined
def _space(size):  # type: ignore[no-untyped-def]
    """Return space that is large enough for so many documents."""
    edge = np.empty(size + 1, np.int64)
    key, a, b = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1)
    first, last = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    document, grade = np.empty(size, np.int32), np.empty(size, np.int32)
    above, below = np.zeros((_GRADES, _GRADES)), np.zeros((_GRADES, _GRADES))
    N, Z = np.empty((size + 1, _GRADES)), np.empty((size + 1, _GRADES))
    return Space(edge, key, document, first, last, grade, a, b, above, below, N, Z, sort_space(size))


@inlined
def _violation_sums(x, z, margin, first, last, V, levels, many, space, sums):  # type: ignore[no-untyped-def]
    """Fill the sums over all pairs of grades of a query."""
    alpha, beta, A, B = V
    edge, key, document, front, back, grade, _, _, above, below, _, _, sort_space = space
    grades = last - first
    for g in range(grades + 1):
        edge[g] = levels.document[first + g] - levels.document[first]
    for bottom in range(0, grades, _GRADES):
        top = min(bottom + _GRADES, grades)
        lo, hi = edge[bottom], edge[top]
        sort(x, lo, hi, key, document, sort_space)
        for g in range(bottom, top):
            i = first + g
            grade[edge[g] : edge[g + 1]] = g - bottom
            for h in range(bottom, g):
                j = first + h
                above[h - bottom, g - bottom] = (alpha + A[i] - A[j]) * (beta + B[i] - B[j])
                below[g - bottom, h - bottom] = above[h - bottom, g - bottom]
        sorted_grade = sort_space.order
        for k in range(lo, hi):
            sorted_grade[k] = grade[np.uint64(document[k])]
        _frontiers(key[lo : hi + 1], margin, front, back[: hi - lo + 1])
        _violations_within(document[lo:hi], sorted_grade[lo:hi], z, space, sums)
    _merge_groups(many, x, z, margin, first, last, V, levels, space, sums)


@inner
def _merge_groups(many, x, z, margin, first, last, V, levels, space, sums):  # type: ignore[no-untyped-def]
    """Merge groups of grades, two by two, and add what is due to pairs of documents that meet."""
    if many is None:
        return
    alpha, beta, A, B = V
    edge, key, document, a, b = space.edge, space.key, space.document, space.a, space.b
    grades, width = last - first, _GRADES
    if width < grades:
        spread_by_grade(first, last, levels.document, A, a)
        spread_by_grade(first, last, levels.document, B, b)
    while width < grades:
        for g in range(0, grades - width, 2 * width):
            lo, middle, hi = edge[g], edge[g + width], edge[min(g + 2 * width, grades)]
            low, high = document[lo:middle], document[middle:hi]
            # The documents are numbered by grade: the first number of the higher side has its lowest grade.
            _violations(x, z, margin, Factors(alpha, beta, a, b), middle, low, high, sums)
            merge(key, document, lo, middle, hi, space.sort)
        width *= 2


@inner
def _centred(f, order, x):  # type: ignore[no-untyped-def]
    """Fill x with the scores in the given order, less the first of them: only differences count."""
    middle = f[order[0]]
    for i in range(order.size):
        x[i] = f[np.uint64(order[i])] - middle


@compiled
def hinge(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and heuristic diagonal of the hinge loss."""
    kappa, V, levels, many = tables.kappa, tables.V, tables.levels, tables.many
    document = levels.document
    most = lists.longest
    x, L, U, total = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    sums = Sums(L, U, total)
    X, below = np.empty(most), np.empty(most)
    space = _space(most)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        gradient, diag, order = out.gradient[rows], out.diag[rows], levels.order[rows]
        first, last = levels.start[q], levels.start[q + 1]
        _centred(f[rows], order, x)
        _violation_sums(x, None, 1.0, first, last, V, levels, many, space, sums)
        for g in range(first, last):
            X[g - first] = document[g + 1] - document[g]
        sums_below(first, last, V, X, below)
        pairs = loss = 0.0
        for g in range(last - first):
            pairs += X[g] * below[g]
        scale = lists.weight[q] * kappa[q]
        diag[:] = scale * 2 * pairs / order.size
        for i in range(order.size):
            lead = U[i] - L[i]
            gradient[np.uint64(order[i])] = scale * lead
            loss += L[i] + x[i] * lead
        out.value[q] = kappa[q] * max(loss, 0.0)


@inner
def _less_targets(f, order, first, last, tables, x):  # type: ignore[no-untyped-def]
    """Fill x with scores less targets, in ascending order of grade, relative to one of the scores."""
    document, targets = tables.levels.document, tables.targets
    _centred(f, order, x)
    begin = document[first]
    for g in range(first, last):
        for i in range(document[g] - begin, document[g + 1] - begin):
            x[i] -= targets[g]


@compiled
def squared_hinge(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal of the squared hinge loss with a term lam1 (f_i - f_j)^2 for tied pairs."""
    levels, margin = tables.levels, tables.margin
    document = levels.document
    most = lists.longest
    x, L, U, total = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    sums = Sums(L, U, total)
    space = _space(most)
    for q in lists.query:
        rows, kappa, lam1 = slice(lists.start[q], lists.start[q + 1]), tables.kappa[q], tables.lam1[q]
        gradient, diag, order = out.gradient[rows], out.diag[rows], levels.order[rows]
        first, last = levels.start[q], levels.start[q + 1]
        begin, scale = document[first], 2 * lists.weight[q]
        _less_targets(f[rows], order, first, last, tables, x)
        _violation_sums(x, x, margin, first, last, tables.V, levels, tables.many, space, sums)
        loss = 0.0
        for g in range(first, last):
            low, high = document[g] - begin, document[g + 1] - begin
            tie = lam1 * (high - low)
            mean = np.mean(x[low:high]) if tie > 0 else 0.0
            for i in range(low, high):
                count, push = kappa * (L[i] + U[i]), margin * kappa * (U[i] - L[i])
                own, tied = count * x[i] - kappa * total[i], tie * (x[i] - mean)
                row = np.uint64(order[i])
                gradient[row] = scale * (own + push + tied)
                diag[row] = scale * (count + (tie - lam1))
                loss += 0.5 * margin * margin * count + x[i] * (2 * push + own) + (x[i] - mean) * tied
        out.value[q] = max(loss, 0.0)


@compiled
def squared_hinge_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    """Product of the generalised Hessian of the squared hinge loss and a vector."""
    levels = tables.levels
    document = levels.document
    most = lists.longest
    x, z = np.empty(most), np.empty(most)
    L, U, total = np.empty(most), np.empty(most), np.empty(most)
    sums = Sums(L, U, total)
    space = _space(most)
    for q in lists.query:
        rows, kappa, lam1 = slice(lists.start[q], lists.start[q + 1]), tables.kappa[q], tables.lam1[q]
        out_q, order = out[rows], levels.order[rows]
        first, last = levels.start[q], levels.start[q + 1]
        begin, scale = document[first], 2 * lists.weight[q]
        _less_targets(f[rows], order, first, last, tables, x)
        gather(v, levels.order, begin, order.size, z)
        _violation_sums(x, z, tables.margin, first, last, tables.V, levels, tables.many, space, sums)
        for g in range(first, last):
            low, high = document[g] - begin, document[g + 1] - begin
            mean = np.mean(z[low:high])
            for i in range(low, high):
                own = kappa * ((L[i] + U[i]) * z[i] - total[i])
                out_q[order[i]] = scale * (own + lam1 * (high - low) * (z[i] - mean))
