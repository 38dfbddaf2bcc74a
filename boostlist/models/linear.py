"""LinearRanker: f(x) = w'x, trained to the optimum of any loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from boostlist._typing import FloatArray
from boostlist.models.base import ParametricRanker, as_loss
from boostlist.solvers import Callback, MatrixDesign

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist.losses import Loss

SolverName = Literal["newton", "newton-cg", "lbfgs", "diagonal"]


class LinearRanker(ParametricRanker):
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
        coordinate-wise steps with normalised w, algorithm 2 of Olinto's thesis, for reproduction; C is ignored.
    tol
        Norm of the gradient at which the fit ends; for ``"diagonal"``, change of the loss.
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
    >>> ranker.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.7
    True
    """

    _stored = ("coef_",)

    def __init__(
        self,
        loss: str | Loss = "cs_rglist",
        *,
        C: float = 1.0,
        solver: SolverName = "newton",
        tol: float = 1e-8,
        max_iter: int = 1000,
        verbose: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.callback = callback

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X
            Features: an array, a CSR matrix, or a data frame, which may have a column ``qid``.
        y
            Label of each row, >= 0.
        qid, group
            Query of each row, or the number of rows of each query; neither if X is a data frame with a column ``qid``.
        query_weight
            Weight of each query; None means 1.
        """
        features, queries = self._read_training(X, y, qid, group, query_weight)
        self._solve(MatrixDesign(features), as_loss(self.loss), queries, self.solver, self._keep_coef)
        return self

    def _keep_coef(self, w: FloatArray) -> None:
        self.coef_ = w

    def predict(self, X: Any) -> FloatArray:
        """Return the score w'x of each row; a higher score ranks further up."""
        return MatrixDesign(self._read_features(X)).scores(self.coef_)
