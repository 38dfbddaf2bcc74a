"""LinearRanker: f(x) = w'x, trained to the optimum of any loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from boostlist._typing import FloatArray
from boostlist.losses import Loss
from boostlist.models.base import DesignRanker, as_loss
from boostlist.queries import Queries
from boostlist.solvers import MatrixDesign, Problem


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRanker(DesignRanker):
    """Linear ranking function f(x) = w'x, trained to the optimum of a loss.

    It minimises

        1/2 |w|^2 + (C/m) sum over queries of query weight x query loss,   m the number of queries.

    There is no intercept: it would not change a ranking. Features are taken as they are; those of very different scale
    make the penalty unfair and the solvers slow, so scale them first. A feature that is constant within every query
    gets the weight 0 under a shift-invariant loss.

    Parameters
    ----------
    loss
        A loss, or its name in `boostlist.losses.registry`.
    C
        Weight of the loss against the penalty, > 0.
    solver
        ``"newton"``: full Hessian and Cholesky factorisation, for up to some thousands of features. ``"newton-cg"``:
        truncated Newton with Hessian-vector products, for many features. Both need a convex loss with curvature.
        ``"lbfgs"``: gradients only, for every loss; for a non-convex one it finds a local optimum. ``"diagonal"``:
        coordinate-wise steps with normalised w, algorithm 2 of Olinto's thesis, and ``"diagonal-by-query"``, which goes
        by the thesis's program, for reproduction; C is ignored.
    tol
        Norm of the gradient at which the fit ends; for ``"diagonal"`` also change of the loss, and for
        ``"diagonal-by-query"`` largest change of a weight, 0.001 in the thesis.
    max_iter
        Largest number of iterations; a fit that ends for this reason warns.
    verbose
        Whether to print loss and gradient norm of each iteration.
    callback
        Called with a `boostlist.solvers.Iteration` after each iteration; a true result ends the fit.

    Attributes
    ----------
    coef_
        The weights w.
    convergence_
        Loss, gradient norm and time of every iteration; ``convergence_.plot()`` draws them. Not saved.
    n_iter_
        Number of iterations.
    position_bias_
        What a position adds to the score of a document in training, by position; None without positions.
    n_features_in_, feature_names_in_
        Number of features and, if X was a data frame, their names.

    References
    ----------
    He: Cost-sensitive learning for listwise ranking functions. 2016. Section 3.

    Examples
    --------
    >>> from boostlist import LinearRanker
    >>> from boostlist.datasets import load_sample
    >>> fold = load_sample()
    >>> ranker = LinearRanker("cs_rglist", C=10).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> ranker.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.55
    True
    """

    _stored = ("coef_",)

    loss: str | Loss = field(default="cs_rglist", kw_only=False)

    def _loss(self) -> Loss:
        return as_loss(self.loss)

    def _design(self, X: Any, queries: Queries) -> MatrixDesign:
        return MatrixDesign(X)

    def _keep(self, problem: Problem, w: FloatArray) -> None:
        self.coef_ = w

    def predict(self, X: Any) -> FloatArray:
        """Return the score w'x of each row; a higher score ranks further up."""
        return MatrixDesign(self._read_features(X)).scores(self.coef_)
