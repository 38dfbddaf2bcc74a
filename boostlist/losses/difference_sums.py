r"""Sums over all pairs of a function of the difference of scores, in time that grows with n and not with n^2.

    S_i = sum_j w_j K(x_i - x_j)

The scores are cut into boxes of one width. For x in one box and y in another K(x - y) is a smooth function of both, so
that a few Chebyshev polynomials in each do for all documents of the two boxes: with t the place of a score in its box,
in [-1, 1], and o how many boxes one lies beyond the other,

    K(x - y) = sum_{k, l < p} M_o[k, l] T_k(t_x) T_l(t_y)

Hence a fast multipole method without a tree. Each document adds w T_l(t) to the p moments of its box, O(n p); the
moments of each box are translated by M_o to the coefficients of every box within reach, O(boxes x reach x p^2), however
many documents there are; each document adds up its box's polynomials, O(n p). Boxes out of reach act by their total
weight and first moment, since K is a line out there. Empty boxes cost nothing.

The functions are those of which the losses are made, for 0 <= c <= 1:

    E(u) = log(2 (c + cosh u)) = |u| + log(1 + 2 c r + r^2),  r = e^{-|u|}
    E'(u) = sinh u / (c + cosh u),  E''(u) = (1 + c cosh u) / (c + cosh u)^2

For c = 1 these are 2 log(2 cosh(u/2)), 2 sigma(u) - 1 and 2 sigma'(u), sigma the logistic function: pairwise logistic
loss and soft positions. For c = 1 / (|L| - 1) they are WUB's.

Error. E is analytic in the strip |Im u| < s = pi - arccos c, pi/2 <= s <= pi. A box has the half-width s / (2 pi), so
that its Bernstein ellipse with semi-minor axis 2 pi has rho = 2 pi + sqrt(4 pi^2 + 1) = 12.6, and p polynomials leave
out less than 4 M rho'^{1 - p} / (rho' - 1) for every rho' < rho, with M the maximum of |K| on the ellipse of rho'. Out
of reach, |u| > log(8 / tolerance), K differs from its line by less than half the tolerance. p is such that
|S_i - exact| <= tolerance x sum |w_j| x max |K|; the largest |K| of E is taken to be 1 + the spread of the scores. The
default tolerance is 1e-12, with p = 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.arrays import frozen
from boostlist.parallel import compiled, vectorized

if TYPE_CHECKING:
    from boostlist._typing import FloatArray

TOLERANCE = 1e-12
"""Error of a sum, relative to sum |w| x max |K|."""

VALUES, SLOPES, CURVATURES = range(3)
"""The functions E, E', E'' as indices: a call asks for a range of them."""

# More boxes than this are not laid out: an array of this length is cleared for every list.
_MAX_BOXES = 1 << 20
# Measured times in ns: of a call, a document, a translation from box to box, and the step of a box to another grade.
_CALL, _DOCUMENT, _TRANSLATION, _STEP = 4_000, 30, 14, 60


class Profile(NamedTuple):
    """Functions on boxes of one width.

    Attributes
    ----------
    half
        Half the width of a box.
    reach
        Boxes further apart than this act by their total weight and first moment.
    matrix
        ``matrix[f, reach + o, l, k]`` is M_o[k, l] of the function f.
    tail
        What the function f is out of reach: ``tail[f, 0] + tail[f, 2] |u|`` for u < 0, ``tail[f, 1] + tail[f, 2] u``
        for u > 0.
    """

    half: float
    reach: int
    matrix: FloatArray
    tail: FloatArray


@lru_cache(maxsize=64)
def profile(c: float, tolerance: float = TOLERANCE) -> Profile:
    """Return the functions E, E', E'' of a c, 0 <= c <= 1, ready for sums within a tolerance."""

    def functions(u: FloatArray) -> list[FloatArray]:
        r = np.exp(-np.abs(u))
        whole = 1 + 2 * c * r + r * r
        value = np.abs(u) + np.log1p(2 * c * r + r * r)
        slope = np.sign(u) * (1 - r * r) / whole
        return [value, slope, 2 * r * (c * (1 + r * r) + 2 * r) / whole**2]

    tail = [[0.0, 0.0, 1.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    return expand(functions, tail, math.pi - math.acos(c), math.log(8 / tolerance), tolerance)


def expand(
    functions: Callable[[FloatArray], list[FloatArray]],
    tail: list[list[float]],
    strip: float,
    far: float,
    tolerance: float,
) -> Profile:
    """Expand functions that are analytic in a strip, and equal to their tails beyond `far`."""
    half = strip / (2 * math.pi)
    p = math.log(4 / tolerance) / math.log(2 * math.pi + math.sqrt(4 * math.pi**2 + 1))
    p = 4 * math.ceil(p / 4)  # `_translate_box` takes four at a time
    reach = math.ceil(far / (2 * half))
    angle = (np.arange(p) + 0.5) * np.pi / p
    nodes = np.cos(angle)
    to_coefficients = 2 / p * np.cos(np.arange(p)[:, None] * angle)
    to_coefficients[0] /= 2
    offset = np.arange(-reach, reach + 1)[:, None, None]
    u: FloatArray = np.asarray(half * (2 * offset + nodes[:, None] - nodes))
    coefficients = to_coefficients @ np.array(functions(u)) @ to_coefficients.T
    matrix = np.ascontiguousarray(coefficients.transpose(0, 1, 3, 2))
    return Profile(half, reach, frozen(matrix), frozen(np.array(tail)))


@compiled
def lay_out(x, half, box, t):  # type: ignore[no-untyped-def]
    """Give each score its box and its place t in it, and return the numbers of the occupied boxes, ascending.

    box is an index into what is returned, which is empty where the scores spread over too many boxes.
    """
    low, high = np.inf, -np.inf
    for i in range(x.size):
        low = min(low, x[i])
        high = max(high, x[i])
    if not (high - low) / (2 * half) < _MAX_BOXES:
        return np.empty(0, np.int64)
    boxes = int((high - low) / (2 * half)) + 1
    slot = np.zeros(boxes, np.int32)
    for i in range(x.size):
        place = (x[i] - low) / (2 * half)
        b = int(place)
        box[i] = b
        t[i] = 2 * (place - b) - 1
        slot[b] = 1
    number = np.empty(np.sum(slot), np.int64)
    used = 0
    for b in range(boxes):
        if slot[b]:
            number[used] = b
            slot[b] = used
            used += 1
    for i in range(x.size):
        box[i] = slot[box[i]]
    return number


@compiled
def add_moments(box, t, w, moments):  # type: ignore[no-untyped-def]
    """Add w_i T_k(t_i) to the moments of the box of i."""
    p = moments.shape[1]
    for i in range(box.size):
        row = moments[box[i]]
        twice = 2 * t[i]
        before, now = w[i], w[i] * t[i]
        row[0] += before
        row[1] += now
        for k in range(2, p):
            before, now = now, twice * now - before
            row[k] += now


@compiled
def evaluate(box, t, coefficients, out):  # type: ignore[no-untyped-def]
    """Add sum_k coefficients[f, box of i, k] T_k(t_i) to out[f, i]."""
    p = coefficients.shape[2]
    for f in range(coefficients.shape[0]):
        for i in range(box.size):
            row = coefficients[f, box[i]]
            # Clenshaw's recurrence
            twice = 2 * t[i]
            after, now = 0.0, row[p - 1]
            for k in range(p - 2, 0, -1):
                after, now = now, row[k] + twice * now - after
            out[f, i] += row[0] + t[i] * now - after


@vectorized
def _translate_box(a, number, moments, matrix, reach, left, right, coefficients):  # type: ignore[no-untyped-def]
    """Fill the coefficients of box a from the moments of the boxes left <= b < right."""
    p = moments.shape[1]
    for f in range(matrix.shape[0]):
        row = coefficients[f, a]
        row[:] = 0.0
        for b in range(left, right):
            M = matrix[f, reach + number[a] - number[b]]
            source = moments[b]
            # Four at a time: the row is read and written a quarter as often.
            for q in range(0, p, 4):
                s0, s1, s2, s3 = source[q], source[q + 1], source[q + 2], source[q + 3]
                M0, M1, M2, M3 = M[q], M[q + 1], M[q + 2], M[q + 3]
                for k in range(p):
                    row[k] += (M0[k] * s0 + M1[k] * s1) + (M2[k] * s2 + M3[k] * s3)


@compiled
def translate(number, wanted, moments, half, reach, matrix, tail, coefficients):  # type: ignore[no-untyped-def]
    """Fill coefficients[:, a] for the wanted boxes a: those of the sums over all moments."""
    boxes = number.size
    # Total weight and first moment of the boxes left of the reach, and of those right of it.
    weight_left = moment_left = 0.0
    weight_right = moment_right = 0.0
    for b in range(boxes):
        weight_right += moments[b, 0]
        moment_right += half * ((2 * number[b] + 1) * moments[b, 0] + moments[b, 1])
    left = right = 0
    for a in range(boxes):
        while right < boxes and number[right] - number[a] <= reach:
            weight_right -= moments[right, 0]
            moment_right -= half * ((2 * number[right] + 1) * moments[right, 0] + moments[right, 1])
            right += 1
        while number[a] - number[left] > reach:
            weight_left += moments[left, 0]
            moment_left += half * ((2 * number[left] + 1) * moments[left, 0] + moments[left, 1])
            left += 1
        if right == boxes:
            weight_right = moment_right = 0.0  # no rest of rounding
        if not wanted[a]:
            continue
        _translate_box(a, number, moments, matrix, reach, left, right, coefficients)
        lead = weight_left - weight_right
        distance = lead * half * (2 * number[a] + 1) - (moment_left - moment_right)
        for f in range(coefficients.shape[0]):
            coefficients[f, a, 0] += tail[f, 0] * weight_right + tail[f, 1] * weight_left + tail[f, 2] * distance
            coefficients[f, a, 1] += tail[f, 2] * lead * half


@compiled
def row_sums(layout, sources, w, targets, profile, first, last, out):  # type: ignore[no-untyped-def]
    """Fill out[f - first, i] with sum_j w_j K_f(x_i - x_j) for the documents i of a slice, j running over another.

    layout is (box, t, number) of `lay_out`; first <= f <= last are the functions asked for.
    """
    box, t, number = layout
    matrix, tail = profile.matrix[first : last + 1], profile.tail[first : last + 1]
    moments, wanted = np.zeros((number.size, matrix.shape[2])), np.zeros(number.size, np.bool_)
    coefficients = np.empty((matrix.shape[0], number.size, matrix.shape[2]))
    add_moments(box[sources], t[sources], w[sources], moments)
    for i in range(targets.start, targets.stop):
        wanted[box[i]] = True
    translate(number, wanted, moments, profile.half, profile.reach, matrix, tail, coefficients)
    out[:, targets] = 0.0
    evaluate(box[targets], t[targets], coefficients, out[:, targets])


@compiled
def all_sums(pair, x, w, profile, first, last, out):  # type: ignore[no-untyped-def]
    """Fill out[f - first, i] with sum_j w_j K_f(x_i - x_j) over all documents, i itself included, and return True.

    Returns False, having done nothing, where a double loop is cheaper, in which n^2 pairs take `pair` ns each.
    """
    n = x.size
    box, t = np.empty(n, np.int64), np.empty(n)
    number = lay_out(x, profile.half, box, t)
    if not pays(pair, n, number.size, 1, last + 1 - first, profile.reach):
        return False
    row_sums((box, t, number), slice(0, n), w, slice(0, n), profile, first, last, out)
    return True


@compiled
def pays(pair, n, boxes, grades, functions, reach):  # type: ignore[no-untyped-def]
    """Whether sums over boxes take less time than a double loop in which n^2 pairs take `pair` ns each."""
    if boxes == 0:
        return False
    translations = min(n, boxes * grades) * min(boxes, 2 * reach + 1) * functions
    sweeps = 1 if grades == 1 else 2
    time = _CALL + n * _DOCUMENT + sweeps * (_TRANSLATION * translations + _STEP * grades * boxes)
    return pair * n * n > time


@vectorized
def _step(m, dA, dB):  # type: ignore[no-untyped-def]
    """Move the moments about a grade to one whose A and B are dA and dB away."""
    m00, m10, m01, m11 = m[0], m[1], m[2], m[3]
    for k in range(m00.size):
        m11[k] += dA * m01[k] + dB * (m10[k] + dA * m00[k])
        m10[k] += dA * m00[k]
        m01[k] += dB * m00[k]


@vectorized
def _absorb(m, first, alpha, beta, own):  # type: ignore[no-untyped-def]
    """Add a grade's own moments of a box, whose place is `first`, and clear them."""
    for k in range(own.size):
        x = own[k]
        m[0, first + k] += x
        m[1, first + k] += alpha * x
        m[2, first + k] += beta * x
        m[3, first + k] += alpha * beta * x
        own[k] = 0.0


@compiled
def _sweep(box, t, w, number, bounds, V, up, profile, matrix, tail, out, totals):  # type: ignore[no-untyped-def]
    """Add the sums over all lower grades, going up, or over all higher grades, going down.

    The moments are about the current grade g as in `pairwise_loops`: of the weights 1, alpha + |A_g - A_j|,
    beta + |B_g - B_j| and their product. Fills in totals[g], the sum of V w.
    """
    boxes, p, grades = number.size, matrix.shape[2], bounds.size - 1
    m, own = np.zeros((4, boxes * p)), np.zeros((boxes, p))
    moments, coefficients = m[3].reshape((boxes, p)), np.empty((matrix.shape[0], boxes, p))
    wanted = np.zeros(boxes, np.bool_)
    for step in range(grades):
        g = step if up else grades - 1 - step
        rows = slice(bounds[g], bounds[g + 1])
        for i in range(rows.start, rows.stop):
            wanted[box[i]] = True
        totals[g] = 0.0
        if step > 0:
            last = g - 1 if up else g + 1
            _step(m, abs(V.A[g] - V.A[last]), abs(V.B[g] - V.B[last]))
            for b in range(boxes):
                totals[g] += moments[b, 0]
            translate(number, wanted, moments, profile.half, profile.reach, matrix, tail, coefficients)
            evaluate(box[rows], t[rows], coefficients, out[:, rows])
        add_moments(box[rows], t[rows], w[rows], own)
        for b in range(boxes):
            if wanted[b]:
                _absorb(m, b * p, V.alpha, V.beta, own[b])
                wanted[b] = False


class GradedSums(NamedTuple):
    """What `graded_sums` fills in.

    Attributes
    ----------
    below, above
        ``below[f, i]``: the sum over lower grades; ``above[f, i]`` over higher ones. Where both are one array, it holds
        the sum over all other grades.
    total_below, total_above
        The same sums by grade for K = 1.
    """

    below: FloatArray
    above: FloatArray
    total_below: FloatArray
    total_above: FloatArray


@compiled
def graded_sums(pair, x, w, bounds, V, profile, first, last, sums):  # type: ignore[no-untyped-def]
    """Fill in the sums of |V_ij| w_j K_f(x_i - x_j) over documents of lower and of higher grades, and return True.

    Documents are in ascending order of grade, bounds[g] <= i < bounds[g + 1] being those of grade g; V holds the
    factors of V_ij = (alpha + |A_i - A_j|)(beta + |B_i - B_j|) by grade. Returns False, having done nothing, where a
    double loop is cheaper, in which n^2 pairs take `pair` ns each.
    """
    n, grades, functions = x.size, bounds.size - 1, last + 1 - first
    box, t = np.empty(n, np.int64), np.empty(n)
    number = lay_out(x, profile.half, box, t)
    if not pays(pair, n, number.size, grades, functions, profile.reach):
        return False
    matrix, tail = profile.matrix[first : last + 1], profile.tail[first : last + 1]
    sums.below[:functions, :n] = 0.0
    sums.above[:functions, :n] = 0.0
    for up in (True, False):
        out, totals = (sums.below, sums.total_below) if up else (sums.above, sums.total_above)
        _sweep(box, t, w, number, bounds, V, up, profile, matrix, tail, out, totals)
    return True
