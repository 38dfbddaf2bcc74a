r"""Losses over all pairs of a long list, by `difference_sums` instead of a double loop.

With E(u) = log(2 (c + cosh u)), which is even, a pair of difference d = x_i - x_j has in these losses the form of E and
something linear:

    logistic loss  log(1 + e^{-d}) = (E(d) - d) / 2,  c = 1
    WUB            log(factor (c + cosh d)) - sign d = E(d) - sign d + log(factor / 2),  c = 1 / (|L| - 1)

so that sums over ordered pairs are sums over all pairs, less the linear part, which is a sum over grades. Where scores
spread so far that a double loop is cheaper, a loop here leaves ``done`` False.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.losses.base import VALUE
from boostlist.losses.difference_sums import CURVATURES, SLOPES, VALUES, GradedSums, all_sums, graded_sums
from boostlist.losses.shared_loops import gather
from boostlist.losses.weights import Factors
from boostlist.parallel import compiled

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.levels import Levels
    from boostlist.losses.difference_sums import Profile


class LongPairs(NamedTuple):
    """Tables of kappa sum over pairs of V [E(gamma d) - sign(y_i - y_j) gamma d + constant].

    Attributes
    ----------
    pair
        What one of n^2 pairs takes in the double loop, in ns.
    E0, E2
        E(0) and E''(0).
    gamma, kappa
        By query.
    """

    pair: float
    profile: Profile
    E0: float
    E2: float
    constant: float
    gamma: FloatArray
    kappa: FloatArray
    V: Factors
    levels: Levels


@compiled
def in_order(q, lists, f, gamma, levels):  # type: ignore[no-untyped-def]
    """Return gamma f in ascending order of grade, that order, and where each grade begins."""
    rows = slice(lists.start[q], lists.start[q + 1])
    order = levels.order[rows]
    x = np.empty(order.size)
    gather(f[rows], order, x)
    for i in range(x.size):
        x[i] *= gamma
    return x, order, levels.document[levels.start[q] : levels.start[q + 1] + 1] - rows.start


@compiled
def _factors(q, V, levels):  # type: ignore[no-untyped-def]
    """Return the factors of V for the grades of one query."""
    own = slice(levels.start[q], levels.start[q + 1])
    return Factors(V.alpha, V.beta, V.A[own], V.B[own])


@compiled
def _write(q, lists, need, out, tables, factor, x, order, bounds, sums, below, above):  # type: ignore[no-untyped-def]
    """Write the outputs from the sums over pairs, each counted from both sides, and the totals of weights by grade."""
    rows = slice(lists.start[q], lists.start[q + 1])
    gradient, diag = out.gradient[rows], out.diag[rows]
    slopes, curvatures = sums[sums.shape[0] - 2], sums[sums.shape[0] - 1]
    gamma, kappa = tables.gamma[q], factor * tables.kappa[q]
    scale = lists.weight[q] * kappa * gamma
    potential = 0.0
    for g in range(bounds.size - 1):
        lead = below[g] - above[g]
        potential += tables.constant * below[g] * (bounds[g + 1] - bounds[g])
        for i in range(bounds[g], bounds[g + 1]):
            gradient[order[i]] = scale * (slopes[i] - lead)
            diag[order[i]] = scale * gamma * curvatures[i]
            if need & VALUE:
                potential += 0.5 * sums[0, i] - lead * (x[i] - x[0])
    out.value[q] = kappa * potential


@compiled
def graded_pairs(lists, f, need, out, tables, done):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal over pairs of different grade."""
    first = VALUES if need & VALUE else SLOPES
    for q in lists.query:
        x, order, bounds = in_order(q, lists, f, tables.gamma[q], tables.levels)
        pairs, totals = np.empty((CURVATURES + 1 - first, x.size)), np.empty((2, bounds.size - 1))
        sums = GradedSums(pairs, pairs, totals[0], totals[1])
        V = _factors(q, tables.V, tables.levels)
        if graded_sums(tables.pair, x, np.ones(x.size), bounds, V, tables.profile, first, CURVATURES, sums):
            _write(q, lists, need, out, tables, 1.0, x, order, bounds, pairs, totals[0], totals[1])
            done[q] = True


@compiled
def graded_pairs_hessp(lists, f, v, out, tables, done):  # type: ignore[no-untyped-def]
    """Hessian-vector product over pairs of different grade: sum_j V E'' (v_i - v_j)."""
    for q in lists.query:
        x, order, bounds = in_order(q, lists, f, tables.gamma[q], tables.levels)
        direction, _, _ = in_order(q, lists, v, 1.0, tables.levels)
        direction -= direction[0]  # constants drop out
        weight, product = np.ones(x.size), np.zeros(x.size)
        pairs, totals = np.empty((1, x.size)), np.empty((2, bounds.size - 1))
        sums = GradedSums(pairs, pairs, totals[0], totals[1])
        V = _factors(q, tables.V, tables.levels)
        for turn in range(2):
            if not graded_sums(tables.pair, x, weight, bounds, V, tables.profile, CURVATURES, CURVATURES, sums):
                break
            product += -pairs[0] if turn else direction * pairs[0]
            weight, done[q] = direction, turn == 1
        _write_product(q, lists, out, tables, 1.0, order, product)


@compiled
def _write_product(q, lists, out, tables, factor, order, product):  # type: ignore[no-untyped-def]
    scale = factor * lists.weight[q] * tables.kappa[q] * tables.gamma[q] ** 2
    for i in range(order.size):
        out[lists.start[q] + order[i]] = scale * product[i]


@compiled
def all_pairs(lists, f, need, out, tables, done):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal over all pairs, of the same grade too; V = alpha beta is one number."""
    first = VALUES if need & VALUE else SLOPES
    for q in lists.query:
        x, order, bounds = in_order(q, lists, f, tables.gamma[q], tables.levels)
        n, grades = x.size, bounds.size - 1
        sums, totals = np.empty((CURVATURES + 1 - first, n)), np.empty((2, grades))
        if all_sums(tables.pair, x, np.ones(n), tables.profile, first, CURVATURES, sums):
            # The sums hold each document with itself, where E' is 0.
            sums[CURVATURES - first] -= tables.E2
            if need & VALUE:
                sums[0] -= tables.E0
            for g in range(grades):
                totals[0, g] = bounds[g]
                totals[1, g] = n - bounds[g + 1]
            _write(
                q,
                lists,
                need,
                out,
                tables,
                tables.V.alpha * tables.V.beta,
                x,
                order,
                bounds,
                sums,
                totals[0],
                totals[1],
            )
            if need & VALUE:
                # The constants of tied pairs
                for g in range(grades):
                    size = bounds[g + 1] - bounds[g]
                    tied = 0.5 * size * (size - 1) * tables.V.alpha * tables.V.beta
                    out.value[q] += tables.kappa[q] * tables.constant * tied
            done[q] = True


@compiled
def all_pairs_hessp(lists, f, v, out, tables, done):  # type: ignore[no-untyped-def]
    """Hessian-vector product over all pairs: sum_j V E'' (v_i - v_j)."""
    for q in lists.query:
        x, order, _ = in_order(q, lists, f, tables.gamma[q], tables.levels)
        direction, _, _ = in_order(q, lists, v, 1.0, tables.levels)
        direction -= direction[0]  # constants drop out
        weight, product, sums = np.ones(x.size), np.zeros(x.size), np.empty((1, x.size))
        for turn in range(2):
            if not all_sums(tables.pair, x, weight, tables.profile, CURVATURES, CURVATURES, sums):
                break
            product += -sums[0] if turn else direction * sums[0]
            weight, done[q] = direction, turn == 1
        _write_product(q, lists, out, tables, tables.V.alpha * tables.V.beta, order, product)
