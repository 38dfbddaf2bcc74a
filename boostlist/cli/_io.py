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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from boostlist.checks import concerning, did_you_mean
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
    group.add_argument(
        "--label-column",
        type=names,
        default=["label"],
        metavar="NAMES",
        help="label column of CSV and Parquet; several, with commas, for losses and metrics that name theirs",
    )
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
        help="column of CSV and Parquet that says where it was shown, if there is one (position): no feature, but what "
        "`train` allows for in clicks, see docs/clicks.md; --drop it to take them at face value",
    )
    group.add_argument(
        "--drop", type=names, default=[], metavar="NAMES", help="columns of CSV and Parquet to leave out, with commas"
    )
    group.add_argument(
        "--categorical",
        type=names,
        default=[],
        metavar="NAMES",
        help="columns of CSV and Parquet whose values, text or numbers, are categories, with commas; trees take them",
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
    judged: bool = False,
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
    judged
        Whether every document must have a label, and none below 0: what losses and metrics take.
    by_row
        Whether rows are known by their place in the file, which must then have the documents of a query together.
    """
    check_input(path)
    data = _read(path, arguments, comments, n_features, labelled, by_row)
    if judged:
        with concerning(_name(path)):
            _ = data.queries
    return data


def _read(
    path: str, arguments: argparse.Namespace, comments: bool, n_features: int | None, labelled: bool, by_row: bool
) -> RankingData:
    from boostlist.datasets import RankingData, load_letor

    if by_row and arguments.sort:
        raise UsageError(f"--sort would change the order of the rows, which scores go by; {_SORT_FIRST}")
    kind = arguments.format or format_of(path)
    if kind == "letor":
        if arguments.drop or arguments.categorical:
            raise UsageError(
                "--drop and --categorical name columns of CSV and Parquet; features of LETOR have no names"
            )
        chosen = {"n_features": n_features, "zero_based": arguments.zero_based, "sort": arguments.sort}
        with _our_options(by_row), _open_pipe(path) as source:
            return load_letor(source, comments=comments, **chosen)
    labels = arguments.label_column
    if not labels:
        raise UsageError("--label-column names no column")
    with _our_options(by_row, prefix=f"{_name(path)}: "):
        frame = _read_frame(path, kind)
        if not len(frame):
            raise ValueError("there are no documents")
        if not labelled:
            frame = frame.assign(**dict.fromkeys(set(labels) - set(frame.columns), 0.0))
        roles = ("qid", "weight", "docid", "position")
        columns: dict[str, Any] = {role: getattr(arguments, f"{role}_column") or None for role in roles}
        if columns["qid"] in frame.columns:  # else from_frame says so: columns may be divided by something else
            frame = _chosen_columns(frame, arguments.drop, arguments.categorical, (*labels, *columns.values()))
        label = labels if len(labels) > 1 else labels[0]
        return RankingData.from_frame(frame, label=label, **columns, sort=arguments.sort)


_SORT_FIRST = "bring the documents of a query together first: boostlist data convert --sort FILE SORTED"


@contextmanager
def _our_options(by_row: bool, prefix: str = "") -> Iterator[None]:
    """Let errors that advise an option of the library advise the command's."""
    try:
        yield
    except ValueError as error:
        text = re.sub(r"use (\S+\(frame, )?sort=True\)?", _SORT_FIRST if by_row else "use --sort", str(error))
        text = text.replace("zero_based=True", "--zero-based").replace("weight=None", "--weight-column ''")
        other = r"there is no column \1, and --qid-column or --label-column name no other;"
        text = re.sub(r"the frame has no column ('[^']*');", other, text)
        raise ValueError(prefix + text) from error


def _chosen_columns(frame: Any, drop: Sequence[str], categorical: Sequence[str], others: tuple[Any, ...]) -> Any:
    """Return the columns that are not dropped, with categories; text in one that is to be a feature is an error."""
    import pandas as pd

    for name in (*drop, *categorical):
        if name not in frame.columns:
            hint = did_you_mean(name, frame.columns, f"its columns are {', '.join(frame.columns)}")
            raise ValueError(f"there is no column {name!r}; {hint}")
    frame = frame.drop(columns=drop)
    frame = frame.astype(dict.fromkeys((name for name in categorical if name in frame.columns), "category"))
    text = [
        name
        for name, column in frame.items()
        if not (
            name in others or pd.api.types.is_numeric_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype)
        )
    ]
    if text:
        column = frame[text[0]]
        bad = column[column.notna() & pd.to_numeric(column, errors="coerce").isna()]
        found = f"holds {bad.iloc[0]!r}, no number, in row {bad.index[0]}" if len(bad) else f"is {column.dtype}"
        others_too = f", and no numbers are in {_some(text[1:])} either" if text[1:] else ""
        all_of_them = ",".join(text)
        raise ValueError(
            f"column {text[0]!r} {found}{others_too}; leave columns out by --drop {all_of_them}, or take their values "
            f"for categories, which trees can split, by --categorical {all_of_them}"
        )
    return frame


def _some(names: Sequence[str], most: int = 5) -> str:
    """Return the first names of several, and how many more there are."""
    shown, more = ", ".join(map(repr, names[:most])), len(names) - most
    return shown if more <= 0 else f"{shown} and {more} more"


def seed(text: str) -> int:
    """Return a seed, a whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is a whole number of at least 0, got {text!r}")
    return int(text)


def jobs(text: str) -> int:
    """Return a number of processes or threads, at least 1."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"it must be a whole number of at least 1, got {text!r}")
    return int(text)


def names(text: str) -> list[str]:
    """Return names with commas between them as a list."""
    return [name.strip() for name in text.split(",") if name.strip()]


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


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def check_input(path: str) -> None:
    """Refuse a path that is not there, or is a folder; ``-`` is standard input."""
    if path == "-":
        return
    if not Path(path).exists():
        raise UsageError(f"there is no file {path}")
    if Path(path).is_dir():
        raise UsageError(f"{path} is a folder; give a file, such as {os.path.join(path, 'test.txt')}")


def check_output(path: str) -> None:
    """Refuse a path that cannot be written to, before any work is done; ``-`` is standard output."""
    target, folder = Path(path), Path(path).absolute().parent
    if target.is_dir():
        raise UsageError(f"cannot write to {path}: it is a folder; give a file in it")
    if path == "-" or (target.exists() and not target.is_file()):  # the latter a device or a pipe
        return
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise UsageError(f"cannot write to {path}: there is no folder {folder}, or it cannot be written to")


def features(data: RankingData, path: str, names: Sequence[str] | None) -> Any:
    """Return the features as a model takes them that knows its own by these names, or None, by their place.

    The model compares names. Where only one side has any, the order decides, and standard error says so.
    """
    if names is None and data.feature_names is not None and not data.categories:
        print(f"boostlist: the model knows features by their order, not by the names in {_name(path)}", file=sys.stderr)
        return data.X
    if names is not None and data.feature_names is None and len(names) == data.n_features:
        print(f"boostlist: {_name(path)} has no names of features: they are the model's, in its order", file=sys.stderr)
        return replace(data, feature_names=tuple(names)).feature_frame()
    return data.X if data.feature_names is None else data.feature_frame()


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

    name = _name(path)
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
