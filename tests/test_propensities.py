"""Clicks by inverse propensity: unbiased under every loss, in trees and linear models; propensities from logs."""

from __future__ import annotations

from itertools import product

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from boostlist import KernelRanker, LinearRanker, Queries, TreeRanker
from boostlist.boosters import PositionBias, position_bias
from boostlist.boosters.logged import Gathered
from boostlist.boosters.position_bias import Debiased
from boostlist.datasets import estimate_propensities, make_ranking, simulate_clicks
from boostlist.losses import CsListMLE, ListMLE, PairwiseLogistic, registry
from boostlist.objectives import with_propensity
from boostlist.positions import Positions
from boostlist.propensities import by_click

SEEN, RELEVANCE = np.array([0.9, 0.5, 0.3]), np.array([0.2, 0.8, 0.5])
F = np.array([0.3, -0.4, 0.6])


def loss_and_gradient(loss, clicks, propensity):
    """Return value and gradient of the loss of one list of clicks."""
    if not any(clicks):
        return np.zeros(4)
    queries, rows = by_click(Queries.from_sizes(clicks, [3]), propensity)
    value, gradient = loss.bind(queries).value_gradient(F[rows])
    return np.array([value, *np.bincount(rows, gradient, 3)])


@pytest.mark.parametrize("name", registry)
def test_unbiased(name):
    """The mean over everything that may be seen and clicked on is the loss under the true relevance."""
    loss = registry[name]()
    mean = np.zeros(4)
    for clicks in product((0, 1), repeat=3):
        rate = SEEN * RELEVANCE
        chance = np.prod(np.where(clicks, rate, 1 - rate))
        mean += chance * loss_and_gradient(loss, clicks, SEEN)
    np.testing.assert_allclose(mean, loss_and_gradient(loss, RELEVANCE, np.ones(3)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", registry)
def test_relevance_decides_on_the_order(name):
    slope = loss_and_gradient(registry[name](), RELEVANCE, np.ones(3))[1:]
    queries, rows = by_click(Queries.from_sizes(RELEVANCE, [3]), np.ones(3))
    flat = np.bincount(rows, registry[name]().bind(queries).value_gradient(np.zeros(len(rows)))[1])
    assert np.isfinite(slope).all()
    assert np.argsort(flat).tolist() == np.argsort(-RELEVANCE).tolist()


def test_softmax_and_pairs_by_hand():
    queries, rows = by_click(Queries.from_sizes([0, 2, 1], [3], [3.0]), [0.5, 0.5, 0.001], clip=0.1)
    weight = 3.0 * np.array([2 / 0.5, 1 / 0.1])  # of the second and of the third document
    softmax = -np.log(np.exp(F) / np.exp(F).sum())
    assert ListMLE(ties="order").bind(queries).value(F[rows]) >= weight @ softmax[1:] - 1e-12  # further stages beside
    pairs = [sum(np.log1p(np.exp(F[j] - F[i])) for j in range(3) if j != i) for i in range(3)]
    found = PairwiseLogistic(weights="uniform", normalize=None).bind(queries).value(F[rows])
    assert found == pytest.approx(weight @ pairs[1:])


@pytest.fixture(scope="module")
def log():
    data = make_ranking(40, docs=8, n_features=10, seed=1)
    return simulate_clicks(data, data.X[:, 0], sessions=200, top=5, random_share=0.3)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees_are_those_of_lists_with_one_click(log, backend):
    data, X = log.data, np.clip(np.round(log.data.X), -3, 3)  # bins that do not depend on how often a row occurs
    settings = {"backend": backend, "n_estimators": 3, "extra_trees": False, "n_jobs": 1, "min_child_weight": 1.0}
    model = TreeRanker(CsListMLE().objective(1.0), **settings)
    model.fit(X, data.y, data.qid, propensity=log.propensity, propensity_clip=0.3)
    queries, rows = by_click(data.queries, log.propensity, 0.3)
    assert np.isclose(queries.weight.max(), 1 / 0.3)
    spread = TreeRanker(CsListMLE().objective(1.0), **settings)
    spread.fit(X[rows], queries.labels, group=queries.sizes, sample_weight=queries.weight)
    np.testing.assert_allclose(model.predict(X), spread.predict(X), rtol=1e-4, atol=1e-4)


def test_true_propensities_leave_no_bias():
    source = make_ranking(100, docs=8, n_features=10, seed=1)
    log = simulate_clicks(source, sessions=3000, top=5)
    data = log.data
    settings = {"n_estimators": 20, "learning_rate": 0.2, "n_jobs": 1, "random_state": 0}
    naive = TreeRanker("cs_listmle", **settings).fit(data.X, data.y, data.qid, position=data.position)
    freed = TreeRanker("cs_listmle", **settings)
    freed.fit(data.X, data.y, data.qid, position=data.position, propensity=log.propensity)
    assert np.ptp(freed.position_bias_) < 0.5 * np.ptp(naive.position_bias_)


def test_lgb_train_with_positions(log):
    data = log.data
    params = {"verbose": -1, "num_leaves": 4, "num_threads": 1, "learning_rate": 0.1}
    train = data.lgb_dataset()
    objective = with_propensity(CsListMLE(), log.propensity)
    booster = lgb.train({**params, "objective": objective}, train, 3)
    queries, rows = by_click(data.queries, log.propensity)
    gathered = Gathered(CsListMLE().objective().bind(queries), rows)
    debiased = Debiased(gathered, Positions.of(data.position, len(data)), PositionBias())
    expected = lgb.train({**params, "objective": lambda scores, _: debiased(scores)}, data.lgb_dataset(), 3)
    np.testing.assert_allclose(booster.predict(data.X), expected.predict(data.X), rtol=1e-5)
    np.testing.assert_allclose(position_bias(train), debiased.path[-1], rtol=1e-6)
    assert np.abs(debiased.path[-1]).max() > 0.01


def test_lgb_train(log):
    data = log.data
    params = {"verbose": -1, "num_leaves": 4, "num_threads": 1, "learning_rate": 0.1}
    objective = with_propensity(CsListMLE(), log.propensity, clip=0.2)
    booster = lgb.train({**params, "objective": objective}, data.lgb_dataset(position=None), 3)
    queries, rows = by_click(data.queries, log.propensity, 0.2)
    bound = CsListMLE().objective().bind(queries)

    def by_hand(scores, _):
        return [np.bincount(rows, each, len(scores)) for each in bound(scores[rows])]

    expected = lgb.train({**params, "objective": by_hand}, data.lgb_dataset(position=None), 3)
    np.testing.assert_allclose(booster.predict(data.X), expected.predict(data.X), rtol=1e-5)
    again = lgb.train({**params, "objective": objective}, data.lgb_dataset(position=None), 3)
    np.testing.assert_array_equal(booster.predict(data.X), again.predict(data.X))
    trees = xgb.train({"nthread": 1}, data.xgb_dmatrix(), 3, obj=objective)
    assert trees.num_boosted_rounds() == 3
    other = lgb.train(
        {**params, "objective": with_propensity(CsListMLE(), log.propensity, clip=0.9)}, data.lgb_dataset(), 3
    )
    assert np.abs(other.predict(data.X) - booster.predict(data.X)).max() > 1e-3
    with pytest.raises(ValueError, match="propensity has 3 entries"):
        lgb.train({**params, "objective": with_propensity(CsListMLE(), [1, 1, 1])}, data.lgb_dataset(), 1)


@pytest.mark.parametrize("model", [LinearRanker("cs_listmle"), KernelRanker("listnet", n_landmarks=20, random_state=0)])
def test_parametric_models(log, model):
    data = log.data
    model.fit(data.X, data.y, data.qid, propensity=log.propensity)
    queries, rows = by_click(data.queries, log.propensity)
    scores = model.predict(data.X[rows])
    model.fit(data.X[rows], queries.labels, group=queries.sizes, sample_weight=queries.weight)
    np.testing.assert_allclose(scores, model.predict(data.X[rows]), rtol=1e-6)


@pytest.mark.parametrize(
    ("propensity", "message"),
    [
        ([0.5, 0.5], "propensity has 2 entries but there are 3 documents"),
        ([-0.1, 0.5, 1.0], r"propensity\[0\] is -0.1; propensities are probabilities"),
        ([np.nan, 0.5, 1.0], r"propensity\[0\] is nan"),
        ([0.2, 1.5, 1.0], r"propensity\[1\] is 1.5"),
        ([0.2, 0.0, 1.0], "row 1 was clicked on, but its propensity is 0"),
    ],
)
def test_refused(propensity, message):
    X = np.eye(3)
    for model in (TreeRanker("cs_listmle"), LinearRanker()):
        with pytest.raises(ValueError, match=message):
            model.fit(X, [0, 1, 0], group=[3], propensity=propensity)


def test_refused_further():
    with pytest.raises(ValueError, match="no document was clicked on"):
        by_click(Queries.from_sizes([0, 0], [2]), [1, 1])
    with pytest.raises(ValueError, match="propensity_clip must be above 0"):
        by_click(Queries.from_sizes([0, 1], [2]), [1, 1], 0.0)
    with pytest.raises(ValueError, match="lambdarank is the host's own"):
        TreeRanker("lambdarank").fit(np.eye(3), [0, 1, 0], group=[3], propensity=[1, 1, 1])
    assert by_click(Queries.from_sizes([0, 1], [2]), [0.0, 1.0]).rows.tolist() == [0, 1]  # 0 without a click is fine


class TestEstimatePropensities:
    def test_ratio_of_click_rates(self):
        clicks = [1, 1, 1, 0, 1, 0, 0, 0]
        found = estimate_propensities(clicks, ["top"] * 4 + ["side"] * 4, [7] * 8)
        assert found["top"] == 1
        assert found["side"] == pytest.approx((1 / 4) / (3 / 4))

    @pytest.mark.parametrize("eta", [0.5, 1.0])
    def test_finds_what_was_simulated(self, eta):
        """Logs of a good ranker, whose click rates fall much faster than attention does, with few random lists."""
        data = make_ranking(30, docs=10, seed=2)
        log = simulate_clicks(data, data.y, sessions=30_000, eta=eta, top=5, random_share=0.2)
        found = estimate_propensities(log.data.y, log.data.position, log.document)
        np.testing.assert_allclose(found, np.arange(1, 6.0) ** -eta, rtol=0.1)
        rates = pd.Series(log.data.y).groupby(log.data.position).mean()
        assert rates[5] / rates[1] < 0.6 * found[5]

    def test_documents_of_queries_as_columns(self):
        frame = pd.DataFrame({"query": [1, 1, 2, 2], "document": ["a", "a", "a", "a"]})
        clicks, position = [4, 1, 6, 3], [1, 2, 1, 2]
        # Clicks of each document in proportion to p: 14 fall as 10 : 4.
        assert estimate_propensities(clicks, position, frame)[2] == pytest.approx(0.4)

    def test_positions_that_cannot_be_compared(self):
        with pytest.raises(ValueError, match="positions 1 and 2 cannot be compared"):
            estimate_propensities([1, 1], [1, 2], ["a", "b"])
        with pytest.raises(ValueError, match="cannot be compared"):
            estimate_propensities([1, 0], [1, 2], ["a", "a"])
        with pytest.raises(ValueError, match="clicks must be finite"):
            estimate_propensities([-1, 0], [1, 2], ["a", "a"])
