r"""Markov random field losses: weighted pseudo-likelihood and weighted upper bound.

Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), eq. 14-18. The labels y of a query are modelled jointly,
P(y) ~ exp( gamma sum_{i<j} sign(y_i - y_j)(f_i - f_j) ), over a label set L.

WpLL, the weighted pseudo-likelihood: each label given all others. With a(v) = N_{<v} - N_{>v}, the documents labelled
below v less those above, S(v) the same for sums of scores, s_i(v) = gamma (a(v) f_i - S(v)) and P_i = softmax_v s_i,

    l = sum_i W_i [ log sum_{v in L} e^{s_i(v)} - s_i(y_i) ]
    gradient_k = gamma W_k ( E_{P_k} a - a(y_k) ) - gamma sum_v sign(v - y_k) D(v)
    D(v) = sum_i W_i ( P_i(v) - [v = y_i] )
    H_kk = gamma^2 [ sum_{i != k} W_i Var_{P_i} sign(v - y_k) + W_k Var_{P_k}( a(v) - sign(v - y_k) ) ]

and H v follows from dP_i = P_i (ds_i - E_{P_i} ds_i), ds_i(v) being s_i(v) with the direction in place of the scores.
The variance of sign(v - g) is 4 P(<g) P(>g) + P(g)(1 - P(g)). O(n |L|).

WUB, the weighted upper bound: the likelihood falls apart into pairs. With d = f_i - f_j and b = |L| - 1,

    l = sum_{i<j} W_ij [ log( |L| (1 + b cosh(gamma d)) ) - gamma sign(y_i - y_j) d ]

(In print the double sum stands a second time inside the pair term.) The slope in d is
gamma (b sinh / (1 + b cosh) - sign), the curvature gamma^2 b (b + cosh) / (1 + b cosh)^2, at most gamma^2 b / (1 + b).
Labels enter by their number alone. Where they are continuous, b is infinite: the limit but for constants is

    l = sum_{i<j} W_ij [ log( 2 cosh(gamma d) ) - gamma sign(y_i - y_j) d ]

the logistic loss of 2 gamma d for an ordered pair. More than 1,000 labels count as continuous: .1 % in curvature.
O(n) for long lists (`long_lists`), a double loop over short ones. Tied pairs pull together; as the pair weights of
table 9 that contain a difference of grades are 0 for them, they count under ``weights="uniform"`` only. On lists of one
grade both losses pull together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boostlist.checks import check_choice, check_number
from boostlist.gains import Gain, check_gain
from boostlist.losses import markov_loops
from boostlist.losses.base import Traits
from boostlist.losses.compiled import CompiledLoss, LongLoops
from boostlist.losses.difference_sums import profile
from boostlist.losses.long_lists import LongPairs, pairs, pairs_hessp
from boostlist.losses.markov_loops import WpLLTables, WUBTables
from boostlist.losses.weights import (
    Grades,
    Normalizer,
    PairWeights,
    StageWeights,
    check_grades,
    enumerable_label_set,
    label_set,
    pair_scale,
    pair_weights,
    stage_weights,
)

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.queries import Queries

# A larger b is taken for infinite.
_CONTINUOUS = 999

Coupling = float | Literal["pairs"]


def _check_gamma(gamma: Any) -> None:
    if gamma != "pairs":
        check_number("gamma", gamma, above=True, otherwise=', or "pairs"')


def _gammas(gamma: Coupling, queries: Queries) -> FloatArray:
    """Return gamma for each query; 0 for one without pairs."""
    if gamma == "pairs":
        return pair_scale("pairs", queries, "exp2", None, tied=True)
    return np.full(queries.n_queries, float(gamma))


def _in_units(step: float, unit: FloatArray, queries: Queries) -> FloatArray:
    """Return for each document the step in units of 1 / the unit of its query."""
    by_query = np.divide(step, unit, out=np.full_like(unit, np.inf), where=unit > 0)
    return np.repeat(by_query, queries.sizes)


@dataclass(frozen=True, kw_only=True)
class WpLL(CompiledLoss):
    """Weighted pseudo-likelihood of a Markov random field: each label given all others.

    Parameters
    ----------
    weights
        Table 8, as for `WeightedPL`.
    gamma
        Strength of the coupling, > 0, or ``"pairs"`` for one over the number of pairs of the query, as in the paper.
    gain
        Gain in R, for ``weights="gain"``: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set L, at most 64 grades; None for the labels seen when binding. Give it when shards of a data set must
        agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 14-16, table 8.
    """

    weights: StageWeights = "reciprocal"
    gamma: Coupling = 1.0
    gain: Gain = "exp2"
    grades: Grades = None

    family = "Markov random field"
    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, step=16.0, cost="n G")
    loop = staticmethod(markov_loops.wpll)
    hessp_loop = staticmethod(markov_loops.wpll_hessp)

    def steps(self, queries: Queries) -> FloatArray:
        """Return `Traits.step` in units of 1 / (gamma n): a score enters times gamma a(v), which is up to gamma n."""
        return _in_units(self.traits.step, _gammas(self.gamma, queries) * queries.sizes, queries)

    def __post_init__(self) -> None:
        check_choice("weights", self.weights, StageWeights)
        _check_gamma(self.gamma)
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def tables(self, queries: Queries) -> WpLLTables:
        """Return the levels with their places in the label set, and W."""
        levels = queries.levels
        labels = enumerable_label_set(queries, self.grades)
        place = np.searchsorted(labels, levels.label)
        W = stage_weights(self.weights, queries.levels, queries, self.gain, self.grades)
        return WpLLTables(_gammas(self.gamma, queries), len(labels), levels, place, W)


@dataclass(frozen=True, kw_only=True)
class WUB(CompiledLoss):
    """Weighted upper bound on the negative log-likelihood of a Markov random field, pair by pair.

    Parameters
    ----------
    weights
        W of a pair: ``"uniform"`` 1, tied pairs included; ``"grade"``, ``"gain"``, ``"dcg"`` as for `Pairwise`.
    normalize
        What W is divided by: ``"documents"`` of the query, all its ``"pairs"``, ``"dcg"`` the ideal DCG, or None.
    gamma
        Strength of the coupling, > 0, or ``"pairs"`` for one over the number of pairs of the query.
    gain
        Gain in R: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set L, of which more than 1,000 count as continuous; None for the labels seen when binding. Give it when
        shards of a data set must agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 17-18, table 9.
    """

    weights: PairWeights = "uniform"
    normalize: Normalizer = "documents"
    gamma: Coupling = 1.0
    gain: Gain = "exp2"
    grades: Grades = None

    family = "Markov random field"
    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, step=4.0, cost="n")
    loop = staticmethod(markov_loops.wub)
    hessp_loop = staticmethod(markov_loops.wub_hessp)

    def steps(self, queries: Queries) -> FloatArray:
        """Return `Traits.step` in units of 1 / gamma."""
        return _in_units(self.traits.step, _gammas(self.gamma, queries), queries)

    def __post_init__(self) -> None:
        check_choice("weights", self.weights, PairWeights)
        check_choice("normalize", self.normalize, ("documents", "pairs", "dcg", None))
        _check_gamma(self.gamma)
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def tables(self, queries: Queries) -> WUBTables:
        """Return b, gamma, kappa and W."""
        b = len(label_set(queries, self.grades)) - 1.0
        kappa = pair_scale(self.normalize, queries, self.gain, self.grades, tied=True)
        gamma = _gammas(self.gamma, queries)
        if b > _CONTINUOUS:
            c, factor = 0.0, 2.0
        elif b > 0:
            c, factor = 1 / b, (b + 1) * b
        else:
            # With a single label to choose from nothing is uncertain.
            c, factor, kappa = 1.0, 2.0, np.zeros_like(kappa)
        W = pair_weights(self.weights, queries, self.gain, self.grades)
        return WUBTables(c, factor, gamma, kappa, W, queries.levels)

    def idle(self, queries: Queries, tables: WUBTables) -> IntArray:
        """Return the queries without pairs or without an ideal DCG; with a single label in L, all."""
        return np.flatnonzero(tables.kappa == 0)

    def long_loops(self, queries: Queries, tables: WUBTables) -> LongLoops:
        """Return loops that sum over boxes of scores."""
        W, constant, tied = tables.W, np.log(tables.factor / 2), tables.W.alpha * tables.W.beta > 0
        long = LongPairs.of(0.13, profile(tables.c), constant, tables.gamma, tables.kappa, W, queries, tied=tied)
        return LongLoops(pairs, pairs_hessp, long)
