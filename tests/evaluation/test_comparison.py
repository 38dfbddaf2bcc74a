from __future__ import annotations

import re
import subprocess
import sys
import threading
import time

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats
from sklearn import config_context
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import boostlist
from boostlist import LinearRanker
from boostlist.datasets import Fold, RankingData, make_ranking, write_letor
from boostlist.evaluation import tables
from boostlist.evaluation.comparison import Comparison, make_plan
from boostlist.evaluation.lineup import contenders
from boostlist.evaluation.search import check_search
from boostlist.evaluation.sources import make_source
from boostlist.evaluation.summary import summarize
from boostlist.evaluation.training import Failure, Trainer, features
from boostlist.losses import ListMLE
from boostlist.metrics import get
from tests.evaluation.made_up import made_up

PLAN = {
    "baseline": None,
    "folds": [1],
    "repeats": 1,
    "metrics": ["map"],
    "select": None,
    "grid": None,
    "tune": None,
    "search": "random",
    "keep_models": False,
    "seed": 0,
}
QUICK = {"folds": [1, 2], "metrics": ["ndcg@5", "map"], "jobs": 1}


@pytest.fixture(scope="module")
def data():
    return make_ranking(40, docs=6, seed=3)


@pytest.fixture
def found(data, threads):
    models = {"ridge": Ridge(), "first": lambda X: X[:, 0], "second": lambda X: X[:, 1]}
    return boostlist.compare(data, models, baseline="first", **QUICK)


def test_any_estimator_or_function_stands_in_the_table(found, data):
    table = found.table().set_index("model")
    assert set(table.index) == {"ridge", "first", "second"}
    assert found.best == found.models[0] == table["ndcg@5"].idxmax()
    queries = found.per_query()
    for fold in (1, 2):
        part = found.summary.plan.source.load(fold)
        for name, scores in (
            ("first", part.test.X[:, 0]),
            ("ridge", Ridge().fit(part.train.X, part.train.y).predict(part.test.X)),
        ):
            mine = queries[(queries["model"] == name) & (queries["fold"] == fold)]
            np.testing.assert_allclose(mine["map"], get("map").per_query(scores, part.test.queries))
            frame = found.scores()
            np.testing.assert_allclose(frame.loc[frame["fold"] == fold, name], scores)
            np.testing.assert_array_equal(frame.loc[frame["fold"] == fold, "label"], part.test.y)
            np.testing.assert_array_equal(frame.loc[frame["fold"] == fold, "qid"], part.test.qid.astype(str))
    assert table.loc["first", "map"] == pytest.approx(queries[queries["model"] == "first"]["map"].mean())
    assert np.isnan(table.loc["first", "difference"])
    assert table.loc["ridge", "difference"] == pytest.approx(
        table.loc["ridge", "ndcg@5"] - table.loc["first", "ndcg@5"]
    )


def test_significance_of_two(found):
    queries = found.per_query().pivot(index=["fold", "qid"], columns="model", values="map")
    test = found.significance("ridge", "second", "map")
    assert test.difference == pytest.approx((queries["ridge"] - queries["second"]).mean())
    assert test.t_test == pytest.approx(stats.ttest_rel(queries["ridge"], queries["second"]).pvalue)
    with pytest.raises(ValueError, match="no results of 'third'; there are of"):
        found.significance("ridge", "third")
    with pytest.raises(ValueError, match="err was not measured"):
        found.significance("ridge", "first", "err")


def test_two_models_of_other_folds_are_not_compared(tmp_path):
    (tmp_path / "d.txt").write_text("x")
    outcome = made_up(tmp_path / "d.txt")
    outcome.results[:] = [r for r in outcome.results if (r.model, r.fold) != ("kernel:cs_listmle", 3)]
    task = next(t for t in outcome.plan.tasks() if (t.model.name, t.fold) == ("kernel:cs_listmle", 3))
    outcome.failures.append(Failure(task, "lost"))
    found = Comparison(summarize(outcome))
    with pytest.raises(ValueError, match=r"kernel:cs_listmle has results of the folds \(1, 2\), linear:cs_listmle of"):
        found.significance("kernel:cs_listmle", "linear:cs_listmle")


def test_data_with_positions_and_categories(data):
    """What is not used or left out is said; models that were asked for by name stay, and so does the baseline."""
    frame = data.to_frame().assign(position=1, kind="a").astype({"kind": "category"})
    plan = make_plan(frame, ["default", "linear:listnet"], **PLAN | {"baseline": "ranksvm"})
    kept = {model.name for model in plan.models}
    assert {"lightgbm:lambdarank", "ensemble", "linear:listnet", "ranksvm"} < kept
    assert plan.notes == (
        "labels are taken at face value: the positions of the data are not used; see docs/clicks.md",
        "left out, since they take no categories: linear:cs_rglist, kernel:cs_listmle",
    )
    assert make_plan(data, "default", **PLAN).notes == ()
    folds = [Fold(1, data, data, RankingData.from_frame(frame))]
    assert make_plan(folds, "default", **PLAN).notes == ()
    folds = [Fold(1, RankingData.from_frame(frame), data, data)]
    assert len(make_plan(folds, "default", **PLAN).notes) == 2


def test_a_note_is_a_warning_in_python(data, threads):
    frame = data.to_frame().assign(position=1)
    with pytest.warns(UserWarning, match="positions of the data are not used"):
        found = boostlist.compare(frame, lambda X: X[:, 0], **QUICK)
    for text in (str(found), found.to_markdown(), found._repr_html_(), found.to_json()):
        assert "positions of the data are not used" in text


def test_differences_of_nothing_have_no_minus(found):
    assert tables.signed(-1e-5) == tables.signed(0.0) == "0.0000"
    assert [tables.signed(d) for d in (-1e-4, 1e-4)] == ["-0.0001", "+0.0001"]
    assert tables.signed(-6e-5) == "-0.0001"


def test_times_are_of_the_processor(data, monkeypatch):
    plan = make_plan(data, {"first": lambda X: X[:, 0]}, **PLAN)
    clock = iter([5.0, 8.0, 15.0])
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    result = Trainer(plan.source, plan.select, plan.measured).run(plan.tasks()[0])
    assert (result.train_seconds, result.rank_seconds) == (3.0, 7.0)


def test_trees_stop_by_the_selection_metric_on_the_validation_part(data):
    pytest.importorskip("lightgbm")
    fold = make_source(data).load(1)
    (model,) = contenders("lightgbm:lambdarank")
    setting = {"n_estimators": 60, "num_leaves": 4, "min_child_weight": 0.0, "early_stopping_rounds": 3}
    trained = model.fit(setting, fold.train, fold.vali, get("map"), 0)
    assert trained.rounds + 3 == len(trained.history["rounds"]) < 60
    kept = get("map").mean(trained.scores(fold.vali), fold.vali.queries)
    assert kept == pytest.approx(trained.history["rounds"][trained.rounds - 1]) == max(trained.history["rounds"])
    assert trained.objective == "lambdarank"
    (own,) = contenders("lightgbm:listnet")
    assert re.search(
        r"ListNet\(.*\) \+ 0\.\d+ \* Pointwise", own.fit({"n_estimators": 2}, *fold_parts(fold), 0).objective
    )


def fold_parts(fold):
    return fold.train, fold.vali, get("map")


def test_features_are_normalised_by_the_training_part(data):
    fold = make_source(data).load(1)
    train, vali, test = features(fold, {"features": "zscore"})
    mean, deviation = fold.train.X.mean(axis=0), fold.train.X.std(axis=0)
    for part, given in ((train, fold.train), (vali, fold.vali), (test, fold.test)):
        np.testing.assert_allclose(part.X, (given.X - mean) / deviation, atol=1e-4)
    assert features(fold, {}) == (fold.train, fold.vali, fold.test)


def test_the_table_for_papers_and_notebooks(data, threads):
    hostile = "a_b&c|<i>$d$"
    found = boostlist.compare(data, {hostile: lambda X: X.mean(axis=1), "mean": lambda X: -X.mean(axis=1)}, **QUICK)
    value = f"{found.table().set_index('model').loc[hostile, 'ndcg@5']:.4f}"
    assert rf"a\_b\&c|<i>\$d\$ & \textbf{{{value}}} & " in found.to_latex()
    assert found.to_latex().startswith(
        "\\begin{tabular}{lrrrr}\n\\toprule\nmodel & ndcg@5 & map & difference & $p$ \\\\\n"
    )
    assert f"| 1 | **a_b&c\\|\\<i\\>$d$** | **{value}** |" in found.to_markdown()
    assert re.search(rf"left\">a_b&amp;c\|&lt;i&gt;\$d\$</td><td[^>]*right\">{value}</td>", found._repr_html_())
    assert "<i>" not in found._repr_html_()
    assert value in str(found)


def test_figures_are_drawn_on_axes(found, data, threads):
    matplotlib.use("agg")
    axes = found.plot.bars()
    widths = {
        label.get_text(): bar.get_width() for label, bar in zip(axes.get_yticklabels(), axes.patches, strict=True)
    }
    table = found.table().set_index("model")
    assert widths == {name: pytest.approx(table.loc[name, "ndcg@5"]) for name in table.index}
    mine = Figure().add_subplot()
    assert found.plot.ndcg(mine) is mine
    assert [text.get_text() for text in mine.get_legend().get_texts()] == found.models
    line = mine.get_legend().get_lines()[0]
    assert mine.get_lines()[-1].get_color() == line.get_color()
    curve = mine.get_lines()[-1].get_ydata()
    assert curve[9] == pytest.approx(found.per_query().groupby("model")["ndcg@10"].mean()[found.best])
    for name in ("differences", "ndcg_differences", "folds"):
        assert getattr(found.plot, name)().get_xlabel()
    assert found.plot.win_loss("ridge", "first").get_ylabel() == "ndcg@5: ridge − first"
    with pytest.raises(ValueError, match="nothing to draw: no model of this comparison has what learning shows"):
        found.plot.learning()


def test_the_report(found, tmp_path):
    page = found.report(tmp_path / "deep" / "report")
    assert page.name == "report.html"
    assert f"<b>{found.best}</b> ranks best" in page.read_text()
    frame = pd.read_parquet(page.parent / "scores.parquet")
    np.testing.assert_allclose(frame["ridge"], found.scores()["ridge"])


def test_models_that_fail(data, threads):
    found = boostlist.compare(data, {"bad": lambda X: X[:3, 0], "nan": lambda X: X[:, 0] * np.nan}, **QUICK)
    assert "gave scores of shape (3,)" in found.failures["bad"]
    assert "gave the score nan to document 0" in found.failures["nan"]
    assert "no model" in str(found)
    with pytest.raises(ValueError, match="no model has results; bad: failed: ValueError"):
        _ = found.best
    with pytest.raises(ValueError, match="no model has results"):
        found.report("nowhere")


class OwnRanker:
    """An estimator that is not scikit-learn's, and wants the queries."""

    def fit(self, X, y, qid):
        assert len(qid) == len(y)
        self.mean_ = X.mean(axis=0)
        return self

    def predict(self, X):
        return X @ self.mean_


class SizesRanker(OwnRanker):
    def fit(self, X, y, group):
        assert sum(group) == len(y)
        return super().fit(X, y, y)


def test_queries_are_given_to_those_who_ask(data, threads):
    found = boostlist.compare(data, [OwnRanker(), {"SizesRanker": SizesRanker()}, LinearRegression()], **QUICK)
    assert found.failures == {}
    assert set(found.models) == {"OwnRanker", "SizesRanker", "LinearRegression"}
    np.testing.assert_array_equal(found.scores()["OwnRanker"], found.scores()["SizesRanker"])


def test_a_grid_for_an_estimator(data, threads):
    found = boostlist.compare(data, {"ridge": Ridge()}, grid={"ridge": {"alpha": [1e-3, 1e6]}}, **QUICK)
    results = found.results()
    assert set(results["setting"]) == {"alpha=0.001", "alpha=1e+06"}
    assert len(results) == 4


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "no models given"),
        ([Ridge(), Ridge()], "two models are called Ridge; give them names"),
        ([3], "3 is no model: give a name, an estimator"),
        ({"a": "linear:listnet"}, "has its name already"),
        (["run:nowhere.txt"], "there is no file nowhere.txt"),
        (["catboost:YetiRang"], "did you mean catboost:YetiRank"),
        ({"locked": threading.Lock().acquire}, "model locked cannot be sent to another process: cannot pickle"),
    ],
)
def test_models_that_are_none(data, models, message):
    with pytest.raises(ValueError, match=message):
        boostlist.compare(data, models)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": [6]}, "data has the folds 1, 2, 3, 4, 5, not 6"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"tune": 0}, "tune must be at least 1"),
        ({"tune": 2, "search": "grid"}, "search is one of random, optuna, got 'grid'"),
        ({"metrics": []}, "no metrics given"),
        ({"keep_models": True}, "keep_models needs a folder"),
        ({"data": 5}, "no data"),
        ({"data": "nowhere"}, "there is no folder or file nowhere"),
        ({"data": None, "repeats": 2}, "the folds are given, and cannot be repeated"),
        ({"data": make_ranking(4, seed=1)}, "has 4 queries; at least 5"),
    ],
)
def test_arguments_that_cannot_be_carried_out(data, arguments, message):
    with pytest.raises((ValueError, OSError, TypeError), match=message):
        boostlist.compare(**{"data": data, "models": "linear:listnet", **arguments})


def test_data_in_many_forms(data, threads, tmp_path):
    model = {"first": lambda X: X[:, 0]}
    expected = boostlist.compare(data, model, **QUICK).table()["map"][0]
    frame = data.to_frame()
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    for form in (frame, tmp_path / "d.csv", str(tmp_path / "d.parquet")):
        assert boostlist.compare(form, model, **QUICK).table()["map"][0] == pytest.approx(expected)
    parts = data.split(*[0.2] * 5, seed=0)
    folds = [Fold(k, RankingData.concat(parts[:3]), parts[3], parts[k + 2]) for k in (1, 2)]
    given = boostlist.compare(folds, model, **QUICK)
    tested = np.concatenate([get("map").per_query(fold.test.X[:, 0], fold.test.queries) for fold in folds])
    assert given.table()["map"][0] == pytest.approx(tested.mean())


def test_err_has_the_scale_of_all_folds(data, threads):
    low = RankingData(data.X, np.minimum(data.y, 1), data.qid)
    parts, low_parts = (each.split(*[0.2] * 5, seed=0) for each in (data, low))
    folds = [Fold(k, RankingData.concat(each[:3]), each[3], each[4]) for k, each in ((1, low_parts), (2, parts))]
    found = boostlist.compare(folds, {"first": lambda X: X[:, 0]}, metrics=["err"], jobs=1)
    queries = found.per_query()
    top = max(part.y.max() for part in parts)
    assert low_parts[4].y.max() < top
    expected = get("err", max_grade=top).per_query(folds[0].test.X[:, 0], folds[0].test.queries)
    np.testing.assert_allclose(queries.loc[queries["fold"] == 1, "err"], expected)


def test_several_labels(data, threads, tmp_path):
    named = {"click": data.y, "purchase": (data.X[:, 1] > np.median(data.X[:, 1])) / 2}
    both = RankingData(data.X, named, data.qid)
    loss = ListMLE(label="click") + ListMLE(label="purchase")
    found = boostlist.compare(
        both,
        [
            {"both": LinearRanker(loss), "ridge": Ridge()},
            "linear:listmle?label=purchase",
            "lightgbm:pairwise_logistic?label=purchase&n_estimators=3",
        ],
        **QUICK | {"metrics": ["ndcg@5:purchase", "err:purchase", "ndcg@5:click", "ndcg@5"]},
        baseline="ridge",
    )
    table = found.table().set_index("model")
    assert len(table) == 4
    np.testing.assert_array_equal(table["ndcg@5"], table["ndcg@5:click"])
    bought = table["ndcg@5:purchase"]
    assert bought["linear:listmle?label=purchase"] > bought["both"] > bought["ridge"]
    part = found.summary.plan.source.load(1)
    assert list(part.test.labels) == ["click", "purchase"]
    alone = LinearRanker(loss).fit(part.train.X, part.train.targets, part.train.qid).predict(part.test.X)
    queries = found.per_query()
    rows = (queries["fold"] == 1) & (queries["model"] == "both")
    expected = get("err:purchase", max_grade=0.5).per_query(alone, part.test.queries)
    np.testing.assert_allclose(queries.loc[rows, "err:purchase"], expected)
    assert found.report(tmp_path / "report.html").exists()


def test_a_ranker_at_the_end_of_a_pipeline_gets_all_labels(data):
    both = RankingData(data.X, {"click": data.y, "purchase": data.y > 1}, data.qid)
    steps = (StandardScaler(), LinearRanker(ListMLE(label="click") + 3 * ListMLE(label="purchase")))
    with config_context(enable_metadata_routing=True):
        (guest,) = contenders([{"pipeline": make_pipeline(*steps)}])
        scores = guest.fit({}, both, both, get("ndcg@5"), 0).scores(both)
    scaled = steps[0].fit_transform(data.X)
    np.testing.assert_allclose(scores, steps[1].fit(scaled, both.targets, data.qid).predict(scaled))


def test_a_query_tested_twice_counts_once(data, threads):
    found = boostlist.compare(
        data, {"first": lambda X: X[:, 0], "second": lambda X: X[:, 1]}, repeats=2, metrics=["map"], jobs=1
    )
    queries = found.per_query()
    assert sorted(queries["fold"].unique()) == list(range(1, 11))
    assert len(queries) == 2 * 2 * 40
    means = queries.groupby(["model", "qid"])["map"].mean().unstack(0)
    test = found.significance("first", "second")
    assert test.n_queries == 40
    assert test.t_test == pytest.approx(stats.ttest_rel(means["first"], means["second"]).pvalue)
    assert "Means over 40 test queries of 10 folds of data, cut in 2 ways" in str(found)
    assert found.summary.fact("length").shape == (40,)
    firsts = [np.unique(found.summary.plan.source.load(fold).test.qid) for fold in (1, 6)]
    assert firsts[0].tolist() != firsts[1].tolist()


def test_a_column_of_scores_is_no_feature(data, threads):
    frame = data.to_frame()
    frame["theirs"] = np.arange(len(frame), dtype=float)

    def look(X):
        return np.full(len(X), X.shape[1])

    found = boostlist.compare(frame, ["column:theirs", look], **QUICK)
    assert set(found.scores()[found.models[found.models[0] == "column:theirs"]]) == {data.n_features}
    scores = found.scores()["column:theirs"]
    assert set(scores) <= set(frame["theirs"])
    by_feature = boostlist.compare(frame, ["feature:theirs", "feature:1"], **QUICK)
    np.testing.assert_array_equal(by_feature.scores()["feature:theirs"], scores)


def test_a_run_of_another_system(data, threads, tmp_path):
    ids = np.array([f"docid = D{i} inc = 1" for i in range(data.n_documents)])
    path = write_letor(RankingData(data.X, data.y, data.qid, comments=ids), tmp_path / "d.txt")
    lines = [f"{qid} Q0 D{i} 1 {data.X[i, 0]} mine" for i, qid in enumerate(data.qid) if i % 7]
    (tmp_path / "mine.run").write_text("\n".join(lines) + "\n\n")
    found = boostlist.compare(path, [f"run:{tmp_path / 'mine.run'}", "feature:1"], **QUICK)
    theirs, feature = (found.scores()[name] for name in (f"run:{tmp_path / 'mine.run'}", "feature:1"))
    missing = theirs != feature
    assert 0 < missing.sum() < len(theirs) / 4
    assert theirs[missing].nunique() == 1
    assert theirs[missing].max() < theirs[~missing].min()

    # Without ids, documents have their numbers in the list.
    places = np.concatenate([np.arange(1, n + 1) for n in data.queries.sizes])
    lines = [f"{qid} Q0 {k} 1 {x}" for qid, k, x in zip(data.qid, places, data.X[:, 0], strict=True)]
    (tmp_path / "mine.run").write_text("\n".join(lines))
    plain = write_letor(data, tmp_path / "plain.txt")
    found = boostlist.compare(plain, [f"run:{tmp_path / 'mine.run'}", "feature:1"], **QUICK)
    np.testing.assert_allclose(*(found.scores()[name] for name in found.models))

    # A table has a column of ids, which is no feature.
    frame = data.to_frame().sample(frac=1, random_state=0)
    frame["docid"] = [f"http://d/?i={i}" for i in range(len(frame))]
    lines = [f"{row['qid']} Q0 {row['docid']} 1 {row[data.names[0]]}" for _, row in frame.iterrows()]
    (tmp_path / "mine.run").write_text("\n".join(lines))
    table = RankingData.from_frame(frame, sort=True)
    found = boostlist.compare(table, [f"run:{tmp_path / 'mine.run'}", "feature:1"], **QUICK)
    np.testing.assert_allclose(*(found.scores()[name] for name in found.models))
    assert found.summary.plan.source.load(1).train.n_features == data.n_features

    (tmp_path / "mine.run").write_text("1 Q0 D1 1 good mine")
    found = boostlist.compare(plain, [f"run:{tmp_path / 'mine.run'}"], **QUICK)
    assert re.search(r"mine\.run, line 1: a run has the words qid Q0 docno rank score tag", str(found))


def test_a_plan_has_what_was_asked_for(data):
    pytest.importorskip("optuna")
    asked = {"seed": 5, "repeats": 2, "tune": 3, "keep_models": True, "search": "optuna"}
    plan = make_plan(data, {"first": lambda X: X[:, 0]}, **PLAN | asked)
    assert {name: getattr(plan, name) for name in asked} == asked
    assert (plan.select, plan.metrics) == ("map", ("map",))


def test_a_search_by_optuna_needs_optuna(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    check_search("random")
    with pytest.raises(ImportError, match="optuna"):
        check_search("optuna")


def test_catboost_has_a_grid_of_its_own():
    pytest.importorskip("catboost")
    plain, given = contenders(["catboost:YetiRank", "catboost:YetiRank?depth=3"])
    small = plain.axes({})
    assert small["depth"] == [4, 6]
    assert given.axes({}) == {**small, "depth": [3]}
    assert plain.axes({"catboost": {"depth": [5]}}) == {"depth": [5]}


def test_catboost_keeps_the_trees_that_are_best_on_validation(data, threads):
    catboost = pytest.importorskip("catboost")
    options = {**QUICK, "folds": [1], "grid": {"catboost": {"iterations": 12, "learning_rate": 0.3, "depth": 2}}}
    found = boostlist.compare(data, "catboost:QueryRMSE", **options)
    (result,) = found.summary.entries[0].chosen
    fold = found.summary.plan.source.load(1)
    parameters = {"loss_function": "QueryRMSE", "iterations": 12, "learning_rate": 0.3, "depth": 2, "random_seed": 0}
    model = catboost.CatBoost({**parameters, "verbose": False, "allow_writing_files": False, "thread_count": 1})
    model.fit(catboost.Pool(fold.train.X, fold.train.y, group_id=fold.train.qid))
    values = [get("ndcg@5").mean(model.predict(fold.vali.X, ntree_end=k), fold.vali.queries) for k in range(1, 13)]
    np.testing.assert_allclose(result.history["rounds"], values)
    assert result.chosen_rounds == int(np.argmax(values)) + 1
    expected = model.predict(fold.test.X, ntree_end=result.chosen_rounds)
    np.testing.assert_allclose(found.scores()["catboost:QueryRMSE"], expected)


def test_chosen_models_are_kept(data, threads, tmp_path):
    options = {**QUICK, "out": tmp_path, "keep_models": True, "grid": {"linear": {"C": [0.1, 10]}}}
    models = ["linear:listnet", Ridge()]
    found = boostlist.compare(data, models, **options)
    saved = sorted(path.name for path in (tmp_path / "models").iterdir())
    assert len(saved) == 2 * 2
    linear = boostlist.load(tmp_path / "models" / next(name for name in saved if "listnet.fold1" in name))
    part = found.summary.plan.source.load(1).test
    scores = found.scores()
    np.testing.assert_allclose(linear.predict(part.X), scores.loc[scores["fold"] == 1, "linear:listnet"])
    # Going on, what has its model is not trained again.
    for path in (tmp_path / "models").glob("*listnet.fold1*"):
        path.unlink()
    boostlist.compare(data, models, **options)
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == saved


def test_results_of_another_model_of_the_same_name_are_not_its_own(data, threads, tmp_path, monkeypatch):
    def mean_of(model):
        return boostlist.compare(data, {"mine": model}, out=tmp_path, **QUICK).table()["map"][0]

    alone = boostlist.compare(data, ["feature:1", "feature:1", "feature:2"], **QUICK).table().set_index("model")["map"]
    assert mean_of(lambda X: X[:, 0]) == alone["feature:1"]
    assert mean_of(lambda X: X[:, 1]) == alone["feature:2"]
    assert mean_of(Ridge(alpha=1.0)) != mean_of(Ridge(alpha=1e5))
    monkeypatch.setattr(Trainer, "_train", lambda *_: pytest.fail("it was trained again"))
    assert mean_of(Ridge(alpha=1e5)) > 0


def test_a_script_without_a_guard_and_with_classes_of_its_own(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import boostlist\n"
        "from boostlist.datasets import make_ranking\n"
        "print('started')\n"
        "class Mine:\n"
        "    def fit(self, X, y): return self\n"
        "    def predict(self, X): return X[:, 0]\n"
        "print(boostlist.compare(make_ranking(20, docs=5, seed=1), [Mine()], folds=[1], jobs=1).best)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "started\nMine\n"
