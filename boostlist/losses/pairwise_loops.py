r"""Loops of the smooth pairwise losses: quadratic and exponential in O(n), logistic as a double loop for short lists.

The weight of a pair y_i > y_j is V_ij = kappa (alpha + A_i - A_j)(beta + B_i - B_j), see `weights.pair_weights`.
Multiplied out it is a sum of at most four products of a term of i and a term of j, so sums over all lower grades need
one pass over the grades. With moments about the current grade g, over the documents j below it and a payload x,

    M00 = sum x_j,  M10 = sum (alpha + A_g - A_j) x_j,  M01 = sum (beta + B_g - B_j) x_j,  M11 = sum V_gj x_j / kappa

a step to the next grade, dA and dB higher, is M11 += dA M01 + dB M10 + dA dB M00, M10 += dA M00, M01 += dB M00: nothing
is subtracted. Below, L_i(x) = sum_{j: y_j < y_i} V_ij x_j and U_i(x) = sum_{k: y_k > y_i} V_ki x_k.

- Quadratic, sum V (1 - d)^2, d = f_i - f_j, and s = L(1) + U(1):
      gradient = 2 [ s f - L(f) - U(f) - L(1) + U(1) ],  H_ii = 2 s_i,  H v = 2 [ s v - L(v) - U(v) ]
- Exponential, sum V e^{-d}, with E = e^f:
      gradient = E U(1/E) - L(E)/E,  H_ii = E U(1/E) + L(E)/E,  H v = H_ii v - E U(v/E) - L(v E)/E
- Logistic, sum V log(1 + e^{-d}), with p_ij = e^{f_j} / (e^{f_i} + e^{f_j}):
      gradient_i = sum_k V_ki p_ki - sum_j V_ij p_ij,  H_ij = -V p (1 - p) for a pair,  H_ii = -sum_j H_ij
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.base import VALUE
from boostlist.losses.exponential import exp
from boostlist.losses.ratios import FAR, exponentials, ratios
from boostlist.losses.shared_loops import gather, pair_sums, scatter, scatter_both, spread_by_grade
from boostlist.parallel import REORDERED, compiled, inlined, inner

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.levels import Levels
    from boostlist.losses.weights import Factors

# Sums of e^{2 _CAP} over the pairs of a list are finite.
_CAP = 300.0
# Times a ratio, at most e^FAR, this is still finite.
_LARGE = 1e150


class PairTables(NamedTuple):
    """kappa by query; V / kappa as factors by level; the levels."""

    kappa: FloatArray
    V: Factors
    levels: Levels


@inner
def _laplacian(x, first, last, V, order, document, s, lead, X, below, above):  # type: ignore[no-untyped-def]
    """Fill by grade: s, its antisymmetric twin lead = L(1) - U(1), and X = L(x) + U(x); below, above are to work in."""
    for g in range(first, last):
        X[g - first] = document[g + 1] - document[g]
    pair_sums(first, last, V, X, X, below, above)
    for g in range(last - first):
        s[g] = below[g] + above[g]
        lead[g] = below[g] - above[g]
    for g in range(first, last):
        total = 0.0
        for i in range(document[g], document[g + 1]):
            total += x[order[i]]
        X[g - first] = total
    pair_sums(first, last, V, X, X, below, above)
    for g in range(last - first):
        X[g] = below[g] + above[g]


@compiled
def quadratic(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal of the quadratic loss."""
    kappa, V, levels = tables
    order, document = levels.order, levels.document
    most = lists.longest
    u, s, lead, X = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    below, above = np.empty(most), np.empty(most)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        fq, gradient, diag = f[rows], out.gradient[rows], out.diag[rows]
        # Only differences count; about the mean their squares keep their digits.
        mean = 0.0
        for i in range(fq.size):
            mean += fq[i] - fq[0]
        mean = fq[0] + mean / fq.size
        for i in range(fq.size):
            u[i] = fq[i] - mean
        first, last = levels.start[q], levels.start[q + 1]
        _laplacian(u, first, last, V, order, document, s, lead, X, below, above)
        scale = 2 * lists.weight[q] * kappa[q]
        loss = 0.0
        for g in range(first, last):
            s_g, push, X_g = s[g - first], lead[g - first], X[g - first]
            for i in range(document[g], document[g + 1]):
                ui = u[order[i]]
                gradient[order[i]] = scale * (s_g * ui - X_g - push)
                diag[order[i]] = scale * s_g
                # Pair by pair d^2 - 2 d + 1; the sum of V over pairs is half that of s over documents.
                loss += ui * (s_g * ui - X_g - 2 * push) + 0.5 * s_g
        out.value[q] = kappa[q] * max(loss, 0.0)


@compiled
def quadratic_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    """Hessian-vector product of the quadratic loss."""
    kappa, V, levels = tables
    order, document = levels.order, levels.document
    most = lists.longest
    s, lead, X, below, above = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        vq, out_q = v[rows], out[rows]
        first, last = levels.start[q], levels.start[q + 1]
        _laplacian(vq, first, last, V, order, document, s, lead, X, below, above)
        scale = 2 * lists.weight[q] * kappa[q]
        for g in range(first, last):
            for i in range(document[g], document[g + 1]):
                out_q[order[i]] = scale * (s[g - first] * vq[order[i]] - X[g - first])


@inner
def _capped_exponentials(f, E):  # type: ignore[no-untyped-def]
    """Fill E = e^{f - c}, c the middle of the scores, with scores cut to within `_CAP` of it."""
    low, high = np.inf, -np.inf
    for i in range(f.size):
        low = min(low, f[i])
        high = max(high, f[i])
    middle = low + 0.5 * (high - low)
    for i in range(f.size):
        E[i] = exp(min(max(f[i] - middle, -_CAP), _CAP))


@inner
def _exponential_sums(E, v, first, last, V, levels, up, down, below, above):  # type: ignore[no-untyped-def]
    """Fill by grade below = L(v E) and above = U(v / E)."""
    order, document = levels.order, levels.document
    for g in range(first, last):
        upper = lower = 0.0
        for i in range(document[g], document[g + 1]):
            e, x = E[order[i]], v[order[i]]
            upper += x * e
            lower += x / e
        up[g - first] = upper
        down[g - first] = lower
    pair_sums(first, last, V, up, down, below, above)


@compiled
def exponential(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal of the exponential loss."""
    kappa, V, levels = tables
    order, document = levels.order, levels.document
    most = lists.longest
    E, one = np.empty(most), np.ones(most)
    up, down, below, above = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        gradient, diag = out.gradient[rows], out.diag[rows]
        first, last = levels.start[q], levels.start[q + 1]
        _capped_exponentials(f[rows], E)
        _exponential_sums(E, one, first, last, V, levels, up, down, below, above)
        scale = lists.weight[q] * kappa[q]
        loss = 0.0
        for g in range(first, last):
            L, U = below[g - first], above[g - first]
            for i in range(document[g], document[g + 1]):
                e = E[order[i]]
                over, under = L / e, e * U
                gradient[order[i]] = scale * (under - over)
                diag[order[i]] = scale * (under + over)
                loss += over
        out.value[q] = kappa[q] * loss


@compiled
def exponential_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    """Hessian-vector product of the exponential loss."""
    kappa, V, levels = tables
    order, document = levels.order, levels.document
    most = lists.longest
    E, one, x = np.ones(most), np.ones(most), np.ones(most)
    up, down, below, above = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    below_v, above_v = np.empty(most), np.empty(most)
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        vq, out_q = v[rows], out[rows]
        for i in range(vq.size):
            x[i] = vq[i]
        first, last = levels.start[q], levels.start[q + 1]
        _capped_exponentials(f[rows], E)
        _exponential_sums(E, one, first, last, V, levels, up, down, below, above)
        _exponential_sums(E, x, first, last, V, levels, up, down, below_v, above_v)
        scale = lists.weight[q] * kappa[q]
        for g in range(first, last):
            for i in range(document[g], document[g + 1]):
                e, vi = E[order[i]], vq[order[i]]
                over, under = vi * below[g - first] - below_v[g - first], vi * above[g - first] - above_v[g - first]
                out_q[order[i]] = scale * (over / e + e * under)


@inlined
def _logistic_row(r, i, hi, V, A, B, gradient, diag):  # type: ignore[no-untyped-def]
    """Add V p, for i less V p, to the gradients and V p (1 - p) to the diagonals of i and the lower documents :hi."""
    pull = curvature = 0.0
    a, b = V.alpha + A[i], V.beta + B[i]
    for j in range(np.uint64(hi)):
        inverse = 1 / (1 + r[j])
        Vp = (a - A[j]) * (b - B[j]) * (r[j] * inverse)
        Vw = Vp * inverse
        gradient[j] += Vp
        diag[j] += Vw
        pull += Vp
        curvature += Vw
    gradient[i] -= pull
    diag[i] += curvature


@inlined
def _logistic_hessp_row(r, i, hi, V, A, B, v, out):  # type: ignore[no-untyped-def]
    """Add V p (1 - p)(v_j - v_i) to the lower documents :hi, and take it from i."""
    total, vi = 0.0, v[i]
    a, b = V.alpha + A[i], V.beta + B[i]
    for j in range(np.uint64(hi)):
        inverse = 1 / (1 + r[j])
        change = (a - A[j]) * (b - B[j]) * (r[j] * inverse * inverse) * (v[j] - vi)
        out[j] += change
        total += change
    out[i] -= total


@inner
def _softplus_row(near, x, r, i, hi, V, A, B):  # type: ignore[no-untyped-def]
    """Return the sum of V log(1 + e^{x_j - x_i}) over j < hi, with one logarithm for many pairs of the same weight.

    z = (1 + r_1)(1 + r_2)... - 1 is multiplied up rather than the product itself, which would swallow small ratios.
    """
    total = z = weight = 0.0
    a, b = V.alpha + A[i], V.beta + B[i]
    for j in range(hi):
        Vj = (a - A[j]) * (b - B[j])
        if Vj != weight or z > _LARGE:
            total += weight * np.log1p(z)
            weight, z = Vj, 0.0
        if near or abs(x[j] - x[i]) < FAR:
            z += r[j] + r[j] * z
        else:
            total += Vj * (x[j] - x[i] if x[j] > x[i] else 0.0)
    return total + weight * np.log1p(z)


@partial(compiled, liberties=REORDERED)
def logistic(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal of the logistic loss."""
    kappa, V, levels = tables
    order, document = levels.order, levels.document
    most = lists.longest
    x, E, A, B = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    r, pull, curvature = np.empty(most), np.empty(most), np.empty(most)
    for q in lists.query:
        first, last, begin = levels.start[q], levels.start[q + 1], lists.start[q]
        n = lists.start[q + 1] - begin
        gather(f, order, begin, n, x)
        spread_by_grade(first, last, document, V.A, A)
        spread_by_grade(first, last, document, V.B, B)
        for i in range(n):
            pull[i] = curvature[i] = 0.0
        near = exponentials(x, n, E)
        loss = 0.0
        for g in range(first + 1, last):
            lower = document[g] - begin
            for i in range(lower, document[g + 1] - begin):
                ratios(near, x, E, i, 0, lower, r)
                _logistic_row(r, i, lower, V, A, B, pull, curvature)
                if need & VALUE:
                    loss += _softplus_row(near, x, r, i, lower, V, A, B)
        scale = lists.weight[q] * kappa[q]
        scatter_both(scale, pull, scale, curvature, order, begin, n, out)
        out.value[q] = kappa[q] * loss


@partial(compiled, liberties=REORDERED)
def logistic_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    """Hessian-vector product of the logistic loss."""
    kappa, V, levels = tables
    order, document = levels.order, levels.document
    most = lists.longest
    x, E, A, B = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    r, direction, product = np.empty(most), np.empty(most), np.empty(most)
    for q in lists.query:
        first, last, begin = levels.start[q], levels.start[q + 1], lists.start[q]
        n = lists.start[q + 1] - begin
        gather(f, order, begin, n, x)
        gather(v, order, begin, n, direction)
        spread_by_grade(first, last, document, V.A, A)
        spread_by_grade(first, last, document, V.B, B)
        for i in range(n):
            product[i] = 0.0
        near = exponentials(x, n, E)
        for g in range(first + 1, last):
            lower = document[g] - begin
            for i in range(lower, document[g + 1] - begin):
                ratios(near, x, E, i, 0, lower, r)
                _logistic_hessp_row(r, i, lower, V, A, B, direction, product)
        scale = lists.weight[q] * kappa[q]
        scatter(scale, product, order, begin, n, out)
