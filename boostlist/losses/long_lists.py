r"""Losses over all pairs of a long list, by `difference_sums` instead of a double loop.

With E(u) = log(2 (c + cosh u)), which is even, a pair of difference d = x_i - x_j has in these losses the form of E and
something linear:

    logistic loss  log(1 + e^{-d}) = (E(d) - d) / 2,  c = 1
    WUB            log(factor (c + cosh d)) - sign d = E(d) - sign d + log(factor / 2),  c = 1 / (|L| - 1)

so that sums over ordered pairs are sums over all pairs, less the linear part, which is a sum over grades. Where scores
spread so far that a double loop is cheaper, a loop here leaves ``done`` False.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boostlist.arrays import frozen
from boostlist.losses.base import VALUE
from boostlist.losses.difference_sums import CURVATURES, SLOPES, VALUES, is_wide, lay_out_lists, list_sums
from boostlist.losses.graded_sums import graded_sums
from boostlist.parallel import compiled, over_blocks

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
        What one of n^2 pairs takes in the double loop, in ns.
    E0, E2
        E(0) and E''(0) where the sums hold each document with itself, else 0.
    gamma, kappa
        By query.
    V
        Weights of pairs; None where all, those of the same grade among them, have the same, which is part of kappa.
    lead
        By level: the weights of a document's pairs with lower grades, less those with higher ones.
    offset
        By query: the constant, times the weights of all pairs.
    slopes, bends
        By query: weight x kappa x gamma, and gamma times that.
    """

    pair: float
    profile: Profile
    E0: float
    E2: float
    gamma: FloatArray
    kappa: FloatArray
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
        """Make the tables; if tied, pairs of the same grade count too, and all by the same V = alpha beta."""
        levels, c = queries.levels, profile.c
        below = _pairs_below(levels, levels.sizes, V)
        above = levels.flip(
            _pairs_below(levels, levels.flip(levels.sizes), V._replace(A=levels.flip(V.A), B=levels.flip(V.B)))
        )
        E0 = E2 = 0.0
        pairs = levels.sum_by_query(levels.sizes * below)
        if tied:
            same = V.alpha * V.beta
            E0, E2, kappa = np.log(2 * (1 + c)), 1 / (1 + c), same * kappa
            below, above = below / same, above / same
            pairs = 0.5 * queries.sizes * (queries.sizes - 1)
        slopes = queries.weight * kappa * gamma
        tables = (gamma, kappa, None if tied else V, below - above, constant * pairs, slopes, slopes * gamma)
        return cls(pair, profile, E0, E2, *(frozen(each) if isinstance(each, np.ndarray) else each for each in tables))


def _pairs_below(levels: Levels, count: FloatArray, V: Factors) -> FloatArray:
    """Return for each level the sum of V over the documents of lower ones, as `pairwise_loops` has it."""
    dA, dB = (np.abs(np.diff(each, prepend=0.0)) for each in (V.A, V.B))
    dA[levels.start[:-1]] = dB[levels.start[:-1]] = 0.0
    m00 = levels.sum_below(count.astype(np.float64))
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
        """Whether this is one list so long that it is cut into blocks, for all threads."""
        return is_wide(self.rows)

    def over_blocks(self, step: Callable[[int, int, int], None]) -> None:
        """Call ``step(k, lo, hi)`` for the k-th block of documents, on all threads."""
        if self.wide:
            over_blocks(lambda k, _, lo, hi: step(k, lo, hi), self.rows)
        else:
            step(0, 0, self.size)

    def in_order(self, values: FloatArray, gamma: FloatArray) -> FloatArray:
        """Return gamma, by query, times the difference of each value from the first of its list."""
        x = np.empty(self.size)
        self.over_blocks(lambda _, lo, hi: _gather(self.lists, self.rows, values, gamma, self.order, lo, hi, x))
        return x

    def by_document(self, values: AnyArray) -> Any:
        """Return for each document what its level has."""
        return np.repeat(values[self.level], np.diff(self.bounds))

    def write(self, values: FloatArray, factor: FloatArray, done: NDArray[np.bool_], out: FloatArray) -> None:
        """Put the values, times a factor by query, where the documents of those lists belong that are done."""
        self.over_blocks(
            lambda _, lo, hi: _scatter(self.lists, self.rows, values, factor, self.order, done, lo, hi, out)
        )


def side_by_side(begin: IntArray, end: IntArray) -> IntArray:
    """Return where pieces of the lengths end - begin begin and end when they are put one after the other."""
    ends = np.cumsum(end - begin)
    return np.stack((ends - (end - begin), ends), axis=1)


def documents_without(values: FloatArray, levels: Levels) -> IntArray:
    """Return for each query the documents up to the last of its levels whose value is 0."""
    documents, none = np.zeros(len(levels.start) - 1, np.int64), values == 0
    np.maximum.at(documents, levels.query[none], levels.document[1:][none] - levels.rows[levels.query[none]])
    return documents


@compiled
def _gather(lists, rows, values, gamma, order, lo, hi, x):  # type: ignore[no-untyped-def]
    for r in range(rows.shape[0]):
        q, at = lists.query[r], rows[r, 0]
        row = lists.start[q]
        for i in range(max(lo, at) - at, min(hi, rows[r, 1]) - at):
            x[at + i] = gamma[q] * (values[row + order[row + i]] - values[row])


@compiled
def _scatter(lists, rows, values, factor, order, done, lo, hi, out):  # type: ignore[no-untyped-def]
    for r in range(rows.shape[0]):
        q, at = lists.query[r], rows[r, 0]
        row = lists.start[q]
        if done[q]:
            for i in range(max(lo, at) - at, min(hi, rows[r, 1]) - at):
                out[row + order[row + i]] = factor[q] * values[at + i]


def _sums(part: Part, tables: LongPairs, x: FloatArray, w: FloatArray, first: int) -> tuple[FloatArray, Any]:
    """Return the sums of the functions from `first` on, and for which lists they were made."""
    sums, profile = np.zeros((part.size, CURVATURES + 1 - first)), tables.profile
    if tables.V is None:
        layout = lay_out_lists(part.rows, x, tables.pair, sums.shape[1], profile)
        list_sums(layout, part.rows, w, part.rows, profile, first, sums)
        return sums, layout.boxes > 0
    V = tables.V._replace(A=tables.V.A[part.level], B=tables.V.B[part.level])
    return sums, graded_sums(part.grades, tables.pair, x, w, part.bounds, V, profile, first, sums, sums)


def pairs(part: Part, f: FloatArray, need: int, out: Outputs, tables: LongPairs, done: NDArray[np.bool_]) -> None:
    """Value, gradient and diagonal."""
    query, x = part.lists.query, part.in_order(f, tables.gamma)
    sums, done[query] = _sums(part, tables, x, np.ones(part.size), VALUES if need & VALUE else SLOPES)
    lead = part.by_document(tables.lead)
    slope, bend = np.empty((2, part.size))

    def finish(_: int, lo: int, hi: int) -> None:
        np.subtract(sums[lo:hi, -2], lead[lo:hi], out=slope[lo:hi])
        np.subtract(sums[lo:hi, -1], tables.E2, out=bend[lo:hi])

    part.over_blocks(finish)
    part.write(slope, tables.slopes, done, out.gradient)
    part.write(bend, tables.bends, done, out.diag)
    if need & VALUE:  # the sums have each pair from both sides
        potential = np.add.reduceat(0.5 * (sums[:, 0] - tables.E0) - lead * x, part.rows[:, 0])
        out.value[query] = tables.kappa[query] * (potential + tables.offset[query])


def pairs_hessp(
    part: Part, f: FloatArray, v: FloatArray, out: FloatArray, tables: LongPairs, done: NDArray[np.bool_]
) -> None:
    """Hessian-vector product: sum_j V E'' (v_i - v_j)."""
    x = part.in_order(f, tables.gamma)
    direction = part.in_order(v, frozen(np.ones_like(tables.gamma)))
    bends, done[part.lists.query] = _sums(part, tables, x, np.ones(part.size), CURVATURES)
    moved, _ = _sums(part, tables, x, direction, CURVATURES)
    part.write(direction * bends[:, 0] - moved[:, 0], tables.bends, done, out)
