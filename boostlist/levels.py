"""Levels: the documents of each query sorted and grouped by grade.

Every loss here depends on labels only through their order and through per-grade constants, so its sums run over grades:
sums over "all documents with a lower grade" are prefix sums over levels. The sort happens once, when a loss is bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.arrays import frozen
from boostlist.parallel import compiled, over_queries

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Levels(NamedTuple):
    """Documents of each query in ascending order of grade; loops take it as it is.

    Attributes
    ----------
    order
        For the rows ``a:b`` of a query, ``order[a:b]`` holds its documents (0 is the query's first row) from the lowest
        grade to the highest, ties in row order.
    start
        Query q owns the levels ``start[q]:start[q + 1]``, lowest grade first.
    document
        Level l holds the sorted documents ``order[document[l]:document[l + 1]]``.
    label
        Grade of each level.
    position
        Label position of each level: 1 + the number of documents with a higher grade. Tied documents share it.
    """

    order: NDArray[np.int32]
    start: IntArray
    document: IntArray
    label: FloatArray
    position: IntArray

    @classmethod
    def of(cls, labels: FloatArray, start: IntArray) -> Levels:
        """Sort the documents of each query by grade; query q has the rows ``start[q]:start[q + 1]``."""
        # NumPy sorts as fast as a loop here, and nothing is compiled for it.
        grades, grade = np.unique(labels, return_inverse=True)
        sizes = np.diff(start)
        key = np.repeat(len(grades) * np.arange(len(sizes)), sizes) + grade
        rows = np.argsort(key, kind="stable")
        head = np.diff(key[rows], prepend=-1) > 0
        order = (rows - np.repeat(start[:-1], sizes)).astype(np.int32)
        return cls._from_heads(start, labels[rows], order, head)

    @classmethod
    def _from_heads(
        cls, rows: IntArray, labels: FloatArray, order: NDArray[np.int32], head: NDArray[np.bool_]
    ) -> Levels:
        document = np.append(np.flatnonzero(head), len(labels)).astype(np.int64)
        start = np.searchsorted(document, rows).astype(np.int64)
        end = np.repeat(rows[1:], np.diff(start))
        arrays = (order, start, document, labels[document[:-1]], 1 + end - document[1:])
        return cls(*(frozen(array) for array in arrays))

    @property
    def rows(self) -> IntArray:
        """Row at which each query begins, and at the end the number of rows."""
        rows: IntArray = self.document[self.start]
        return rows

    @property
    def sizes(self) -> IntArray:
        """Number of documents of each level."""
        return np.diff(self.document)

    @property
    def query(self) -> IntArray:
        """Query that each level belongs to."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def sum_by_query(self, values: FloatArray) -> FloatArray:
        """Sum one value per level over the levels of each query."""
        total: FloatArray = np.bincount(self.query, weights=values, minlength=len(self.start) - 1).astype(np.float64)
        return total

    def sum_below(self, values: FloatArray) -> FloatArray:
        """Sum one value per level over the lower levels of the same query."""
        total = np.empty(len(values))
        over_queries(_sum_below, self.start, self.start, frozen(values), total)
        return total

    def untied(self, draw: FloatArray | None = None) -> Levels:
        """Break ties: every document is a level, and of equal grades the first row counts as the best.

        With a draw, a number for each place of `order`, it is the one with the largest number.
        """
        level = np.repeat(np.arange(len(self.label)), self.sizes)
        place = np.lexsort((-np.arange(len(self.order)) if draw is None else draw, level))
        head = np.ones(len(self.order), np.bool_)
        return self._from_heads(self.rows, self.label[level], self.order[place], head)

    def flip(self, values: FloatArray) -> FloatArray:
        """Reverse one value per level within each query."""
        query = self.query
        return np.take(values, self.start[query] + self.start[query + 1] - 1 - np.arange(len(values)))

    def descending(self) -> Levels:
        """Return the same levels from the highest grade to the lowest; positions count from the bottom."""
        rows = self.rows
        first, end = (np.repeat(bound, np.diff(rows)) for bound in (rows[:-1], rows[1:]))
        mirror = first + end - 1 - np.arange(len(self.order))
        head = np.zeros(len(self.order), np.bool_)
        head[mirror[self.document[1:] - 1]] = True
        labels = np.repeat(self.label, self.sizes)
        return self._from_heads(rows, labels[mirror], self.order[mirror], head)


@compiled
def _sum_below(lo, hi, start, values, total):  # type: ignore[no-untyped-def]
    for q in range(lo, hi):
        below = 0.0
        for g in range(start[q], start[q + 1]):
            total[g] = below
            below += values[g]
