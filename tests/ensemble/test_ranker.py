"""EnsembleRanker against sums by hand of members trained one by one."""

from __future__ import annotations

import threading
import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boostlist import EnsembleRanker, KernelRanker, LinearRanker, Queries, TreeRanker, metrics
from boostlist.boosters import lightgbm_host, sharing
from boostlist.ensemble import default_members, ranker, training
from tests.ensemble.data import DATA, EVAL, TEST, TRAIN, VALI, deviation_within, fitted, tree


def drawn(bag):
    """Return how often the queries of the training data are drawn into a bag, with seed 0."""
    seed = np.random.RandomState(0).randint(2**31 - 1, size=bag + 1)[bag]
    return np.random.RandomState(seed).multinomial(80, np.full(80, 1 / 80)).astype(float)


class Failing(LinearRanker):
    """Fails in fit, on some or on all bags."""

    def fit(self, X, y, qid=None, group=None, *, sample_weight=None, query_weight=None):
        if self.C == 1 or sample_weight[0] > 0:
            raise ZeroDivisionError("three by zero")
        return super().fit(X, y, qid, group, sample_weight=sample_weight)


class Constant(BaseEstimator):
    """An estimator of someone else's that takes qid, and scores by query."""

    def fit(self, X, y, qid):
        self.rows_ = len(qid)
        return self

    def predict(self, X):
        return np.full(len(X), 3.7)


def test_the_sum_is_that_of_members_in_units_of_their_spread():
    model = fitted(weights=[3, 2, 1])
    total = 0
    for weight, member in zip((3, 2, 1), model.members, strict=True):
        single = clone(member).fit(TRAIN.X, TRAIN.y, TRAIN.qid)
        total += weight / 6 * single.predict(TEST.X) / deviation_within(single.predict(TRAIN.X), TRAIN)
    np.testing.assert_allclose(model.predict(TEST.X), total, rtol=1e-10)
    assert model.weights_ == {"listmle-1": 3 / 6, "cs_listmle": 2 / 6, "listmle-2": 1 / 6}
    assert model.score(TEST.X, TEST.y, TEST.qid) == metrics.NDCG(10).mean(total, TEST.queries)
    best = model.rank(TEST.X, TEST.qid)[0]
    assert total[best] == total[: TEST.queries.sizes[0]].max()


def test_validation_data_stops_members_and_measures_spreads():
    model = fitted([tree(n_estimators=60), LinearRanker()], fit={"eval_set": EVAL, "early_stopping_rounds": 3})
    single = tree(n_estimators=60).fit(TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=EVAL, early_stopping_rounds=3)
    part = model.parts_[0]
    assert part.estimator.n_estimators_ == single.n_estimators_ < 60
    assert part.spread == pytest.approx(deviation_within(single.predict(VALI.X), VALI), rel=1e-12)
    assert part.factor == pytest.approx(model.weights_["listmle"] / part.spread)


def test_importances_are_the_mean_of_the_members_by_weight():
    model = fitted([("a", tree()), ("b", tree("cs_listmle"))], weights={"a": 3, "b": 1}, n_bags=2, random_state=0)
    gain = {(part.name, part.bag): part.estimator.booster_.feature_importance("gain") for part in model.parts_}
    a0, b0, a1, b1 = (gain[which] / gain[which].sum() for which in (("a", 0), ("b", 0), ("a", 1), ("b", 1)))
    np.testing.assert_allclose(model.feature_importances_, 3 / 8 * (a0 + a1) + 1 / 8 * (b0 + b1))
    mixed = fitted([tree(), ("line", LinearRanker())])
    assert not hasattr(mixed, "feature_importances_")
    with pytest.raises(AttributeError, match="'line', a LinearRanker, has no importances"):
        _ = mixed.feature_importances_


def test_bags_are_bootstrap_samples_by_weight():
    model = fitted([tree(n_estimators=40), LinearRanker()], n_bags=3, fit={"early_stopping_rounds": 3})
    for bag in range(3):
        mine = [part for part in model.parts_ if part.bag == bag]
        out = (drawn(bag) == 0).astype(float)
        linear = LinearRanker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=drawn(bag))
        np.testing.assert_array_equal(mine[1].estimator.coef_, linear.coef_)
        assert mine[1].spread == pytest.approx(deviation_within(linear.predict(TRAIN.X), TRAIN, out), rel=1e-12)
        # The queries left out as data of their own: the same stopping, with a copy.
        left = TRAIN.select(np.flatnonzero(out))
        single = clone(mine[0].estimator).fit(
            TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=drawn(bag),
            eval_set=[(left.X, left.y, left.qid)], early_stopping_rounds=3,
        )  # fmt: skip
        np.testing.assert_array_equal(mine[0].estimator.predict(TEST.X), single.predict(TEST.X))
        assert mine[0].factor == pytest.approx(0.5 / (3 * mine[0].spread))


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_bags_do_not_depend_on_jobs_nor_on_further_bags(backend):
    members = [tree(backend=backend), tree("cs_listmle", backend=backend), KernelRanker(n_landmarks=20)]
    one, two = (fitted(members, n_bags=2, n_jobs=jobs, random_state=7) for jobs in (1, 2))
    np.testing.assert_array_equal(one.predict(TEST.X), two.predict(TEST.X))
    more = fitted(members, n_bags=3, random_state=7)
    for a, b in zip(one.parts_, more.parts_, strict=False):
        np.testing.assert_array_equal(a.estimator.predict(TEST.X), b.estimator.predict(TEST.X))
    assert not np.array_equal(fitted(members, n_bags=2, random_state=8).predict(TEST.X), one.predict(TEST.X))
    assert one.parts_[0].estimator.n_jobs is None


def test_weights_of_queries_multiply_those_of_bags():
    weight = np.r_[np.zeros(40), np.full(40, 2.0)]
    model = fitted([LinearRanker()], fit={"sample_weight": weight})
    half = TRAIN.select(np.arange(40, 80))
    alone = LinearRanker(C=1).fit(half.X, half.y, half.qid)
    np.testing.assert_allclose(model.parts_[0].estimator.coef_, alone.coef_, rtol=1e-6, atol=1e-12)
    bagged = fitted([LinearRanker()], n_bags=2, fit={"sample_weight": weight})
    expected = LinearRanker().fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=drawn(0) * weight)
    np.testing.assert_array_equal(bagged.parts_[0].estimator.coef_, expected.coef_)


def test_a_member_that_fails_is_named_and_by_choice_left_out():
    members = [("good", LinearRanker()), ("bad", Failing(C=1))]
    with pytest.raises(RuntimeError, match="member 'bad' failed: three by zero"):
        fitted(members)
    with pytest.warns(UserWarning, match="'bad' failed and is left out: ZeroDivisionError: three by zero"):
        model = fitted(members, on_error="drop", weights=[1, 5])
    assert model.weights_ == {"good": 1.0}
    assert model.dropped_ == {"bad": "ZeroDivisionError: three by zero"}
    np.testing.assert_allclose(model.predict(TEST.X), fitted([LinearRanker()]).predict(TEST.X))
    with pytest.raises(RuntimeError, match="all members failed: bad: ZeroDivisionError"):
        fitted(members[1:], on_error="drop")


def test_a_training_that_outlasts_a_failure_leaves_warnings_alone():
    workers, failed = [], threading.Event()

    class Slow(LinearRanker):
        def fit(self, X, y, qid=None, **options):
            workers.append(threading.current_thread())
            failed.wait(30)
            return super().fit(X, y, qid, **options)

    class FailingLater(Failing):
        def fit(self, X, y, qid=None, **options):
            while not workers:
                failed.wait(0.001)
            return super().fit(X, y, qid, **options)

    with pytest.raises(RuntimeError, match="'later' failed"):
        fitted([("slow", Slow()), ("later", FailingLater(C=1))], n_jobs=2)
    with warnings.catch_warnings(record=True) as caught:
        failed.set()
        workers[0].join(30)
        warnings.warn("heard", stacklevel=1)
    assert [str(each.message) for each in caught] == ["heard"]


def test_threads_have_the_configuration_of_scikit_learn():
    seen = []

    class Member(LinearRanker):
        def fit(self, X, y, qid=None, **options):
            seen.append(get_config()["assume_finite"])
            return super().fit(X, y, qid, **options)

    with config_context(assume_finite=True):
        fitted([Member(), Member()], n_jobs=2)
    assert seen == [True, True]


def test_a_member_fails_with_its_own_kind_of_error():
    with pytest.raises(ValueError, match="member 'cs_rglist' failed: C must be"):
        fitted([LinearRanker(C=-1)])


def test_a_member_may_fail_on_some_bags():
    with pytest.warns(UserWarning, match=r"'bad \(bag \d\)' failed"):
        model = fitted([("good", LinearRanker()), ("bad", Failing(C=2))], n_bags=4, on_error="drop", weights="fitted")
    left = [part for part in model.parts_ if part.name == "bad"]
    assert 0 < len(left) < 4
    assert left[0].factor == pytest.approx(model.weights_["bad"] / (len(left) * left[0].spread))


def test_a_member_without_spread_has_no_weight():
    with pytest.warns(UserWarning, match="'flat' gives the documents of a query the same score; its weight is 0"):
        model = fitted([("flat", Constant()), ("linear", LinearRanker())], weights=[9, 1])
    assert model.weights_ == {"flat": 0.0, "linear": 1.0}
    np.testing.assert_allclose(model.predict(TEST.X), fitted([LinearRanker()]).predict(TEST.X))
    with pytest.warns(UserWarning, match="'constant' gives"):
        assert not fitted([Constant()]).predict(TEST.X).any()


def test_members_of_other_libraries():
    from xgboost import XGBRanker

    member = XGBRanker(n_estimators=5, objective="rank:ndcg")
    model = fitted([member], n_bags=2)
    assert model.score(TEST.X, TEST.y, TEST.qid) > 0.6
    single = clone(member).set_params(random_state=model.parts_[0].estimator.random_state)
    single.fit(TRAIN.X, TRAIN.y, qid=np.repeat(np.arange(80), TRAIN.queries.sizes), sample_weight=drawn(0))
    np.testing.assert_array_equal(model.parts_[0].estimator.predict(TEST.X), single.predict(TEST.X))


def test_pipelines_transform_data_to_stop_on_too(tmp_path):
    pipeline = make_pipeline(StandardScaler(), tree(n_estimators=60), memory=str(tmp_path))
    model = fitted([pipeline], fit={"eval_set": EVAL, "early_stopping_rounds": 3})
    assert model.parts_[0].estimator.memory == str(tmp_path)
    scaler = StandardScaler().fit(TRAIN.X)
    valid = [(scaler.transform(VALI.X), VALI.y, VALI.qid)]
    single = tree(n_estimators=60).fit(
        scaler.transform(TRAIN.X), TRAIN.y, TRAIN.qid, eval_set=valid, early_stopping_rounds=3
    )
    np.testing.assert_array_equal(model.parts_[0].estimator.predict(TEST.X), single.predict(scaler.transform(TEST.X)))
    assert single.n_estimators_ < 60
    bagged = fitted([pipeline, make_pipeline(StandardScaler(), LinearRanker())], n_bags=2)
    assert bagged.parts_[0].estimator[-1].n_estimators_ < 60


def test_categories_reach_the_trees():
    X = (
        pd.DataFrame(np.asarray(DATA.X))
        .rename(columns=str)
        .assign(kind=pd.Categorical(["a", "b", "c"] * 600)[: len(DATA.y)])
    )
    model = EnsembleRanker([tree(), tree("cs_listmle")]).fit(X.assign(qid=DATA.qid), DATA.y)
    assert model.parts_[0].estimator.booster_.pandas_categorical == [["a", "b", "c"]]
    np.testing.assert_array_equal(model.predict(X), model.predict(X.assign(qid=0)))
    assert model.feature_names_in_[-1] == "kind"


def test_contributions_sum_to_the_score():
    model = fitted([tree(), tree("cs_listmle", backend="xgboost")])
    contributions = model.predict(TEST.X, pred_contrib=True)
    assert contributions.shape == (TEST.n_documents, 11)
    np.testing.assert_allclose(contributions.sum(axis=1), model.predict(TEST.X), atol=1e-5)
    first = model.parts_[0].estimator.predict(TEST.X, pred_contrib=True) * model.parts_[0].factor
    second = model.parts_[1].estimator.predict(TEST.X, pred_contrib=True) * model.parts_[1].factor
    np.testing.assert_allclose(contributions, first + second)
    with pytest.raises(ValueError, match="member 'cs_rglist', a LinearRanker, has no contributions"):
        fitted([tree(), LinearRanker()]).predict(TEST.X, pred_contrib=True)


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_the_spread_of_much_data_is_that_of_some_queries(kind, monkeypatch):
    monkeypatch.setattr(training, "_ENOUGH_DOCUMENTS", 300)
    X = {"array": TRAIN.X, "frame": pd.DataFrame(np.asarray(TRAIN.X)), "sparse": csr_matrix(TRAIN.X)}[kind]
    part = EnsembleRanker([LinearRanker()]).fit(X, TRAIN.y, TRAIN.qid).parts_[0]
    step = -(-TRAIN.n_documents // 300)
    assert step > 1
    some = TRAIN.select(np.arange(0, 80, step))
    assert part.spread == pytest.approx(deviation_within(part.estimator.coef_ @ np.asarray(some.X).T, some), rel=1e-9)


def test_lightgbm_finds_bins_once_for_all_members_and_bags(monkeypatch):
    made = []
    dataset = lightgbm_host._dataset
    monkeypatch.setattr(lightgbm_host, "_dataset", lambda *args: made.append(args[0].X is TRAIN.X) or dataset(*args))
    members = [tree(), tree("cs_listmle", num_leaves=15, extra_trees=True), tree(max_bin=7), tree("lambdarank")]
    together = fitted(members, n_bags=2, n_jobs=2)
    assert len(made) == 1 + 1 + 2
    assert not sharing._shelves
    made.clear()
    for part in together.parts_[:2]:
        alone = clone(part.estimator).fit(
            TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=drawn(0), early_stopping_rounds=50,
            eval_set=[(TRAIN.X, TRAIN.y, TRAIN.qid, drawn(0) == 0)],
        )  # fmt: skip
        np.testing.assert_array_equal(alone.predict(TEST.X), part.estimator.predict(TEST.X))
    assert len(made) == 2


@pytest.mark.parametrize("frame", [False, True])
def test_trainings_only_read_what_they_share(frame, monkeypatch):
    """LightGBM would name the features of validation data anew in every training, in a call that others do not see."""
    written = []
    name = lgb.Dataset.set_feature_name
    monkeypatch.setattr(
        lgb.Dataset, "set_feature_name", lambda self, names: written.append((id(self), names)) or name(self, names)
    )
    train, vali = (data.to_frame().drop(columns="label") if frame else data.X for data in (TRAIN, VALI))
    qid = () if frame else (VALI.qid,)
    model = EnsembleRanker([tree(), tree("cs_listmle"), tree("wub")], n_jobs=2)
    model.fit(train, TRAIN.y, None if frame else TRAIN.qid, eval_set=[(vali, VALI.y, *qid)])
    made = [who for who, names in written if names != "auto"]
    assert len(made) == 2 * frame  # once for each data set, when it is made
    named = model.parts_[2].estimator.booster_.feature_name()
    assert named == (list(model.feature_names_in_) if frame else [f"Column_{i}" for i in range(10)])


def test_progress(capsys):
    fitted([("one", tree()), ("two", LinearRanker())], verbose=True, n_bags=2, n_jobs=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "[1/4] one (bag 0)", "[2/4] two (bag 0)", "[3/4] one (bag 1)", "[4/4] two (bag 1)",
    ]  # fmt: skip
    assert "rounds, " in lines[0]


def test_the_default_panel():
    names = [name for name, _ in default_members()]
    assert len(set(names)) == len(names) >= 4
    model = EnsembleRanker().fit(TRAIN.X, TRAIN.y, TRAIN.qid)
    assert [part.name for part in model.parts_] == names
    assert {part.estimator.n_estimators_ for part in model.parts_} == {200}
    singles = [part.estimator.score(TEST.X, TEST.y, TEST.qid) for part in model.parts_]
    assert model.score(TEST.X, TEST.y, TEST.qid) > np.mean(singles)


@pytest.mark.parametrize(("n_bags", "eval_set", "stopped"), [(1, (), False), (1, EVAL, True), (2, (), True)])
def test_the_default_panel_has_more_rounds_where_boosting_may_stop(n_bags, eval_set, stopped):
    class Asked(EnsembleRanker):
        def _members(self, stopped):
            raise LookupError(stopped)

    with pytest.raises(LookupError, match=str(stopped)):
        Asked(n_bags=n_bags).fit(TRAIN.X, TRAIN.y, TRAIN.qid, eval_set=eval_set)
    rounds = [{member.n_estimators for _, member in EnsembleRanker()._members(each)} for each in (False, True)]
    assert max(rounds[0]) < min(rounds[1])


def test_names_of_the_default_panel():
    """LightGBM's trees have random thresholds; XGBoost has none."""
    names = [name for name, _ in default_members()]
    assert names[:3] == ["wub_7", "wub_15", "cs_listmle_7"]
    assert all(member.tree_parameters().extra_trees for _, member in default_members())
    (first, a), (second, b), *_ = default_members(backend="xgboost", n_estimators=3)
    assert (first, second) == ("wub_7", "wub_15")
    assert isinstance(a, TreeRanker)
    assert (a.backend, a.n_estimators, a.num_leaves, b.num_leaves) == ("xgboost", 3, 7, 15)
    assert not b.tree_parameters().extra_trees
    with pytest.raises(ValueError, match="backend must be one of 'lightgbm', 'xgboost', got 'catboost'"):
        default_members("catboost")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"members": []}, "members must be a list of estimators"),
        ({"members": tree()}, "members must be a list of estimators"),
        ({"members": [("a", LinearRanker()), ("a", tree())]}, "several members of the name 'a'"),
        ({"members": [("a__b", LinearRanker())]}, "without '__', got 'a__b'"),
        ({"members": [3]}, "member 'int' is no estimator"),
        ({"members": [StandardScaler()]}, "'standardscaler' is no estimator"),
        ({"members": ["cs_listmle"]}, r"'cs_listmle'; a loss is given as TreeRanker\('cs_listmle'\)"),
        ({"members": [Constant()], "n_bags": 2}, "member 'constant': fit of Constant takes no sample_weight"),
        ({"weights": "best"}, "weights must be one of 'uniform', 'fitted'"),
        ({"weights": "fitted"}, 'weights="fitted" needs data that the members are not trained on'),
        ({"weights": [1, 2]}, r"2 weights for 3 members \(listmle-1, cs_listmle, listmle-2\)"),
        ({"weights": {"a": 1}}, "weights are for a, but members are listmle-1"),
        ({"weights": [1, -1, 1]}, "not negative"),
        ({"n_bags": 0}, "n_bags must be a whole number"),
        ({"n_jobs": 0}, "n_jobs must be at least 1"),
        ({"on_error": "warn"}, "on_error must be one of 'raise', 'drop'"),
    ],
)
def test_what_cannot_be_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(**parameters)


def test_an_estimator_without_qid_is_refused():
    from lightgbm import LGBMRanker

    with pytest.raises(ValueError, match="member 'lgbmranker': fit of LGBMRanker takes no qid"):
        fitted([LGBMRanker(objective=None)])
    with pytest.raises(ValueError, match=r"eval_set\[0\] must be \(X, y, qid\)"):
        fitted(fit={"eval_set": [VALI]})
    with pytest.raises(ValueError, match=r"eval_set\[1\] must be \(X, y, qid\)"):
        fitted(fit={"eval_set": [*EVAL, (VALI.X,)]})


def test_a_query_weighs_what_its_rows_do_in_the_mean():
    queries = Queries.from_sizes(np.zeros(6), [2, 1, 3])
    np.testing.assert_allclose(ranker.weighed(queries, np.array([1.0, 2, 5, 0, 3, 6])).weight, [1.5, 5, 3])
    np.testing.assert_allclose(ranker.weighed(queries, np.array([1.0, 2, 5])).weight, [1, 2, 5])
