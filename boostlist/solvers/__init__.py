"""Solvers: know designs and bound losses, and nothing of ranking.

A solver is a function ``solver(problem, w, monitor)`` that reports every iterate to the monitor, which ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from boostlist._typing import FloatArray
from boostlist.solvers.convergence import Callback, Convergence, Iteration, Monitor, Stopped
from boostlist.solvers.design import Design, MatrixDesign, TransformedDesign
from boostlist.solvers.diagonal import diagonal
from boostlist.solvers.lbfgs import lbfgs, minimize_lbfgs
from boostlist.solvers.newton import newton, newton_cg
from boostlist.solvers.problem import Problem

if TYPE_CHECKING:
    from boostlist.losses import Loss

Solver = Callable[[Problem, FloatArray, Monitor], None]

SOLVERS: dict[str, Solver] = {"newton": newton, "newton-cg": newton_cg, "lbfgs": lbfgs, "diagonal": diagonal}

_SECOND_ORDER = ("newton", "newton-cg", "diagonal")
"""Solvers that need a convex loss with Hessian-vector products."""


def refusal(solver: str, loss: Loss) -> str | None:
    """Return why a solver cannot minimise a loss, by what the loss declares; None if it can."""
    if solver not in _SECOND_ORDER:
        return None
    if not loss.traits.convex:
        return (
            f'solver="{solver}" needs a convex loss, and {loss!r} is not: where its Hessian is indefinite '
            'a Newton step may lead uphill. Use solver="lbfgs"'
        )
    if not loss.traits.hessp:
        return f'solver="{solver}" needs curvature: {loss!r} offers no Hessian-vector product. Use solver="lbfgs"'
    return None


__all__ = [
    "SOLVERS",
    "Callback",
    "Convergence",
    "Design",
    "Iteration",
    "MatrixDesign",
    "Monitor",
    "Problem",
    "Solver",
    "Stopped",
    "TransformedDesign",
    "diagonal",
    "lbfgs",
    "minimize_lbfgs",
    "newton",
    "newton_cg",
    "refusal",
]
