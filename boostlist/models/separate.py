r"""BilinearRanker and DistanceRanker: queries and documents with features of their own.

Tran, Phung, Venkatesh, *Learning Rank Functionals: An Empirical Study* (2011), eq. 2 and 3. With q the features of the
query, z those of the document, and matrices A and B that take both to R^d,

    bilinear  f(q, z) = sigma(A q)'B z        distance  f(q, z) = -|A q - B z|^2 / tau

where sigma is the logistic function or tanh, entry by entry. With u = A q, v = B z and g = dl/df,

    bilinear  dl/du = g v o sigma'(u),  dl/dv = g sigma(u)        distance  dl/du = -2 g (u - v) / tau = -dl/dv

and dl/dA, dl/dB are the sums of (dl/du) q' and (dl/dv) z' over all documents. What is minimised,

    1/2 (|A|^2 + |B|^2) + (C/m) sum of query losses,

is not convex; L-BFGS finds a local optimum that depends on the seed.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from boostlist._typing import FloatArray
from boostlist.checks import check_choice, check_number, check_whole
from boostlist.losses import BoundLoss, Loss
from boostlist.models.base import PenalisedRanker, as_loss
from boostlist.models.kernels import row_ranges
from boostlist.queries import Queries
from boostlist.solvers import Iterates, MatrixDesign, minimize_lbfgs

Activation = Literal["sigmoid", "tanh"]


@dataclass(eq=False, repr=False, kw_only=True)
class SeparateRanker(PenalisedRanker):
    """What both share: the split of the columns, the matrices A and B, and training by L-BFGS."""

    _stored = ("A_", "B_")

    loss: str | Loss = field(default="multiclass_logistic", kw_only=False)
    n_query_features: int | None = None
    d: int = 10
    C: float = 100.0
    tol: float = 1e-3
    random_state: int | None = None

    @abstractmethod
    def _scores(self, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return f for the rows u of U and v of V."""

    @abstractmethod
    def _slopes(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return df/du and df/dv for each row."""

    @abstractmethod
    def _check(self) -> None:
        """Check the parameters of the functional."""

    def _problem(self, X: Any, queries: Queries) -> _Problem:
        self._check()
        check_whole("d", self.d, least=1)
        Q, Z = self._split(X)
        return _Problem(self, Q, Z, self._bind(as_loss(self.loss), queries), self.C / queries.n_queries)

    def _iterates(self, problem: _Problem) -> Iterates:
        rng = np.random.default_rng(self.random_state)
        # Small enough for the penalty not to rule the first steps, yet away from the saddle at 0.
        start = 0.1 * rng.standard_normal((problem.Q.n_columns + problem.Z.n_columns) * self.d)
        return minimize_lbfgs(problem.value_gradient, start)

    def _keep(self, problem: _Problem, w: FloatArray) -> None:
        A, B = problem.matrices(w)
        self.A_, self.B_ = A.T.copy(), B.T.copy()

    def _split(self, X: Any) -> tuple[MatrixDesign, MatrixDesign]:
        n, columns = self.n_query_features, X.shape[1]
        if n is None or not 0 < n < columns:
            raise ValueError(
                f"n_query_features must say how many of the {columns} columns of X, from the first on, are features of "
                f"the query; the others are the document's. Got {n}"
            )
        return MatrixDesign(X[:, :n]), MatrixDesign(X[:, n:])

    def predict(self, X: Any) -> FloatArray:
        """Return the score of each row; a higher score ranks further up."""
        Q, Z = self._split(self._read_features(X))
        return self._scores(_product(Q, self.A_.T), _product(Z, self.B_.T))


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is minimised over w, the entries of A' and B'."""

    ranker: SeparateRanker
    Q: MatrixDesign
    Z: MatrixDesign
    bound: BoundLoss
    c: float

    def matrices(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A' and B'."""
        A, B = np.split(w.reshape(-1, self.ranker.d), [self.Q.n_columns])
        return A, B

    def value_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return 1/2 |w|^2 + c x the loss, and its gradient."""
        A, B = self.matrices(w)
        U, V = _product(self.Q, A), _product(self.Z, B)
        value, slope = self.bound.value_gradient(self.ranker._scores(U, V))
        dU, dV = self.ranker._slopes(U, V)
        dA, dB = _back(self.Q, slope[:, None] * dU), _back(self.Z, slope[:, None] * dV)
        return 0.5 * float(w @ w) + self.c * value, w + self.c * np.concatenate([dA.ravel(), dB.ravel()])


def _product(design: MatrixDesign, M: FloatArray) -> FloatArray:
    """Return X M, row blocks in float64 where X is float32."""
    if design.X.dtype == np.float64:
        return np.asarray(design.X @ M)
    out = np.empty((design.n_rows, M.shape[1]))
    for lo, hi in row_ranges(design.n_rows, design.n_columns):
        out[lo:hi] = design.X[lo:hi].astype(np.float64) @ M
    return out


def _back(design: MatrixDesign, V: FloatArray) -> FloatArray:
    """Return X'V, row blocks in float64 where X is float32."""
    if design.X.dtype == np.float64:
        return np.asarray(design.X.T @ V)
    out = np.zeros((design.n_columns, V.shape[1]))
    for lo, hi in row_ranges(design.n_rows, design.n_columns):
        out += design.X[lo:hi].astype(np.float64).T @ V[lo:hi]
    return out


@dataclass(eq=False, repr=False, kw_only=True)
class BilinearRanker(SeparateRanker):
    """Bilinear ranking function f(q, z) = sigma(A q)'B z of query features q and document features z.

    Every row of X holds the features of its query in the first columns, then those of the document; both may be sparse.
    A and B minimise 1/2 (|A|^2 + |B|^2) + (C/m) x the sum of query losses, m the number of queries, up to a local
    optimum.

    Parameters
    ----------
    loss
        A loss, or its name in `boostlist.losses.registry`.
    n_query_features
        Number of columns of X, from the first on, that are features of the query.
    d
        Number of rows of A and B: the dimension of the common space.
    activation
        sigma: ``"sigmoid"`` for the logistic function, or ``"tanh"``.
    C
        Weight of the loss against the penalty, > 0. If it is too small, A = B = 0 is the optimum.
    tol
        Norm of the gradient at which the fit ends.
    max_iter, verbose, callback
        As for `LinearRanker`.
    random_state
        Seed of the starting point.

    Attributes
    ----------
    A_, B_
        The matrices, with d rows.
    convergence_, n_iter_, n_features_in_, feature_names_in_
        As for `LinearRanker`.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 2, table 4.
    """

    activation: Activation = "sigmoid"

    def _check(self) -> None:
        check_choice("activation", self.activation, Activation)

    def _activated(self, U: FloatArray) -> FloatArray:
        return np.asarray(expit(U)) if self.activation == "sigmoid" else np.tanh(U)

    def _scores(self, U: FloatArray, V: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->i", self._activated(U), V))

    def _slopes(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        S = self._activated(U)
        return V * (S * (1 - S) if self.activation == "sigmoid" else 1 - S * S), S


@dataclass(eq=False, repr=False, kw_only=True)
class DistanceRanker(SeparateRanker):
    """Ranking function f(q, z) = -|A q - B z|^2 / tau of query features q and document features z.

    Documents rank by their distance from the query in a common space. Otherwise as `BilinearRanker`.

    Parameters
    ----------
    loss, n_query_features, d, C, tol, max_iter, verbose, callback, random_state
        As for `BilinearRanker`.
    tau
        Scale of the squared distance, > 0.

    Attributes
    ----------
    A_, B_
        The matrices, with d rows.
    convergence_, n_iter_, n_features_in_, feature_names_in_
        As for `LinearRanker`.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 3, table 4.
    """

    tau: float = 1.0

    def _check(self) -> None:
        check_number("tau", self.tau, above=True)

    def _scores(self, U: FloatArray, V: FloatArray) -> FloatArray:
        E = U - V
        return np.asarray(-np.einsum("ij,ij->i", E, E) / self.tau)

    def _slopes(self, U: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        E = (2 / self.tau) * (U - V)
        return -E, E
