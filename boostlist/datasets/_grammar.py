r"""The grammar of LETOR text (SVMlight with query ids), and the loops that read it.

::

    file    = *line
    line    = [document] *blank ["#" comment] ["\r"] "\n"
    document = *blank number 1*blank "qid:" 1*digit *(1*blank index ":" value)
    index   = 1*digit                   rising within a line, from 1 (or 0), at most 2^31 - 1
    value   = number | "NULL"
    number  = ["+" | "-"] (1*digit ["." *digit] | "." 1*digit) [("e" | "E") ["+" | "-"] 1*digit]
    blank   = " " | "\t"
    comment = any bytes but NUL and "\n"

Every line ends with a line end, also the last: a file cut off within a number would otherwise read as another number.
A number must be finite in the type it is stored in.

Loops are given whole lines: the text ends with a line end, so that none needs to look for the end of the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.datasets._decimal import MAX_DIGITS, nearest
from boostlist.parallel import compiled, inner

if TYPE_CHECKING:
    from boostlist._typing import AnyArray, FloatArray, IntArray

# What is wrong with a line; the reader words the messages.
NONE, LABEL, LABEL_RANGE, NO_QID, QID, FEATURE, INDEX_LOW, INDEX_ORDER, INDEX_HIGH = range(9)
VALUE, VALUE_RANGE, NUL, CHANGED, SCATTERED = range(9, 14)

_TAB, _LF, _CR, _SPACE, _HASH, _PLUS, _MINUS, _DOT, _COLON = (ord(c) for c in "\t\n\r #+-.:")
_E, _SMALL_E = ord("E"), ord("e")
_QID_PREFIX, _NULL = tuple(b"qid:"), tuple(b"NULL")
_ZERO, _NINE, _TEN = np.uint64(48), np.uint64(9), np.uint64(10)
_LARGEST_QID = np.uint64(2**63 - 1)
LARGEST_INDEX = 2**31 - 1  # scipy.sparse and both boosters hold column numbers in 32 bits
_TOO_HIGH = np.uint64(LARGEST_INDEX + 1)
_BLOCK = 32
_LARGEST_LABEL = np.finfo(np.float64).max


@compiled
def whole_lines(text):  # type: ignore[no-untyped-def]
    """Return the size of the part of text that consists of whole lines."""
    end = len(text)
    while end > 0 and text[end - 1] != _LF:
        end -= 1
    return end


@inner
def _at(text, pos):  # type: ignore[no-untyped-def]
    """Return text[pos]; unsigned, so that no code is made for negative positions."""
    return text[np.uint64(pos)]


@inner
def _skip_blanks(text, pos):  # type: ignore[no-untyped-def]
    while _at(text, pos) == _SPACE or _at(text, pos) == _TAB:
        pos += 1
    return pos


@inner
def _ends_token(text, pos):  # type: ignore[no-untyped-def]
    """Tell whether a token may end here: before a blank, a comment or a line end."""
    c = _at(text, pos)
    if c == _SPACE:
        return True
    return c in (_LF, _TAB, _HASH) or (c == _CR and _at(text, pos + 1) == _LF)


@inner
def _reads(text, pos, word):  # type: ignore[no-untyped-def]
    """Tell whether text goes on with a word of four letters. None of these is a line end, so it stops at one."""
    same = True
    for i in range(4):
        same = same and _at(text, pos + i) == word[i]
    return same


@inner
def _block(text, pos):  # type: ignore[no-untyped-def]
    """Tell whether fields end in the block at pos, and count its colons; no early exit, so that it is vectorised."""
    ends, colons = False, 0
    for i in range(np.uint64(pos), np.uint64(pos + _BLOCK)):
        ends |= (text[i] == _LF) | (text[i] == _HASH)
        colons += text[i] == _COLON
    return ends, colons


@compiled
def scan(text, longest):  # type: ignore[no-untyped-def]
    """Count what a text holds, so that arrays of the right size can be made: an upper bound if lines are malformed.

    Return the numbers of lines, documents and features, the highest feature index (that of each line's last feature),
    and the start of the first line of more than `longest` bytes before its line feed, or -1.
    """
    pos, end = 0, len(text)
    lines, rows, entries, highest, overlong = 0, 0, 0, -1, -1
    while pos < end:
        first = pos
        pos = _skip_blanks(text, pos)
        is_document = not _ends_token(text, pos)
        colons = 0
        while pos + _BLOCK <= end:
            ends, found = _block(text, pos)
            if ends:
                break
            colons += found
            pos += _BLOCK
        while _at(text, pos) != _LF and _at(text, pos) != _HASH:
            colons += _at(text, pos) == _COLON
            pos += 1
        fields = pos
        while _at(text, pos) != _LF:
            pos += 1
        if pos - first > longest and overlong < 0:
            overlong = first
        pos += 1
        lines += 1
        if is_document:
            rows += 1
            entries += max(colons - 1, 0)
            highest = max(highest, _last_index(text, first, fields))
    return lines, rows, entries, highest, overlong


@inner
def _last_index(text, first, pos):  # type: ignore[no-untyped-def]
    """Return the number before the last colon of text[first:pos], or -1 if there is none."""
    while pos > first and _at(text, pos - 1) != _COLON:
        pos -= 1
    index, scale, i = 0, 1, pos - 2
    while i >= first and scale <= LARGEST_INDEX and 48 <= _at(text, i) <= 57:
        index += scale * (_at(text, i) - 48)
        scale *= 10
        i -= 1
    return min(index, LARGEST_INDEX) if i < pos - 2 else -1


@inner
def _digits(text, pos, w):  # type: ignore[no-untyped-def]
    """Append decimal digits to w; return the position after them. w wraps around beyond 19 digits."""
    digit = np.uint64(_at(text, pos)) - _ZERO
    while digit <= _NINE:
        w = w * _TEN + digit
        pos += 1
        digit = np.uint64(_at(text, pos)) - _ZERO
    return pos, w


@inner
def _number(text, pos):  # type: ignore[no-untyped-def]
    """Read a number; return the position after it, its value, and the number of digits (0: this is no number).

    The value is right up to MAX_DIGITS digits.
    """
    negative = _at(text, pos) == _MINUS
    if negative or _at(text, pos) == _PLUS:
        pos += 1
    first = pos
    pos, w = _digits(text, pos, np.uint64(0))
    digits, q = pos - first, 0
    if _at(text, pos) == _DOT:
        fraction = pos + 1
        pos, w = _digits(text, fraction, w)
        q = fraction - pos
        digits -= q
    if digits > 0 and (_at(text, pos) == _SMALL_E or _at(text, pos) == _E):
        pos += 1
        down = _at(text, pos) == _MINUS
        if down or _at(text, pos) == _PLUS:
            pos += 1
        exponent, first = 0, pos
        while 48 <= _at(text, pos) <= 57:
            if exponent < 100_000:  # far beyond any finite number, far from overflow
                exponent = exponent * 10 + (_at(text, pos) - 48)
            pos += 1
        if pos == first:
            return pos, 0.0, 0
        q += -exponent if down else exponent
    value = nearest(w, q)
    return pos, -value if negative else value, digits


@inner
def _label(text, pos, i, s, y, slow):  # type: ignore[no-untyped-def]
    """Read the label of document i; return the position after it, the number of slow numbers, and the fault."""
    token = pos
    pos, y[i], digits = _number(text, pos)
    if digits == 0 or not _ends_token(text, pos):
        return pos, s, LABEL
    if digits > MAX_DIGITS:
        slow[s, 0], slow[s, 1], slow[s, 2] = token, pos, -1 - i
        return pos, s + 1, NONE
    return pos, s, LABEL_RANGE if abs(y[i]) > _LARGEST_LABEL else NONE


@inner
def _qid(text, pos, i, qid):  # type: ignore[no-untyped-def]
    """Read the query id of document i; return the position after it, and the fault."""
    if not _reads(text, pos, _QID_PREFIX):
        return pos, NO_QID
    first = pos + 4
    pos, w = _digits(text, first, np.uint64(0))
    if pos == first or pos - first > MAX_DIGITS or w > _LARGEST_QID or not _ends_token(text, pos):
        return pos, QID
    qid[i] = np.int64(w)
    return pos, NONE


@inner
def _value(text, pos, null):  # type: ignore[no-untyped-def]
    """Read a feature's value; return the position after it, the value, the number of digits, and the fault."""
    end, value, digits = _number(text, pos)
    if digits == 0 and _reads(text, pos, _NULL):
        end, value = pos + 4, null
    elif digits == 0:
        return end, value, digits, VALUE
    return end, value, digits, NONE if _ends_token(text, end) else VALUE


class Place(NamedTuple):
    """The rows and entries of the arrays that a text may fill."""

    row: int
    last_row: int
    entry: int
    last_entry: int


class Rules(NamedTuple):
    """What columns and values there may be.

    Attributes
    ----------
    width, limit
        The number of columns, and the number allowed: an index between them occurs only where the indices of a line
        fall (the first pass looks at the last of each), so the fault is still to come.
    base
        The lowest index.
    null, absent
        What NULL stands for, and what a feature has that a line leaves out.
    largest
        The largest finite value.
    """

    width: int
    limit: int
    base: int
    null: float
    absent: float
    largest: float


class Arrays(NamedTuple):
    """What is filled: values row by row, or as CSR unless `indptr` is empty; spans of comments unless these are."""

    y: FloatArray
    qid: IntArray
    values: AnyArray
    indices: AnyArray
    indptr: IntArray
    comments: IntArray


@compiled
def parse(text, place, rules, arrays, slow):  # type: ignore[no-untyped-def]
    """Read the documents of a text into arrays.

    Numbers with too many digits are left to the caller: `slow` gets their tokens' spans and where they belong (an index
    into values, or -1 - row for a label). Reading stops at the first fault. Return the row after the last document
    before it, the number of slow numbers, the fault, and the faulty token.
    """
    width, limit, base, null, absent, largest = rules
    y, qid, values, indices, indptr, comments = arrays
    dense, keep = len(indptr) == 0, len(comments) > 0
    pos, end = 0, len(text)
    i, k, s, code, token = place.row, place.entry, 0, NONE, 0
    while pos < end:
        pos = token = _skip_blanks(text, pos)
        is_document = not _ends_token(text, pos)
        if is_document:
            if i == place.last_row:
                code = CHANGED
                break
            pos, s, code = _label(text, pos, i, s, y, slow)
            if code != NONE:
                break
            pos = token = _skip_blanks(text, pos)
            pos, code = _qid(text, pos, i, qid)
            if code != NONE:
                break
            column, offset = 0, i * width  # the next column to be filled, and where the dense row begins
            while True:
                pos = token = _skip_blanks(text, pos)
                pos, w = _digits(text, pos, np.uint64(0))
                if pos == token or _at(text, pos) != _COLON:
                    if pos > token or not _ends_token(text, pos):
                        code = FEATURE
                    break
                j = np.int64(min(w, _TOO_HIGH)) - base
                if j >= limit or pos - token > MAX_DIGITS:
                    code = INDEX_HIGH
                    break
                if j < column:
                    code = INDEX_LOW if j < 0 else INDEX_ORDER
                    break
                if dense:
                    for k in range(offset + column, offset + min(j, width)):
                        values[k] = absent
                    k = offset + j
                elif k == place.last_entry:
                    code = CHANGED
                    break
                else:
                    indices[k] = j
                column = j + 1
                pos, value, digits, code = _value(text, pos + 1, null)
                if code != NONE:
                    break
                if digits > MAX_DIGITS:
                    slow[s, 0], slow[s, 1], slow[s, 2] = token, pos, k
                    s += 1
                elif abs(value) > largest:
                    code = VALUE_RANGE
                    break
                if not dense or j < width:
                    values[k] = value
                k += 1
            if code != NONE:
                break
            if column > width:
                code = CHANGED
                break
            if dense:
                for k in range(offset + column, offset + width):
                    values[k] = absent
            else:
                indptr[i + 1] = k
            i += 1
        first = pos
        while _at(text, pos) != _LF and _at(text, pos) != 0:
            pos += 1
        if _at(text, pos) == 0:
            code, token = NUL, pos
            break
        if keep and is_document and _at(text, first) == _HASH:
            comments[i - 1, 0], comments[i - 1, 1] = first + 1, pos
        pos += 1
    return i, s, code, token
