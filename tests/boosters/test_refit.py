"""Leaf values on other data, and scores to start from."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import boostlist
from boostlist import TreeRanker, metrics
from boostlist.boosters import refitting
from boostlist.losses import CsListMLE, PairwiseLogistic, Pointwise
from tests.boosters.rankers import TEST, TRAIN, both_hosts, fitted, ranker

SQUARED = Pointwise(targets="linear").objective(scale=1.0)
PLAIN = {"pointwise": 0, "min_child_weight": 5.0, "reg_lambda": 0.5}


@pytest.mark.skipif(
    tuple(map(int, lgb.__version__.split(".")[:2])) < (4, 7),
    reason="LightGBM's own refit answers otherwise, even on one tree",
)
@pytest.mark.parametrize("decay", [0.0, 0.7])
def test_refit_is_that_of_lightgbm_where_it_has_one(decay):
    # Squared error is an objective of both. More rounds than are looked at at once.
    model = fitted(objective=SQUARED, **PLAIN, n_estimators=60, learning_rate=0.1, reg_alpha=0.3)
    theirs = lgb.Booster(
        model_str=model.booster_.model_to_string().replace("[objective: custom]", "[objective: regression]")
    )
    weight = np.random.default_rng(0).uniform(0.5, 2, TEST.n_documents)
    expected = theirs.refit(
        TEST.X, TEST.y, decay_rate=decay, weight=weight,
        objective="regression", boost_from_average=False, lambda_l2=0.5, lambda_l1=0.3, verbose=-1,
    )  # fmt: skip
    again = model.refit(TEST.X, TEST.y, TEST.qid, decay_rate=decay, sample_weight=weight)
    np.testing.assert_allclose(again.predict(TRAIN.X), expected.predict(TRAIN.X), rtol=1e-5, atol=1e-6)
    assert not np.allclose(again.predict(TRAIN.X), model.predict(TRAIN.X), atol=1e-2)


@pytest.mark.parametrize("params", [{}, {"num_parallel_tree": 2, "subsample": 0.7}])
@pytest.mark.parametrize("at_once", [5, 50])
def test_without_decay_refit_is_xgboosts_refresh(params, at_once, monkeypatch):
    monkeypatch.setattr(refitting, "_ROUNDS_AT_ONCE", at_once)
    model = fitted("xgboost", CsListMLE(), **PLAIN, **params)
    refresh = {"process_type": "update", "updater": "refresh", "min_child_weight": 0, "base_score": 0.0}
    updated = xgb.train(
        {"eta": 0.2, "lambda": 0.5, **refresh, **{k: v for k, v in params.items() if k != "subsample"}},
        xgb.DMatrix(TEST.X, TEST.y, group=TEST.queries.sizes), 12, obj=model.objective_, xgb_model=model.booster_,
    )  # fmt: skip
    again = model.refit(TEST.X, TEST.y, TEST.qid, decay_rate=0)
    expected = updated.predict(xgb.DMatrix(TRAIN.X), output_margin=True)
    np.testing.assert_allclose(again.predict(TRAIN.X), expected, rtol=1e-4, atol=1e-5)


@both_hosts
def test_refit_fits_the_new_data_and_leaves_the_model_alone(backend, tmp_path):
    model = fitted(backend, PairwiseLogistic())
    before = model.predict(TEST.X)
    np.testing.assert_allclose(model.refit(TEST.X, TEST.y, TEST.qid, decay_rate=1).predict(TEST.X), before, atol=1e-6)
    again = model.refit(TEST.X, 4 - TEST.y, TEST.qid, decay_rate=0)
    loss = PairwiseLogistic().bind(boostlist.Queries.from_qid(4 - TEST.y, TEST.qid))
    assert loss.value(again.predict(TEST.X)) < 0.9 * loss.value(np.zeros(TEST.n_documents))
    np.testing.assert_array_equal(model.predict(TEST.X), before)
    assert again.n_estimators_ == model.n_estimators_
    loaded = boostlist.load(again.save(tmp_path / "m.json"))
    np.testing.assert_array_equal(loaded.predict(TEST.X), again.predict(TEST.X))
    # A model from a file knows the parameters that leaves depend on.
    stored = boostlist.load(model.save(tmp_path / "m.json")).refit(TEST.X, 4 - TEST.y, TEST.qid, decay_rate=0)
    np.testing.assert_array_equal(stored.predict(TEST.X), again.predict(TEST.X))


def test_refit_with_known_biases_of_positions():
    position = np.arange(TRAIN.n_documents) % 5
    model = ranker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, position=position)
    assert np.ptp(model.position_bias_) > 0
    bias = model.position_bias_.to_numpy()[position]
    plain = model.refit(TRAIN.X, TRAIN.y, TRAIN.qid)
    debiased = model.refit(TRAIN.X, TRAIN.y, TRAIN.qid, position=position)
    # A start at the biases is the same, were it not part of the scores that trees add to.
    started = model.refit(TRAIN.X, TRAIN.y, TRAIN.qid, init_score=bias)
    np.testing.assert_allclose(debiased.predict(TRAIN.X), started.predict(TRAIN.X), atol=1e-12)
    assert not np.allclose(plain.predict(TRAIN.X), debiased.predict(TRAIN.X))
    with pytest.raises(ValueError, match="trained without positions"):
        fitted().refit(TRAIN.X, TRAIN.y, TRAIN.qid, position=position)


def test_refit_with_propensities_is_that_of_a_list_a_click():
    clicks = (TEST.y > 2).astype(float)
    propensity = 1 / (1 + np.arange(TEST.n_documents) % 4)
    model = fitted()
    rows, labels, qid, weight = [], [], [], []
    for i in np.flatnonzero(clicks):
        own = np.flatnonzero(TEST.qid == TEST.qid[i])
        rows += own.tolist()
        labels += (own == i).tolist()
        qid += [i] * len(own)
        weight.append(1 / max(propensity[i], 0.3))
    expected = model.refit(TEST.X[rows], np.array(labels, float), np.array(qid), sample_weight=np.array(weight))
    found = model.refit(TEST.X, clicks, TEST.qid, propensity=propensity, propensity_clip=0.3)
    np.testing.assert_allclose(found.predict(TEST.X), expected.predict(TEST.X), rtol=1e-5, atol=1e-7)
    assert not np.allclose(found.predict(TEST.X), model.refit(TEST.X, clicks, TEST.qid).predict(TEST.X))
    with pytest.raises(ValueError, match="propensity has 3 entries"):
        model.refit(TEST.X, clicks, TEST.qid, propensity=[1, 1, 1])


def test_what_cannot_be_refitted():
    with pytest.raises(ValueError, match=r"not for lambdarank of lightgbm.*booster_\.refit"):
        fitted(objective="lambdarank").refit(TEST.X, TEST.y, TEST.qid)
    with pytest.raises(ValueError, match=r"decay_rate must lie between 0 and 1, got 1\.5"):
        fitted().refit(TEST.X, TEST.y, TEST.qid, decay_rate=1.5)
    with pytest.raises(ValueError, match="linear_tree and random forests cannot be refitted"):
        fitted(linear_tree=True).refit(TEST.X, TEST.y, TEST.qid)
    with pytest.raises(ValueError, match='only booster="gbtree" can be refitted'):
        fitted("xgboost", booster="dart").refit(TEST.X, TEST.y, TEST.qid)


@both_hosts
@pytest.mark.parametrize("batch_rows", [None, 500])
def test_trees_add_to_the_scores_that_are_given(backend, batch_rows):
    base = fitted(backend)
    X = TRAIN.X.astype(np.float32) if batch_rows is None else np.ascontiguousarray(TRAIN.X)
    train, test = base.predict(TRAIN.X), base.predict(TEST.X)
    entry = (TEST.X, TEST.y, TEST.qid, None, test)
    model = ranker(backend, n_estimators=5).fit(
        X, TRAIN.y, TRAIN.qid, init_score=train, eval_set=[entry], batch_rows=batch_rows
    )
    # The same trees as those that go on from the other model, but without it.
    continued = ranker(backend, n_estimators=5).fit(X, TRAIN.y, TRAIN.qid, init_model=base)
    np.testing.assert_allclose(model.predict(TEST.X) + test, continued.predict(TEST.X), atol=1e-4)
    expected = metrics.NDCG(10).mean(model.predict(TEST.X) + test, TEST.queries)
    assert model.evals_result_["valid_0"]["ndcg@10"][-1] == pytest.approx(expected, abs=1e-5)


@both_hosts
def test_evaluation_on_the_training_data_with_other_scores_to_start_from(backend):
    start = np.random.default_rng(0).normal(size=TRAIN.n_documents)
    weight = np.arange(TRAIN.n_queries) % 2.0
    for begin in (None, start):
        model = ranker(backend, n_estimators=2).fit(
            TRAIN.X, TRAIN.y, TRAIN.qid, init_score=start,
            eval_set=[(TRAIN.X, TRAIN.y, TRAIN.qid, weight, begin)],
        )  # fmt: skip
        f = model.predict(TRAIN.X) + (0 if begin is None else start)
        expected = metrics.NDCG(10).mean(f, TRAIN.queries.with_weight(weight))
        assert model.evals_result_["valid_0"]["ndcg@10"][-1] == pytest.approx(expected, abs=1e-5)


def test_wrong_scores_to_start_from():
    start = np.zeros(TRAIN.n_documents)
    for given, message in (
        (start[1:], "init_score has 1,221 entries; give one for each of the 1,222 rows"),
        (np.where(np.arange(len(start)) == 3, np.inf, start), r"init_score\[3\] is inf"),
    ):
        with pytest.raises(ValueError, match=message):
            ranker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, init_score=given)
    with pytest.raises(ValueError, match="init_model and init_score both say where to start"):
        TreeRanker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, init_score=start, init_model=fitted())
