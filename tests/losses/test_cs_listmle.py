from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boostlist import Queries
from boostlist.losses import CsListMLE
from tests.losses.precise import hard_scores, value_gradient
from tests.losses.references.cs_listmle import gain, terms


@pytest.mark.parametrize("loss", [CsListMLE(), CsListMLE(k=3), CsListMLE(weights="grade")], ids=repr)
def test_accuracy_at_extreme_scores(loss):
    rng = np.random.default_rng(0)
    for _ in range(10):
        n = int(rng.integers(2, 12))
        y = rng.integers(0, 4, n).astype(float)
        y[0] = 1  # at least one relevant document
        dcg, _, beta, alpha = terms(loss, list(y))
        weight = [b / dcg / math.log(2) for b in beta]
        mass = [{j: 1.0, **alpha[j]} for j in range(n)]
        bound = loss.bind(Queries.from_sizes(y, [n]))
        for f in hard_scores(rng, y):
            value, gradient = value_gradient(f, weight, mass)
            ours_value, ours = bound.value_gradient(f)
            scale = max(np.abs(gradient))
            np.testing.assert_allclose(ours, gradient, rtol=0, atol=1e-9 * max(scale, 1e-300))
            np.testing.assert_allclose(ours_value, value, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("y", [[520, 260, 1, 0, 0], [600, 0], [999, 998, 3]], ids=str)
def test_labels_whose_gains_have_no_finite_square(y):
    rng = np.random.default_rng(3)
    n, loss = len(y), CsListMLE()
    dcg, _, beta, alpha = terms(loss, y)
    weight = [b / dcg / math.log(2) for b in beta]
    mass = [{j: 1.0, **alpha[j]} for j in range(n)]
    bound = loss.bind(Queries.from_sizes(y, [n]))
    for f in (np.zeros(n), rng.normal(size=n), np.eye(n)[0] * 1000, np.eye(n)[0] * -1000):
        ours_value, ours = bound.value_gradient(f)
        value, gradient = value_gradient(f, weight, mass)
        assert ours_value == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(ours, gradient, rtol=1e-12, atol=1e-300)
        step = 1e-4 * np.eye(n)
        slopes = [
            (value_gradient(f + e, weight, mass)[1][i] - value_gradient(f - e, weight, mass)[1][i]) / 2e-4
            for i, e in enumerate(step)
        ]
        np.testing.assert_allclose(bound.gradient_hessian(f)[1], slopes, atol=1e-7)


@settings(max_examples=300)
@given(
    lists=st.lists(st.tuples(st.integers(0, 4), st.floats(-30, 30)), min_size=1, max_size=12),
    k=st.sampled_from([None, 1, 2, 5]),
)
def test_theorem_3_bounds_ndcg(lists, k):
    """l + C2 >= 1 - NDCG@k for every list; the loss alone can be below."""
    y, f = np.array([y for y, _ in lists], float), np.array([f for _, f in lists])
    loss = CsListMLE(k=k)
    dcg, c, _, _ = terms(loss, list(y))
    if dcg == 0:
        return
    n, cut = len(y), k or len(y)
    a = [gain(loss, grade) for grade in y]
    worst = sorted(range(n), key=lambda i: (-f[i], y[i]))  # of equal scores the worse document first
    discount = [1 / math.log2(2 + r) for r in range(min(cut, n))]
    ideal = sum(d * g for d, g in zip(discount, sorted(a, reverse=True), strict=False))
    ndcg = sum(d * a[i] for d, i in zip(discount, worst, strict=False)) / ideal
    tied = sum(c[i] + c[j] for i in range(n) for j in range(i) if y[i] == y[j])
    c2 = ((sum(a) / math.log2(1 + cut) if k is not None else 0.0) + tied) / dcg
    assert loss.bind(Queries.from_sizes(y, [n])).value(f) + c2 >= 1 - ndcg - 1e-12


def test_two_documents_by_hand():
    # Grades 1 and 0: a = 1, c = 1 / (2 ln 2), beta = c, alpha = 1, DCG = 1; equal scores give beta log2(2).
    bound = CsListMLE().bind(Queries.from_sizes([1, 0], [2]))
    assert bound.value([0, 0]) == pytest.approx(1 / (2 * math.log(2)))


def test_one_grade_lists_contribute_nothing():
    bound = CsListMLE().bind(Queries.from_sizes([2, 2, 2], [3]))
    assert bound.value([1, 5, -3]) == 0
    assert not np.any(bound.gradient_hessian([1, 5, -3]))


def test_all_labels_different_costs_no_accuracy():
    """Sums move from grade to grade through 2,000 levels and still match differences of the value."""
    rng = np.random.default_rng(0)
    n = 2000
    y, f = rng.permutation(n) / 100, rng.normal(0, 3, n)
    for loss in (CsListMLE(), CsListMLE(weights="grade")):
        bound = loss.bind(Queries.from_sizes(y, [n]))
        gradient, _ = bound.gradient_hessian(f)
        direction = rng.normal(size=n)
        step = 1e-4
        slope = (bound.value(f + step * direction) - bound.value(f - step * direction)) / (2 * step)
        assert slope == pytest.approx(gradient @ direction, rel=1e-6)


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_k_is_checked(k):
    with pytest.raises(ValueError, match="k must be a whole number"):
        CsListMLE(k=k)
