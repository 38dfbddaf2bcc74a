"""Solvers: know designs and bound losses, and nothing of ranking.

A solver is a function ``solver(problem, w, monitor)`` that reports every iterate to the monitor, which ends it.
"""

from __future__ import annotations

from collections.abc import Callable

from boostlist._typing import FloatArray
from boostlist.solvers.convergence import Callback, Convergence, Iteration, Monitor, Stopped
from boostlist.solvers.design import Design, MatrixDesign, TransformedDesign
from boostlist.solvers.diagonal import diagonal
from boostlist.solvers.lbfgs import lbfgs, minimize_lbfgs
from boostlist.solvers.newton import newton, newton_cg
from boostlist.solvers.problem import Problem

Solver = Callable[[Problem, FloatArray, Monitor], None]

SOLVERS: dict[str, Solver] = {"newton": newton, "newton-cg": newton_cg, "lbfgs": lbfgs, "diagonal": diagonal}

SECOND_ORDER = ("newton", "newton-cg", "diagonal")
"""Solvers that need a convex loss with Hessian-vector products."""

__all__ = [
    "SECOND_ORDER",
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
]
