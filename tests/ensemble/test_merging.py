"""Merged ensembles, loaded and served by the hosts themselves."""

from __future__ import annotations

import subprocess
import sys

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boostlist import EnsembleRanker, LinearRanker
from tests.ensemble.data import DATA, TEST, TRAIN, deviation_within, fitted, tree

KINDS = pd.Categorical(np.array(["a", "b", "c", "d", "e"])[np.random.default_rng(0).integers(0, 5, DATA.n_documents)])
FRAME = pd.DataFrame(np.asarray(DATA.X)).rename(columns="f{}".format).assign(kind=KINDS)
# The label decides in part on the category, so that trees split on it.
LABEL = np.where(KINDS.codes == 2, 3.0, DATA.y)

LIGHTGBM = [
    tree(),
    tree("cs_listmle", num_leaves=15, boosting="dart", drop_rate=0.5, skip_drop=0.0),
    tree("lambdarank"),
    tree("regression", boosting="rf", bagging_fraction=0.6, bagging_freq=1),
    tree(linear_tree=True, n_estimators=4),
    tree(n_estimators=3, min_child_weight=1e9),
]
XGBOOST = [
    tree(backend="xgboost"),
    tree("cs_listmle", num_leaves=15, booster="dart", rate_drop=0.5, one_drop=True, backend="xgboost"),
    tree("rank:ndcg", backend="xgboost"),
    tree(base_score=0.5, num_parallel_tree=2, subsample=0.7, n_estimators=4, backend="xgboost"),
]


def test_lightgbm_reads_the_merged_file(tmp_path):
    with pytest.warns(UserWarning, match="'listmle-3' gives the documents"):
        model = EnsembleRanker(LIGHTGBM, weights=[1, 2, 3, 1, 2, 1]).fit(FRAME, LABEL, DATA.qid)
    assert model.weights_["listmle-3"] == 0  # trees of one leaf have no spread
    model.merged().save_model(tmp_path / "merged.txt")
    booster = lgb.Booster(model_file=tmp_path / "merged.txt")
    assert booster.num_trees() == 8 * 4 + 4
    scores = model.predict(FRAME)
    np.testing.assert_allclose(booster.predict(FRAME), scores, atol=1e-12)
    assert booster.feature_importance()[-1] > 0
    assert "num_cat=1" in booster.model_to_string()
    # Categories in another order are still the same categories.
    other = FRAME.assign(kind=FRAME.kind.cat.reorder_categories(list("edcba")))
    np.testing.assert_allclose(booster.predict(other), scores, atol=1e-12)


def test_shrinkage_is_scaled_with_the_leaves():
    def shrinkages(booster):
        return np.array([each["shrinkage"] for each in booster.dump_model()["tree_info"]])

    model = fitted([tree(), tree("cs_listmle", learning_rate=0.3)])
    expected = [part.factor * shrinkages(part.estimator.booster_) for part in model.parts_]
    np.testing.assert_allclose(shrinkages(model.merged()), np.concatenate(expected), rtol=1e-5)


def test_contributions_of_a_merged_booster():
    model = fitted([tree(), tree("cs_listmle")])
    contributions = model.merged().predict(np.asarray(TEST.X), pred_contrib=True)
    np.testing.assert_allclose(contributions, model.predict(TEST.X, pred_contrib=True), atol=1e-10)


def test_xgboost_reads_the_merged_file(tmp_path):
    model = EnsembleRanker(XGBOOST, weights=[1, 2, 3, 2]).fit(FRAME, LABEL, DATA.qid)
    for name in ("merged.json", "merged.ubj"):
        model.merged().save_model(tmp_path / name)
        booster = xgb.Booster(model_file=tmp_path / name)
        assert booster.num_boosted_rounds() == 8 * 3 + 2 * 4
        scores = model.predict(FRAME)
        error = booster.predict(xgb.DMatrix(FRAME, enable_categorical=True)) - scores
        size = deviation_within(scores, DATA)
        assert np.sqrt(np.mean(error**2)) < 1e-6 * size
        assert np.abs(error).max() < 1e-5 * size
    rounds = booster.predict(xgb.DMatrix(FRAME, enable_categorical=True), iteration_range=(0, 8))
    assert np.abs(rounds - scores).max() > 0.1 * size


def test_a_merged_file_serves_without_boostlist(tmp_path):
    model = fitted([tree(), tree("cs_listmle")], n_bags=2)
    model.merged().save_model(tmp_path / "m.txt")
    np.save(tmp_path / "X.npy", TEST.X)
    code = (
        "import sys, numpy as np, lightgbm as lgb\n"
        "np.save('s.npy', lgb.Booster(model_file='m.txt').predict(np.load('X.npy')))\n"
        "assert not any(name.startswith('boostlist') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "s.npy"), model.predict(TEST.X), atol=1e-12)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (LinearRanker(), "member 'odd' is no TreeRanker but a LinearRanker"),
        (make_pipeline(StandardScaler(), tree()), "member 'odd' is no TreeRanker but a Pipeline"),
        (tree(backend="xgboost"), "member 'odd' has trees of xgboost, but 'first' of lightgbm"),
    ],
)
def test_what_cannot_be_merged_is_named(member, message):
    with pytest.raises(ValueError, match=message):
        fitted([("first", tree()), ("odd", member)]).merged()


def test_members_that_are_no_sums_of_leaves_or_have_other_features_are_named():
    transformed = tree("count:poisson", backend="xgboost", n_estimators=2, base_score=0.5)
    with pytest.raises(ValueError, match="member 'odd' cannot be merged: its objective count:poisson transforms"):
        fitted([("first", tree(backend="xgboost")), ("odd", transformed)]).merged()
    model = fitted([("first", tree()), ("odd", tree())])
    model.parts_[1].estimator.fit(np.asarray(TRAIN.X)[:, :4], TRAIN.y, TRAIN.qid)
    with pytest.raises(ValueError, match="member 'odd' has other features than 'first'"):
        model.merged()
