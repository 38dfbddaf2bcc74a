r"""How members are added: each in units of its spread, with weights.

Scores of different losses have different scales. The spread of a member is

    s = (sum_q u_q var_q / sum_q u_q)^(1/2),    var_q the variance of its scores within query q, u_q the query's weight

over queries of at least two documents, since only differences within a query order it. The ensemble's score is

    f(x) = sum_k w_k f_k(x) / s_k,      w_k >= 0,  sum_k w_k = 1.

Fitted weights minimise, over w >= 0,

    F(w) = c sum_q u_q loss_q(Z w) + 1/2 w'Mw,      M = I - (1 - e) 11'/K

where Z has the members' scores in units of spread on data that they were not trained on. M w is all but the deviation of
w from its own mean: the penalty draws the weights towards one another, whatever their common size, which the loss
chooses. That size then drops out.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from boostlist._typing import FloatArray, IntArray
from boostlist.losses import BoundLoss, CsListMLE
from boostlist.queries import Queries
from boostlist.solvers import Limits, MatrixDesign, Problem, TransformedDesign, follow, newton

# Penalty on the common size of the weights: next to none, but the minimum exists where one member is always right.
_SIZE_PENALTY = 1e-3
_TOL = 1e-9
_MAX_ITER = 200
# A spread below this part of the scores' size is rounding.
_ROUNDING = 1e-12


def spread(scores: FloatArray, queries: Queries) -> float:
    """Return the spread of scores within queries; 0 if they differ by no more than rounding."""
    begin, sizes = queries.start[:-1], queries.sizes
    counted = (sizes > 1) & (queries.weight > 0)
    if not counted.any():
        return 0.0
    mean = np.add.reduceat(scores, begin) / sizes
    variance = np.add.reduceat((scores - np.repeat(mean, sizes)) ** 2, begin) / sizes
    found = float(np.sqrt(np.average(variance[counted], weights=queries.weight[counted])))
    return found if found > _ROUNDING * float(np.abs(scores).max()) else 0.0


def fitted_weights(Z: FloatArray, queries: Queries, strength: float) -> FloatArray:
    """Return non-negative weights that sum to 1, by Newton's method on the members' scores.

    An active set: Newton's method among the members that have a weight; on the way to its optimum the first weight that
    falls to 0 leaves, and at the optimum the member that would gain most by a weight enters.

    Parameters
    ----------
    Z
        Scores in units of their spread, a column for each member.
    queries
        The lists of the rows; those of weight 0 take no part.
    strength
        Weight c of the loss of a query against the penalty: the larger, the further from uniform.
    """
    problem = _Weighing(Z, queries, strength)
    n = Z.shape[1]
    w = np.full(n, 1 / n)
    free = np.ones(n, bool)
    for _ in range(10 * n):
        optimum = problem.minimum(np.flatnonzero(free), w)
        falling = free & (optimum <= 0)
        if falling.any():
            step = np.min(w[falling] / (w[falling] - optimum[falling]))
            w = np.maximum(w + step * (optimum - w), 0)
            free &= ~(falling & (w <= _TOL * w.max()))
            w[~free] = 0
            continue
        w = optimum
        slope = np.where(free, 0, problem.gradient(w))
        if slope.min() >= -_TOL * (1 + np.abs(slope).max()):
            break
        free[np.argmin(slope)] = True
    return w / w.sum()


class _Weighing:
    """F of the module's head, and its minimum among some of the members."""

    def __init__(self, Z: FloatArray, queries: Queries, strength: float) -> None:
        counted = queries.weight > 0
        rows = np.repeat(counted, queries.sizes)
        kept = Queries.from_sizes(queries.labels[rows], queries.sizes[counted], queries.weight[counted])
        self.Z = np.ascontiguousarray(Z[rows])
        self.bound: BoundLoss = CsListMLE().bind(kept)
        self.c = strength
        n = Z.shape[1]
        self.M = np.eye(n) - (1 - _SIZE_PENALTY) / n

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient of F."""
        _, slope = self.bound.value_gradient(self.Z @ w)
        result: FloatArray = self.c * (self.Z.T @ slope) + self.M @ w
        return result

    def minimum(self, free: IntArray, start: FloatArray) -> FloatArray:
        """Return the minimum where all other weights are 0.

        With M = LL' among the free and v = L'w, F is 1/2 |v|^2 + c loss(Z L'^-1 v): what the solvers minimise.
        """
        L = cholesky(self.M[np.ix_(free, free)], lower=True)
        T = solve_triangular(L, np.eye(len(free)), lower=True, trans="T")
        design = TransformedDesign(MatrixDesign(np.ascontiguousarray(self.Z[:, free])), T)
        iterates = newton(Problem(design, self.bound, self.c), L.T @ start[free])
        w = np.zeros(len(start))
        w[free] = T @ follow(iterates, Limits(_TOL, _MAX_ITER)).w
        return w
