"""TreeRanker: both hosts, every way to pass queries, early stopping, batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from scipy.sparse import csr_matrix

import boostlist
from boostlist import Queries, metrics
from boostlist.boosters import Objective, lightgbm_early_stopping
from boostlist.boosters.batches import batch_bounds, release
from boostlist.boosters.evaluation import chosen_metrics
from boostlist.losses import CsListMLE, ListMLE, PairwiseLogistic, Pointwise, WeightedPL, registry
from tests.boosters.rankers import TEST, TRAIN, UNTRAINED, both_hosts, fitted, frame, ranker


@both_hosts
@pytest.mark.parametrize("name", registry)
def test_every_objective_learns(backend, name):
    model = fitted(backend, name)
    bound = model.objective_.loss.bind(TRAIN.queries)
    assert bound.value(model.predict(TRAIN.X)) < bound.value(np.zeros(TRAIN.n_documents))
    assert model.score(TEST.X, TEST.y, TEST.qid) > UNTRAINED + 0.1
    assert model.n_estimators_ == 12


@pytest.mark.parametrize("objective", ["cs_listmle", "weighted_pl"])
def test_hosts_agree_in_quality(objective):
    scores = [
        fitted(backend, objective, n_estimators=60, learning_rate=0.1).score(TEST.X, TEST.y, TEST.qid)
        for backend in ("lightgbm", "xgboost")
    ]
    assert min(scores) > UNTRAINED + 0.25
    assert abs(scores[0] - scores[1]) < 0.02


def test_is_lightgbm_with_the_objective():
    model = fitted(pointwise=0, min_child_weight=5, reg_lambda=2)
    params = {
        "objective": CsListMLE(),
        "learning_rate": 0.2,
        "num_leaves": 15,
        "min_sum_hessian_in_leaf": 5,
        "min_data_in_leaf": 1,
        "lambda_l2": 2,
        "verbose": -1,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
    }
    bare = lgb.train(params, lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.queries.sizes), 12)
    np.testing.assert_array_equal(model.predict(TEST.X), bare.predict(TEST.X))


def test_is_xgboost_with_the_objective():
    model = fitted("xgboost", pointwise=0, min_child_weight=5, reg_lambda=2)
    params = {
        "eta": 0.2,
        "max_leaves": 15,
        "max_depth": 0,
        "max_bin": 255,
        "grow_policy": "lossguide",
        "tree_method": "hist",
        "min_child_weight": 5,
        "lambda": 2,
        "base_score": 0,
        "nthread": 1,
    }
    bare = xgb.train(params, xgb.DMatrix(TRAIN.X, TRAIN.y, group=TRAIN.queries.sizes), 12, obj=CsListMLE())
    np.testing.assert_array_equal(model.predict(TEST.X), bare.predict(xgb.DMatrix(TEST.X)))


def test_pointwise_term_has_its_share_of_the_curvature():
    objective = fitted(pointwise=0.3).objective_
    (_, loss), (factor, term) = objective.loss.terms
    zeros = np.zeros(TRAIN.n_documents)
    diag = loss.bind(TRAIN.queries).gradient_hessian(zeros)[1]
    assert term == Pointwise(centred=True)
    assert factor == pytest.approx(0.3 * diag[diag > 0].mean(), rel=1e-6)
    total = objective.loss.bind(TRAIN.queries).gradient_hessian(zeros)[1]
    assert objective.scale == pytest.approx(1 / total[total > 0].mean(), rel=1e-6)


def test_pairwise_losses_have_no_pointwise_term_unless_asked():
    assert fitted(objective="pairwise_logistic").objective_.loss == PairwiseLogistic()
    assert len(fitted(objective="pairwise_logistic", pointwise=0.3).objective_.loss.terms) == 2
    assert fitted().objective_ == fitted(pointwise=0.3).objective_


def test_pointwise_targets_never_swamp_the_loss():
    y = TRAIN.y * 2
    terms = ranker().fit(TRAIN.X, y, TRAIN.qid).objective_.loss.terms
    assert terms[1][1] == Pointwise(targets="linear", centred=True)
    assert ranker(objective="listmle").fit(TRAIN.X, TRAIN.y * 100, TRAIN.qid).objective_.loss == ListMLE()


@both_hosts
def test_objectives_by_name_loss_and_scale(backend):
    expected = fitted(backend, "weighted_pl").predict(TEST.X)
    np.testing.assert_array_equal(fitted(backend, WeightedPL()).predict(TEST.X), expected)
    np.testing.assert_array_equal(fitted(backend, Objective(loss=WeightedPL())).predict(TEST.X), expected)
    assert fitted(backend, WeightedPL().objective(scale=2)).objective_.scale == 2
    with pytest.raises(TypeError, match="objective must be a loss of boostlist, its name"):
        fitted(backend, 3)
    with pytest.raises(ValueError, match=r"no objective 'cs_listml'; did you mean cs_listmle\?"):
        fitted(backend, "cs_listml")


@pytest.mark.parametrize(("backend", "name"), [("lightgbm", "lambdarank"), ("xgboost", "rank:ndcg")])
def test_host_objectives(backend, name):
    model = fitted(backend, name)
    assert model.objective_ == name
    assert model.score(TEST.X, TEST.y, TEST.qid) > UNTRAINED + 0.1
    native = (
        lgb.LGBMRanker(n_estimators=12, learning_rate=0.2, num_leaves=15, verbose=-1, n_jobs=1)
        if backend == "lightgbm"
        else xgb.XGBRanker(
            n_estimators=12, learning_rate=0.2, max_leaves=15, max_depth=0, grow_policy="lossguide", max_bin=255,
            objective=name, base_score=0, n_jobs=1,
        )
    )  # fmt: skip
    native.fit(TRAIN.X, TRAIN.y, group=TRAIN.queries.sizes)
    np.testing.assert_allclose(model.predict(TEST.X), native.predict(TEST.X), rtol=1e-6, atol=1e-6)


def test_unknown_objective_is_refused_by_the_host():
    with pytest.raises(lgb.basic.LightGBMError, match="Unknown objective type name: no_such"):
        fitted(objective="no_such")
    with pytest.raises(xgb.core.XGBoostError, match="Unknown objective function"):
        fitted("xgboost", objective="no_such")


def test_unknown_parameters_are_refused():
    with pytest.raises(ValueError, match="Unknown parameter: no_such"):
        fitted(no_such=1)
    with pytest.raises(ValueError, match=r'Parameters: \{ "no_such" \} are not used'):
        fitted("xgboost", no_such=1)
    with pytest.raises(ValueError, match='backend must be "lightgbm" or "xgboost", got \'catboost\''):
        fitted("catboost")


@both_hosts
def test_qid_group_and_column_are_the_same(backend):
    by_qid = fitted(backend).predict(TEST.X)
    by_group = ranker(backend).fit(TRAIN.X, TRAIN.y, group=TRAIN.queries.sizes)
    by_column = ranker(backend).fit(frame(TRAIN), TRAIN.y)
    np.testing.assert_array_equal(by_group.predict(TEST.X), by_qid)
    np.testing.assert_array_equal(by_column.predict(frame(TEST)), by_qid)
    assert by_column.feature_names_in_.tolist() == list(TRAIN.names)
    assert by_column.score(frame(TEST), TEST.y) == by_group.score(TEST.X, TEST.y, TEST.qid)
    with pytest.raises(ValueError, match=r"TreeRanker.fit needs the query of each row: .*metadata routing"):
        ranker(backend).fit(TRAIN.X, TRAIN.y)
    with pytest.raises(ValueError, match=r"reappears at row \d+"):
        ranker(backend).fit(TRAIN.X, TRAIN.y, np.arange(TRAIN.n_documents) % 7)


@both_hosts
def test_categorical_columns(backend):
    rng = np.random.default_rng(0)
    kinds = np.array(["book", "film", "song", "game", "play"])
    kind = rng.choice(kinds, TRAIN.n_documents)
    # Only an unordered split tells these from the rest.
    y = np.isin(kind, ["book", "song", "play"]).astype(float)
    X = pd.DataFrame({"kind": pd.Categorical(kind, kinds), "noise": rng.normal(size=len(y)), "qid": TRAIN.qid})
    model = ranker(backend, num_leaves=2).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.feature_importances_[0] > 0.99


@pytest.mark.parametrize("stop", [None, 3])
@pytest.mark.parametrize(("backend", "more"), [("lightgbm", {}), ("xgboost", {}), ("xgboost", {"booster": "dart"})])
def test_categories_are_known_by_their_names(backend, more, stop, tmp_path):
    if backend == "xgboost" and not hasattr(xgb.Booster, "get_categories"):
        pytest.skip("XGBoost before 3.1 knows categories by their codes")
    rng = np.random.default_rng(1)
    kinds = np.array(["book", "film", "song", "game"])
    kind = rng.choice(kinds, TRAIN.n_documents)
    y = np.searchsorted(np.sort(kinds), kind) + rng.integers(0, 2, len(kind))
    X = pd.DataFrame({"noise": rng.normal(size=len(y)), "kind": pd.Categorical(kind, kinds), "qid": TRAIN.qid})
    model = ranker(backend, **more).fit(X, y, eval_set=[(X, y)], early_stopping_rounds=stop)
    model.save(tmp_path / "model.json")
    reordered = X.assign(kind=X["kind"].cat.set_categories(kinds[[2, 0, 3, 1]]))
    for same in (model, boostlist.load(tmp_path / "model.json")):
        np.testing.assert_array_equal(same.predict(reordered), model.predict(X))


def test_sparse_equals_dense_in_lightgbm():
    X = np.where(TRAIN.X > 0.5, TRAIN.X, 0)
    dense = ranker().fit(X, TRAIN.y, TRAIN.qid).predict(X)
    np.testing.assert_array_equal(ranker().fit(csr_matrix(X), TRAIN.y, TRAIN.qid).predict(csr_matrix(X)), dense)


def test_sparse_zeros_are_missing_in_xgboost():
    X = np.where(TRAIN.X > 0.5, TRAIN.X, 0)
    model = ranker("xgboost").fit(csr_matrix(X), TRAIN.y, TRAIN.qid)
    missing = np.where(X == 0, np.nan, X)
    np.testing.assert_array_equal(model.predict(csr_matrix(X)), model.predict(missing))


@both_hosts
def test_missing_features_train_and_infinite_ones_do_not(backend):
    X = TRAIN.X.copy()
    X[::3, 0] = np.nan
    assert np.isfinite(ranker(backend).fit(X, TRAIN.y, TRAIN.qid).predict(X)).all()
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match="X is inf in row 7, feature 2"):
        ranker(backend).fit(X, TRAIN.y, TRAIN.qid)


@both_hosts
def test_weights_by_query_and_by_document(backend):
    weight = 1.0 + np.arange(TRAIN.n_queries) % 3
    by_document = np.repeat(weight, TRAIN.queries.sizes)
    a = ranker(backend).fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=weight)
    b = ranker(backend).fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=by_document)
    np.testing.assert_array_equal(a.predict(TEST.X), b.predict(TEST.X))
    assert not np.array_equal(a.predict(TEST.X), fitted(backend).predict(TEST.X))
    uneven = 1.0 + np.arange(TRAIN.n_documents) % 2
    c = ranker(backend).fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=uneven)
    assert not np.array_equal(c.predict(TEST.X), fitted(backend).predict(TEST.X))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\); give one weight for each of the"):
        ranker(backend).fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=[1, 2, 3])


def test_uneven_weights_are_refused_by_xgboosts_own_objective():
    with pytest.raises(ValueError, match="rank:ndcg takes one weight a query"):
        ranker("xgboost", "rank:ndcg").fit(
            TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=1.0 + np.arange(TRAIN.n_documents) % 2
        )


@both_hosts
def test_history_is_the_metric_of_the_predictions(backend):
    chosen = ["ndcg@5", metrics.MRR()]
    model = ranker(backend).fit(
        TRAIN.X, TRAIN.y, TRAIN.qid,
        eval_set=[(TRAIN.X, TRAIN.y, TRAIN.qid), (TEST.X, TEST.y, TEST.qid)], eval_metric=chosen,
    )  # fmt: skip
    for name, data in (("valid_0", TRAIN), ("valid_1", TEST)):
        for metric in (metrics.NDCG(5), metrics.MRR()):
            values = model.evals_result_[name][metric.name]
            assert len(values) == 12
            assert values[-1] == pytest.approx(metric.mean(model.predict(data.X), data.queries), abs=1e-6)


@dataclass(frozen=True)
class Badness(metrics.NDCG):
    """NDCG to be made small, to see that the direction is the metric's own."""

    prefix: ClassVar[str] = "badness"
    higher_is_better: ClassVar[bool] = False


@both_hosts
@pytest.mark.parametrize("metric", [metrics.ERR(5, max_grade=4), metrics.MRR(), Badness(10)], ids=lambda m: m.name)
def test_early_stopping_goes_in_the_direction_of_the_metric(backend, metric):
    model = ranker(backend, n_estimators=60, learning_rate=0.5).fit(
        TRAIN.X, TRAIN.y, TRAIN.qid,
        eval_set=[(TRAIN.X, TRAIN.y, TRAIN.qid), (TEST.X, TEST.y, TEST.qid)],
        eval_metric=metric, early_stopping_rounds=4,
    )  # fmt: skip
    values = model.evals_result_["valid_1"][metric.name]
    best = int(np.argmax(values) if metric.higher_is_better else np.argmin(values))
    assert len(values) == best + 1 + 4
    assert model.n_estimators_ == best + 1
    assert metric.mean(model.predict(TEST.X), TEST.queries) == pytest.approx(values[best], abs=1e-6)


def test_early_stopping_needs_data():
    with pytest.raises(ValueError, match="early_stopping_rounds needs data to evaluate on"):
        ranker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, early_stopping_rounds=3)
    with pytest.raises(ValueError, match=r"eval_set\[0\] must be \(X, y, qid\)"):
        ranker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=[TEST.X])
    with pytest.raises(ValueError, match=r"eval_set\[0\]: TreeRanker.fit needs the query of each row"):
        ranker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=[(TEST.X, TEST.y)])
    with pytest.raises(ValueError, match=r"eval_set\[1\]: labels\[0\] is -1.* drop unjudged documents"):
        ranker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=[(TEST.X, y, TEST.qid) for y in (TEST.y, TEST.y * 0 - 1)])
    for bad in (0, True, "3"):
        with pytest.raises(
            ValueError, match=f"early_stopping_rounds must be a whole number of at least 1, or None.*{bad}"
        ):
            ranker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=[(TEST.X, TEST.y, TEST.qid)], early_stopping_rounds=bad)
    for bad in (None, metrics.NDCG):
        with pytest.raises(TypeError, match="a metric is given by its name"):
            ranker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, eval_metric=bad)


@both_hosts
def test_nothing_to_learn(backend):
    with pytest.warns(UserWarning, match="no query has documents of different grades"):
        ranker(backend=backend, n_estimators=1).fit(TRAIN.X, TRAIN.y, np.arange(len(TRAIN.y)))
    for bad in ({"n_estimators": 0}, {"pointwise": -1}, {"objective": "CS_ListMLE"}):
        with pytest.raises(ValueError, match=r"n_estimators must be|pointwise must be|did you mean cs_listmle"):
            ranker(backend=backend, **bad).fit(TRAIN.X, TRAIN.y, TRAIN.qid)


@both_hosts
def test_host_parameters_reach_the_host(backend):
    names = {
        "lightgbm": {"monotone_constraints": [-1] + [0] * 11},
        "xgboost": {"monotone_constraints": (-1, *[0] * 11)},
    }
    model = fitted(backend, **names[backend])
    X = np.repeat(TEST.X[:20], 30, axis=0)
    X[:, 0] = np.tile(np.linspace(-3, 3, 30), 20)
    falls = np.diff(model.predict(X).reshape(20, 30), axis=1)
    assert (falls <= 1e-6).all()
    free = np.diff(fitted(backend).predict(X).reshape(20, 30), axis=1)
    assert (free > 0.01).any()
    # The host's own name wins over the translated one.
    rate = {"lightgbm": {"shrinkage_rate": 0.05}, "xgboost": {"eta": 0.05}}[backend]
    np.testing.assert_array_equal(fitted(backend, **rate).predict(X), fitted(backend, learning_rate=0.05).predict(X))


@both_hosts
def test_contributions_sum_to_the_score(backend):
    model = fitted(backend)
    contributions = model.predict(TEST.X, pred_contrib=True)
    assert contributions.shape == (TEST.n_documents, 13)
    np.testing.assert_allclose(contributions.sum(axis=1), model.predict(TEST.X), atol=1e-5)


@both_hosts
def test_same_seed_same_model(backend):
    def predictions(seed):
        return fitted(backend, subsample=0.6, colsample_bytree=0.7, random_state=seed).predict(TEST.X)

    np.testing.assert_array_equal(predictions(1), predictions(1))
    np.testing.assert_array_equal(predictions(np.random.RandomState(1)), predictions(np.random.RandomState(1)))
    assert not np.array_equal(predictions(1), predictions(2))


@both_hosts
def test_rank(backend):
    model = fitted(backend)
    scores = model.predict(TEST.X)
    expected = np.concatenate([
        lo + np.argsort(-scores[lo:hi], kind="stable")
        for lo, hi in zip(TEST.queries.start[:-1], TEST.queries.start[1:], strict=True)
    ])  # fmt: skip
    np.testing.assert_array_equal(model.rank(TEST.X, TEST.qid), expected)
    np.testing.assert_array_equal(model.rank(TEST.X, group=TEST.queries.sizes), expected)
    np.testing.assert_array_equal(model.rank(TEST.X[:9]), np.argsort(-scores[:9], kind="stable"))
    with pytest.raises(ValueError, match="there are 3 query ids for"):
        model.rank(TEST.X, [1, 1, 2])


@both_hosts
def test_importances(backend):
    X = np.column_stack([np.zeros(TRAIN.n_documents), TRAIN.y])
    np.testing.assert_array_equal(ranker(backend).fit(X, TRAIN.y, TRAIN.qid).feature_importances_, [0, 1])


@both_hosts
def test_batches_from_a_mapped_file(backend, tmp_path):
    mapped = np.memmap(tmp_path / "X", np.float32, "w+", shape=TRAIN.X.shape)
    mapped[:] = TRAIN.X
    mapped.flush()
    X = np.memmap(tmp_path / "X", np.float32, "r", shape=TRAIN.X.shape)
    model = ranker(backend).fit(
        X, TRAIN.y, TRAIN.qid, batch_rows=300, eval_set=[(TEST.X, TEST.y, TEST.qid)], early_stopping_rounds=12
    )
    whole = ranker(backend).fit(
        TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=[(TEST.X, TEST.y, TEST.qid)], early_stopping_rounds=12
    )
    # XGBoost merges the quantiles of batches, so that bins differ a little.
    if backend == "lightgbm":
        np.testing.assert_array_equal(model.predict(TEST.X), whole.predict(TEST.X))
    assert model.score(TEST.X, TEST.y, TEST.qid) == pytest.approx(whole.score(TEST.X, TEST.y, TEST.qid), abs=0.03)
    with pytest.raises(ValueError, match=r"batch_rows reads rows of an array, .* X is a DataFrame"):
        ranker(backend).fit(frame(TRAIN), TRAIN.y, batch_rows=10)


def test_batches_hold_whole_queries():
    np.testing.assert_array_equal(batch_bounds(np.array([0, 4, 5, 9, 11]), 5), [0, 5, 11])
    np.testing.assert_array_equal(batch_bounds(np.array([0, 4, 5, 9, 11]), 1), [0, 4, 5, 9, 11])
    np.testing.assert_array_equal(batch_bounds(np.array([0, 4, 5, 9, 11]), 100), [0, 11])


def test_queries_of_the_metric_are_the_rankers():
    """The score is the mean NDCG@10 of the predictions."""
    model = fitted()
    expected = metrics.NDCG(10).mean(model.predict(TEST.X), Queries.from_qid(TEST.y, TEST.qid))
    assert model.score(TEST.X, TEST.y, TEST.qid) == expected


@pytest.mark.parametrize(("backend", "name"), [("lightgbm", "lambdarank"), ("xgboost", "rank:ndcg")])
def test_host_objectives_get_query_weights(backend, name):
    weight = 1.0 + 9 * (np.arange(TRAIN.n_queries) % 2)
    model = ranker(backend, name).fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=weight)
    assert not np.array_equal(model.predict(TEST.X), fitted(backend, name).predict(TEST.X))


@both_hosts
def test_training_to_the_end_keeps_the_best_round_too(backend):
    model = ranker(backend, n_estimators=15, learning_rate=0.9).fit(
        TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=[(TEST.X, TEST.y, TEST.qid)], early_stopping_rounds=50
    )
    values = model.evals_result_["valid_0"]["ndcg@10"]
    assert len(values) == 15
    assert model.n_estimators_ == int(np.argmax(values)) + 1 < 15


def test_a_callback_serves_several_trainings():
    stop = lightgbm_early_stopping(metrics.NDCG(10), 2, data_name="valid_0")
    rounds = []
    for _ in range(2):
        train = lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.queries.sizes)
        valid = lgb.Dataset(TEST.X, TEST.y, group=TEST.queries.sizes, reference=train)
        params = {"objective": CsListMLE(), "learning_rate": 0.9, "num_threads": 1, "verbose": -1, "metric": "None"}
        booster = lgb.train(params, train, 40, valid_sets=[valid], feval=metrics.NDCG(10), callbacks=[stop])
        rounds.append((booster.best_iteration, booster.current_iteration()))
    assert rounds[0] == rounds[1]


@both_hosts
def test_err_has_the_largest_grade_of_training_and_validation(backend):
    y = np.minimum(TEST.y, 1)
    model = ranker(backend).fit(
        TRAIN.X,
        TRAIN.y,
        TRAIN.qid,
        eval_set=[(TEST.X, y, TEST.qid)],
        eval_metric=["err@5", metrics.ERR(3, max_grade=2)],
    )
    queries = Queries.from_qid(y, TEST.qid)
    expected = metrics.ERR(5, max_grade=TRAIN.y.max()).mean(model.predict(TEST.X), queries)
    assert model.evals_result_["valid_0"]["err@5"][-1] == pytest.approx(expected, abs=1e-6)
    assert expected < 0.5 * metrics.ERR(5).mean(model.predict(TEST.X), queries)


@both_hosts
def test_the_training_data_may_weigh_otherwise_where_it_is_evaluated(backend):
    queries = Queries.from_qid(TRAIN.y, TRAIN.qid)
    weight = np.arange(queries.n_queries) % 3.0
    model = ranker(backend).fit(
        TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=[(TRAIN.X, TRAIN.y, TRAIN.qid, weight)], eval_metric="ndcg@5",
    )  # fmt: skip
    expected = metrics.NDCG(5).mean(model.predict(TRAIN.X), queries.with_weight(weight))
    assert model.evals_result_["valid_0"]["ndcg@5"][-1] == pytest.approx(expected, abs=1e-6)
    assert expected != pytest.approx(metrics.NDCG(5).mean(model.predict(TRAIN.X), queries), abs=1e-4)


def test_the_largest_grade_may_be_below_1():
    data = [Queries.from_sizes(labels, [3]) for labels in ([0, 0.5, 0], [0.25, 0, 0])]
    assert chosen_metrics(["err", "ndcg@3"], data) == [metrics.ERR(max_grade=0.5), metrics.NDCG(3)]


@pytest.mark.parametrize("rows", [0, -3])
@both_hosts
def test_batches_of_no_rows(backend, rows):
    with pytest.raises(ValueError, match=f"batch_rows must be a whole number of at least 1, got {rows}"):
        ranker(backend).fit(TRAIN.X, TRAIN.y, TRAIN.qid, batch_rows=rows)


def test_changes_in_memory_are_not_given_back(tmp_path):
    (tmp_path / "X").write_bytes(bytes(8 * 4096))
    changed = np.memmap(tmp_path / "X", np.float64, "c")
    changed[:] = 7
    release(changed)
    np.testing.assert_array_equal(changed, 7)
