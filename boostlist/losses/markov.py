r"""Markov random field losses: weighted pseudo-likelihood and weighted upper bound.

Tran, Phung, Venkatesh, *Learning Rank Functionals* (2011), eq. 14-18. The labels y of a query are modelled jointly,
P(y) ~ exp( gamma sum_{i<j} sign(y_i - y_j)(f_i - f_j) ), over a label set L.

WpLL, the weighted pseudo-likelihood: each label given all others. With a(v) = N_{<v} - N_{>v}, the documents labelled
below v less those above, S(v) the same for sums of scores, s_i(v) = gamma (a(v) f_i - S(v)) and P_i = softmax_v s_i,

    l = sum_i W_i [ log sum_{v in L} e^{s_i(v)} - s_i(y_i) ]
    gradient_k = gamma W_k ( E_{P_k} a - a(y_k) ) - gamma sum_v sign(v - y_k) D(v)
    D(v) = sum_i W_i ( P_i(v) - [v = y_i] )
    H_kk = gamma^2 [ sum_{i != k} W_i Var_{P_i} sign(v - y_k) + W_k Var_{P_k}( a(v) - sign(v - y_k) ) ]

and H v follows from dP_i = P_i (ds_i - E_{P_i} ds_i), ds_i(v) being s_i(v) with the direction in place of the scores.
The variance of sign(v - g) is 4 P(<g) P(>g) + P(g)(1 - P(g)). O(n |L|).

WUB, the weighted upper bound: the likelihood falls apart into pairs. With d = f_i - f_j and b = |L| - 1,

    l = sum_{i<j} W_ij [ log( |L| (1 + b cosh(gamma d)) ) - gamma sign(y_i - y_j) d ]

(In print the double sum stands a second time inside the pair term.) The slope in d is
gamma (b sinh / (1 + b cosh) - sign), the curvature gamma^2 b (b + cosh) / (1 + b cosh)^2. For y_i >= y_j both are
rational in r = e^{-gamma d}: with den = 2 r + b (1 + r^2),

    slope / gamma = -2 r (1 + b r) / den  if y_i > y_j,  b (1 - r^2) / den  if tied
    curvature / gamma^2 = 2 b r (2 b r + 1 + r^2) / den^2

O(n^2), with one exp per document. Tied pairs pull together; as the pair weights of table 9 that contain a difference of
grades are 0 for them, they count under ``weights="uniform"`` only. On lists of one grade both losses pull together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from boostlist.gains import Gain, check_gain
from boostlist.losses.base import VALUE, KernelLoss, Traits
from boostlist.losses.pairwise_kernels import gather, gather_with_weights
from boostlist.losses.ratios import BLOCK, FAR, exponentials, ratios, row_kernel
from boostlist.losses.weights import (
    Grades,
    Normalizer,
    PairWeights,
    StageWeights,
    check_choice,
    check_grades,
    enumerable_label_set,
    pair_scale,
    pair_weights,
    stage_weights,
)
from boostlist.parallel import kernel, longest

if TYPE_CHECKING:
    from boostlist._typing import AnyArray
    from boostlist.queries import Queries

# Times the largest factor, |L|^2 e^(2 FAR), this is still finite.
_LARGE = 1e100


@kernel
def _margins(f, order, first, last, document, index, gamma, a, S):  # type: ignore[no-untyped-def]
    """Fill gamma a(v) and gamma S(v) for every v of the label set; scores are taken about the first."""
    a[:] = 0.0
    S[:] = 0.0
    for g in range(first, last):
        for i in range(document[g], document[g + 1]):
            S[index[g]] += f[order[i]] - f[0]
        a[index[g]] = document[g + 1] - document[g]
    number, total = np.sum(a), np.sum(S)
    below = sum_below = 0.0
    for v in range(a.size):
        count, scores = a[v], S[v]
        a[v] = gamma * (2 * below + count - number)
        S[v] = gamma * (2 * sum_below + scores - total)
        below += count
        sum_below += scores


@kernel
def _softmax(x, a, S, P):  # type: ignore[no-untyped-def]
    """Fill P with softmax_v(a(v) x - S(v)), and return the largest exponent and the sum relative to it."""
    top = -np.inf
    for v in range(a.size):
        P[v] = a[v] * x - S[v]
        top = max(top, P[v])
    Z = 0.0
    for v in range(a.size):
        P[v] = np.exp(P[v] - top)
        Z += P[v]
    for v in range(a.size):
        P[v] /= Z
    return top, Z


@kernel
def _wpll(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, need, value, gradient, diag, gamma, labels, index, order, level_start, document, W
):
    P = np.empty(labels)
    a, S, D, C = np.empty_like(P), np.empty_like(P), np.empty_like(P), np.empty_like(P)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        fq, gradient_q, diag_q = f[rows], gradient[rows], diag[rows]
        first, last = level_start[q], level_start[q + 1]
        if fq.size == 1:
            gradient_q[0] = diag_q[0] = 0.0
            value[q] = W[first] * np.log(labels)
            continue
        _margins(fq, order, first, last, document, index, gamma, a, S)
        D[:] = 0.0
        C[:] = 0.0
        loss = 0.0
        for g in range(first, last):
            y = index[g]
            D[y] -= W[g] * (document[g + 1] - document[g])
            for i in range(document[g], document[g + 1]):
                x = fq[order[i]] - fq[0]
                top, Z = _softmax(x, a, S, P)
                # Moments of a and of c(v) = a(v) - gamma sign(v - y), both about their values at v = y.
                mean = centre = square = below = own = 0.0
                for v in range(labels):
                    p = P[v]
                    step = a[v] - a[y]
                    c = step - gamma * ((v > y) - (v < y))
                    mean += p * step
                    centre += p * c
                    square += p * c * c
                    spread = W[g] * (4 * below * max(1 - below - p, 0.0) + p * (1 - p))
                    C[v] += spread
                    own = spread if v == y else own
                    D[v] += W[g] * p
                    below += p
                gradient_q[order[i]] = W[g] * mean
                diag_q[order[i]] = W[g] * max(square - centre * centre, 0.0) - gamma * gamma * own
                if need & VALUE:
                    loss += W[g] * (np.log(Z) + top - (a[y] * x - S[y]))
        value[q] = loss
        total = np.sum(D)
        below = 0.0
        for v in range(labels):
            D[v], below = gamma * (total - 2 * below - D[v]), below + D[v]
        for g in range(first, last):
            y = index[g]
            for i in range(document[g], document[g + 1]):
                gradient_q[order[i]] = weight[q] * (gradient_q[order[i]] - D[y])
                diag_q[order[i]] = weight[q] * max(diag_q[order[i]] + gamma * gamma * C[y], 0.0)


@kernel
def _wpll_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, gamma, labels, index, order, level_start, document, W
):
    P = np.empty(labels)
    a, S, dS, D = np.empty_like(P), np.empty_like(P), np.empty_like(P), np.empty_like(P)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        fq, vq, out_q = f[rows], v[rows], out[rows]
        first, last = level_start[q], level_start[q + 1]
        _margins(vq, order, first, last, document, index, gamma, a, dS)
        _margins(fq, order, first, last, document, index, gamma, a, S)
        D[:] = 0.0
        for g in range(first, last):
            y = index[g]
            for i in range(document[g], document[g + 1]):
                _softmax(fq[order[i]] - fq[0], a, S, P)
                dx = vq[order[i]] - vq[0]
                mean = 0.0
                for u in range(labels):
                    mean += P[u] * (a[u] * dx - dS[u])
                own = 0.0
                for u in range(labels):
                    change = W[g] * P[u] * (a[u] * dx - dS[u] - mean)
                    own += change * (a[u] - a[y])
                    D[u] += change
                out_q[order[i]] = own
        total = np.sum(D)
        below = 0.0
        for u in range(labels):
            D[u], below = gamma * (total - 2 * below - D[u]), below + D[u]
        for g in range(first, last):
            for i in range(document[g], document[g + 1]):
                out_q[order[i]] = weight[q] * (out_q[order[i]] - D[index[g]])


@row_kernel
def _wub_row(r, A, B, a, b, labels_1, c0, c1, c2, gradient, diag):  # type: ignore[no-untyped-def]
    """Take W slope from the gradient of the lower documents, add W curvature to their diagonal, and return both sums.

    The slope is (c0 + c1 r + c2 r^2) / den; labels_1 is |L| - 1.
    """
    slopes = curvatures = 0.0
    for j in range(r.size):
        square = r[j] * r[j]
        inverse = 1 / (2 * r[j] + labels_1 * (1 + square))
        W = (a - A[j]) * (b - B[j])
        slope = W * (c0 + c1 * r[j] + c2 * square) * inverse
        curvature = W * (2 * labels_1 * r[j] * inverse) * ((2 * labels_1 * r[j] + 1 + square) * inverse)
        gradient[j] -= slope
        diag[j] += curvature
        slopes += slope
        curvatures += curvature
    return slopes, curvatures


@row_kernel
def _wub_hessp_row(r, A, B, a, b, labels_1, vi, v, out):  # type: ignore[no-untyped-def]
    """Add W curvature (v_j - v_i) to the lower documents, and return its sum."""
    total = 0.0
    for j in range(r.size):
        square = r[j] * r[j]
        inverse = 1 / (2 * r[j] + labels_1 * (1 + square))
        W = (a - A[j]) * (b - B[j])
        curvature = W * (2 * labels_1 * r[j] * inverse) * ((2 * labels_1 * r[j] + 1 + square) * inverse)
        change = curvature * (v[j] - vi)
        out[j] += change
        total += change
    return total


@kernel
def _wub_value_row(near, x, r, A, B, a, b, labels_1, tied, xi):  # type: ignore[no-untyped-def]
    """Return the sum of W log(|L| (1 + b cosh) e^{-sign gamma d}), with one logarithm for many pairs of a weight.

    z is the product of the arguments less 1, so that arguments close to 1 keep their digits.
    """
    size = labels_1 + 1
    total = z = W = 0.0
    for j in range(r.size):
        Wj = (a - A[j]) * (b - B[j])
        if Wj != W or z > _LARGE:
            total += W * np.log1p(z)
            W, z = Wj, 0.0
        gap = x[j] - xi
        if near or abs(gap) < FAR:
            if tied:
                excess = labels_1 + 0.5 * size * labels_1 * (r[j] + 1 / r[j])
            else:
                excess = (0.5 * size * labels_1 - 1) + size * r[j] * (1 + 0.5 * labels_1 * r[j])
            z += excess + excess * z
        else:
            total += Wj * (np.log(0.5 * size * labels_1) + abs(gap) + (0.0 if tied else gap))
    return total + W * np.log1p(z)


@kernel
def _wub(  # type: ignore[no-untyped-def]
    lo,
    hi,
    start,
    weight,
    f,
    need,
    value,
    gradient,
    diag,
    labels_1,
    gamma,
    kappa,
    alpha,
    beta,
    order,
    level_start,
    document,
    A,
    B,
):
    x = np.empty(longest(lo, hi, start))
    E, a, b = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    slope, curvature = np.empty_like(x), np.empty_like(x)
    ratio = np.empty(BLOCK)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        gradient_q, diag_q = gradient[rows], diag[rows]
        if kappa[q] == 0:
            gradient_q[:] = 0.0
            diag_q[:] = 0.0
            continue
        first, last = level_start[q], level_start[q + 1]
        begin, n = document[first], rows.stop - rows.start
        gather_with_weights(f[rows], order, first, last, document, A, B, x, a, b)
        slope[:n] = 0.0
        curvature[:n] = 0.0
        for i in range(n):
            x[i] *= gamma[q]
        near = exponentials(x[:n], E)
        loss = 0.0
        for left in range(0, n, BLOCK):
            for g in range(first, last):
                lower, upper = document[g] - begin, document[g + 1] - begin
                for i in range(max(lower, left + 1), upper):
                    ai, bi = alpha + a[i], beta + b[i]
                    # Lower documents first, then the tied ones before i.
                    for tied in range(1 + (alpha * beta > 0)):
                        low = max(left, lower) if tied else left
                        high = min(left + BLOCK, i if tied else lower)
                        if high <= low:
                            continue
                        c0, c1, c2 = (labels_1, 0.0, -labels_1) if tied else (0.0, -2.0, -2 * labels_1)
                        r = ratio[: high - low]
                        ratios(near, x, E, i, low, high, r)
                        aj, bj = a[low:high], b[low:high]
                        s, c = _wub_row(r, aj, bj, ai, bi, labels_1, c0, c1, c2, slope[low:high], curvature[low:high])
                        slope[i] += s
                        curvature[i] += c
                        if need & VALUE:
                            loss += _wub_value_row(near, x[low:high], r, aj, bj, ai, bi, labels_1, tied, x[i])
        scale = weight[q] * kappa[q] * gamma[q]
        for i in range(n):
            gradient_q[order[begin + i]] = scale * slope[i]
            diag_q[order[begin + i]] = scale * gamma[q] * curvature[i]
        value[q] = kappa[q] * loss


@kernel
def _wub_hessp(  # type: ignore[no-untyped-def]
    lo, hi, start, weight, f, v, out, labels_1, gamma, kappa, alpha, beta, order, level_start, document, A, B
):
    x = np.empty(longest(lo, hi, start))
    E, a, b = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    direction, product = np.empty_like(x), np.empty_like(x)
    ratio = np.empty(BLOCK)
    for q in range(lo, hi):
        rows = slice(start[q], start[q + 1])
        out_q = out[rows]
        first, last = level_start[q], level_start[q + 1]
        begin, n = document[first], rows.stop - rows.start
        gather_with_weights(f[rows], order, first, last, document, A, B, x, a, b)
        gather(v[rows], order[rows], direction)
        product[:n] = 0.0
        for i in range(n):
            x[i] *= gamma[q]
        near = exponentials(x[:n], E)
        for left in range(0, n, BLOCK):
            # Tied pairs have W = alpha beta, so that all documents before i can be taken together.
            for i in range(left + 1, n):
                high = min(left + BLOCK, i)
                r = ratio[: high - left]
                ratios(near, x, E, i, left, high, r)
                product[i] -= _wub_hessp_row(
                    r,
                    a[left:high],
                    b[left:high],
                    alpha + a[i],
                    beta + b[i],
                    labels_1,
                    direction[i],
                    direction[left:high],
                    product[left:high],
                )
        scale = weight[q] * kappa[q] * gamma[q] ** 2
        for i in range(n):
            out_q[order[begin + i]] = scale * product[i]


@dataclass(frozen=True, kw_only=True)
class WpLL(KernelLoss):
    """Weighted pseudo-likelihood of a Markov random field: each label given all others.

    Parameters
    ----------
    weights
        Table 8, as for `WeightedPL`.
    gamma
        Strength of the coupling, > 0.
    gain
        Gain in R, for ``weights="gain"``: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set L, at most 64 grades; None for the labels seen when binding. Give it when shards of a data set must
        agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 14-16, table 8.
    """

    weights: StageWeights = "reciprocal"
    gamma: float = 1.0
    gain: Gain = "exp2"
    grades: Grades = None

    traits = Traits(diag="exact", convex=True, shift_invariant=True, cost="n G")
    kernel = staticmethod(_wpll)
    hessp_kernel = staticmethod(_wpll_hessp)

    def __post_init__(self) -> None:
        check_choice("weights", self.weights, StageWeights)
        if not (np.isfinite(self.gamma) and self.gamma > 0):
            raise ValueError(f"gamma must be finite and > 0, got {self.gamma}")
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def tables(self, queries: Queries) -> tuple[AnyArray | float | int, ...]:
        """Return gamma, the number of labels, the levels with their places in the label set, and W by level."""
        levels = queries.levels
        labels = enumerable_label_set(queries, self.grades)
        index = np.searchsorted(labels, levels.label)
        W = stage_weights(self.weights, queries, self.gain, self.grades)
        return float(self.gamma), len(labels), index, levels.order, levels.start, levels.document, W


@dataclass(frozen=True, kw_only=True)
class WUB(KernelLoss):
    """Weighted upper bound on the negative log-likelihood of a Markov random field, pair by pair.

    Parameters
    ----------
    weights
        W of a pair: ``"uniform"`` 1, tied pairs included; ``"grade"``, ``"gain"``, ``"dcg"`` as for `Pairwise`.
    normalize
        What W is divided by: ``"documents"`` of the query, all its ``"pairs"``, ``"dcg"`` the ideal DCG, or None.
    gamma
        Strength of the coupling, > 0, or ``"pairs"`` for one over the number of pairs of the query.
    gain
        Gain in R: ``"exp2"``, ``"linear"`` or a table by grade.
    grades
        Label set L, at most 64 grades; None for the labels seen when binding. Give it when shards of a data set must
        agree.

    References
    ----------
    Tran, Phung, Venkatesh: Learning rank functionals: an empirical study. 2011. Eq. 17-18, table 9.
    """

    weights: PairWeights = "uniform"
    normalize: Normalizer = "documents"
    gamma: float | Literal["pairs"] = 1.0
    gain: Gain = "exp2"
    grades: Grades = None

    traits = Traits(diag="exact", convex=True, shift_invariant=True, cost="n^2")
    kernel = staticmethod(_wub)
    hessp_kernel = staticmethod(_wub_hessp)

    def __post_init__(self) -> None:
        check_choice("weights", self.weights, PairWeights)
        check_choice("normalize", self.normalize, ("documents", "pairs", "dcg", None))
        if self.gamma != "pairs" and not (
            isinstance(self.gamma, int | float) and np.isfinite(self.gamma) and self.gamma > 0
        ):
            raise ValueError(f'gamma must be finite and > 0, or "pairs", got {self.gamma!r}')
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def tables(self, queries: Queries) -> tuple[AnyArray | float, ...]:
        """Return |L| - 1, gamma and kappa by query, alpha and beta, the levels, and A and B by level."""
        levels = queries.levels
        labels_1 = len(enumerable_label_set(queries, self.grades)) - 1.0
        kappa = pair_scale(self.normalize, queries, self.gain, self.grades, tied=True)
        if self.gamma == "pairs":
            gamma = pair_scale("pairs", queries, self.gain, self.grades, tied=True)
        else:
            gamma = np.full(queries.n_queries, float(self.gamma))
        if labels_1 == 0:
            kappa = np.zeros_like(kappa)  # with a single label to choose from nothing is uncertain
        alpha, beta, A, B = pair_weights(self.weights, queries, self.gain, self.grades)
        return labels_1, gamma, kappa, alpha, beta, levels.order, levels.start, levels.document, A, B
