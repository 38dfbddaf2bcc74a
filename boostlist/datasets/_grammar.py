r"""The grammar of LETOR text (SVMlight with query ids), and the kernels that read it.

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

Text is read in batches of whole lines, a batch is cut into pieces of whole lines, and kernels run over ranges of pieces
as they do over queries elsewhere. Every piece ends with a line end, so no loop here needs to look for the end of text.
"""

from __future__ import annotations

import numpy as np

from boostlist.datasets._decimal import MAX_DIGITS, nearest
from boostlist.parallel import kernel

# What is wrong with a line; the reader words the messages.
NONE, LABEL, LABEL_RANGE, NO_QID, QID, FEATURE, INDEX_LOW, INDEX_ORDER, INDEX_HIGH = range(9)
VALUE, VALUE_RANGE, NUL, CHANGED, SCATTERED = range(9, 14)

_TAB, _LF, _CR, _SPACE, _HASH, _PLUS, _MINUS, _DOT, _COLON = (ord(c) for c in "\t\n\r #+-.:")
_E, _SMALL_E, _N, _U, _L, _Q, _I, _D = (ord(c) for c in "EeNULqid")
_ZERO, _NINE, _TEN = np.uint64(48), np.uint64(9), np.uint64(10)
_LARGEST_QID = np.uint64(2**63 - 1)
LARGEST_INDEX = 2**31 - 1  # scipy.sparse and both boosters hold column numbers in 32 bits
_TOO_HIGH = np.uint64(LARGEST_INDEX + 1)
_LARGEST_LABEL = np.finfo(np.float64).max


@kernel
def cut(text, size, offsets):  # type: ignore[no-untyped-def]
    """Cut text into at most len(offsets) - 1 pieces of whole lines, each of about `size` bytes; return their number."""
    end = len(text)
    while end > 0 and text[end - 1] != _LF:
        end -= 1
    pieces, pos = 0, 0
    offsets[0] = 0
    while pos < end:
        pos = min(pos + size, end)
        while text[pos - 1] != _LF:
            pos += 1
        pieces += 1
        offsets[pieces] = pos
    return pieces


@kernel
def _skip_blanks(text, pos):  # type: ignore[no-untyped-def]
    while text[pos] == _SPACE or text[pos] == _TAB:
        pos += 1
    return pos


@kernel
def _ends_token(text, pos):  # type: ignore[no-untyped-def]
    """Tell whether a token may end here: before a blank, a comment or a line end."""
    c = text[pos]
    return c in (_SPACE, _LF, _TAB, _HASH) or (c == _CR and text[pos + 1] == _LF)


@kernel
def scan(lo, hi, start, text, longest, lines, rows, entries, index, overlong):  # type: ignore[no-untyped-def]
    """Count what each piece holds, so that arrays of the right size can be made: an upper bound if lines are malformed.

    `index` gets the highest feature index (that of each line's last feature), `overlong` the start of the first line of
    more than `longest` bytes before its line feed, or -1.
    """
    for p in range(lo, hi):
        pos, end = start[p], start[p + 1]
        n_lines, n_rows, n_entries, highest = 0, 0, 0, -1
        overlong[p] = -1
        while pos < end:
            first = pos
            pos = _skip_blanks(text, pos)
            is_document = not _ends_token(text, pos)
            colons, colon = 0, -1
            while text[pos] != _LF and text[pos] != _HASH:
                if text[pos] == _COLON:
                    colons += 1
                    colon = pos
                pos += 1
            while text[pos] != _LF:
                pos += 1
            if pos - first > longest and overlong[p] < 0:
                overlong[p] = first
            pos += 1
            n_lines += 1
            if is_document:
                n_rows += 1
                n_entries += max(colons - 1, 0)
                value, scale, i = 0, 1, colon - 1
                while i >= first and scale <= LARGEST_INDEX and 48 <= text[i] <= 57:
                    value += scale * (text[i] - 48)
                    scale *= 10
                    i -= 1
                if i < colon - 1:
                    highest = max(highest, min(value, LARGEST_INDEX))
        lines[p], rows[p], entries[p], index[p] = n_lines, n_rows, n_entries, highest


@kernel
def _digits(text, pos, w):  # type: ignore[no-untyped-def]
    """Append decimal digits to w; return the position after them. w wraps around beyond 19 digits."""
    digit = np.uint64(text[pos]) - _ZERO
    while digit <= _NINE:
        w = w * _TEN + digit
        pos += 1
        digit = np.uint64(text[pos]) - _ZERO
    return pos, w


@kernel
def _number(text, pos):  # type: ignore[no-untyped-def]
    """Read a number; return the position after it, its value, and the number of digits (0: this is no number).

    The value is right up to MAX_DIGITS digits.
    """
    negative = text[pos] == _MINUS
    if negative or text[pos] == _PLUS:
        pos += 1
    first = pos
    pos, w = _digits(text, pos, np.uint64(0))
    digits, q = pos - first, 0
    if text[pos] == _DOT:
        fraction = pos + 1
        pos, w = _digits(text, fraction, w)
        q = fraction - pos
        digits -= q
    if digits > 0 and (text[pos] == _SMALL_E or text[pos] == _E):
        pos += 1
        down = text[pos] == _MINUS
        if down or text[pos] == _PLUS:
            pos += 1
        exponent, first = 0, pos
        while 48 <= text[pos] <= 57:
            if exponent < 100_000:  # far beyond any finite number, far from overflow
                exponent = exponent * 10 + (text[pos] - 48)
            pos += 1
        if pos == first:
            return pos, 0.0, 0
        q += -exponent if down else exponent
    value = nearest(w, q)
    return pos, -value if negative else value, digits


@kernel
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


@kernel
def _qid(text, pos, i, qid):  # type: ignore[no-untyped-def]
    """Read the query id of document i; return the position after it, and the fault."""
    if not (text[pos] == _Q and text[pos + 1] == _I and text[pos + 2] == _D and text[pos + 3] == _COLON):
        return pos, NO_QID
    first = pos + 4
    pos, w = _digits(text, first, np.uint64(0))
    if pos == first or pos - first > MAX_DIGITS or w > _LARGEST_QID or not _ends_token(text, pos):
        return pos, QID
    qid[i] = np.int64(w)
    return pos, NONE


@kernel
def _value(text, pos, null):  # type: ignore[no-untyped-def]
    """Read a feature's value; return the position after it, the value, the number of digits, and the fault."""
    end, value, digits = _number(text, pos)
    if digits == 0 and text[pos] == _N and text[pos + 1] == _U and text[pos + 2] == _L and text[pos + 3] == _L:
        end, value = pos + 4, null
    elif digits == 0:
        return end, value, digits, VALUE
    return end, value, digits, NONE if _ends_token(text, end) else VALUE


@kernel
def parse(  # type: ignore[no-untyped-def]
    lo, hi, start, text, row, entry, slow_start, width, base, null, absent, largest,
    y, qid, values, indices, indptr, comments, slow, n_slow, n_rows, fault, where,
):  # fmt: skip
    """Read the documents of each piece into y, qid and values, from row[p] and entry[p] on.

    Values go to a dense array (row by row) if `indices` is empty, else to CSR arrays. `comments` gets the span of each
    comment unless it is empty. Numbers with too many digits are left to the caller: `slow` gets their tokens' spans and
    where they belong (an index into values, or -1 - row for a label), from slow_start[p] on.
    A piece stops at its first fault; n_rows gets the number of documents before it, `where` the faulty token.
    """
    dense, keep = len(indices) == 0, len(comments) > 0
    for p in range(lo, hi):
        pos, end = start[p], start[p + 1]
        i, k, s, code, token = row[p], entry[p], slow_start[p], NONE, pos
        while pos < end:
            pos = token = _skip_blanks(text, pos)
            is_document = not _ends_token(text, pos)
            if is_document:
                if i == row[p + 1]:
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
                    if _ends_token(text, pos):
                        break
                    pos, w = _digits(text, pos, np.uint64(0))
                    if pos == token or text[pos] != _COLON:
                        code = FEATURE
                        break
                    j = np.int64(min(w, _TOO_HIGH)) - base
                    if j >= width or pos - token > MAX_DIGITS:
                        code = INDEX_HIGH
                        break
                    if j < column:
                        code = INDEX_LOW if j < 0 else INDEX_ORDER
                        break
                    if dense:
                        values[offset + column : offset + j] = absent
                        k = offset + j
                    elif k == entry[p + 1]:
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
                    values[k] = value
                    k += 1
                if code != NONE:
                    break
                if dense:
                    values[offset + column : offset + width] = absent
                else:
                    indptr[i + 1] = k
                i += 1
            first = pos
            while text[pos] != _LF and text[pos] != 0:
                pos += 1
            if text[pos] == 0:
                code, token = NUL, pos
                break
            if keep and is_document and text[first] == _HASH:
                comments[i - 1, 0], comments[i - 1, 1] = first + 1, pos
            pos += 1
        n_rows[p], n_slow[p], fault[p], where[p] = i - row[p], s - slow_start[p], code, token
