"""Arrays as loops want them: checked vectors of float64, views that no one can write to, memory that serves again."""

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


class Room:
    """Arrays of one length and type whose memory serves again once nobody holds them any more.

    An array that is made anew in every call costs a fault for each of its pages, where the allocator gives them back.
    """

    def __init__(self, length: int, dtype: Any = np.float64) -> None:
        self._length, self._dtype = length, dtype
        self._spare: list[AnyArray] = []

    def empty(self) -> Any:
        """Return an array that holds anything."""
        try:
            memory = self._spare.pop()
        except IndexError:
            memory = np.empty(self._length, self._dtype)
        return np.asarray(_Lease(memory, self._spare))


class _Lease:
    """The base of an array and of its views, which hands back their memory when the last of them goes."""

    def __init__(self, memory: AnyArray, spare: list[AnyArray]) -> None:
        self.__array_interface__ = memory.__array_interface__
        self._memory, self._spare = memory, spare

    def __del__(self) -> None:
        self._spare.append(self._memory)


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
