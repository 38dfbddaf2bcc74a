"""The scikit-learn side: ways to pass queries, kinds of X, searches, pipelines, bad input."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import boostlist
from boostlist import metrics, models
from boostlist.model_selection import QueryKFold
from tests.models.data import lists

ALL = {
    "LinearRanker": models.LinearRanker(C=10.0),
    "KernelRanker": models.KernelRanker(C=10.0, random_state=0),
    "QuadraticRanker": models.QuadraticRanker(C=10.0, rho=0.05),
    "RankCosineRanker": models.RankCosineRanker(n_stages=5),
    "RankSVM": models.RankSVM(C=10.0),
    "kernel RankSVM": models.RankSVM(C=10.0, kernel="gaussian"),
    "BilinearRanker": models.BilinearRanker(n_query_features=2, d=3, random_state=0),
    "DistanceRanker": models.DistanceRanker(n_query_features=2, d=3, random_state=0),
}


def frame(X, qid):
    return pd.DataFrame(X, columns=list("abcd")[: X.shape[1]]).assign(qid=qid)


def test_every_model_is_exported():
    assert {type(model).__name__ for model in ALL.values()} == set(models.__all__)
    for name in models.__all__:
        assert getattr(boostlist, name) is getattr(models, name)


@pytest.mark.parametrize("estimator", [*ALL.values(), boostlist.TreeRanker()], ids=repr)
def test_attributes_of_a_fit_are_absent_before_it(estimator):
    public = [name for name in dir(estimator) if not name.startswith("_")]
    assert {"fit", "predict", "score"} <= set(public)
    assert not [name for name in public if name.endswith("_") and hasattr(estimator, name)]


def test_kernel_parameters_are_those_of_a_fitted_kernel():
    X, y, qid = lists()
    linear = models.RankSVM().fit(X, y, qid=qid)
    dir(linear)
    with pytest.raises(AttributeError, match="RankSVM was not fitted with a kernel"):
        _ = linear.kernel_parameters_
    kernel = models.RankSVM(kernel="gaussian", s=2.0).fit(X, y, qid=qid)
    assert kernel.kernel_parameters_ == {"s": 2.0}
    assert not hasattr(kernel.set_params(kernel="polynomial"), "kernel_parameters_")


@pytest.mark.parametrize("name", ALL)
def test_ways_to_pass_queries_and_kinds_of_x_agree(name):
    X, y, qid = lists()
    reference = clone(ALL[name]).fit(X, y, qid=qid)
    scores = reference.predict(X)
    np.testing.assert_array_equal(clone(reference).fit(X, y, group=np.bincount(qid)).predict(X), scores)
    with_column = clone(reference).fit(frame(X, qid), y)
    scale = np.abs(scores).max()
    np.testing.assert_allclose(with_column.predict(frame(X, qid)), scores, atol=1e-6 * scale)
    np.testing.assert_array_equal(
        with_column.predict(frame(X, qid).drop(columns="qid")), with_column.predict(frame(X, qid))
    )
    assert list(with_column.feature_names_in_) == list("abcd")
    assert reference.score(X, y, qid=qid) == metrics.NDCG(k=10).mean(scores, boostlist.Queries.from_qid(y, qid))
    assert with_column.score(frame(X, qid), y) == pytest.approx(reference.score(X, y, qid=qid))
    sparse = clone(reference).fit(csr_matrix(X), y, qid=qid)
    np.testing.assert_allclose(sparse.predict(csr_matrix(X)), scores, atol=1e-4 * scale)
    single = clone(reference).fit(X.astype(np.float32), y, qid=qid)
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), scores, atol=2e-3 * scale)


@pytest.mark.parametrize("name", ALL)
def test_fit_and_score_without_queries_name_the_remedies(name):
    X, y, qid = lists()
    with pytest.raises(ValueError, match=r"fit needs the query of each row.*column 'qid'.*enable_metadata_routing"):
        clone(ALL[name]).fit(X, y)
    with pytest.raises(ValueError, match=r"score needs the query of each row"):
        clone(ALL[name]).fit(X, y, qid=qid).score(X, y)
    with pytest.raises(NotFittedError):
        clone(ALL[name]).predict(X)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_features_that_are_not_finite_are_named(name, bad, kind):
    X, y, qid = lists()
    X[3, 2] = bad
    with pytest.raises(ValueError, match=rf"X is {bad} in row 3, feature 2"):
        clone(ALL[name]).fit(kind(X), y, qid=qid)


def test_grid_search_with_a_column():
    X, y, qid = lists(sizes=(10,) * 8)
    search = GridSearchCV(models.LinearRanker(), {"C": [0.1, 10.0]}, cv=QueryKFold(4)).fit(frame(X, qid), y)
    by_hand = [
        models.LinearRanker(C=C).fit(X[train], y[train], qid=qid[train]).score(X[test], y[test], qid=qid[test])
        for C in (0.1, 10.0)
        for train, test in QueryKFold(4).split(X, qid=qid)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.reshape(by_hand, (2, 4)).mean(axis=1))


def test_grid_search_and_pipeline_with_routing():
    X, y, qid = lists(sizes=(10,) * 8)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), models.LinearRanker())
        search = GridSearchCV(pipeline, {"linearranker__C": [0.1, 10.0]}, cv=QueryKFold(4)).fit(X, y, qid=qid)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        pipeline.fit(X, y, qid=qid)
    expected = models.LinearRanker().fit(StandardScaler().fit_transform(X), y, qid=qid).coef_
    np.testing.assert_allclose(pipeline[-1].coef_, expected)
    scores = cross_val_score(models.LinearRanker(), frame(X, qid), y, cv=QueryKFold(4), scoring=metrics.MRR().scorer())
    assert scores.shape == (4,)


def test_score_weighs_queries_by_their_rows():
    X, y, qid = lists()
    ranker = models.LinearRanker().fit(X, y, qid=qid)
    some = qid < 3
    weighted = ranker.score(X, y, qid=qid, sample_weight=some.astype(float))
    assert weighted == pytest.approx(ranker.score(X[some], y[some], qid=qid[some]))
    with pytest.raises(ValueError, match="sample_weight has shape"):
        ranker.score(X, y, qid=qid, sample_weight=[1.0])


@pytest.mark.parametrize("name", ALL)
def test_a_failed_fit_leaves_no_half_fitted_model(name):
    X, y, qid = lists()
    bad = clone(ALL[name])
    bad.set_params(**({"C": -1.0} if hasattr(bad, "C") else {"n_stages": 0}))
    with pytest.raises(ValueError, match="must be"):
        bad.fit(X, y, qid=qid)
    with pytest.raises(NotFittedError):
        bad.predict(X)


def test_mismatches_are_refused():
    X, y, qid = lists()
    ranker = models.LinearRanker()
    with pytest.raises(ValueError, match="both qid and group"):
        ranker.fit(X, y, qid=qid, group=[len(y)])
    with pytest.raises(ValueError, match="X has 54 rows but y has 55"):
        ranker.fit(X[:-1], y, qid=qid)
    with pytest.raises(ValueError, match="pass y"):
        ranker.fit(X, None, qid=qid)
    with pytest.raises(ValueError, match="expecting 4 features"):
        ranker.fit(X, y, qid=qid).predict(X[:, :2])
    with pytest.raises(ValueError, match="there are no rows"):
        ranker.fit(X[:0], y[:0], qid=qid[:0])
