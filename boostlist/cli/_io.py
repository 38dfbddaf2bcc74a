"""What the commands share: data and results by path, where ``-`` is standard input or output."""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from boostlist.cli._usage import UsageError

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.datasets import RankingData

FORMATS = ("letor", "csv", "parquet")
_COMPRESSED = (".gz", ".bz2", ".zst")


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Declare how data is read."""
    group = parser.add_argument_group("reading")
    group.add_argument("--format", choices=FORMATS, help="format of the data; by default its suffix tells, else LETOR")
    group.add_argument("--qid-column", default="qid", metavar="NAME", help="query column of CSV and Parquet")
    group.add_argument("--label-column", default="label", metavar="NAME", help="label column of CSV and Parquet")
    group.add_argument(
        "--weight-column",
        default="weight",
        metavar="NAME",
        help="column of CSV and Parquet with the weight of the query, if there is one (weight); '' makes it a feature",
    )
    group.add_argument(
        "--docid-column",
        default="docid",
        metavar="NAME",
        help="column of CSV and Parquet with ids of documents, if there is one (docid); '' makes it a feature",
    )
    group.add_argument(
        "--position-column",
        default="position",
        metavar="NAME",
        help="column of CSV and Parquet that says where it was shown, if there is one (position); '': a feature",
    )
    group.add_argument("--zero-based", action="store_true", help="LETOR features are counted from 0")
    group.add_argument("--sort", action="store_true", help="bring the documents of a query together")


def read_data(
    path: str,
    arguments: argparse.Namespace,
    *,
    comments: bool = False,
    n_features: int | None = None,
    labelled: bool = True,
    by_row: bool = False,
) -> RankingData:
    """Read ranking data.

    Parameters
    ----------
    path
        A file, or ``-`` for standard input.
    arguments
        With what `add_reading_options` declared.
    comments
        Whether to keep the comments of LETOR text.
    n_features
        Number of features that LETOR text has: a line need not mention the last ones.
    labelled
        Whether CSV and Parquet must have labels; without them all are 0.
    by_row
        Whether rows are known by their place in the file, which must then have the documents of a query together.
    """
    from boostlist.datasets import RankingData, load_letor
    from boostlist.queries import query_boundaries

    check_input(path)
    if by_row and arguments.sort:
        raise UsageError(f"--sort would change the order of the rows, which scores go by; {_SORT_FIRST}")
    kind = arguments.format or format_of(path)
    if kind == "letor":
        chosen = {"n_features": n_features, "zero_based": arguments.zero_based, "sort": arguments.sort}
        with _our_options(), _open_pipe(path) as source:
            return load_letor(source, comments=comments, **chosen)
    frame = _read_frame(path, kind)
    if not labelled and arguments.label_column not in frame.columns:
        frame[arguments.label_column] = 0.0
    if by_row and arguments.qid_column in frame.columns:
        try:
            query_boundaries(frame[arguments.qid_column])
        except ValueError as error:
            raise ValueError(f"{path}: {str(error).partition('. Sort first')[0]}; {_SORT_FIRST}") from None
    names = ("qid", "label", "weight", "docid", "position")
    columns: dict[str, Any] = {name: getattr(arguments, f"{name}_column") or None for name in names}
    with _our_options():
        return RankingData.from_frame(frame, **columns)


_SORT_FIRST = "bring the documents of a query together first: boostlist data convert --sort FILE SORTED"


@contextmanager
def _our_options() -> Iterator[None]:
    """Let errors that advise an option of the library advise the command's."""
    try:
        yield
    except ValueError as error:
        text = re.sub(r"\b(sort|zero_based)=True", lambda option: f"--{option[1].replace('_', '-')}", str(error))
        raise ValueError(text.replace("weight=None", "--weight-column ''")) from error


@contextmanager
def _open_pipe(path: str) -> Iterator[Any]:
    """Open what may only be read as a stream, such as ``<(zcat file)`` of a shell; other paths stay paths."""
    if path == "-":
        yield sys.stdin.buffer
    elif Path(path).is_fifo():
        with Path(path).open("rb") as pipe:
            yield pipe
    else:
        yield path


def check_input(path: str) -> None:
    """Refuse a path that is not there, or is a folder; ``-`` is standard input."""
    if path == "-":
        return
    if not Path(path).exists():
        raise UsageError(f"there is no file {path}")
    if Path(path).is_dir():
        raise UsageError(f"{path} is a folder; give a file, such as {os.path.join(path, 'test.txt')}")


def features(data: RankingData) -> Any:
    """Return the features as estimators take them: with their names, where there are any, so that these are checked."""
    if data.feature_names is None:
        return data.X
    return data.feature_frame()


def _read_frame(path: str, kind: str) -> Any:
    import pandas as pd

    source: Any = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path
    if kind == "csv":
        return pd.read_csv(source)
    try:
        return pd.read_parquet(source)
    except ImportError:
        raise ImportError(_PYARROW) from None


_PYARROW = "Parquet needs the package pyarrow: pip install pyarrow, or convert to CSV or LETOR text"


def write_data(data: RankingData, path: str, kind: str | None = None) -> None:
    """Write ranking data; a file appears only when it is complete.

    Parameters
    ----------
    data
        The data.
    path
        A file, or ``-`` for standard output.
    kind
        One of `FORMATS`; None means what the suffix tells.
    """
    from boostlist.datasets import write_letor

    kind = kind or format_of(path)
    if kind == "letor" and path != "-":
        write_letor(data, path)
    elif kind == "letor":
        with tempfile.TemporaryDirectory() as folder, write_letor(data, Path(folder) / "data.txt").open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    else:
        with open_output(path) as file:
            if kind == "csv":
                data.to_frame().to_csv(file, index=False)
            else:
                try:
                    data.to_frame().to_parquet(file)
                except ImportError:
                    raise ImportError(_PYARROW) from None


def format_of(path: str) -> str:
    """Return the format that a name's suffix tells, LETOR unless it is CSV or Parquet."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return {".csv": "csv", ".parquet": "parquet"}.get(suffixes[-1] if suffixes else "", "letor")


@contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only when complete; ``-`` is standard output."""
    from boostlist.datasets._sources import create_text

    if path == "-":
        yield sys.stdout.buffer
    else:
        with create_text(path) as file:
            yield file


def read_scores(path: str, documents: int) -> FloatArray:
    """Read one score a line.

    Parameters
    ----------
    path
        A text file, or ``-`` for standard input.
    documents
        Number of scores that must be there.

    Raises
    ------
    UsageError
        If there is no such file.
    ValueError
        If a line is no finite number, with its number, or the number of lines is wrong.
    """
    import numpy as np

    name = "standard input" if path == "-" else path
    check_input(path)
    lines = (sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()).splitlines()
    scores = np.empty(len(lines))
    for i, line in enumerate(lines):
        try:
            scores[i] = float(line)
        except ValueError:
            found = line.decode("utf-8", "replace")[:40]
            raise ValueError(f"{name}, line {i + 1}: expected one score a line, got {found!r}") from None
        if not np.isfinite(scores[i]):
            raise ValueError(f"{name}, line {i + 1}: scores must be finite, got {scores[i]}")
    if len(scores) != documents:
        raise ValueError(f"{name} has {len(scores):,} scores, but the data has {documents:,} documents")
    return scores


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows with aligned columns; the first column to the left, the others to the right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())
