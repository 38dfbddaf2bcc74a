"""Markov random field losses: the likelihood that they approximate, label sets, extreme scores."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import WUB, WpLL
from boostlist.losses.ratios import FAR


def field(f, y, gamma):
    """Unnormalised log-probability of the labels y."""
    pairs = itertools.combinations(range(len(f)), 2)
    return gamma * sum(float(np.sign(y[i] - y[j])) * (f[i] - f[j]) for i, j in pairs)


def test_wpll_is_the_sum_of_the_conditionals_of_the_field():
    rng = np.random.default_rng(0)
    labels = (0.0, 1.0, 2.0)
    for _ in range(10):
        f, y = rng.normal(size=5), rng.choice(labels, 5)
        expected = 0.0
        for i in range(5):
            scores = [field(f, np.where(np.arange(5) == i, v, y), 0.7) for v in labels]
            expected += np.logaddexp.reduce(scores) - field(f, y, 0.7)
        loss = WpLL(weights="uniform", gamma=0.7, grades=labels)
        np.testing.assert_allclose(loss.bind(Queries.from_sizes(y, [5])).value(f), expected, rtol=1e-11)


def test_wub_bounds_the_likelihood_of_a_pair_of_documents():
    rng = np.random.default_rng(1)
    labels = (0.0, 1.0, 2.0, 3.0)
    for _ in range(50):
        f, y = rng.normal(0, 2, 2), rng.choice(labels, 2)
        total = np.logaddexp.reduce([field(f, pair, 1.0) for pair in itertools.product(labels, repeat=2)])
        loss = WUB(normalize=None, grades=labels).bind(Queries.from_sizes(y, [2]))
        assert loss.value(f) >= total - field(f, y, 1.0) - 1e-12


@pytest.mark.parametrize("loss", [WpLL(), WUB(), WUB(normalize="pairs")])
def test_one_grade_is_pulled_together(loss):
    loss = type(loss)(**{**vars(loss), "grades": (0, 1, 2)})
    bound = loss.bind(Queries.from_sizes([1, 1, 1], [3]))
    f = np.array([-1.0, 0.2, 2.0])
    gradient, diag = bound.gradient_hessian(f)
    assert gradient[0] < 0 < gradient[2]
    assert (diag > 0).all()
    assert bound.value(0.9 * f) < bound.value(f)


@pytest.mark.parametrize("weights", ["grade", "gain", "dcg"])
def test_weights_by_grade_leave_tied_pairs_alone(weights):
    bound = WUB(weights=weights, grades=(0, 1, 2)).bind(Queries.from_sizes([1, 1, 1], [3]))
    np.testing.assert_array_equal(bound.gradient_hessian([-1.0, 0.2, 2.0]), 0)


@pytest.mark.parametrize("spread", [3.0, 0.9 * FAR, 1.1 * FAR, 3e4])
def test_wub_on_long_lists_and_both_paths(spread):
    rng = np.random.default_rng(2)
    n = 300
    y, f = rng.integers(0, 4, n).astype(float), rng.uniform(-0.5, 0.5, n)
    f[0], f[1] = -0.5, 0.5
    f *= spread
    d, sign = f[:, None] - f, np.sign(y[:, None] - y)
    # log(4 (1 + 3 cosh d)), with the larger exponential taken out
    log_cosh = np.abs(d) + np.log(4 * (np.exp(-np.abs(d)) + 1.5 * (1 + np.exp(-2 * np.abs(d)))))
    small = np.exp(-np.abs(d))
    slope = -sign + np.sign(d) * 3 * (1 - small**2) / (2 * small + 3 * (1 + small**2))
    bound = WUB(normalize=None).bind(Queries.from_sizes(y, [n]))
    value, gradient = bound.value_gradient(f)
    np.testing.assert_allclose(value, np.triu(log_cosh - sign * d, 1).sum(), rtol=1e-11)
    np.testing.assert_allclose(gradient, slope.sum(1), rtol=1e-9, atol=1e-9)


def test_gamma_pairs_is_one_over_the_number_of_pairs():
    rng = np.random.default_rng(3)
    queries, f = Queries.from_sizes(rng.integers(0, 3, 6), [6]), rng.normal(size=6)
    np.testing.assert_allclose(
        WUB(gamma="pairs").bind(queries).gradient_hessian(f), WUB(gamma=1 / 15).bind(queries).gradient_hessian(f)
    )


def test_shards_agree_given_the_grades():
    grades = (0, 1, 2, 3, 4)
    y, f = np.array([0.0, 1, 2, 4, 0, 1]), np.array([0.3, 0.1, 0.5, -0.2, 0.4, 0.9])
    for loss in (WpLL(grades=grades), WUB(grades=grades), WpLL(weights="gain", grades=grades)):
        whole = loss.bind(Queries.from_sizes(y, [4, 2])).per_query(f)
        parts = [
            loss.bind(Queries.from_sizes(y[rows], [len(y[rows])])).value(f[rows]) for rows in (slice(4), slice(4, 6))
        ]
        np.testing.assert_allclose(whole, parts, rtol=1e-13)


def test_too_many_grades_for_a_loss_that_models_each():
    with pytest.raises(ValueError, match=r"65 grades.*at most 64\. Round or bin the labels"):
        WpLL().bind(Queries.from_sizes(np.arange(65), [65]))
    assert math.isfinite(WpLL().bind(Queries.from_sizes(np.arange(64), [64])).value(np.zeros(64)))


@pytest.mark.parametrize(("grades", "b"), [(1000, 999), (1001, math.inf)])
def test_wub_takes_any_number_of_labels(grades, b):
    rng = np.random.default_rng(4)
    # One list of a few documents, and another that holds the rest of the labels.
    y = np.concatenate((rng.choice(grades, 6, replace=False), np.arange(grades))).astype(float)
    f = np.concatenate((rng.normal(size=6), np.zeros(grades)))
    bound = WUB(normalize=None, gamma=0.7).bind(Queries.from_sizes(y, [6, grades]))
    d, sign = 0.7 * (f[:6, None] - f[:6]), np.sign(y[:6, None] - y[:6])
    if math.isinf(b):
        psi, slope, curvature = np.log(2 * np.cosh(d)), np.tanh(d), 1 / np.cosh(d) ** 2
    else:
        psi, slope = np.log(grades * (1 + b * np.cosh(d))), b * np.sinh(d) / (1 + b * np.cosh(d))
        curvature = b * (b + np.cosh(d)) / (1 + b * np.cosh(d)) ** 2
    np.testing.assert_allclose(bound.per_query(f)[0], np.triu(psi - sign * d, 1).sum(), rtol=1e-12)
    gradient, diag = bound.gradient_hessian(f)
    np.testing.assert_allclose(gradient[:6], 0.7 * (slope - sign).sum(1), rtol=1e-11)
    np.fill_diagonal(curvature, 0)
    np.testing.assert_allclose(diag[:6], 0.49 * curvature.sum(1), rtol=1e-11)
    v = rng.normal(size=f.size)
    product = curvature.sum(1) * v[:6] - curvature @ v[:6]
    np.testing.assert_allclose(bound.hessp(f)(v)[:6], 0.49 * product, rtol=1e-10)


def test_many_grades_may_be_given():
    y, f = np.array([0.0, 1, 2]), np.array([0.3, -0.2, 0.9])
    grades = tuple(range(900))
    found = WUB(normalize=None, grades=grades).bind(Queries.from_sizes(y, [3])).value(f)
    pairs = [(1, 0), (2, 0), (2, 1)]
    expected = sum(math.log(900 * (1 + 899 * math.cosh(f[i] - f[j]))) - (f[i] - f[j]) for i, j in pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_parameters_are_checked():
    for gamma in (0, -1.0, np.inf, "pair", None, True):
        with pytest.raises(ValueError, match='gamma must be finite and > 0, or "pairs", got'):
            WpLL(gamma=gamma)
    with pytest.raises(ValueError, match="gamma must be finite and > 0, or \"pairs\", got 'pair'"):
        WUB(gamma="pair")
