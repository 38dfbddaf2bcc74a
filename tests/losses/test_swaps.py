"""LambdaLoss and YetiRank: their gradients pair by pair, randomness without state, long lists, and what they learn."""

from __future__ import annotations

import numpy as np
import pytest

from boostlist import Queries, metrics
from boostlist.losses import LambdaLoss, YetiRank, draws
from tests.losses.references import swaps
from tests.losses.test_registry import random_lists, split


@pytest.mark.parametrize("loss", swaps.CASES, ids=repr)
def test_gradient_is_that_of_the_pairs(loss):
    rng = np.random.default_rng(0)
    for _ in range(10):
        queries, f = random_lists(rng)
        label_set = sorted(set(queries.labels))
        lists = zip(split(queries, f), split(queries, queries.labels), queries.weight, strict=True)
        expected = [
            weight * np.array(swaps.gradient_hessian(loss, list(fq), list(y), label_set)) for fq, y, weight in lists
        ]
        found = loss.bind(queries).gradient_hessian(f)
        np.testing.assert_allclose(found, np.concatenate(expected, axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", ["ndcg", "map", "mrr", "err"])
def test_a_cut_off_beyond_the_list_is_none(metric):
    queries, f = random_lists(np.random.default_rng(1))
    whole = LambdaLoss(metric=metric, k=None).bind(queries).gradient_hessian(f)
    np.testing.assert_array_equal(LambdaLoss(metric=metric, k=9).bind(queries).gradient_hessian(f), whole)


@pytest.mark.parametrize("metric", ["ndcg", "map", "mrr", "err"])
@pytest.mark.parametrize("spread", [1.0, 2e4])
def test_lambda_loss_on_a_long_list_of_fractional_labels(metric, spread):
    rng = np.random.default_rng(2)
    n = 90
    y, f = rng.uniform(0, 3, n), spread * rng.normal(size=n)
    loss = LambdaLoss(metric=metric, k=5)
    found = loss.bind(Queries.from_sizes(y, [n])).gradient_hessian(f)
    order = np.argsort(-f, kind="stable").tolist()
    expected = np.zeros((2, n))
    for s in range(5):
        for t in range(s + 1, n):
            i, j = (order[s], order[t]) if y[order[s]] > y[order[t]] else (order[t], order[s])
            w = swaps.change(loss, metric, 5, order, y.tolist(), s, t, y.tolist())
            p = 0.5 - 0.5 * np.tanh((f[i] - f[j]) / 2)
            expected[:, i] += [-w * p, w * p * (1 - p)]
            expected[:, j] += [w * p, w * p * (1 - p)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)


def test_draws_follow_their_distributions():
    out = np.empty(200_000)
    draws.exponentials_of(np.uint64(3), out)
    assert abs(out.mean() - 1) < 0.01
    for q in (0.1, 0.5, 0.9, 0.999):
        assert abs(np.quantile(out, q) + np.log1p(-q)) < 0.05 * -np.log1p(-q)
    np.testing.assert_allclose([draws.minus_log(u) for u in (1e-15, 0.3, 0.7, 1 - 2**-53)],
                               -np.log([1e-15, 0.3, 0.7, 1 - 2**-53]), rtol=1e-9)  # fmt: skip


def test_rankings_are_drawn_from_the_plackett_luce_model():
    # With decay near 0 only the first two places count, and the document at the first is drawn by softmax(f).
    f = np.array([0.5, -0.3, 1.2])
    lists = 20_000
    seeds = [YetiRank(samples=lists, decay=1e-9, seed=seed, gain="linear") for seed in (0, 1)]
    p = np.exp(f) / np.exp(f).sum()
    y = np.array([2.0, 1.0, 0.0])
    expected = np.zeros(3)
    for i in range(3):
        for j in range(3):
            if i != j:
                better, worse = (i, j) if y[i] > y[j] else (j, i)
                share = p[i] * p[j] / (1 - p[i]) * abs(y[i] - y[j]) / (1 + np.exp(f[better] - f[worse]))
                expected[[better, worse]] += [-share, share]
    for loss in seeds:
        gradient, _ = loss.bind(Queries.from_sizes(y, [3])).gradient_hessian(f)
        np.testing.assert_allclose(gradient, expected, atol=4 / np.sqrt(lists))


def test_yeti_rank_has_no_state():
    rng = np.random.default_rng(3)
    queries, f = random_lists(rng, n_queries=30)
    bound = YetiRank().bind(queries)
    first = bound.gradient_hessian(f)
    bound.gradient_hessian(f + 1)
    np.testing.assert_array_equal(bound.gradient_hessian(f), first)
    np.testing.assert_array_equal(YetiRank().bind(queries).gradient_hessian(f), first)
    # A query's gradient knows nothing of the other queries.
    a, b = queries.start[12], queries.start[13]
    alone = Queries.from_sizes(queries.labels[a:b], [b - a], queries.weight[12:13])
    np.testing.assert_array_equal(YetiRank().bind(alone).gradient_hessian(f[a:b]), np.array(first)[:, a:b])
    assert not np.array_equal(YetiRank(seed=1).bind(queries).gradient_hessian(f), first)
    # Equal scores, as in the first round: lists of other labels draw other rankings.
    y = np.tile([0.0, 1, 2, 3, 0, 1], 2)
    y[6:] = y[6:][::-1]
    gradient, _ = YetiRank(samples=1).bind(Queries.from_sizes(y, [6, 6])).gradient_hessian(np.zeros(12))
    assert not np.array_equal(gradient[:6], gradient[6:][::-1])


@pytest.mark.parametrize("decay", [0.85, 0.99, 0.5])
def test_yeti_rank_on_a_long_list(decay):
    # With .5, 53 places count, and with .99 all.
    rng = np.random.default_rng(4)
    n = 450
    y, f = rng.integers(0, 4, n).astype(float), rng.normal(size=n)
    loss = YetiRank(samples=2, decay=decay)
    found = loss.bind(Queries.from_sizes(y, [n])).gradient_hessian(f)
    expected = swaps.gradient_hessian(loss, f.tolist(), y.tolist(), [0, 1, 2, 3])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "loss", [LambdaLoss(), LambdaLoss(metric="err"), YetiRank(), YetiRank(weights="map")], ids=repr
)
@pytest.mark.parametrize("host", ["lightgbm", "xgboost"])
def test_trees_learn_to_rank(loss, host):
    from boostlist import TreeRanker

    rng = np.random.default_rng(5)
    X = rng.normal(size=(1200, 6))
    y = np.digitize(X[:, 0] + np.tanh(X[:, 1] * X[:, 2]) + 0.3 * rng.normal(size=1200), [0.3, 1, 2])
    qid = np.repeat(np.arange(60), 20)
    model = TreeRanker(loss, backend=host, n_estimators=40, learning_rate=0.2, n_jobs=1)
    model.fit(X[:800], y[:800], qid[:800])
    test = Queries.from_qid(y[800:], qid[800:])
    ndcg = metrics.NDCG(10)
    # Random scores reach about .55, the best single feature .81.
    assert ndcg.mean(model.predict(X[800:]), test) > ndcg.mean(X[800:, 0], test) + 0.03


def test_parameters_are_checked():
    for bad in ({"samples": 0}, {"seed": -1}, {"noise": 0}, {"decay": 1.5}, {"threshold": 0}, {"weights": "x"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            YetiRank(**bad)
    for bad in ({"metric": "dcg"}, {"k": 0}, {"threshold": np.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            LambdaLoss(**bad)
