r"""Losses over all pairs of a long list, by `difference_sums` instead of a double loop.

With E(u) = log(2 (c + cosh u)), which is even, a pair of difference d = x_i - x_j has in these losses the form of E and
something linear:

    logistic loss  log(1 + e^{-d}) = (E(d) - d) / 2,  c = 1
    WUB            log(factor (c + cosh d)) - sign d = E(d) - sign d + log(factor / 2),  c = 1 / (|L| - 1)

so that sums over ordered pairs are sums over all pairs, less the linear part, which is a sum over grades. Where scores
spread so far that a double loop is cheaper, a loop here leaves ``done`` False.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boostlist.losses.base import VALUE
from boostlist.losses.difference_sums import (
    CURVATURES,
    SLOPES,
    VALUES,
    is_wide,
    lay_out_lists,
    list_sums,
    sum_time,
)
from boostlist.losses.graded_sums import graded_sums, graded_time
from boostlist.parallel import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import AnyArray, FloatArray, IntArray
    from boostlist.levels import Levels
    from boostlist.losses.compiled import Lists, Outputs
    from boostlist.losses.difference_sums import Profile
    from boostlist.losses.weights import Factors
    from boostlist.queries import Queries


class LongPairs(NamedTuple):
    """Tables of kappa sum over pairs of V [E(gamma d) - sign(y_i - y_j) gamma d + constant]; make them with `of`.

    Attributes
    ----------
    pair
        As `LongTables` has it.
    E0, E2
        E(0) and E''(0) where the sums hold each document with itself, else 0.
    gamma, kappa
        By query.
    grades
        Their number, by query.
    V
        Weights of pairs; None where all, those of the same grade among them, have the same, which is part of kappa.
    lead
        By level: the weights of a document's pairs with lower grades, less those with higher ones.
    offset
        By query: the constant, times the weights of all pairs.
    slopes, bends
        By query: weight x kappa x gamma, and gamma times that.
    """

    pair: FloatArray
    profile: Profile
    E0: float
    E2: float
    gamma: FloatArray
    kappa: FloatArray
    grades: IntArray
    V: Factors | None
    lead: FloatArray
    offset: FloatArray
    slopes: FloatArray
    bends: FloatArray

    @classmethod
    def of(
        cls,
        pair: float,
        profile: Profile,
        constant: float,
        gamma: FloatArray,
        kappa: FloatArray,
        V: Factors,
        queries: Queries,
        *,
        tied: bool,
    ) -> LongPairs:
        """Make the tables; if tied, pairs of the same grade count too, and all by the same V = alpha beta.

        `pair` is what a pair that counts takes in the double loop.
        """
        levels, c = queries.levels, profile.c
        flipped = V._replace(A=levels.flip(V.A), B=levels.flip(V.B))
        count = levels.sizes.astype(np.float64)
        below = _pairs_below(levels, count, V)
        above = levels.flip(_pairs_below(levels, levels.flip(count), flipped))
        if tied:
            same = V.alpha * V.beta
            E0, E2, lead, kappa = math.log(2 * (1 + c)), 1 / (1 + c), (below - above) / same, same * kappa
            pairs = np.asarray(0.5 * queries.sizes * (queries.sizes - 1))
            counting = np.ones_like(kappa)
        else:
            E0, E2, lead, pairs = 0.0, 0.0, below - above, levels.sum_by_query(count * below)
            counting = 1 - levels.sum_by_query(count**2) / queries.sizes**2
        slopes = queries.weight * kappa * gamma
        weights, grades, bends = None if tied else V, np.diff(levels.start), slopes * gamma
        return cls(
            pair * counting, profile, E0, E2, gamma, kappa, grades, weights, lead, constant * pairs, slopes, bends
        )

    @property
    def density(self) -> FloatArray:
        """As `LongTables` has it."""
        return self.gamma / self.profile.width

    def time(self, query: IntArray, n: Any, boxes: Any) -> Any:
        """Return what gradient and diagonal take, as `LongTables` has it."""
        if self.V is None:
            return sum_time(self.profile, 2, n, boxes)
        return graded_time(self.profile, SLOPES, self.grades[query], n, boxes)


def _pairs_below(levels: Levels, count: FloatArray, V: Factors) -> FloatArray:
    """Return for each level the sum of V over the documents of lower ones, as `pairwise_loops` has it."""
    dA, dB = (np.abs(np.diff(each, prepend=0.0)) for each in (V.A, V.B))
    dA[levels.start[:-1]] = dB[levels.start[:-1]] = 0.0
    m00 = levels.sum_below(count)
    m10, m01 = V.alpha * m00 + levels.sum_below(dA * m00), V.beta * m00 + levels.sum_below(dB * m00)
    step = dA * m01 + dB * (m10 + dA * m00)
    return np.asarray(V.alpha * V.beta * m00 + levels.sum_below(step) + step)


class Part(NamedTuple):
    """Some lists, one after the other, their documents in ascending order of grade.

    Attributes
    ----------
    rows, grades
        List r has the documents ``rows[r, 0] <= i < rows[r, 1]`` and the grades ``grades[r, 0] <= g < grades[r, 1]``.
    level
        The level that each grade is.
    bounds
        Where each grade begins, and at the end the number of documents.
    order
        That of `Levels`, of all queries.
    """

    lists: Lists
    rows: IntArray
    grades: IntArray
    level: IntArray
    bounds: IntArray
    order: NDArray[np.int32]

    @classmethod
    def of(cls, lists: Lists, levels: Levels) -> Part:
        """Lay out the queries that a loop is to handle."""
        query = lists.query
        rows, grades = (side_by_side(start[query], start[query + 1]) for start in (lists.start, levels.start))
        counts = grades[:, 1] - grades[:, 0]
        level = np.arange(grades[-1, 1]) + np.repeat(levels.start[query] - grades[:, 0], counts)
        bounds = levels.document[level] - np.repeat(lists.start[query] - rows[:, 0], counts)
        return cls(lists, rows, grades, level, np.append(bounds, rows[-1, 1]), levels.order)

    @property
    def size(self) -> int:
        """Number of documents."""
        return int(self.bounds[-1])

    @property
    def wide(self) -> bool:
        """Whether this is one list so long that its sums are made on all threads."""
        return is_wide(self.rows)

    def in_order(self, values: FloatArray, gamma: FloatArray) -> FloatArray:
        """Return gamma, by query, times the difference of each value from the first of its list."""
        x, query = np.empty(self.size), self.lists.query
        first, factor = self.lists.start[query], gamma[query]
        shift = first - self.rows[:, 0]
        _gather(self.rows, first, shift, self.order, values, factor, x)
        return x

    def by_document(self, values: AnyArray) -> Any:
        """Return for each document what its level has."""
        return np.repeat(values[self.level], np.diff(self.bounds))

    def write(self, values: FloatArray, factor: FloatArray, done: NDArray[np.bool_], out: FloatArray) -> None:
        """Put the values, times a factor by query, where the documents of those lists belong that are done."""
        query = self.lists.query
        own = done[query]
        first, rows = self.lists.start[query[own]], self.rows[own]
        _scatter(rows, first, first - rows[:, 0], self.order, values, factor[query[own]], out)


def side_by_side(begin: IntArray, end: IntArray) -> IntArray:
    """Return where pieces of the lengths end - begin begin and end when they are put one after the other."""
    ends = np.cumsum(end - begin)
    return np.stack((ends - (end - begin), ends), axis=1)


def documents_without(values: FloatArray, levels: Levels) -> IntArray:
    """Return for each query the documents up to the last of its levels whose value is 0."""
    documents, none = np.zeros(len(levels.start) - 1, np.int64), values == 0
    np.maximum.at(documents, levels.query[none], levels.document[1:][none] - levels.rows[levels.query[none]])
    return documents


def counting_pairs(bare: IntArray, levels: Levels) -> FloatArray:
    """Return for each query the share of its pairs that count: all but those of two bare documents."""
    return np.asarray(1 - (bare / np.diff(levels.rows)) ** 2)


@compiled
def _gather(rows, first, shift, order, values, factor, x):  # type: ignore[no-untyped-def]
    for r in range(rows.shape[0]):
        base = values[first[r]]
        for i in range(rows[r, 0], rows[r, 1]):
            x[i] = factor[r] * (values[first[r] + order[shift[r] + i]] - base)


@compiled
def _scatter(rows, first, shift, order, values, factor, out):  # type: ignore[no-untyped-def]
    for r in range(rows.shape[0]):
        for i in range(rows[r, 0], rows[r, 1]):
            out[first[r] + order[shift[r] + i]] = factor[r] * values[i]


def _add_sums(part: Part, tables: LongPairs, x: FloatArray, w: FloatArray, first: int, sums: FloatArray) -> Any:
    """Add the sums of the functions from `first` on, and return for which lists they were made."""
    profile, pair = tables.profile, tables.pair[part.lists.query]
    if tables.V is None:
        layout = lay_out_lists(part.rows, x, profile, pair, partial(tables.time, part.lists.query))
        if layout.found.any():
            list_sums(layout, w, layout, profile, first, sums)
        return layout.found
    V = tables.V._replace(A=tables.V.A[part.level], B=tables.V.B[part.level])
    return graded_sums(part.grades, pair, x, w, part.bounds, V, profile, first, sums, sums)


def pairs(part: Part, f: FloatArray, need: int, out: Outputs, tables: LongPairs, done: NDArray[np.bool_]) -> None:
    """Value, gradient and diagonal."""
    query, x = part.lists.query, part.in_order(f, tables.gamma)
    first = VALUES if need & VALUE else SLOPES
    sums = np.zeros((part.size, CURVATURES + 1 - first))
    done[query] = _add_sums(part, tables, x, np.ones(part.size), first, sums)
    if not done[query].any():
        return
    lead = part.by_document(tables.lead)
    sums[:, -2] -= lead
    sums[:, -1] -= tables.E2
    part.write(sums[:, -2], tables.slopes, done, out.gradient)
    part.write(sums[:, -1], tables.bends, done, out.diag)
    if need & VALUE:  # the sums have each pair from both sides
        potential = np.add.reduceat(0.5 * (sums[:, 0] - tables.E0) - lead * x, part.rows[:, 0])
        out.value[query] = tables.kappa[query] * (potential + tables.offset[query])


def pairs_hessp(
    part: Part, f: FloatArray, v: FloatArray, out: FloatArray, tables: LongPairs, done: NDArray[np.bool_]
) -> None:
    """Hessian-vector product: sum_j V E'' (v_i - v_j)."""
    x = part.in_order(f, tables.gamma)
    direction = part.in_order(v, np.ones_like(tables.gamma))
    bends, moved = np.zeros((2, part.size, 1))
    done[part.lists.query] = _add_sums(part, tables, x, np.ones(part.size), CURVATURES, bends)
    _add_sums(part, tables, x, direction, CURVATURES, moved)
    part.write(direction * bends[:, 0] - moved[:, 0], tables.bends, done, out)
