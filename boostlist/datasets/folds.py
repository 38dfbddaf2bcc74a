"""Cross-validation folds as LETOR publishes them.

Of five parts S1..S5, fold k trains on S_k, S_{k+1}, S_{k+2}, validates on S_{k+3} and tests on S_{k+4}, modulo 5
(Qin et al., LETOR: a benchmark collection for research on learning to rank for information retrieval, 2010).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boostlist.datasets.data import RankingData
from boostlist.datasets.letor import load_letor
from boostlist.files import PathLike

_ROLES = {
    "train": ("train", "trainingset"),
    "vali": ("vali", "valid", "validationset"),
    "test": ("test", "testset"),
}
_SUFFIXES = (".txt", ".txt.gz", ".txt.bz2", ".txt.zst")
_PARTS = 5


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


def load_folds(folder: PathLike, **options: Any) -> Iterator[Fold]:
    """Iterate over the folds in a folder, one in memory at a time.

    Parameters
    ----------
    folder
        Holds either Fold1, Fold2, ... with ``train``, ``vali`` and ``test`` (also called ``trainingset``,
        ``validationset``, ``testset``) in each, or the parts S1 to S5, which are put together as LETOR does. Files end
        in .txt, or .txt.gz, .txt.bz2, .txt.zst.
    **options
        Passed on to `load_letor`.

    Raises
    ------
    FileNotFoundError
        If the folder holds neither, or a file is missing.

    Examples
    --------
    >>> from boostlist.datasets import load_folds, sample_folder
    >>> [fold.test.n_queries for fold in load_folds(sample_folder())]
    [100, 100, 100, 100, 100]
    """
    folder = Path(folder)
    parts = _parts(folder)
    if parts:
        return _rotated(parts, options)
    numbers = sorted(int(found[1]) for path in folder.iterdir() if (found := re.fullmatch(r"Fold(\d+)", path.name)))
    if not numbers:
        raise FileNotFoundError(f"{folder} holds neither the folders Fold1, Fold2, ... nor the files S1 to S{_PARTS}")
    files = {number: _fold_files(folder / f"Fold{number}") for number in numbers}
    return (Fold(number, *_load_alike(paths, options)) for number, paths in files.items())


def load_fold(folder: PathLike, number: int | None = None, **options: Any) -> Fold:
    """Load one fold.

    Parameters
    ----------
    folder
        As for `load_folds`; or, without a number, a folder that holds train, vali and test itself.
    number
        Which fold, from 1.
    **options
        Passed on to `load_letor`.

    Raises
    ------
    FileNotFoundError
        If there is no such fold.
    """
    folder = Path(folder)
    if number is None:
        return Fold(1, *_load_alike(_fold_files(folder), options))
    parts = _parts(folder)
    if not parts:
        return Fold(number, *_load_alike(_fold_files(folder / f"Fold{number}"), options))
    if not 1 <= number <= _PARTS:
        raise FileNotFoundError(f"{folder} holds the folds 1 to {_PARTS}, not {number}")
    return _rotation(number, _load_alike(parts, options))


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


def _find(folder: Path, names: Sequence[str]) -> Path | None:
    candidates = (folder / f"{name}{suffix}" for name in names for suffix in _SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def _parts(folder: Path) -> list[Path]:
    found = [_find(folder, (f"S{part}",)) for part in range(1, _PARTS + 1)]
    paths = [path for path in found if path is not None]
    if paths and len(paths) < _PARTS:
        missing = ", ".join(f"S{part}" for part, path in enumerate(found, 1) if path is None)
        raise FileNotFoundError(f"{folder} holds some of the parts S1 to S{_PARTS}, but not {missing}")
    return paths


def _fold_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    paths = []
    for role, names in _ROLES.items():
        path = _find(folder, names)
        if path is None:
            raise FileNotFoundError(f"{folder} holds no {role} file; looked for {', '.join(n + '.txt' for n in names)}")
        paths.append(path)
    return paths


def _load_alike(paths: Sequence[Path], options: dict[str, Any]) -> list[RankingData]:
    """Load files so that all have the same number of features and are all dense or all sparse."""
    loaded = [load_letor(path, **options) for path in paths]
    shared = {"n_features": max(data.n_features for data in loaded), "sparse": all(data.is_sparse for data in loaded)}
    return [
        data
        if (data.n_features, data.is_sparse) == (shared["n_features"], shared["sparse"])
        else load_letor(path, **(options | shared))
        for data, path in zip(loaded, paths, strict=True)
    ]


def _rotated(parts: Sequence[Path], options: dict[str, Any]) -> Iterator[Fold]:
    loaded = _load_alike(parts, options)
    for number in range(1, _PARTS + 1):
        yield _rotation(number, loaded)


def _rotation(number: int, parts: Sequence[RankingData]) -> Fold:
    first, second, third, vali, test = (parts[(number - 1 + i) % _PARTS] for i in range(_PARTS))
    return Fold(number, RankingData.concat([first, second, third]), vali, test)
