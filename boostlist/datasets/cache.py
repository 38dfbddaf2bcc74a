"""A binary copy of a parsed file that is mapped into memory instead of read.

One file: a magic word, the length and CRC of a header, the header (JSON: what was parsed and how, and where each array
lies), the arrays, each at a multiple of 64 bytes, and the magic word again. It is written to a temporary file and
renamed, so whoever opens it sees a whole copy, whatever other processes do meanwhile. A copy whose frame, length or
header is not right, or whose header does not fit size and time of the files and the options, is not used but replaced.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from boostlist._typing import AnyArray
from boostlist.datasets._reader import LetorOptions
from boostlist.datasets._sources import Source, create
from boostlist.datasets.data import RankingData

_MAGIC = b"boostlist-data-1"
_ALIGN = 64
_SUFFIX = ".boostlist"


def cached(sources: list[Source], options: LetorOptions, load: Callable[[], RankingData]) -> RankingData:
    """Return the copy of these files if it is good, else load them and leave a copy.

    Raises
    ------
    ValueError
        If a source is a file object: it has no name and time to tell whether a copy still fits.
    """
    paths = [Path(source) for source in sources if isinstance(source, str | os.PathLike)]
    if len(paths) < len(sources):
        raise ValueError("cache=True needs paths, not file objects")
    key = _key(paths, options)
    places = _places(paths, options)
    for place in places:
        data = _load(place, key)
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
    failures = []
    for place in places:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with create(place) as file:
                _write(file, key, data)
            return
        except OSError as error:
            failures.append(f"{place}: {error.strerror or error}")
    warnings.warn(f"no cache copy could be written ({'; '.join(failures)})", stacklevel=4)


def _write(file: BinaryIO, key: dict[str, Any], data: RankingData) -> None:
    arrays: dict[str, AnyArray] = {"y": data.y, "qid": data.qid}
    if data.is_sparse:
        arrays |= {"values": data.X.data, "indices": data.X.indices, "indptr": data.X.indptr}
    else:
        arrays |= {"values": data.X}
    if data.comments is not None:
        encoded = [comment.encode("utf-8", "surrogateescape") for comment in data.comments]
        arrays["comment_text"] = np.frombuffer(b"".join(encoded), np.uint8)
        arrays["comment_ends"] = np.cumsum([len(comment) for comment in encoded], dtype=np.int64)
    layout, offset = {}, 0
    for name, array in arrays.items():
        layout[name] = [array.dtype.str, list(array.shape), offset]
        offset += _aligned(array.nbytes)
    header = json.dumps({"key": key, "shape": list(data.X.shape), "arrays": layout, "bytes": offset}).encode()
    frame = _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little") + header
    file.write(frame.ljust(_aligned(len(frame)), b"\0"))
    for array in arrays.values():
        file.write(np.ascontiguousarray(array).data)
        file.write(b"\0" * (_aligned(array.nbytes) - array.nbytes))
    file.write(_MAGIC)


def _load(place: Path, key: dict[str, Any]) -> RankingData | None:
    """Map a copy into memory; None if there is none, or it is damaged or stale."""
    try:
        with place.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # no such file, or an empty one
        return None
    head = len(_MAGIC) + 16
    size = int.from_bytes(content[len(_MAGIC) : len(_MAGIC) + 8], "little")
    crc = int.from_bytes(content[len(_MAGIC) + 8 : head], "little")
    header = content[head : head + size]
    if content[: len(_MAGIC)] != _MAGIC or content[-len(_MAGIC) :] != _MAGIC or zlib.crc32(header) != crc:
        return None
    described = json.loads(header)
    start = _aligned(head + size)
    if described["key"] != key or len(content) != start + described["bytes"] + len(_MAGIC):
        return None
    arrays = {
        name: np.frombuffer(content, dtype, int(np.prod(shape)), start + offset).reshape(shape)
        for name, (dtype, shape, offset) in described["arrays"].items()
    }
    X: Any = arrays["values"]
    if "indices" in arrays:
        from scipy.sparse import csr_matrix

        X = csr_matrix((X, arrays["indices"], arrays["indptr"]), shape=described["shape"])
    comments = None
    if "comment_ends" in arrays:
        text, ends = arrays["comment_text"].tobytes(), arrays["comment_ends"].tolist()
        spans = zip([0, *ends], ends, strict=False)
        comments = np.array([text[a:b].decode("utf-8", "surrogateescape") for a, b in spans], dtype=object)
    return RankingData(X, arrays["y"], arrays["qid"], comments=comments)


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN
