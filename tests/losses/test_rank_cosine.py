"""RankCosine: range, the start at zero, and a diag whose parabola lies above the loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostlist import Queries
from boostlist.losses import RankCosine
from tests.losses.references.rank_cosine import CASES


def lists(rng):
    n = rng.integers(1, 12)
    return Queries.from_sizes(rng.integers(0, 4, n), [n]), rng.normal(0, rng.choice([0.1, 1, 5, 100]), n)


@pytest.mark.parametrize("loss", CASES, ids=repr)
@given(seed=st.integers(0, 2**32 - 1))
def test_lies_between_zero_and_one(loss, seed):
    queries, f = lists(np.random.default_rng(seed))
    assert 0 <= loss.bind(queries).value(f) <= 1


@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_parabola_lies_above_the_loss(loss):
    # Not only to second order: a majorizer along whole steps, so that a step of -gradient / diag never raises the loss.
    rng = np.random.default_rng(0)
    for _ in range(1000):
        queries, f = lists(rng)
        bound = loss.bind(queries)
        value, (gradient, diag) = bound.value(f), bound.gradient_hessian(f)
        step = rng.normal(0, rng.choice([0.1, 1, 10]), len(f)) if rng.random() < 0.5 else -gradient / (diag + 1e-300)
        assert bound.value(f + step) <= value + gradient @ step + diag @ step**2 / 2 + 1e-12


def test_at_zero_the_gradient_points_to_the_labels():
    y = np.array([0.0, 2, 1])
    gradient, diag = RankCosine(rho=4.0).bind(Queries.from_sizes(y, [3])).gradient_hessian(np.zeros(3))
    np.testing.assert_allclose(gradient, -y / np.sqrt(5) / 8)
    np.testing.assert_allclose(diag, 2 / 16)


def test_perfect_direction_costs_nothing_in_the_limit():
    bound = RankCosine().bind(Queries.from_sizes([0.0, 2, 1], [3]))
    assert bound.value([0, 2e6, 1e6]) < 1e-12
    np.testing.assert_allclose(bound.value([0, -2e6, -1e6]), 1)


def test_a_query_without_relevant_documents_contributes_nothing():
    bound = RankCosine().bind(Queries.from_sizes([0.0, 0, 1, 0], [2, 2]))
    gradient, diag = bound.gradient_hessian(np.ones(4))
    np.testing.assert_array_equal([gradient[:2], diag[:2]], 0)
    assert bound.per_query(np.ones(4))[0] == 0
    assert (gradient[2:] != 0).all()


def test_large_labels_do_not_overflow():
    queries = Queries.from_sizes([1e200, 5e199, 0, 1000, 999], [3, 2])
    for psi in ("identity", "exp", "sigmoid", "position", (1.0, -1.0)):
        assert np.isfinite(RankCosine(psi=psi).bind(queries).gradient_hessian(np.zeros(5))).all()


@pytest.mark.parametrize("parameters", [{"phi": "position"}, {"psi": "cube"}, {"phi": (0.0, 1.0)}, {"psi": (1.0,)}])
def test_maps_are_checked(parameters):
    with pytest.raises(ValueError, match=r"must be one of 'identity', 'exp', 'sigmoid'.*\(a, b\) with a > 0"):
        RankCosine(**parameters)


def test_rho_is_checked():
    with pytest.raises(ValueError, match="rho must be finite and > 0, got 0"):
        RankCosine(rho=0)
