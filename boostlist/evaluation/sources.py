"""Data that a comparison is made on: a path, data in memory, or folds that someone else has made."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from boostlist.datasets import Fold, RankingData, load_letor
from boostlist.datasets.folds import PARTS, deal, refuse_few_queries, rotation
from boostlist.evaluation.folds import find_source


class Source(Hashable, Protocol):
    """Where folds come from; `boostlist.datasets.Folds` is one."""

    @property
    def name(self) -> str:
        """Short name of the data set."""

    @property
    def path(self) -> Any:
        """What errors call it."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The folds to be used."""

    @property
    def fingerprint(self) -> str:
        """Digest of the contents."""

    def load(self, number: int) -> Fold:
        """Return a fold."""


@lru_cache(maxsize=1)
def cached_fold(source: Source, number: int) -> Fold:
    """Load a fold, or return it if it was the last one loaded: tasks come fold by fold."""
    return source.load(number)


@dataclass(frozen=True, eq=False)
class GivenFolds:
    """Folds in memory, made by the user."""

    folds: Sequence[Fold]
    name: str = "data"

    @property
    def path(self) -> str:
        """What errors call it."""
        return self.name

    @property
    def numbers(self) -> tuple[int, ...]:
        """The folds, counted from 1 in the order given."""
        return tuple(range(1, len(self.folds) + 1))

    @property
    def fingerprint(self) -> str:
        """Digest of the contents."""
        return digest(part for fold in self.folds for part in (fold.train, fold.vali, fold.test))

    def load(self, number: int) -> Fold:
        """Return a fold."""
        fold = self.folds[number - 1]
        return Fold(number, *(dense(part) for part in (fold.train, fold.vali, fold.test)))


@dataclass(frozen=True, eq=False)
class Rotation:
    """Data in memory, whose queries are dealt out to five parts: three train, one validates, one tests, in turn.

    Attributes
    ----------
    data
        All of it.
    name
        What it is called.
    numbers
        The folds to be used: five for each repetition, counted on.
    seed
        How queries are dealt out; the seeds of repetitions are counted on from it.
    """

    data: RankingData
    name: str = "data"
    numbers: tuple[int, ...] = tuple(range(1, PARTS + 1))
    seed: int = 0
    _parts: dict[int, tuple[RankingData, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        refuse_few_queries(self.data, self.name)

    @property
    def path(self) -> str:
        """What errors call it."""
        return self.name

    @property
    def fingerprint(self) -> str:
        """Digest of the contents, and of how they are dealt out."""
        return digest([self.data], f"{self.seed}")

    def load(self, number: int) -> Fold:
        """Put a fold together."""
        repetition, place = divmod(number - 1, PARTS)
        if repetition not in self._parts:
            self._parts.clear()
            self._parts[repetition] = deal(dense(self.data), self.seed + repetition)
        return replace(rotation(place + 1, self._parts[repetition]), number=number)


@dataclass(frozen=True, eq=False)
class Named:
    """Data in memory with a name for tables and folders."""

    data: Any
    name: str


def make_source(
    data: Any, folds: Sequence[int] | None = None, *, repeats: int = 1, seed: int = 0, comments: bool = False
) -> Source:
    """Find out what data is, without reading more of it than is needed.

    Parameters
    ----------
    data
        None for the sample of the package; a path, as `find_source` takes it, or of a CSV or Parquet file;
        `RankingData` or a data frame with the columns qid and label, which are cut into five folds; a `Fold`, or
        several.
    folds
        Which folds to use; None for all.
    repeats
        How many times the data is cut into five folds, each time in another way.
    seed
        How queries are dealt out to the parts.
    comments
        Whether to keep the comments of LETOR text, which have the ids of documents.

    Raises
    ------
    ValueError
        If there is no such data, or its folds are given and cannot be repeated.
    """
    if isinstance(data, Fold):
        data = [data]
    name, whole = (data.name, data.data) if isinstance(data, Named) else ("data", data)
    if isinstance(data, str | Path) and Path(data).is_file():
        name, whole = Path(data).name.split(".")[0], _read_file(Path(data), repeats > 1, comments)
    if hasattr(whole, "columns"):
        whole = RankingData.from_frame(whole)
    if isinstance(whole, RankingData):
        return Rotation(whole, name, _chosen(tuple(range(1, PARTS * repeats + 1)), folds, name), seed)
    if repeats > 1:
        raise ValueError("the folds are given, and cannot be repeated: repeats need one file, or data that is not cut")
    if whole is None or isinstance(whole, str | Path):
        return find_source(whole, folds, seed, comments=comments)
    given = list(whole) if isinstance(whole, Iterable) else []
    if not given or not all(isinstance(each, Fold) for each in given):
        raise ValueError(
            f"no data: {type(data).__name__} is neither a path, RankingData, a data frame nor folds of RankingData"
        )
    chosen = _chosen(tuple(range(1, len(given) + 1)), folds, name)
    return GivenFolds([given[number - 1] for number in chosen])


def in_memory(source: Source) -> list[RankingData]:
    """Return what is known of the data without reading: none of files, which have neither categories nor positions."""
    if isinstance(source, Rotation):
        return [source.data]
    return [fold.train for fold in source.folds] if isinstance(source, GivenFolds) else []


def _read_file(path: Path, whole: bool, comments: bool) -> Any:
    """Return what a CSV or Parquet file holds, and a LETOR file if all of it is wanted at once; else the path."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".csv" in suffixes or ".parquet" in suffixes:
        import pandas as pd

        return pd.read_csv(path) if ".csv" in suffixes else pd.read_parquet(path)
    return load_letor(path, sparse=False, comments=comments) if whole else path


def _chosen(numbers: tuple[int, ...], folds: Sequence[int] | None, name: str) -> tuple[int, ...]:
    missing = [number for number in folds or () if number not in numbers]
    if missing:
        raise ValueError(f"{name} has the folds {', '.join(map(str, numbers))}, not {missing[0]}")
    return numbers if folds is None else tuple(sorted(set(folds)))


def dense(data: RankingData) -> RankingData:
    """Return data with a dense array: what a sparse one does not store is missing for XGBoost, and 0 for LightGBM."""
    return replace(data, X=data.X.toarray()) if data.is_sparse else data


def digest(parts: Any, more: str = "") -> str:
    """Return sixteen hexadecimal digits that are other for other data."""
    found = hashlib.sha256(more.encode())
    for data in parts:
        labels = [] if data.labels is None else [np.array(list(data.labels)), *data.labels.values()]
        for array in (dense(data).X, data.y, np.asarray(data.qid).astype(str), *labels):
            found.update(f"{array.shape} {array.dtype}".encode())
            found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:16]
