"""Where text comes from: paths and file objects, plain or compressed, read as bytes more than once."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from boostlist._typing import AnyArray
from boostlist.files import PathLike, create

Source = PathLike | IO[bytes]

# Text never begins with one of these, so the first bytes tell the format, whatever the name says.
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}

_SPOOLED_BYTES = 1 << 20

# What a damaged or unreadable stream raises.
READ_ERRORS = (OSError, EOFError, zlib.error)


@dataclass(frozen=True)
class Text:
    """A text that can be opened repeatedly.

    Attributes
    ----------
    name
        What error messages call it.
    path
        Its file, or None.
    file
        The file object to rewind, if there is no path.
    position
        Where the text begins in the file object.
    """

    name: str
    path: Path | None
    file: IO[bytes] | None = None
    position: int = 0

    @contextmanager
    def open(self) -> Iterator[io.BufferedIOBase]:
        """Open for reading from the beginning, decompressed."""
        if self.path is not None:
            with self.path.open("rb") as file, _decompressed(file) as text:
                yield text
        else:
            assert self.file is not None
            self.file.seek(self.position)
            with _decompressed(io.BufferedReader(_Unowned(self.file))) as text:
                yield text


@contextmanager
def open_texts(sources: list[Source], max_bytes: int | None = None) -> Iterator[list[Text]]:
    """Make every source rereadable; a stream that cannot go back is copied to a temporary file first.

    Raises
    ------
    ValueError
        If a stream is longer than `max_bytes`, or a path is a pipe or device and there is no such limit.
    """
    texts: list[Text] = []
    spools: list[IO[bytes]] = []

    def spooled(stream: IO[bytes], name: str) -> IO[bytes]:
        spool = cast(IO[bytes], tempfile.TemporaryFile())  # noqa: SIM115 - closed below
        spools.append(spool)
        while block := stream.read(_SPOOLED_BYTES):
            spool.write(block)
            if max_bytes is not None and spool.tell() > max_bytes:
                raise ValueError(f"{name} has more than max_bytes={max_bytes:,} bytes")
        return spool

    try:
        for source in sources:
            if isinstance(source, str | os.PathLike):
                path = Path(source)
                if path.is_file() or path.is_dir() or not path.exists():  # opening the latter two says what is wrong
                    texts.append(Text(str(path), path))
                elif max_bytes is None:
                    raise ValueError(
                        f"{path} is a pipe or device, which may never end; give max_bytes=, or open it and pass the "
                        "file object"
                    )
                else:
                    with path.open("rb") as pipe:
                        texts.append(Text(str(path), None, spooled(pipe, str(path))))
                continue
            if isinstance(source, io.TextIOBase) or not hasattr(source, "read"):
                raise TypeError(f"expected a path or a file opened in binary mode, got {source!r}")
            name = str(getattr(source, "name", type(source).__name__))
            seekable = getattr(source, "seekable", None)
            if seekable is not None and seekable():
                texts.append(Text(name, None, source, source.tell()))
            else:
                texts.append(Text(name, None, spooled(source, name)))
        yield texts
    finally:
        for spool in spools:
            spool.close()


def fill(stream: io.BufferedIOBase, buffer: AnyArray) -> int:
    """Read until the buffer is full or the stream ends; return the number of bytes read."""
    view, size = buffer.data, 0
    while size < len(buffer):
        n = stream.readinto(view[size:])
        if not n:
            break
        size += n
    return size


@contextmanager
def create_text(path: PathLike) -> Iterator[BinaryIO]:
    """Write a file that appears under its name only when complete; compressed as its suffix says."""
    with create(path) as file, _compressed(file, Path(path).suffix) as stream:
        yield stream


@contextmanager
def _decompressed(file: io.BufferedReader) -> Iterator[io.BufferedIOBase]:
    head = file.peek(4)[:4]
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if kind is None:
        yield file
    elif kind == "gzip":
        with gzip.GzipFile(fileobj=file) as stream:
            yield stream
    elif kind == "bz2":
        with bz2.BZ2File(file) as stream:
            yield cast(io.BufferedIOBase, stream)
    else:
        with io.BufferedReader(_ZstdReader(file, _zstandard()), buffer_size=1 << 20) as stream:
            yield stream


@contextmanager
def _compressed(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix == ".gz":
        # No name and no time in the header: the same data gives the same bytes.
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as stream:
            yield cast(BinaryIO, stream)
    elif suffix == ".bz2":
        with bz2.BZ2File(file, "wb") as stream:
            yield cast(BinaryIO, stream)
    elif suffix == ".zst":
        with _zstandard().ZstdCompressor(level=9).stream_writer(file, closefd=False) as stream:
            yield stream
    else:
        yield file


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            'Zstandard text needs the package zstandard: pip install "boostlist[zstd]", or decompress the file first'
        ) from None
    return zstandard


class _Unowned(io.RawIOBase):
    """A raw stream over someone else's file object, which stays open."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _ZstdReader(io.RawIOBase):
    """Decompress Zstandard frames. The package's own stream reader takes a truncated frame for the end of the data."""

    def __init__(self, file: io.BufferedReader, zstandard: Any) -> None:
        self._file, self._zstandard = file, zstandard
        self._frame: Any = None
        self._compressed, self._text = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._text:
            self._compressed = self._compressed or self._file.read(1 << 17)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError("compressed data ended before the end of the frame")
                return 0
            self._frame = self._frame or self._zstandard.ZstdDecompressor().decompressobj()
            try:
                self._text = memoryview(self._frame.decompress(self._compressed))
            except self._zstandard.ZstdError as error:
                raise OSError(str(error)) from None
            self._compressed = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = None
        n = min(len(buffer), len(self._text))
        buffer[:n] = self._text[:n]
        self._text = self._text[n:]
        return n
