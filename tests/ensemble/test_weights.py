"""Fitted weights against SciPy's optimisers on the same function."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from boostlist import LinearRanker, Queries
from boostlist.ensemble.training import Trained, fit_to_scores
from boostlist.ensemble.weights import Moments, fitted_weights, spread
from boostlist.losses import ListMLE
from tests.ensemble.data import EVAL, TRAIN, VALI, fitted, tree


def scores(columns, seed=0, sizes=(6, 9, 4, 8, 12, 1, 7)):
    """Return labels in lists, and columns of scores that know more or less of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, sum(sizes)).astype(float)
    knowledge = rng.normal(size=columns)
    return Queries.from_sizes(y, sizes), knowledge * y[:, np.newaxis] + rng.normal(size=(len(y), columns))


def minimum(Z, queries):
    """Return the weights by their definition, with SciPy's optimisers; lists of one label take no part."""
    lists = [slice(a, b) for a, b in itertools.pairwise(queries.start) if len(set(queries.labels[a:b])) > 1]
    Z = np.concatenate([Z[each] for each in lists])
    labels = [queries.labels[each] for each in lists]
    bound, n = ListMLE().bind(Queries.from_sizes(np.concatenate(labels), list(map(len, labels)))), Z.shape[1]
    t = minimize_scalar(lambda t: 0.5e-3 * t**2 + bound.value(t * Z.mean(axis=1)), options={"xtol": 1e-10}).x
    t = t if t > 0 else 1.0
    found = minimize(
        lambda w: bound.value(t / n * Z @ w) + 0.5 * np.sum((w - 1) ** 2),
        np.ones(n), bounds=[(0, None)] * n, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    return found.x / found.x.sum() if found.x.max() > 1e-8 else np.full(n, 1 / n)


@pytest.mark.parametrize("columns", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_fitted_weights_are_the_minimum(columns, seed):
    queries, Z = scores(columns, seed)
    np.testing.assert_allclose(fitted_weights(Z, queries), minimum(Z, queries), atol=2e-5)


@pytest.mark.parametrize(("columns", "seed"), [(4, 12), (4, 42), (6, 12), (6, 20)])
def test_a_member_that_lost_its_weight_may_get_one_again(columns, seed):
    """Mixtures of one good score and noise, so that who is needed depends on who else is there."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 96).astype(float)
    noise = rng.normal(size=(96, columns - 1))
    Z = 4 * np.column_stack([y, noise]) @ rng.normal(size=(columns, columns))
    queries = Queries.from_sizes(y, [8] * 12)
    np.testing.assert_allclose(fitted_weights(Z, queries), minimum(Z, queries), atol=2e-4)


def test_weights_are_zero_where_a_member_is_wrong_and_shrink_to_uniform():
    queries, Z = scores(3, sizes=(8,) * 40)
    y = queries.labels
    Z = np.column_stack([y + Z[:, 0], -y + Z[:, 1], y + Z[:, 2]])
    w = fitted_weights(Z, queries)
    assert w[1] == 0
    few = Queries.from_sizes(y, queries.sizes, np.full(40, 1e-4))
    np.testing.assert_allclose(fitted_weights(Z, few), 1 / 3, atol=0.01)


def test_queries_of_weight_zero_take_no_part():
    queries, Z = scores(3, sizes=(8,) * 10)
    weight = np.r_[np.ones(5), np.zeros(5)]
    some = Queries.from_sizes(queries.labels, queries.sizes, weight)
    half = Queries.from_sizes(queries.labels[:40], queries.sizes[:5])
    np.testing.assert_array_equal(fitted_weights(Z, some), fitted_weights(Z[:40], half))


def test_spread():
    queries = Queries.from_sizes([0, 0, 0, 0, 0, 0], [2, 3, 1], [1, 3, 5])
    # Variances 1, 2/3; the query of one document does not count.
    assert spread(np.array([1.0, 3.0, 0.0, 1.0, 2.0, 9.0]), queries) == pytest.approx(np.sqrt((1 * 1 + 3 * 2 / 3) / 4))
    assert spread(np.array([1e9, 1e9 + 1e-7, 5, 5, 5, 9]), queries) == 0
    assert spread(np.zeros(2), Queries.from_sizes([0, 0], [1, 1])) == 0


def test_spreads_of_parts_are_joined():
    rng = np.random.default_rng(0)
    scores, sizes, weight = rng.normal(size=20), [3, 7, 1, 9], [1.0, 3.0, 5.0, 0.5]
    whole = Moments.of(scores, Queries.from_sizes(np.zeros(20), sizes, weight))
    first = Moments.of(scores[:10], Queries.from_sizes(np.zeros(10), sizes[:2], weight[:2]))
    rest = Moments.of(scores[10:], Queries.from_sizes(np.zeros(10), sizes[2:], weight[2:]))
    np.testing.assert_allclose(Moments.of_all([first, rest]), whole)
    assert first.largest != rest.largest


@pytest.mark.parametrize("weights", ["fitted", None])
def test_weights_are_fitted_on_validation_data(weights):
    model = fitted(weights=weights, fit={"eval_set": EVAL})
    Z = np.column_stack([part.estimator.predict(VALI.X) / part.spread for part in model.parts_])
    np.testing.assert_allclose(list(model.weights_.values()), fitted_weights(Z, VALI.queries), rtol=1e-9)


def test_weights_are_uniform_where_nothing_can_tell_members_apart():
    assert set(fitted([tree(), LinearRanker()]).weights_.values()) == {0.5}
    assert set(fitted([tree(), LinearRanker()], n_bags=2).weights_.values()) == {0.5}
    one_label = [(VALI.X, np.ones(len(VALI)), VALI.qid)]
    assert set(fitted([tree(), LinearRanker()], fit={"eval_set": one_label}).weights_.values()) == {0.5}
    with pytest.raises(ValueError, match=r"eval_set\[0\]: each query has a single document"):
        fitted([tree(), LinearRanker()], fit={"eval_set": [(VALI.X, VALI.y, np.arange(len(VALI)))]})


def test_weights_are_fitted_on_what_bags_leave_out():
    """Two bags leave some queries out never: these count neither in the mean of scores nor in the loss."""
    model = fitted([tree(), LinearRanker()], weights="fitted", n_bags=2)
    out = np.array(
        [
            np.random.RandomState(seed).multinomial(80, np.full(80, 1 / 80)) == 0
            for seed in np.random.RandomState(0).randint(2**31 - 1, size=2)
        ]
    )
    assert 0 < (~out.any(axis=0)).sum() < 80
    rows = np.repeat(out, TRAIN.queries.sizes, axis=1)
    Z = np.zeros((TRAIN.n_documents, 2))
    for part in model.parts_:
        column = ["listmle", "cs_rglist"].index(part.name)
        Z[:, column] += rows[part.bag] * part.estimator.predict(TRAIN.X) / part.spread
    counted = rows.any(axis=0)
    Z = Z[counted] / rows.sum(axis=0)[counted, np.newaxis]
    left = TRAIN.select(np.flatnonzero(out.any(axis=0)))
    np.testing.assert_allclose(list(model.weights_.values()), minimum(Z, left.queries), atol=2e-5)


def test_a_query_that_a_member_may_not_judge_takes_no_part():
    """The second member failed on the bag that left the last query out."""
    rng = np.random.default_rng(0)
    queries = Queries.from_sizes(rng.integers(0, 3, 80), [8] * 10)
    Z = queries.labels[:, np.newaxis] + rng.normal(size=(80, 2))
    out = np.ones((2, 10))
    out[0, 9] = out[1, 0] = 0
    judged = [queries.with_weight(weight) for weight in out]
    kept = [np.repeat(weight, 8) for weight in out]
    trained = [
        Trained("a (bag 0)", "a", 0, None, 2.0, kept[0] * Z[:, 0]),
        Trained("a (bag 1)", "a", 1, None, 3.0, kept[1] * Z[:, 0]),
        Trained("b (bag 0)", "b", 0, None, 1.0, kept[0] * Z[:, 1]),
    ]
    mean = (kept[0] / 2 + kept[1] / 3) / (kept[0] + kept[1]) * Z[:, 0]
    first = Queries.from_sizes(queries.labels[:72], queries.sizes[:9])
    expected = minimum(np.column_stack([mean, Z[:, 1]])[:72], first)
    np.testing.assert_allclose(list(fit_to_scores(trained, judged).values()), expected, atol=2e-5)
    assert 0.05 < expected[0] < 0.95
