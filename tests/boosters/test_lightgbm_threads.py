"""LightGBM's number of threads is one of the whole process: see `boostlist.boosters.lightgbm_threads`."""

import lightgbm as lgb
import pytest

from boostlist import EnsembleRanker, TreeRanker
from boostlist.datasets import make_ranking

DATA = make_ranking(12, docs=8, n_features=10, seed=1)


@pytest.fixture
def asked(monkeypatch):
    """Threads that boosters were asked to predict with."""
    numbers = []
    predict = lgb.Booster.predict

    def recorded(self, *args, **options):
        numbers.append(options["num_threads"])
        return predict(self, *args, **options)

    monkeypatch.setattr(lgb.Booster, "predict", recorded)
    return numbers


def fitted(callbacks=(), **parameters):
    ranker = TreeRanker(n_estimators=2, num_leaves=4, **parameters)
    return ranker.fit(DATA.X, DATA.y, DATA.qid, callbacks=callbacks)


@pytest.mark.parametrize("training", [{"n_jobs": 1}, {"nthread": 1}])
def test_predictions_meanwhile_take_the_threads_of_the_training(asked, training):
    others = [fitted(n_jobs=None), fitted(n_jobs=2)]
    trained = fitted([lambda _: [other.predict(DATA.X) for other in others]], **training)
    assert asked == [1] * 4
    trained.set_params(n_jobs=3).predict(DATA.X)
    others[0].predict(DATA.X)
    assert asked[4:] == [3, 0]


def test_a_training_meanwhile_takes_the_threads_of_the_first():
    inner = []

    def train(_):
        inner.append(fitted(n_jobs=2).booster_.params["num_threads"])

    outer = fitted([train], n_jobs=1)
    assert inner == [outer.booster_.params["num_threads"]] * 2 == [1, 1]


def test_members_of_an_ensemble_predict_with_the_threads_they_train_with(asked):
    members = [TreeRanker(loss, n_estimators=2, num_leaves=4) for loss in ("cs_listmle", "listmle")]
    EnsembleRanker(members, n_jobs=4).fit(DATA.X, DATA.y, DATA.qid)
    assert asked == [2, 2]
