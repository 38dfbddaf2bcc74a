from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_validate

from boostlist import objectives
from boostlist.model_selection import QueryKFold


@pytest.mark.parametrize("shuffle", [False, True])
def test_queries_stay_whole(shuffle):
    rng = np.random.default_rng(0)
    qid = np.repeat(rng.permutation(23), rng.integers(1, 9, 23))
    X = np.zeros((len(qid), 2))
    splitter = QueryKFold(4, shuffle=shuffle, random_state=3 if shuffle else None)
    tested = []
    for train, test in splitter.split(X, qid=qid):
        assert not set(qid[train]) & set(qid[test])
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(qid)))
        assert len(set(qid[test])) in (5, 6)
        tested.append(test)
    np.testing.assert_array_equal(np.sort(np.concatenate(tested)), np.arange(len(qid)))
    again = [test for _, test in splitter.split(X, groups=qid)]
    assert all(np.array_equal(a, b) for a, b in zip(tested, again, strict=True))


def test_errors():
    with pytest.raises(ValueError, match="metadata routing"):
        QueryKFold(2).split(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="cannot make 3 folds of 2 queries"):
        list(QueryKFold(3).split(np.zeros((3, 1)), qid=[1, 1, 2]))
    with pytest.raises(ValueError, match="2 query ids for 3 rows"):
        QueryKFold(2).split(np.zeros((3, 1)), qid=[1, 2])
    for missing in ([1.0, 2.0, np.nan], ["a", "b", None], pd.Series([1, 2, None], dtype="Int64")):
        with pytest.raises(ValueError, match=r"qid\[2\] is missing; every row needs a query id"):
            QueryKFold(2).split(np.zeros((3, 1)), qid=missing)
    for bad in (1, 2.5):
        with pytest.raises(ValueError, match="n_splits must be a whole number of at least 2"):
            QueryKFold(bad)
    with pytest.raises(ValueError, match="shuffle"):
        QueryKFold(3, random_state=1)


class Recorder(BaseEstimator):
    """Scores by the number of queries that are in part but not in whole among the rows it is given."""

    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012
    SIZE = 3

    def __init__(self, alpha=0):
        self.alpha = alpha

    def fit(self, X, y, qid=None):
        self.split_ = self.count_split(X, qid)
        return self

    def count_split(self, X, qid):
        ids = X["qid"] if qid is None else qid
        return int((np.unique(ids, return_counts=True)[1] != self.SIZE).sum())

    def score(self, X, y, qid=None):
        return -self.split_ - self.count_split(X, qid)


def test_grid_search_by_metadata_routing():
    qid = np.repeat(np.arange(10), Recorder.SIZE)
    X, y = np.zeros((30, 2)), np.zeros(30)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(Recorder(), {"alpha": [0, 1]}, cv=QueryKFold(3)).fit(X, y, qid=qid)
        scores = cross_validate(Recorder(), X, y, cv=QueryKFold(5), params={"qid": qid})["test_score"]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], 0)
    np.testing.assert_array_equal(scores, np.zeros(5))


def test_grid_search_by_qid_column():
    frame = pd.DataFrame({"x": np.zeros(30), "qid": np.repeat(np.arange(10), Recorder.SIZE)})
    search = GridSearchCV(Recorder(), {"alpha": [0, 1]}, cv=QueryKFold(3)).fit(frame, np.zeros(30))
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], 0)


def test_lgb_cv_keeps_queries_whole():
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 9, 30)
    X, y = rng.normal(size=(sizes.sum(), 3)), rng.integers(0, 3, sizes.sum())
    dataset = lgb.Dataset(X, y, group=sizes, free_raw_data=False)
    result = lgb.cv(
        {"objective": objectives.cs_listmle, "metric": "ndcg", "verbose": -1},
        dataset,
        num_boost_round=3,
        folds=QueryKFold(5),
        return_cvbooster=True,
    )
    seen = [booster.train_set.get_group() for booster in result["cvbooster"].boosters]
    for k, groups in enumerate(seen):
        np.testing.assert_array_equal(groups, np.delete(sizes, np.arange(k, 30, 5)))
    assert len(result["valid ndcg@1-mean"]) == 3
