"""Lists that show at most m documents of a host, as search engines do.

Moon, Smola, Chang, Zheng, *IntervalRank* (2010), section 4.3: of the documents of a host only the m with the highest
scores are listed, and the metric is that of the list. The documents that are listed then move up, so that what a query
scores is not a sum over ranks of the whole list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from boostlist.metrics.base import BoundMetric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist._typing import FloatArray, IntArray
    from boostlist.queries import Queries


@dataclass(frozen=True)
class Hosts:
    """The host of each document, and how many documents of one are listed.

    Attributes
    ----------
    query
        Number of the query of each document.
    group
        A number for each host of a query: documents of one query and host have the same.
    most
        How many documents of a host are listed.
    """

    query: IntArray
    group: IntArray
    most: int

    @classmethod
    def of(cls, hosts: ArrayLike, queries: Queries, most: int) -> Hosts:
        """Read the host ids, one for each document.

        Raises
        ------
        ValueError
            If their number is not that of the documents.
        """
        ids = np.asarray(hosts)
        if ids.shape != (queries.n_documents,):
            raise ValueError(
                f"hosts have shape {ids.shape} but there are {queries.n_documents:,} documents: give one id for each"
            )
        query = np.repeat(np.arange(queries.n_queries), queries.sizes)
        _, host = np.unique(ids, return_inverse=True)
        _, group = np.unique(query * (host.max(initial=0) + 1) + host, return_inverse=True)
        return cls(query, group, most)

    def listed(self, queries: Queries) -> IntArray:
        """Return how many documents of each query are listed."""
        sizes = np.bincount(self.group)
        query = np.zeros(len(sizes), np.int64)
        query[self.group] = self.query
        return np.bincount(query, np.minimum(sizes, self.most), queries.n_queries).astype(np.int64)

    def ranked(self, f: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the documents that are listed, query by query in order of score, and the rank of each from 0."""
        order = np.lexsort((-f, self.query))  # stable: equal scores by row
        together = np.argsort(self.group[order], kind="stable")
        kept = np.empty(len(f), np.bool_)
        kept[together] = _place(self.group[order][together]) < self.most
        order = order[kept]
        return order, _place(self.query[order])

    def sums(self, f: FloatArray, gain: FloatArray, weight: FloatArray) -> FloatArray:
        """Return for each query the sum of gain x weight over as many ranks as there are weights."""
        order, rank = self.ranked(f)
        first = rank < len(weight)
        order, rank = order[first], rank[first]
        queries = self.query.max(initial=-1) + 1
        return np.bincount(self.query[order], gain[order] * weight[rank], queries).astype(np.float64)


def _place(ids: IntArray) -> IntArray:
    """Return the place of each element in its run of equal ids, from 0."""
    begins = np.flatnonzero(np.diff(ids, prepend=-1))
    return np.arange(len(ids)) - np.repeat(begins, np.diff(begins, append=len(ids)))


@dataclass(frozen=True, eq=False)
class _HostLimited(BoundMetric):
    """A bound sum of gain x weight over the first ranks, of lists with few documents of a host."""

    def sums(self, f: FloatArray) -> FloatArray:
        hosts, gain, weight = self.args
        return np.asarray(hosts.sums(f, gain, weight))


def limited(bound: BoundMetric, hosts: Hosts, gain: FloatArray, weight: FloatArray) -> BoundMetric:
    """Return a bound sum of gain x weight with lists limited by hosts."""
    order = bound.order
    if order is not None:
        hosts, gain = replace(hosts, group=hosts.group[order]), gain[order]
    return _HostLimited(**(vars(bound) | {"args": (hosts, gain, weight)}))
