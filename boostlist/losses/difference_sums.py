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
from boostlist.parallel import blocks, compiled, fused, inlined, over_blocks, vectorized

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray

TOLERANCE = 1e-12
"""Error of a sum, relative to sum |w| x max |K|."""

VALUES, SLOPES, CURVATURES = range(3)
"""The functions E, E', E'' as indices: a call asks for a range of them."""

# Documents from which on a list is cut into blocks, for all threads.
_WIDE = 1 << 15
# Boxes up to which each block of documents has moments of its own.
_FEW_BOXES = 1 << 12
# More boxes than this are not laid out: an array of this length is cleared for every list.
_MAX_BOXES = 1 << 20
# Times in ns, about: of a call, a document and a translation from box to box.
_CALL, _DOCUMENT, _TRANSLATION = 4_000, 30, 14


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
    c
        That of E, E' and E''; nan for other functions.
    """

    half: float
    reach: int
    matrix: FloatArray
    tail: FloatArray
    c: float = math.nan


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
    return expand(functions, tail, math.pi - math.acos(c), math.log(8 / tolerance), tolerance)._replace(c=c)


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
def _place(x, low, half, lo, hi, box, t, slot):  # type: ignore[no-untyped-def]
    """Find the boxes and places of the documents lo:hi, and put 1 into the slots of these boxes."""
    for i in range(lo, hi):
        place = (x[i] - low) / (2 * half)
        b = int(place)
        box[i] = b
        t[i] = 2 * (place - b) - 1
        slot[b] = 1


@compiled
def _occupied(slot):  # type: ignore[no-untyped-def]
    """Return the numbers of the boxes in whose slots there is 1, and put there where they stand among these."""
    used = 0
    for b in range(slot.size):
        used += slot[b]
    number, used = np.empty(used, np.int64), 0
    for b in range(slot.size):
        if slot[b]:
            number[used] = b
            slot[b] = used
            used += 1
    return number


@compiled
def _renumber(slot, lo, hi, box):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        box[i] = slot[box[i]]


@inlined
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
    slot = np.zeros(int((high - low) / (2 * half)) + 1, np.int64)
    _place(x, low, half, 0, x.size, box, t, slot)
    number = _occupied(slot)
    _renumber(slot, 0, x.size, box)
    return number


@inlined
def add_moments(box, t, w, lo, hi, moments):  # type: ignore[no-untyped-def]
    """Add w_i T_k(t_i) to the moments of the box of i, for lo <= i < hi."""
    p, box, t, w = moments.shape[1], box[lo:hi], t[lo:hi], w[lo:hi]
    for i in range(box.size):
        row = moments[box[i]]
        twice = 2 * t[i]
        before, now = w[i], w[i] * t[i]
        row[0] += before
        row[1] += now
        for k in range(2, p):
            before, now = now, twice * now - before
            row[k] += now


@inlined
def evaluate(box, t, coefficients, scale, lo, hi, out):  # type: ignore[no-untyped-def]
    """Add scale_i sum_k coefficients[f, box of i, k] T_k(t_i) to out[i, f], for lo <= i < hi."""
    p, box, t, scale, out = coefficients.shape[2], box[lo:hi], t[lo:hi], scale[lo:hi], out[lo:hi]
    for i in range(box.size):
        # Clenshaw's recurrence in s = T_2(t), for even and odd k apart: T_2k(t) = T_k(s), T_2k+1(t) = t V_k(s).
        s = 2 * t[i] * t[i] - 1
        twice = 2 * s
        for f in range(coefficients.shape[0]):
            row = coefficients[f, box[i]]
            even_after, even = 0.0, row[p - 2]
            odd_after, odd = 0.0, row[p - 1]
            for k in range(p - 4, 0, -2):
                even_after, even = even, twice * even + (row[k] - even_after)
                odd_after, odd = odd, twice * odd + (row[k + 1] - odd_after)
            even = s * even + (row[0] - even_after)
            odd = twice * odd + (row[1] - odd_after) - odd
            out[i, f] += scale[i] * (even + t[i] * odd)


@inlined
def _translate_box(a, number, moments, matrix, first, reach, left, right, coefficients):  # type: ignore[no-untyped-def]
    """Fill the coefficients of box a from the moments of the boxes left <= b < right."""
    p = moments.shape[1]
    for f in range(coefficients.shape[0]):
        row = coefficients[f, a]
        row[:] = 0.0
        for b in range(left, right):
            M = matrix[first + f, reach + number[a] - number[b]]
            source = moments[b]
            # Four at a time: the row is read and written a quarter as often.
            for q in range(0, p, 4):
                s0, s1, s2, s3 = source[q], source[q + 1], source[q + 2], source[q + 3]
                M0, M1, M2, M3 = M[q], M[q + 1], M[q + 2], M[q + 3]
                for k in range(p):
                    row[k] += (M0[k] * s0 + M1[k] * s1) + (M2[k] * s2 + M3[k] * s3)


@vectorized
def translate(number, wanted, moments, profile, first, coefficients):  # type: ignore[no-untyped-def]
    """Fill coefficients[f, a] for the wanted boxes a: those of the sums over all moments of the functions first + f."""
    boxes, half, reach, tail = number.size, profile.half, profile.reach, profile.tail
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
        _translate_box(a, number, moments, profile.matrix, first, reach, left, right, coefficients)
        lead = weight_left - weight_right
        distance = lead * half * (2 * number[a] + 1) - (moment_left - moment_right)
        for f in range(coefficients.shape[0]):
            at_right, at_left, slope = tail[first + f, 0], tail[first + f, 1], tail[first + f, 2]
            coefficients[f, a, 0] += at_right * weight_right + at_left * weight_left + slope * distance
            coefficients[f, a, 1] += slope * lead * half


def is_wide(rows: IntArray) -> bool:
    """Tell whether there is one list, and so long that it is cut into blocks of documents, for all threads."""
    return len(rows) == 1 and rows[0, 1] - rows[0, 0] >= _WIDE


class Layout(NamedTuple):
    """Where the scores of some lists lie.

    Attributes
    ----------
    rows
        List r has the documents ``rows[r, 0] <= i < rows[r, 1]``.
    box, t
        The box of each document, counted from the first that its list has, and its place there.
    number, boxes
        List r has boxes of the numbers ``number[rows[r, 0] : rows[r, 0] + boxes[r]]``; none if it is left out.
    one
        1 for each document.
    """

    rows: IntArray
    box: IntArray
    t: FloatArray
    number: IntArray
    boxes: IntArray
    one: FloatArray

    @property
    def wide(self) -> bool:
        """Whether this is one wide list, in few boxes."""
        return is_wide(self.rows) and 0 < self.boxes[0] <= _FEW_BOXES


@compiled
def _lay_out_lists(x, pair, functions, rounds, profile, layout):  # type: ignore[no-untyped-def]
    """Fill a layout; lists are left out for which a double loop is cheaper than sums of so many functions."""
    for r in range(layout.boxes.size):
        begin, end = layout.rows[r, 0], layout.rows[r, 1]
        n = end - begin
        number = lay_out(x[begin:end], profile.half, layout.box[begin:end], layout.t[begin:end])
        if pair * n * n >= sum_time(n, number.size, profile.reach, functions, rounds[r]):
            layout.boxes[r] = number.size
            for b in range(number.size):
                layout.number[begin + b] = number[b]


def lay_out_lists(
    rows: IntArray, x: FloatArray, pair: float, functions: int, profile: Profile, rounds: int | IntArray = 1
) -> Layout:
    """Return where the scores of lists lie, each with the documents ``rows[r, 0] <= i < rows[r, 1]``.

    Left out is each list for which a double loop is cheaper, in which n^2 pairs take `pair` ns each, than sums of so
    many functions, moments being translated so many rounds, by list or for all.
    """
    box, number = np.empty((2, x.size), np.int64)
    layout = Layout(rows, box, np.empty(x.size), number, np.zeros(len(rows), np.int64), np.ones(x.size))
    if not _lay_out_wide(x, profile.half, layout):
        _lay_out_lists(x, pair, functions, np.full(len(rows), rounds), profile, layout)
    return layout


def _lay_out_wide(x: FloatArray, half: float, layout: Layout) -> bool:
    """Fill the layout of one wide list on all threads, and return True, if its scores lie in few boxes."""
    if not is_wide(layout.rows):
        return False
    rows, low = layout.rows, x.min()
    slots = (x.max() - low) / (2 * half)
    if not slots < _FEW_BOXES:
        return False
    slot = np.zeros(int(slots) + 1, np.int64)
    over_blocks(lambda _k, _r, lo, hi: _place(x, low, half, lo, hi, layout.box, layout.t, slot), rows)
    number = _occupied(slot)
    over_blocks(lambda _k, _r, lo, hi: _renumber(slot, lo, hi, layout.box), rows)
    layout.boxes[0] = number.size
    layout.number[: number.size] = number
    return True


def list_sums(
    layout: Layout,
    sources: IntArray,
    w: FloatArray,
    targets: IntArray,
    profile: Profile,
    first: int,
    out: FloatArray,
) -> None:
    """Add sum_j w_j K_{first + f}(x_i - x_j) to out[i, f], for each list over some of its documents i and j.

    Of list r these are ``targets[r, 0] <= i < targets[r, 1]`` and ``sources[r, 0] <= j < sources[r, 1]``.
    """
    mixed_sums(layout, sources[:, None], w, targets[:, None], np.ones((len(sources), 1, 1)), profile, first, out)


def mixed_sums(
    layout: Layout,
    sources: IntArray,
    w: FloatArray,
    targets: IntArray,
    mix: FloatArray,
    profile: Profile,
    first: int,
    out: FloatArray,
) -> None:
    """Add sum_s mix[r, k, s] sum_j w_j K_{first + f}(x_i - x_j) to out[i, f], for each list r and each of its ranges k.

    They are ``targets[r, k, 0] <= i < targets[r, k, 1]`` and ``sources[r, s, 0] <= j < sources[r, s, 1]``.
    """
    if layout.wide:
        moments = np.tensordot(mix[0], _wide_moments(layout, w, sources[0], profile), 1)
        _wide_evaluate(layout, moments, targets[0], profile, first, out)
    else:
        _mixed_sums(layout, sources, w, targets, mix, profile, first, out)


def _wide_moments(layout: Layout, w: FloatArray, ranges: IntArray, profile: Profile) -> FloatArray:
    """Return the moments of each of some ranges of the documents of one wide list."""
    cut = blocks(ranges)
    parts = np.zeros((len(cut), layout.boxes[0], profile.matrix.shape[2]))
    over_blocks(lambda k, _, lo, hi: _add_moments(layout.box, layout.t, w, lo, hi, parts[k]), ranges)
    moments = np.zeros((len(ranges), *parts.shape[1:]))
    for (r, _, _), part in zip(cut, parts, strict=True):
        moments[r] += part
    return moments


def _wide_evaluate(
    layout: Layout, moments: FloatArray, ranges: IntArray, profile: Profile, first: int, out: FloatArray
) -> None:
    """Add the sums over moments, one set of them for each range of the documents of one wide list, to its documents."""
    number = layout.number[: layout.boxes[0]]
    coefficients = np.empty((len(ranges), out.shape[1], *moments.shape[1:]))
    wanted = np.ones(number.size, np.bool_)
    for r in range(len(ranges)):
        translate(number, wanted, moments[r], profile, first, coefficients[r])
    over_blocks(lambda _, r, lo, hi: _evaluate(layout.box, layout.t, coefficients[r], layout.one, lo, hi, out), ranges)


@fused
def _add_moments(box, t, w, lo, hi, moments):  # type: ignore[no-untyped-def]
    add_moments(box, t, w, lo, hi, moments)


@fused
def _evaluate(box, t, coefficients, scale, lo, hi, out):  # type: ignore[no-untyped-def]
    evaluate(box, t, coefficients, scale, lo, hi, out)


@fused
def _mixed_sums(layout, sources, w, targets, mix, profile, first, out):  # type: ignore[no-untyped-def]
    box, p = layout.box, profile.matrix.shape[2]
    for r in range(layout.boxes.size):
        boxes, begin = layout.boxes[r], layout.rows[r, 0]
        if boxes == 0:
            continue
        number = layout.number[begin : begin + boxes]
        moments, mixed = np.zeros((sources.shape[1], boxes, p)), np.empty((boxes, p))
        coefficients, wanted = np.empty((out.shape[1], boxes, p)), np.empty(boxes, np.bool_)
        for s in range(sources.shape[1]):
            add_moments(box, layout.t, w, sources[r, s, 0], sources[r, s, 1], moments[s])
        for k in range(targets.shape[1]):
            lo, hi = targets[r, k, 0], targets[r, k, 1]
            if lo == hi:
                continue
            for b in range(boxes):
                wanted[b] = False
                for m in range(p):
                    mixed[b, m] = 0.0
                for s in range(sources.shape[1]):
                    for m in range(p):
                        mixed[b, m] += mix[r, k, s] * moments[s, b, m]
            for i in range(lo, hi):
                wanted[box[i]] = True
            translate(number, wanted, mixed, profile, first, coefficients)
            evaluate(box, layout.t, coefficients, layout.one, lo, hi, out)


@inlined
def translation_time(targets, boxes, reach, functions):  # type: ignore[no-untyped-def]
    """Return what it takes to translate the moments of all boxes to some, in ns."""
    return _TRANSLATION * targets * min(boxes, 2 * reach + 1) * functions


@inlined
def sum_time(n, boxes, reach, functions, rounds):  # type: ignore[no-untyped-def]
    """Return what sums over boxes take, in ns, if moments are translated so many rounds; infinite without boxes."""
    if boxes == 0:
        return np.inf
    return _CALL + n * _DOCUMENT + translation_time(min(n, boxes * rounds), boxes, reach, functions)
