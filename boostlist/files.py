"""Files that are there whole or not at all, and archives of arrays that notice damage.

An archive is an ordinary ``.npz``: NumPy reads it as any other. Its members are not compressed and lie at multiples of
64 bytes, so that arrays can be views of the file's contents. The last member, ``about.json``, says what they are,

    {"about": {...}, "arrays": {name: [dtype, shape, offset], ...}}

and the archive's comment, the end of the file, says what it is, where that member lies, and what all bytes before the
last eight add up to:

    boostlist model 2 00000000000003c0 000000000000018f 5d2c71a0

The sum is checked before anything else is read, and reading runs nothing from the file.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import re
import secrets
import stat
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from boostlist._typing import AnyArray

PathLike = str | os.PathLike[str]

_ALIGN = 64
_BLOCK_BYTES = 4 << 20
_ABOUT = "about.json"
_TRAILER = re.compile(rb"boostlist ([a-z]+) (\d{1,9}) ([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9a-f]{8})\Z")
_SUM_BYTES = 8
_LONGEST_TRAILER = 128
# What stands before a member: its header, the field with long sizes, and the head of a field for padding (to which
# those who align the members of a zip file have given this number).
_MEMBER_BYTES = 30 + 20 + 4
_PADDING = 0xD935


class FileFormatError(ValueError):
    """A file that is not what it should be: something else, damaged, or of another version."""


def check_version(path: PathLike, found: int, known: int) -> None:
    """Raise a FileFormatError for a file of another version than the one that is known, and say what to do."""
    if found != known:
        remedy = "Upgrade boostlist" if found > known else "It is of an older boostlist: make the file anew"
        raise FileFormatError(
            f"{path} has version {found} of the format; this boostlist reads version {known}. {remedy}"
        )


class Kind(NamedTuple):
    """What an archive holds.

    Attributes
    ----------
    name
        A word: "model".
    version
        Of what is in it. Another one is refused.
    hint
        What an error says beside that the file is something else, or damaged.
    """

    name: str
    version: int
    hint: str = ""


class Archive(NamedTuple):
    """What `read_archive` found: JSON, and read-only arrays that are views of one buffer."""

    about: dict[str, Any]
    arrays: dict[str, AnyArray]


@contextmanager
def create(path: PathLike, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only when it is complete; what was there before stays until then.

    Parameters
    ----------
    path
        Where. A device or a pipe there is written to directly; where a link points, the file appears.
    replace
        Whether links, devices and pipes too are replaced, as must be where others can put them there.
    """
    target = Path(path) if replace else Path(os.path.realpath(path))
    if not replace and target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {target.parent}")
    temporary = target.with_name(f".boostlist-{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write(path: PathLike, content: bytes) -> Path:
    """Write a file that is there whole or not at all, also after a crash or on a full disk."""
    with create(path) as file:
        file.write(content)
    return Path(path)


@contextmanager
def open_regular(path: PathLike) -> Iterator[io.BufferedReader]:
    """Open a file for reading, but no pipe or device, which might never end.

    Raises
    ------
    FileFormatError
        If it is none.
    """
    # Without O_NONBLOCK, opening a pipe waits for someone to write to it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileFormatError(f"{path} is not a regular file")
        yield file


def checksum(content: Any) -> str:
    """Return eight hexadecimal digits that differ, but for one case in four thousand millions, where contents do."""
    view = memoryview(content).cast("B")
    return _sum(view[first : first + _BLOCK_BYTES] for first in range(0, len(view), _BLOCK_BYTES))


def write_archive(
    path: PathLike, kind: Kind, about: Mapping[str, Any], arrays: Mapping[str, Any], *, replace: bool = False
) -> Path:
    """Write an archive.

    Parameters
    ----------
    path
        The file.
    kind
        What it holds.
    about
        Whatever JSON can hold.
    arrays
        Arrays of numbers or strings by name.
    replace
        See `create`.
    """
    with create(path, replace=replace) as file:
        layout = {}
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                layout[name] = _add_array(archive, file, name, np.asarray(array))
            text = json.dumps({"about": about, "arrays": layout}).encode()
            with archive.open(zipfile.ZipInfo(_ABOUT), "w") as member:
                place = file.tell()
                member.write(text)
            archive.comment = f"boostlist {kind.name} {kind.version} {place:016x} {len(text):016x} ".encode()
            archive.comment += b"0" * _SUM_BYTES
        file.write(_sum_of_file(file).encode())
    return Path(path)


def read_archive(path: PathLike, kind: Kind, *, owners: Collection[int] | None = None, mapped: bool = False) -> Archive:
    """Read an archive.

    Parameters
    ----------
    path
        The file.
    kind
        What it must hold.
    owners
        User ids; a file of anybody else is refused. None takes every file.
    mapped
        Whether to map the file into memory rather than to read it; its sum is then checked only the first time.

    Raises
    ------
    FileFormatError
        If the file is something else, is damaged, or was written by another version.
    """
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        if owners is not None and status.st_uid not in owners:
            raise FileFormatError(f"{path} belongs to another user")
        if not mapped or status.st_size < _SUM_BYTES:
            content = np.empty(status.st_size, np.uint8)
            content = content[: file.readinto(content.data)]
            return _unpack(path, kind, content, checksum(content[:-_SUM_BYTES]))
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if identity not in _sums:
            _sums[identity] = _sum_of_file(file)
        return _unpack(path, kind, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), _sums[identity])


# The sums of mapped files, by what tells whether a file is still the same.
_sums: dict[tuple[int, ...], str] = {}


def _unpack(path: PathLike, kind: Kind, content: Any, total: str) -> Archive:
    view = memoryview(content).toreadonly()
    damaged = f"{path} is not a {kind.name} of boostlist, or is damaged{kind.hint and '; '}{kind.hint}"
    trailer = _TRAILER.search(view[-_LONGEST_TRAILER:].tobytes())
    if trailer is None or trailer[1] != kind.name.encode() or trailer[5] != total.encode():
        raise FileFormatError(damaged)
    check_version(path, int(trailer[2]), kind.version)
    place, size = int(trailer[3], 16), int(trailer[4], 16)
    try:
        described = json.loads(view[place : place + size].tobytes())
        arrays = {
            name: np.frombuffer(view, dtype, int(np.prod(shape)), offset).reshape(shape)
            for name, (dtype, shape, offset) in described["arrays"].items()
        }
        return Archive(dict(described["about"]), arrays)
    except Exception as error:  # the sum is right, so this is a forgery, and there is no end to what that may raise
        raise FileFormatError(damaged) from error


def _add_array(archive: zipfile.ZipFile, file: BinaryIO, name: str, array: AnyArray) -> tuple[str, list[int], int]:
    """Add a member so that the array itself begins at a multiple of 64; return type, shape and that place."""
    member = zipfile.ZipInfo(f"{name}.npy")
    padding = -(file.tell() + _MEMBER_BYTES + len(member.filename.encode())) % _ALIGN
    member.extra = _PADDING.to_bytes(2, "little") + padding.to_bytes(2, "little") + b"\0" * padding
    array = np.ascontiguousarray(array).reshape(array.shape)
    with archive.open(member, "w", force_zip64=True) as stream:
        np.lib.format.write_array_header_1_0(cast(Any, stream), np.lib.format.header_data_from_array_1_0(array))
        place = file.tell()
        stream.write(array.reshape(-1).view(np.uint8).data)
    return array.dtype.str, list(array.shape), place


def _sum_of_file(file: BinaryIO) -> str:
    """Return the sum of all but the last eight bytes, without having them all in memory, and stop there."""
    end = file.seek(-_SUM_BYTES, os.SEEK_END)
    file.seek(0)
    return _sum(file.read(min(_BLOCK_BYTES, end - first)) for first in range(0, end, _BLOCK_BYTES))


def _sum(blocks: Iterable[Any]) -> str:
    from boostlist.parallel import in_flight, in_order

    total = 0
    for each in in_order(zlib.crc32, ((block,) for block in blocks), in_flight()):
        total = zlib.crc32(each.to_bytes(4, "little"), total)
    return f"{total:08x}"
