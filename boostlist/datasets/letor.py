"""Read LETOR text: ``label qid:id index:value ... # comment``, one document a line (grammar: see `_grammar`)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from boostlist.datasets._comments import positions
from boostlist.datasets._reader import LetorOptions, read
from boostlist.datasets._sources import Source
from boostlist.datasets.data import RankingData


def load_letor(
    source: Source | Iterable[Source],
    *,
    n_features: int | None = None,
    dtype: Any = "float32",
    sparse: bool | Literal["auto"] = "auto",
    zero_based: bool = False,
    null: float = math.nan,
    absent: float = 0.0,
    comments: bool = False,
    sort: bool = False,
    cache: bool | Literal["map"] = False,
    max_bytes: int | None = None,
    max_rows: int | None = None,
) -> RankingData:
    r"""Read a LETOR file, that is SVMlight text with query ids.

    Parameters
    ----------
    source
        A path, a file object opened in binary mode, or several of these, which are read as one text.
        Gzip, bzip2 and Zstandard are recognised by their first bytes.
    n_features
        Number of features; a higher index is then an error. None means the highest index found.
    dtype
        float32 or float64. A number equals ``np.dtype(dtype).type(float(text))`` to the last bit.
    sparse
        Whether X is a CSR matrix; "auto" takes CSR where that needs less than half of the memory.
    zero_based
        Whether the first feature has index 0. It is never guessed: with False an index 0 is an error.
    null
        What the value NULL stands for: nan or 0.
    absent
        What a feature that a line does not mention stands for: 0, as SVMlight has it, or nan.
    comments
        Whether to keep what follows ``#`` on each line (document ids, in LETOR). Where every line tells the position at
        which its document was shown, ``# position = 3``, the data has positions.
    sort
        Whether to bring the documents of a query together where they are scattered; queries then stand in order of
        their first document, documents in file order. Without it scattered queries are an error.
    cache
        Whether to keep a binary copy (beside the file, or in the user's cache folder where that cannot be written) and
        to read that next time. A copy that is damaged, or does not fit file and options, is made anew. "map" maps the
        copy into memory instead, for data larger than that; the system ends the process if another program cuts the
        copy off meanwhile.
    max_bytes, max_rows
        The most text, decompressed, and the most documents to be read; more is an error, found before arrays are made.
        For files that are not trusted: a gzip file of 1 MB may hold 1 GB. A path to a pipe or device, which may never
        end, is read only with `max_bytes`.

    Returns
    -------
    RankingData
        With X, y, qid in file order.

    Raises
    ------
    LetorError
        At the first line that does not follow the grammar, with file, line, column and the offending text.

    Examples
    --------
    >>> import io
    >>> from boostlist.datasets import load_letor
    >>> data = load_letor(io.BytesIO(b"2 qid:7 1:0.5 3:1e-2 # docid = 11\n0 qid:7 2:-4\n"))
    >>> data.X
    array([[ 0.5 ,  0.  ,  0.01],
           [ 0.  , -4.  ,  0.  ]], dtype=float32)
    >>> data.y, data.qid
    (array([2., 0.]), array([7, 7]))
    """
    options = LetorOptions(
        n_features, dtype, sparse, zero_based, float(null), float(absent), comments, sort, max_bytes, max_rows
    )
    single = isinstance(source, str) or hasattr(source, "__fspath__") or hasattr(source, "read")
    sources: list[Source] = [source] if single else list(source)  # type: ignore[list-item,arg-type]
    if not sources:
        raise ValueError("no files given")
    if cache not in (True, False, "map"):
        raise ValueError(f'cache must be True, False or "map", got {cache!r}')
    if cache:
        from boostlist.datasets.cache import cached

        return _placed(cached(sources, options, lambda: read(sources, options), mapped=cache == "map"))
    return _placed(read(sources, options))


def _placed(data: RankingData) -> RankingData:
    """Return the data with the positions that its comments tell."""
    shown = None if data.comments is None else positions(data.comments)
    return data if shown is None else replace(data, position=shown)
