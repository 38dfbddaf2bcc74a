r"""Sums over all pairs of a function of the difference of scores, in time that grows with n and not with n^2.

    S_i = sum_j w_j K(x_i - x_j)

The scores are cut into boxes of one width. For x in one box and y in another K(x - y) is a smooth function of both, so
that polynomials of a low degree in each do for all documents of the two boxes: with t the place of a score in its box,
in [-1, 1], and o how many boxes one lies beyond the other,

    K(x - y) = sum_{q, l < p} M_o[q, l] t_x^q t_y^l

from the interpolation at Chebyshev nodes. Hence a fast multipole method without a tree. Each document adds w t^l to the
p moments of its box, O(n p); the moments of each box are translated by M_o to the coefficients of every box within
reach, O(boxes x reach x p^2), however many documents there are; each document adds up its box's polynomials, O(n p).
Boxes out of reach act by their total weight and first moment, since K is a line out there. Empty boxes cost nothing.

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
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boostlist.arrays import frozen
from boostlist.losses.ratios import FAR
from boostlist.losses.vectors import dot, load, pack, plus, store, times
from boostlist.parallel import FUSED, compiled, over_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import FloatArray, IntArray

TOLERANCE = 1e-12
"""Error of a sum, relative to sum |w| x max |K|."""

VALUES, SLOPES, CURVATURES = range(3)
"""The functions E, E', E'' as indices: a call asks for a range of them."""

# Indices that are made unsigned, as signed ones are tested for counting from the end: half the time.
_0, _1, _2, _3, _4 = (np.uint64(k) for k in range(5))

WIDE = 1 << 16
"""Documents of a list from which on each thread takes a share of them."""

# Documents of such a list whose moments are summed by themselves, on whatever thread; more boxes are too many for that.
_BLOCK, _FEW_BOXES = 1 << 13, 1 << 12
# More boxes than this are not laid out: an array of this length is gone through for every list.
_MAX_BOXES = 1 << 20
# Times in ns, about: of a list, a document, and a translation from box to box.
_LIST, _DOCUMENT, _TRANSLATION = 1_500, 14, 11
# How much longer a pair takes in a double loop where each has an exponential of its own.
_FAR_PAIR = 2
# What a row of a double loop takes beyond its pairs, in pairs.
_ROW = 200


class Profile(NamedTuple):
    """Functions on boxes of one width.

    Attributes
    ----------
    half
        Half the width of a box.
    reach
        Boxes further apart than this act by their total weight and first moment.
    matrix
        ``matrix[f, reach + o, l, q]`` is M_o[q, l] of the function f.
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

    @property
    def width(self) -> float:
        """Width of a box."""
        return 2 * self.half


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
    p = 4 * math.ceil(p / 4)  # `vectors` takes four at a time
    reach = math.ceil(far / (2 * half))
    angle = (np.arange(p) + 0.5) * np.pi / p
    nodes = np.cos(angle)
    to_coefficients = 2 / p * np.cos(np.arange(p)[:, None] * angle)
    to_coefficients[0] /= 2
    offset = np.arange(-reach, reach + 1)[:, None, None]
    u: FloatArray = np.asarray(half * (2 * offset + nodes[:, None] - nodes))
    powers = np.eye(p)
    for k in range(2, p):  # T_k = 2 t T_{k-1} - T_{k-2}
        powers[k] = np.append(0, 2 * powers[k - 1, :-1]) - powers[k - 2]
    to_powers = powers.T @ to_coefficients
    coefficients = to_powers @ np.array(functions(u)) @ to_powers.T
    matrix = np.ascontiguousarray(coefficients.transpose(0, 1, 3, 2))
    return Profile(half, reach, frozen(matrix), frozen(np.array(tail)))


class Layout(NamedTuple):
    """Where the scores of some lists lie.

    Attributes
    ----------
    rows
        List r has the documents ``rows[r, 0] <= i < rows[r, 1]``.
    box, t
        The box of each document, as an index into `number`, and its place there.
    number
        Boxes that hold documents, list by list: how many boxes each lies above the one of the list's lowest score.
    begin, boxes
        List r has the boxes ``number[begin[r] : begin[r] + boxes[r]]``; none if it is left out.
    found
        Which lists are not left out.
    complete
        Whether none is.
    one
        1 for each document.
    """

    rows: IntArray
    box: IntArray
    t: FloatArray
    number: IntArray
    begin: IntArray
    boxes: IntArray
    found: NDArray[np.bool_]
    complete: bool
    one: FloatArray

    def lists(self, chosen: NDArray[np.bool_]) -> Layout:
        """Return the layout of some lists alone; these, as all lists here, stand one after the other."""
        kept, sizes = self.only(chosen), self.rows[:, 1] - self.rows[:, 0]
        ends = np.cumsum(sizes[chosen])
        rows = np.stack((ends - sizes[chosen], ends), axis=1)
        kept = kept._replace(begin=kept.begin[chosen], boxes=kept.boxes[chosen], found=chosen[chosen], complete=True)
        return kept.some(rows, np.flatnonzero(np.repeat(chosen, sizes)))

    def is_shared(self, ranges: IntArray) -> bool:
        """Tell whether there is one list, in few boxes, with so many documents in ranges that all threads take part."""
        few = len(ranges) == 1 and 0 < self.boxes[0] <= _FEW_BOXES
        return few and int(np.sum(ranges[..., 1] - ranges[..., 0])) >= WIDE

    def some(self, rows: IntArray, which: IntArray) -> Layout:
        """Return the layout of some documents in the same boxes: those of list r are ``which[slice(*rows[r])]``."""
        return self._replace(rows=rows, box=self.box[which], t=self.t[which], one=self.one[: which.size])

    def within(self, reach: int) -> IntArray:
        """Return for each box which of its list are no more than `reach` boxes away: from where and up to where."""
        ends = np.stack((self.begin, self.begin + self.boxes), axis=1)
        if self.number.max(initial=0) <= reach:
            return np.repeat(ends, self.boxes, axis=0)
        place = self.number + np.repeat(np.arange(len(ends)) * 2 * _MAX_BOXES, self.boxes)
        return np.stack((np.searchsorted(place, place - reach), np.searchsorted(place, place + reach, "right")), axis=1)

    def only(self, found: NDArray[np.bool_]) -> Layout:
        """Leave out all other lists."""
        boxes = np.where(found, self.boxes, 0)
        begin, box = np.cumsum(boxes) - boxes, self.box.copy()
        for r in np.flatnonzero(found & (begin < self.begin)):
            box[slice(*self.rows[r])] -= self.begin[r] - begin[r]
        number = self.number[np.repeat(found, self.boxes)]
        return self._replace(box=box, number=number, begin=begin, boxes=boxes, found=found, complete=False)


def is_wide(rows: IntArray) -> bool:
    """Tell whether there is one list, and so long that its sums are made on all threads."""
    return len(rows) == 1 and rows[0, 1] - rows[0, 0] >= WIDE


def extremes(rows: IntArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest of each list's scores; no list is empty, and each is behind the one before."""
    edges = rows.ravel()
    edges = edges[edges < x.size]
    # Contiguous, as those of a single list are: loops are compiled for that alone.
    low, high = (np.ascontiguousarray(each.reduceat(x, edges)[::2]) for each in (np.minimum, np.maximum))
    return low, high


def lay_out_lists(
    rows: IntArray, x: FloatArray, profile: Profile, pair: FloatArray, time: Callable[[IntArray, IntArray], FloatArray]
) -> Layout:
    """Return where the scores of lists lie, each with the documents ``rows[r, 0] <= i < rows[r, 1]``.

    Left out is each list of n documents for which a double loop, where a pair takes `pair` ns, by list, is cheaper
    than the sums, which take ``time(n, boxes)``. No list is empty.
    """
    n, (low, high), width = rows[:, 1] - rows[:, 0], extremes(rows, x), profile.width
    with np.errstate(over="ignore", invalid="ignore"):
        slots = (high - low) / width
        pair = np.where(high - low > FAR, _FAR_PAIR * pair, pair)
    double = double_loop_time(pair, n)
    # To go through so many slots takes about so many ns.
    slots = np.where(slots < np.minimum(_MAX_BOXES, _LIST + double), slots + 1, 0).astype(np.int64)
    slot, boxes = np.zeros(slots.max(), np.int64), np.zeros(len(rows), np.int64)
    box, t, number = np.empty(x.size, np.int64), np.empty(x.size), np.empty(x.size, np.int64)
    _lay_out(rows, x, low, width, slots, slot, box, t, number, boxes)
    begin = np.cumsum(boxes) - boxes
    found = (boxes > 0) & (double >= time(n, boxes))
    layout = Layout(rows, box, t, number[: boxes.sum()], begin, boxes, found, True, np.ones(x.size * found.any()))
    return layout if found.all() else layout.only(found)


@compiled
def _lay_out(rows, x, low, width, slots, slot, box, t, number, boxes):  # type: ignore[no-untyped-def]
    """Find the boxes of lists that have slots, and the documents' places in them; a slot is 0 before and after."""
    used = 0
    for r in range(rows.shape[0]):
        if slots[r] == 0:
            continue
        begin = used
        for i in range(rows[r, 0], rows[r, 1]):
            place = (x[i] - low[r]) / width
            at = np.int64(place)
            box[i] = at
            t[i] = 2 * (place - at) - 1
            slot[at] = 1
        for b in range(slots[r]):
            if slot[b]:
                number[used] = b
                slot[b] = used
                used += 1
        for i in range(rows[r, 0], rows[r, 1]):
            box[i] = slot[box[i]]
        for b in range(begin, used):
            slot[number[b]] = 0
        boxes[r] = used - begin


@partial(compiled, liberties=FUSED)
def add_moments(box, t, w, ranges, moments, seen):  # type: ignore[no-untyped-def]
    """Add w_i t_i^k to moments[s, box of i, k] for each i of the s-th range of each list; the boxes are seen."""
    p = np.uint64(moments.shape[2])
    for r in range(ranges.shape[0]):
        for s in range(np.uint64(ranges.shape[1])):
            for i in range(np.uint64(ranges[r, s, 0]), np.uint64(ranges[r, s, 1])):
                b, t1 = np.uint64(box[i]), t[i]
                row, seen[s, b] = moments[s, b], True
                t2 = t1 * t1
                powers, t4 = times(w[i], pack(1.0, t1, t2, t1 * t2)), t2 * t2
                for k in range(_0, p, _4):
                    store(plus(load(row, k), powers), row, k)
                    powers = times(t4, powers)


@partial(compiled, liberties=FUSED)
def translate(near, number, wanted, moments, matrix, coefficients):  # type: ignore[no-untyped-def]
    """Fill coefficients[k, f, a] for the boxes a that are wanted: the sums of f over near[a, 0] <= b < near[a, 1]."""
    p, reach = np.uint64(moments.shape[2]), matrix.shape[1] // 2
    for k in range(np.uint64(coefficients.shape[0])):
        for a in range(np.uint64(number.size)):
            if not wanted[k, a]:
                continue
            for f in range(np.uint64(coefficients.shape[1])):
                by_offset, row = matrix[f], coefficients[k, f, a]
                for q in range(_0, p, _4):
                    store(pack(0.0, 0.0, 0.0, 0.0), row, q)
                for b in range(np.uint64(near[a, 0]), np.uint64(near[a, 1])):
                    M, m = by_offset[np.uint64(reach + number[a] - number[b])], moments[k, b]
                    for q in range(_0, p, _4):
                        total = load(row, q)
                        for j in range(_0, p, _4):
                            first = plus(times(m[j], load(M[j], q)), times(m[j + _1], load(M[j + _1], q)))
                            second = plus(times(m[j + _2], load(M[j + _2], q)), times(m[j + _3], load(M[j + _3], q)))
                            total = plus(total, plus(first, second))
                        store(total, row, q)


@compiled
def add_tails(begin, boxes, near, number, moments, half, tail, coefficients):  # type: ignore[no-untyped-def]
    """Add the sums of f over all boxes of a list out of reach."""
    for r in range(begin.size):
        first, end = begin[r], begin[r] + boxes[r]
        # Total weight and first moment of all boxes before each one.
        weight, moment = np.zeros(boxes[r] + 1), np.zeros(boxes[r] + 1)
        for k in range(coefficients.shape[0]):
            for b in range(boxes[r]):
                m0, m1 = moments[k, first + b, 0], moments[k, first + b, 1]
                weight[b + 1] = weight[b] + m0
                moment[b + 1] = moment[b] + half * ((2 * number[first + b] + 1) * m0 + m1)
            for a in range(first, end):
                left, right = near[a, 0], near[a, 1]
                weight_left, weight_right = weight[left - first], weight[boxes[r]] - weight[right - first]
                moment_left, moment_right = moment[left - first], moment[boxes[r]] - moment[right - first]
                lead = weight_left - weight_right
                distance = lead * half * (2 * number[a] + 1) - (moment_left - moment_right)
                for f in range(coefficients.shape[1]):
                    row = coefficients[k, f, a]
                    row[0] += tail[f, 0] * weight_right + tail[f, 1] * weight_left + tail[f, 2] * distance
                    row[1] += tail[f, 2] * lead * half


@partial(compiled, liberties=FUSED)
def evaluate(box, t, coefficients, scale, ranges, out):  # type: ignore[no-untyped-def]
    """Add scale_i sum_q coefficients[k, f, box of i, q] t_i^q to out[i, f], for i in the k-th range of each list."""
    p = np.uint64(coefficients.shape[3])
    for r in range(ranges.shape[0]):
        for k in range(np.uint64(ranges.shape[1])):
            for i in range(np.uint64(ranges[r, k, 0]), np.uint64(ranges[r, k, 1])):
                b, t1 = np.uint64(box[i]), t[i]
                t2 = t1 * t1
                powers, t4 = times(scale[i], pack(1.0, t1, t2, t1 * t2)), t2 * t2
                for f in range(np.uint64(coefficients.shape[1])):
                    row, q = coefficients[k, f, b], p - _4
                    total = load(row, q)
                    while q > _0:
                        q -= _4
                        total = plus(times(t4, total), load(row, q))
                    out[i, f] += dot(total, powers)


class Moments(NamedTuple):
    """Moments of some documents of a layout, in sets: of each box, and whether it has any.

    Attributes
    ----------
    of
        ``of[s, b]`` are those of box b in the set s.
    seen
        Whether set s has documents in box b.
    """

    of: FloatArray
    seen: NDArray[np.bool_]


def moments(layout: Layout, w: FloatArray, ranges: IntArray, profile: Profile) -> Moments:
    """Return the moments of the documents ``ranges[r, s, 0] <= i < ranges[r, s, 1]`` of each list r, as set s."""
    shape = ranges.shape[1], layout.number.size, profile.matrix.shape[2]
    if not layout.is_shared(ranges):
        found = Moments(np.zeros(shape), np.zeros(shape[:2], np.bool_))
        add_moments(layout.box, layout.t, w, _found(layout, ranges), *found)
        return found
    cut = [
        (s, lo, min(lo + _BLOCK, end)) for s, (begin, end) in enumerate(ranges[0]) for lo in range(begin, end, _BLOCK)
    ]
    blocks = np.array([block for _, *block in cut]).reshape(1, len(cut), 2)
    parts = Moments(np.zeros((len(cut), *shape[1:])), np.zeros((len(cut), shape[1]), np.bool_))

    def add(lo: int, hi: int) -> None:
        add_moments(layout.box, layout.t, w, blocks[:, lo:hi], parts.of[lo:hi], parts.seen[lo:hi])

    over_shares(add, 0, len(cut))
    found = Moments(np.zeros(shape), np.zeros(shape[:2], np.bool_))
    for (s, _, _), part, seen in zip(cut, *parts, strict=True):
        found.of[s] += part
        found.seen[s] |= seen
    return found


def coefficients(
    layout: Layout, near: IntArray, sets: FloatArray, wanted: NDArray[np.bool_], profile: Profile, functions: slice
) -> FloatArray:
    """Return by k, function and box the polynomials that are the sums over the k-th moments.

    Boxes that are not wanted[k] have anything; `near` is ``layout.within(profile.reach)``.
    """
    matrix = profile.matrix[functions]
    found = np.empty((len(wanted), len(matrix), *sets.shape[1:]))
    translate(near, layout.number, wanted, sets, matrix, found)
    if layout.number.max(initial=0) > profile.reach:
        tail = profile.tail[functions]
        add_tails(layout.begin, layout.boxes, near, layout.number, sets, profile.half, tail, found)
    return found


def add_polynomials(
    layout: Layout, polynomials: FloatArray, scale: FloatArray, ranges: IntArray, out: FloatArray
) -> None:
    """Add scale_i times the k-th polynomials of its box to out[i], for each i of the k-th range of each list."""
    if not layout.is_shared(ranges):
        evaluate(layout.box, layout.t, polynomials, scale, _found(layout, ranges), out)
        return

    def add(lo: int, hi: int) -> None:
        evaluate(layout.box, layout.t, polynomials, scale, np.clip(ranges, lo, hi), out)

    over_shares(add, int(ranges.min()), int(ranges.max()))


def add_sums(
    layout: Layout,
    sets: FloatArray,
    wanted: NDArray[np.bool_],
    ranges: IntArray,
    profile: Profile,
    first: int,
    out: FloatArray,
) -> None:
    """Add the sums of K_{first + f} over the k-th moments to out[i, f], for each i of the k-th range of each list.

    Those boxes must be wanted[k] that have documents in the range.
    """
    near, functions = layout.within(profile.reach), slice(first, first + out.shape[1])
    found = coefficients(layout, near, sets, wanted, profile, functions)
    add_polynomials(layout, found, layout.one, ranges, out)


def _found(layout: Layout, ranges: IntArray) -> IntArray:
    """Return the ranges of the lists that are not left out."""
    return ranges if layout.complete else np.ascontiguousarray(ranges[layout.found])


def list_sums(sources: Layout, w: FloatArray, targets: Layout, profile: Profile, first: int, out: FloatArray) -> None:
    """Add sum_j w_j K_{first + f}(x_i - x_j) to out[i, f], for each list over documents i of one layout, j of another.

    The layouts have the same boxes, see `Layout.some`.
    """
    sets = moments(sources, w, sources.rows[:, None], profile).of
    add_sums(targets, sets, np.ones(sets.shape[:2], np.bool_), targets.rows[:, None], profile, first, out)


def double_loop_time(pair: Any, n: IntArray) -> FloatArray:
    """Return what a double loop takes over n rows and n^2 pairs of `pair` ns each, in ns."""
    return np.asarray(pair * n * (n + _ROW))


def translation_time(profile: Profile, functions: int, targets: Any, boxes: Any) -> Any:
    """Return what it takes to translate the moments of all boxes to some, in ns."""
    return _TRANSLATION * targets * np.minimum(boxes, 2 * profile.reach + 1) * functions


def sum_time(profile: Profile, functions: int, n: Any, boxes: Any, rounds: Any = 1) -> Any:
    """Return what sums over boxes take, in ns, if moments are translated so many rounds."""
    return _LIST + n * _DOCUMENT + translation_time(profile, functions, np.minimum(n, boxes * rounds), boxes)
