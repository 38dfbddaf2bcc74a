"""Gains: what a document of a grade is worth, for losses and metrics alike."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

import numpy as np

from boostlist._typing import FloatArray

Gain = Literal["exp2", "linear"] | tuple[float, ...]
"""``"exp2"`` for 2^y - 1, ``"linear"`` for y, or a table: the gain of the grades 0, 1, 2, ..."""


def check_gain(gain: Gain, name: str = "gain") -> Gain:
    """Return a valid gain, a table as a tuple of floats; name is what the parameter is called.

    Raises
    ------
    ValueError
        If the name is unknown, or a table is empty, not finite, negative or decreasing.
    """
    if isinstance(gain, str) or not isinstance(gain, Iterable):
        if gain not in ("exp2", "linear"):
            raise ValueError(f'{name} must be "exp2", "linear" or a table by grade, got {gain!r}')
        return gain
    table = tuple(float(value) for value in gain)
    rising = all(low <= high for low, high in pairwise(table))
    if not table or not np.isfinite(table).all() or table[0] < 0 or not rising:
        one = _singular(name)
        raise ValueError(f"a {one} table holds finite {one}s >= 0 that do not fall from grade to grade, got {table}")
    return table


def gains(labels: FloatArray, gain: Gain, name: str = "gain") -> FloatArray:
    """Return the gain of each label; name is what the parameter is called.

    Raises
    ------
    ValueError
        If 2^y overflows, or a label has no entry in the table.

    Examples
    --------
    >>> import numpy as np
    >>> gains(np.array([0.0, 1.0, 2.0]), "exp2")
    array([0., 1., 3.])
    """
    if gain == "linear":
        return labels
    if gain == "exp2":
        if labels.size and labels.max() >= 1000:
            raise ValueError(f'{name}="exp2" overflows: 2^y at label {labels.max():g}; use {name}="linear" or a table')
        return np.exp2(labels) - 1
    table = np.array(gain)
    bad = np.flatnonzero((labels != np.floor(labels)) | (labels >= len(table)))
    if bad.size:
        raise ValueError(
            f"label {labels[bad[0]]:g} has no entry in the {_singular(name)} table, which covers the grades 0 to "
            f"{len(table) - 1}"
        )
    return table[labels.astype(np.int64)]


def _singular(name: str) -> str:
    return name.removesuffix("s")
