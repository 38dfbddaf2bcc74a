"""Put the documents of one query in order of score, as far as one looks: score descending, equal scores by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.parallel import compiled, inlined, inner, longest
from boostlist.sorting import SortSpace, sort, sort_space

COUNT = 400
"""Up to this many documents, comparing each with each beats a sort: the loop has no branches and is vectorised."""


class Room(NamedTuple):
    """The documents in order, three arrays to work in, of which `gain` serves callers too, and what a sort works in."""

    order: IntArray
    candidate: IntArray
    place: IntArray
    gain: FloatArray
    descending: FloatArray
    space: SortSpace

    @classmethod
    def of(cls, n: int) -> Room:
        """Return the arrays in which a query of n documents is ranked, made without a loop."""
        whole, real = np.empty((3, n), np.int64), np.empty((2, n))
        return cls(whole[0], whole[1], whole[2], real[0], real[1], SortSpace.of(n))


@compiled
def room(queries, start):  # type: ignore[no-untyped-def]
    """Return the arrays in which the longest of some queries is ranked."""
    n = longest(queries, start)
    whole, real = np.empty((3, n), np.int64), np.empty((2, n))
    return Room(whole[0], whole[1], whole[2], real[0], real[1], sort_space(n))


@inner
def rank(f, k, room, long):  # type: ignore[no-untyped-def]
    """Write the first k documents of a query to ``room.order``, and return their number.

    long is None where no list has more than `COUNT` documents, else True: then sorting is compiled too.
    """
    order, candidate, place, score, descending, space = room
    m = min(k, len(f))
    c = _select(f, m, candidate, score)
    if c <= COUNT:
        _count_better(score[:c], place)
        for i in range(c):
            if place[i] < m:
                order[place[i]] = candidate[i]
    elif long is not None:
        for i in range(c):
            descending[i] = -score[i]
        sort(descending, 0, c, score, place, space)
        for r in range(m):
            order[r] = candidate[place[r]]
    return m


@inner
def first_by_sort(f, m, room):  # type: ignore[no-untyped-def]
    """Write the first m documents of a query to ``room.order``, by a sort of all that may be among them."""
    order, candidate, place, score, descending, space = room
    c = _select(f, m, candidate, score)
    for i in range(c):
        descending[i] = -score[i]
    sort(descending, 0, c, score, place, space)
    for r in range(m):
        order[r] = candidate[place[r]]


@inlined
def _select(f, m, candidate, score):  # type: ignore[no-untyped-def]
    """Write documents and scores that may be among the first m, in row order, and return their number.

    The smallest maximum of m disjoint parts of the list is reached by at least m documents, and by few others. A part
    is every m-th row, which leaves few candidates in a sorted list too.
    """
    n, c = len(f), 0
    if 2 * m > n:
        for i in range(n):
            candidate[i], score[i] = i, f[i]
        return n
    for j in range(m):
        score[j] = f[j]
    for a in range(m, n - m + 1, m):
        for j in range(m):
            score[j] = max(score[j], f[a + j])
    bar = score[0]
    for j in range(1, m):
        bar = min(bar, score[j])
    for i in range(n):
        candidate[c] = i
        c += f[i] >= bar
    for i in range(c):
        score[i] = f[candidate[i]]
    return c


@inlined
def _count_better(score, place):  # type: ignore[no-untyped-def]
    """Count, for each document, those with a higher score or an equal one in an earlier row: its rank, from 0."""
    for i in range(len(score)):
        better = 0
        for j in range(i):
            behind = score[j] < score[i]
            place[j] += behind
            better += 1 - behind
        place[i] = better
