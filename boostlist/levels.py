"""Levels: the documents of each query sorted and grouped by grade.

Every loss here depends on labels only through their order and through per-grade constants, so its sums run over grades:
sums over "all documents with a lower grade" are prefix sums over levels. The sort happens once, when a loss is bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.parallel import compiled, over_queries
from boostlist.queries import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist.queries import Queries


@dataclass(frozen=True, eq=False)
class Levels:
    """Documents of each query in ascending order of grade.

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
    def of(cls, queries: Queries) -> Levels:
        """Sort the documents of each query by grade."""
        order = np.empty(queries.n_documents, np.int32)
        head = np.empty(queries.n_documents, np.bool_)
        over_queries(_sort, queries.start, queries.start, queries.labels, order, head)
        first = np.repeat(queries.start[:-1], queries.sizes)
        return cls._from_heads(queries, queries.labels[first + order], order, head)

    @classmethod
    def _from_heads(
        cls, queries: Queries, labels: FloatArray, order: NDArray[np.int32], head: NDArray[np.bool_]
    ) -> Levels:
        document = np.append(np.flatnonzero(head), queries.n_documents).astype(np.int64)
        start = np.searchsorted(document, queries.start).astype(np.int64)
        end = np.repeat(queries.start[1:], np.diff(start))
        position = 1 + end - document[1:]
        arrays = (order, start, document, labels[document[:-1]], position)
        return cls(*(frozen(array) for array in arrays))

    @property
    def count(self) -> IntArray:
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

    def untied(self, queries: Queries) -> Levels:
        """Break ties by row order: every document is a level, and of equal grades the first row counts as the best."""
        level = np.repeat(np.arange(len(self.label)), self.count)
        # Mirror each level: its rows ascend, and the first of them must come out on top, that is last.
        mirrored = self.document[level] + self.document[level + 1] - 1 - np.arange(queries.n_documents)
        head = np.ones(queries.n_documents, np.bool_)
        return self._from_heads(queries, self.label[level], self.order[mirrored], head)

    def flip(self, values: FloatArray) -> FloatArray:
        """Reverse one value per level within each query."""
        query = self.query
        return np.take(values, self.start[query] + self.start[query + 1] - 1 - np.arange(len(values)))

    def descending(self, queries: Queries) -> Levels:
        """Return the same levels from the highest grade to the lowest; positions count from the bottom."""
        first, end = (np.repeat(bound, queries.sizes) for bound in (queries.start[:-1], queries.start[1:]))
        mirror = first + end - 1 - np.arange(queries.n_documents)
        head = np.zeros(queries.n_documents, np.bool_)
        head[mirror[self.document[1:] - 1]] = True
        labels = np.repeat(self.label, self.count)
        return self._from_heads(queries, labels[mirror], self.order[mirror], head)


@compiled
def _sort(lo, hi, start, labels, order, head):  # type: ignore[no-untyped-def]
    for q in range(lo, hi):
        a, b = start[q], start[q + 1]
        y = labels[a:b]
        sorted_order = np.argsort(y, kind="mergesort")
        for i in range(b - a):
            order[a + i] = sorted_order[i]
            head[a + i] = i == 0 or y[sorted_order[i]] != y[sorted_order[i - 1]]


@compiled
def _sum_below(lo, hi, start, values, total):  # type: ignore[no-untyped-def]
    for q in range(lo, hi):
        below = 0.0
        for g in range(start[q], start[q + 1]):
            total[g] = below
            below += values[g]
