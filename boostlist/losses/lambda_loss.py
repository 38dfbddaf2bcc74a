r"""LambdaLoss: LambdaRank's gradient, pairs weighted by what a metric gains or loses when two documents swap places.

Burges, Ragno, Le, *Learning to rank with nonsmooth cost functions* (NIPS 2006); Burges, *From RankNet to LambdaRank to
LambdaMART* (2010). For y_i > y_j, d = f_i - f_j and p = 1 / (1 + e^d), each pair adds

    -w p to gradient_i,  w p to gradient_j,  w p (1 - p) to both diagonals

The weight w is the change of the metric when i and j swap places in the current order, score descending and equal
scores by row. With s < t the ranks of the two, and only ranks up to k counting, it has for every metric the form

    w = |z_s - z_t| (u_s - v_st)

    NDCG  z = a / DCG_max                 u_s = b(s)                   v_st = b(t)
    MAP   z = relevant / n_+              u_s = U_s / s - Q_s          v_st = U_t' / t - Q_{t-1}
    MRR   z = relevant                    u_s = 1/s                    v_st = max(1/t, 1/c_s), rows up to the first hit
    ERR   z = R = a / (a_max + 1)         u_s = N_s / s                v_st = N_s ( sum_{s<r<t} R_r q_r / r + q_t / t )

with the gain a, b(r) = 1 / log2(1 + r); U_s = 1 + the number of relevant documents before s, U_t' = the number up to t,
Q_r = the sum of 1/r over relevant documents up to r; c_s the rank of the first relevant document behind s; N_s the
chance that the reader goes on to s, q_r that from s to r, the document at s not asked. Beyond k the terms b, 1/t and
U'/t are 0. A document is relevant if its label reaches `threshold`.

The weights follow the order, so this is the gradient of no fixed function. The value is the logistic loss of the pairs
under the weights of the current order, sum w log(1 + e^{-d}). Only pairs with a document among the first k count:
O(n k) after a partial sort, O(n^2) without a cut-off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from boostlist.checks import check_choice, check_k, check_number
from boostlist.gains import Gain, check_gain, gains
from boostlist.losses.base import VALUE, Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.ratios import exponentials, ratios
from boostlist.losses.weights import Grades, check_grades, discount_sums, label_set
from boostlist.ordering import COUNT, Room, rank
from boostlist.parallel import REORDERED, compiled, inlined, inner

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.losses.compiled import Lists, Outputs
    from boostlist.queries import Queries

Metric = Literal["ndcg", "map", "mrr", "err"]
"""A metric of a ranked list whose changes weigh pairs."""

_NDCG, _MAP, _MRR, _ERR = range(4)


def swap_gains(
    metric: Literal["ndcg", "dcg", "map", "mrr", "err"],
    queries: Queries,
    *,
    k: int | None,
    gain: Gain,
    grades: Grades,
    threshold: float,
) -> FloatArray:
    """Return for each document the z of which a metric's change takes differences."""
    if metric in ("map", "mrr"):
        relevant = (queries.labels >= threshold).astype(np.float64)
        if metric == "mrr":
            return relevant
        number = np.add.reduceat(relevant, queries.start[:-1]) if queries.n_queries else np.zeros(0)
        share: FloatArray = relevant / np.repeat(np.maximum(number, 1), queries.sizes)
        return share
    a = gains(queries.labels, gain)
    if metric == "err":
        return a / (gains(label_set(queries, grades)[-1:], gain) + 1)
    if metric == "dcg":
        return a
    levels = queries.levels
    ideal = np.log(2) * levels.sum_by_query(gains(levels.label, gain) * discount_sums(queries, k))
    return np.asarray(np.divide(a, np.repeat(ideal, queries.sizes), out=np.zeros_like(a), where=a > 0))


@inner
def _arrange(f, z, m, order, listed, x, gain):  # type: ignore[no-untyped-def]
    """Complete the order of the first m documents by the others, in row order, and fill in scores and z."""
    n = f.size
    for i in range(n):
        listed[i] = False
    for r in range(m):
        listed[order[r]] = True
    r = m
    for i in range(n):
        if not listed[i]:
            order[r] = i
            r += 1
    for r in range(n):
        x[r] = f[order[r]]
        gain[r] = z[order[r]]


@inner
def _precision_terms(z, m, u, v):  # type: ignore[no-untyped-def]
    """Fill u and v of MAP."""
    hits = 0
    reciprocals = 0.0
    for r in range(m):
        before = reciprocals
        u[r] = (hits + 1) / (r + 1)
        if z[r] > 0:
            hits += 1
            reciprocals += 1 / (r + 1)
        u[r] -= reciprocals
        v[r] = hits / (r + 1) - before
    for r in range(m, v.size):
        v[r] = -reciprocals


@inner
def _next_hit(z, m, s):  # type: ignore[no-untyped-def]
    """Return the reciprocal of the rank of the first relevant document behind s, 0 if that is beyond m."""
    for r in range(s + 1, m):
        if z[r] > 0:
            return 1 / (r + 1)
    return 0.0


@inner
def _stopping_terms(R, m, s, going_on, v):  # type: ignore[no-untyped-def]
    """Fill ERR's v behind s."""
    q, total = going_on, 0.0
    for r in range(s + 1, m):
        v[r] = total + q / (r + 1)
        total += q * R[r] / (r + 1)
        q *= 1 - R[r]
    for r in range(m, v.size):
        v[r] = total


@inlined
def _swap_row(r, s, n, z, us, v, gradient, diag):  # type: ignore[no-untyped-def]
    """Add the pairs of the document at rank s with those behind it up to n, r_t = e^{f_t - f_s}.

    A positive difference of z means that s is the better document, and p = r / (1 + r); otherwise p = 1 / (1 + r).
    """
    pulls = curvatures = 0.0
    zs = z[s]
    for t in range(np.uint64(s + 1), np.uint64(n)):
        w = (zs - z[t]) * max(us - v[t], 0.0)
        inverse = 1 / (1 + r[t])
        other = r[t] * inverse
        pull = w * (other if w > 0 else inverse)
        curvature = abs(w) * (other * inverse)
        gradient[t] += pull
        diag[t] += curvature
        pulls += pull
        curvatures += curvature
    gradient[s] -= pulls
    diag[s] += curvatures


@inner
def _swap_value_row(x, s, n, z, us, v):  # type: ignore[no-untyped-def]
    total = 0.0
    for t in range(s + 1, n):
        w = (z[s] - z[t]) * max(us - v[t], 0.0)
        behind = x[t] - x[s] if w > 0 else x[s] - x[t]
        total += abs(w) * (max(behind, 0.0) + np.log1p(np.exp(-abs(behind))))
    return total


class Tables(NamedTuple):
    """The metric's number, the ranks to look at and their discounts, z by document, and `long` of `ordering.rank`."""

    metric: int
    k: int
    discount: FloatArray
    z: FloatArray
    long: bool | None


def _lambda(lists: Lists, f: FloatArray, need: int, out: Outputs, tables: Tables) -> None:
    """Make what the loop has of other types than double, each of which would take some compiling, and run it."""
    n = lists.longest
    _loop(lists, f, need, out, tables, np.empty(n, np.bool_), Room.of(n))


@partial(compiled, liberties=REORDERED)
def _loop(lists, f, need, out, tables, listed, space):  # type: ignore[no-untyped-def]
    metric, k, discount, z, long = tables
    order = space.order
    most = lists.longest
    x, gain, E, r = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    u, v, pull, curvature = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        gradient, diag = out.gradient[rows], out.diag[rows]
        n = gradient.size
        m = rank(f[rows], k, space, long)
        _arrange(f[rows], z[rows], m, order, listed, x, gain)
        near = exponentials(x, n, E)
        for t in range(n):
            pull[t] = curvature[t] = 0.0
        if metric == _NDCG:
            for t in range(n):
                u[t] = v[t] = discount[t] if t < m else 0.0
        elif metric == _MAP:
            _precision_terms(gain, m, u, v[:n])
        loss, going_on = 0.0, 1.0
        for s in range(m):
            if metric == _MRR:
                u[s], following = 1 / (s + 1), _next_hit(gain, m, s)
                for t in range(s + 1, n):
                    v[t] = max(following, 1 / (t + 1)) if t < m else following
            elif metric == _ERR:
                u[s] = going_on / (s + 1)
                _stopping_terms(gain, m, s, going_on, v[:n])
                going_on *= 1 - gain[s]
            ratios(near, x, E, s, s + 1, n, r)
            _swap_row(r, s, n, gain, u[s], v, pull, curvature)
            if need & VALUE:
                loss += _swap_value_row(x, s, n, gain, u[s], v)
            if metric == _MRR and gain[s] > 0:
                break
        for i in range(n):
            gradient[order[i]] = weight * pull[i]
            diag[order[i]] = weight * curvature[i]
        out.value[q] = loss


@dataclass(frozen=True, kw_only=True)
class LambdaLoss(CompiledLoss):
    """LambdaRank's gradient: pairs weighted by the change of a metric when the two documents swap places.

    What the hosts call lambdarank and rank:ndcg, rank:map, without their limits: lists of any length, labels of any
    size and fractional ones, and a choice of metric.

    Parameters
    ----------
    metric
        ``"ndcg"``, ``"map"``, ``"mrr"`` or ``"err"``.
    k
        Cut-off of the metric; None for the whole list.
    gain
        Gain a of NDCG and ERR: ``"exp2"`` for 2^y - 1, ``"linear"`` for y, or a table by grade.
    grades
        Label set, for a_max of ERR; None for the labels seen when binding. Give it when shards of a data set must
        agree.
    threshold
        Smallest label of a relevant document, for MAP and MRR.

    References
    ----------
    Burges, Ragno, Le: Learning to rank with nonsmooth cost functions. NIPS 2006.
    Burges: From RankNet to LambdaRank to LambdaMART: an overview. Microsoft Research, 2010.
    """

    metric: Metric = "ndcg"
    k: int | None = 30
    gain: Gain = "exp2"
    grades: Grades = None
    threshold: float = 1.0

    family = "of today's boosting systems"
    loop = staticmethod(_lambda)

    def __post_init__(self) -> None:
        check_choice("metric", self.metric, Metric)
        check_k(self.k)
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))
        check_number("threshold", self.threshold, above=True)

    @property
    def traits(self) -> Traits:
        """What the loss promises; it costs O(n k), or O(n^2) without a cut-off."""
        return Traits(
            diag="heuristic",
            convex=False,
            shift_invariant=True,
            conservative=False,
            cost="n^2" if self.k is None else "n k",
        )

    def tables(self, queries: Queries) -> Tables:
        """Return the ranks to look at, their discounts, and z."""
        longest_list = int(queries.sizes.max(initial=0))
        k = longest_list if self.k is None else min(self.k, longest_list)
        z = swap_gains(self.metric, queries, k=self.k, gain=self.gain, grades=self.grades, threshold=self.threshold)
        long = True if longest_list > COUNT else None
        return Tables(("ndcg", "map", "mrr", "err").index(self.metric), k, 1 / np.log2(np.arange(2.0, k + 2)), z, long)
