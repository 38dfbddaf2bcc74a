r"""RankSVM: the squared hinge over all pairs of different grade, without ever building the pairs.

    1/2 |w|^2 + (C/m) sum over queries sum_{i, j: y_i > y_j} (1 - (f_i - f_j))_+^2

Joachims, *Optimizing search engines using clickthrough data* (2002), with the squared hinge of Chapelle and Keerthi,
*Efficient algorithms for ranking with SVMs* (2010), whose truncated Newton method it is trained by. With L and U sums
over the violating pairs below and above a document, as `boostlist.losses.pairwise_hinge` has them,

    gradient = 2 [ U(1) - L(1) + (L(1) + U(1)) f - L(f) - U(f) ],   H v = 2 [ (L(1) + U(1)) v - L(v) - U(v) ]

each in O(n log n) for a query of n documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from boostlist._typing import FloatArray
from boostlist.losses.base import Loss, Traits
from boostlist.losses.pairwise import Pairwise
from boostlist.losses.pairwise_hinge import centred, violation_sums, workspace
from boostlist.losses.pairwise_loops import gather
from boostlist.losses.weights import Normalizer, PairWeights
from boostlist.models.base import SolverName
from boostlist.models.kernel import KernelMachine
from boostlist.models.kernels import KernelFunction, KernelName
from boostlist.parallel import compiled, longest
from boostlist.queries import Queries
from boostlist.solvers import Design, MatrixDesign, Problem


@compiled
def _unit_margin(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, need, value, gradient, diag, kappa, alpha, beta, order, level_start, document, A, B
):
    x, L, U, total = np.empty((4, longest(lo, hi, start)))
    space = workspace(lo, hi, start, level_start)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        gradient_q, diag_q = gradient[rows], diag[rows]
        if kappa[q] == 0:
            gradient_q[:] = 0.0
            diag_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        order_q = order[rows]
        centred(f[rows], order_q, x)
        violation_sums(x, x, 1.0, first, last, alpha, beta, document, A, B, space, L, U, total)
        scale = 2 * weight[q] * kappa[q]
        loss = 0.0
        for i in range(order_q.size):
            count, lead = L[i] + U[i], U[i] - L[i]
            own = count * x[i] - total[i]
            gradient_q[order_q[i]] = scale * (lead + own)
            diag_q[order_q[i]] = scale * count
            # (1 - d)^2 = 1 - 2 d + d^2, summed over the pairs from the side of their documents
            loss += 0.5 * count + 2 * lead * x[i] + x[i] * own
        value[q] = kappa[q] * max(loss, 0.0)


@compiled
def _unit_margin_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, kappa, alpha, beta, order, level_start, document, A, B
):
    x, z, L, U, total = np.empty((5, longest(lo, hi, start)))
    space = workspace(lo, hi, start, level_start)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        out_q = out[rows]
        if kappa[q] == 0:
            out_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        order_q = order[rows]
        centred(f[rows], order_q, x)
        gather(v[rows], order_q, z)
        violation_sums(x, z, 1.0, first, last, alpha, beta, document, A, B, space, L, U, total)
        for i in range(order_q.size):
            out_q[order_q[i]] = 2 * weight[q] * kappa[q] * ((L[i] + U[i]) * z[i] - total[i])


@dataclass(frozen=True, kw_only=True)
class UnitMarginHinge(Pairwise):
    """Squared hinge with the margin 1 for every pair: (1 - (f_i - f_j))_+^2.

    Parameters
    ----------
    weights, normalize, gain, grades
        As for `boostlist.losses.Pairwise`; the defaults weigh all pairs alike.
    """

    weights: PairWeights = "uniform"
    normalize: Normalizer = None

    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, cost="n log n")
    loop = staticmethod(_unit_margin)
    hessp_loop = staticmethod(_unit_margin_hessp)


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
