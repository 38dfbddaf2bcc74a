"""Loops that several families share: over documents in ascending order of grade, over grades, over stages."""

from __future__ import annotations

import numpy as np

from boostlist.parallel import compiled, inlined, inner

NEAR = 150.0
"""Scores of a list that spread over less than this have sums relative to e^max: squares of e^-NEAR are far from 0."""


@inlined
def gather(values, order, begin, n, out):  # type: ignore[no-untyped-def]
    """Fill out with the values of a query of n documents, which begin at `begin`, in its order."""
    first = np.uint64(begin)  # the test of signed indices for counting from the end is spared where it can be
    for i in range(np.uint64(n)):
        out[i] = values[begin + order[first + i]]


@inlined
def scatter(factor, values, order, begin, n, out):  # type: ignore[no-untyped-def]
    """Put what `gather` took, times a factor, where it came from."""
    first = np.uint64(begin)
    for i in range(np.uint64(n)):
        out[begin + order[first + i]] = factor * values[i]


@inlined
def scatter_both(factor, pull, bend, curvature, order, begin, n, out):  # type: ignore[no-untyped-def]
    """Put factor * pull into ``out.gradient`` and bend * curvature into ``out.diag``, each as `scatter` would."""
    first = np.uint64(begin)
    for i in range(np.uint64(n)):
        row = begin + order[first + i]
        out.gradient[row] = factor * pull[i]
        out.diag[row] = bend * curvature[i]


@inner
def gather_scores(f, sign, order, begin, n, out):  # type: ignore[no-untyped-def]
    """Fill out with sign * f of a query of n documents, which begin at `begin`, in its order; return the extremes."""
    low, high = np.inf, -np.inf
    for i in range(n):
        x = sign * f[begin + order[begin + i]]
        out[i] = x
        low = min(low, x)
        high = max(high, x)
    return low, high


@inlined
def spread_by_grade(first, last, document, values, out):  # type: ignore[no-untyped-def]
    """Fill out, by document of a query in ascending order of grade, with the values of its levels first:last."""
    begin = document[first]
    for g in range(first, last):
        for i in range(document[g] - begin, document[g + 1] - begin):
            out[i] = values[g]


@inner
def _sums(g, step, first, n, alpha, beta, A, B, X, out):  # type: ignore[no-untyped-def]
    """Fill out_g with the sum of V_gh X_h / kappa over the grades h before g: n grades from g on, by steps of +-1."""
    m00 = m10 = m01 = m11 = 0.0
    a, b = A[g], B[g]
    for _ in range(n):
        dA, dB = abs(A[g] - a), abs(B[g] - b)
        m11 += dA * m01 + dB * (m10 + dA * m00)
        m10 += dA * m00
        m01 += dB * m00
        out[g - first] = m11
        x = X[g - first]
        m00 += x
        m10 += alpha * x
        m01 += beta * x
        m11 += alpha * beta * x
        a, b = A[g], B[g]
        g += step


@inner
def sums_below(first, last, V, X, out):  # type: ignore[no-untyped-def]
    """Fill out_g = L_g(x) / kappa, as `pairwise_loops` has it, from the sums X_h of x over each grade."""
    alpha, beta, A, B = V
    _sums(first, 1, first, last - first, alpha, beta, A, B, X, out)


@inner
def pair_sums(first, last, V, X, Y, below, above):  # type: ignore[no-untyped-def]
    """Fill L_g(x) / kappa and U_g(y) / kappa from the sums X_h of x and Y_h of y over each grade."""
    alpha, beta, A, B = V
    _sums(first, 1, first, last - first, alpha, beta, A, B, X, below)
    _sums(last - 1, -1, first, last - first, alpha, beta, A, B, Y, above)


@compiled
def stage_rows(q, lists, stages):  # type: ignore[no-untyped-def]
    """Return the rows of X and S and the stages A and B of query q."""
    first, start = stages.first, stages.start
    rows = slice(lists.start[q] - lists.start[first], lists.start[q + 1] - lists.start[first])
    own = slice(start[q] - start[first], start[q + 1] - start[first])
    return stages.X[rows], stages.S[rows], stages.A[own], stages.B[own]
