"""A binary copy of a parsed file, an archive (`boostlist.files`) that says what was parsed and how.

A copy is used only if it is whole, fits size and time of the files and the options, and belongs to this user, or to
whoever owns the files and could as well have changed these. Any other is replaced.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from boostlist._typing import AnyArray
from boostlist.datasets._reader import LetorOptions
from boostlist.datasets._sources import Source
from boostlist.datasets.data import RankingData
from boostlist.files import Archive, FileFormatError, Kind, read_archive, write_archive

_COPY = Kind("copy", 2)
_SUFFIX = ".boostlist"


def cached(
    sources: list[Source], options: LetorOptions, load: Callable[[], RankingData], mapped: bool = False
) -> RankingData:
    """Return the copy of these files if it is good, else load them and leave a copy.

    Parameters
    ----------
    sources
        The files.
    options
        How to read them.
    load
        Reads them.
    mapped
        Whether to map the copy into memory rather than to read it.

    Raises
    ------
    ValueError
        If a source is a file object: it has no name and time to tell whether a copy still fits.
    """
    paths = [Path(source) for source in sources if isinstance(source, str | os.PathLike)]
    if len(paths) < len(sources):
        raise ValueError("cache needs paths, not file objects")
    key = _key(paths, options)
    if not all(path.is_file() for path in paths):
        raise ValueError("cache needs regular files, not pipes or devices")
    places = _places(paths, options)
    for place in places:
        data = _load(place, key, paths, mapped)
        if data is not None:
            return data
    data = load()
    if key == _key(paths, options):  # else the files changed meanwhile, and this copy is stale already
        _store(places, key, data)
    return data


def _key(paths: list[Path], options: LetorOptions) -> dict[str, Any]:
    """Describe files and options, in values that JSON keeps."""
    files = []
    for path in paths:
        stat = path.stat()
        files.append([str(path.resolve()), stat.st_size, stat.st_mtime_ns])
    # repr, because nan differs from itself.
    chosen = {name: repr(value) for name, value in asdict(options).items()}
    return {"files": files, "options": chosen, "byteorder": sys.byteorder}


def _places(paths: list[Path], options: LetorOptions) -> list[Path]:
    """Return where a copy may lie: beside the first file, or in the user's cache folder."""
    names = [str(path.resolve()) for path in paths]
    digest = hashlib.sha256(repr((names, options)).encode()).hexdigest()[:16]
    first = Path(names[0])
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = f"{first.name}.{digest}{_SUFFIX}"
    return [first.parent / name, Path(folder) / "boostlist" / name]


def _store(places: list[Path], key: dict[str, Any], data: RankingData) -> None:
    about = {"key": key, "shape": list(data.X.shape)}
    failures = []
    for place in places:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_archive(place, _COPY, about, _arrays(data), replace=True)
            return
        except OSError as error:
            failures.append(f"{place}: {error.strerror or error}")
    warnings.warn(f"no cache copy could be written ({'; '.join(failures)})", stacklevel=4)


def _arrays(data: RankingData) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {"y": data.y, "qid": data.qid}
    if data.is_sparse:
        arrays |= {"values": data.X.data, "indices": data.X.indices, "indptr": data.X.indptr}
    else:
        arrays |= {"values": data.X}
    if data.comments is not None:
        encoded = [comment.encode("utf-8", "surrogateescape") for comment in data.comments]
        arrays["comment_text"] = np.frombuffer(b"".join(encoded), np.uint8)
        arrays["comment_ends"] = np.cumsum([len(comment) for comment in encoded], dtype=np.int64)
    return arrays


def _load(place: Path, key: dict[str, Any], paths: list[Path], mapped: bool) -> RankingData | None:
    """Return the data of a copy; None if there is none, or it is damaged, stale or someone else's."""
    try:
        copy = read_archive(place, _COPY, owners=_owners(paths), mapped=mapped)
        return _data(copy) if copy.about.get("key") == key else None
    except (OSError, FileFormatError):
        return None


def _owners(paths: list[Path]) -> set[int]:
    """Return the users whose copies are trusted."""
    return {path.stat().st_uid for path in paths} | ({os.geteuid()} if hasattr(os, "geteuid") else set())


def _data(copy: Archive) -> RankingData:
    try:
        arrays = copy.arrays
        X: Any = arrays["values"]
        if "indices" in arrays:
            from scipy.sparse import csr_matrix

            X = csr_matrix((X, arrays["indices"], arrays["indptr"]), shape=copy.about["shape"])
        comments = None
        if "comment_ends" in arrays:
            text, ends = arrays["comment_text"].tobytes(), arrays["comment_ends"].tolist()
            spans = zip([0, *ends], ends, strict=False)
            comments = np.array([text[a:b].decode("utf-8", "surrogateescape") for a, b in spans], dtype=object)
        return RankingData(X, arrays["y"], arrays["qid"], comments=comments)
    except (KeyError, TypeError, ValueError) as error:  # a forgery: its sum is right, its contents are not
        raise FileFormatError("these arrays are no ranking data") from error
