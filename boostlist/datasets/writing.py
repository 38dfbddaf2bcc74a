"""Write LETOR text that `load_letor` reads back to the last bit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from boostlist.checks import warn
from boostlist.datasets._comments import with_position
from boostlist.datasets._sources import create_text
from boostlist.datasets.data import RankingData
from boostlist.files import PathLike

_BUFFER_BYTES = 4 << 20


def write_letor(data: RankingData | Iterable[RankingData], path: PathLike, *, zero_based: bool = False) -> Path:
    """Write ranking data as LETOR text.

    The numbers read back as the same numbers; missing values are written NULL. Positions are part of the comment:
    ``# position = 3``. The file appears under its name only when it is complete.

    Parameters
    ----------
    data
        The data, or parts of it, which are written one after the other: an iterator may make them as they are needed.
    path
        The file; the suffixes .gz, .bz2 and .zst compress it.
    zero_based
        Whether to count features from 0.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    ValueError
        If query ids are not whole numbers >= 0, a number is infinite, a feature is categorical, a comment has a line
        feed or NUL byte in it, or a position white space.
    """
    path = Path(path)
    with create_text(path) as file:
        for part in (data,) if isinstance(data, RankingData) else data:
            _check(part)
            for text in _texts(part, 0 if zero_based else 1):
                file.write(text)
    return path


def _check(data: RankingData) -> None:
    if not np.issubdtype(data.qid.dtype, np.integer) or data.qid.min(initial=0) < 0:
        raise ValueError(
            f"query ids in LETOR text are whole numbers >= 0, got {data.qid.dtype}; number the queries first"
        )
    if not np.isfinite(data.y).all():
        raise ValueError(f"label {data.y[~np.isfinite(data.y)][0]} cannot be written; labels must be finite")
    if np.isinf(data.X.data if data.is_sparse else data.X).any():
        raise ValueError("X holds infinite values, which LETOR text does not have")
    if data.categories:
        raise ValueError(f"LETOR text has no categories, such as those of {next(iter(data.categories))!r}; encode them")
    if data.query_weight is not None and np.any(data.query_weight != 1):
        warn("LETOR text has no place for the weights of queries: they are not written")


def _texts(data: RankingData, base: int) -> Iterable[bytes]:
    from boostlist.datasets import _format

    if data.is_sparse:
        values, indices, indptr = data.X.data, data.X.indices.astype(np.int32), data.X.indptr.astype(np.int64)
    else:
        values, indices, indptr = np.ravel(data.X), np.empty(0, np.int32), np.empty(0, np.int64)
    widest = int(np.diff(indptr).max(initial=0)) if data.is_sparse else data.n_features
    out = np.empty(max(_BUFFER_BYTES, (widest + 2) * _format.TOKEN_BYTES), np.uint8)
    ends, same = np.empty(data.n_documents, np.int64), np.empty(1, values.dtype)
    qid = data.qid.astype(np.int64)
    first = 0
    while first < data.n_documents:
        stop, by_number = _format.documents(
            first, data.y, qid, values, indices, indptr, data.n_features, base, out, ends, same
        )
        if stop > first:
            text = out[: ends[stop - 1] + 1].tobytes()
            plain = data.comments is None and data.position is None
            yield text if plain else b"".join(_commented(text.splitlines(), data, first))
        if by_number:
            yield b"".join(_commented([_slow_line(data, stop, base)], data, stop))
            stop += 1
        first = stop


def _commented(lines: list[bytes], data: RankingData, first: int) -> Iterable[bytes]:
    for i, line in enumerate(lines, first):
        words = "" if data.comments is None else str(data.comments[i])
        if data.position is not None:
            words = with_position(words, data.position[i])
        comment = words.encode("utf-8", "surrogateescape")
        if b"\n" in comment or b"\0" in comment:
            raise ValueError(f"the comment of document {i} has a line feed or NUL byte in it")
        yield line + (b" # " + comment if comment else b"") + b"\n"


def _slow_line(data: RankingData, i: int, base: int) -> bytes:
    row: Any = data.X[i]
    columns, values = (row.indices, row.data) if data.is_sparse else (range(data.n_features), row)
    features = (
        f"{j + base}:{'NULL' if np.isnan(value) else repr(float(value))}"
        for j, value in zip(columns, values, strict=True)
    )
    return " ".join((repr(float(data.y[i])), f"qid:{data.qid[i]}", *features)).encode()
