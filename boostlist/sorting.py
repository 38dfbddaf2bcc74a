"""A stable sort for loops.

Runs of `_RUN` numbers are sorted by counting, for each, those that are smaller, in a loop that is vectorised; then runs
are merged two by two. Nothing here branches on the numbers: a wrong guess of the processor costs more than a few
comparisons. Indices that are read from arrays are made unsigned, as signed ones are tested for counting from the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.parallel import inlined, inner

_RUN, _LANES = 128, 16


class SortSpace(NamedTuple):
    """What `sort` and `merge` work in, besides their output."""

    key: FloatArray
    order: AnyArray
    run: FloatArray
    seen: IntArray

    @classmethod
    def of(cls, n: int) -> SortSpace:
        """Return space to sort n numbers in, made without a loop."""
        return cls(np.empty(n), np.empty(n, np.int32), np.empty(_RUN), np.empty(_RUN, np.int64))


@inlined
def sort_space(n):  # type: ignore[no-untyped-def]
    """Return space to sort n numbers in."""
    return SortSpace(np.empty(n), np.empty(n, np.int32), np.empty(_RUN), np.empty(_RUN, np.int64))


@inner
def sort(x, lo, hi, key, order, space):  # type: ignore[no-untyped-def]
    """Fill key[lo:hi] with x[lo:hi] in ascending order, and order[lo:hi] with where each stood; ties stay in order."""
    for left in range(lo, hi, _RUN):
        _sort_run(x, left, min(left + _RUN, hi), key, order, space)
    length = _RUN
    while length < hi - lo:
        for left in range(lo, hi - length, 2 * length):
            merge(key, order, left, left + length, min(left + 2 * length, hi), space)
        length *= 2


@inlined
def _sort_run(x, lo, hi, key, order, space):  # type: ignore[no-untyped-def]
    run, seen = space.run, space.seen
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
        order[at] = lo + k


@inner
def merge(key, order, lo, middle, hi, space):  # type: ignore[no-untyped-def]
    """Merge the neighbouring parts lo:middle and middle:hi of key, each sorted, and move order with it."""
    key_spare, spare = space.key, space.order
    one, end, at = np.uint64(1), np.uint64(hi), np.uint64(lo)
    i, j = at, np.uint64(middle)
    half = j
    while i < half and j < end:
        key_i, key_j = key[i], key[j]
        first = np.uint64(key_i <= key_j)
        key_spare[at] = min(key_i, key_j)
        spare[at] = order[j + first * (i - j)]
        i += first
        at += one
        j = half + at - i
    while i < half:
        key_spare[at] = key[i]
        spare[at] = order[i]
        i += one
        at += one
    # What is left of the higher part is in its place already.
    for k in range(lo, np.int64(at)):
        key[k] = key_spare[k]
        order[k] = spare[k]
