"""Decimal text to the nearest float64, as Python's float() rounds it.

A number w * 10^q with an integer w of at most 19 digits is rounded correctly by one of two ways:

- w <= 2^53 and |q| <= 22: w and 10^|q| are exact in float64, so one multiplication or division rounds once
  (Clinger, How to read floating point numbers accurately, PLDI 1990).
- otherwise: w * 5^q from a table of 128-bit approximations of 5^q, whose error is too small to change the rounding
  (Lemire, Number parsing at a gigabyte per second, 2021, algorithm 1; that no fallback is needed for 19 digits is shown
  in Mushtak and Lemire, Fast number parsing without fallback, 2023).

Longer mantissas are left to Python's float().
"""

from __future__ import annotations

import numpy as np

from boostlist._typing import AnyArray
from boostlist.parallel import compiled, inner

MAX_DIGITS = 19  # 10^19 - 1 < 2^64

_SMALLEST_POWER, _LARGEST_POWER = -342, 308  # below 10^19 * 10^-342 all is 0, above 10^308 all is infinite
TEN = 10.0 ** np.arange(23)
_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_EXACT = np.uint64(1 << 53)
_HIDDEN = np.uint64(1 << 52)
# A product whose bits below the 55 that decide the rounding are all ones might carry: then the second word is needed.
_UNDECIDED = np.uint64((1 << 9) - 1)


def _powers_of_five() -> AnyArray:
    """Return the 128 leading bits of 5^q, as two words: rounded up for q < 0, else cut (Lemire, section 5)."""
    table = np.empty((_LARGEST_POWER - _SMALLEST_POWER + 1, 2), np.uint64)
    for q in range(_SMALLEST_POWER, _LARGEST_POWER + 1):
        if q < 0:
            five = 5**-q
            bits = (five - 1).bit_length()
            word = (1 << (bits + 127 if q >= -27 else 2 * bits + 128)) // five + 1
        else:
            word = 5**q << 128
        word >>= word.bit_length() - 128
        table[q - _SMALLEST_POWER] = word >> 64, word & (1 << 64) - 1
    return table


_FIVE = _powers_of_five()


@inner
def _product(a, b):  # type: ignore[no-untyped-def]
    """Return the high and the low word of a * b."""
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    low, middle, other = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> _HALF) + (middle & _LOW) + (other & _LOW)
    return a1 * b1 + (middle >> _HALF) + (other >> _HALF) + (carry >> _HALF), (low & _LOW) | (carry << _HALF)


@inner
def _wide(w, q):  # type: ignore[no-untyped-def]
    """Return the float64 nearest to w * 10^q by Lemire's algorithm 1."""
    if w == np.uint64(0) or q < _SMALLEST_POWER:
        return 0.0
    if q > _LARGEST_POWER:
        return np.inf
    leading = 0
    while w < np.uint64(1 << 63):
        w <<= _ONE
        leading += 1
    five_high, five_low = _FIVE[q - _SMALLEST_POWER]
    high, low = _product(w, five_high)
    if high & _UNDECIDED == _UNDECIDED:
        second, _ = _product(w, five_low)
        low += second
        if second > low:
            high += _ONE
    top = np.int64(high >> np.uint64(63))
    shift = np.uint64(top + 9)
    mantissa = high >> shift
    power = ((217706 * q) >> 16) + 63 + top - leading + 1023  # 217706 / 2^16 ~ log2(10)
    if power <= 0:  # subnormal
        if power < -62:
            return 0.0
        mantissa >>= np.uint64(1 - power)
        mantissa += mantissa & _ONE
        return np.ldexp(np.float64(mantissa >> _ONE), -1074)
    if low <= _ONE and -4 <= q <= 23 and mantissa & _THREE == _ONE and mantissa << shift == high:
        mantissa &= ~_ONE  # exactly halfway: round to even
    mantissa += mantissa & _ONE
    mantissa >>= _ONE
    if mantissa >= _TWO * _HIDDEN:
        mantissa = _HIDDEN
        power += 1
    if power >= 2047:
        return np.inf
    return np.ldexp(np.float64(mantissa), power - 1075)


@compiled
def nearest(w, q):  # type: ignore[no-untyped-def]
    """Return the float64 nearest to w * 10^q, for a uint64 w of at most 19 digits; inf where it is too large."""
    if w <= _EXACT:
        if -22 <= q <= 0:
            return np.float64(w) / TEN[-q]
        if 0 < q <= 22:
            return np.float64(w) * TEN[q]
    return _wide(w, q)
