"""Loops that several families share: over documents in ascending order of grade, over grades, over stages."""

from __future__ import annotations

from boostlist.parallel import compiled


@compiled
def gather(values, order, out):  # type: ignore[no-untyped-def]
    """Fill out with the values in the given order."""
    for i in range(order.size):
        out[i] = values[order[i]]


@compiled
def spread_by_grade(first, last, document, values, out):  # type: ignore[no-untyped-def]
    """Fill out, by document of a query in ascending order of grade, with the values of its levels first:last."""
    begin = document[first]
    for g in range(first, last):
        for i in range(document[g] - begin, document[g + 1] - begin):
            out[i] = values[g]


@compiled
def sums_below(first, last, V, X, out):  # type: ignore[no-untyped-def]
    """Fill out_g = L_g(x) / kappa from the sums X_h of x over each grade, as `pairwise_loops` has it."""
    A, B = V.A, V.B
    m00 = m10 = m01 = m11 = 0.0
    for g in range(first, last):
        if g > first:
            dA, dB = A[g] - A[g - 1], B[g] - B[g - 1]
            m11 += dA * m01 + dB * (m10 + dA * m00)
            m10 += dA * m00
            m01 += dB * m00
        out[g - first] = m11
        x = X[g - first]
        m00 += x
        m10 += V.alpha * x
        m01 += V.beta * x
        m11 += V.alpha * V.beta * x


@compiled
def sums_above(first, last, V, X, out):  # type: ignore[no-untyped-def]
    """Fill out_g = U_g(x) / kappa from the sums X_h of x over each grade."""
    A, B = V.A, V.B
    m00 = m10 = m01 = m11 = 0.0
    for g in range(last - 1, first - 1, -1):
        if g < last - 1:
            dA, dB = A[g + 1] - A[g], B[g + 1] - B[g]
            m11 += dA * m01 + dB * (m10 + dA * m00)
            m10 += dA * m00
            m01 += dB * m00
        out[g - first] = m11
        x = X[g - first]
        m00 += x
        m10 += V.alpha * x
        m01 += V.beta * x
        m11 += V.alpha * V.beta * x


@compiled
def stage_rows(q, lists, levels, stages):  # type: ignore[no-untyped-def]
    """Return the rows of X and S and the stages A and B of query q."""
    first = stages.first
    rows = slice(lists.start[q] - lists.start[first], lists.start[q + 1] - lists.start[first])
    own = slice(levels.start[q] - levels.start[first], levels.start[q + 1] - levels.start[first])
    return stages.X[rows], stages.S[rows], stages.A[own], stages.B[own]
