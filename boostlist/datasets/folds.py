"""Data sets in folds: what a path holds, and its folds one by one.

Of five parts S1..S5, fold k trains on S_k, S_{k+1}, S_{k+2}, validates on S_{k+3} and tests on S_{k+4}, modulo 5
(Qin et al., LETOR: a benchmark collection for research on learning to rank for information retrieval, 2010).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from boostlist.datasets.data import RankingData
from boostlist.datasets.letor import load_letor
from boostlist.files import PathLike

PARTS = 5
ROLES = {
    "train": ("train", "trainingset"),
    "vali": ("vali", "valid", "validationset"),
    "test": ("test", "testset"),
}
"""Names of a fold's files, the first of them ours."""

_SUFFIXES = (".txt", ".txt.gz", ".txt.bz2", ".txt.zst")
_SAMPLED_BYTES = 65_536


@dataclass(frozen=True)
class Fold:
    """Training, validation and test data with the same features.

    Attributes
    ----------
    number
        Which fold of its set this is, from 1.
    train, vali, test
        The data.
    """

    number: int
    train: RankingData
    vali: RankingData
    test: RankingData


@dataclass(frozen=True, eq=False)
class Folds:
    """A data set on disk, as `find_folds` finds it. Nothing is read before it is asked for, and parts are read once.

    Attributes
    ----------
    path
        Folder or file.
    layout
        "folders": Fold1, Fold2, ...; "parts": S1 to S5; "single": train, vali and test; "file": one LETOR file.
    numbers
        The folds there are, or those chosen of them.
    files
        By fold its training, validation and test file; under 0 what all folds are put together from.
    seed
        For "file": how its queries are dealt out to five parts.
    options
        Passed on to `load_letor`.
    """

    path: Path
    layout: Literal["folders", "parts", "single", "file"]
    numbers: tuple[int, ...]
    files: Mapping[int, Sequence[Path]]
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Short name of the data set."""
        return "sample" if self.path == sample_folder() else self.path.resolve().name.split(".")[0]

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Fold]:
        return map(self.load, self.numbers)

    def __getstate__(self) -> dict[str, Any]:
        # Another process reads the parts itself, if it needs them.
        return {name: value for name, value in vars(self).items() if name != "_parts"}

    def load(self, number: int) -> Fold:
        """Load a fold.

        Raises
        ------
        FileNotFoundError
            If there is no such fold.
        """
        self._check(number)
        if number in self.files:
            return Fold(number, *_load_alike(self.files[number], self.options))
        return rotation(number, self._parts)

    def choose(self, numbers: Sequence[int]) -> Folds:
        """Return the same data set with some of its folds.

        Raises
        ------
        FileNotFoundError
            If there is no such fold.
        """
        for number in numbers:
            self._check(number)
        return replace(self, numbers=tuple(sorted(set(numbers))))

    def _check(self, number: int) -> None:
        if number not in self.numbers:
            name = "the sample" if self.path == sample_folder() else self.path
            raise FileNotFoundError(f"{name} has the folds {', '.join(map(str, self.numbers))}, not {number}")

    @cached_property
    def _parts(self) -> Sequence[RankingData]:
        if self.layout == "parts":
            return _load_alike(self.files[0], self.options)
        data = load_letor(self.path, **self.options)
        refuse_few_queries(data, str(self.path))
        return deal(data, self.seed)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the files' names and sizes and of the beginning and end of their contents.

        A full digest would take longer than a resumed run on a large set; dates would change when a set is copied.
        """
        digest = hashlib.sha256(f"{self.layout} {self.seed if self.layout == 'file' else ''}".encode())
        for path in (path for paths in self.files.values() for path in paths):
            size = path.stat().st_size
            digest.update(f"{os.path.relpath(path, self.path)} {size}".encode())
            with path.open("rb") as file:
                digest.update(file.read(_SAMPLED_BYTES))
                file.seek(max(0, size - _SAMPLED_BYTES))
                digest.update(file.read(_SAMPLED_BYTES))
        return digest.hexdigest()[:16]


def find_folds(path: PathLike, *, seed: int = 0, **options: Any) -> Folds:
    """Find out what a path holds, without reading it.

    Parameters
    ----------
    path
        A folder with Fold1, Fold2, ... and ``train``, ``vali`` and ``test`` (also called ``trainingset``,
        ``validationset``, ``testset``) in each; with the parts S1 to S5, which are put together as LETOR does; or with
        train, vali and test itself, which is one fold. Files end in .txt, or .txt.gz, .txt.bz2, .txt.zst. Or one LETOR
        file of any name, which is cut by query into five parts.
    seed
        For one file: how its queries are dealt out to the parts.
    **options
        Passed on to `load_letor`.

    Raises
    ------
    FileNotFoundError
        If there is none of these, or a file is missing; the message says what was looked for.
    """
    path = Path(path)
    numbers = tuple(range(1, PARTS + 1))
    if path.is_file():
        return Folds(path, "file", numbers, {0: [path]}, seed, options)
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder or file {path}")
    if parts := _part_files(path):
        return Folds(path, "parts", numbers, {0: parts}, options=options)
    matches = (re.fullmatch(r"Fold([1-9]\d*)", each.name) for each in path.iterdir() if each.is_dir())
    if found := tuple(sorted(int(match[1]) for match in matches if match)):
        files = {number: _role_files(path / f"Fold{number}") for number in found}
        return Folds(path, "folders", found, files, options=options)
    if any(_find(path, names) for names in ROLES.values()):
        return Folds(path, "single", (1,), {1: _role_files(path)}, options=options)
    raise FileNotFoundError(
        f"{path} is no data set: looked for folders Fold1, Fold2, ... with train.txt, vali.txt and test.txt in each, "
        f"for S1.txt to S{PARTS}.txt, and for train.txt, vali.txt and test.txt (.gz, .bz2 and .zst too)"
    )


def load_folds(folder: PathLike, **options: Any) -> Iterator[Fold]:
    """Iterate over the folds of a data set, one in memory at a time.

    Parameters
    ----------
    folder
        A folder, or a file, as `find_folds` takes it.
    **options
        Passed on to `load_letor`.

    Raises
    ------
    FileNotFoundError
        If there are no folds, or a file is missing.

    Examples
    --------
    >>> from boostlist.datasets import load_folds, sample_folder
    >>> [fold.test.n_queries for fold in load_folds(sample_folder())]
    [100, 100, 100, 100, 100]
    """
    return iter(find_folds(folder, **options))


def load_fold(folder: PathLike, number: int | None = None, **options: Any) -> Fold:
    """Load one fold. For several of them, ``find_folds(folder).load(number)`` reads the parts S1 to S5 only once.

    Parameters
    ----------
    folder
        A folder, or a file, as `find_folds` takes it.
    number
        Which fold, from 1; None means the only one.
    **options
        Passed on to `load_letor`.

    Raises
    ------
    FileNotFoundError
        If there is no such fold.
    """
    folds = find_folds(folder, **options)
    if number is None and len(folds) > 1:
        raise FileNotFoundError(f"{folder} has the folds {', '.join(map(str, folds.numbers))}; say which")
    return folds.load(folds.numbers[0] if number is None else number)


def sample_folder() -> Path:
    """Return the folder of the sample that comes with the package: S1.txt.gz to S5.txt.gz."""
    return Path(__file__).parent / "sample"


def load_sample(number: int = 1, **options: Any) -> Fold:
    """Load a fold of the sample that comes with the package.

    The sample was made by `make_ranking`: 500 queries, 25 features, grades 0 to 4. ``load_folds(sample_folder())``
    iterates over all five folds.

    Parameters
    ----------
    number
        Which fold, 1 to 5.
    **options
        Passed on to `load_letor`.

    Examples
    --------
    >>> from boostlist.datasets import load_sample
    >>> load_sample().train.n_queries
    300
    """
    return load_fold(sample_folder(), number, **options)


def refuse_few_queries(data: RankingData, name: str) -> None:
    """Raise a ValueError for data with fewer queries than there are parts."""
    if data.n_queries < PARTS:
        raise ValueError(f"{name} has {data.n_queries} queries; at least {PARTS} are needed for {PARTS} folds")


def deal(data: RankingData, seed: int) -> tuple[RankingData, ...]:
    """Deal the queries out to the parts, at random."""
    return data.split(*[1 / PARTS] * PARTS, seed=seed)


def rotation(number: int, parts: Sequence[RankingData]) -> Fold:
    """Put a fold together from K parts: the last from its own on is tested, the one before it validated, modulo K."""
    *train, vali, test = (parts[(number - 1 + i) % len(parts)] for i in range(len(parts)))
    return Fold(number, RankingData.concat(train), vali, test)


def _find(folder: Path, names: Sequence[str]) -> Path | None:
    candidates = (folder / f"{name}{suffix}" for name in names for suffix in _SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def _part_files(folder: Path) -> list[Path]:
    found = {f"S{part}": _find(folder, (f"S{part}",)) for part in range(1, PARTS + 1)}
    paths = [path for path in found.values() if path is not None]
    if 0 < len(paths) < PARTS:
        missing = ", ".join(name for name, path in found.items() if path is None)
        raise FileNotFoundError(f"{folder} holds some of the parts S1 to S{PARTS}, but not {missing}")
    return paths


def _role_files(folder: Path) -> list[Path]:
    paths = []
    for role, names in ROLES.items():
        path = _find(folder, names)
        if path is None:
            raise FileNotFoundError(f"{folder} holds no {role} file; looked for {', '.join(n + '.txt' for n in names)}")
        paths.append(path)
    return paths


def _load_alike(paths: Sequence[Path], options: Mapping[str, Any]) -> list[RankingData]:
    """Load files so that all have the same number of features and are all dense or all sparse."""
    loaded = [load_letor(path, **options) for path in paths]
    shared = {"n_features": max(data.n_features for data in loaded), "sparse": all(data.is_sparse for data in loaded)}
    return [
        data
        if (data.n_features, data.is_sparse) == (shared["n_features"], shared["sparse"])
        else load_letor(path, **{**options, **shared})
        for data, path in zip(loaded, paths, strict=True)
    ]
