"""Rank correlation of scores and labels: Kendall's tau and Spearman's rho.

    tau = (n_c - n_d) / (n_c + n_d + n_t)

over the pairs of documents whose labels differ: n_c have their scores in the same order, n_d in the opposite one, n_t
have equal scores (Somers' D of the scores given the labels, which without ties is Kendall's tau). Pairs with equal
labels say nothing about a ranking and are left out, so that a perfect order has tau = 1 however few grades there are.

    rho = the correlation of the ranks of scores and the ranks of labels, equal values sharing the mean of their ranks

Queries whose labels are all equal have neither: they are skipped unless ``empty`` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boostlist.arrays import frozen
from boostlist.metrics.base import BoundMetric, Empty, Metric
from boostlist.ordering import rank, room
from boostlist.parallel import compiled, inner
from boostlist.queries import Queries


@dataclass(frozen=True, kw_only=True)
class KendallTau(Metric):
    """Kendall's tau over the pairs of documents with different labels; equal scores count half for, half against.

    Parameters
    ----------
    empty
        Value of a query whose labels are all equal: 0, 1 or ``"skip"``.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([2, 0, 1, 0], sizes=[4])
    >>> metrics.KendallTau().mean([0.4, 0.3, 0.2, 0.1], queries)  # four pairs in order, one not: (4 - 1) / 5
    0.6
    """

    prefix: ClassVar[str] = "kendalltau"

    empty: Empty = "skip"

    def _bind(self, queries: Queries) -> BoundMetric:
        levels = queries.levels
        n, n_g = queries.sizes.astype(np.float64), levels.sizes.astype(np.float64)
        pairs = (n * n - levels.sum_by_query(n_g * n_g)) / 2
        args = (levels.order, levels.start, levels.document)
        return BoundMetric(self, queries, _concordance, args, pairs, pairs == 0)


@compiled
def _concordance(lo, hi, start, f, order, level, document, out):  # type: ignore[no-untyped-def]
    """Write n_c - n_d of each query: grades ascending, a Fenwick tree counts the scores of the lower grades."""
    space = room(range(lo, hi), start)
    by_score, place = space.order, space.candidate
    for q in range(lo, hi):
        a = start[q]
        distinct = 0
        for r in range(rank(f[a : start[q + 1]], start[q + 1] - a, space, True)):
            if r == 0 or f[a + by_score[r]] != f[a + by_score[r - 1]]:
                distinct += 1
            place[by_score[r]] = distinct
        tree = np.zeros(distinct + 1, np.int64)
        total, lower = 0, 0
        for g in range(level[q], level[q + 1]):
            for d in range(document[g], document[g + 1]):
                # Of the lower grades: those scored below, minus those scored above. The best score has place 1.
                j = place[order[d]]
                total += lower - _count(tree, j) - _count(tree, j - 1)
            for d in range(document[g], document[g + 1]):
                j = place[order[d]]
                while j <= distinct:
                    tree[j] += 1
                    j += j & -j
            lower += document[g + 1] - document[g]
        out[q] = total


@inner
def _count(tree, j):  # type: ignore[no-untyped-def]
    total = 0
    while j > 0:
        total += tree[j]
        j -= j & -j
    return total


@dataclass(frozen=True, kw_only=True)
class SpearmanRho(Metric):
    """Spearman's rho: the correlation of score ranks and label ranks, equal values sharing the mean of their ranks.

    A query whose scores are all equal scores 0.

    Parameters
    ----------
    empty
        Value of a query whose labels are all equal: 0, 1 or ``"skip"``.

    Examples
    --------
    >>> from boostlist import Queries, metrics
    >>> queries = Queries.from_sizes([3, 0, 2, 1], sizes=[4])
    >>> round(metrics.SpearmanRho().mean([0.4, 0.3, 0.2, 0.1], queries), 12)  # 1 - 6 (0 + 4 + 1 + 1) / (4 x 15)
    0.4
    """

    prefix: ClassVar[str] = "spearmanrho"

    empty: Empty = "skip"

    def _bind(self, queries: Queries) -> BoundMetric:
        levels, middle = queries.levels, (queries.sizes - 1) / 2
        # Midrank of a level, from 0 at the lowest, relative to the middle of its list.
        midrank = (levels.document[:-1] + levels.document[1:] - 1) / 2 - (queries.start[:-1] + middle)[levels.query]
        norm = np.sqrt(levels.sum_by_query(levels.sizes * midrank**2))
        label_rank = np.empty(queries.n_documents)
        first = np.repeat(queries.start[:-1], queries.sizes)
        label_rank[first + levels.order] = np.repeat(midrank, levels.sizes)
        return BoundMetric(self, queries, _rank_product, (frozen(label_rank),), norm, norm == 0)


@compiled
def _rank_product(lo, hi, start, f, label_rank, out):  # type: ignore[no-untyped-def]
    """Write the product of label ranks and score ranks, both centred, divided by the norm of the score ranks."""
    space = room(range(lo, hi), start)
    by_score = space.order
    for q in range(lo, hi):
        a, b = start[q], start[q + 1]
        n = rank(f[a:b], b - a, space, True)
        product, squares, r = 0.0, 0.0, 0
        while r < n:
            end, total = r, 0.0
            while end < n and f[a + by_score[end]] == f[a + by_score[r]]:
                total += label_rank[a + by_score[end]]
                end += 1
            midrank = (n - r - end) / 2
            product += midrank * total
            squares += (end - r) * midrank * midrank
            r = end
        out[q] = product / np.sqrt(squares) if squares > 0 else 0.0
