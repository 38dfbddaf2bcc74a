r"""Smoothed metrics: NDCG, reciprocal rank and ERR of soft positions.

Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), eq. 6-7, after Qin, Liu, Li (2010). The position of a
document counts those ahead of it softly, with a temperature tau: for s_ij = sigma((f_j - f_i) / tau),

    h_i = 1 + sum_{j != i} s_ij

    SmoothNDCG:  l = 1 - sum_i a_i b(h_i) / DCG_max,  b(h) = 1 / log2(1 + h)
    SmoothMRR:   l = 1 - mean over the documents of the best grade of 1 / h_i
    SmoothERR:   l = 1 - sum_i T_i,  T_i = R_i / h_i prod_{j != i} (1 - R_j s_ij),  R = a / (a_max + 1)

with a the gain, and R = (2^y - 1) / 2^{y_max} for a = 2^y - 1. For NDCG at a cut-off k the discount b is multiplied by
the soft gate 1 / (1 + (h / (k + 1/2))^{4 / tau}), which for tau -> 0 is 1 at the positions up to k and 0 beyond, and
DCG_max is that of k positions. The gate fades by a power of h, not exponentially: at equal scores all positions are
about n / 2, and a document there must still feel which way is up.

These losses are not convex. Write w_ij = sigma'((f_j - f_i) / tau) = s_ij s_ji. For NDCG and MRR, with c_i = dl/dh_i,

    gradient_k = 1/tau sum_j w_kj (c_j - c_k),   D_k = 2/tau^2 sum_j w_kj ( |c_j - c_k| + e_j S_j + e_k S_k )

D majorizes H. The pair {k, j} has in H the curvature (c_k - c_j) sigma'' / tau^2 along f_k - f_j; |sigma''| <= sigma',
and the matrix (1, -1; -1, 1) is below 2 on the diagonal. In h the losses are concave, but for the gate: there e_i >= 0
is the positive part of d^2 l / dh_i^2, which multiplies u u' <= diag(|u| |u|_1), u = grad h_i, and S_i = sum_j w_ij.

Without the gate, every Newton step with a learning rate up to 1 lowers l. For D_k >= 2 |gradient_k| / tau, so that no
step, nor the mean of steps in a leaf, exceeds tau / 2, no difference of scores changes by more than tau, and sigma' by
no more than a factor e. From this and l being concave in h, l(f + s) <= l(f) + gradient' s + (e - 2) s' D s.

For ERR, with G_ij = -dT_i / ds_ij = T_i [ 1/h_i + R_j / (1 - R_j s_ij) ],

    gradient_k = 1/tau sum_j w_kj (G_jk - G_kj),   D_k = 2/tau^2 sum_j w_kj (G_jk + G_kj)

D majorizes H: the second derivative of T_i in the s_ij is positive semi-definite but for -T_i rho^2 on the diagonal,
rho = R_j / (1 - R_j s_ij), and |rho sigma'' + rho^2 sigma'^2| <= rho sigma' because rho sigma' <= s_ij.

Long lists cost O(n), see `long_positions` and `long_err`; but ERR O(n^2) with more than 16 grades of positive gain that
go beyond 11 or so, with gains of 2^y - 1. Short lists take a double loop: only pairs with a document of positive gain
count (MRR: of the best grade), and they need no exp of their own. Queries of one grade contribute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist.checks import check_k, check_number
from boostlist.gains import Gain, check_gain, gains
from boostlist.losses import long_err, long_positions, smoothed_loops
from boostlist.losses.base import Traits
from boostlist.losses.compiled import CompiledLoss, LongLoops
from boostlist.losses.long_positions import LongPositions
from boostlist.losses.smoothed_loops import ERRTables, PositionTables
from boostlist.losses.weights import Grades, check_grades, discount_sums, label_set

if TYPE_CHECKING:
    from boostlist._typing import IntArray
    from boostlist.queries import Queries


@dataclass(frozen=True, kw_only=True)
class Smoothed(CompiledLoss):
    """Common part of the family: the temperature.

    Parameters
    ----------
    tau
        Temperature of the soft positions, > 0: the difference of scores at which an order counts as 73 % certain.
    """

    tau: float = 1.0

    family = "smoothed metrics"
    traits = Traits(diag="majorizer", convex=False, shift_invariant=True, cost="n")

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=True)

    def idle(self, queries: Queries, tables: Any) -> IntArray:
        """Return the queries of a single grade."""
        return np.flatnonzero(np.diff(queries.levels.start) == 1)


@dataclass(frozen=True, kw_only=True)
class SmoothNDCG(Smoothed):
    """1 - NDCG@k of soft positions.

    Parameters
    ----------
    tau
        As for `Smoothed`.
    k
        Cut-off; None for the whole list.
    gain
        Gain a: ``"exp2"`` for 2^y - 1, ``"linear"`` for y, or a table by grade.

    References
    ----------
    Qin, Liu, Li: A general approximation framework for direct optimization of information retrieval measures.
    Information Retrieval 13, 2010.
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 6-7, table 7.
    """

    k: int | None = None
    gain: Gain = "exp2"

    loop = staticmethod(smoothed_loops.soft_positions)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_k(self.k)
        object.__setattr__(self, "gain", check_gain(self.gain))

    def tables(self, queries: Queries) -> PositionTables:
        """Return the cut-off, 1 / DCG_max and the gains."""
        levels = queries.levels
        a = gains(levels.label, self.gain)
        ideal = levels.sum_by_query(a * discount_sums(queries, self.k))
        scale = np.divide(1, ideal, out=np.zeros_like(ideal), where=ideal > 0)
        return PositionTables.of(self.tau, False, self.k, scale, levels, a)

    def idle(self, queries: Queries, tables: PositionTables) -> IntArray:
        """Return the queries of a single grade or with DCG_max = 0."""
        return np.union1d(super().idle(queries, tables), np.flatnonzero(tables.scale == 0))

    def long_loops(self, queries: Queries, tables: PositionTables) -> LongLoops:
        """Return a loop that sums over boxes of scores."""
        return LongLoops(long_positions.soft_positions, None, LongPositions.of(0.19, tables, queries))


@dataclass(frozen=True, kw_only=True)
class SmoothMRR(Smoothed):
    """1 - the reciprocal of the soft position of the best documents, the mean over them where several are best.

    Parameters
    ----------
    tau
        As for `Smoothed`.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 6-7.
    """

    loop = staticmethod(smoothed_loops.soft_positions)

    def tables(self, queries: Queries) -> PositionTables:
        """Return the best documents in the place of gains."""
        levels = queries.levels
        best = np.where(levels.position == 1, 1 / levels.sizes, 0.0)
        return PositionTables.of(self.tau, True, None, np.ones(queries.n_queries), levels, best)

    def long_loops(self, queries: Queries, tables: PositionTables) -> LongLoops:
        """Return a loop that sums over boxes of scores."""
        return LongLoops(long_positions.soft_positions, None, LongPositions.of(0.19, tables, queries))


@dataclass(frozen=True, kw_only=True)
class SmoothERR(Smoothed):
    """1 - expected reciprocal rank of soft positions.

    Parameters
    ----------
    tau
        As for `Smoothed`.
    gain
        Gain a in the chance R that a document satisfies: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set, for a_max in R; None for the labels seen when binding. Give it when shards of a data set must agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 6-7, table 7.
    """

    gain: Gain = "exp2"
    grades: Grades = None

    traits = Traits(diag="majorizer", convex=False, shift_invariant=True, cost="n G")
    loop = staticmethod(smoothed_loops.err)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def tables(self, queries: Queries) -> ERRTables:
        """Return R and 1 - R."""
        levels = queries.levels
        a = gains(levels.label, self.gain)
        top = gains(label_set(queries, self.grades)[-1:], self.gain) + 1
        return ERRTables(float(self.tau), levels, a / top, (top - a) / top)

    def long_loops(self, queries: Queries, tables: ERRTables) -> LongLoops | None:
        """Return a loop that sums over boxes of scores, unless there are many grades, and high ones."""
        sums = long_err.long_err(0.3, tables)
        return None if sums is None else LongLoops(long_err.soft_err, None, sums)
