"""What would train something else than was meant is refused, and warnings point at the user's line."""

from __future__ import annotations

import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

from boostlist import TreeRanker, metrics
from boostlist.boosters import Objective
from boostlist.losses import CsListMLE, ListMLE, Pointwise
from boostlist.losses.base import BoundLoss, Loss, Traits
from boostlist.model_selection import QueryKFold
from tests.boosters.rankers import TRAIN, both_hosts, frame, ranker


def lightgbm_data(**more):
    return lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.queries.sizes, params={"verbose": -1}, **more)


def xgboost_data():
    return xgb.DMatrix(TRAIN.X, TRAIN.y, group=TRAIN.queries.sizes)


@pytest.mark.parametrize("value", [True, "true", "+"])
def test_bagging_by_query(value):
    params = {"objective": ListMLE(), "bagging_by_query": value, "bagging_fraction": 0.5, "bagging_freq": 1}
    with pytest.raises(ValueError, match=r"bagging_by_query .* subsample_queries="):
        lgb.train({**params, "verbose": -1}, lightgbm_data(), 2)
    with pytest.raises(ValueError, match=r"bagging_by_query .* subsample_queries="):
        ranker(subsample=0.5, bagging_by_query=value).fit(TRAIN.X, TRAIN.y, TRAIN.qid)


def test_bagging_by_query_is_for_objectives_of_lightgbm():
    model = ranker(objective="lambdarank", subsample=0.5, bagging_by_query=True).fit(TRAIN.X, TRAIN.y, TRAIN.qid)
    assert model.n_estimators_ == 12
    ranker(bagging_by_query=False).fit(TRAIN.X, TRAIN.y, TRAIN.qid)


@both_hosts
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_features_in_a_frame(backend, value):
    X = frame(TRAIN)
    X.loc[7, TRAIN.names[2]] = value
    X["kind"] = pd.Categorical(np.where(TRAIN.y > 1, "a", "b"))
    X["whole"] = pd.array(np.arange(len(X)) % 5, "Int64")
    with pytest.raises(ValueError, match=rf"X is {value} in row 7, feature '{TRAIN.names[2]}'"):
        ranker(backend).fit(X, TRAIN.y)
    X.loc[7, TRAIN.names[2]] = np.nan
    model = ranker(backend).fit(X, TRAIN.y)
    nullable = X.astype({TRAIN.names[1]: "Float64"})
    nullable.loc[3, TRAIN.names[1]] = value
    with pytest.raises(ValueError, match=rf"row 3, feature '{TRAIN.names[1]}'"):
        model.predict(nullable)


def test_the_class_instead_of_the_loss():
    message = r"write CsListMLE\(\)"
    with pytest.raises(TypeError, match=message):
        lgb.train({"objective": CsListMLE, "verbose": -1}, lightgbm_data(), 1)
    with pytest.raises(TypeError, match=message):
        xgb.train({}, xgboost_data(), 1, obj=CsListMLE)
    with pytest.raises(TypeError, match=message):
        TreeRanker(CsListMLE).fit(TRAIN.X, TRAIN.y, TRAIN.qid)


@both_hosts
def test_weights_that_are_all_0(backend):
    with pytest.raises(ValueError, match="sample_weight is 0 everywhere"):
        ranker(backend).fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=np.zeros(TRAIN.n_queries))
    params = {"objective": ListMLE(), "verbose": -1}
    with pytest.raises(ValueError, match="all weights are 0"):
        lgb.train(params, lightgbm_data(weight=np.zeros(TRAIN.n_documents)), 1)
    dmatrix = xgboost_data()
    dmatrix.set_weight(np.zeros(TRAIN.n_queries))
    with pytest.raises(ValueError, match="all weights are 0"):
        xgb.train({}, dmatrix, 1, obj=ListMLE())


def test_lgb_cv_that_cuts_queries():
    params = {"objective": ListMLE(), "verbose": -1, "metric": "None"}
    with pytest.raises(ValueError, match=r"documents of query \d+, .* folds=boostlist.model_selection.QueryKFold\(5\)"):
        lgb.cv(params, lightgbm_data(), 2, nfold=3, stratified=False)
    by_rows = lgb.cv
    with pytest.raises(ValueError, match=r"QueryKFold\(5\)"):
        by_rows(
            {"verbose": -1, "metric": "None"}, lightgbm_data(), 2, nfold=3, feval=metrics.NDCG(10), stratified=False
        )
    folds = QueryKFold(3).split(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    result = lgb.cv(params, lightgbm_data(), 5, folds=folds, feval=metrics.NDCG(10))
    assert len(result["valid ndcg@10-mean"]) == 5


def test_warnings_point_at_the_users_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xgb.train({"base_score": 0.5}, xgboost_data(), 1, obj=Pointwise())
    (warning,) = [w for w in caught if "base_score" in str(w.message)]
    assert warning.filename == __file__


class KeepsItsArrays(Loss):
    """A loss whose gradient and diagonal are the same arrays at every call."""

    traits = Traits(diag="exact")

    def bind(self, queries):
        return _Kept(self, queries)


class _Kept(BoundLoss):
    def __init__(self, loss, queries):
        super().__init__(loss, queries)
        self.arrays = np.zeros(queries.n_queries), np.full(queries.n_documents, -1.0), np.full(queries.n_documents, 2.0)

    def evaluate(self, f, need):
        return self.arrays


@pytest.mark.parametrize("loss", [KeepsItsArrays(), KeepsItsArrays() + 0.5 * KeepsItsArrays()])
def test_arrays_of_a_loss_are_never_written_to(loss):
    weight = 1.0 + np.arange(TRAIN.n_documents) % 3
    weight[TRAIN.queries.start[3] : TRAIN.queries.start[4]] = 0
    objective = loss.objective(scale=2.0, step=0.1, subsample_queries=0.5).bind(TRAIN.queries, weight)
    first = objective(np.zeros(TRAIN.n_documents))
    for _ in range(3):
        np.testing.assert_array_equal(objective(np.zeros(TRAIN.n_documents)), first)


def test_a_loss_is_what_an_objective_takes():
    with pytest.raises(TypeError, match="loss must be a loss of boostlist, got 'listmle'"):
        Objective(loss="listmle")
