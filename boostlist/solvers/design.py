"""Designs: features phi(x) of documents, of which a score is the linear form f = Phi w.

Solvers need three products: Phi w, Phi'v and Phi'H Phi. All of them read Phi in blocks of rows, in float64, whatever
the matrix behind it is: dense or CSR, float32 or float64, or features that are made on the way. No more than one block
is ever copied.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from boostlist._typing import FloatArray, IntArray
from boostlist.arrays import frozen
from boostlist.losses.base import BoundLoss
from boostlist.parallel import REORDERED, compiled

# Numbers in a block: large enough for matrix products to run at full speed, small enough that a block is still in
# cache when it is multiplied, and that its memory serves the next one.
_BLOCK = 2**17
# Numbers in a block for products with a vector: small enough to stay in cache between conversion and product.
_SMALL_BLOCK = 2**16
# Columns of Phi that go through H v before they are multiplied by Phi'.
_COLUMNS = 16


class Design(ABC):
    """Features of documents in lists.

    Attributes
    ----------
    n_rows, n_columns
        Number of documents and of features.
    """

    n_rows: int
    n_columns: int

    @abstractmethod
    def block(self, lo: int, hi: int) -> FloatArray:
        """Return the rows lo <= i < hi as a C-contiguous float64 array."""

    def column(self, j: int) -> FloatArray:
        """Return a column as a float64 array."""
        return np.concatenate([self.block(lo, hi)[:, j] for lo, hi in self._ranges(_BLOCK)])

    def scores(self, w: FloatArray) -> FloatArray:
        """Return Phi w."""
        f = np.empty(self.n_rows)
        for lo, hi in self._ranges(_SMALL_BLOCK):
            np.dot(self.block(lo, hi), w, out=f[lo:hi])
        return f

    def back(self, v: FloatArray) -> FloatArray:
        """Return Phi'v."""
        total = np.zeros(self.n_columns)
        for lo, hi in self._ranges(_SMALL_BLOCK):
            total += v[lo:hi] @ self.block(lo, hi)
        return total

    def hessian(self, bound: BoundLoss, f: FloatArray) -> FloatArray:
        """Return Phi'H Phi for the Hessian H of the bound loss at the scores f."""
        product = bound.curvature(f)
        total = np.zeros((self.n_columns, self.n_columns))
        if product is not None:
            start = bound.queries.start
            for first, last in whole_queries(start, max(1, _BLOCK // self.n_columns)):
                total += product(first, last, self.block(int(start[first]), int(start[last])))
            return total
        hessp = bound.hessp(f)
        for j in range(0, self.n_columns, _COLUMNS):
            columns = range(j, min(j + _COLUMNS, self.n_columns))
            HV = np.column_stack([hessp(self.column(k)) for k in columns])
            for lo, hi in self._ranges(_BLOCK):
                total[:, columns.start : columns.stop] += self.block(lo, hi).T @ HV[lo:hi]
        return (total + total.T) / 2

    def _ranges(self, numbers: int) -> Iterator[tuple[int, int]]:
        step = max(1, numbers // self.n_columns)
        return ((lo, min(lo + step, self.n_rows)) for lo in range(0, self.n_rows, step))


def whole_queries(start: IntArray, rows: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of queries with at most so many rows, or of a single query."""
    first, queries = 0, len(start) - 1
    while first < queries:
        last = int(np.searchsorted(start, start[first] + rows, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


class MatrixDesign(Design):
    """The features themselves: phi(x) = x.

    Parameters
    ----------
    X
        A float32 or float64 array, or a CSR matrix of either.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.is_sparse: bool = sparse.issparse(X)
        self.n_rows, self.n_columns = X.shape
        # NumPy would copy rows of single precision before each product, which takes four times as long.
        self._single = not self.is_sparse and X.dtype == np.float32 and X.flags.c_contiguous

    def block(self, lo: int, hi: int) -> FloatArray:
        """Return rows; a view where X is a C-contiguous float64 array."""
        rows = self.X[lo:hi]
        if self.is_sparse:
            rows = rows.toarray()
        block: FloatArray = np.ascontiguousarray(rows, dtype=np.float64)
        return block

    def column(self, j: int) -> FloatArray:
        """Return a column."""
        column = self.X[:, [j]].toarray().ravel() if self.is_sparse else self.X[:, j]
        return np.array(column, dtype=np.float64)

    def scores(self, w: FloatArray) -> FloatArray:
        """Return X w."""
        # NumPy and SciPy would make a float64 copy of all of a float32 matrix.
        if self.X.dtype == np.float64:
            return np.asarray(self.X @ w)
        if self._single:
            f = np.empty(self.n_rows)
            _scores(frozen(np.asarray(self.X)), frozen(np.ascontiguousarray(w)), f)
            return f
        if not self.is_sparse:
            return super().scores(w)
        return np.concatenate([self.X[lo:hi] @ w for lo, hi in self._stored_ranges()])

    def back(self, v: FloatArray) -> FloatArray:
        """Return X'v."""
        if self.X.dtype == np.float64:
            return np.asarray(self.X.T @ v)
        if self._single:
            total = np.zeros(self.n_columns)
            _back(frozen(np.asarray(self.X)), frozen(np.ascontiguousarray(v)), total)
            return total
        if not self.is_sparse:
            return super().back(v)
        total = np.zeros(self.n_columns)
        for lo, hi in self._stored_ranges():
            total += self.X[lo:hi].T @ v[lo:hi]
        return total

    def _stored_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows of a CSR matrix that store about a block of numbers."""
        return whole_queries(self.X.indptr, _BLOCK)


@partial(compiled, liberties=REORDERED)
def _scores(X, w, f):  # type: ignore[no-untyped-def]
    """Fill f = X w."""
    for i in range(X.shape[0]):
        row, total = X[i], 0.0
        for k in range(w.size):
            total += row[k] * w[k]
        f[i] = total


@partial(compiled, liberties=REORDERED)
def _back(X, v, total):  # type: ignore[no-untyped-def]
    """Add X'v."""
    for i in range(X.shape[0]):
        row, vi = X[i], v[i]
        for k in range(total.size):
            total[k] += vi * row[k]


class TransformedDesign(Design):
    """Linear combinations of the features of another design: Phi T.

    Parameters
    ----------
    inner
        The design Phi.
    T
        A matrix with a row for each column of Phi.
    """

    def __init__(self, inner: Design, T: FloatArray) -> None:
        self.inner = inner
        self.T = frozen(T)
        self.n_rows, self.n_columns = inner.n_rows, T.shape[1]

    def block(self, lo: int, hi: int) -> FloatArray:
        """Return rows."""
        block: FloatArray = self.inner.block(lo, hi) @ self.T
        return block

    def scores(self, w: FloatArray) -> FloatArray:
        """Return Phi T w."""
        return self.inner.scores(self.T @ w)

    def back(self, v: FloatArray) -> FloatArray:
        """Return T'Phi'v."""
        total: FloatArray = self.T.T @ self.inner.back(v)
        return total

    def hessian(self, bound: BoundLoss, f: FloatArray) -> FloatArray:
        """Return T'(Phi'H Phi)T: the long product is that of the inner design."""
        total: FloatArray = self.T.T @ self.inner.hessian(bound, f) @ self.T
        return total
