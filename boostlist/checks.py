"""Checks of parameters that losses, metrics and models have in common, and warnings that point at the user's line."""

from __future__ import annotations

import difflib
import inspect
import operator
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from boostlist.arrays import vector

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist._typing import FloatArray

# A call may reach boostlist through these.
_NOT_THE_USER = ("boostlist", "joblib", "lightgbm", "sklearn", "xgboost")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line outside boostlist, its hosts and scikit-learn from which the call came."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_USER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise a ValueError that lists the choices, given as a Literal or a tuple, unless value is one of them."""
    allowed = choices if isinstance(choices, tuple) else get_args(choices)
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str, prefix: str = "", suffix: str = "", cutoff: float = 0.6
) -> str:
    """Return "did you mean a?" of what is near to a name in any case, between prefix and suffix; else `otherwise`."""
    by_small = {each.lower(): each for each in known}
    near = [by_small[each] for each in difflib.get_close_matches(name.lower(), list(by_small), cutoff=cutoff)]
    return f"did you mean {' or '.join(prefix + each + suffix for each in near)}?" if near else otherwise


def check_call(cls: type, args: Sequence[object], parameters: Mapping[str, object]) -> None:
    """Raise a TypeError that names the parameters of a class if it takes others than these."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    try:
        signature.bind_partial(None, *args, **parameters)
    except TypeError as error:
        known = list(signature.parameters)[1:]
        unknown = next((name for name in parameters if name not in known), "")
        hint = did_you_mean(unknown, known, "")
        raise TypeError(
            f"{cls.__name__}: {error}; {f'{hint} Its' if hint else 'its'} parameters, by name, are {', '.join(known)}"
        ) from None


def check_whole(name: str, value: int, least: int, otherwise: str = "") -> int:
    """Return a whole number of at least `least`; raise a ValueError, which names what else is allowed, for all else."""
    try:
        whole = operator.index(value)
    except TypeError:
        whole = least - 1
    if whole < least or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number of at least {least}{otherwise}, got {value!r}")
    return whole


def check_number(name: str, value: Any, least: float = 0, *, above: bool = False, otherwise: str = "") -> None:
    """Raise a ValueError, which names what else is allowed, unless value is finite and at least, or above, `least`."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and np.isfinite(value) and (value > least if above else value >= least)):
        raise ValueError(f"{name} must be finite and {'>' if above else '>='} {least:g}{otherwise}, got {value!r}")


def check_k(k: int | None) -> None:
    """Raise a ValueError unless a cut-off is None or a whole number of at least 1."""
    if k is not None:
        check_whole("k", k, least=1, otherwise=", or None for the whole list")


def check_init_score(init_score: ArrayLike, rows: int) -> FloatArray:
    """Return scores that others are to be added to, one for each row.

    Raises
    ------
    ValueError
        If they are not as many as rows, or one is not finite.
    """
    start = vector(init_score, "init_score")
    if len(start) != rows:
        raise ValueError(f"init_score has {len(start):,} entries; give one for each of the {rows:,} rows")
    bad = np.flatnonzero(~np.isfinite(start))
    if bad.size:
        raise ValueError(f"init_score[{bad[0]}] is {start[bad[0]]}; scores must be finite")
    return start


@contextmanager
def concerning(what: str) -> Iterator[None]:
    """Let a ValueError begin with what it is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error


def check_weight(weight: ArrayLike, documents: int, queries: int, name: str) -> FloatArray:
    """Return weights, one for each document or for each query, as an array.

    Raises
    ------
    ValueError
        If their number is wrong, or one is negative or not finite.
    """
    array = np.asarray(weight, np.float64)
    if array.shape not in ((documents,), (queries,)):
        raise ValueError(
            f"{name} has shape {array.shape}; give one weight for each of the {documents:,} rows or for each of the "
            f"{queries:,} queries"
        )
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {array[bad[0]]}; weights must be finite and >= 0")
    return array
