r"""Cross entropy between a target distribution and the softmax of the scores: ListNet, MulticlassLogistic.

With p = softmax(f) over the documents of a query and targets t >= 0 that sum to 1,

    l = - sum_i t_i log p_i,   gradient = p - t,   H_ii = p_i (1 - p_i),   (H v)_i = p_i (v_i - sum_k p_k v_k)

- ListNet: Cao et al., *Learning to rank: from pairwise approach to listwise approach* (2007), with the probability of
  being on top. t = softmax(y), or the gains t = a / sum a.
- MulticlassLogistic: Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), eq. 5: the best document is the class
  to be found. Of several best documents each is the class once, with equal weight: t = 1 / (their number).

On a list of a single grade these losses pull the scores together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from boostlist.checks import check_choice
from boostlist.gains import Gain, check_gain, gains
from boostlist.losses.base import VALUE, Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.exponential import exp
from boostlist.parallel import compiled, inner

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.queries import Queries

Target = Literal["softmax", "gain"]


class Tables(NamedTuple):
    """The target of each document."""

    t: FloatArray


@inner
def _exponentials(f, p):  # type: ignore[no-untyped-def]
    """Fill p = e^{f - m} with m the largest score; return m and the sum of p."""
    m = -np.inf
    for i in range(f.size):
        m = max(m, f[i])
    for i in range(f.size):
        p[i] = exp(max(f[i] - m, -700.0))
    Z = 0.0
    for i in range(f.size):
        Z += p[i]
    return m, Z


@compiled
def _cross_entropy(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    p = np.empty(lists.longest)
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        fq, tq, gradient, diag = f[rows], tables.t[rows], out.gradient[rows], out.diag[rows]
        m, Z = _exponentials(fq, p)
        for i in range(fq.size):
            pi = p[i] / Z
            gradient[i] = weight * (pi - tq[i])
            diag[i] = weight * (pi * ((Z - p[i]) / Z))
        if need & VALUE:
            gap = 0.0
            for i in range(fq.size):
                gap += tq[i] * (m - fq[i])
            out.value[q] = gap + np.log(Z)


@compiled
def _cross_entropy_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    p = np.empty(lists.longest)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        vq, out_q = v[rows], out[rows]
        _, Z = _exponentials(f[rows], p)
        mean = 0.0
        for i in range(vq.size):
            mean += p[i] * vq[i]
        mean /= Z
        for i in range(vq.size):
            out_q[i] = lists.weight[q] * (p[i] / Z) * (vq[i] - mean)


@dataclass(frozen=True, kw_only=True)
class CrossEntropy(CompiledLoss):
    """Common part: the loops, for targets given in proportion."""

    family = "Plackett-Luce"
    traits = Traits(diag="exact", convex=True, shift_invariant=True, hessp=True, step=4.0, cost="n")
    loop = staticmethod(_cross_entropy)
    hessp_loop = staticmethod(_cross_entropy_hessp)

    def proportions(self, queries: Queries, largest: FloatArray) -> FloatArray:
        """Return numbers >= 0 proportional to t within each query; `largest` is each document's query's top label."""
        raise NotImplementedError

    def tables(self, queries: Queries) -> Tables:
        """Return t."""
        first, sizes = queries.start[:-1], queries.sizes
        t = self.proportions(queries, np.repeat(np.maximum.reduceat(queries.labels, first), sizes))
        total = np.add.reduceat(t, first)
        return Tables(t / np.repeat(np.where(total > 0, total, 1.0), sizes))

    def idle(self, queries: Queries, tables: Tables) -> IntArray:
        """Return the queries without a target."""
        return np.flatnonzero(np.maximum.reduceat(tables.t, queries.start[:-1]) == 0)


@dataclass(frozen=True, kw_only=True)
class ListNet(CrossEntropy):
    """Cross entropy between the probabilities of being on top that labels and scores give.

    Parameters
    ----------
    target
        ``"softmax"``: t = softmax(y), as in print. ``"gain"``: t = a / sum a, so that documents without gain have no
        share; a query without any gain contributes nothing.
    gain
        Gain a for ``target="gain"``: ``"exp2"`` for 2^y - 1, ``"linear"`` for y, or a table by grade.

    References
    ----------
    Cao, Qin, Liu, Tsai, Li: Learning to rank: from pairwise approach to listwise approach. ICML 2007.
    """

    target: Target = "softmax"
    gain: Gain = "exp2"

    def __post_init__(self) -> None:
        check_choice("target", self.target, Target)
        object.__setattr__(self, "gain", check_gain(self.gain))

    def proportions(self, queries: Queries, largest: FloatArray) -> FloatArray:
        """Return e^y or the gains, relative to the largest of the query."""
        if self.target == "softmax":
            return np.exp(queries.labels - largest)
        top = gains(largest, self.gain)
        return gains(queries.labels, self.gain) / np.where(top > 0, top, 1.0)


@dataclass(frozen=True, kw_only=True)
class MulticlassLogistic(CrossEntropy):
    """Probability that the best document is drawn first; of several best documents, the mean over them.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 5.
    """

    def proportions(self, queries: Queries, largest: FloatArray) -> FloatArray:
        """Return 1 for the best documents of each query."""
        return np.where(queries.labels == largest, 1.0, 0.0)
