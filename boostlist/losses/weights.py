"""What a grade counts for: label sets, relevance R, the stage weights of table 8 and the pair weights of table 9.

Tran, Phung, Venkatesh, *Learning Rank Functionals: An Empirical Study* (2011), tables 8 and 9. There a document of
grade y is worth R = (2^y - 1) / (2^|L| - 1), with |L| grades 0, ..., y_max; here R = a / (2 a_max + 1) with the gain a,
which for a = 2^y - 1 is (2^y - 1) / (2^(y_max + 1) - 1), the same, and below 1 for all other gains too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from boostlist.gains import Gain, gains

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.levels import Levels
    from boostlist.queries import Queries

StageWeights = Literal["uniform", "grade", "sqrt_grade", "gain", "reciprocal", "log"]
"""Weights by grade y or label position pi: 1, y, sqrt(y), R, 1/pi, 1/log(1 + pi)."""

PairWeights = Literal["uniform", "grade", "gain", "dcg"]
"""Weights of a pair y_i > y_j: 1, y_i - y_j, R_i - R_j, (R_i - R_j)(eta_i - eta_j), with eta = 1 / log(1 + pi)."""

Normalizer = Literal["documents", "pairs", "dcg"] | None
"""What a query's pair weights are divided by: its number of documents or pairs, its ideal DCG sum R eta, or nothing."""

Grades = tuple[float, ...] | None
"""The label set: every grade that may occur, or None for those seen when binding."""


def check_grades(grades: Grades) -> Grades:
    """Return a label set as an ascending tuple of floats.

    Raises
    ------
    ValueError
        If a grade is negative, not finite or given twice.
    """
    if grades is None:
        return None
    ascending = tuple(sorted(float(grade) for grade in grades)) if isinstance(grades, Iterable) else ()
    if not ascending or not np.isfinite(ascending).all() or ascending[0] < 0 or len(set(ascending)) < len(ascending):
        raise ValueError(f"grades must be distinct, finite and >= 0, got {grades}")
    return ascending


def label_set(queries: Queries, grades: Grades) -> FloatArray:
    """Return the label set in ascending order.

    Raises
    ------
    ValueError
        If a label is not among the given grades.
    """
    seen = np.unique(queries.levels.label)
    if grades is None:
        return seen
    foreign = np.setdiff1d(seen, grades)
    if foreign.size:
        raise ValueError(f"label {foreign[0]:g} is not in grades={grades}; list every grade that occurs")
    return np.array(grades)


def enumerable_label_set(queries: Queries, grades: Grades) -> FloatArray:
    """Return the label set for a loss that sums over it.

    Raises
    ------
    ValueError
        If there are more than 64 grades, or a label is not among the given ones.
    """
    labels = label_set(queries, grades)
    if len(labels) > 64:
        raise ValueError(
            f"there are {len(labels)} grades, and this loss models every one of them; it takes at most 64. "
            "Round or bin the labels"
        )
    return labels


def relevance(labels: FloatArray, queries: Queries, gain: Gain, grades: Grades) -> FloatArray:
    """Return R = a / (2 a_max + 1), a_max the gain of the largest grade of the label set."""
    largest = label_set(queries, grades)[-1:]
    return gains(labels, gain) / (2 * gains(largest, gain) + 1)


def stage_weights(scheme: StageWeights, levels: Levels, queries: Queries, gain: Gain, grades: Grades) -> FloatArray:
    """Return the weight of each of the levels: those of the queries, or another grouping of their documents."""
    match scheme:
        case "uniform":
            return np.ones_like(levels.label)
        case "grade":
            return levels.label
        case "sqrt_grade":
            return np.sqrt(levels.label)
        case "gain":
            return relevance(levels.label, queries, gain, grades)
        case "reciprocal":
            return 1 / levels.position
        case "log":
            return 1 / np.log1p(levels.position)


def by_document(queries: Queries, by_level: FloatArray) -> FloatArray:
    """Return what levels have, for each document."""
    levels = queries.levels
    values = np.empty_like(queries.labels)
    values[np.repeat(queries.start[:-1], queries.sizes) + levels.order] = np.repeat(by_level, levels.sizes)
    return values


class Factors(NamedTuple):
    """The weight of a pair y_i >= y_j as (alpha + A_i - A_j)(beta + B_i - B_j), with A and B by level.

    A and B rise with the grade, so that both factors are >= 0: no sum of weights ever cancels.
    """

    alpha: float
    beta: float
    A: FloatArray
    B: FloatArray


def pair_weights(scheme: PairWeights, queries: Queries, gain: Gain, grades: Grades) -> Factors:
    """Return the weights of table 9 for pairs of the queries' levels."""
    levels = queries.levels
    zero = np.zeros_like(levels.label)
    match scheme:
        case "uniform":
            return Factors(1.0, 1.0, zero, zero)
        case "grade":
            return Factors(0.0, 1.0, levels.label, zero)
        case "gain":
            return Factors(0.0, 1.0, relevance(levels.label, queries, gain, grades), zero)
        case "dcg":
            return Factors(0.0, 0.0, relevance(levels.label, queries, gain, grades), 1 / np.log1p(levels.position))


def pair_scale(scheme: Normalizer, queries: Queries, gain: Gain, grades: Grades, *, tied: bool = False) -> FloatArray:
    """Return for each query the factor on its pair weights; 0 where the query has no pair, or no ideal DCG.

    Pairs of equal grade are pairs only if ``tied``.
    """
    levels = queries.levels
    count = levels.sizes.astype(np.float64)
    below = levels.sum_below(count) + (0.5 * (count - 1) if tied else 0.0)
    pairs = levels.sum_by_query(count * below)
    match scheme:
        case None:
            divisor = np.ones_like(pairs)
        case "documents":
            divisor = queries.sizes.astype(np.float64)
        case "pairs":
            divisor = pairs
        case "dcg":
            R = relevance(levels.label, queries, gain, grades)
            divisor = levels.sum_by_query(R * discount_sums(queries, None))
    return np.divide(1, divisor, out=np.zeros_like(pairs), where=(divisor > 0) & (pairs > 0))


def discount_sums(queries: Queries, k: int | None) -> FloatArray:
    """Return for each level the sum of 1 / log(1 + r) over its documents' ranks r <= k in an ideal ranking."""
    levels = queries.levels
    discount = 1 / np.log1p(np.arange(1, queries.sizes.max(initial=0) + 1))
    if k is not None:
        discount[k:] = 0.0
    total = np.concatenate(([0.0], np.cumsum(discount)))
    sums: FloatArray = total[levels.position + levels.sizes - 1] - total[levels.position - 1]
    return sums
