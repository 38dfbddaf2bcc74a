r"""The Plackett-Luce family: ListMLE, WeightedPL, CsRgList, ReversePL.

A ranking is built from the top: at each stage the next document is drawn with probability proportional to e^f among
those that are left. With stage weights W_j >= 0 the loss of a query is

    l = sum_j W_j [ log Z_{y_j} - f_j ],   Z_g = sum_{k: y_k <= g} e^{f_k}

where tied documents share their stage, as Breslow's rule for the Cox model has it, or with ``ties="order"`` come in row
order as in print (then every document is a grade of its own). With c_k = sum_{j: y_j >= y_k} W_j / Z_{y_j}, and e_k the
same with Z^2,

    gradient_k = e^{f_k} c_k - W_k,   H_kk = e^{f_k} c_k - e^{2 f_k} e_k
    (H v)_k = e^{f_k} [ v_k c_k - sum_{j: y_j >= y_k} W_j vbar_{y_j} / Z_{y_j} ]
    vbar_g = sum_{k: y_k <= g} e^{f_k} v_k / Z_g

For a matrix X of features H is diag(e^f c) less an outer product for each grade, and with xbar_g = the mean over Z_g

    X'HX = sum_k e^{f_k} c_k x_k x_k' - sum_g n_g W_g xbar_g xbar_g'

All sums are prefix or suffix sums over grades: O(n). Z_g is kept as e^{m_g} S_g with m_g the largest score in it, since
a grade may lie hundreds below the list's maximum: scores 0, -800, -801 would give 0/0 otherwise.

- ListMLE: Xia et al., *Listwise approach to learning to rank* (2008); here eq. 2 of He, *Cost-Sensitive Learning for
  Listwise Ranking Functions* (2016). W = 1.
- CsRgList: He (2016), eq. 3. W_j = pcf^{y_j} / n_{y_j}, n_g the number of documents of grade g. (Eq. 5, the second
  derivative, lacks an exp and is written as a vector; H above is derived from eq. 3.)
- WeightedPL: Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), eq. 10-12, table 8.
- ReversePL: the same, eq. 13: the list is built from the bottom,

      l = sum_i W_i [ f_i + log sum_{j: y_j >= y_i} e^{-f_j} ]

  which is the loss above at -f with the grades reversed. (In print the inner sum runs over the worse documents; those
  not yet eliminated are the better ones, and as printed the best document would be pushed down.)

On a list of a single grade these losses pull the scores together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from boostlist.checks import check_choice
from boostlist.gains import Gain, check_gain
from boostlist.losses.base import VALUE, Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.shared_loops import stage_rows
from boostlist.losses.targets import warn_of_large_weights
from boostlist.losses.weights import Grades, StageWeights, check_grades, label_set, stage_weights
from boostlist.parallel import compiled, longest

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.levels import Levels
    from boostlist.queries import Queries

Ties = Literal["breslow", "order"]


class Tables(NamedTuple):
    """-1 where the list is built from the bottom, else 1; the levels, with the stage weight W of each."""

    sign: float
    levels: Levels
    W: FloatArray


class Sweep(NamedTuple):
    """For the scores x = sign * f of a query, grades ascending: p_i = e^{x_i - m_g}, m_g, and S_g = own_g + lower_g."""

    p: FloatArray
    m: FloatArray
    own: FloatArray
    lower: FloatArray


@compiled
def _sweep(lists, tables):  # type: ignore[no-untyped-def]
    """Return room for the longest of the queries."""
    n, grades = longest(lists.query, lists.start), longest(lists.query, tables.levels.start)
    return Sweep(np.empty(n), np.empty(grades), np.empty(grades), np.empty(grades))


@compiled
def _forward(f, first, last, tables, sweep):  # type: ignore[no-untyped-def]
    """Fill the sweep for the scores f of a query with the levels first:last."""
    sign, order, document = tables.sign, tables.levels.order, tables.levels.document
    p, m, own, lower = sweep
    top, total = -np.inf, 0.0
    begin = document[first]
    for g in range(first, last):
        low, high = document[g], document[g + 1]
        new_top = top
        for i in range(low, high):
            x = sign * f[order[i]]
            p[i - begin] = x
            new_top = max(new_top, x)
        if new_top > top:
            total *= np.exp(top - new_top)
            top = new_top
        grade = 0.0
        for i in range(low - begin, high - begin):
            p[i] = np.exp(p[i] - top)
            grade += p[i]
        m[g - first] = top
        own[g - first] = grade
        lower[g - first] = total
        total += grade


@compiled
def _plackett_luce(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    sign, levels, W = tables
    order, document = levels.order, levels.document
    sweep = _sweep(lists, tables)
    p, m, own, lower = sweep
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        fq, gradient, diag = f[rows], out.gradient[rows], out.diag[rows]
        first, last = levels.start[q], levels.start[q + 1]
        begin = document[first]
        _forward(fq, first, last, tables, sweep)
        c = e = loss = 0.0
        top = m[last - first - 1]
        for g in range(last - 1, first - 1, -1):
            low, high = document[g], document[g + 1]
            if m[g - first] < top:
                t = np.exp(m[g - first] - top)
                c *= t
                e *= t * t
                top = m[g - first]
            n, below = high - low, lower[g - first]
            S = own[g - first] + below
            stage = W[g] / S
            e += n * stage / S
            for i in range(low, high):
                pi = p[i - begin]
                # The grade's own stage, n p / S - 1, as (n p - own) - lower: a list in perfect order keeps its digits.
                gradient[order[i]] = weight * sign * (pi * c + stage * ((n * pi - own[g - first]) - below))
                diag[order[i]] = weight * max(pi * (c + n * stage) - pi * pi * e, 0.0)
            c += n * stage
            if need & VALUE and W[g] > 0:
                if n == 1 and below <= own[g - first]:
                    loss += W[g] * np.log1p(below / own[g - first])
                else:
                    gap = 0.0
                    for i in range(low, high):
                        gap += top - sign * fq[order[i]]
                    loss += W[g] * (gap + n * np.log(S))
        out.value[q] = loss


@compiled
def _plackett_luce_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    _, levels, W = tables
    order, document = levels.order, levels.document
    sweep = _sweep(lists, tables)
    p, m, own, lower = sweep
    vbar = np.empty_like(m)
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        vq, out_q = v[rows], out[rows]
        first, last = levels.start[q], levels.start[q + 1]
        begin = document[first]
        _forward(f[rows], first, last, tables, sweep)
        pv, top = 0.0, m[0]
        for g in range(first, last):
            if m[g - first] > top:
                pv *= np.exp(top - m[g - first])
                top = m[g - first]
            for i in range(document[g], document[g + 1]):
                pv += p[i - begin] * vq[order[i]]
            vbar[g - first] = pv / (own[g - first] + lower[g - first])
        c = d = 0.0
        for g in range(last - 1, first - 1, -1):
            low, high = document[g], document[g + 1]
            if m[g - first] < top:
                t = np.exp(m[g - first] - top)
                c *= t
                d *= t
                top = m[g - first]
            stage = (high - low) * W[g] / (own[g - first] + lower[g - first])
            c += stage
            d += stage * vbar[g - first]
            for i in range(low, high):
                out_q[order[i]] = weight * p[i - begin] * (vq[order[i]] * c - d)


@compiled
def _plackett_luce_stages(lists, f, stages, tables):  # type: ignore[no-untyped-def]
    _, levels, W = tables
    order, document = levels.order, levels.document
    sweep = _sweep(lists, tables)
    p, m, own, lower = sweep
    columns = stages.X.shape[1]
    total = np.empty(columns)
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        X, S, A, B = stage_rows(q, lists, levels, stages)
        first, last = levels.start[q], levels.start[q + 1]
        begin = document[first]
        _forward(f[rows], first, last, tables, sweep)
        total[:] = 0.0
        top = m[0]
        for g in range(first, last):
            low, high = document[g], document[g + 1]
            if m[g - first] > top:
                total *= np.exp(top - m[g - first])
                top = m[g - first]
            for i in range(low, high):
                pi, row = p[i - begin], order[i]
                for k in range(columns):
                    total[k] += pi * (X[row, k] - X[0, k])
            Z = own[g - first] + lower[g - first]
            half = 0.5 * weight * (high - low) * W[g]
            for k in range(columns):
                B[g - first, k] = total[k] / Z
                A[g - first, k] = half * B[g - first, k]
        c = 0.0
        for g in range(last - 1, first - 1, -1):
            low, high = document[g], document[g + 1]
            if m[g - first] < top:
                c *= np.exp(m[g - first] - top)
                top = m[g - first]
            c += (high - low) * W[g] / (own[g - first] + lower[g - first])
            for i in range(low, high):
                root, row = np.sqrt(weight * p[i - begin] * c), order[i]
                for k in range(columns):
                    S[row, k] = root * (X[row, k] - X[0, k])


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(CompiledLoss):
    """Common part of the family: the ties rule and the loops.

    Parameters
    ----------
    ties
        ``"breslow"``: tied documents share their stage, whatever their row order. ``"order"``: of tied documents the
        first row counts as the best, as the papers print it.
    """

    ties: Ties = "breslow"

    family = "Plackett-Luce"
    reverse: ClassVar[bool] = False
    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, step=4.0, cost="n")
    loop = staticmethod(_plackett_luce)
    hessp_loop = staticmethod(_plackett_luce_hessp)
    stage_loop = staticmethod(_plackett_luce_stages)

    def __post_init__(self) -> None:
        check_choice("ties", self.ties, Ties)

    def stage_weights(self, queries: Queries) -> FloatArray:
        """Return W for each level of the queries."""
        raise NotImplementedError

    def tables(self, queries: Queries) -> Tables:
        """Return the levels and their stage weights, by the ties rule and the direction."""
        W, levels = self.stage_weights(queries), queries.levels
        if self.ties == "order":
            W, levels = np.repeat(W, levels.sizes), levels.untied()
        if self.reverse:
            W, levels = levels.flip(W), levels.descending()
        return Tables(-1.0 if self.reverse else 1.0, levels, W)


@dataclass(frozen=True, kw_only=True)
class ListMLE(PlackettLuce):
    """Likelihood of the ideal ranking under Plackett-Luce: every stage weighs 1.

    Parameters
    ----------
    ties
        As for `PlackettLuce`.

    References
    ----------
    Xia, Liu, Wang, Zhang, Li: Listwise approach to learning to rank. ICML 2008.
    """

    def stage_weights(self, queries: Queries) -> FloatArray:
        """Return W = 1."""
        return np.ones_like(queries.levels.label)


@dataclass(frozen=True, kw_only=True)
class WeightedPL(PlackettLuce):
    """Plackett-Luce likelihood with stages weighted by grade or position.

    Parameters
    ----------
    ties
        As for `PlackettLuce`.
    weights
        Table 8: ``"uniform"`` 1, ``"grade"`` y, ``"sqrt_grade"``, ``"gain"`` R, ``"reciprocal"`` 1/pi, ``"log"``
        1/log(1 + pi), with pi = 1 + the number of better documents.
    gain
        Gain in R: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set for R; None for the labels seen when binding. Give it when shards of a data set must agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 10-12, table 8.
    """

    weights: StageWeights = "reciprocal"
    gain: Gain = "exp2"
    grades: Grades = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weights", self.weights, StageWeights)
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def stage_weights(self, queries: Queries) -> FloatArray:
        """Return the weights of table 8."""
        return stage_weights(self.weights, queries, self.gain, self.grades)


@dataclass(frozen=True, kw_only=True)
class ReversePL(WeightedPL):
    """Plackett-Luce built from the bottom: at each stage the worst of the remaining documents is eliminated.

    Parameters
    ----------
    ties, weights, gain, grades
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
    ties
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
        if self.pcf is not None and not (np.isfinite(self.pcf) and self.pcf >= 1):
            raise ValueError(f"pcf must be finite and >= 1, or None, got {self.pcf}")
        object.__setattr__(self, "grades", check_grades(self.grades))

    def base(self, queries: Queries) -> float:
        """Return pcf for these queries."""
        if self.pcf is not None:
            return self.pcf
        largest = label_set(queries, self.grades).max(initial=0.0)
        return 3.0 if largest <= 2 else float(9 ** (1 / largest))

    def stage_weights(self, queries: Queries) -> FloatArray:
        """Return W = pcf^y / n_y."""
        levels, pcf = queries.levels, self.base(queries)
        with np.errstate(over="ignore"):
            W = pcf**levels.label / levels.sizes
        if not np.isfinite(W).all():
            raise ValueError(
                f"pcf ** y overflows at label {levels.label.max():g} with pcf={pcf:g}; rescale the labels or lower pcf"
            )
        warn_of_large_weights(self, pcf, levels.label)
        return W
