"""Numbers to short decimal text that reads back as the same number; the reverse of `_decimal`.

A number v is written as m / 10^k with the smallest k for which m = round(v 10^k) stays below 2^53 and m / 10^k rounds
to v: m and 10^k are exact in float64, so a reader's division rounds the same way. Other numbers are left to repr().
"""

from __future__ import annotations

import numpy as np

from boostlist.datasets._decimal import TEN
from boostlist.parallel import compiled, inner

# Sign, 16 digits, point and leading zeros of a number, then separators, an index of ten digits or a 19-digit id.
TOKEN_BYTES = 64
_EXACT = 2.0**53


@inner
def _digits(out, pos, m, least):  # type: ignore[no-untyped-def]
    """Write the whole number m with at least `least` digits; return the position after it."""
    count, rest = 1, m // 10
    while rest > 0:
        count += 1
        rest //= 10
    end = pos + max(count, least)
    for i in range(end - 1, pos - 1, -1):
        out[i] = 48 + m % 10
        m //= 10
    return end


@inner
def _number(out, pos, value, same):  # type: ignore[no-untyped-def]
    """Write a number; return the position after it, or -1 if it needs more digits. `same` is a buffer of its type."""
    magnitude = abs(np.float64(value))
    if value < 0 or (value == 0 and np.copysign(1.0, value) < 0):
        out[pos] = 45
        pos += 1
    for k in range(23):
        scaled = np.rint(magnitude * TEN[k])
        if scaled >= _EXACT:
            return -1
        same[0] = scaled / TEN[k]
        if same[0] == abs(value):
            m = np.int64(scaled)
            if k == 0:
                return _digits(out, pos, m, 1)
            whole = np.int64(TEN[k]) if k < 19 else np.int64(2**62)  # above 10^18 the whole part is 0: m < 2^53
            pos = _digits(out, pos, m // whole, 1)
            out[pos] = 46
            return _digits(out, pos + 1, m % whole, k)
    return -1


@compiled
def documents(first, y, qid, values, indices, indptr, width, base, out, ends, same):  # type: ignore[no-untyped-def]
    """Write documents from `first` on, until `out` is full or a number needs more digits than this can write.

    Values are dense, row by row, if `indptr` is empty, else CSR. ends[i] gets where document i's line ends.
    Returns the first document that was not written, and whether a number (not the space) stopped it.
    """
    label = np.empty(1)
    for i in range(first, len(y)):
        start = ends[i - 1] + 1 if i > first else 0
        a, b = (i * width, (i + 1) * width) if len(indptr) == 0 else (indptr[i], indptr[i + 1])
        if start + (b - a + 2) * TOKEN_BYTES > len(out):
            return i, False
        pos = _number(out, start, y[i], label)
        if pos < 0:
            return i, True
        for c in (32, 113, 105, 100, 58):  # " qid:"
            out[pos] = c
            pos += 1
        pos = _digits(out, pos, qid[i], 1)
        for k in range(a, b):
            out[pos] = 32
            j = k - a if len(indptr) == 0 else np.int64(indices[k])
            pos = _digits(out, pos + 1, j + base, 1)
            out[pos] = 58
            pos += 1
            if np.isnan(values[k]):
                for c in (78, 85, 76, 76):  # "NULL"
                    out[pos] = c
                    pos += 1
            else:
                pos = _number(out, pos, values[k], same)
                if pos < 0:
                    return i, True
        out[pos] = 10
        ends[i] = pos
    return len(y), False
