r"""Random numbers that are a pure function of a key and a counter: no state, hence the same bits in any thread.

The generator is SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, OOPSLA 2014) run as a
counter: the i-th number of a key is mix(key + i x the golden ratio), so that loops over i are vectorised.
"""

from __future__ import annotations

import numpy as np

from boostlist.losses.exponential import bits, double
from boostlist.parallel import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ONE = np.uint64(0x3FF0000000000000)
_MANTISSA = np.int64((1 << 52) - 1)


@compiled
def mix(x):  # type: ignore[no-untyped-def]
    """Return SplitMix64's hash of a 64-bit number."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@compiled
def key_of(values, seed):  # type: ignore[no-untyped-def]
    """Return a key that depends on every bit of the values, on their order and on the seed."""
    total = np.uint64(0)
    for i in range(values.size):
        # + 0.0 makes one number of the two zeros
        total += mix(np.uint64(bits(values[i] + 0.0)) + np.uint64(i) * _GOLDEN)
    return mix(total ^ mix(np.uint64(seed) + _GOLDEN))


@compiled
def minus_log(u):  # type: ignore[no-untyped-def]
    """Return -log u to ten digits for 0 < u < 1, without a call or a branch.

    u = 2^e m with 2/3 <= m < 4/3, and log m = 2 artanh((m - 1) / (m + 1)), a series in |.| <= 1/5.
    """
    whole = bits(u)
    m = double((whole & _MANTISSA) | np.int64(_ONE))
    e = np.float64((whole >> np.int64(52)) - np.int64(1023))
    upper = m >= 4 / 3
    m = 0.5 * m if upper else m
    e = e + 1 if upper else e
    s = (m - 1) / (m + 1)
    s2 = s * s
    series = 1 + s2 * (1 / 3 + s2 * (1 / 5 + s2 * (1 / 7 + s2 * (1 / 9 + s2 * (1 / 11 + s2 / 13)))))
    return -(e * 0.6931471805599453 + 2 * s * series)


@compiled
def exponentials_of(key, out):  # type: ignore[no-untyped-def]
    """Fill out with independent standard exponential numbers, the draws of this key."""
    for i in range(out.size):
        number = mix(key + np.uint64(i) * _GOLDEN)
        # 52 random bits make a number in [1, 2); the half step keeps it off both ends.
        u = double(np.int64((number >> np.uint64(12)) | _ONE)) - (1 - 2.0**-53)
        out[i] = minus_log(u)
