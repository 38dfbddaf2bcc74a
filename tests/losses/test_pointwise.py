"""Pointwise and Isotonic: what an offset changes, and targets."""

from __future__ import annotations

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import CsListMLE, Isotonic, Pointwise


def test_isotonic_is_the_best_offset_of_the_squared_error():
    rng = np.random.default_rng(0)
    y, f = rng.integers(0, 5, 30).astype(float), rng.normal(size=30)
    queries = Queries.from_sizes(y, [30])
    plain = Pointwise().bind(queries)
    offset = np.mean(2**y - 1 - f)
    np.testing.assert_allclose(Isotonic().bind(queries).value(f), plain.value(f + offset), rtol=1e-12)
    np.testing.assert_allclose(Pointwise(centred=True).bind(queries).value(f), plain.value(f + offset), rtol=1e-12)
    for step in (-0.1, 0.1):
        assert plain.value(f + offset + step) > plain.value(f + offset)


def test_curvature():
    queries = Queries.from_sizes([0.0, 1, 2, 3], [3, 1])
    np.testing.assert_array_equal(Pointwise().bind(queries).gradient_hessian(np.zeros(4))[1], 1)
    # A list of one document has no differences to speak of.
    np.testing.assert_allclose(Isotonic().bind(queries).gradient_hessian(np.zeros(4))[1], [2 / 3, 2 / 3, 2 / 3, 0])


def test_one_newton_step_reaches_the_targets():
    y = np.array([0.0, 3, 1])
    bound = Pointwise(targets=(0, 0.5, 3, 7)).bind(Queries.from_sizes(y, [3]))
    gradient, diag = bound.gradient_hessian(np.array([5.0, -2, 8]))
    np.testing.assert_allclose(np.array([5.0, -2, 8]) - gradient / diag, [0, 7, 0.5])


def test_as_a_term_beside_a_listwise_loss():
    rng = np.random.default_rng(1)
    queries, f = Queries.from_sizes(rng.integers(0, 4, 20), [8, 12]), rng.normal(size=20)
    loss = CsListMLE() + 0.3 * Pointwise(centred=True)
    expected = CsListMLE().bind(queries).value(f) + 0.3 * Isotonic().bind(queries).value(f)
    np.testing.assert_allclose(loss.bind(queries).value(f), expected, rtol=1e-12)
    assert loss.traits.shift_invariant
    assert not (CsListMLE() + Pointwise()).traits.shift_invariant


def test_targets_are_checked():
    with pytest.raises(ValueError, match='targets must be "exp2", "linear" or a table by grade, got'):
        Pointwise(targets="square")
    with pytest.raises(ValueError, match="a target table holds finite targets >= 0"):
        Isotonic(targets=(1, 0))
    with pytest.raises(ValueError, match=r'targets="exp2" overflows: 2\^y at label 1000; use targets="linear"'):
        Pointwise().bind(Queries.from_sizes([1000.0, 0], [2]))
    with pytest.raises(ValueError, match="label 2 has no entry in the target table, which covers the grades 0 to 1"):
        Pointwise(targets=(0, 1)).bind(Queries.from_sizes([2.0, 0], [2]))
