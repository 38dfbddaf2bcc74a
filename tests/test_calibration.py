"""What scores are worth."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import boostlist
from boostlist import EnsembleRanker, KernelRanker, LinearRanker, TreeRanker
from boostlist.calibration import Isotonic, Logistic
from tests.boosters.rankers import PARAMS, TEST, TRAIN

MODELS = [
    TreeRanker(**PARAMS),
    TreeRanker("cs_listmle", backend="xgboost", **PARAMS),
    LinearRanker(),
    EnsembleRanker([("tree", TreeRanker(**PARAMS)), ("linear", LinearRanker())], n_jobs=1),
]


def drawn(n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(3, 5, n)
    return scores, rng.binomial(1, 1 / (1 + np.exp(1 - 0.4 * scores))).astype(float), rng.uniform(0.5, 2, n)


def test_the_curve_is_that_of_logistic_regression():
    scores, clicks, weight = drawn()
    curve = Logistic.fitted(scores, clicks, weight)
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(scores[:, None], clicks, sample_weight=weight)
    np.testing.assert_allclose((curve.slope, curve.start), (theirs.coef_[0, 0], theirs.intercept_[0]), rtol=1e-4)


def test_expected_labels_add_up_to_the_true_ones():
    scores, clicks, weight = drawn()
    grades = 3 * clicks + (scores > 5)
    for kind in (Logistic, Isotonic):
        assert weight @ kind.fitted(scores, grades, weight)(scores) == pytest.approx(weight @ grades, rel=1e-6)


def test_isotonic_never_falls_and_pools_what_would():
    got = Isotonic.fitted(np.array([1.0, 2, 3, 4]), np.array([0.0, 2, 1, 3]), np.array([1.0, 1, 3, 1]))
    np.testing.assert_allclose(got(np.array([-9, 1, 2, 3, 3.5, 4, 9])), [0, 0, 1.25, 1.25, 2.125, 3, 3])


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_unit_of_scores_does_not_matter(factor):
    scores, clicks, weight = drawn()
    got = Logistic.fitted(factor * scores, clicks, weight)(factor * scores)
    np.testing.assert_allclose(got, Logistic.fitted(scores, clicks, weight)(scores), rtol=1e-5)


def test_labels_that_do_not_rise():
    scores, clicks, weight = drawn()
    with pytest.warns(UserWarning, match="labels do not rise with the scores"):
        got = Logistic.fitted(-scores, clicks, weight)
    np.testing.assert_allclose(got(scores), np.average(clicks, weights=weight), rtol=1e-6)
    with pytest.warns(UserWarning, match="all labels are 0"):
        np.testing.assert_array_equal(Logistic.fitted(scores, 0 * clicks, weight)(scores), 0)
    perfect = Logistic.fitted(scores, (scores > 3).astype(float), weight)
    assert np.isfinite(perfect(scores)).all()


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{getattr(model, 'backend', '')}")
def test_every_ranker_tells_expected_labels_and_stores_the_map(model, method, tmp_path):
    model = clone(model).fit(TRAIN.X, TRAIN.y, TRAIN.qid)
    assert model.calibrate(TEST.X, TEST.y, method=method) is model
    got, scores = model.predict_relevance(TEST.X), model.predict(TEST.X)
    assert got.mean() == pytest.approx(TEST.y.mean(), rel=1e-6)
    order = np.argsort(scores)
    assert (np.diff(got[order]) >= 0).all()
    assert np.mean((got - TEST.y) ** 2) < 0.85 * TEST.y.var()
    suffix = "json" if isinstance(model, TreeRanker) else "npz"
    again = boostlist.load(model.save(tmp_path / f"m.{suffix}"))
    assert again.calibration_ == model.calibration_
    np.testing.assert_array_equal(again.predict_relevance(TEST.X), got)
    with pytest.raises(ValueError, match=r"does not know what its scores are worth: call calibrate\(X, y\) first"):
        model.fit(TRAIN.X, TRAIN.y, TRAIN.qid).predict_relevance(TEST.X)


def test_weights_by_row_and_by_query():
    model = LinearRanker().fit(TRAIN.X, TRAIN.y, TRAIN.qid)
    weight = np.arange(TEST.n_queries) % 3.0
    by_query = model.calibrate(TEST.X, TEST.y, TEST.qid, sample_weight=weight).calibration_
    by_row = model.calibrate(TEST.X, TEST.y, sample_weight=np.repeat(weight, TEST.queries.sizes)).calibration_
    assert by_query == by_row != model.calibrate(TEST.X, TEST.y).calibration_
    kept = np.repeat(weight, TEST.queries.sizes) > 0
    few = model.calibrate(TEST.X[kept], TEST.y[kept], sample_weight=np.repeat(weight, TEST.queries.sizes)[kept])
    np.testing.assert_allclose(few.predict_relevance(TEST.X), by_row(model.predict(TEST.X)), rtol=1e-6)


def test_scores_that_depend_on_the_list():
    model = KernelRanker(basis="query").fit(TRAIN.X, TRAIN.y, TRAIN.qid).calibrate(TEST.X, TEST.y, TEST.qid)
    assert model.predict_relevance(TEST.X, TEST.qid).mean() == pytest.approx(TEST.y.mean(), rel=1e-6)


def test_wrong_input():
    model = LinearRanker().fit(TRAIN.X, TRAIN.y, TRAIN.qid)
    with pytest.raises(ValueError, match="method must be one of 'logistic', 'isotonic', got 'platt'"):
        model.calibrate(TEST.X, TEST.y, method="platt")
    with pytest.raises(ValueError, match=r"labels\[0\] is nan"):
        model.calibrate(TEST.X, np.full(TEST.n_documents, np.nan))
    for y in (TEST.y[1:], {"click": TEST.y[1:]}):
        with pytest.raises(ValueError, match=rf"X has {TEST.n_documents} rows but y has {TEST.n_documents - 1}"):
            model.calibrate(TEST.X, y)
