"""Gradient and diagonal as hosts store them: bounded steps, weights, scale and floor in one pass, rounded to float32.

The floor is a part of the mean, which is known only at the end; documents that lie below it take a second, short pass,
and seldom are there any. Another pass makes all smaller by one factor where float32 could not hold them, as with the
exponential loss of scores that are far apart. Sums are taken over blocks of fixed size: the same to the last bit for
any number of threads.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from boostlist.arrays import frozen
from boostlist.parallel import REORDERED, compiled, over_queries

if TYPE_CHECKING:
    from boostlist._typing import AnyArray, FloatArray, IntArray
    from boostlist.arrays import Room

_BLOCK = 4_096

# A document may have no curvature at all, and hosts divide by it: never less than this part of the mean.
_FLOOR = 1e-6
# What Hessians may add up to: float32 ends at 3e38, and steps are lengths of a gradient over a Hessian.
_LARGEST = 1e30


@partial(compiled, liberties=REORDERED)
def _round(lo, hi, g, h, least, weight, scale, bend, gradient, hessian, total, lowest):  # type: ignore[no-untyped-def]
    """Fill in the blocks lo:hi: gradient and hessian in float32, sum and smallest of what becomes the hessian.

    least is 1 / s, and weight a factor, of all documents where it has one entry, else of each.
    """
    n = g.size
    for block in range(lo, hi):
        begin, end = block * _BLOCK, (block + 1) * _BLOCK
        low, summed = np.inf, 0.0
        for i in range(np.uint64(begin), np.uint64(end if end < n else n)):
            factor = weight[i] if weight.size > 1 else weight[0]
            bound = (least[i] if least.size > 1 else least[0]) * abs(g[i])
            x = (h[i] if h[i] > bound else bound) * factor
            gradient[i] = g[i] * factor * scale
            hessian[i] = x * bend
            summed += x
            low = x if x < low else low
        total[block], lowest[block] = summed, low


@compiled
def _add(lo, hi, g, h, least, factor, gradient, diag):  # type: ignore[no-untyped-def]
    for i in range(lo * _BLOCK, min(hi * _BLOCK, g.size)):
        bound = least[i] if least.size > 1 else least[0]
        gradient[i] += factor * g[i]
        diag[i] += factor * max(h[i], abs(g[i]) * bound)


def add_term(
    g: FloatArray, h: FloatArray, least: FloatArray, factor: float, gradient: FloatArray, diag: FloatArray
) -> None:
    """Add a term of a sum, times its factor, to gradient and diagonal; g, h and least as for `finished`."""
    over_queries(_add, _blocks(g.size), *map(frozen, (g, h, least)), factor, gradient, diag)


def _blocks(documents: int) -> IntArray:
    """Return where the blocks of documents begin, and at the end the number of documents."""
    return np.append(np.arange(0, documents, _BLOCK), documents)


def finished(
    g: FloatArray,
    h: FloatArray,
    least: FloatArray,
    weight: FloatArray,
    scale: float,
    bend: float,
    counted: int,
    room: Room,
) -> tuple[AnyArray, AnyArray]:
    """Return gradient and Hessian diagonal in float32.

    Parameters
    ----------
    g, h
        Gradient and diagonal of the loss.
    least
        The diagonal is raised to this times the size of the gradient; one entry for all documents, or one each.
    weight
        Factors on gradient and diagonal, one entry for all documents or one each.
    scale, bend
        Factors on gradient and diagonal.
    counted
        Number of documents that the mean is over; the others have a weight of 0.
    room
        Where there is room for the results.
    """
    gradient, hessian = room.empty(), room.empty()
    start = _blocks(g.size)
    total, lowest = np.zeros((2, len(start) - 1))
    read = [frozen(array) for array in (g, h, least, weight)]  # of one type, so that one loop is compiled
    over_queries(_round, start, *read, scale, bend, gradient, hessian, total, lowest)
    whole = float(np.sum(total)) * bend
    if whole > _LARGEST:  # one factor on everything: steps stay what they are
        scale, bend = (factor * (_LARGEST / whole) for factor in (scale, bend))
        over_queries(_round, start, *read, scale, bend, gradient, hessian, total, lowest)
    floor = _FLOOR * float(np.sum(total)) / max(counted, 1)
    if floor <= 0:
        hessian[:] = 1.0
    elif lowest.min() < floor:
        np.maximum(hessian, np.float32(floor * bend), out=hessian)
    return gradient, hessian
