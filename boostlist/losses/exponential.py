r"""An exponential that loops can be vectorised over: no call, no branch, no table.

e^x = 2^k e^r with k the whole number next to x / log 2 and |r| <= log(2) / 2, where the Taylor polynomial of degree 13
of e^r is exact to rounding. Adding 1.5 x 2^52 rounds x / log 2 to k and leaves k in the lowest bits of the sum;
shifted into the place of the exponent, k + 1023 is the double 2^k. log 2 is taken in two parts, of which k times the
first is exact. The result is within 3 units in the last place.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from boostlist.parallel import FUSED, inner

_SHIFT = 1.5 * 2.0**52
_LOG2_E = 1 / math.log(2)
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_, _, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1 / math.factorial(n) for n in range(14))


@intrinsic  # type: ignore[untyped-decorator]
def bits(typing_context: Any, x: types.Type) -> Any:
    """Return the bits of a double as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic  # type: ignore[untyped-decorator]
def double(typing_context: Any, bits: types.Type) -> Any:
    """Return the double that has these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


# Sums in another order would cancel the shift; fused products and sums do no harm.
@partial(inner, liberties=FUSED)
def exp(x):  # type: ignore[no-untyped-def]
    """Return e^x for -700 <= x <= 700."""
    shifted = x * _LOG2_E + _SHIFT
    k = shifted - _SHIFT
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = ((1 + r) + (_C2 + _C3 * r) * r2) + ((_C4 + _C5 * r) + (_C6 + _C7 * r) * r2) * r4
    high = ((_C8 + _C9 * r) + (_C10 + _C11 * r) * r2) + (_C12 + _C13 * r) * r4
    return (low + high * (r4 * r4)) * double((bits(shifted) + 1023) << np.int64(52))
