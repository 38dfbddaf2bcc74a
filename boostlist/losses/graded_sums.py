r"""Sums over all pairs of different grade, by `difference_sums`: in O(n), or O(n log n) where labels nearly all differ.

    S_i = sum_{j: y_j != y_i} V_ij w_j K(x_i - x_j),   V_ij = (alpha + |A_i - A_j|)(beta + |B_i - B_j|)

Few grades have moments each, and a document meets those of all others, times their V. Where there are many, documents
in ascending order of grade are cut into bunches of whole grades. On the way up from bunch to bunch, and once more on
the way down, the boxes keep the moments of all documents passed, about the last grade that was passed as in
`pairwise_loops`: M00, M10, M01 and M11, of the weights w_j, (alpha + |A - A_j|) w_j, (beta + |B - B_j|) w_j and
V_j w_j. For a document whose A and B lie dA and dB beyond,

    V_ij = M11 + dA M01 + dB M10 + dA dB M00   in terms of what they sum

A bunch of several grades is then a list of its own, with grades or bunches in its turn: divide and conquer over the
order of grades. Bunches of a few documents have a double loop.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist.losses.difference_sums import (
    CURVATURES,
    SLOPES,
    VALUES,
    add_moments,
    add_sums,
    add_tails,
    evaluate,
    lay_out_lists,
    moments,
    sum_time,
    translate,
    translation_time,
)
from boostlist.losses.ratios import exponentials, ratios
from boostlist.losses.shared_loops import spread_by_grade
from boostlist.parallel import REORDERED, compiled, inlined, inner, vectorized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import FloatArray, IntArray
    from boostlist.losses.difference_sums import Profile
    from boostlist.losses.weights import Factors

# Up to so many grades are few; more make bunches of no less than so many parts of the documents.
_BUNCHES = 32
# Times in ns, about, of one of n^2 pairs in `_directly`, without E and with it, and of a bunch.
_PAIR, _PAIR_WITH_VALUE, _BUNCH = 0.25, 4.0, 8_000


@compiled
def _cut(bounds, low, high, small):  # type: ignore[no-untyped-def]
    """Return where to cut the grades low:high into bunches, ends included; small ones have `small` documents."""
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
def _between(box, t, near, number, w, V, ends, functions, below, above):  # type: ignore[no-untyped-def]
    """Add the sums over pairs of documents in different bunches, which end at `ends`; A and B are by document.

    Of the four moments the bits of the number say whether alpha + |A - A_j| and beta + |B - B_j| are part of them.
    """
    half, matrix, tail = functions
    alpha, beta, A, B = V
    boxes, p = number.size, matrix.shape[2]
    m, own, coefficients = np.zeros((4, boxes, p)), np.zeros((1, boxes, p)), np.empty((1, below.shape[1], boxes, p))
    wanted, whole = np.zeros((1, boxes), np.bool_), np.array([0, boxes])
    span, one, factor = np.empty((1, 1, 2), np.int64), np.ones(box.size), np.empty(box.size)
    bunches = ends.size - 1
    for down in range(2):
        out, passed = above if down else below, 0
        m[:] = 0.0
        for step in range(bunches):
            k = bunches - 1 - step if down else step
            lo, hi = ends[k], ends[k + 1]
            span[0, 0, 0], span[0, 0, 1] = lo, hi
            entry, far = (hi - 1, lo) if down else (lo, hi - 1)
            varied = (0 if A[entry] == A[far] else 1) | (0 if B[entry] == B[far] else 2)
            if step > 0:
                _step(m, abs(A[entry] - A[passed]), abs(B[entry] - B[passed]))
                wanted[:] = False
                for i in range(lo, hi):
                    wanted[0, box[i]] = True
                for charge in range(4):
                    if varied | charge == 3:
                        sums = m[charge : charge + 1]
                        translate(near, number, wanted, sums, matrix, coefficients)
                        add_tails(whole[:1], whole[1:], near, number, sums, half, tail, coefficients)
                        for i in range(lo, hi if charge < 3 else lo):
                            dA, dB = abs(A[i] - A[entry]), abs(B[i] - B[entry])
                            factor[i] = (1.0 if charge & 1 else dA) * (1.0 if charge & 2 else dB)
                        evaluate(box, t, coefficients, factor if charge < 3 else one, span, out)
            passed = far
            if step == bunches - 1:
                break
            if varied:
                _step(m, abs(A[far] - A[entry]), abs(B[far] - B[entry]))
                for charge in range(4):
                    for i in range(lo, hi):
                        a, b = alpha + abs(A[i] - A[far]), beta + abs(B[i] - B[far])
                        factor[i] = w[i] * (a if charge & 1 else 1.0) * (b if charge & 2 else 1.0)
                    add_moments(box, t, factor, span, m[charge : charge + 1], wanted)
            else:
                add_moments(box, t, w, span, own, wanted)
                _absorb(m, alpha, beta, own)


@inlined
def _row(r, i, hi, V, A, B, c, w, lower, higher):  # type: ignore[no-untyped-def]
    """Put the sums over pairs of document i with lower ones :hi, r = e^-u, and add them to the sums of these."""
    slope = curvature = 0.0
    a, b, own = V.alpha + A[i], V.beta + B[i], w[i]
    for j in range(np.uint64(hi)):
        Vj = (a - A[j]) * (b - B[j])
        inverse = 1 / (1 + r[j] * (2 * c + r[j]))
        square = r[j] * r[j]
        first = Vj * ((1 - square) * inverse)
        second = Vj * ((2 * r[j]) * inverse) * ((c * (1 + square) + 2 * r[j]) * inverse)
        higher[SLOPES, j] -= own * first
        higher[CURVATURES, j] += own * second
        slope += w[j] * first
        curvature += w[j] * second
    lower[SLOPES, i] = slope
    lower[CURVATURES, i] = curvature


@inner
def _value_row(x, i, hi, V, A, B, c, w, lower, higher):  # type: ignore[no-untyped-def]
    """Do the same for E."""
    value = 0.0
    a, b = V.alpha + A[i], V.beta + B[i]
    for j in range(hi):
        u = abs(x[i] - x[j])
        r = np.exp(-u)
        VE = (a - A[j]) * (b - B[j]) * (u + np.log1p(r * (2 * c + r)))
        higher[VALUES, j] += w[i] * VE
        value += w[j] * VE
    lower[VALUES, i] = value


@partial(compiled, liberties=REORDERED)
def _directly(ranges, x, w, bounds, V, c, first, below, above):  # type: ignore[no-untyped-def]
    """Add the sums over pairs of different grade by a double loop, for each range of grades."""
    most = 0
    for r in range(ranges.shape[0]):
        most = max(most, bounds[ranges[r, 1]] - bounds[ranges[r, 0]])
    E, ratio, A, B = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    lower, higher = np.empty((3, most)), np.empty((3, most))
    for r in range(ranges.shape[0]):
        low, high = ranges[r, 0], ranges[r, 1]
        begin, n = bounds[low], bounds[high] - bounds[low]
        y, u = x[begin : begin + n], w[begin : begin + n]
        spread_by_grade(low, high, bounds, V.A, A)
        spread_by_grade(low, high, bounds, V.B, B)
        lower[:] = 0.0
        higher[:] = 0.0
        near = exponentials(y, n, E)
        for g in range(low + 1, high):
            m = bounds[g] - begin
            for i in range(m, bounds[g + 1] - begin):
                ratios(near, y, E, i, 0, m, ratio)
                _row(ratio, i, m, V, A, B, c, u, lower, higher)
                if first == VALUES:
                    _value_row(y, i, m, V, A, B, c, u, lower, higher)
        for i in range(n):
            for f in range(below.shape[1]):
                below[begin + i, f] += lower[first + f, i]
                above[begin + i, f] += higher[first + f, i]


def _small(profile: Profile, first: int, boxes: Any) -> Any:
    """Return the documents of a small bunch.

    Of m documents it takes m^2 for the pairs within, and T for itself with translations: m = sqrt(T).
    """
    functions = 2 * (CURVATURES + 1 - first)
    own = _BUNCH + 2 * translation_time(profile, functions, boxes, boxes)
    return 1 + np.sqrt(own / _pair(first)).astype(np.int64)


def _pair(first: int) -> float:
    return _PAIR_WITH_VALUE if first == VALUES else _PAIR


def _bunch_time(profile: Profile, first: int, n: Any, boxes: Any) -> Any:
    """Return what sums over bunches take, in ns."""
    small, functions = _small(profile, first, boxes), 2 * (CURVATURES + 1 - first)
    return 2 * sum_time(profile, functions, n, boxes, n / small) + (_BUNCH / small + _pair(first) * small) * n


def graded_time(profile: Profile, first: int, grades: Any, n: Any, boxes: Any) -> Any:
    """Return what `graded_sums` takes for lists of so many grades, in ns."""
    few = sum_time(profile, CURVATURES + 1 - first, n, boxes, grades)
    return np.where(grades <= _BUNCHES, few, _bunch_time(profile, first, n, boxes))


@compiled
def _sums_of_bunches(ranges, layout, within, small, w, bounds, V, functions, below, above, left):  # type: ignore[no-untyped-def]
    """Add the sums over pairs of different bunches of each range of grades.

    Put the bunches of several grades into `left`, and return their number.
    """
    number_left = 0
    for r in range(ranges.shape[0]):
        if layout.boxes[r] == 0:
            continue
        first, end = layout.begin[r], layout.begin[r] + layout.boxes[r]
        number, own = layout.number[first:end], within[first:end] - first
        low, high = ranges[r, 0], ranges[r, 1]
        rows = slice(bounds[low], bounds[high])
        box, t = layout.box[rows] - first, layout.t[rows]
        A, B = np.empty(t.size), np.empty(t.size)
        spread_by_grade(low, high, bounds, V.A, A)
        spread_by_grade(low, high, bounds, V.B, B)
        cuts = _cut(bounds, low, high, small[r])
        ends = np.empty_like(cuts)
        for k in range(cuts.size):
            ends[k] = bounds[cuts[k]] - rows.start
            if k > 0 and cuts[k] - cuts[k - 1] > 1:
                left[number_left, 0], left[number_left, 1] = cuts[k - 1], cuts[k]
                number_left += 1
        _between(box, t, own, number, w[rows], (V.alpha, V.beta, A, B), ends, functions, below[rows], above[rows])
    return number_left


def _over_bunches(
    ranges: IntArray,
    pair: FloatArray,
    x: FloatArray,
    w: FloatArray,
    bounds: IntArray,
    V: Factors,
    profile: Profile,
    first: int,
    below: FloatArray,
    above: FloatArray,
) -> NDArray[np.bool_]:
    """Do what `graded_sums` does for lists of many grades: bunches first, then the grades of each."""
    number = ranges[:, 1] - ranges[:, 0]
    layout = lay_out_lists(bounds[ranges], x, profile, pair, partial(graded_time, profile, first, number))
    if layout.found.any():
        left = np.empty((int(number.sum()) // 2, 2), np.int64)
        documents = bounds[ranges[:, 1]] - bounds[ranges[:, 0]]
        small = np.minimum(_small(profile, first, layout.boxes), documents // 2)
        functions, within = (profile.half, profile.matrix[first:], profile.tail[first:]), layout.within(profile.reach)
        left = left[: _sums_of_bunches(ranges, layout, within, small, w, bounds, V, functions, below, above, left)]
        summed = graded_sums(left, np.full(len(left), _pair(first)), x, w, bounds, V, profile, first, below, above)
        _directly(left[~summed], x, w, bounds, V, profile.c, first, below, above)
    return layout.found


@partial(compiled, liberties=REORDERED)
def _mix(begin, boxes, mix, moments, mixed):  # type: ignore[no-untyped-def]
    """Fill mixed[k] with the sum over s of mix[r, k, s] moments[s] in the boxes of each list r."""
    for r in range(begin.size):
        for b in range(begin[r], begin[r] + boxes[r]):
            for k in range(mix.shape[1]):
                row = mixed[k, b]
                for q in range(row.size):
                    row[q] = 0.0
                for s in range(mix.shape[2]):
                    factor, own = mix[r, k, s], moments[s, b]
                    for q in range(row.size):
                        row[q] += factor * own[q]


def _over_grades(
    ranges: IntArray,
    pair: FloatArray,
    x: FloatArray,
    w: FloatArray,
    bounds: IntArray,
    V: Factors,
    profile: Profile,
    first: int,
    below: FloatArray,
    above: FloatArray,
) -> NDArray[np.bool_]:
    """Do so for lists of few grades: each grade has a mix of the moments of the others."""
    number = ranges[:, 1] - ranges[:, 0]
    layout = lay_out_lists(bounds[ranges], x, profile, pair, partial(graded_time, profile, first, number))
    if not layout.found.any():
        return layout.found
    k = np.arange(number.max())
    grade = np.minimum(ranges[:, :1] + k, ranges[:, 1:] - 1)
    ends = np.where(k < number[:, None], bounds[grade + 1], bounds[grade])  # no documents where a list has fewer grades
    rows = np.stack((bounds[grade], ends), axis=2)
    A, B = V.A[grade], V.B[grade]
    mix = (V.alpha + np.abs(A[:, :, None] - A[:, None])) * (V.beta + np.abs(B[:, :, None] - B[:, None]))
    own, seen = moments(layout, w, rows, profile)
    lower, higher = np.tril(mix, -1), np.triu(mix, 1)
    for part, out in ((lower + higher, below),) if below is above else ((lower, below), (higher, above)):
        mixed = np.empty_like(own)
        _mix(layout.begin, layout.boxes, part, own, mixed)
        add_sums(layout, mixed, seen, rows, profile, first, out)
    return layout.found


def graded_sums(
    ranges: IntArray,
    pair: FloatArray,
    x: FloatArray,
    w: FloatArray,
    bounds: IntArray,
    V: Factors,
    profile: Profile,
    first: int,
    below: FloatArray,
    above: FloatArray,
) -> NDArray[np.bool_]:
    """Add the sums of V_ij w_j K_f(x_i - x_j), f from `first` on, over documents of lower and of higher grades.

    Documents are in ascending order of grade, bounds[g] <= i < bounds[g + 1] being those of grade g; V holds A and B by
    grade. Each list has the grades ``ranges[q, 0] <= g < ranges[q, 1]``. ``below[i, f - first]`` is the sum over lower
    grades, ``above[i, f - first]`` that over higher ones; both may be one array. Returns which lists were done; nothing
    is done where a double loop is cheaper, in which n^2 pairs take `pair` ns each, by list.
    """
    few, done = ranges[:, 1] - ranges[:, 0] <= _BUNCHES, np.empty(len(ranges), np.bool_)
    for chosen, sums in ((few, _over_grades), (~few, _over_bunches)):
        if chosen.any():
            done[chosen] = sums(ranges[chosen], pair[chosen], x, w, bounds, V, profile, first, below, above)
    return done
