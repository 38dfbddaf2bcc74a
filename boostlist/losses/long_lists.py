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
from boostlist.losses.difference_sums import CURVATURES, SLOPES, VALUES, all_sums
from boostlist.losses.graded_sums import graded_sums
from boostlist.losses.shared_loops import gather, pair_sums, scatter
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
def last_zero(values, bounds):  # type: ignore[no-untyped-def]
    """Return how many documents there are up to the last grade whose value is 0."""
    documents = 0
    for g in range(bounds.size - 1):
        if values[g] == 0:
            documents = bounds[g + 1]
    return documents


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
    slopes, curvatures = sums.shape[1] - 2, sums.shape[1] - 1
    gamma, kappa = tables.gamma[q], factor * tables.kappa[q]
    scale = lists.weight[q] * kappa * gamma
    potential = 0.0
    for g in range(bounds.size - 1):
        lead = below[g] - above[g]
        potential += tables.constant * below[g] * (bounds[g + 1] - bounds[g])
        for i in range(bounds[g], bounds[g + 1]):
            gradient[order[i]] = scale * (sums[i, slopes] - lead)
            diag[order[i]] = scale * gamma * sums[i, curvatures]
            if need & VALUE:
                potential += 0.5 * sums[i, 0] - lead * (x[i] - x[0])
    out.value[q] = kappa * potential


@compiled
def graded_pairs(lists, f, need, out, tables, done):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal over pairs of different grade."""
    first = VALUES if need & VALUE else SLOPES
    for q in lists.query:
        x, order, bounds = in_order(q, lists, f, tables.gamma[q], tables.levels)
        sums, V = np.zeros((x.size, CURVATURES + 1 - first)), _factors(q, tables.V, tables.levels)
        if graded_sums(tables.pair, x, np.ones(x.size), bounds, V, tables.profile, first, CURVATURES, sums, sums):
            sizes = (bounds[1:] - bounds[:-1]).astype(np.float64)
            below, above = np.empty_like(sizes), np.empty_like(sizes)
            pair_sums(0, sizes.size, V, sizes, sizes, below, above)
            _write(q, lists, need, out, tables, 1.0, x, order, bounds, sums, below, above)
            done[q] = True


@compiled
def graded_pairs_hessp(lists, f, v, out, tables, done):  # type: ignore[no-untyped-def]
    """Hessian-vector product over pairs of different grade: sum_j V E'' (v_i - v_j)."""
    for q in lists.query:
        x, order, bounds = in_order(q, lists, f, tables.gamma[q], tables.levels)
        direction, _, _ = in_order(q, lists, v, 1.0, tables.levels)
        direction -= direction[0]  # constants drop out
        weight, product, V = np.ones(x.size), np.zeros(x.size), _factors(q, tables.V, tables.levels)
        for turn in range(2):
            sums = np.zeros((x.size, 1))
            if not graded_sums(tables.pair, x, weight, bounds, V, tables.profile, CURVATURES, CURVATURES, sums, sums):
                break
            product += -sums[:, 0] if turn else direction * sums[:, 0]
            weight, done[q] = direction, turn == 1
        scale = lists.weight[q] * tables.kappa[q] * tables.gamma[q] ** 2
        scatter(product, scale, order, out[lists.start[q] : lists.start[q + 1]])


@compiled
def all_pairs(lists, f, need, out, tables, done):  # type: ignore[no-untyped-def]
    """Value, gradient and diagonal over all pairs, of the same grade too; V = alpha beta is one number."""
    first = VALUES if need & VALUE else SLOPES
    for q in lists.query:
        x, order, bounds = in_order(q, lists, f, tables.gamma[q], tables.levels)
        n = x.size
        sums = np.empty((n, CURVATURES + 1 - first))
        if all_sums(tables.pair, x, np.ones(n), tables.profile, first, CURVATURES, sums):
            # The sums hold each document with itself, where E' is 0.
            sums[:, CURVATURES - first] -= tables.E2
            if need & VALUE:
                sums[:, 0] -= tables.E0
            V = tables.V.alpha * tables.V.beta
            _write(q, lists, need, out, tables, V, x, order, bounds, sums, bounds[:-1] * 1.0, n - bounds[1:] * 1.0)
            if need & VALUE:
                sizes = bounds[1:] - bounds[:-1]
                out.value[q] += tables.kappa[q] * tables.constant * V * 0.5 * np.sum(sizes * (sizes - 1))  # tied pairs
            done[q] = True


@compiled
def all_pairs_hessp(lists, f, v, out, tables, done):  # type: ignore[no-untyped-def]
    """Hessian-vector product over all pairs: sum_j V E'' (v_i - v_j)."""
    for q in lists.query:
        x, order, _ = in_order(q, lists, f, tables.gamma[q], tables.levels)
        direction, _, _ = in_order(q, lists, v, 1.0, tables.levels)
        direction -= direction[0]  # constants drop out
        weight, product, sums = np.ones(x.size), np.zeros(x.size), np.empty((x.size, 1))
        for turn in range(2):
            if not all_sums(tables.pair, x, weight, tables.profile, CURVATURES, CURVATURES, sums):
                break
            product += -sums[:, 0] if turn else direction * sums[:, 0]
            weight, done[q] = direction, turn == 1
        scale = lists.weight[q] * tables.kappa[q] * tables.gamma[q] ** 2 * tables.V.alpha * tables.V.beta
        scatter(product, scale, order, out[lists.start[q] : lists.start[q + 1]])
