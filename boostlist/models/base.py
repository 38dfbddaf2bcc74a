"""What the parametric rankers share: a loss, a solver, and a record of the fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from boostlist._typing import FloatArray
from boostlist.checks import check_choice
from boostlist.estimation import RankingEstimator
from boostlist.losses import BoundLoss, Loss, registry
from boostlist.persistence import Storable
from boostlist.queries import Queries
from boostlist.solvers import SOLVERS, Callback, Convergence, Design, Monitor, Problem, Stopped, refusal


def as_loss(loss: str | Loss) -> Loss:
    """Return a loss, given itself or its name in the registry."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in registry:
        raise ValueError(f"loss must be a loss of boostlist or one of {', '.join(registry)}, got {loss!r}")
    return registry[loss]()


class ParametricRanker(RankingEstimator, Storable):
    """Base of rankers that minimise a penalty plus (C/m) x the sum of query losses, m the number of queries."""

    C: float
    tol: float
    max_iter: int
    verbose: bool
    callback: Callback | None
    convergence_: Convergence

    @property
    def n_iter_(self) -> int:
        """Number of iterations of the fit."""
        return self.convergence_.n_iter

    def _bind(self, loss: Loss, queries: Queries) -> BoundLoss:
        """Bind a loss, after checks that concern the parameters and labels as a whole."""
        if not (np.isfinite(self.C) and self.C > 0):
            raise ValueError(f"C must be finite and > 0, got {self.C}")
        if not (self.tol >= 0 and self.max_iter >= 0):
            raise ValueError(f"tol and max_iter must not be negative, got tol={self.tol}, max_iter={self.max_iter}")
        if loss.traits.shift_invariant and len(queries.levels.label) == queries.n_queries:
            warnings.warn(
                "no query has documents of different grades, so there is no order to learn: all scores come out equal",
                UserWarning,
                stacklevel=4,
            )
        return loss.bind(queries)

    def _monitor(self) -> Monitor:
        return Monitor(self.tol, self.max_iter, bool(self.verbose), self.callback)

    def _run(self, run: Callable[[Monitor], None], monitor: Monitor, keep: Callable[[FloatArray], None]) -> None:
        """Run a solver to its end and keep its last iterate, also when the user interrupts it."""
        try:
            run(monitor)
        except Stopped as stopped:
            self._keep(monitor, stopped, keep)
        except BaseException:
            if monitor.iterations:
                self._keep(monitor, Stopped("interrupted", converged=False), keep)
            raise
        if not self.convergence_.converged:
            message = self.convergence_.message
            remedy = "Raise max_iter or tol" if message.startswith("max_iter") else "Raise tol"
            warnings.warn(
                f"{type(self).__name__} has not converged: {message}. {remedy}, lower C, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep(self, monitor: Monitor, stopped: Stopped, keep: Callable[[FloatArray], None]) -> None:
        keep(monitor.w)
        self.convergence_ = monitor.record(stopped)

    def _solve(
        self, design: Design, loss: Loss, queries: Queries, solver: str, keep: Callable[[FloatArray], None]
    ) -> None:
        """Minimise 1/2 |w|^2 + (C/m) x loss over the weights w of a design."""
        check_choice("solver", solver, tuple(SOLVERS))
        if reason := refusal(solver, loss):
            raise ValueError(reason)
        bound = self._bind(loss, queries)
        problem = Problem(design, bound, self.C / queries.n_queries)
        start = np.zeros(design.n_columns)
        self._run(lambda monitor: SOLVERS[solver](problem, start, monitor), self._monitor(), keep)
