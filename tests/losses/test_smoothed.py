"""Smoothed metrics: their limits are the metrics, their diagonal makes Newton steps descend."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boostlist import Queries
from boostlist.losses import SmoothERR, SmoothMRR, SmoothNDCG
from boostlist.losses.ratios import FAR

EVERY = [SmoothNDCG(), SmoothNDCG(tau=0.3), SmoothMRR(), SmoothMRR(tau=0.2), SmoothERR(), SmoothERR(tau=0.3)]
GATED = [SmoothNDCG(k=3), SmoothNDCG(k=1, tau=0.5), SmoothNDCG(k=5, tau=3.0)]


def hard_metric(loss, f, y, y_max):
    order = np.argsort(-f)
    a = 2.0 ** y[order] - 1
    ranks = np.arange(1, len(f) + 1)
    if isinstance(loss, SmoothMRR):
        return (1 / ranks)[y[order] == y.max()].mean()
    if isinstance(loss, SmoothERR):
        R = a / 2**y_max
        return (R / ranks * np.cumprod(np.append(1, 1 - R[:-1]))).sum()
    b = (ranks <= (loss.k or len(f))) / np.log2(1 + ranks)
    return (a * b).sum() / (np.sort(a)[::-1] * b).sum()


@pytest.mark.parametrize(
    "loss",
    [*(SmoothNDCG(tau=1e-3, k=k) for k in (None, 1, 4)), SmoothMRR(tau=1e-3), SmoothERR(tau=1e-3)],
    ids=repr,
)
def test_a_cold_loss_is_the_metric(loss):
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = rng.integers(2, 15)
        y = rng.integers(0, 4, n).astype(float)
        y[:2] = 0, 3
        f = 0.1 * rng.permutation(n)
        value = loss.bind(Queries.from_sizes(y, [n])).value(f)
        np.testing.assert_allclose(value, 1 - hard_metric(loss, f, y, 3), atol=1e-12)


def newton_steps(loss, seed):
    """Yield the values before and after full Newton steps, by document and by leaves of random documents."""
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 30)
    y = rng.integers(0, 5, n).astype(float)
    bound = loss.bind(Queries.from_sizes(y, [n]))
    f = rng.normal(0, rng.choice([0.0, 0.1, 1.0, 5.0]), n)
    gradient, diag = bound.gradient_hessian(f)
    leaf = rng.integers(0, 4, n)
    sums = [np.bincount(leaf, part)[leaf] for part in (gradient, diag)]
    for g, d in ((gradient, diag), sums):
        step = -np.divide(g, d, out=np.zeros(n), where=d > 0)
        yield bound.value(f), bound.value(f + step), step


@pytest.mark.parametrize("loss", EVERY, ids=repr)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_newton_step_descends(loss, seed):
    for before, after, step in newton_steps(loss, seed):
        assert after <= before + 1e-13
        assert np.abs(step).max() <= loss.tau / 2 * (1 + 1e-12)


@pytest.mark.parametrize("loss", GATED, ids=repr)
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_newton_steps_descend_with_a_cut_off(loss, seed):
    for before, after, _ in newton_steps(loss, seed):
        assert after <= before + 1e-13


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_on_spread_scores_the_diagonal_is_tighter_than_the_bound_by_the_largest_second_derivative(loss):
    rng = np.random.default_rng(1)
    n = 40
    y, f = rng.integers(0, 4, n).astype(float), 3 * loss.tau * rng.normal(size=n)
    y[:2] = 0, 3
    s = 1 / (1 + np.exp((f[:, None] - f) / loss.tau))
    np.fill_diagonal(s, 0)
    h = 1 + s.sum(1)
    a = 2.0**y - 1
    if isinstance(loss, SmoothERR):
        R = a / 8
        T = R / h * np.prod(1 - R * s, axis=1)
        Q = T[:, None] * (1 / (6 * math.sqrt(3) * h[:, None]) + R / 4)
    else:
        if isinstance(loss, SmoothNDCG):
            ideal = (np.sort(a)[::-1] / np.log2(np.arange(2, n + 2))).sum()
            c = a * math.log(2) / (np.log(1 + h) ** 2 * (1 + h)) / ideal
        else:
            c = (y == y.max()) / (y == y.max()).sum() / h**2
        Q = np.tile(c[:, None] / (6 * math.sqrt(3)), (1, n))
    np.fill_diagonal(Q, 0)
    coarse = 2 / loss.tau**2 * (Q.sum(0) + Q.sum(1))
    _, diag = loss.bind(Queries.from_sizes(y, [n])).gradient_hessian(f)
    assert diag.sum() < 0.7 * coarse.sum()


@pytest.mark.parametrize("loss", [*EVERY, *GATED], ids=repr)
def test_equal_scores_move_the_right_way(loss):
    y = np.repeat([0.0, 1, 2], 40)
    gradient, diag = loss.bind(Queries.from_sizes(y, [120])).gradient_hessian(np.zeros(120))
    assert (diag > 0).all()
    assert gradient[y == 2].max() < 0 < gradient[y == 0].min()


@pytest.mark.parametrize("loss", [*EVERY, *GATED], ids=repr)
@pytest.mark.parametrize("labels", [[1.0], [2.0, 2.0, 2.0], [0.0, 0.0]])
def test_one_grade_contributes_nothing(loss, labels):
    bound = loss.bind(Queries.from_sizes(labels, [len(labels)]))
    f = np.arange(len(labels)) * 1.5
    assert bound.value(f) == 0
    np.testing.assert_array_equal(bound.gradient_hessian(f), 0)


@pytest.mark.parametrize("spread", [3.0, 0.9 * FAR, 1.1 * FAR, 3e4])
def test_long_lists_and_both_paths(spread):
    rng = np.random.default_rng(2)
    n = 300
    y, f = rng.integers(0, 4, n).astype(float), rng.uniform(-0.5, 0.5, n)
    f[0], f[1] = -0.5, 0.5
    f *= spread
    s = np.exp(-np.logaddexp(0, f[:, None] - f))
    np.fill_diagonal(s, 0)
    h = 1 + s.sum(1)
    a = 2.0**y - 1
    ideal = (np.sort(a)[::-1] / np.log2(np.arange(2, n + 2))).sum()
    R = a / 8
    expected = {
        SmoothNDCG(): 1 - (a / np.log2(1 + h)).sum() / ideal,
        SmoothMRR(): 1 - (1 / h)[y == 3].mean(),
        SmoothERR(): 1 - (R / h * np.prod(1 - R * s, axis=1)).sum(),
    }
    for loss, value in expected.items():
        np.testing.assert_allclose(loss.bind(Queries.from_sizes(y, [n])).value(f), value, rtol=1e-12)


def test_large_grades_keep_err_finite():
    # 2^60 - 1 over 2^60 rounds to 1: a document that surely satisfies
    bound = SmoothERR().bind(Queries.from_sizes([60, 0, 1], [3]))
    for f in ([0.0, 0, 0], [-50, 50, 0], [-1e4, 1e4, 0]):
        assert np.isfinite(bound.value(f))
        assert np.isfinite(bound.gradient_hessian(f)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SmoothMRR(tau=0), "tau must be finite and > 0, got 0"),
        (lambda: SmoothNDCG(k=0), "k must be a whole number of at least 1"),
        (lambda: SmoothERR(gain="square"), "gain must be"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
