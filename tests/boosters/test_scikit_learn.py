"""TreeRanker in scikit-learn's searches and pipelines, and before its checks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostlist import TreeRanker, metrics
from boostlist.model_selection import QueryKFold
from tests.boosters.rankers import TEST, TRAIN, UNTRAINED, both_hosts, fitted, frame, ranker


@both_hosts
def test_grid_search_by_column(backend):
    search = GridSearchCV(
        ranker(backend), {"num_leaves": [2, 15], "pointwise": [0.3]}, cv=QueryKFold(3), error_score="raise",
        scoring=metrics.NDCG(10).scorer(),
    )  # fmt: skip
    search.fit(frame(TRAIN), TRAIN.y)
    assert search.best_params_["num_leaves"] == 15
    assert search.best_score_ > UNTRAINED + 0.1


@both_hosts
def test_search_by_routing_in_a_pipeline(backend):
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), ranker(backend))
        search = RandomizedSearchCV(
            model,
            {"treeranker__num_leaves": [4, 8]},
            n_iter=2,
            cv=QueryKFold(3),
            error_score="raise",
            scoring=metrics.NDCG(10).scorer(),
        )
        search.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
        assert search.best_score_ > UNTRAINED + 0.1
        assert search.score(TEST.X, TEST.y, qid=TEST.qid) > UNTRAINED + 0.1


def test_pipeline_keeps_the_column():
    model = make_pipeline(FunctionTransformer(lambda X: X.assign(more=0)), ranker()).fit(frame(TRAIN), TRAIN.y)
    np.testing.assert_array_equal(model.predict(frame(TEST)), fitted().predict(TEST.X))
    assert model.score(frame(TEST), TEST.y) == fitted().score(TEST.X, TEST.y, TEST.qid)


def test_parameters_of_the_host_are_parameters():
    model = ranker(extra_trees=True)
    assert model.get_params()["extra_trees"] is True
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(extra_trees=False, n_estimators=3).get_params()["extra_trees"] is False
    assert model.n_estimators == 3
    assert set(fitted().get_params()) == set(ranker().get_params())


class OneList(TreeRanker):
    """A ranker that scikit-learn's checks can call: without queries, all rows are one list; labels are lifted to 0."""

    def fit(self, X, y, qid=None, group=None, **more):
        y = np.asarray(y) if y is not None else None
        if y is not None and y.dtype.kind in "fiu" and y.ndim == 1 and len(y):
            y, group = y - min(y.min(), 0), [len(y)]
        return super().fit(X, y, qid=qid, group=group, **more)

    def score(self, X, y, qid=None, group=None):
        return super().score(X, y - min(np.min(y), 0), group=[len(y)])


EXPECTED_FAILURES = {
    "check_complex_data": "complex labels are refused as labels, before complex features are",
    "check_dtype_object": "labels that are not numbers are refused in boostlist's words",
    "check_requires_y_none": "the missing y is named in boostlist's words",
    "check_fit2d_1sample": "LightGBM refuses data in which no feature varies",
}


@parametrize_with_checks(
    [OneList("listmle", backend=backend, n_estimators=3, n_jobs=1) for backend in ("lightgbm", "xgboost")],
    expected_failed_checks=lambda estimator: {
        name: why
        for name, why in EXPECTED_FAILURES.items()
        if name != "check_fit2d_1sample" or estimator.backend == "lightgbm"
    },
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)
