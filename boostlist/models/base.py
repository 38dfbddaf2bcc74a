"""What the parametric rankers share: one `fit` for all, a loss, a solver, and a record of the fit.

A ranker states its problem and hands over a solver at work on it; `fit` follows that to its end, and the ranker keeps
what it needs of the last iterate. Parameters are fields of dataclasses, which give the constructor that scikit-learn
expects: every parameter by name, and nothing but assignments.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from boostlist._typing import AnyArray, FloatArray
from boostlist.checks import check_choice, check_init_score, check_number, check_whole, did_you_mean, warn
from boostlist.frames import without_qid
from boostlist.log_check import check_log
from boostlist.losses import BoundLoss, Loss, registry
from boostlist.losses.base import Shifted
from boostlist.models.positioned import PositionedDesign
from boostlist.persistence import Storable, encode
from boostlist.positions import Positions, stored_bias
from boostlist.propensities import CLIP, by_click
from boostlist.queries import Queries
from boostlist.ranking_estimator import RankingEstimator, warn_without_order
from boostlist.solvers import SOLVERS, Callback, Design, Iterates, Limits, Problem, follow, refusal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SolverName = Literal["newton", "newton-cg", "lbfgs", "diagonal", "diagonal-by-query"]


def as_loss(loss: str | Loss) -> Loss:
    """Return a loss, given itself or its name in the registry."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise TypeError(f"loss is the class {loss.__name__}; write {loss.__name__}()")
    if not isinstance(loss, str) or loss not in registry:
        hint = did_you_mean(str(loss), registry, f"its name is one of {', '.join(registry)}")
        raise ValueError(f"loss must be a loss of boostlist or its name, got {loss!r}; {hint}")
    return registry[loss]()


@dataclass(eq=False, repr=False, kw_only=True)
class ParametricRanker(RankingEstimator, Storable):
    """Base of the parametric rankers.

    A subclass has parameters as fields, the names of its fitted attributes in `_stored`, and four methods: `_problem`
    checks parameters and states what is minimised, `_iterates` sets a solver to work on it, `_limits` says when it
    ends, `_keep` sets the fitted attributes. None but the last changes the estimator.
    """

    verbose: bool = False
    callback: Callback | None = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        position: Any = None,
        propensity: ArrayLike | None = None,
        propensity_clip: float = CLIP,
        init_score: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X
            Features: an array, a CSR matrix, or a data frame, which may have a column ``qid``.
        y
            Label of each row, >= 0; or several labels by name, in a mapping or a data frame, of which the first is the
            main one.
        qid, group
            Query of each row, or the number of rows of each query; neither if X is a data frame with a column ``qid``.
        sample_weight
            Weight of each query, or of each row: then the rows of a query must have the same, since a loss here is one
            of the whole list. None means 1.
        position
            Where each row was shown, as labels of any kind, if labels are clicks: each position then has a bias, which
            is part of the optimum but not of predictions. For models whose scores are linear in their weights.
        propensity, propensity_clip
            Probability that each row was looked at, if it is known: clicks are then weighted by its inverse, and a
            list with several clicks counts as several lists with one (docs/clicks.md). The least one that counts.
        init_score
            Score of each row that the model is to improve on, that of another model say; ``predict`` returns what is
            added to it. For models that minimise a loss.
        query_weight
            The old name of `sample_weight`.
        """
        features, queries = self._read_training(X, y, qid, group, sample_weight, query_weight)
        positions = None if position is None else Positions.of(position, queries.n_documents)
        start = None if init_score is None else check_init_score(init_score, queries.n_documents)
        if propensity is not None:
            queries, rows = by_click(queries, propensity, propensity_clip)
            features = features[rows]
            positions = None if positions is None else positions.take(rows)
            start = None if start is None else start[rows]
        problem = self._problem(features, queries)
        if start is not None:
            problem = self._starting_from(problem, start)
        solved = problem if positions is None else self._positioned(problem, positions)
        solution = follow(self._iterates(solved), self._limits(), bool(self.verbose), self.callback)
        self._forget()
        self._keep_all(problem, solved, positions, solution.w)
        self.convergence_ = solution.convergence
        if solution.interruption is not None:
            raise solution.interruption
        reason = solution.convergence.reason
        if not reason.converged:
            advice = f". {reason.remedy}" if reason.remedy else ""
            warn(f"{type(self).__name__} has not converged: {solution.convergence.message}{advice}", ConvergenceWarning)
        if positions is not None and propensity is None:
            known = without_qid(X) if hasattr(X, "columns") else features
            weight = np.repeat(queries.weight, queries.sizes)
            check_log(
                self,
                known,
                queries,
                positions,
                {"verbose": False, "callback": None},
                sample_weight=weight,
                init_score=start,
            )
        return self

    def _starting_from(self, problem: Any, start: FloatArray) -> Any:
        """Return the problem of what is to be added to some scores."""
        raise ValueError(f"{type(self).__name__} takes no init_score; LinearRanker, KernelRanker and TreeRanker do")

    def _positioned(self, problem: Any, positions: Positions) -> Any:
        """Return the problem with a bias for each position."""
        raise ValueError(
            f"{type(self).__name__} takes no positions; leave them out, or use LinearRanker, KernelRanker or TreeRanker"
        )

    def _keep_all(self, problem: Any, solved: Any, positions: Positions | None, w: FloatArray) -> None:
        """Set the fitted attributes, the biases of positions among them."""
        self.position_bias_ = None
        if positions is not None:
            self.position_bias_ = positions.series(solved.design.biases(w))
            w = solved.design.weights(w)
        self._keep(problem, w)

    def _state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        attributes, arrays = super()._state()
        bias = getattr(self, "position_bias_", None)
        if bias is not None:
            attributes["position_bias_"] = encode(list(bias.items()), "position_bias_")
        return attributes, arrays

    def _restore(self, attributes: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        super()._restore({name: value for name, value in attributes.items() if name != "position_bias_"}, arrays)
        self.position_bias_ = stored_bias(attributes.get("position_bias_"))

    def _forget(self) -> None:
        """Remove what an earlier fit has left: with other parameters it may have set other attributes."""
        self._uncalibrate()
        for name in self._stored:
            if hasattr(self, name):
                delattr(self, name)

    @property
    def n_iter_(self) -> int:
        """Number of iterations of the fit."""
        return self.convergence_.n_iter

    @abstractmethod
    def _problem(self, X: Any, queries: Queries) -> Any:
        """Check the parameters, and state what is minimised for training data."""

    @abstractmethod
    def _iterates(self, problem: Any) -> Iterates:
        """Return a solver at work on a problem."""

    @abstractmethod
    def _limits(self) -> Limits:
        """Return when the solver is to end."""

    @abstractmethod
    def _keep(self, problem: Any, w: FloatArray) -> None:
        """Set the fitted attributes from the last iterate."""


@dataclass(eq=False, repr=False, kw_only=True)
class PenalisedRanker(ParametricRanker):
    """Base of rankers that minimise a penalty plus (C/m) x the sum of query losses, m the number of queries."""

    C: float = 1.0
    tol: float = 1e-8
    max_iter: int = 1000

    def _bind(self, loss: Loss, queries: Queries) -> BoundLoss:
        """Bind a loss, after checks that concern the parameters and labels as a whole."""
        check_number("C", self.C, above=True)
        check_number("tol", self.tol)
        check_whole("max_iter", self.max_iter, least=0)
        if not loss.traits.conservative:
            raise ValueError(
                f"{loss!r} gives the gradient of no fixed function, so there is nothing that {type(self).__name__} "
                "could minimise; choose another loss, or train trees on this one with TreeRanker"
            )
        warn_without_order(loss, queries)
        return loss.bind(queries)

    def _starting_from(self, problem: Any, start: FloatArray) -> Any:
        return replace(problem, bound=Shifted(problem.bound, start))

    def _limits(self) -> Limits:
        return Limits(self.tol, self.max_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class DesignRanker(PenalisedRanker):
    """Base of rankers whose scores are linear in the weights w of a design: 1/2 |w|^2 + (C/m) x loss(Phi w)."""

    # |w| under solver="diagonal-by-query".
    _norm: ClassVar[float] = 1.0

    solver: SolverName = "newton"

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss."""

    @abstractmethod
    def _design(self, X: Any, queries: Queries) -> Design:
        """Return the design of training data."""

    def _problem(self, X: Any, queries: Queries) -> Problem:
        check_choice("solver", self.solver, tuple(SOLVERS))
        loss = self._loss()
        bound = self._bind(loss, queries)
        if reason := refusal(self.solver, loss):
            raise ValueError(reason)
        return Problem(self._design(X, queries), bound, self.C / queries.n_queries, self._norm)

    def _starting_from(self, problem: Problem, start: FloatArray) -> Problem:
        self._refuse_if_normalised("init_score")
        moved: Problem = super()._starting_from(problem, start)
        return moved

    def _refuse_if_normalised(self, what: str) -> None:
        """Raise a ValueError if the solver knows weights up to their length only."""
        if not SOLVERS[self.solver].penalised:
            raise ValueError(f"solver={self.solver!r} takes no {what}; newton, newton-cg and lbfgs do")

    def _positioned(self, problem: Problem, positions: Positions) -> Problem:
        self._refuse_if_normalised("positions")
        return replace(problem, design=PositionedDesign(problem.design, positions.codes, len(positions.labels)))

    def _iterates(self, problem: Problem) -> Iterates:
        return SOLVERS[self.solver].iterates(problem, np.zeros(problem.design.n_columns))
