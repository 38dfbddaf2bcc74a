"""Ensembles on logs of clicks: positions and propensities reach every member."""

from __future__ import annotations

import warnings

import lightgbm as lgb
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boostlist import BilinearRanker, EnsembleRanker, LinearRanker, TreeRanker, load
from boostlist.datasets import simulate_clicks
from tests.ensemble.data import TRAIN, tree

LOG = simulate_clicks(TRAIN, TRAIN.y, sessions=400, top=5, seed=1)  # whose ranker knew the grades
DATA = LOG.data
MEMBERS = [("trees", tree(n_estimators=20)), ("line", make_pipeline(StandardScaler(), LinearRanker("listmle")))]
PAGE = np.array(["top", "middle", "low"])[(DATA.position - 1) // 2]
BETTER = "the ranker that made this log was as good"


def fit(members, **options):
    return EnsembleRanker(members, n_jobs=1).fit(DATA.X, DATA.y, DATA.qid, **options)


@pytest.mark.filterwarnings(f"ignore:{BETTER}")
def test_members_have_biases_and_the_ensemble_their_sum(tmp_path):
    model = fit(MEMBERS, position=PAGE)
    line = make_pipeline(StandardScaler(), LinearRanker("listmle"))
    line.fit(DATA.X, DATA.y, linearranker__qid=DATA.qid, linearranker__position=PAGE)
    alone = [tree(n_estimators=20).fit(DATA.X, DATA.y, DATA.qid, position=PAGE), line[-1]]
    expected = sum(part.factor * one.position_bias_ for part, one in zip(model.parts_, alone, strict=True))
    assert list(model.position_bias_.index) == ["low", "middle", "top"]
    np.testing.assert_allclose(model.position_bias_, expected, rtol=1e-6)
    np.testing.assert_allclose(load(model.save(tmp_path / "e.boostlist")).position_bias_, expected, rtol=1e-6)
    assert fit(MEMBERS).position_bias_ is None


def test_one_member_checks_the_log():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        EnsembleRanker([tree(n_estimators=20), tree("cs_listmle", n_estimators=20)], n_bags=2, n_jobs=1).fit(
            DATA.X, DATA.y, DATA.qid, position=DATA.position, early_stopping_rounds=None
        )
    assert [BETTER in str(each.message) for each in caught] == [True]


def test_propensities():
    model = fit([tree(), tree("cs_listmle")], propensity=LOG.propensity, propensity_clip=0.4)
    alone = tree("cs_listmle").fit(DATA.X, DATA.y, DATA.qid, propensity=LOG.propensity, propensity_clip=0.4)
    np.testing.assert_array_equal(model.parts_[1].estimator.predict(DATA.X), alone.predict(DATA.X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position": DATA.position[1:]}, r"^position has [0-9,]+ entries but there are"),
        ({"propensity": -LOG.propensity}, r"^propensity\[0\] is -1.0; propensities are probabilities"),
        ({"propensity": np.where(DATA.y > 0, 0, 1)}, "was clicked on, but its propensity is 0"),
        ({"propensity": LOG.propensity[:5]}, "^propensity has 5 entries"),
        ({"propensity": LOG.propensity, "propensity_clip": 0}, "^propensity_clip must be above 0"),
    ],
)
def test_bad_input_is_refused_before_any_training(options, message):
    with pytest.raises(ValueError, match=message):
        fit(MEMBERS, **options)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (lgb.LGBMRanker(), r"member 'other': fit of LGBMRanker takes no qid"),
        (BilinearRanker(n_query_features=2), "member 'other' failed: BilinearRanker takes no positions"),
        (TreeRanker("rank:ndcg", backend="xgboost"), "member 'other' failed: XGBoost's rank:ndcg takes no positions"),
    ],
)
def test_members_that_refuse_positions_are_named(member, message):
    with pytest.raises(ValueError, match=message):
        fit([("other", member)], position=DATA.position)


def test_members_whose_fit_takes_none_are_named():
    class Plain(LinearRanker):
        def fit(self, X, y, qid=None):
            raise AssertionError

    with pytest.raises(ValueError, match="member 'plain': fit of Plain takes no position; leave out position= or"):
        fit([("plain", Plain())], position=DATA.position)
