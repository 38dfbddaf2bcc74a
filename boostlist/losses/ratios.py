"""Ratios e^{x_j - x_i} of a document to many others: one exp per document instead of one per pair.

The losses of cost n^2 visit pairs row by row. Within a row everything is a rational function of the ratios, so that the
inner loop has no call and no branch and the compiler turns it into vector instructions. A row is given as whole arrays
and its places lo:hi in them, as to cut a slice takes as long as ten to twenty pairs.
"""

from __future__ import annotations

import numpy as np

from boostlist.losses.exponential import exp
from boostlist.parallel import inner

FAR = 150.0
"""Differences beyond this count as this in a ratio: fourth powers of ratios are still finite, and 1 + e^-150 is 1."""


@inner
def exponentials(x, n, E):  # type: ignore[no-untyped-def]
    """Fill E = e^{x - c}, c the middle of x[:n], and return True; or False where these spread over more than `FAR`."""
    low, high = np.inf, -np.inf
    for i in range(n):  # comparisons, as numba takes a sixth of a second to compile min and max
        low = x[i] if x[i] < low else low
        high = x[i] if x[i] > high else high
    if not high - low <= FAR:
        return False
    for i in range(n):
        E[i] = exp(x[i] - 0.5 * (low + high))
    return True


@inner
def ratios(near, x, E, i, lo, hi, out):  # type: ignore[no-untyped-def]
    """Fill out_j = e^{x_j - x_i} for lo <= j < hi, differences clipped to +-`FAR`.

    near is what `exponentials` returned, and E what it filled in.
    """
    if near:
        inverse = 1 / E[i]
        for j in range(np.uint64(lo), np.uint64(hi)):  # signed indices are tested for counting from the end
            out[j] = E[j] * inverse
    else:
        for j in range(np.uint64(lo), np.uint64(hi)):
            u = x[j] - x[i]
            u = -FAR if u < -FAR else u
            out[j] = exp(FAR if u > FAR else u)
