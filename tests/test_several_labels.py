"""Several labels in one ranker: terms, metrics and estimators that name theirs."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV

import boostlist
from boostlist import EnsembleRanker, KernelRanker, LinearRanker, Queries, TreeRanker, metrics, objectives
from boostlist.losses import CsListMLE, GroupPL, ListMLE, Mapped, PairwiseLogistic, Pointwise, Sum, WeightedPL, WpLL
from boostlist.model_selection import QueryKFold
from tests.boosters.rankers import PARAMS, TEST, TRAIN, both_hosts

LOSS = CsListMLE(label="click") + 0.3 * WeightedPL(label="purchase")


def labels(data):
    """Clicks are frequent, purchases rare and elsewhere."""
    return {"click": data.y, "purchase": (data.X[:, 3] > np.quantile(data.X[:, 3], 0.8)).astype(float)}


QUERIES = Queries.from_qid(labels(TRAIN), TRAIN.qid)


def by_name(name, data=TRAIN):
    return Queries.from_qid(labels(data)[name], data.qid)


def test_queries_have_the_first_label_for_the_main_one():
    np.testing.assert_array_equal(QUERIES.labels, TRAIN.y)
    bought = QUERIES.labelled("purchase")
    np.testing.assert_array_equal(bought.labels, labels(TRAIN)["purchase"])
    assert bought is QUERIES.labelled("purchase")
    assert bought.start is QUERIES.start
    assert bought.weight is QUERIES.weight
    assert QUERIES.labelled(None) is QUERIES
    np.testing.assert_array_equal(bought.labelled("click").labels, TRAIN.y)


def test_other_weights_and_pickles_keep_the_labels():
    weight = np.arange(QUERIES.n_queries, dtype=float)
    for other in (QUERIES.with_weight(weight), pickle.loads(pickle.dumps(QUERIES.with_weight(weight)))):
        bought = other.labelled("purchase")
        np.testing.assert_array_equal(bought.labels, labels(TRAIN)["purchase"])
        np.testing.assert_array_equal(bought.weight, weight)
        with pytest.raises(ValueError, match="read-only"):
            bought.labels[0] = 1


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_of_labels(frame):
    queries = Queries.from_sizes(frame(labels(TRAIN)), TRAIN.queries.sizes)
    assert list(queries.named) == ["click", "purchase"]
    np.testing.assert_array_equal(queries.labelled("purchase").labels, labels(TRAIN)["purchase"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": [0, 1, 0], "b": [0, np.nan, 1]}, r"labels\['b'\]\[1\] is nan \(query 0\).*drop unjudged"),
        ({"a": [0, 1, 0], "b": [0, -1, 1]}, r"labels\['b'\]\[1\] is -1.0"),
        ({"a": [0, 1, 0], "b": [0, 1]}, r"labels\['b'\] has 2 rows but labels\['a'\] has 3"),
        ({"a": [0, 1, 0], "b": ["x", "y", "z"]}, r"labels\['b'\] must be numbers"),
        ({}, "labels has no columns"),
    ],
)
def test_wrong_labels_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        Queries.from_sizes(given, [3])


def test_a_label_that_is_missing_is_named():
    with pytest.raises(ValueError, match="there is no label 'cart': labels are 'click', 'purchase'"):
        ListMLE(label="cart").bind(QUERIES)
    with pytest.raises(ValueError, match="there is no label 'click': there is one label, without a name"):
        LOSS.bind(TRAIN.queries)
    for model in (TreeRanker(LOSS), LinearRanker(LOSS)):
        with pytest.raises(ValueError, match=r"y=\{'click': \.\.\., \.\.\.\}"):
            model.fit(TRAIN.X, TRAIN.y, TRAIN.qid)


def test_a_label_that_data_for_evaluation_lacks_is_named():
    with pytest.raises(ValueError, match=r"eval_set\[1\] has no label 'purchase', which eval_metric 'map:purchase'"):
        TreeRanker(LOSS).fit(
            TRAIN.X, labels(TRAIN), TRAIN.qid, eval_metric="map:purchase",
            eval_set=[(TEST.X, labels(TEST), TEST.qid), (TEST.X, TEST.y, TEST.qid)],
        )  # fmt: skip


def test_a_search_cuts_a_frame_of_labels():
    X = TRAIN.to_frame().drop(columns="label")
    search = GridSearchCV(
        LinearRanker(LOSS), {"C": [0.1, 10]}, scoring=metrics.get("ndcg@5:purchase").scorer(), cv=QueryKFold(2)
    )
    search.fit(X, pd.DataFrame(labels(TRAIN)))
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize(
    "loss", [CsListMLE, GroupPL, partial(WpLL, grades=(0, 1, 2, 3, 4)), lambda label: Mapped(ListMLE(label=label))]
)
def test_a_sum_is_the_sum_of_losses_bound_to_their_labels(loss):
    f = np.random.default_rng(0).normal(size=TRAIN.n_documents)
    total = (loss(label="click") + 0.3 * loss(label="purchase")).bind(QUERIES)
    parts = [(1.0, loss(label=None).bind(by_name("click"))), (0.3, loss(label=None).bind(by_name("purchase")))]
    for got, expected in zip(
        (*total.gradient_hessian(f), total.value(f)),
        (
            *(sum(w * each for w, each in zip((1.0, 0.3), column, strict=True))
              for column in zip(*(part.gradient_hessian(f) for _, part in parts), strict=True)),
            sum(w * part.value(f) for w, part in parts),
        ),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_the_label_is_shown_where_there_is_one():
    assert repr(CsListMLE(k=3)) == "CsListMLE(k=3, weights='ndcg', gain='exp2')"
    assert repr(CsListMLE(label="click")) == "CsListMLE(k=None, weights='ndcg', gain='exp2', label='click')"
    assert ListMLE(label="click") != ListMLE()
    assert copy.deepcopy(LOSS) == LOSS
    assert hash(LOSS) == hash(copy.deepcopy(LOSS))


def test_parts_by_label():
    loss = ListMLE() + 2 * CsListMLE(label="a") + 3 * ListMLE(label="a")
    assert loss.by_label() == {None: Sum.of((1, ListMLE())), "a": 2 * CsListMLE(label="a") + 3 * ListMLE(label="a")}
    one = CsListMLE(label="a") + ListMLE(label="a")
    assert one.by_label() == {"a": one}
    assert Mapped(ListMLE(label="a")).by_label() == {"a": Mapped(ListMLE(label="a"))}
    got = (WpLL(label="a") + WpLL()).with_grades((0.0, 1.0), "a")
    assert got == WpLL(label="a", grades=(0.0, 1.0)) + WpLL()


def test_a_label_of_what_has_several_is_refused():
    with pytest.raises(ValueError, match="give the label 'a' to the terms"):
        Sum(terms=((1.0, ListMLE()),), label="a")
    for make in (lambda: Mapped(ListMLE(), label="a"), lambda: Mapped(ListMLE() + ListMLE(label="a"))):
        with pytest.raises(ValueError, match="give the label to the loss inside"):
            make()


def test_metrics_look_at_their_label():
    f = np.random.default_rng(0).normal(size=TRAIN.n_documents)
    metric = metrics.get("NDCG@5:purchase", empty="skip")
    assert metric == metrics.NDCG(5, empty="skip", label="purchase")
    assert metric.name == "ndcg@5:purchase"
    expected = metrics.NDCG(5, empty="skip").mean(f, by_name("purchase"))
    assert metric.mean(f, QUERIES) == expected != metrics.NDCG(5, empty="skip").mean(f, QUERIES)
    assert metrics.get("map:a").name == "map:a"


@both_hosts
def test_trees_train_on_all_labels(backend, tmp_path):
    model = TreeRanker(LOSS, backend=backend, **PARAMS)
    names = ["err:purchase", "ndcg@10", "ndcg@10:click"]
    model.fit(
        TRAIN.X, labels(TRAIN), TRAIN.qid,
        eval_set=[(TEST.X, labels(TEST), TEST.qid)], eval_metric=names, early_stopping_rounds=50,
    )  # fmt: skip
    history = model.evals_result_["valid_0"]
    assert list(history) == names
    assert history["ndcg@10"] == history["ndcg@10:click"]
    best = max(history["err:purchase"])
    err = metrics.ERR(label="purchase", max_grade=1)
    assert err.mean(model.predict(TEST.X), Queries.from_qid(labels(TEST), TEST.qid)) == pytest.approx(best, abs=1e-5)
    assert model.score(TEST.X, labels(TEST), TEST.qid) == model.score(TEST.X, TEST.y, TEST.qid)
    # A squared-error term for each label, with its share of the curvature of the loss of that label.
    parts = LOSS.by_label()
    trained = {loss.label: (factor, loss) for factor, loss in model.objective_.loss.terms[2:]}
    for name, (factor, loss) in trained.items():
        assert loss == Pointwise(targets="exp2", centred=True, label=name)
        _, diag = parts[name].bind(QUERIES).gradient_hessian(np.zeros(TRAIN.n_documents))
        assert factor == pytest.approx(0.3 * diag[diag > 0].mean(), rel=1e-6)
    again = boostlist.load(model.save(tmp_path / "m.json"))
    assert again.objective_ == model.objective_
    assert again.objective == LOSS
    np.testing.assert_array_equal(again.predict(TEST.X), model.predict(TEST.X))


@both_hosts
def test_a_label_is_worth_its_weight(backend):
    def score(loss, name):
        model = TreeRanker(loss, backend=backend, **PARAMS).fit(TRAIN.X, labels(TRAIN), TRAIN.qid)
        return metrics.NDCG(10, label=name).mean(model.predict(TEST.X), Queries.from_qid(labels(TEST), TEST.qid))

    one, other = PairwiseLogistic(label="click"), PairwiseLogistic(label="purchase")
    assert score(one + 0.01 * other, "click") > score(0.01 * one + other, "click") + 0.05
    assert score(one + 0.01 * other, "purchase") < score(0.01 * one + other, "purchase") - 0.05


def test_sums_of_pairwise_losses_have_no_squared_error_term():
    loss = 2 * PairwiseLogistic(label="click") + PairwiseLogistic(label="purchase")
    model = TreeRanker(loss, **PARAMS | {"n_estimators": 1}).fit(TRAIN.X, labels(TRAIN), TRAIN.qid)
    assert model.objective_.loss == loss


@pytest.mark.parametrize("make", [LinearRanker, lambda loss: KernelRanker(loss, n_landmarks=20, random_state=0)])
def test_parametric_rankers_minimise_the_sum(make, tmp_path):
    model = make(LOSS).fit(TRAIN.X, pd.DataFrame(labels(TRAIN)), TRAIN.qid)
    assert model.convergence_.converged
    if isinstance(model, LinearRanker):
        _, slope = LOSS.bind(QUERIES).value_gradient(TRAIN.X @ model.coef_)
        gradient = model.coef_ + TRAIN.X.T @ slope / QUERIES.n_queries
        np.testing.assert_allclose(gradient, 0, atol=1e-6)
    again = boostlist.load(model.save(tmp_path / "m.npz"))
    assert again.loss == LOSS
    np.testing.assert_array_equal(again.predict(TEST.X), model.predict(TEST.X))


def test_members_of_an_ensemble_get_all_labels():
    tree = TreeRanker(LOSS, **PARAMS)
    ensemble = EnsembleRanker([("tree", tree), ("linear", LinearRanker(LOSS))], n_bags=2, random_state=0, n_jobs=1)
    ensemble.fit(TRAIN.X, labels(TRAIN), TRAIN.qid, eval_metric="ndcg@10:purchase")
    assert "ndcg@10:purchase" in ensemble.parts_[0].estimator.evals_result_["valid_0"]


def test_labels_beside_those_of_a_data_set():
    lgb, xgb = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    named = labels(TRAIN)
    loss = CsListMLE() + 0.3 * WeightedPL(label="purchase")
    objective = objectives.with_labels(loss, {"purchase": named["purchase"]})
    expected = loss.objective().bind(QUERIES)
    f = np.random.default_rng(0).normal(size=TRAIN.n_documents)
    for data in (TRAIN.lgb_dataset().construct(), TRAIN.xgb_dmatrix()):
        for got, want in zip(objective(f, data), expected(f), strict=True):
            np.testing.assert_array_equal(got, want)
    assert copy.deepcopy(objective).labels is objective.labels
    booster = lgb.train({"objective": objective, "verbose": -1}, TRAIN.lgb_dataset(), 3)
    assert not np.array_equal(
        booster.predict(TEST.X),
        lgb.train({"objective": CsListMLE(), "verbose": -1}, TRAIN.lgb_dataset(), 3).predict(TEST.X),
    )
    assert xgb.train({}, TRAIN.xgb_dmatrix(), 2, obj=objective).num_boosted_rounds() == 2


def test_labels_of_a_fold_of_lightgbm():
    pytest.importorskip("lightgbm")
    named = labels(TRAIN)
    objective = objectives.with_labels(CsListMLE(label="purchase"), named)
    rows = np.flatnonzero(TRAIN.qid >= TRAIN.qid[TRAIN.queries.start[50]])
    data = TRAIN.lgb_dataset(free_raw_data=False).construct()
    part = data.subset(rows.tolist()).construct()
    f = np.random.default_rng(0).normal(size=len(rows))
    expected = CsListMLE().objective().bind(Queries.from_qid(named["purchase"][rows], TRAIN.qid[rows]))(f)
    for got, want in zip(objective(f, part), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_wrong_labels_beside_those_of_a_data_set_are_named():
    bought = labels(TRAIN)["purchase"]
    loss = CsListMLE() + ListMLE(label="purchase")
    f, data = np.zeros(TRAIN.n_documents), TRAIN.lgb_dataset().construct()
    with pytest.raises(ValueError, match=r"needs the label 'purchase'; given are 'cart'"):
        objectives.with_labels(loss, {"cart": bought})
    with pytest.raises(ValueError, match=r"labels\['purchase'\] has 3 rows but there are 1,222 documents"):
        objectives.with_labels(loss, {"purchase": bought[:3]})(f, data)
    with pytest.raises(ValueError, match=r"labels\['purchase'\]\[7\] is nan"):
        objectives.with_labels(loss, {"purchase": np.where(np.arange(len(bought)) == 7, np.nan, bought)})(f, data)
    with pytest.raises(ValueError, match=r"there is no label 'purchase'.*boostlist.objectives.with_labels"):
        loss(f, data)
    with pytest.raises(ValueError, match=r"give TreeRanker\.fit the labels by name"):
        TreeRanker(objectives.with_labels(loss, {"purchase": bought})).fit(TRAIN.X, TRAIN.y, TRAIN.qid)
    with pytest.raises(TypeError, match="takes a loss or an objective"):
        objectives.with_labels("cs_listmle", {"purchase": bought})
    with pytest.raises(TypeError, match=r"labels go by name.*got ndarray"):
        objectives.with_labels(loss, bought)
