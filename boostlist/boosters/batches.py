"""Features read in batches of whole queries, for data that is larger than memory.

The arrays are memory-mapped files as a rule. A page that was read stays resident until memory runs short, so after each
batch the pages are given back: what a training needs then shows in its peak memory, and others keep theirs.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from boostlist._typing import AnyArray, IntArray


def batch_bounds(start: IntArray, rows: int) -> IntArray:
    """Return rows at which batches of whole queries begin, with the number of rows appended.

    A batch has at least `rows` rows, save the last, and ends with the query that reaches them.
    """
    bounds = [0]
    while bounds[-1] < start[-1]:
        query = int(np.searchsorted(start, bounds[-1] + rows))
        bounds.append(int(start[min(query, len(start) - 1)]))
    return np.array(bounds)


def batches(X: AnyArray, bounds: IntArray) -> Iterator[tuple[slice, AnyArray]]:
    """Yield the rows of each batch and a copy of their features."""
    for lo, hi in pairwise(bounds):
        rows = slice(int(lo), int(hi))
        batch = np.array(X[rows])
        release(X)
        yield rows, batch


def release(X: AnyArray) -> None:
    """Give back the resident pages of an array mapped read-only from a file; nothing is lost, they are on disk."""
    base: object = X
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    # In a map that may be written to, pages could hold changes that are nowhere else.
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") and memoryview(base).readonly:
        base.madvise(mmap.MADV_DONTNEED)
