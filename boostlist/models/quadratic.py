r"""QuadraticRanker: f(x) = w'x + x'Cx on the products of features that go with the labels.

Tran, Phung, Venkatesh, *Learning Rank Functionals: An Empirical Study* (2011), eq. 4 and table 5: of all products
u = x_j x_k those are kept whose correlation with the label is at least rho,

    |r(u, y)| = | sum (u - ubar)(y - ybar) | / ( sum (u - ubar)^2 sum (y - ybar)^2 )^(1/2)

The sums of u, u^2 and u (y - ybar) over all documents, for all pairs (j, k) at once, are three matrix products: X'X,
(X o X)'(X o X) and X'diag(y - ybar)X, taken in blocks of rows. The products themselves are made a block at a time too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.losses import Loss
from boostlist.models.base import DesignRanker, as_loss
from boostlist.models.kernels import row_ranges
from boostlist.queries import Queries
from boostlist.solvers import Design, MatrixDesign, Problem

# A variance below this part of the mean square is rounding.
_CONSTANT = 1e-12


class ProductDesign(Design):
    """The features x, followed by the products x_j x_k of chosen pairs.

    Parameters
    ----------
    X
        A float32 or float64 array, or a CSR matrix of either.
    pairs
        A row (j, k) for each product.
    """

    def __init__(self, X: Any, pairs: IntArray) -> None:
        self.features = MatrixDesign(X)
        self.pairs = pairs
        self.n_rows, self.n_columns = X.shape[0], X.shape[1] + len(pairs)

    def block(self, lo: int, hi: int) -> FloatArray:
        """Return rows."""
        x = self.features.block(lo, hi)
        block = np.empty((hi - lo, self.n_columns))
        block[:, : x.shape[1]] = x
        np.multiply(x[:, self.pairs[:, 0]], x[:, self.pairs[:, 1]], out=block[:, x.shape[1] :])
        return block

    def column(self, j: int) -> FloatArray:
        """Return a column."""
        if j < self.features.n_columns:
            return self.features.column(j)
        first, second = self.pairs[j - self.features.n_columns]
        return self.features.column(first) * self.features.column(second)


def product_correlations(X: Any, y: FloatArray) -> FloatArray:
    """Return the correlation of x_j x_k with y for all j and k; 0 where the product or y is constant."""
    design, n = MatrixDesign(X), X.shape[0]
    centred = y - y.mean()
    total, squares, with_y = np.zeros((3, X.shape[1], X.shape[1]))
    for lo, hi in row_ranges(n, X.shape[1]):
        x = design.block(lo, hi)
        total += x.T @ x
        with_y += x.T @ (centred[lo:hi, None] * x)
        x = x * x
        squares += x.T @ x
    variance = squares / n - (total / n) ** 2
    varies = variance > _CONSTANT * squares / n
    scale = np.sqrt(np.where(varies, variance, 1.0) * np.mean(centred**2))
    correlation: FloatArray = np.zeros_like(total)
    np.divide(with_y / n, scale, out=correlation, where=varies & (scale > 0))
    return correlation


@dataclass(eq=False, repr=False, kw_only=True)
class QuadraticRanker(DesignRanker):
    """Quadratic ranking function f(x) = w'x + x'Cx, with C restricted to products that go with the labels.

    All features are kept, and the products x_j x_k, j <= k, whose correlation with the label is at least `rho` in
    absolute value. The weights of both minimise 1/2 |w|^2 + (C/m) x the sum of query losses. Scale the features first:
    the paper gives them mean 0 and deviation 1.

    Parameters
    ----------
    loss
        A loss, or its name in `boostlist.losses.registry`.
    rho
        Smallest absolute correlation, from 0 (all products) to 1. In the paper 0.15 to 0.2 was best.
    C, solver, tol, max_iter, verbose, callback
        As for `LinearRanker`.

    Attributes
    ----------
    pairs_
        A row (j, k) for each product that was kept.
    coef_
        The weights of the features, then those of the products.
    convergence_, n_iter_, n_features_in_, feature_names_in_
        As for `LinearRanker`.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 4, table 5.
    """

    _stored = ("coef_", "pairs_")

    loss: str | Loss = field(default="pairwise_logistic", kw_only=False)
    rho: float = 0.15

    def _loss(self) -> Loss:
        return as_loss(self.loss)

    def _design(self, X: Any, queries: Queries) -> ProductDesign:
        if not 0 <= self.rho <= 1:
            raise ValueError(f"rho must be between 0 and 1, got {self.rho}")
        correlation = np.triu(np.abs(product_correlations(X, queries.labels)))
        return ProductDesign(X, np.argwhere((correlation >= self.rho) & (correlation > 0)))

    def _keep(self, problem: Problem, w: FloatArray) -> None:
        assert isinstance(problem.design, ProductDesign)
        self.coef_, self.pairs_ = w, problem.design.pairs

    def predict(self, X: Any) -> FloatArray:
        """Return the score of each row; a higher score ranks further up."""
        return ProductDesign(self._read_features(X), self.pairs_).scores(self.coef_)
