"""EnsembleRanker in scikit-learn's searches and pipelines, and before its checks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostlist import EnsembleRanker, LinearRanker
from boostlist.model_selection import QueryKFold
from tests.ensemble.data import TEST, TRAIN, fitted, tree


def frame(data):
    return data.to_frame().drop(columns="label")


def test_parameters_of_members_are_parameters():
    model = EnsembleRanker([("trees", tree()), ("line", make_pipeline(StandardScaler(), LinearRanker()))])
    params = model.get_params()
    assert params["trees__num_leaves"] == 7
    assert params["line__linearranker__C"] == 1.0
    assert params["trees"] is model.members[0][1]
    copy = clone(model).set_params(trees__num_leaves=3, line__linearranker__C=7.0, n_bags=2)
    assert (copy.members[0][1].num_leaves, copy.get_params()["line__linearranker__C"], copy.n_bags) == (3, 7.0, 2)
    assert model.members[0][1].num_leaves == 7
    copy.set_params(trees=LinearRanker(C=5))
    assert copy.get_params()["trees__C"] == 5
    copy.set_params(members=[tree("cs_listmle")], cs_listmle__num_leaves=4)
    assert copy.members[0].num_leaves == 4
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(trees__C=1)


def test_grid_search_over_members_by_column():
    model = EnsembleRanker([("trees", tree(n_estimators=4)), ("line", LinearRanker())])
    grid = {"trees__num_leaves": [2, 15], "line": [LinearRanker("listmle", C=1e-9), tree("cs_listmle")]}
    search = GridSearchCV(model, grid, cv=QueryKFold(2), error_score="raise").fit(frame(TRAIN), TRAIN.y)
    assert search.best_params_["trees__num_leaves"] == 15
    assert search.score(frame(TEST), TEST.y) > 0.7


def test_routing_in_a_pipeline():
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), EnsembleRanker([tree(), LinearRanker()]))
        search = GridSearchCV(
            model, {"ensembleranker__weights": ["uniform", [0, 1]]}, cv=QueryKFold(2), error_score="raise"
        )
        search.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
        assert search.score(TEST.X, TEST.y, qid=TEST.qid) > 0.6
        inner = GridSearchCV(LinearRanker(), {"C": [0.1, 10]}, cv=QueryKFold(2), error_score="raise")
        scores = fitted([("search", inner), ("pipe", make_pipeline(StandardScaler(), tree()))]).predict(TEST.X)
    assert np.isfinite(scores).all()


class OneList(EnsembleRanker):
    """A ranker that scikit-learn's checks can call: without queries, all rows are one list; labels are lifted to 0."""

    def fit(self, X, y, qid=None, group=None, **more):
        y = np.asarray(y) if y is not None else None
        if y is not None and y.dtype.kind in "fiu" and y.ndim == 1 and len(y):
            y, group = y - min(y.min(), 0), [len(y)]
        return super().fit(X, y, qid=qid, group=group, **more)

    def score(self, X, y, qid=None, group=None):
        return super().score(X, y - min(np.min(y), 0), group=[len(y)])


@parametrize_with_checks(
    [OneList([LinearRanker("listmle", max_iter=20), LinearRanker("listnet", max_iter=20)], n_jobs=1)],
    expected_failed_checks=lambda _: {
        "check_complex_data": "complex labels are refused as labels, before complex features are",
        "check_dtype_object": "labels that are not numbers are refused in boostlist's words",
        "check_estimators_nan_inf": "a missing feature is named in boostlist's words",
        "check_requires_y_none": "the missing y is named in boostlist's words",
        "check_sample_weights_not_an_array": "weights are of rows or queries",
        "check_sample_weights_list": "weights are of rows or queries",
    },
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)
