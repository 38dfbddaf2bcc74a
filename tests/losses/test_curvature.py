"""X'HX of the losses that offer it, against the product of X and the dense Hessian made from H v."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boostlist import Queries
from boostlist.losses import CsListMLE, CsRgList, ListMLE, ReversePL, WeightedPL, registry

LOSSES = [
    ListMLE(),
    ListMLE(ties="order"),
    ListMLE(ties="efron"),
    CsRgList(),
    WeightedPL(weights="gain"),
    ReversePL(),
    ReversePL(ties="order"),
    ReversePL(ties="efron"),
    CsListMLE(),
    CsListMLE(k=3),
    CsListMLE(weights="grade"),
    0.5 * CsListMLE() + 2 * CsRgList(pcf=2),
]


def dense(bound, f):
    product = bound.hessp(f)
    return np.column_stack([product(unit) for unit in np.eye(len(f))])


def check(loss, queries, f, X, tolerance):
    bound = loss.bind(queries)
    product = bound.curvature(f)
    expected = X.T @ dense(bound, f) @ X
    # Where one score leads by far, H is much smaller than the parts it is made of.
    scale = np.abs(expected).max() + np.abs(X).max() ** 2
    whole = product(0, queries.n_queries, X)
    np.testing.assert_allclose(whole, expected, rtol=0, atol=tolerance * scale)
    cut, row = queries.n_queries // 2, queries.start[queries.n_queries // 2]
    parts = product(0, cut, X[:row].copy()) + product(cut, queries.n_queries, X[row:].copy())
    np.testing.assert_allclose(parts, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_equals_the_product_with_the_dense_hessian(loss):
    rng = np.random.default_rng(3)
    sizes = [7, 1, 12, 5, 30]
    queries = Queries.from_sizes(rng.integers(0, 4, sum(sizes)), sizes, rng.random(len(sizes)))
    check(loss, queries, rng.normal(0, 3, sum(sizes)), rng.normal(size=(sum(sizes), 4)), 1e-12)


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_every_list(data):
    loss = data.draw(st.sampled_from(LOSSES))
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    n = sum(sizes)
    labels = data.draw(st.lists(st.sampled_from([0, 0.5, 1, 2, 3]), min_size=n, max_size=n))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    spread = data.draw(st.sampled_from([0.0, 1.0, 30.0, 500.0]))
    check(loss, Queries.from_sizes(labels, sizes), spread * rng.normal(size=n), rng.normal(size=(n, 3)), 1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_features_far_from_zero_keep_their_digits(loss):
    rng = np.random.default_rng(4)
    queries = Queries.from_sizes(rng.integers(0, 4, 40), [20, 20])
    X = rng.integers(0, 64, (40, 3)).astype(float)
    f = rng.normal(size=40)
    product = loss.bind(queries).curvature(f)
    np.testing.assert_allclose(product(0, 2, X + 2.0**40), product(0, 2, X), rtol=1e-12)


def test_a_sum_has_it_only_if_all_terms_do():
    queries = Queries.from_sizes([1, 0], [2])
    assert (ListMLE() + ListMLE()).bind(queries).curvature(np.zeros(2)) is not None
    assert (ListMLE() + registry["pointwise"]()).bind(queries).curvature(np.zeros(2)) is None
