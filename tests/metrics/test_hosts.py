"""One metric object as feval, eval_metric, custom_metric and scikit-learn scoring."""

import numpy as np
import pandas as pd
import pytest

from boostlist import Queries, boosters, metrics

METRICS = [metrics.NDCG(10), metrics.ERR(5, max_grade=4), metrics.MAP(), metrics.MRR(ties="worst")]


def ranking_data(n_queries=60, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 25, n_queries)
    X = rng.normal(size=(sizes.sum(), 4))
    labels = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=len(X)) + 0.5), 0, 4)
    return X, labels, sizes


@pytest.fixture
def bindings(monkeypatch):
    """Count how often metrics are bound."""
    counts = {}
    for metric in metrics.registry.values():
        if "_bind" not in vars(metric):  # inherited, and counted there
            continue
        original = metric._bind

        def bind(self, *lists, original=original):
            counts[self] = counts.get(self, 0) + 1
            return original(self, *lists)

        monkeypatch.setattr(metric, "_bind", bind)
    return counts


def test_lightgbm_train(bindings):
    lgb = pytest.importorskip("lightgbm")
    X, labels, sizes = ranking_data()
    weight = np.repeat(np.arange(len(sizes)) % 3 + 1.0, sizes)
    train = lgb.Dataset(X, labels, group=sizes, weight=weight)
    record = {}
    booster = lgb.train(
        {"objective": "lambdarank", "metric": "None", "verbose": -1, "num_leaves": 4},
        train,
        5,
        valid_sets=[train],
        valid_names=["train"],
        feval=METRICS,
        callbacks=[lgb.record_evaluation(record)],
    )
    queries = Queries.from_sizes(labels, sizes, np.arange(len(sizes)) % 3 + 1.0)
    for metric in METRICS:
        assert record["train"][metric.name][-1] == pytest.approx(metric.mean(booster.predict(X), queries), abs=1e-12)
    assert bindings == dict.fromkeys(METRICS, 2)  # once by the five rounds of training, once by `mean` above


def test_lightgbm_early_stopping_goes_up():
    lgb = pytest.importorskip("lightgbm")
    X, labels, sizes = ranking_data()
    train, valid = (lgb.Dataset(X, labels, group=sizes) for _ in range(2))
    booster = lgb.train(
        {"objective": "lambdarank", "metric": "None", "verbose": -1, "num_leaves": 4, "learning_rate": 0.02},
        train,
        30,
        valid_sets=[valid],
        feval=metrics.AvgNDCG(10),
        callbacks=[lgb.early_stopping(10, verbose=False)],
    )
    assert booster.best_iteration > 1
    assert booster.best_score["valid_0"]["avgndcg@10"] > metrics.AvgNDCG(10).mean(
        booster.predict(X, num_iteration=1), Queries.from_sizes(labels, sizes)
    )


def test_lightgbm_cv():
    lgb = pytest.importorskip("lightgbm")
    X, labels, sizes = ranking_data()
    params = {"objective": "lambdarank", "metric": "None", "verbose": -1}
    result = lgb.cv(params, lgb.Dataset(X, labels, group=sizes), 3, nfold=3, feval=metrics.ERR(5, max_grade=4))
    assert len(result["valid err@5-mean"]) == 3
    assert result["valid err@5-mean"][-1] > 0.3


def test_lgbm_ranker():
    lgb = pytest.importorskip("lightgbm")
    X, labels, sizes = ranking_data()
    ranker = lgb.LGBMRanker(n_estimators=4, num_leaves=4, verbose=-1, metric="None")
    ranker.fit(X, labels, group=sizes, eval_set=[(X, labels)], eval_group=[sizes], eval_metric=METRICS)
    queries = Queries.from_sizes(labels, sizes)
    for metric in METRICS:
        expected = metric.mean(ranker.predict(X), queries)
        assert ranker.evals_result_["training"][metric.name][-1] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_xgboost_train_stops_in_the_right_direction(metric):
    xgb = pytest.importorskip("xgboost")
    X, labels, sizes = ranking_data()
    train, valid = (xgb.DMatrix(X, labels, qid=np.repeat(np.arange(len(sizes)), sizes)) for _ in range(2))
    valid.set_weight(np.arange(len(sizes)) % 3 + 1.0)
    record = {}
    booster = xgb.train(
        {"objective": "rank:ndcg", "disable_default_eval_metric": True, "eta": 0.05, "max_depth": 2},
        train,
        15,
        evals=[(valid, "valid")],
        custom_metric=metric,
        evals_result=record,
        verbose_eval=False,
        callbacks=[boosters.xgboost_early_stopping(metric, rounds=15)],
    )
    values = record["valid"][metric.name]
    queries = Queries.from_sizes(labels, sizes, np.arange(len(sizes)) % 3 + 1.0)
    assert values[-1] == pytest.approx(
        metric.mean(booster.predict(valid, output_margin=True), queries), abs=1e-6
    )  # XGBoost keeps six decimals
    assert booster.best_iteration == int(np.argmax(values))
    assert np.argmax(values) != np.argmin(values)


class FirstColumn:
    """A ranker that needs no training."""

    def fit(self, X, y, qid=None):
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]


def test_scorer_takes_qid_or_a_column():
    X, labels, sizes = ranking_data()
    qid = np.repeat(np.arange(len(sizes)), sizes)
    expected = metrics.NDCG(5).mean(X[:, 0], Queries.from_sizes(labels, sizes))
    scorer = metrics.NDCG(5).scorer()
    assert scorer(FirstColumn(), X, labels, qid=qid) == expected
    assert scorer(FirstColumn(), pd.DataFrame(X).assign(qid=qid), labels) == expected
    with pytest.raises(ValueError, match=r"scoring ndcg@5 needs the query of each row: .* 'qid' .* metadata routing"):
        scorer(FirstColumn(), X, labels)


def test_scorer_of_a_metric_that_should_be_low():
    class Low(metrics.MRR):
        higher_is_better = False

    for metric, expected in ((metrics.MRR(), 0.5), (Low(), -0.5)):
        assert metric.scorer()(FirstColumn(), np.array([[3.0], [2.0]]), [0, 1], qid=[1, 1]) == expected


def test_scorer_in_cross_validation():
    from sklearn import config_context
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import PredefinedSplit, cross_validate

    class Ranker(FirstColumn, BaseEstimator):
        pass

    X, labels, sizes = ranking_data()
    qid = np.repeat(np.arange(len(sizes)), sizes)
    expected = [
        metrics.NDCG(5).mean(X[qid % 3 == fold, 0], Queries.from_qid(labels[qid % 3 == fold], qid[qid % 3 == fold]))
        for fold in range(3)
    ]
    scoring, folds = metrics.NDCG(5).scorer(), PredefinedSplit(qid % 3)
    frame = pd.DataFrame(X).assign(qid=qid)
    by_column = cross_validate(Ranker(), frame, labels, scoring=scoring, cv=folds, error_score="raise")
    np.testing.assert_array_equal(by_column["test_score"], expected)
    with config_context(enable_metadata_routing=True):
        ranker = Ranker().set_fit_request(qid=True)
        by_routing = cross_validate(
            ranker, X, labels, scoring=scoring, cv=folds, params={"qid": qid}, error_score="raise"
        )
    np.testing.assert_array_equal(by_routing["test_score"], expected)
