"""Metrics of binary relevance: precision, recall, MAP and MRR.

A document is relevant when its label reaches the threshold. With rel_r = 1 if the document at rank r is relevant, else
0, n_+ relevant documents in the list and P@r the precision at r,

    P@k = sum over r <= k of rel_r / k
    recall@k = sum over r <= k of rel_r / n_+
    AP@k = sum over r <= k of rel_r P@r / n_+
    RR@k = 1 / rank of the first relevant document, 0 if that is beyond k

MAP and MRR are the means of AP and RR over queries. Expected values over the orders of equal scores: McSherry and
Najork, ECIR 2008, sections 3.1 to 3.4.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal

import numpy as np

from boostlist._typing import FloatArray
from boostlist.arrays import frozen
from boostlist.checks import check_choice, check_number
from boostlist.metrics.base import BoundMetric
from boostlist.metrics.ranking import RankingMetric, tie, tie_order
from boostlist.ordering import rank, room
from boostlist.parallel import compiled
from boostlist.queries import Queries


@dataclass(frozen=True)
class _Binary(RankingMetric):
    """What the metrics of binary relevance share."""

    _: KW_ONLY
    threshold: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("threshold", self.threshold, above=True)

    def relevance(self, queries: Queries) -> tuple[FloatArray, FloatArray]:
        """Return the relevance of each document, 0 or 1, and the number of relevant documents of each query."""
        relevant = (queries.labels >= self.threshold).astype(np.float64)
        return relevant, np.diff(np.concatenate(([0.0], np.cumsum(relevant)))[queries.start])


@dataclass(frozen=True)
class _AtRank(_Binary):
    """What precision and recall share: they mean nothing over a whole list."""

    k: int = field()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None:
            raise ValueError(f"{self.prefix} needs a cut-off k, got None")


@dataclass(frozen=True)
class Precision(_AtRank):
    """Share of relevant documents among the first k.

    Parameters
    ----------
    k
        Number of ranks that count.
    threshold
        Smallest label of a relevant document.
    ties
        Order of equal scores: ``"stable"`` by row, ``"worst"``, ``"best"``, or ``"average"`` over all orders.
    empty
        Value of a query without relevant documents: 0, 1 or ``"skip"``.
    short
        A list shorter than k: ``"pad"`` divides by k all the same, ``"cut"`` by the length of the list, ``"zero"``
        scores the query 0.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([2, 0, 1, 0], sizes=[4])
    >>> metrics.Precision(2).mean([0.4, 0.3, 0.2, 0.1], queries)
    0.5
    """

    prefix: ClassVar[str] = "p"

    _: KW_ONLY
    short: Literal["pad", "cut", "zero"] = "pad"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("short", self.short, ("pad", "cut", "zero"))

    def _bind(self, queries: Queries) -> BoundMetric:
        relevant, n_relevant = self.relevance(queries)
        sizes, k = queries.sizes, float(self.k)
        divisor = np.full(queries.n_queries, k)
        if self.short != "pad":
            divisor[sizes < k] = sizes[sizes < k] if self.short == "cut" else np.inf
        return self.bind_sum(queries, relevant, np.ones(self.ranks(queries)), divisor=divisor, empty=n_relevant == 0)


@dataclass(frozen=True)
class Recall(_AtRank):
    """Share of the relevant documents that stand among the first k.

    Parameters
    ----------
    k, threshold, ties, empty
        As for `Precision`.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([2, 0, 1, 1], sizes=[4])
    >>> metrics.Recall(3).mean([0.4, 0.3, 0.2, 0.1], queries)  # two of three
    0.6666666666666666
    """

    prefix: ClassVar[str] = "recall"

    def _bind(self, queries: Queries) -> BoundMetric:
        relevant, n_relevant = self.relevance(queries)
        weight = np.ones(self.ranks(queries))
        return self.bind_sum(queries, relevant, weight, divisor=n_relevant, empty=n_relevant == 0)


@dataclass(frozen=True)
class MAP(_Binary):
    """Mean average precision: the mean of P@r over the ranks r of relevant documents.

    Parameters
    ----------
    k
        Number of ranks that count; None for all.
    threshold, ties, empty
        As for `Precision`.
    divisor
        ``"relevant"`` divides by the number of relevant documents, as trec_eval does; ``"reachable"`` by how many of
        them the first k ranks can hold, as LightGBM and XGBoost do, so that the ideal order always scores 1.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([2, 0, 1, 0], sizes=[4])
    >>> metrics.MAP().mean([0.4, 0.3, 0.2, 0.1], queries)  # (1/1 + 2/3) / 2
    0.8333333333333333
    """

    prefix: ClassVar[str] = "map"

    _: KW_ONLY
    divisor: Literal["relevant", "reachable"] = "relevant"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("divisor", self.divisor, ("relevant", "reachable"))

    def _bind(self, queries: Queries) -> BoundMetric:
        relevant, n_relevant = self.relevance(queries)
        k, order = self.ranks(queries), tie_order(queries, self.ties)
        args = (frozen(relevant if order is None else relevant[order]), k, self.average)
        divisor = n_relevant if self.divisor == "relevant" else np.minimum(n_relevant, k)
        return BoundMetric(self, queries, _average_precision, args, divisor, n_relevant == 0, order)


@compiled
def _average_precision(lo, hi, start, f, relevant, k, average, out):  # type: ignore[no-untyped-def]
    space = room(range(lo, hi), start)
    order = space.order
    for q in range(lo, hi):
        a, b = start[q], start[q + 1]
        rel = relevant[a:b]
        m = rank(f[a:b], k, space, True)
        total, hits, r = 0.0, 0.0, 0
        while r < m:
            size, n_rel = tie(f[a:b], rel, order, m, r) if average else (1, rel[order[r]])
            # A rank of the run is relevant with probability n_rel / size. Given that, each of the j ranks of the run
            # above it is relevant with probability (n_rel - 1) / (size - 1).
            above = (n_rel - 1) / (size - 1) if size > 1 else 0.0
            if n_rel > 0:
                for j in range(min(size, m - r)):
                    total += n_rel / size * (hits + j * above + 1) / (r + j + 1)
            hits += n_rel
            r += size
        out[q] = total


@dataclass(frozen=True)
class MRR(_Binary):
    """Mean reciprocal rank of the first relevant document.

    Parameters
    ----------
    k
        Number of ranks that count; None for all.
    threshold, ties, empty
        As for `Precision`.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([0, 2, 1, 0], sizes=[4])
    >>> metrics.MRR().mean([0.4, 0.3, 0.2, 0.1], queries)
    0.5
    """

    prefix: ClassVar[str] = "mrr"

    def _bind(self, queries: Queries) -> BoundMetric:
        relevant, n_relevant = self.relevance(queries)
        order = tie_order(queries, self.ties)
        args = (frozen(relevant if order is None else relevant[order]), self.ranks(queries), self.average)
        return BoundMetric(self, queries, _reciprocal_rank, args, np.ones(queries.n_queries), n_relevant == 0, order)


@compiled
def _reciprocal_rank(lo, hi, start, f, relevant, k, average, out):  # type: ignore[no-untyped-def]
    # Only the best relevant document matters: its rank is counted, not sorted for.
    for q in range(lo, hi):
        a, b = start[q], start[q + 1]
        first = -1
        for i in range(a, b):
            if relevant[i] > 0 and (first < 0 or f[i] > f[first]):
                first = i
        out[q] = 0.0
        if first < 0:
            continue
        above, before, size, n_rel = 0, 0, 0, 0
        for i in range(a, b):
            if f[i] > f[first]:
                above += 1
            elif f[i] == f[first]:
                before += i < first
                size += 1
                n_rel += relevant[i] > 0
        if not average:
            out[q] = 1 / (above + before + 1) if above + before < k else 0.0
            continue
        none_yet = 1.0
        for j in range(min(size - n_rel + 1, k - above)):
            p = n_rel / (size - j)
            out[q] += none_yet * p / (above + j + 1)
            none_yet *= 1 - p
