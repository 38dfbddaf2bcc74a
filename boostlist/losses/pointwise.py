r"""Squared error: Pointwise, and Isotonic, which forgives each query an offset.

With targets t by grade, Moon, Smola, Chang, Zheng, *IntervalRank* (2010), eq. 11 and eq. 3,

    Pointwise:  l = 1/2 sum_i (f_i - t_i)^2,               gradient = f - t,         H = I
    Isotonic:   l = min over w of 1/2 sum_i (f_i - t_i - w)^2

The best offset w is the mean of f - t, so that Isotonic is the squared error after removal of both query means, as is
``Pointwise(centred=True)``; with d = f - t and n documents

    l = 1/2 sum_i (d_i - mean d)^2,   gradient_i = d_i - mean d,   H = I - 1 1' / n

Weights W by grade or position make Pointwise an instance of Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011),
eq. 8: l = 1/2 sum_i W_i (f_i - t_i)^2.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.checks import check_choice
from boostlist.gains import Gain, check_gain
from boostlist.losses.base import Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.targets import grade_targets
from boostlist.losses.weights import Grades, StageWeights, by_document, check_grades, stage_weights
from boostlist.parallel import compiled

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.queries import Queries


class Tables(NamedTuple):
    """Whether means are removed, and target and weight of each document."""

    centred: bool
    t: FloatArray
    W: FloatArray


@compiled
def _squared_error(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        fq, tq, W, gradient, diag = f[rows], tables.t[rows], tables.W[rows], out.gradient[rows], out.diag[rows]
        n = fq.size
        mean = 0.0
        if tables.centred:
            for i in range(n):
                mean += fq[i] - tq[i]
            mean /= n
        total = 0.0
        for i in range(n):
            d = (fq[i] - tq[i]) - mean
            total += W[i] * d * d
            gradient[i] = weight * W[i] * d
            diag[i] = weight * ((n - 1) / n if tables.centred else W[i])
        out.value[q] = 0.5 * total


@compiled
def _squared_error_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        vq, W, out_q = v[rows], tables.W[rows], out[rows]
        mean = 0.0
        if tables.centred:
            for i in range(vq.size):
                mean += vq[i]
            mean /= vq.size
        for i in range(vq.size):
            out_q[i] = lists.weight[q] * W[i] * (vq[i] - mean)


@dataclass(frozen=True, kw_only=True)
class LeastSquares(CompiledLoss):
    """Common part: targets and loops.

    Parameters
    ----------
    targets
        Target t of a grade: ``"exp2"`` for 2^y - 1, ``"linear"`` for the grade itself, or a table by grade such as the
        paper's ``(0, 0.5, 3, 7, 10)``.
    """

    targets: Gain = "exp2"

    family = "intervals and squared error"
    loop = staticmethod(_squared_error)
    hessp_loop = staticmethod(_squared_error_hessp)

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", check_gain(self.targets, "targets"))

    @property
    def traits(self) -> Traits:
        """Removing the means makes the loss blind to the level of the scores."""
        return Traits(diag="exact", convex=True, shift_invariant=self.forgives_offset, hessp=True, cost="n")

    @property
    @abstractmethod
    def forgives_offset(self) -> bool:
        """Whether the means of the query are removed."""

    def document_weights(self, queries: Queries) -> FloatArray:
        """Return W of each document; where means are removed, 1."""
        return np.ones_like(queries.labels)

    def tables(self, queries: Queries) -> Tables:
        """Return whether means are removed, t and W."""
        t = grade_targets(self, queries.labels, self.targets)
        return Tables(self.forgives_offset, t, self.document_weights(queries))


@dataclass(frozen=True, kw_only=True)
class Pointwise(LeastSquares):
    """Squared distance of each score from its grade's target: regression, alone or as a term beside a listwise loss.

    Parameters
    ----------
    targets
        As for `LeastSquares`.
    centred
        Whether the mean of the query is first removed from scores and from targets; then only differences within a
        query count, as for the other losses, and it is the better companion of a listwise loss.
    weights
        Weight of a document by its grade or position, table 8 as for `WeightedPL`; only where nothing is centred.
    gain
        Gain in R, for ``weights="gain"``: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set for R; None for the labels seen when binding. Give it when shards of a data set must agree.

    References
    ----------
    Moon, Smola, Chang, Zheng: IntervalRank: isotonic regression with listwise and pairwise constraints. WSDM 2010.
    Eq. 11, second term.
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 8, table 8.
    """

    centred: bool = False
    weights: StageWeights = "uniform"
    gain: Gain = "exp2"
    grades: Grades = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weights", self.weights, StageWeights)
        if self.centred and self.weights != "uniform":
            raise ValueError(f'weights="{self.weights}" go with scores as they are: leave centred=True out')
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def document_weights(self, queries: Queries) -> FloatArray:
        """Return the weights of table 8."""
        if self.weights == "uniform":
            return super().document_weights(queries)
        return by_document(queries, stage_weights(self.weights, queries.levels, queries, self.gain, self.grades))

    @property
    def forgives_offset(self) -> bool:
        """As asked for."""
        return bool(self.centred)


@dataclass(frozen=True, kw_only=True)
class Isotonic(LeastSquares):
    """Squared error up to an offset by query, the isotonic regression that IntervalRank extends.

    Parameters
    ----------
    targets
        As for `LeastSquares`.

    References
    ----------
    Moon, Smola, Chang, Zheng: IntervalRank: isotonic regression with listwise and pairwise constraints. WSDM 2010.
    Eq. 3.
    """

    @property
    def forgives_offset(self) -> bool:
        """The offset w of eq. 3."""
        return True
