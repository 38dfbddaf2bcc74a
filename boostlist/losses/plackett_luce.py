r"""The Plackett-Luce family: ListMLE, WeightedPL, CsRgList, ReversePL.

A ranking is built from the top: at each stage the next document is drawn with probability proportional to e^f among
those that are left. With stage weights W_j >= 0 the loss of a query is

    l = sum_j W_j [ log Z_j - f_j ],   Z_j = the sum of e^f over what is left

over the places j of a list in the order of its grades. Where grades are tied there is no one order:

- ``ties="order"``: row order, as in print; ``ties="random"``: an order drawn once when binding. Each document is a
  grade of its own then.
- ``ties="breslow"``: tied documents share their stage, Z_j = L_g + O_g, with O_g the sum of e^f over the grade g of j
  and L_g that over all lower grades.
- ``ties="efron"``: at the i-th stage of n_g tied documents, i = 0, 1, ..., the fraction t_j = 1 - i / n_g of each is
  left, Z_j = L_g + t_j O_g, and W_j f_j is averaged over the grade. That is the mean of the loss over all orders of
  tied documents, but for log Z at the mean of Z instead of the mean of log Z: a bound from above, below Breslow's.

These are Breslow's and Efron's rules for the Cox model (Efron, *The efficiency of Cox's likelihood function for
censored data*, 1977). `plackett_luce_loops` has the derivatives.

- ListMLE: Xia et al., *Listwise approach to learning to rank* (2008); here eq. 2 of He, *Cost-Sensitive Learning for
  Listwise Ranking Functions* (2016). W = 1.
- CsRgList: He (2016), eq. 3. W_j = pcf^{y_j} / n_{y_j}, n_g the number of documents of grade g. (Eq. 5, the second
  derivative, lacks an exp and is written as a vector; H above is derived from eq. 3.)
- WeightedPL: Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), eq. 10-11, table 8.
- ReversePL: the same, eq. 13: the list is built from the bottom,

      l = sum_i W_i [ f_i + log sum_{j: y_j >= y_i} e^{-f_j} ]

  which is the loss above at -f with the grades reversed. (In print the inner sum runs over the worse documents; those
  not yet eliminated are the better ones, and as printed the best document would be pushed down.)

On a list of a single grade these losses pull the scores together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from boostlist.checks import check_choice, check_number, check_whole
from boostlist.gains import Gain, check_gain
from boostlist.losses.base import Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.plackett_luce_loops import Tables, plackett_luce, plackett_luce_hessp, plackett_luce_stages
from boostlist.losses.targets import warn_of_large_weights
from boostlist.losses.weights import Grades, StageWeights, check_grades, label_set, stage_weights

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.levels import Levels
    from boostlist.queries import Queries

Ties = Literal["breslow", "efron", "order", "random"]


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(CompiledLoss):
    """Common part of the family: the rule for ties and the loops.

    Parameters
    ----------
    ties
        ``"breslow"``: tied documents share their stage, whatever their row order. ``"efron"``: so they do, and the
        stages among them count as on the average over their orders. ``"order"``: of tied documents the first row counts
        as the best, as the papers print it. ``"random"``: their order is drawn once, when the loss is bound; a sum of
        such losses with different seeds trains on several draws.
    seed
        Seed of the order under ``ties="random"``.
    """

    ties: Ties = "breslow"
    seed: int = 0

    family = "Plackett-Luce"
    reverse: ClassVar[bool] = False
    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, step=4.0, cost="n")
    loop = staticmethod(plackett_luce)
    hessp_loop = staticmethod(plackett_luce_hessp)
    stage_loop = staticmethod(plackett_luce_stages)

    def __post_init__(self) -> None:
        check_choice("ties", self.ties, Ties)
        check_whole("seed", self.seed, least=0)

    def stage_weights(self, queries: Queries, levels: Levels) -> FloatArray:
        """Return W for each of the levels: those of the queries or, where places count, one for each document."""
        raise NotImplementedError

    def stage_start(self, tables: Tables) -> IntArray:
        """Return where the rows of A and B of each query begin: one for each level, two under Efron's rule."""
        start = super().stage_start(tables)
        return 2 * start if tables.efron else start

    def tables(self, queries: Queries) -> Tables:
        """Return levels and stage weights, by the rule for ties and the direction."""
        draw = np.random.default_rng(self.seed).random(queries.n_documents) if self.ties == "random" else None
        tied = queries.levels
        weighted = tied if self.ties == "breslow" else tied.untied(draw)
        W, levels = self.stage_weights(queries, weighted), tied if self.ties == "efron" else weighted
        if self.reverse:
            W, levels = weighted.flip(W), levels.descending()
        return Tables(-1.0 if self.reverse else 1.0, self.ties == "efron", levels, W)


@dataclass(frozen=True, kw_only=True)
class ListMLE(PlackettLuce):
    """Likelihood of the ideal ranking under Plackett-Luce: every stage weighs 1.

    Parameters
    ----------
    ties, seed
        As for `PlackettLuce`.

    References
    ----------
    Xia, Liu, Wang, Zhang, Li: Listwise approach to learning to rank. ICML 2008.
    """

    def stage_weights(self, queries: Queries, levels: Levels) -> FloatArray:
        """Return W = 1."""
        return np.ones_like(levels.label)


@dataclass(frozen=True, kw_only=True)
class WeightedPL(PlackettLuce):
    """Plackett-Luce likelihood with stages weighted by grade or position.

    Parameters
    ----------
    ties, seed
        As for `PlackettLuce`.
    weights
        Table 8: ``"uniform"`` 1, ``"grade"`` y, ``"sqrt_grade"``, ``"gain"`` R, ``"reciprocal"`` 1/pi, ``"log"``
        1/log(1 + pi), with pi the place in the list; under ``ties="breslow"`` tied documents share the best of theirs,
        1 + the number of better documents.
    gain
        Gain in R: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set for R; None for the labels seen when binding. Give it when shards of a data set must agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 10-11, table 8.
    """

    weights: StageWeights = "reciprocal"
    gain: Gain = "exp2"
    grades: Grades = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weights", self.weights, StageWeights)
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def stage_weights(self, queries: Queries, levels: Levels) -> FloatArray:
        """Return the weights of table 8."""
        return stage_weights(self.weights, levels, queries, self.gain, self.grades)


@dataclass(frozen=True, kw_only=True)
class ReversePL(WeightedPL):
    """Plackett-Luce built from the bottom: at each stage the worst of the remaining documents is eliminated.

    Parameters
    ----------
    ties, seed, weights, gain, grades
        As for `WeightedPL`.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 13 with its sum mended, table 8.
    """

    weights: StageWeights = "log"
    reverse = True


@dataclass(frozen=True, kw_only=True)
class CsRgList(PlackettLuce):
    """Cost-sensitive listwise loss: better grades cost more, and each grade counts once however many documents it has.

    Parameters
    ----------
    ties, seed
        As for `PlackettLuce`.
    pcf
        Penalty coefficient >= 1: W_j = pcf^{y_j} / n_{y_j}. None is the paper's 3 for grades up to its 2, and beyond
        9^(1 / y_max), so that the best grade weighs 9 whatever the number of grades; with 3, grade 4 would weigh 81.
    grades
        Label set for y_max; None for the labels seen when binding. Give it when shards of a data set must agree.

    References
    ----------
    He: Cost-sensitive learning for listwise ranking functions. 2016. Eq. 3.
    """

    pcf: float | None = None
    grades: Grades = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pcf is not None:
            check_number("pcf", self.pcf, least=1, otherwise=", or None")
        object.__setattr__(self, "grades", check_grades(self.grades))

    def base(self, queries: Queries) -> float:
        """Return pcf for these queries."""
        if self.pcf is not None:
            return self.pcf
        largest = label_set(queries, self.grades).max(initial=0.0)
        return 3.0 if largest <= 2 else float(9 ** (1 / largest))

    def stage_weights(self, queries: Queries, levels: Levels) -> FloatArray:
        """Return W = pcf^y / n_y, whatever the rule for ties."""
        tied, pcf = queries.levels, self.base(queries)
        grade = np.searchsorted(tied.document, levels.document[:-1], side="right") - 1
        with np.errstate(over="ignore"):
            W = pcf**levels.label / tied.sizes[grade]
        if not np.isfinite(W).all():
            raise ValueError(
                f"pcf ** y overflows at label {levels.label.max():g} with pcf={pcf:g}; rescale the labels or lower pcf"
            )
        warn_of_large_weights(self, pcf, levels.label)
        return W
