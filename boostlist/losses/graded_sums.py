r"""Sums over all pairs of different grade, by `difference_sums`: in O(n), or O(n log n) where labels nearly all differ.

    S_i = sum_{j: y_j != y_i} V_ij w_j K(x_i - x_j),   V_ij = (alpha + |A_i - A_j|)(beta + |B_i - B_j|)

The documents, in ascending order of grade, are cut into bunches of whole grades. On the way up from bunch to bunch, and
once more on the way down, the boxes keep the moments of all documents passed, about the last grade that was passed as
in `pairwise_loops`: M00, M10, M01 and M11, of the weights w_j, (alpha + |A - A_j|) w_j, (beta + |B - B_j|) w_j and
V_j w_j. For a document whose A and B lie dA and dB beyond,

    V_ij = M11 + dA M01 + dB M10 + dA dB M00   in terms of what they sum

A bunch of several grades is then a list of its own: divide and conquer over the order of grades. Few grades are
bunches of their own, dA = dB = 0, and M11 is all that is translated; bunches of a few documents have a double loop.
"""

from __future__ import annotations

import numpy as np

from boostlist.losses.difference_sums import (
    CURVATURES,
    SLOPES,
    VALUES,
    add_moments,
    evaluate,
    lay_out,
    sum_time,
    translate,
    translation_time,
)
from boostlist.losses.ratios import exponentials, ratios
from boostlist.losses.shared_loops import spread_by_grade
from boostlist.parallel import compiled, vectorized

# Up to so many grades are bunches of their own; more make bunches of no less than so many parts of the documents.
_BUNCHES = 32
# Measured times in ns of one of n^2 pairs in `_directly`, without E and with it.
_PAIR, _PAIR_WITH_VALUE = 0.5, 5.0


@compiled
def _cut(bounds, low, high, small):  # type: ignore[no-untyped-def]
    """Return where to cut the grades low:high into bunches, ends included; small ones have `small` documents."""
    if high - low <= _BUNCHES:
        return np.arange(low, high + 1)
    size = max(small, (bounds[high] - bounds[low]) // _BUNCHES)
    cuts, used = np.empty(high - low + 1, np.int64), 1
    cuts[0] = low
    for g in range(low + 1, high):
        if bounds[g + 1] - bounds[cuts[used - 1]] > size:
            cuts[used] = g
            used += 1
    cuts[used] = high
    return cuts[: used + 1]


@vectorized
def _step(m, dA, dB):  # type: ignore[no-untyped-def]
    """Move the moments about a grade to one whose A and B are dA and dB away."""
    m00, m10, m01, m11 = m[0].reshape(-1), m[1].reshape(-1), m[2].reshape(-1), m[3].reshape(-1)
    for k in range(m00.size):
        m11[k] += dA * m01[k] + dB * (m10[k] + dA * m00[k])
        m10[k] += dA * m00[k]
        m01[k] += dB * m00[k]


@vectorized
def _absorb(m, alpha, beta, own):  # type: ignore[no-untyped-def]
    """Add the moments of documents of the grade that the others are about, and clear them."""
    m00, m10, m01, m11 = m[0].reshape(-1), m[1].reshape(-1), m[2].reshape(-1), m[3].reshape(-1)
    moments = own.reshape(-1)
    for k in range(moments.size):
        x = moments[k]
        m00[k] += x
        m10[k] += alpha * x
        m01[k] += beta * x
        m11[k] += alpha * beta * x
        moments[k] = 0.0


@compiled
def _multiply(x, alpha, A, at):  # type: ignore[no-untyped-def]
    """Multiply x by alpha + |A - at|."""
    for i in range(x.size):
        x[i] *= alpha + abs(A[i] - at)


@compiled
def _between(layout, w, V, ends, profile, first, last, below, above):  # type: ignore[no-untyped-def]
    """Add the sums over pairs of documents in different bunches, which end at `ends`; A and B are by document.

    Of the four moments the bits of the number say whether alpha + |A - A_j| and beta + |B - B_j| are part of them.
    """
    box, t, number = layout
    alpha, beta, A, B = V
    matrix, tail = profile.matrix[first : last + 1], profile.tail[first : last + 1]
    shape = (number.size, matrix.shape[2])
    own, coefficients, wanted = np.zeros(shape), np.empty((matrix.shape[0], *shape)), np.empty(number.size, np.bool_)
    bunches = ends.size - 1
    for up in (True, False):
        out, m, passed = below if up else above, np.zeros((4, *shape)), 0
        for step in range(bunches):
            k = step if up else bunches - 1 - step
            rows = slice(ends[k], ends[k + 1])
            near, far = (rows.start, rows.stop - 1) if up else (rows.stop - 1, rows.start)
            varied = (0 if A[near] == A[far] else 1) | (0 if B[near] == B[far] else 2)
            if step > 0:
                _step(m, abs(A[near] - A[passed]), abs(B[near] - B[passed]))
                wanted[:] = False
                wanted[box[rows]] = True
                for charge in range(4):
                    if varied | charge == 3:
                        scale = np.ones(rows.stop - rows.start)
                        if not charge & 1:
                            _multiply(scale, 0.0, A[rows], A[near])
                        if not charge & 2:
                            _multiply(scale, 0.0, B[rows], B[near])
                        translate(number, wanted, m[charge], profile.half, profile.reach, matrix, tail, coefficients)
                        evaluate(box[rows], t[rows], coefficients, scale, out[rows])
                _step(m, abs(A[far] - A[near]), abs(B[far] - B[near]))
            passed = far
            if step == bunches - 1:
                break
            if varied:
                for charge in range(4):
                    weight = w[rows].copy()
                    if charge & 1:
                        _multiply(weight, alpha, A[rows], A[far])
                    if charge & 2:
                        _multiply(weight, beta, B[rows], B[far])
                    add_moments(box[rows], t[rows], weight, m[charge])
            else:
                add_moments(box[rows], t[rows], w[rows], own)
                _absorb(m, alpha, beta, own)


@vectorized
def _row(r, A, B, a, b, c, w, own, slopes, curvatures):  # type: ignore[no-untyped-def]
    """Add the pairs of one document with lower ones, r = e^-u, to the sums of these, and return its own."""
    slope = curvature = 0.0
    for j in range(r.size):
        V = (a - A[j]) * (b - B[j])
        inverse = 1 / (1 + r[j] * (2 * c + r[j]))
        square = r[j] * r[j]
        first = V * ((1 - square) * inverse)
        second = V * ((2 * r[j]) * inverse) * ((c * (1 + square) + 2 * r[j]) * inverse)
        slopes[j] -= own * first
        curvatures[j] += own * second
        slope += w[j] * first
        curvature += w[j] * second
    return slope, curvature


@compiled
def _value_row(x, A, B, a, b, xi, c, w, own, values):  # type: ignore[no-untyped-def]
    """Do the same for E."""
    value = 0.0
    for j in range(A.size):
        u = abs(xi - x[j])
        r = np.exp(-u)
        VE = (a - A[j]) * (b - B[j]) * (u + np.log1p(r * (2 * c + r)))
        values[j] += own * VE
        value += w[j] * VE
    return value


@compiled
def _directly(x, w, V, bounds, c, first, last, below, above):  # type: ignore[no-untyped-def]
    """Add the sums over pairs of different grade by a double loop; A and B are by document."""
    alpha, beta, A, B = V
    n = x.size
    E, ratio, lower, higher = np.empty(n), np.empty(n), np.zeros((3, n)), np.zeros((3, n))
    near = exponentials(x, E)
    for g in range(1, bounds.size - 1):
        m = bounds[g] - bounds[0]
        for i in range(m, bounds[g + 1] - bounds[0]):
            a, b = alpha + A[i], beta + B[i]
            ratios(near, x, E, i, 0, m, ratio)
            lower[SLOPES, i], lower[CURVATURES, i] = _row(
                ratio[:m], A, B, a, b, c, w, w[i], higher[SLOPES], higher[CURVATURES]
            )
            if first == VALUES:
                lower[VALUES, i] = _value_row(x, A[:m], B, a, b, x[i], c, w, w[i], higher[VALUES])
    for i in range(n):
        for f in range(first, last + 1):
            below[i, f - first] += lower[f, i]
            above[i, f - first] += higher[f, i]


@compiled
def _plan(n, boxes, grades, profile, first, last):  # type: ignore[no-untyped-def]
    """Return the documents of a small bunch, what sums over bunches take, and what a double loop takes, in ns.

    Small bunches of m documents take m^2 for the pairs within, and T for translations: m = sqrt(T).
    """
    few = grades <= _BUNCHES
    functions = (last + 1 - first) * (1 if few else 2)
    pair = _PAIR_WITH_VALUE if first == VALUES else _PAIR
    small = 1 + int(np.sqrt(2 * translation_time(boxes, boxes, profile.reach, functions) / pair))
    rounds = grades if few else n / small
    bunches = 2 * sum_time(n, boxes, profile.reach, functions, rounds) + (0 if few else pair * small * n)
    return small, bunches, pair * n * n


@compiled
def graded_sums(pair, x, w, bounds, V, profile, first, last, below, above):  # type: ignore[no-untyped-def]
    """Add the sums of V_ij w_j K_f(x_i - x_j) over documents of lower and of higher grades, and return True.

    Documents are in ascending order of grade, bounds[g] <= i < bounds[g + 1] being those of grade g; V holds A and B by
    grade; first <= f <= last are the functions asked for. ``below[i, f - first]`` is the sum over lower grades,
    ``above[i, f - first]`` that over higher ones; both may be one array. Returns False, having done nothing, where a
    double loop is cheaper, in which n^2 pairs take `pair` ns each.
    """
    A, B = np.empty(x.size), np.empty(x.size)
    spread_by_grade(0, bounds.size - 1, bounds, V.A, A)
    spread_by_grade(0, bounds.size - 1, bounds, V.B, B)
    # Grades low:high of which pairs are left; bunches of one list after the other, so that each grade is there once.
    left, number_left = np.empty((bounds.size, 2), np.int64), 1
    left[0] = 0, bounds.size - 1
    while number_left > 0:
        number_left -= 1
        low, high = left[number_left]
        rows = slice(bounds[low], bounds[high])
        n = rows.stop - rows.start
        box, t = np.empty(n, np.int64), np.empty(n)
        number = lay_out(x[rows], profile.half, box, t)
        small, bunches, pairs = _plan(n, number.size, high - low, profile, first, last)
        if n == x.size and pair * n * n < bunches:
            return False
        own, lower, higher = (V.alpha, V.beta, A[rows], B[rows]), below[rows], above[rows]
        if pairs < bunches:
            _directly(x[rows], w[rows], own, bounds[low : high + 1], profile.c, first, last, lower, higher)
            continue
        cuts = _cut(bounds, low, high, small)
        _between((box, t, number), w[rows], own, bounds[cuts] - rows.start, profile, first, last, lower, higher)
        for k in range(cuts.size - 1):
            if cuts[k + 1] - cuts[k] > 1:
                left[number_left] = cuts[k], cuts[k + 1]
                number_left += 1
    return True
