"""The scikit-learn side: ways to pass queries, kinds of X, searches, pipelines, bad input."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import boostlist
from boostlist import metrics, models, rankers
from boostlist.model_selection import QueryKFold
from boostlist.rankers import RANKERS
from boostlist.ranking_estimator import RankingEstimator
from tests.models.data import lists

PARAMETERS = {
    "RankCosineRanker": {"n_stages": 5},
    "QuadraticRanker": {"rho": 0.05},
    "BilinearRanker": {"n_query_features": 2, "d": 3},
    "DistanceRanker": {"n_query_features": 2, "d": 3},
}
"""What small data need beside C = 10 and a fixed seed."""


def example(name, **more):
    """Return a ranker of the table with parameters that suit small data."""
    cls = getattr(models, name)
    common = {key: value for key, value in {"C": 10.0, "random_state": 0}.items() if key in cls().get_params()}
    return cls(**common, **PARAMETERS.get(name, {}), **more)


ALL = {name: example(name) for name in models.__all__} | {"kernel RankSVM": example("RankSVM", kernel="gaussian")}


def frame(X, qid):
    return pd.DataFrame(X, columns=list("abcd")[: X.shape[1]]).assign(qid=qid)


def test_the_table_of_rankers_is_what_the_package_offers():
    assert set(RANKERS) == {*models.__all__, "TreeRanker", "EnsembleRanker"}
    assert set(RANKERS) <= set(boostlist.__all__)
    assert dir(models) == sorted(models.__all__)
    for name, ranker in RANKERS.items():
        cls = ranker.load()
        assert (cls.__name__, f"{cls.__module__}.{name}") == (name, ranker.estimator)
        assert getattr(boostlist, name) is cls
        assert issubclass(cls, RankingEstimator)
    for name in models.__all__:
        assert getattr(models, name) is getattr(boostlist, name)
    for module in (boostlist, models):
        with pytest.raises(AttributeError, match="has no attribute 'NoRanker'"):
            _ = module.NoRanker
    assert not hasattr(models, "TreeRanker")


def test_editors_and_type_checkers_see_the_table():
    source = Path(rankers.__file__).read_text(encoding="utf-8")
    typed = re.findall(r"^    from ([\w.]+) import (\w+) as \2$", source, re.MULTILINE)
    assert sorted(f"{module}.{name}" for module, name in typed) == sorted(r.estimator for r in RANKERS.values())


@pytest.mark.parametrize("name", RANKERS)
def test_parameters_are_documented(name):
    cls = getattr(boostlist, name)
    described = re.search(r"Parameters\n    -+\n(.*?)\n\n    Attributes", cls.__doc__, re.DOTALL)
    named = {
        word.strip("* ") for line in re.findall(r"^    (\S.*)$", described[1], re.MULTILINE) for word in line.split(",")
    }
    assert named - {"host_parameters"} == set(cls().get_params())


@pytest.mark.parametrize("estimator", [*ALL.values(), boostlist.TreeRanker(), boostlist.EnsembleRanker()], ids=repr)
def test_attributes_of_a_fit_are_absent_before_it(estimator):
    public = [name for name in dir(estimator) if not name.startswith("_")]
    assert {"fit", "predict", "rank", "score"} <= set(public)
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
def test_categories_are_named(name):
    X, y, qid = lists()
    frame = pd.DataFrame(X).rename(columns=str).assign(town=pd.Categorical(y.astype(int)))
    with pytest.raises(ValueError, match=r"column 'town' is a category, which \w+ does not take; .*OneHotEncoder"):
        clone(ALL[name]).fit(frame, y, qid=qid)


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
    expected = ranker.score(X[some], y[some], qid=qid[some])
    assert ranker.score(X, y, qid=qid, sample_weight=some.astype(float)) == pytest.approx(expected)
    assert ranker.score(X, y, qid=qid, sample_weight=[2.0, 2.0, 2.0, 0.0, 0.0, 0.0]) == pytest.approx(expected)
    uneven = np.where(qid == 0, 0.0, 1.0)
    uneven[:2] = 4.0  # a mean of 1 over the 8 rows of query 0
    assert ranker.score(X, y, qid=qid, sample_weight=uneven) == pytest.approx(ranker.score(X, y, qid=qid))
    with pytest.raises(ValueError, match="sample_weight has shape"):
        ranker.score(X, y, qid=qid, sample_weight=[1.0])


@pytest.mark.parametrize("name", ALL)
def test_weights_by_row_and_by_query_and_under_the_old_name(name):
    X, y, qid = lists()
    weight = np.array([2.0, 1.0, 0.0, 1.0, 3.0, 1.0])
    by_query = clone(ALL[name]).fit(X, y, qid=qid, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_row = clone(ALL[name]).fit(X, y, qid=qid, sample_weight=weight[qid])
    np.testing.assert_array_equal(by_row.predict(X), by_query.predict(X))
    assert not np.allclose(by_query.predict(X), clone(ALL[name]).fit(X, y, qid=qid).predict(X))
    with pytest.warns(FutureWarning, match="query_weight is called sample_weight now") as caught:
        old = clone(ALL[name]).fit(X, y, qid=qid, query_weight=weight)
    assert [Path(each.filename) for each in caught] == [Path(__file__)]
    np.testing.assert_array_equal(old.predict(X), by_query.predict(X))


@pytest.mark.parametrize("estimator", [*ALL.values(), boostlist.TreeRanker(n_estimators=2)], ids=repr)
def test_weights_that_are_none(estimator):
    X, y, qid = lists()
    for weight, message in [
        (np.zeros(6), "sample_weight is 0 everywhere"),
        (np.zeros(len(y)), "sample_weight is 0 everywhere"),
        ([1, 1, 1, 1, -1, 1], r"sample_weight\[4\] is -1.0; weights must be finite and >= 0"),
        ([1, np.nan, 1, 1, 1, 1], r"sample_weight\[1\] is nan"),
        (
            np.ones(5),
            r"sample_weight has shape \(5,\); give one weight for each of the 55 rows or for each of the 6 queries",
        ),
        (np.ones((6, 1)), r"sample_weight has shape \(6, 1\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(X, y, qid=qid, sample_weight=weight)


def test_weights_that_differ_within_a_query_are_refused_with_the_reason():
    X, y, qid = lists()
    weight = np.ones(len(y))
    weight[10] = 3.0
    with pytest.raises(ValueError, match=r"1 in row 8 and 3 in row 10 of the same query; LinearRanker .*TreeRanker"):
        models.LinearRanker().fit(X, y, qid=qid, sample_weight=weight)
    with (
        pytest.raises(ValueError, match="got sample_weight and, its old name, query_weight"),
        pytest.warns(FutureWarning),
    ):
        models.LinearRanker().fit(X, y, qid=qid, sample_weight=np.ones(6), query_weight=np.ones(6))


@pytest.mark.parametrize("name", ALL)
def test_rank(name):
    X, y, qid = lists()
    X[1] = X[0]
    ranker = clone(ALL[name]).fit(X, y, qid=qid)
    scores = ranker.predict(X).tolist()
    expected = [row for q in range(6) for row in sorted(np.flatnonzero(qid == q), key=lambda row: (-scores[row], row))]
    assert ranker.rank(X, qid=qid).tolist() == expected
    assert ranker.rank(X, group=np.bincount(qid)).tolist() == expected
    assert ranker.rank(X).tolist() == sorted(range(len(y)), key=lambda row: (-scores[row], row))
    with pytest.raises(ValueError, match="there are 54 query ids for 55 rows"):
        ranker.rank(X, qid=qid[1:])


@pytest.mark.parametrize("name", ALL)
def test_warnings_point_at_the_line_that_fits(name):
    X, y, qid = lists()
    estimator = clone(ALL[name]).set_params(callback=lambda iteration: True)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback$") as caught:
        estimator.fit(X, y, qid=qid)
    assert [Path(each.filename) for each in caught] == [Path(__file__)]
    if name == "RankCosineRanker":
        return
    with pytest.warns(UserWarning, match="no order to learn") as caught:
        clone(ALL[name]).fit(X, np.ones(len(y)), qid=qid)
    assert {Path(each.filename) for each in caught} == {Path(__file__)}
    with pytest.warns(UserWarning, match="no order to learn") as caught:
        make_pipeline(clone(ALL[name])).fit(frame(X, qid), np.ones(len(y)))
    assert {Path(each.filename) for each in caught} == {Path(__file__)}


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, pl.DataFrame, csr_matrix])
def test_the_label_among_the_features_is_named(kind):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 3)), np.repeat(np.arange(10), 6)
    y = rng.integers(0, 3, 60).astype(float)
    X[:, 1] = y
    ranker = models.LinearRanker("listnet")
    if kind is csr_matrix:  # is not looked at
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ranker.fit(kind(X), y, qid=qid)
        return
    made = kind(X) if kind is np.asarray else kind(dict(zip("abc", X.T, strict=True)))
    name = "1" if kind is np.asarray else "'b'"
    with pytest.warns(UserWarning, match=f"feature {name} is the label itself, in every row") as caught:
        ranker.fit(made, y, qid=qid)
    assert Path(caught[0].filename) == Path(__file__)
    y[-1] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.fit(made, y, qid=qid)


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
    with pytest.raises(ValueError, match="got 'cs_listmel'; did you mean cs_listmle"):
        models.LinearRanker("cs_listmel").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="both qid and group"):
        ranker.fit(X, y, qid=qid, group=[len(y)])
    with pytest.raises(ValueError, match="X has 54 rows but y has 55"):
        ranker.fit(X[:-1], y, qid=qid)
    for given in ((X, None), (None, y)):
        with pytest.raises(ValueError, match="pass X and y"):
            ranker.fit(*given, qid=qid)
    with pytest.raises(ValueError, match="expecting 4 features"):
        ranker.fit(X, y, qid=qid).predict(X[:, :2])
    with pytest.raises(ValueError, match="there are no rows"):
        ranker.fit(X[:0], y[:0], qid=qid[:0])
