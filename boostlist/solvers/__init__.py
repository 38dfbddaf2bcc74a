"""Solvers: know designs and bound losses, and nothing of ranking.

A solver is a generator of iterates, ``solver(problem, w)``, that returns the `Reason` why it cannot go on; `follow`
runs it. What it needs of a loss is declared in `SOLVERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from boostlist._typing import FloatArray
from boostlist.losses import Loss
from boostlist.solvers.convergence import Callback, Convergence, Iteration, Reason
from boostlist.solvers.design import Design, MatrixDesign, TransformedDesign
from boostlist.solvers.diagonal import diagonal, diagonal_by_query
from boostlist.solvers.following import Iterate, Iterates, Limits, Solution, follow
from boostlist.solvers.lbfgs import lbfgs, minimize_lbfgs
from boostlist.solvers.newton import newton, newton_cg
from boostlist.solvers.problem import Problem


@dataclass(frozen=True)
class Solver:
    """A solver and what it needs of a loss.

    Attributes
    ----------
    iterates
        The generator.
    convex
        Whether it needs a convex loss.
    hessp
        Whether it needs products of the loss's Hessian with vectors.
    penalised
        Whether it minimises the penalty 1/2 |w|^2 too; else it steps along single coordinates, and these count.
    """

    iterates: Callable[[Problem, FloatArray], Iterates]
    convex: bool = False
    hessp: bool = False
    penalised: bool = True


SOLVERS: dict[str, Solver] = {
    "newton": Solver(newton, convex=True, hessp=True),
    "newton-cg": Solver(newton_cg, convex=True, hessp=True),
    "lbfgs": Solver(lbfgs),
    "diagonal": Solver(diagonal, convex=True, hessp=True, penalised=False),
    "diagonal-by-query": Solver(diagonal_by_query, convex=True, hessp=True, penalised=False),
}


def refusal(solver: str, loss: Loss) -> str | None:
    """Return why a solver cannot minimise a loss, by what both declare; None if it can."""
    needs = SOLVERS[solver]
    if needs.convex and not loss.traits.convex:
        return (
            f'solver="{solver}" needs a convex loss, and {loss!r} is not: where its Hessian is indefinite '
            'a Newton step may lead uphill. Use solver="lbfgs"'
        )
    if needs.hessp and not loss.traits.hessp:
        return f'solver="{solver}" needs curvature: {loss!r} offers no Hessian-vector product. Use solver="lbfgs"'
    return None


__all__ = [
    "SOLVERS",
    "Callback",
    "Convergence",
    "Design",
    "Iterate",
    "Iterates",
    "Iteration",
    "Limits",
    "MatrixDesign",
    "Problem",
    "Reason",
    "Solution",
    "Solver",
    "TransformedDesign",
    "diagonal",
    "diagonal_by_query",
    "follow",
    "lbfgs",
    "minimize_lbfgs",
    "newton",
    "newton_cg",
    "refusal",
]
