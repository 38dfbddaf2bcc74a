r"""RankSVM: the squared hinge over all pairs of different grade, without ever building the pairs.

    1/2 |w|^2 + (C/m) sum over queries sum_{i, j: y_i > y_j} (1 - (f_i - f_j))_+^2

Joachims, *Optimizing search engines using clickthrough data* (2002), with the squared hinge of Chapelle and Keerthi,
*Efficient algorithms for ranking with SVMs* (2010), whose truncated Newton method it is trained by. Gradient and
Hessian-vector product are those of `boostlist.losses.pairwise_hinge`, each in O(n log n) for a query of n documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from boostlist._typing import FloatArray
from boostlist.losses.base import Loss
from boostlist.losses.pairwise import UnitMarginHinge
from boostlist.models.base import SolverName
from boostlist.models.kernel import KernelMachine
from boostlist.models.kernels import KernelFunction, KernelName
from boostlist.queries import Queries
from boostlist.solvers import Design, MatrixDesign, Problem


@dataclass(eq=False, repr=False, kw_only=True)
class RankSVM(KernelMachine):
    """Support vector machine for ranking: squared hinge over pairs, linear or with a kernel.

    It minimises 1/2 |w|^2 + (C/m) x the sum over queries and pairs y_i > y_j of (1 - (f_i - f_j))_+^2, m the number of
    queries, by truncated Newton steps of O(n log n) a query. Pairs are never built.

    Parameters
    ----------
    C
        Weight of the loss against the penalty, > 0.
    normalize
        Divide a query's loss by its number of ``"pairs"`` or ``"documents"``, so that long lists do not outweigh short
        ones; or None.
    kernel
        ``"linear"``, or as for `KernelRanker`.
    setting, s, gamma, a, b, degree, n_landmarks, landmarks, random_state
        As for `KernelRanker`; without effect on the linear machine.
    solver, tol, max_iter, verbose, callback
        As for `LinearRanker`.

    Attributes
    ----------
    coef_
        The weights w of the linear machine.
    dual_coef_, basis_, kernel_parameters_
        As for `KernelRanker`, for any other.
    convergence_, n_iter_, n_features_in_, feature_names_in_
        As for `LinearRanker`.

    References
    ----------
    Joachims: Optimizing search engines using clickthrough data. KDD 2002.
    Chapelle, Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval 13, 2010.

    Examples
    --------
    >>> from boostlist import RankSVM
    >>> RankSVM().fit([[0.0], [1.0], [2.0]], [0, 1, 2], group=[3]).coef_.round(3)
    array([0.8])
    """

    _stored = ("coef_", "dual_coef_", "basis_", "_parameters")

    normalize: Literal["pairs", "documents"] | None = None
    kernel: Literal["linear"] | KernelName | KernelFunction = "linear"
    solver: SolverName = "newton-cg"

    def _loss(self) -> Loss:
        return UnitMarginHinge(normalize=self.normalize)

    def _design(self, X: Any, queries: Queries) -> Design:
        return MatrixDesign(X) if self.kernel == "linear" else super()._design(X, queries)

    def _keep(self, problem: Problem, w: FloatArray) -> None:
        if self.kernel == "linear":
            self.coef_ = w
        else:
            super()._keep(problem, w)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_" if self.kernel == "linear" else "dual_coef_")

    def predict(self, X: Any) -> FloatArray:
        """Return the score of each row; a higher score ranks further up."""
        if self.kernel == "linear":
            return MatrixDesign(self._read_features(X)).scores(self.coef_)
        return super().predict(X)
