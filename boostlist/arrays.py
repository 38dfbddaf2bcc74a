"""Arrays as loops want them: checked vectors of float64, and views that no one can write to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import AnyArray, FloatArray, IntArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def frozen(array: AnyArray) -> Any:
    """Return a read-only view: no one can change what was checked, and loops see a single array type."""
    view = array.view()
    view.flags.writeable = False
    return view


def vector(values: ArrayLike, what: str) -> FloatArray:
    """Copy anything one-dimensional (or a single column) to a fresh float64 vector.

    Raises
    ------
    ValueError
        If it is not, or does not hold numbers; `what` is what the message calls it.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be numbers: {error}") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0].copy()
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, got shape {array.shape}")
    return array


def whole_numbers(values: ArrayLike, what: str) -> IntArray:
    """Copy a vector of whole numbers.

    Raises
    ------
    ValueError
        As `vector` does, and if a number is not whole.
    """
    array = vector(values, what)
    bad = np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array))))
    if bad.size:
        raise ValueError(f"{what} must be whole numbers: {what}[{bad[0]}] is {array[bad[0]]}")
    return array.astype(np.int64)
