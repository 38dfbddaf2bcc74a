"""Biases of positions in a design: scores of training documents are Phi w + b, with a bias for each position.

The biases are further columns, one-hot in the position, that all solvers treat like the others: b is part of the
optimum. Their penalty is light, b^2 / 2000 where a weight has w^2 / 2, enough to choose among biases that differ by a
constant. Predictions leave them out.
"""

from __future__ import annotations

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.solvers import Design

_SCALE = np.sqrt(1000.0)


class PositionedDesign(Design):
    """The features of another design, followed by a column for each position.

    Parameters
    ----------
    inner
        The design of the features.
    codes
        The position of each document: 0, 1, ...
    positions
        The number of positions.
    """

    def __init__(self, inner: Design, codes: IntArray, positions: int) -> None:
        self.inner = inner
        self.codes = codes
        self.n_rows, self.n_columns = inner.n_rows, inner.n_columns + positions

    def block(self, lo: int, hi: int) -> FloatArray:
        """Return rows."""
        block = np.zeros((hi - lo, self.n_columns))
        block[:, : self.inner.n_columns] = self.inner.block(lo, hi)
        block[np.arange(hi - lo), self.inner.n_columns + self.codes[lo:hi]] = _SCALE
        return block

    def column(self, j: int) -> FloatArray:
        """Return a column."""
        if j < self.inner.n_columns:
            return self.inner.column(j)
        return np.where(self.codes == j - self.inner.n_columns, _SCALE, 0.0)

    def scores(self, w: FloatArray) -> FloatArray:
        """Return Phi w + b."""
        return self.inner.scores(self.weights(w)) + self.biases(w)[self.codes]

    def back(self, v: FloatArray) -> FloatArray:
        """Return the product of the transposed design and v."""
        positions = self.n_columns - self.inner.n_columns
        return np.concatenate([self.inner.back(v), _SCALE * np.bincount(self.codes, v, positions)])

    def weights(self, w: FloatArray) -> FloatArray:
        """Return the weights of the features."""
        return w[: self.inner.n_columns]

    def biases(self, w: FloatArray) -> FloatArray:
        """Return the bias of each position."""
        biases: FloatArray = _SCALE * w[self.inner.n_columns :]
        return biases
