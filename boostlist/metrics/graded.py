"""Metrics of graded relevance: DCG, NDCG, AvgNDCG and ERR.

With g_r the gain and R_r the stopping probability of the document at rank r,

    DCG@k = sum over r <= k of g_r d(r),    d(r) = 1 / log2(1 + r),    g = 2^y - 1
    NDCG@k = DCG@k / the largest DCG@k of any order
    AvgNDCG@K = (NDCG@1 + ... + NDCG@K) / K
    ERR@k = sum over r <= k of (R_r / r) prod over s < r of (1 - R_s),    R = (2^y - 1) / 2^y_max

DCG and NDCG: Järvelin and Kekäläinen, TOIS 2002, with the gain and discount of Burges et al., ICML 2005. ERR: Chapelle
et al., CIKM 2009, algorithm 2. AvgNDCG: the criterion of the cs-RgList paper and, over all ranks, LETOR's "MeanNDCG".
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from boostlist._typing import FloatArray
from boostlist.arrays import frozen
from boostlist.checks import check_choice, check_whole
from boostlist.gains import Gain, check_gain, gains
from boostlist.metrics.base import BoundMetric
from boostlist.metrics.per_host import Hosts, limited
from boostlist.metrics.ranking import RankingMetric, ideal_sum, ranked_gains, tie_order, without_gain
from boostlist.ordering import rank, room
from boostlist.parallel import compiled, over_queries
from boostlist.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Discount = Literal["log2", "letor"]
"""Discount of rank r: ``"log2"`` is 1 / log2(1 + r); ``"letor"``, of LETOR's scripts, is 1, 1, then 1 / log2(r)."""


@dataclass(frozen=True)
class _Discounted(RankingMetric):
    """What DCG, NDCG and AvgNDCG share."""

    _: KW_ONLY
    gain: Gain = "exp2"
    discount: Discount = "log2"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", check_gain(self.gain))
        check_choice("discount", self.discount, ("log2", "letor"))

    def discounts(self, queries: Queries) -> FloatArray:
        """Return the discount of each rank that counts."""
        r = np.arange(1.0, self.ranks(queries) + 1)
        return np.asarray(1 / np.log2(1 + r if self.discount == "log2" else np.maximum(r, 2)))


@dataclass(frozen=True)
class DCG(_Discounted):
    """Discounted cumulative gain, the sum of g_r d(r) over the first k ranks.

    Parameters
    ----------
    k
        Number of ranks that count; None for all.
    gain
        ``"exp2"`` for 2^y - 1, ``"linear"`` for y, or the gains of the grades 0, 1, 2, ...
    discount
        ``"log2"`` for 1 / log2(1 + r), ``"letor"`` for 1 at ranks 1 and 2, then 1 / log2(r).
    ties
        Order of equal scores: ``"stable"`` by row, ``"worst"``, ``"best"``, or ``"average"`` over all orders.
    empty
        Value of a query whose documents all have gain 0: 0, 1 or ``"skip"``.
    short
        A list shorter than k: ``"pad"`` takes missing documents as not relevant, ``"zero"`` scores the query 0.
    per_host
        How many documents of one host are listed, those with the highest scores; None for all. Such a metric is bound
        with the host of each document: ``metric.bind(queries, hosts).mean(scores)``.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([2, 0, 1], sizes=[3])
    >>> metrics.DCG(3).mean([0.3, 0.2, 0.1], queries)  # 3 / log2(2) + 0 / log2(3) + 1 / log2(4)
    3.5
    """

    prefix: ClassVar[str] = "dcg"

    _: KW_ONLY
    short: Literal["pad", "zero"] = "pad"
    per_host: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("short", self.short, ("pad", "zero"))
        if self.per_host is not None:
            check_whole("per_host", self.per_host, least=1, otherwise=", or None")
            if self.average:
                raise ValueError('per_host needs an order of equal scores: ties must be "stable", "worst" or "best"')

    def bind(self, queries: Queries, hosts: ArrayLike | None = None) -> BoundMetric:
        """Do all work that depends on labels alone.

        Parameters
        ----------
        queries
            The lists and their labels.
        hosts
            Id of each document's host, a number or a string; for a metric with ``per_host``.
        """
        return self._bound(queries, hosts)

    def _bind(self, queries: Queries, hosts: ArrayLike | None = None) -> BoundMetric:
        if (self.per_host is None) != (hosts is None):
            needs = (
                "takes no hosts" if self.per_host is None else "needs them: metric.bind(queries, hosts).mean(scores)"
            )
            raise ValueError(f"hosts, one for each document, go with per_host; {self} {needs}")
        gain = gains(queries.labels, self.gain)
        discount = self.discounts(queries)
        limit = None if hosts is None or self.per_host is None else Hosts.of(hosts, queries, self.per_host)
        divisor = self._divisor(queries, gain, discount, limit)
        listed = queries.sizes if limit is None else limit.listed(queries)
        if self.k is not None and self.short == "zero":
            divisor[listed < self.k] = np.inf
        bound = self.bind_sum(queries, gain, discount, divisor=divisor, empty=without_gain(queries, gain))
        return bound if limit is None else limited(bound, limit, gain, discount)

    def _divisor(self, queries: Queries, gain: FloatArray, discount: FloatArray, limit: Hosts | None) -> FloatArray:
        return np.ones(queries.n_queries)


@dataclass(frozen=True)
class NDCG(DCG):
    """DCG divided by the largest DCG of any order of the list: 1 for the ideal order.

    Parameters
    ----------
    k, gain, discount, ties, empty, short, per_host
        As for `DCG`; with ``per_host`` the largest DCG is that of lists with so many documents of a host.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([2, 0, 1], sizes=[3])
    >>> round(metrics.NDCG(3).mean([0.3, 0.2, 0.1], queries), 4)  # 3.5 / (3 / log2(2) + 1 / log2(3))
    0.9639
    """

    prefix: ClassVar[str] = "ndcg"

    def _divisor(self, queries: Queries, gain: FloatArray, discount: FloatArray, limit: Hosts | None) -> FloatArray:
        return ideal_sum(queries, gain, discount) if limit is None else limit.sums(gain, gain, discount)


@dataclass(frozen=True)
class AvgNDCG(_Discounted):
    """Mean of NDCG@1, NDCG@2, ..., NDCG@k.

    Parameters
    ----------
    k
        The last cut-off, 10 unless given; None for the length of each list.
    gain, discount, ties, empty
        As for `DCG`.
    short
        NDCG@j of a list shorter than j: ``"pad"`` takes missing documents as not relevant, so that it is the NDCG of
        the whole list; ``"zero"`` takes it as 0; ``"cut"`` leaves it out of the mean.
    """

    prefix: ClassVar[str] = "avgndcg"

    k: int | None = 10
    _: KW_ONLY
    short: Literal["pad", "zero", "cut"] = "pad"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("short", self.short, ("pad", "zero", "cut"))

    def _bind(self, queries: Queries) -> BoundMetric:
        gain = frozen(gains(queries.labels, self.gain))
        ranks = np.minimum(queries.sizes, self.ranks(queries))
        cutoffs = ranks if self.k is None or self.short == "cut" else np.full_like(ranks, self.k)
        # How often the NDCG at the last rank of the list counts.
        last = cutoffs - ranks + 1 if self.short == "pad" else np.ones_like(ranks)
        offset = np.cumsum(ranks) - ranks
        weight = np.empty(int(ranks.sum()))
        args = (gain, self.ranks(queries), frozen(self.discounts(queries)), frozen(last), frozen(offset))
        over_queries(_average_weights, queries.start, queries.start, *args, weight)
        divisor, empty = cutoffs.astype(np.float64), without_gain(queries, gain)
        return self.bind_sum(queries, gain, weight, divisor=divisor, empty=empty, offset=offset)


@compiled
def _average_weights(lo, hi, start, gain, k, discount, last, offset, weight):  # type: ignore[no-untyped-def]
    # With I_j the ideal DCG@j, the sum over j of NDCG@j is a weighted sum of gains: rank r has the weight
    # d(r) x sum over j >= r of 1 / I_j.
    space = room(range(lo, hi), start)
    for q in range(lo, hi):
        a, b = start[q], start[q + 1]
        ideal = ranked_gains(gain[a:b], gain[a:b], k, False, space)
        m = len(ideal)
        w = weight[offset[q] : offset[q] + m]
        if ideal[0] == 0:
            w[:] = 0
            continue
        for r in range(m):
            ideal[r] = ideal[r] * discount[r] + (ideal[r - 1] if r > 0 else 0.0)
        total = 0.0
        for r in range(m - 1, -1, -1):
            total += (last[q] if r == m - 1 else 1) / ideal[r]
            w[r] = discount[r] * total


@dataclass(frozen=True)
class ERR(RankingMetric):
    """Expected reciprocal rank: 1 / the rank at which a user stops who is satisfied by grade y with probability R.

    Parameters
    ----------
    k
        Number of ranks that count; None for all.
    max_grade
        The largest grade of the scale, y_max in R = (2^y - 1) / 2^y_max. None takes the largest label of the data set:
        give it a number where values over several data sets are to be compared.
    ties
        Order of equal scores: ``"stable"`` by row, ``"worst"`` or ``"best"``.
    empty
        Value of a query whose documents all have grade 0: 0, 1 or ``"skip"``.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([2, 0, 1], sizes=[3])
    >>> metrics.ERR(max_grade=2).mean([0.3, 0.2, 0.1], queries)  # 3/4 + 1/4 x 1/4 / 3
    0.7708333333333334
    """

    prefix: ClassVar[str] = "err"

    _: KW_ONLY
    max_grade: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("ties of ERR", self.ties, ("stable", "worst", "best"))
        if self.max_grade is not None and not 0 < self.max_grade < 1000:
            raise ValueError(f"max_grade must lie between 0 and 1000, got {self.max_grade!r}")

    def up_to(self, y_max: float) -> ERR:  # noqa: D102
        return replace(self, max_grade=y_max) if self.max_grade is None and 0 < y_max < 1000 else self

    def _bind(self, queries: Queries) -> BoundMetric:
        labels = queries.labels
        y_max = labels.max(initial=0) if self.max_grade is None else self.max_grade
        bad = np.flatnonzero(labels > y_max)
        if bad.size:
            raise ValueError(f"labels[{bad[0]}] is {labels[bad[0]]:g}, above max_grade={y_max:g} of {self.name}")
        R = gains(labels, "exp2") / np.exp2(y_max)
        order = tie_order(queries, self.ties)
        args = (frozen(R if order is None else R[order]), self.ranks(queries))
        return BoundMetric(self, queries, _err, args, np.ones(queries.n_queries), without_gain(queries, R), order)


@compiled
def _err(lo, hi, start, f, R, k, out):  # type: ignore[no-untyped-def]
    space = room(range(lo, hi), start)
    order = space.order
    for q in range(lo, hi):
        a, b = start[q], start[q + 1]
        err, going_on = 0.0, 1.0
        for r in range(rank(f[a:b], k, space, True)):
            R_r = R[a + order[r]]
            err += going_on * R_r / (r + 1)
            going_on *= 1 - R_r
        out[q] = err
