r"""Group-level Plackett-Luce: the documents of a grade are one object, ranked against the other grades.

Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), table 2: with a score s_g for the group of grade g,

    l = sum_g W_g [ log sum_{h <= g} e^{s_h} - s_g ],   s_g = min, max, mean or log-mean-exp of the f_i in g

that is `WeightedPL` over groups, in table 6 with W = 1. Let S_g and D_g be its gradient and Hessian diagonal, and
q_i = ds_g / df_i the share of a document in its group: 1 / n_g for the mean, softmax within the group for log-mean-exp,
and for min and max an equal share of the documents at the extreme (all of them at f = 0), which makes a sub-gradient.

    gradient_i = S_g q_i
    mean:          diag = D_g q_i^2, exact; the only convex one
    log-mean-exp:  diag = D_g q_i^2 + (S_g + W_g) q_i (1 - q_i) = sum over stages of W p (1 - p), p = e^{f_i} / (n_g Z),
                   which bounds the exact D_g q_i^2 + S_g q_i (1 - q_i); that one can be negative
    min, max:      diag = D_g q_i, the curvature of the extreme documents moving together

A list of a single grade has a single group and contributes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from boostlist.arrays import frozen
from boostlist.checks import check_choice
from boostlist.gains import Gain, check_gain
from boostlist.losses.base import BoundLoss, Loss, Traits
from boostlist.losses.exponential import exp
from boostlist.losses.plackett_luce import WeightedPL
from boostlist.losses.weights import Grades, StageWeights, check_grades
from boostlist.parallel import compiled, over_queries
from boostlist.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist._typing import FloatArray

Aggregation = Literal["min", "max", "mean", "logmeanexp"]
_MIN, _MAX, _MEAN, _LOGMEANEXP = range(4)


@compiled
def _aggregate(lo, hi, start, f, kind, levels, s, share):  # type: ignore[no-untyped-def]
    """Fill the score s of every group and the share of each document in it."""
    order, document = levels.order, levels.document
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        fq, share_q = f[rows], share[rows]
        for g in range(levels.start[q], levels.start[q + 1]):
            low, high = document[g], document[g + 1]
            head = extreme = fq[order[low]]
            excess = 0.0
            for i in range(low, high):
                x = fq[order[i]]
                if kind == _MEAN:
                    excess += x - head
                else:
                    extreme = min(extreme, x) if kind == _MIN else max(extreme, x)
            total = 0.0
            for i in range(low, high):
                x = fq[order[i]]
                if kind == _MEAN:
                    part = 1.0
                elif kind == _LOGMEANEXP:
                    part = exp(max(x - extreme, -700.0))
                else:
                    part = 1.0 if x == extreme else 0.0
                share_q[order[i]] = part
                total += part
            inverse = 1 / total
            for i in range(low, high):
                share_q[order[i]] *= inverse
            s[g] = extreme
            if kind == _MEAN:
                s[g] = head + excess / (high - low)
            elif kind == _LOGMEANEXP:
                s[g] += np.log(total / (high - low))


@compiled
def _spread(lo, hi, start, kind, levels, W, S, D, gradient, diag):  # type: ignore[no-untyped-def]
    """Turn the shares in `gradient` into the gradient, and fill diag; W, S and D carry the query weights."""
    order, document = levels.order, levels.document
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        gradient_q, diag_q = gradient[rows], diag[rows]
        for g in range(levels.start[q], levels.start[q + 1]):
            for i in range(document[g], document[g + 1]):
                share = gradient_q[order[i]]
                gradient_q[order[i]] = S[g] * share
                if kind == _MEAN:
                    diag_q[order[i]] = D[g] * share * share
                elif kind == _LOGMEANEXP:
                    diag_q[order[i]] = D[g] * share * share + max(S[g] + W[g], 0.0) * share * (1 - share)
                else:
                    diag_q[order[i]] = D[g] * share


@dataclass(frozen=True, kw_only=True)
class GroupPL(Loss):
    """Plackett-Luce over groups of equal grade.

    Parameters
    ----------
    aggregation
        Score of a group: ``"min"``, ``"max"``, ``"mean"`` or ``"logmeanexp"`` (the paper's geometric mean).
    weights
        Weight of a group's stage, table 8 as for `WeightedPL`; the position pi of a group is 1 + the number of better
        groups.
    gain
        Gain in R, for ``weights="gain"``: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set for R; None for the labels seen when binding. Give it when shards of a data set must agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Tables 2 and 8; results in table 6.
    """

    aggregation: Aggregation = "logmeanexp"
    weights: StageWeights = "uniform"
    gain: Gain = "exp2"
    grades: Grades = None

    family = "Plackett-Luce"

    def __post_init__(self) -> None:
        check_choice("aggregation", self.aggregation, Aggregation)
        check_choice("weights", self.weights, StageWeights)
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    @property
    def traits(self) -> Traits:
        """Only the mean, which is linear, keeps the likelihood convex."""
        mean = self.aggregation == "mean"
        return Traits(diag="exact" if mean else "heuristic", convex=mean, hessp=mean, step=4.0, cost="n")

    def bind(self, queries: Queries) -> BoundLoss:
        """Bind the Plackett-Luce likelihood to the groups."""
        return _BoundGroups(self, queries)


class _BoundGroups(BoundLoss):
    """`WeightedPL` over groups, with scores going in and derivatives coming out through the aggregation."""

    def __init__(self, loss: GroupPL, queries: Queries) -> None:
        super().__init__(loss, queries)
        levels = self.queries.levels
        groups = Queries(levels.label, levels.start, queries.weight)
        stages = WeightedPL(weights=loss.weights, gain=loss.gain, grades=loss.grades)
        self._groups = stages.bind(groups)
        self._W = frozen(np.repeat(queries.weight, np.diff(levels.start)) * stages.stage_weights(groups, groups.levels))
        self._kind = get_args(Aggregation).index(loss.aggregation)

    def _aggregated(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scores of the groups and the shares of the documents."""
        start = self.queries.start
        s, share = np.empty(self._groups.queries.n_documents), np.empty_like(f)
        over_queries(_aggregate, start, start, f, self._kind, self.queries.levels, s, share)
        return s, share

    def _spread(self, S: FloatArray, D: FloatArray, gradient: FloatArray, diag: FloatArray) -> None:
        start = self.queries.start
        over_queries(_spread, start, start, self._kind, self.queries.levels, self._W, S, D, gradient, diag)

    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        s, gradient = self._aggregated(f)
        value, S, D = self._groups.evaluate(s, need)
        diag = np.empty_like(f)
        self._spread(frozen(S), frozen(D), gradient, diag)
        return value, gradient, diag

    def hessp(self, f: ArrayLike) -> Callable[[ArrayLike], FloatArray]:
        if not self.loss.traits.hessp:
            return super().hessp(f)
        product = self._groups.hessp(self._aggregated(self.queries.scores(f))[0])

        def through_means(v: ArrayLike) -> FloatArray:
            vbar, out = self._aggregated(self.queries.scores(v))
            Hv = frozen(product(vbar))
            self._spread(Hv, Hv, out, np.empty_like(out))
            return out

        return through_means
