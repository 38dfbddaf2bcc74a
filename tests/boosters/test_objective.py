"""Every objective trains in both hosts, at their default parameters."""

from __future__ import annotations

import pickle
import threading

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

from boostlist import Queries, metrics, objectives
from boostlist.boosters import Objective, xgboost_early_stopping
from boostlist.boosters.objective import automatic_scale
from boostlist.losses import CsListMLE, GBRank, ListMLE, registry

every_objective = pytest.mark.parametrize("name", registry)


def make_lists(n_queries, seed):
    """Lists whose grades depend on an interaction and a linear feature, with noise."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 40, n_queries)
    X = rng.normal(size=(sizes.sum(), 6))
    relevance = np.tanh(X[:, 0] * X[:, 1]) + X[:, 2] + 0.5 * rng.normal(size=len(X))
    return X, np.digitize(relevance, [0.5, 1.2, 2.0, 2.6]).astype(float), sizes


TRAIN, TEST = make_lists(200, 0), make_lists(100, 1)


def ndcg_at_10(f, y, sizes):
    """Mean NDCG@10 over the queries with a relevant document."""
    results = []
    for fq, yq in zip(np.split(f, np.cumsum(sizes)[:-1]), np.split(y, np.cumsum(sizes)[:-1]), strict=True):
        discount = 1 / np.log2(np.arange(2, 12))[: len(yq)]
        ideal = np.sort(2**yq - 1)[::-1][:10] @ discount
        if ideal > 0:
            results.append((2**yq - 1)[np.argsort(-fq, kind="stable")][:10] @ discount / ideal)
    return np.mean(results)


UNTRAINED = ndcg_at_10(np.zeros(len(TEST[1])), *TEST[1:])
# Untrained order reaches about 0.34 here and LightGBM's lambdarank about 0.90.
GOOD = 0.8


def lightgbm_data(X, y, sizes, **more):
    return lgb.Dataset(X, y, group=sizes, **more)


def xgboost_data(X, y, sizes, **more):
    dmatrix = xgb.DMatrix(X, y, **more)
    dmatrix.set_group(sizes)
    return dmatrix


def training_loss_falls(loss, f):
    _, y, sizes = TRAIN
    bound = loss.bind(Queries.from_sizes(y, sizes))
    return bound.value(f) < bound.value(np.zeros(len(y)))


def base_score(loss):
    """Parameters for XGBoost: losses that feel the level of scores want to start from 0."""
    return {} if loss.traits.shift_invariant else {"base_score": 0}


@every_objective
def test_lightgbm_at_defaults(name):
    loss = getattr(objectives, name)
    booster = lgb.train({"objective": loss, "verbose": -1}, lightgbm_data(*TRAIN), 100)
    assert UNTRAINED < 0.5
    assert ndcg_at_10(booster.predict(TEST[0]), *TEST[1:]) > GOOD
    assert training_loss_falls(loss, booster.predict(TRAIN[0], num_iteration=50))
    assert all(tree["num_leaves"] > 1 for tree in booster.dump_model()["tree_info"][:20])
    reloaded = lgb.Booster(model_str=booster.model_to_string())
    np.testing.assert_array_equal(reloaded.predict(TEST[0]), booster.predict(TEST[0]))


@every_objective
def test_xgboost_at_defaults(name):
    loss = getattr(objectives, name)
    booster = xgb.train(base_score(loss), xgboost_data(*TRAIN), 100, obj=loss)
    assert ndcg_at_10(booster.predict(xgb.DMatrix(TEST[0])), *TEST[1:]) > GOOD
    assert training_loss_falls(loss, booster.predict(xgb.DMatrix(TRAIN[0]), iteration_range=(0, 50)))
    assert sum("[" in tree for tree in booster.get_dump()[:20]) == 20


@every_objective
def test_lgbm_ranker_is_lgb_train(name):
    loss = getattr(objectives, name)
    # Left alone LightGBM takes whichever layout of its sums is quicker in a trial, with as many threads as it finds.
    same = {"num_threads": 1, "deterministic": True, "force_col_wise": True, "verbose": -1}
    ranker = lgb.LGBMRanker(objective=loss, n_estimators=10, n_jobs=1, **same).fit(TRAIN[0], TRAIN[1], group=TRAIN[2])
    booster = lgb.train({"objective": loss, **same}, lightgbm_data(*TRAIN), 10)
    np.testing.assert_array_equal(ranker.predict(TEST[0]), booster.predict(TEST[0]))
    again = pickle.loads(pickle.dumps(ranker))
    assert again.objective == loss
    np.testing.assert_array_equal(again.predict(TEST[0]), ranker.predict(TEST[0]))


def test_scale():
    _, y, sizes = TRAIN
    weight = np.random.default_rng(0).uniform(0.1, 3, len(sizes))
    loss = CsListMLE()
    _, hessian = loss(y, np.zeros(len(y)), np.repeat(weight, sizes), sizes)
    assert hessian[hessian > 1e-5].mean() == pytest.approx(1, rel=1e-5)
    bound = loss.bind(Queries.from_sizes(y, sizes, weight))
    f = np.random.default_rng(1).normal(size=len(y))
    gradient, _ = loss.objective(scale=7)(y, f, np.repeat(weight, sizes), sizes)
    np.testing.assert_allclose(gradient, 7 * bound.gradient_hessian(f)[0], rtol=1e-5, atol=1e-7)
    assert loss.objective() == Objective(loss=loss)
    for scale in (0, -1, np.nan):
        with pytest.raises(ValueError, match="scale must be"):
            loss.objective(scale=scale)


@pytest.mark.parametrize("size", [1e-60, 0.3, 1e60])
def test_scale_of_losses_of_any_size(size):
    queries = Queries.from_sizes([2, 0, 1, 0], [4])
    usual, other = (automatic_scale(loss.bind(queries)) for loss in (CsListMLE(), size * CsListMLE()))
    assert other * size == pytest.approx(usual, rel=2e-7)


def test_a_sum_is_scaled_as_a_whole():
    _, y, sizes = TRAIN
    loss = 5 * CsListMLE() + 0.1 * ListMLE()
    _, hessian = loss.objective(step=np.inf)(y, np.zeros(len(y)), None, sizes)
    assert hessian[hessian > 1e-5].mean() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_scale_changes_no_newton_step(scale):
    """Without regularisation the trees are the same whatever the scale."""
    params = {"verbose": -1, "min_sum_hessian_in_leaf": 0, "lambda_l2": 0}
    loss = ListMLE()
    one, other = (
        lgb.train({**params, "objective": loss.objective(scale=s)}, lightgbm_data(*TRAIN), 5).predict(TEST[0])
        for s in (1.0, scale)
    )
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_unit_hessian_is_least_squares_on_the_gradient():
    """A round of algorithm 1: the tree that LightGBM's own regression fits to the negative gradient."""
    X, y, sizes = TRAIN
    loss = GBRank(weights="uniform", normalize=None) + 0.5 * ListMLE()
    params = {"verbose": -1, "learning_rate": 0.1, "num_leaves": 6, "boost_from_average": False, "num_threads": 1}
    objective = loss.objective(scale=1, hessian="unit")
    target = -loss.bind(Queries.from_sizes(y, sizes)).gradient_hessian(np.zeros(len(y)))[0]
    ours = lgb.train({**params, "objective": objective}, lightgbm_data(*TRAIN), 1).predict(TEST[0])
    theirs = lgb.train({**params, "objective": "regression"}, lgb.Dataset(X, target), 1).predict(TEST[0])
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert np.ptp(ours) > 0.1


def test_unit_hessian_has_weights_a_scale_and_no_bound():
    _, y, sizes = TRAIN
    weight = np.random.default_rng(0).uniform(0.1, 3, len(sizes))
    loss, f = ListMLE(), np.random.default_rng(1).normal(size=len(y))
    gradient, hessian = loss.objective(hessian="unit")(y, f, np.repeat(weight, sizes), sizes)
    bound = loss.bind(Queries.from_sizes(y, sizes, weight))
    np.testing.assert_allclose(hessian, np.repeat(weight, sizes), rtol=1e-6)
    np.testing.assert_allclose(gradient, automatic_scale(bound) * bound.gradient_hessian(f)[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="step bounds Newton steps"):
        loss.objective(hessian="unit", step=2)
    with pytest.raises(ValueError, match="hessian must be one of 'loss', 'unit'"):
        loss.objective(hessian="exact")


def share_of_the_best(f, y):
    """Mean label of the 100 documents ranked first, over the largest it can be."""
    return y[np.argsort(-f)[:100]].mean() / np.sort(y)[-100:].mean()


def test_long_queries_and_fractional_labels():
    """20,000 documents in a query, and labels like 17.25: LightGBM's lambdarank refuses both."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_100, 4))
    y = np.round(np.exp(X[:, 0] + 0.1 * rng.normal(size=len(X))), 2)
    sizes = [20_000, 100]
    assert y.max() > 31
    for loss in (CsListMLE(gain="linear"), ListMLE(ties="order")):
        booster = lgb.train({"objective": loss, "verbose": -1}, lightgbm_data(X, y, sizes), 20)
        assert share_of_the_best(booster.predict(X), y) > 0.7
        booster = xgb.train({}, xgboost_data(X, y, sizes), 20, obj=loss)
        assert share_of_the_best(booster.predict(xgb.DMatrix(X)), y) > 0.7
    with pytest.raises(lgb.basic.LightGBMError):
        lgb.train({"objective": "lambdarank", "verbose": -1}, lightgbm_data(X, np.round(y), sizes), 1)


def test_lgb_ranker_with_long_queries_needs_no_metric():
    X = np.random.default_rng(0).normal(size=(12_000, 2))
    y = (X[:, 0] > 0).astype(int)
    ranker = lgb.LGBMRanker(objective=objectives.cs_listmle, metric="None", n_estimators=5, verbose=-1)
    assert np.corrcoef(ranker.fit(X, y, group=[12_000]).predict(X), X[:, 0])[0, 1] > 0.5


def test_xgb_cv():
    result = xgb.cv({"eval_metric": "ndcg@10"}, xgboost_data(*TRAIN), 20, nfold=3, obj=objectives.cs_listmle)
    assert len(result) == 20
    assert result["test-ndcg@10-mean"].iloc[-1] > 0.7


def test_xgb_cv_stops_early_in_the_direction_of_the_metric():
    metric = metrics.ERR(3, max_grade=4)
    stop = xgboost_early_stopping(metric, rounds=3)
    params = {"disable_default_eval_metric": True, "eta": 1.0}
    result = xgb.cv(
        params, xgboost_data(*TRAIN), 60, nfold=3, obj=objectives.cs_listmle, custom_metric=metric, callbacks=[stop],
        seed=1,
    )  # fmt: skip
    free = xgb.cv(
        params, xgboost_data(*TRAIN), 60, nfold=3, obj=objectives.cs_listmle, custom_metric=metric, seed=1,
    )["test-err@3-mean"].to_numpy()  # fmt: skip
    # The first round after which three in a row brought nothing, and the rounds up to the best one are reported.
    best = next(i for i in range(60) if free[i] >= free[: i + 4].max())
    assert len(result) == best + 1 < 57
    np.testing.assert_allclose(result["test-err@3-mean"], free[: best + 1], atol=1e-12)


def test_lgb_train_stops_early():
    valid = lightgbm_data(*TEST)
    params = {"objective": objectives.cs_listmle, "learning_rate": 0.5, "verbose": -1, "metric": "None"}
    stop, history = lgb.early_stopping(3, verbose=False), {}
    booster = lgb.train(
        params, lightgbm_data(*TRAIN), 100, valid_sets=[valid], feval=metrics.NDCG(3),
        callbacks=[stop, lgb.record_evaluation(history)],
    )  # fmt: skip
    values = history["valid_0"]["ndcg@3"]
    assert booster.best_iteration == int(np.argmax(values)) + 1
    assert len(values) == booster.best_iteration + 3 < 100


def test_two_trainings_at_once():
    expected = [
        lgb.train({"objective": loss, "verbose": -1, "num_threads": 1}, lightgbm_data(*TRAIN), 20).predict(TEST[0])
        for loss in (CsListMLE(), ListMLE())
    ]
    got = [None, None]

    def train(slot, loss):
        params = {"objective": loss, "verbose": -1, "num_threads": 1}
        got[slot] = lgb.train(params, lightgbm_data(*TRAIN), 20).predict(TEST[0])

    threads = [threading.Thread(target=train, args=item) for item in enumerate((CsListMLE(), ListMLE()))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # LightGBM's own sums may differ in the last bit when two trainings share its threads.
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_no_curvature_anywhere_still_gives_a_usable_hessian():
    """All grades equal: nothing to learn, and nothing to divide by zero."""
    gradient, hessian = CsListMLE()(np.ones(6), np.arange(6.0), None, [3, 3])
    np.testing.assert_array_equal(gradient, 0)
    np.testing.assert_array_equal(hessian, 1)


@pytest.mark.parametrize("name", registry)
def test_scores_far_apart_give_finite_gradients_and_true_steps(name):
    rng = np.random.default_rng(4)
    queries = Queries.from_sizes(rng.integers(0, 3, 120).astype(float), [1, 3, 6, 50, 60])
    bound = registry[name]().objective().bind(queries)
    for spread in (100.0, 1e4):
        f = spread * rng.normal(size=120)
        gradient, hessian = bound(f)
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()
        assert (hessian > 0).all()
        g, h = bound.bound.gradient_hessian(f)
        h = np.maximum(h, bound.least[0] * np.abs(g))
        kept = h > 1e-5 * h.mean()  # above the floor
        assert kept.any()
        np.testing.assert_allclose(gradient[kept] / hessian[kept], g[kept] / h[kept], rtol=1e-5)
