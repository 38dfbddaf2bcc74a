"""Where the folds of an experiment come from, and the facts about them that the report needs.

A set is a folder of folds as `boostlist.datasets.load_folds` reads it, a folder with train, vali and test itself (one
fold), or one LETOR file, which is cut by query into five parts and rotated as LETOR does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.datasets import Fold, RankingData, load_fold, load_folds, load_letor, sample_folder

PARTS = 5
_SAMPLED_BYTES = 65_536


@dataclass(frozen=True)
class Source:
    """A data set on disk.

    Attributes
    ----------
    path
        Folder or file.
    layout
        "folds": Fold1, Fold2, ... or S1 to S5; "single": train, vali and test; "file": one LETOR file.
    numbers
        The folds to be used, from 1.
    seed
        For "file": how its queries are dealt out to the five parts.
    """

    path: Path
    layout: Literal["folds", "single", "file"]
    numbers: tuple[int, ...]
    seed: int = 0

    @property
    def name(self) -> str:
        """Short name of the data set."""
        return "sample" if self.path == sample_folder() else self.path.resolve().name.split(".")[0]

    def load(self, number: int) -> Fold:
        """Load a fold, dense: XGBoost would take what a sparse matrix does not store for missing, LightGBM for 0."""
        if self.layout == "file":
            return _rotation(number, self._parts)
        return load_fold(self.path, number if self.layout == "folds" else None, sparse=False)

    @cached_property
    def _parts(self) -> tuple[RankingData, ...]:
        data = load_letor(self.path, sparse=False)
        if data.n_queries < PARTS:
            raise ValueError(f"{self.path} has {data.n_queries} queries; at least {PARTS} are needed for {PARTS} folds")
        return data.split(*[1 / PARTS] * PARTS, seed=self.seed)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the files' names and sizes and of the beginning and end of their contents.

        A full digest would take longer than a resumed run on a large set; dates would change when a set is copied.
        """
        digest = hashlib.sha256(f"{self.layout} {self.seed if self.layout == 'file' else ''}".encode())
        for path in self._files():
            size = path.stat().st_size
            digest.update(f"{path.relative_to(self.path.parent).parts[1:]} {size}".encode())
            with path.open("rb") as file:
                digest.update(file.read(_SAMPLED_BYTES))
                file.seek(max(0, size - _SAMPLED_BYTES))
                digest.update(file.read(_SAMPLED_BYTES))
        return digest.hexdigest()[:16]

    def _files(self) -> list[Path]:
        if self.layout == "file":
            return [self.path]
        depth = ("*.txt*", "Fold*/*.txt*") if self.layout == "folds" else ("*.txt*",)
        return sorted(path for pattern in depth for path in self.path.glob(pattern) if path.is_file())


def find_source(data: str | Path | None, folds: Sequence[int] | None = None, seed: int = 0) -> Source:
    """Find out what a path holds, without reading it.

    Parameters
    ----------
    data
        A folder or file; None for the sample that comes with the package.
    folds
        Which folds to use; None for all.
    seed
        For a single file: how its queries are dealt out to the parts.

    Raises
    ------
    ValueError
        If the path holds no data set, or not these folds; the message says what was looked for.
    """
    path = sample_folder() if data is None else Path(data)
    layout: Literal["folds", "single", "file"]
    if path.is_file():
        layout, numbers = "file", tuple(range(1, PARTS + 1))
    elif not path.is_dir():
        raise ValueError(f"there is no folder or file {path}")
    elif _holds_single(path):
        layout, numbers = "single", (1,)
    else:
        layout, numbers = "folds", _fold_numbers(path)
    if folds is not None:
        missing = [number for number in folds if number not in numbers]
        if missing:
            name = "the sample" if data is None else path
            raise ValueError(f"{name} has the folds {', '.join(map(str, numbers))}, not {missing[0]}")
        numbers = tuple(sorted(set(folds)))
    return Source(path, layout, numbers, seed)


def _holds_single(folder: Path) -> bool:
    roles = (("train", "trainingset"), ("vali", "valid", "validationset"), ("test", "testset"))
    return all(any(next(folder.glob(f"{name}.txt*"), None) for name in names) for names in roles)


def _fold_numbers(folder: Path) -> tuple[int, ...]:
    try:
        load_folds(folder)  # checks the layout at once and reads nothing before it is asked for a fold
    except FileNotFoundError as error:
        raise ValueError(
            f"{folder} is no data set: looked for the folders Fold1, Fold2, ... with train.txt, vali.txt and test.txt "
            f"in each, for the files S1.txt to S{PARTS}.txt, and for train.txt, vali.txt and test.txt in the folder "
            f"itself (.gz, .bz2 and .zst too); {error}"
        ) from error
    found = sorted(int(match[1]) for path in folder.iterdir() if (match := re.fullmatch(r"Fold(\d+)", path.name)))
    parts = any(folder.glob("S1.txt*"))
    return tuple(found) if found and not parts else tuple(range(1, PARTS + 1))


def _rotation(number: int, parts: Sequence[RankingData]) -> Fold:
    first, second, third, vali, test = (parts[(number - 1 + i) % PARTS] for i in range(PARTS))
    return Fold(number, RankingData.concat([first, second, third]), vali, test)


@lru_cache(maxsize=1)
def cached_fold(source: Source, number: int) -> Fold:
    """Load a fold, or return it if it was the last one loaded: tasks come fold by fold."""
    return source.load(number)


@dataclass(frozen=True, eq=False)
class FoldFacts:
    """What the report says of a fold's data.

    Attributes
    ----------
    fold
        Its number.
    qid
        Query ids of the test part as text; the entries of the arrays below are in the same order.
    length, relevant
        Number of documents, and of documents with a label above 0, of each test query.
    best
        Highest label of each test query.
    parts
        Numbers of documents, queries and features, documents by label, and the largest label, of train, vali and test.
    """

    fold: int
    qid: AnyArray
    length: IntArray
    relevant: IntArray
    best: FloatArray
    parts: dict[str, dict[str, Any]]

    @property
    def largest(self) -> float:
        """The largest label of all parts."""
        return float(max(numbers["largest"] for numbers in self.parts.values()))

    @classmethod
    def of(cls, fold: Fold) -> FoldFacts:
        """Collect the facts."""
        queries = fold.test.queries
        head = queries.start[:-1]
        parts = {name: _numbers(getattr(fold, name)) for name in ("train", "vali", "test")}
        return cls(
            fold=fold.number,
            qid=np.asarray(fold.test.qid[head]).astype(str),
            length=np.asarray(queries.sizes, np.int64),
            relevant=np.add.reduceat(queries.labels > 0, head).astype(np.int64),
            best=np.maximum.reduceat(queries.labels, head),
            parts=parts,
        )


def _numbers(data: RankingData) -> dict[str, Any]:
    about = data.describe()
    return {
        "documents": about.documents,
        "queries": about.queries,
        "features": about.features,
        "grades": {f"{grade:g}": count for grade, count in about.grades.items()},
        "largest": max(about.grades),
        "without_relevant": about.empty_queries,
        "shortest": about.shortest,
        "median_length": about.median_length,
        "longest": about.longest,
    }
