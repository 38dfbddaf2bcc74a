"""The two passes over LETOR text, both by loops on all threads.

The first counts documents and features, so that the arrays are made once in their final size; the second reads the
numbers into them. Text is read in batches of whole lines: while one thread reads a batch from the file, the others work
on those before it, each on its own. No more than a few batches are in memory at a time, whatever the file's size.
"""

from __future__ import annotations

import codecs
import itertools
import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from boostlist._typing import AnyArray, IntArray
from boostlist.datasets._sources import READ_ERRORS, Source, Text, fill, open_texts
from boostlist.datasets.data import RankingData

MAX_LINE_BYTES = 4 << 20
BLOCK_BYTES = 1 << 20
KEEP_BYTES = 12 << 20  # text kept from the first pass for the second: small files are read and decompressed once
EXCERPT_BYTES = 60


class LetorError(ValueError):
    """A text that is not LETOR data.

    Attributes
    ----------
    file
        Name of the file.
    line, column
        Where it is, counted from 1 (columns in bytes).
    text
        The offending text.
    reason
        What is wrong with it.
    """

    def __init__(self, file: str, line: int, column: int, text: str, reason: str) -> None:
        super().__init__(file, line, column, text, reason)
        self.file, self.line, self.column, self.text, self.reason = file, line, column, text, reason

    def __str__(self) -> str:
        found = f": {self.text!r}" if self.text else ""
        return f"{self.file}, line {self.line}, column {self.column}{found}: {self.reason}"


@dataclass(frozen=True)
class LetorOptions:
    """How to read LETOR text; see `load_letor`."""

    n_features: int | None = None
    dtype: str = "float32"
    sparse: bool | Literal["auto"] = "auto"
    zero_based: bool = False
    null: float = math.nan
    absent: float = 0.0
    comments: bool = False
    sort: bool = False
    max_bytes: int | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype must be float32 or float64, got {self.dtype}")
        if self.sparse not in (True, False, "auto"):
            raise ValueError(f'sparse must be True, False or "auto", got {self.sparse!r}')
        for name, value in (("null", self.null), ("absent", self.absent)):
            if not (value == 0 or math.isnan(value)):
                raise ValueError(f"{name} must be 0 or nan, got {value!r}")
        if self.sparse is True and math.isnan(self.absent):
            raise ValueError("absent=nan needs sparse=False: what a sparse matrix does not store counts as 0")
        for name in ("n_features", "max_bytes", "max_rows"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")


def read(sources: list[Source], options: LetorOptions) -> RankingData:
    """Read texts as one; see `load_letor`."""
    with open_texts(sources, options.max_bytes) as texts:
        plans, keep, room = [], KEEP_BYTES, _Room(options)
        for text in texts:
            plan = _scan(text, keep, room)
            plans.append(plan)
            keep -= sum(len(batch) for batch in plan.kept or ())
            if plan.error is not None:
                break
        reader = _Reader([batch for plan in plans for batch in plan.batches], options)
        for plan in plans:
            reader.read(plan)
        if reader.rows == 0:
            raise LetorError(texts[-1].name, plans[-1].lines + 1, 1, "", "there are no documents")
    return reader.result()


@dataclass(frozen=True)
class _Batch:
    """Whole lines: how many bytes, lines, documents and features, and the highest index of a feature."""

    size: int
    lines: int
    rows: int
    entries: int
    highest_index: int


@dataclass
class _Plan:
    """What the first pass found in a text.

    `kept` is the text itself, batch by batch, or None where it is too long. `error` is a line that is too long or does
    not end: it is raised when the lines before it have been read.
    """

    text: Text
    batches: list[_Batch] = field(default_factory=list)
    kept: list[AnyArray] | None = field(default_factory=list)
    error: LetorError | None = None

    @property
    def lines(self) -> int:
        return sum(batch.lines for batch in self.batches)

    def stop(self, column: int, found: bytes, reason: str) -> None:
        self.error = LetorError(self.text.name, self.lines + 1, column, _shown(found), reason)

    def stop_overlong(self) -> None:
        self.stop(MAX_LINE_BYTES + 1, b"", f"the line is longer than {MAX_LINE_BYTES:,} bytes; is this LETOR text?")


class _Room:
    """How much text and how many documents may still come."""

    def __init__(self, options: LetorOptions) -> None:
        self._options = options
        self._bytes = self._rows = 0

    def take(self, plan: _Plan, batch: _Batch) -> None:
        """Make room for a batch that is not in the plan yet; raise an error if there is none."""
        self._bytes, self._rows = self._bytes + batch.size, self._rows + batch.rows
        for name, taken, what in (("max_bytes", self._bytes, "bytes"), ("max_rows", self._rows, "documents")):
            limit = getattr(self._options, name)
            if limit is not None and taken > limit:
                reason = f"the limit of {name}={limit:,} {what} is passed here or soon after"
                raise LetorError(plan.text.name, plan.lines + 1, 1, "", reason)


def _scan(text: Text, keep: int, room: _Room) -> _Plan:
    """First pass: cut a text into batches of whole lines, and count."""
    from boostlist.datasets import _grammar
    from boostlist.parallel import in_flight, in_order

    plan, rest, limit = _Plan(text), np.empty(0, np.uint8), in_flight()
    failure: Exception | None = None

    def batches() -> Iterator[tuple[AnyArray]]:
        """Read blocks, each behind what is left of the line that the one before it ends within."""
        nonlocal rest, failure
        size = BLOCK_BYTES
        buffers = itertools.cycle([np.empty(MAX_LINE_BYTES + BLOCK_BYTES, np.uint8) for _ in range(limit)])
        buffer = next(buffers)
        with text.open() as stream:
            while size == BLOCK_BYTES and len(rest) <= MAX_LINE_BYTES:
                try:
                    size = fill(stream, buffer[MAX_LINE_BYTES:])
                except READ_ERRORS as error:
                    failure = error
                    return
                buffer[MAX_LINE_BYTES - len(rest) : MAX_LINE_BYTES] = rest
                block = buffer[MAX_LINE_BYTES - len(rest) : MAX_LINE_BYTES + size]
                whole = _grammar.whole_lines(block)
                rest = block[whole:].copy()
                if whole:
                    yield (block[:whole],)
                    buffer = next(buffers)

    def count(batch: AnyArray) -> tuple[AnyArray, tuple[int, ...]]:
        return batch, _grammar.scan(batch, MAX_LINE_BYTES)

    with closing(in_order(count, batches(), limit)) as results:
        for batch, (*counts, overlong) in results:
            if overlong >= 0:
                batch = batch[:overlong]
                *counts, _ = _grammar.scan(batch, MAX_LINE_BYTES)
            found = _Batch(len(batch), *counts)
            room.take(plan, found)
            plan.batches.append(found)
            keep -= len(batch)
            if keep < 0:
                plan.kept = None
            elif plan.kept is not None:
                plan.kept.append(batch.copy())
            if overlong >= 0:
                plan.stop_overlong()
                return plan
    if failure is not None:
        plan.stop(1, b"", f"the file cannot be read beyond this line: {failure}")
    elif len(rest) > MAX_LINE_BYTES:
        plan.stop_overlong()
    elif len(rest):
        reason = "the file ends within this line: it seems cut off (if not, append a line end)"
        plan.stop(len(rest) + 1, rest[-EXCERPT_BYTES:].tobytes(), reason)
    return plan


class _Reader:
    """Second pass: the arrays, and how they are filled batch by batch."""

    def __init__(self, batches: list[_Batch], options: LetorOptions) -> None:
        from boostlist.datasets._grammar import LARGEST_INDEX

        self.options = options
        self.base = 0 if options.zero_based else 1
        self.rows = sum(batch.rows for batch in batches)
        entries = sum(batch.entries for batch in batches)
        found = max((batch.highest_index for batch in batches), default=-1) + 1 - self.base
        self.width = options.n_features or max(found, 0)
        self.limit = options.n_features or LARGEST_INDEX + 1 - self.base
        dtype = np.dtype(options.dtype)
        self.sparse = options.sparse is True or (
            options.sparse == "auto"
            and not math.isnan(options.absent)
            and 2 * entries * (dtype.itemsize + 4) < self.rows * self.width * dtype.itemsize
        )
        try:
            self.values = np.empty(entries if self.sparse else self.rows * self.width, dtype)
        except (MemoryError, ValueError):
            raise MemoryError(
                f"X has {self.rows:,} documents x {self.width:,} features: too large for a dense {dtype} array; "
                "use sparse=True"
            ) from None
        self.y, self.qid = np.empty(self.rows), np.empty(self.rows, np.int64)
        self.indices = np.empty(entries if self.sparse else 0, np.int32)
        self.indptr = np.zeros(self.rows + 1 if self.sparse else 0, np.int64)
        self.spans = np.zeros((self.rows if options.comments else 0, 2), np.int64)
        self.comments: list[str] = []
        self.row = self.entry = 0
        self.seen: set[int] = set()

    def read(self, plan: _Plan) -> None:
        """Read one text; raise its first error."""
        from boostlist.parallel import in_flight, in_order

        lines, limit = 0, in_flight()
        with closing(in_order(self._parse, self._texts(plan, limit), limit)) as results:
            for batch, text, outcome in results:
                self._accept(plan.text, text, batch, lines, *outcome)
                lines += batch.lines
        if plan.error is not None:
            raise plan.error

    def _texts(self, plan: _Plan, limit: int) -> Iterator[tuple[_Batch, AnyArray, int, int]]:
        """Yield each batch with its text, and the row and the entry at which it begins."""
        from boostlist.datasets._grammar import whole_lines

        row, entry = self.row, self.entry
        largest = max((batch.size for batch in plan.batches), default=0) if plan.kept is None else 0
        buffers = itertools.cycle([np.empty(largest, np.uint8) for _ in range(limit)])
        with plan.text.open() as stream:
            for number, batch in enumerate(plan.batches):
                if plan.kept is not None:
                    text = plan.kept[number]
                else:
                    text = next(buffers)[: batch.size]
                    # The loop relies on the line end that was there in the first pass.
                    if fill(stream, text) < batch.size or whole_lines(text) < batch.size:
                        raise _changed(plan.text)
                yield batch, text, row, entry
                row, entry = row + batch.rows, entry + batch.entries

    def _parse(self, batch: _Batch, text: AnyArray, row: int, entry: int) -> tuple[_Batch, AnyArray, tuple[Any, ...]]:
        """Fill the rows of a batch; return the batch, and as its outcome the slow numbers and what the loop says."""
        from boostlist.datasets import _grammar
        from boostlist.datasets._decimal import MAX_DIGITS

        options = self.options
        # A slow number has more than MAX_DIGITS bytes, so there cannot be more of them than this.
        slow = np.empty((batch.size // MAX_DIGITS, 3), np.int64)
        place = _grammar.Place(row, row + batch.rows, entry, entry + batch.entries)
        largest = _largest(self.values.dtype)
        rules = _grammar.Rules(self.width, self.limit, self.base, options.null, options.absent, largest)
        arrays = _grammar.Arrays(self.y, self.qid, self.values, self.indices, self.indptr, self.spans)
        stop, n_slow, fault, where = _grammar.parse(text, place, rules, arrays, slow)
        return batch, text, (slow[:n_slow].copy(), stop, fault, where)

    def _accept(
        self, source: Text, text: AnyArray, batch: _Batch, lines: int, slow: IntArray, stop: int, fault: int, where: int
    ) -> None:
        """Finish the rows of a batch, in the order of the batches; raise the first error in it."""
        from boostlist.datasets import _grammar

        # Where in the text reading would have stopped, the token to show, and why; the earliest counts.
        stops = [(where, where, fault)] if fault != _grammar.NONE else []
        stops += self._slow_numbers(text, slow)
        if not self.options.sort:
            stops += self._scattered(text, stop)
        if stops:
            _, token, code = min(stops)
            if code == _grammar.CHANGED:
                raise _changed(source)
            raise self._error(source, text, token, code, lines)
        row, entry = self.row + batch.rows, self.entry + batch.entries
        if stop < row or (self.sparse and self.indptr[stop] < entry):
            raise _changed(source)
        if self.options.comments:
            raw = text.tobytes()
            self.comments += [
                raw[a:b].strip().decode("utf-8", "surrogateescape") for a, b in self.spans[self.row : stop].tolist()
            ]
        self.row, self.entry = row, entry

    def _slow_numbers(self, text: AnyArray, slow: IntArray) -> list[tuple[int, int, int]]:
        """Convert numbers of many digits by Python's float(); return the first that is too large."""
        from boostlist.datasets import _grammar

        for token, end, target in slow.tolist():
            value = float(text[token:end].tobytes().rpartition(b":")[2])
            if target < 0:
                if math.isinf(value):
                    return [(token, token, _grammar.LABEL_RANGE)]
                self.y[-1 - target] = value
            else:
                if abs(value) > _largest(self.values.dtype):
                    return [(token, token, _grammar.VALUE_RANGE)]
                if target < len(self.values):  # else its index is above those that follow: a fault, reported as such
                    self.values[target] = value
        return []

    def _scattered(self, text: AnyArray, stop: int) -> list[tuple[int, int, int]]:
        """Return the first document whose query had ended before, if there is one."""
        ids = self.qid[self.row : stop]
        before = self.qid[self.row - 1] if self.row else None
        heads = [0] if len(ids) and ids[0] != before else []
        heads += (1 + np.flatnonzero(ids[1:] != ids[:-1])).tolist()
        for head in heads:
            query = int(ids[head])
            if query in self.seen:
                return [_locate(text, head)]
            self.seen.add(query)
        return []

    def _error(self, source: Text, text: AnyArray, token: int, code: int, lines: int) -> LetorError:
        before = text[:token].tobytes()
        column = token - before.rfind(b"\n")
        after = text[token : token + EXCERPT_BYTES].tobytes().partition(b"\n")[0]
        found = after.replace(b"\t", b" ").partition(b" ")[0] or before[token - column + 1 :]
        reason = _reasons(self.base, self.limit, self.values.dtype.name)[code]
        line = lines + before.count(b"\n") + 1
        if (line, column) == (1, 1) and found.startswith(codecs.BOM_UTF8):
            reason = "the file begins with a byte order mark; save it as UTF-8 without one"
        return LetorError(source.name, line, column, _shown(found), reason)

    def result(self) -> RankingData:
        """Return the data when all texts have been read."""
        X: Any = self.values.reshape(self.rows, self.width) if not self.sparse else None
        if self.sparse:
            from scipy.sparse import csr_matrix

            X = csr_matrix((self.values, self.indices, self.indptr), shape=(self.rows, self.width))
        comments = np.array(self.comments, dtype=object) if self.options.comments else None
        make = RankingData.grouped if self.options.sort else RankingData
        return make(X, self.y, self.qid, comments=comments)


def _locate(text: AnyArray, document: int) -> tuple[int, int, int]:
    """Return where the fields of a document end, and where its query id is, as a stop of reading."""
    from boostlist.datasets import _grammar

    position = 0
    for line in text.tobytes().split(b"\n"):
        fields = line.partition(b"#")[0]
        if fields.strip(b" \t\r"):
            if document == 0:
                return position + len(fields), position + fields.index(b"qid:"), _grammar.SCATTERED
            document -= 1
        position += len(line) + 1
    raise AssertionError("the document is in this text")


def _reasons(base: int, limit: int, dtype: str) -> dict[int, str]:
    from boostlist.datasets import _grammar

    wider = '; use dtype="float64"' if dtype == "float32" else ""
    first = "" if base == 0 else "; if the file counts features from 0, use zero_based=True"
    return {
        _grammar.LABEL: "a line begins with a label, a decimal number",
        _grammar.LABEL_RANGE: "this label is too large for float64",
        _grammar.NO_QID: "after the label there must be qid: and a query id",
        _grammar.QID: f"a query id is a whole number of at most {2**63 - 1}",
        _grammar.FEATURE: "a feature is written index:value, with a whole number as index",
        _grammar.INDEX_LOW: f"features are counted from {base}{first}",
        _grammar.INDEX_ORDER: "the indices of a line must rise",
        _grammar.INDEX_HIGH: f"the highest index allowed is {limit - 1 + base}",
        _grammar.VALUE: "a value is a decimal number such as -1.5e-3, or NULL",
        _grammar.VALUE_RANGE: f"this value is too large for {dtype}" + wider,
        _grammar.NUL: "a NUL byte: this is not text, or the file is damaged",
        _grammar.SCATTERED: "this query's documents are not adjacent: other queries lie between; use sort=True",
    }


def _largest(dtype: np.dtype[Any]) -> float:
    """Return the largest float64 that is still finite when rounded to dtype."""
    # Halfway between the largest float32 and 2^128 rounds to even, that is to infinity.
    return float(np.finfo(dtype).max if dtype == np.float64 else np.nextafter(2.0**128 - 2.0**103, 0))


def _shown(found: bytes) -> str:
    cut = found[:EXCERPT_BYTES].decode("ascii", "backslashreplace")
    return cut + ("..." if len(found) > EXCERPT_BYTES else "")


def _changed(source: Text) -> OSError:
    return OSError(f"{source.name} changed while it was read; try again")
