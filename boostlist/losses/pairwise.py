r"""Pairwise losses: quadratic, hinge, squared hinge, exponential, logistic, and GBRank.

    l = sum_{i, j: y_i > y_j} V_ij phi(d_ij),   d_ij = f_i - f_j

Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), eq. 9, table 3 for phi and table 9 for V:

    V_ij = kappa (alpha + A_i - A_j)(beta + B_i - B_j)

is kappa times 1, y_i - y_j, R_i - R_j or (R_i - R_j)(eta_i - eta_j), with R = a / (2 a_max + 1) for the gain a and
eta = 1 / log(1 + pi) for the label position pi; kappa is 1, 1/N, 1/#pairs (the query normalisation of Qin et al.,
*Query-level loss functions for information retrieval* (2008), eq. 16-18) or 1/DCG_max, with DCG_max = sum R eta in
ideal order. Each V is a sum of at most four products of a term of i and a term of j. Hence quadratic and exponential
loss cost O(n), the hinges O(n log n), the logistic loss O(n) from some hundred documents on and a double loop below;
`pairwise_loops`, `pairwise_hinge` and `long_lists` derive this.

Queries of a single grade contribute nothing, nor do queries whose kappa has the denominator 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from boostlist.checks import check_choice, check_number
from boostlist.gains import Gain, check_gain
from boostlist.losses import pairwise_hinge, pairwise_loops
from boostlist.losses.base import Traits
from boostlist.losses.compiled import CompiledLoss, LongLoops
from boostlist.losses.difference_sums import profile
from boostlist.losses.long_lists import LongPairs, pairs, pairs_hessp
from boostlist.losses.pairwise_hinge import HingeTables, hinge_tables
from boostlist.losses.pairwise_loops import PairTables
from boostlist.losses.targets import grade_targets
from boostlist.losses.weights import (
    Grades,
    Normalizer,
    PairWeights,
    check_grades,
    pair_scale,
    pair_weights,
)

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.queries import Queries


@dataclass(frozen=True, kw_only=True)
class Pairwise(CompiledLoss):
    """Common part of the family: the weights of pairs.

    Parameters
    ----------
    weights
        V of a pair y_i > y_j: ``"uniform"`` 1, ``"grade"`` y_i - y_j, ``"gain"`` R_i - R_j, ``"dcg"``
        (R_i - R_j)(eta_i - eta_j).
    normalize
        What V is divided by: ``"documents"`` of the query, ``"pairs"`` of different grade, ``"dcg"`` the ideal DCG, or
        None.
    gain
        Gain in R: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set for R; None for the labels seen when binding. Give it when shards of a data set must agree.
    """

    weights: PairWeights = "gain"
    normalize: Normalizer = "documents"
    gain: Gain = "exp2"
    grades: Grades = None

    family = "pairwise"

    def __post_init__(self) -> None:
        check_choice("weights", self.weights, PairWeights)
        check_choice("normalize", self.normalize, ("documents", "pairs", "dcg", None))
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def tables(self, queries: Queries) -> PairTables | HingeTables:
        """Return kappa and the factors of V."""
        return self.pair_tables(queries)

    def pair_tables(self, queries: Queries) -> PairTables:
        """Return what every pairwise loss reads."""
        kappa = pair_scale(self.normalize, queries, self.gain, self.grades)
        return PairTables(kappa, pair_weights(self.weights, queries, self.gain, self.grades), queries.levels)

    def idle(self, queries: Queries, tables: PairTables | HingeTables) -> IntArray:
        """Return the queries without pairs, or without an ideal DCG."""
        return np.flatnonzero(tables.kappa == 0)


@dataclass(frozen=True, kw_only=True)
class PairwiseQuadratic(Pairwise):
    """Pairwise regression on a margin of 1: phi(d) = (1 - d)^2. The cheapest of its family, of constant curvature.

    Parameters
    ----------
    weights, normalize, gain, grades
        As for `Pairwise`.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Tables 3 and 9.
    """

    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, cost="n")
    loop = staticmethod(pairwise_loops.quadratic)
    hessp_loop = staticmethod(pairwise_loops.quadratic_hessp)


@dataclass(frozen=True, kw_only=True)
class PairwiseExponential(Pairwise):
    """RankBoost's loss: phi(d) = e^{-d}.

    Within a query whose scores spread over more than 600, scores are cut to within 300 of the middle of their range, so
    that e^{-d} stays finite: there gradient and curvature are those at the cut scores.

    Parameters
    ----------
    weights, normalize, gain, grades
        As for `Pairwise`.

    References
    ----------
    Freund, Iyer, Schapire, Singer: An efficient boosting algorithm for combining preferences. JMLR 4, 2003.
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Tables 3 and 9.
    """

    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, cost="n")
    loop = staticmethod(pairwise_loops.exponential)
    hessp_loop = staticmethod(pairwise_loops.exponential_hessp)


@dataclass(frozen=True, kw_only=True)
class PairwiseLogistic(Pairwise):
    """RankNet's loss: phi(d) = log(1 + e^{-d}).

    Parameters
    ----------
    weights, normalize, gain, grades
        As for `Pairwise`.

    References
    ----------
    Burges et al.: Learning to rank using gradient descent. ICML 2005.
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Tables 3 and 9.
    """

    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, cost="n")
    loop = staticmethod(pairwise_loops.logistic)
    hessp_loop = staticmethod(pairwise_loops.logistic_hessp)

    def long_loops(self, queries: Queries, tables: PairTables) -> LongLoops:
        """Return loops that sum over boxes of scores."""
        one = np.ones(queries.n_queries)
        long = LongPairs.of(0.105, profile(1.0), 0.0, one, tables.kappa / 2, tables.V, queries, tied=False)
        return LongLoops(pairs, pairs_hessp, long)


@dataclass(frozen=True, kw_only=True)
class PairwiseHinge(Pairwise):
    """RankSVM's loss: phi(d) = (1 - d)_+.

    It has no curvature. Its diag is a heuristic that makes a Newton step a plain gradient step of sensible length: for
    every document of a query the same, namely the mean over its documents of the weights V of their pairs. At a kink,
    where a pair meets its margin up to rounding, the gradient is one of the possible ones.

    Parameters
    ----------
    weights, normalize, gain, grades
        As for `Pairwise`.

    References
    ----------
    Joachims: Optimizing search engines using clickthrough data. KDD 2002.
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Tables 3 and 9.
    """

    traits = Traits(diag="heuristic", convex=True, shift_invariant=True, cost="n log n")
    loop = staticmethod(pairwise_hinge.hinge)

    def tables(self, queries: Queries) -> HingeTables:
        """Return the tables of `Pairwise`, with a margin of 1."""
        targets, lam1 = np.zeros_like(queries.levels.label), np.zeros(queries.n_queries)
        return hinge_tables(self.pair_tables(queries), 1.0, targets, lam1)


@dataclass(frozen=True, kw_only=True)
class SquaredHinge(Pairwise):
    """Common part of the squared hinges: phi(d_ij) = (margin + t_i - t_j - d_ij)_+^2, and tied pairs.

    Their curvature jumps where a margin is just met; diag and Hessian-vector product are one-sided there.

    Parameters
    ----------
    weights, normalize, gain, grades
        As for `Pairwise`.
    """

    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, cost="n log n")
    loop = staticmethod(pairwise_hinge.squared_hinge)
    hessp_loop = staticmethod(pairwise_hinge.squared_hinge_hessp)

    def level_targets(self, queries: Queries) -> FloatArray:
        """Return t for each level."""
        return np.zeros_like(queries.levels.label)

    def common_margin(self) -> float:
        """Return the margin that all pairs have in common."""
        return 0.0

    def tied_weight(self, queries: Queries) -> FloatArray:
        """Return the weight of tied pairs in each query."""
        return np.zeros(queries.n_queries)

    def tables(self, queries: Queries) -> HingeTables:
        """Return the tables of `Pairwise`, margins, and the weight of tied pairs."""
        return hinge_tables(
            self.pair_tables(queries), self.common_margin(), self.level_targets(queries), self.tied_weight(queries)
        )


@dataclass(frozen=True, kw_only=True)
class UnitMarginHinge(SquaredHinge):
    """The squared hinge of RankSVM: phi(d) = (margin - d)_+^2.

    Parameters
    ----------
    weights, normalize, gain, grades
        As for `Pairwise`; the defaults weigh all pairs alike.
    margin
        1, or another number > 0.

    References
    ----------
    Chapelle, Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval 13, 2010.
    """

    weights: PairWeights = "uniform"
    normalize: Normalizer = None
    margin: float = 1.0

    def common_margin(self) -> float:
        """Return the margin."""
        return self.margin


@dataclass(frozen=True, kw_only=True)
class PairwiseSquaredHinge(SquaredHinge):
    """Squared hinge with label margins: phi(d_ij) = (t_i - t_j - d_ij)_+^2.

    Parameters
    ----------
    weights, normalize, gain, grades
        As for `Pairwise`.
    targets
        Target t of a grade, whose differences are the margins: ``"exp2"`` for 2^y - 1, ``"linear"`` for y, or a table.

    References
    ----------
    Moon, Smola, Chang, Zheng: IntervalRank - isotonic regression with listwise and pairwise constraints. WSDM 2010.
    """

    targets: Gain = "exp2"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "targets", check_gain(self.targets, "targets"))

    def level_targets(self, queries: Queries) -> FloatArray:
        """Return t for each level."""
        return grade_targets(self, queries.levels.label, self.targets)


@dataclass(frozen=True, kw_only=True)
class GBRank(PairwiseSquaredHinge):
    """Squared hinge with label margins, and a pull between documents of the same grade.

        l = sum_{y_i > y_j} V_ij (t_i - t_j - d_ij)_+^2 + lam1 sum_{i < j: y_i = y_j} (f_i - f_j)^2

    As printed, V is 1: ``weights="uniform", normalize=None``. (There the second sum has every tied pair twice, so that
    lam1 here is twice that of the print.) Of a query of a single grade the second sum is left.

    Parameters
    ----------
    weights, normalize, gain, grades, targets
        As for `PairwiseSquaredHinge`.
    lam1
        Weight of tied pairs, >= 0; None for 0.1 / number of documents of the query.

    References
    ----------
    Zheng, Chen, Sun, Zha: A regression framework for learning ranking functions using relative relevance judgments.
    SIGIR 2007.
    Moon, Smola, Chang, Zheng: IntervalRank - isotonic regression with listwise and pairwise constraints. WSDM 2010.
    """

    lam1: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lam1 is not None:
            check_number("lam1", self.lam1, otherwise=", or None for 0.1 / documents")

    def tied_weight(self, queries: Queries) -> FloatArray:
        """Return lam1 for each query."""
        return 0.1 / queries.sizes if self.lam1 is None else np.full(queries.n_queries, float(self.lam1))

    def idle(self, queries: Queries, tables: PairTables | HingeTables) -> IntArray:
        """Return the queries that have neither ordered nor tied pairs that count."""
        assert isinstance(tables, HingeTables)
        tied = tables.levels.sum_by_query((tables.levels.sizes > 1).astype(np.float64)) > 0
        return np.flatnonzero((tables.kappa == 0) & ~(tied & (tables.lam1 > 0)))
