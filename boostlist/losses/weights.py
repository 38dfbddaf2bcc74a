"""What a grade counts for: label sets, relevance R, and the stage weights of table 8.

Tran, Phung, Venkatesh, *Learning Rank Functionals: An Empirical Study* (2011), tables 8 and 9. There a document of
grade y is worth R = (2^y - 1) / 2^|L|; here R = a / (2 a_max + 1) with the gain a, which for a = 2^y - 1 is
(2^y - 1) / (2^(y_max + 1) - 1): nearly the same for the grades 0, ..., y_max, and below 1 for all others too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from boostlist.gains import Gain, gains

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.queries import Queries

StageWeights = Literal["uniform", "grade", "sqrt_grade", "gain", "reciprocal", "log"]
"""Weights by grade y or label position pi: 1, y, sqrt(y), R, 1/pi, 1/log(1 + pi)."""

Grades = tuple[float, ...] | None
"""The label set: every grade that may occur, or None for those seen when binding."""


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise a ValueError that lists the choices, given as a Literal or a tuple, unless value is one of them."""
    allowed = choices if isinstance(choices, tuple) else get_args(choices)
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def check_grades(grades: Grades) -> Grades:
    """Return a label set as an ascending tuple of floats.

    Raises
    ------
    ValueError
        If a grade is negative, not finite or given twice.
    """
    if grades is None:
        return None
    ascending = tuple(sorted(float(grade) for grade in grades))
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


def relevance(labels: FloatArray, queries: Queries, gain: Gain, grades: Grades) -> FloatArray:
    """Return R = a / (2 a_max + 1), a_max the gain of the largest grade of the label set."""
    largest = label_set(queries, grades)[-1:]
    return gains(labels, gain) / (2 * gains(largest, gain) + 1)


def stage_weights(scheme: StageWeights, queries: Queries, gain: Gain, grades: Grades) -> FloatArray:
    """Return the weight of each level of the queries."""
    levels = queries.levels
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
