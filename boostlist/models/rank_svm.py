r"""RankSVM: the squared hinge over all pairs of different grade, or the hinge, without ever building the pairs.

    1/2 |w|^2 + (C/m) sum over queries sum_{i, j: y_i > y_j} (1 - (f_i - f_j))_+^p,   p = 2 or 1

Joachims, *Optimizing search engines using clickthrough data* (2002), p = 1, and with the squared hinge Chapelle and
Keerthi, *Efficient algorithms for ranking with SVMs* (2010), whose truncated Newton method it is trained by. Gradient
and Hessian-vector product are those of `boostlist.losses.pairwise_hinge`, O(n log n) for a query of n documents.

The hinge itself has no curvature. It is rounded off over a width that shrinks until the minimum of what is rounded off
is that of the hinge but for 1e-7 of its value (`boostlist.losses.smoothed_hinge`): Newton's method goes on where the
wider one has ended. The slopes of the rounded hinge make a point of the dual problem, so that at every iterate

    gap = C/m x kink + 1/2 |gradient of the rounded problem|^2

bounds how far the value lies above the minimum; the record has sqrt(2 gap) in place of the gradient's norm, which for a
smooth function bounds it in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from boostlist._typing import FloatArray
from boostlist.checks import check_choice
from boostlist.losses.base import Loss
from boostlist.losses.pairwise import PairwiseHinge, UnitMarginHinge
from boostlist.losses.smoothed_hinge import BoundSmoothedHinge, SmoothedHinge
from boostlist.models.base import SolverName
from boostlist.models.kernel import KernelMachine
from boostlist.models.kernels import KernelFunction, KernelName
from boostlist.queries import Queries
from boostlist.solvers import SOLVERS, Design, Iterate, Iterates, MatrixDesign, Problem, Reason

# Widths over which the hinge is rounded off: the first, how much narrower each is, and the last before rounding wins.
_WIDEST, _NARROWER, _NARROWEST = 0.5, 0.25, 1e-7
# A distance to the minimum below this part of the value is none; at the narrowest width this one has to do.
_EXACT, _NEARLY = 1e-7, 1e-6
# A width has done its part when the rest of the gradient is this part of the gap.
_ENOUGH = 0.1


@dataclass(eq=False, repr=False, kw_only=True)
class RankSVM(KernelMachine):
    """Support vector machine for ranking: squared hinge or hinge over pairs, linear or with a kernel.

    It minimises 1/2 |w|^2 + (C/m) x the sum over queries and pairs y_i > y_j of (1 - (f_i - f_j))_+^2, m the number of
    queries, by truncated Newton steps of O(n log n) a query. Pairs are never built.

    Parameters
    ----------
    C
        Weight of the loss against the penalty, > 0.
    loss
        ``"squared_hinge"``, or ``"hinge"`` for (1 - (f_i - f_j))_+ as in Joachims' SVMlight: trained until the value is
        within 1e-7 of the minimum, by a bound on the distance that ``convergence_`` has.
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

    loss: Literal["squared_hinge", "hinge"] = "squared_hinge"
    normalize: Literal["pairs", "documents"] | None = None
    kernel: Literal["linear"] | KernelName | KernelFunction = "linear"
    solver: SolverName = "newton-cg"

    def _loss(self) -> Loss:
        check_choice("loss", self.loss, ("squared_hinge", "hinge"))
        if self.loss == "squared_hinge":
            return UnitMarginHinge(normalize=self.normalize)
        check_choice("solver of the hinge", self.solver, ("newton", "newton-cg"))
        return SmoothedHinge(hinge=PairwiseHinge(weights="uniform", normalize=self.normalize), width=_WIDEST)

    def _iterates(self, problem: Problem) -> Iterates:
        return super()._iterates(problem) if self.loss == "squared_hinge" else self._narrowing(problem)

    def _starting_from(self, problem: Problem, start: FloatArray) -> Problem:
        if self.loss == "hinge":
            raise ValueError('RankSVM(loss="hinge") takes no init_score; loss="squared_hinge" does')
        moved: Problem = super()._starting_from(problem, start)
        return moved

    def _narrowing(self, problem: Problem) -> Iterates:
        """Minimise the hinge by Newton's method on hinges that are rounded off less and less."""
        design, c, bound = problem.design, problem.c, problem.bound
        assert isinstance(bound, BoundSmoothedHinge)
        hinge, w = bound.loss.hinge.bind(bound.queries), np.zeros(design.n_columns)
        value = lowest = 0.0
        while bound.loss.width > _NARROWEST:
            for found in SOLVERS[self.solver].iterates(replace(problem, bound=bound), w):
                w = found.w
                f = design.scores(w)
                value = 0.5 * float(w @ w) + c * hinge.value(f)
                kink, rest = c * bound.kink(f), 0.5 * found.gradient_norm**2
                lowest = max(lowest, value - kink - rest)
                yield Iterate(w, value, float(np.sqrt(2 * (kink + rest))))
                if value - lowest <= _EXACT * value:
                    return Reason.KINK
                if rest <= _ENOUGH * kink:
                    break
            bound = replace(bound.loss, width=_NARROWER * bound.loss.width).bind(bound.queries)
        return Reason.KINK if value - lowest <= _NEARLY * value else Reason.NO_STEP

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
