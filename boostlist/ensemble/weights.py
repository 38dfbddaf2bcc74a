r"""How members are added: each in units of its spread, with weights.

Scores of different losses have different scales. The spread of a member is

    s = (sum_q u_q var_q / sum_q u_q)^(1/2),    var_q the variance of its scores within query q, u_q the query's weight

over queries of at least two documents, since only differences within a query order it. The ensemble's score is

    f(x) = sum_k w_k f_k(x) / s_k,      w_k >= 0,  sum_k w_k = 1.

Fitted weights minimise a listwise loss, ListMLE, on data that the members were not trained on. With Z the members'
scores there in units of spread, t the size at which the loss of t times their mean is least, and K members,

    F(v) = sum_q u_q loss_q(Z w) + 1/2 |v|^2,      w = (t/K) (1 + v) >= 0.

The penalty draws the weights towards one another. It says what is expected of them before any query is seen, namely
that they differ from 1/K by about that much; with more queries it matters less. In the end w is divided by its sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from boostlist._typing import FloatArray
from boostlist.losses import BoundLoss, ListMLE
from boostlist.losses.base import Shifted
from boostlist.queries import Queries
from boostlist.solvers import Limits, MatrixDesign, Problem, follow, newton

# Penalty on the size t: next to none, but there is a minimum where the members are always right.
_SIZE_PENALTY = 1e-3
_TOL = 1e-9
_LIMITS = Limits(_TOL, 200)
# A spread below this part of the scores' size is rounding.
_ROUNDING = 1e-12


class Moments(NamedTuple):
    """What a spread is made of; those of parts of the data are joined by `of_all`.

    Attributes
    ----------
    variance, weight
        Sums over queries of at least two documents: of weight x variance, and of weights.
    largest
        Largest size of a score.
    """

    variance: float
    weight: float
    largest: float

    @classmethod
    def of(cls, scores: FloatArray, queries: Queries) -> Moments:
        """Return the moments of scores."""
        begin, sizes = queries.start[:-1], queries.sizes
        mean = np.add.reduceat(scores, begin) / sizes
        variance = np.add.reduceat((scores - np.repeat(mean, sizes)) ** 2, begin) / sizes
        weight = np.where(sizes > 1, queries.weight, 0)
        return cls(float(np.sum(weight * variance)), float(weight.sum()), float(np.abs(scores).max()))

    @classmethod
    def of_all(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of all parts."""
        variance, weight, largest = zip(*parts, strict=True)
        return cls(sum(variance), sum(weight), max(largest))

    @property
    def spread(self) -> float:
        """The spread; 0 if scores differ by no more than rounding."""
        found = float(np.sqrt(self.variance / self.weight)) if self.weight else 0.0
        return found if found > _ROUNDING * self.largest else 0.0


def spread(scores: FloatArray, queries: Queries) -> float:
    """Return the spread of scores within queries; 0 if they differ by no more than rounding."""
    return Moments.of(scores, queries).spread


def fitted_weights(Z: FloatArray, queries: Queries) -> FloatArray:
    """Return non-negative weights that sum to 1.

    Parameters
    ----------
    Z
        Scores in units of their spread, a column for each member.
    queries
        The lists of the rows; those of weight 0, and of documents that are all of one label, take no part.
    """
    counted = queries.ordered & (queries.weight > 0)
    if not counted.any():
        return np.full(Z.shape[1], 1 / Z.shape[1])
    rows = np.repeat(counted, queries.sizes)
    bound = ListMLE().bind(Queries.from_sizes(queries.labels[rows], queries.sizes[counted], queries.weight[counted]))
    mean = Z[rows].mean(axis=1, keepdims=True)
    w = _non_negative(Z[rows] * (_best_size(mean, bound) / Z.shape[1]), bound)
    # Where every member is worse than none, there is nothing to choose between them.
    return w / w.sum() if w.any() else np.full(len(w), 1 / len(w))


def _best_size(score: FloatArray, bound: BoundLoss) -> float:
    """Return the factor on a score at which the loss is least, 1 if that is none that is positive."""
    problem = Problem(MatrixDesign(score), bound, 1 / _SIZE_PENALTY)
    size = float(follow(newton(problem, np.zeros(1)), _LIMITS).w[0])
    return size if size > 0 else 1.0


def _non_negative(Z: FloatArray, bound: BoundLoss) -> FloatArray:
    """Return the w >= 0 that minimises loss(Z w) + 1/2 |w - 1|^2.

    An active set: Newton's method among the members that have a weight; on the way to its optimum the first weight that
    falls to 0 leaves, and at the optimum the member that would gain most by a weight enters.
    """
    n = Z.shape[1]
    w, free = np.ones(n), np.ones(n, bool)
    for _ in range(10 * n):
        optimum = np.zeros(n)
        optimum[free] = _minimum(np.ascontiguousarray(Z[:, free]), bound)
        falling = free & (optimum <= 0)
        if falling.any():
            step = np.min(w[falling] / (w[falling] - optimum[falling]))
            w = np.maximum(w + step * (optimum - w), 0)
            free &= ~(falling & (w <= _TOL * w.max()))
            w[~free] = 0
            if free.any():
                continue
        else:
            w = optimum
        _, slope = bound.value_gradient(Z @ w)
        gain = np.where(free, 0, 1 - w - Z.T @ slope)
        if gain.max() <= _TOL:
            break
        free[np.argmax(gain)] = True
    return w


def _minimum(Z: FloatArray, bound: BoundLoss) -> FloatArray:
    """Return the minimum of loss(Z w) + 1/2 |w - 1|^2: with w = 1 + v and scores from Z 1 on, what solvers minimise."""
    problem = Problem(MatrixDesign(Z), Shifted(bound, Z.sum(axis=1)), 1.0)
    result: FloatArray = 1 + follow(newton(problem, np.zeros(Z.shape[1])), _LIMITS).w
    return result
