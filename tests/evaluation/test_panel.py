from __future__ import annotations

import json

import numpy as np
import pytest

from boostlist import LinearRanker, TreeRanker
from boostlist.datasets import RankingData
from boostlist.evaluation.grids import FULL, RANGES, SMALL, drawn, label, read_grid, settings
from boostlist.evaluation.panel import (
    DEFAULT,
    Model,
    check_host_parameters,
    default_baseline,
    panel,
    parse,
)
from boostlist.losses import registry
from boostlist.metrics import get
from boostlist.rankers import FAMILIES


def test_a_name_and_its_model_are_two_ways_to_say_the_same():
    for name in (
        *DEFAULT,
        "xgboost:rank:ndcg",
        "kernel:cs_listmle?kernel=gaussian&C=0.5",
        "lightgbm:cs_rglist?pcf=2",
        "ensemble?n_bags=3",
    ):
        (model,) = parse(name)
        assert model.name == name
        assert parse(model.name) == [model]


def test_options_go_to_the_loss_first_and_else_to_the_estimator():
    (model,) = parse("lightgbm:cs_rglist?pcf=2&num_leaves=5")
    assert (model.loss_options(), model.estimator_options()) == ({"pcf": 2}, {"num_leaves": 5})
    estimator = model.make({"num_leaves": 5}, seed=7)
    assert isinstance(estimator, TreeRanker)
    assert (estimator.objective, estimator.num_leaves, estimator.backend) == (
        registry["cs_rglist"](pcf=2),
        5,
        "lightgbm",
    )
    assert (estimator.random_state, estimator.n_jobs) == (7, 1)


def test_a_host_objective_stays_a_name():
    assert parse("lightgbm:lambdarank")[0].make({}, 0).objective == "lambdarank"


def test_losses_without_curvature_are_trained_by_first_order_solvers():
    assert parse("linear:cs_rglist")[0].make({}, 0).solver == "newton"
    (model,) = parse("linear:rank_cosine")
    assert isinstance(model.make({}, 0), LinearRanker)
    assert model.make({}, 0).solver == "lbfgs"
    assert model.make({"solver": "diagonal"}, 0).solver == "diagonal"


def test_trees_know_categories_and_other_models_refuse_them():
    town = np.tile([0.0, 1, 2], 40)  # the second one is worth something: no one threshold tells
    names = {"feature_names": ("town",), "categories": {"town": tuple("abc")}}
    data = RankingData(town[:, None], town == 1, np.arange(120) // 3, **names)
    (tree,), (linear,) = parse("lightgbm:listnet"), parse("linear:cs_rglist")
    setting = {"n_estimators": 1, "num_leaves": 2}
    trained = tree.fit(setting, data, data, get("ndcg@10"), 0)
    assert get("ndcg@10").mean(trained.scores(data), data.queries) == 1
    with pytest.raises(ValueError, match="column 'town' is a category, which LinearRanker does not take"):
        linear.fit({}, data, data, get("ndcg@10"), 0)


def test_all():
    names = [model.name for model in parse("all")]
    assert len(set(names)) == len(names)
    functions = [name for name, loss in registry.items() if loss().traits.conservative]
    assert len(functions) < len(registry)
    expected = {f"{family}:{loss}" for family in ("lightgbm", "xgboost") for loss in registry}
    expected |= {f"{family}:{loss}" for family in ("linear", "kernel", "quadratic") for loss in functions}
    assert {name for name in names if name.split(":")[-1] in registry} == expected
    assert {"ranksvm", "rankcosine", "ensemble", "lightgbm:lambdarank", "xgboost:rank:ndcg"} <= set(names)
    assert [model.loss for model in parse("linear:all?C=3")] == functions


def test_each_model_once_and_a_baseline():
    models = panel(["linear:listnet", "default", "linear:listnet"])
    assert [model.name for model in models] == ["linear:listnet", *(n for n in DEFAULT if n != "linear:listnet")]
    assert default_baseline(models).name == "lightgbm:lambdarank"
    assert default_baseline(models[:1]).name == "linear:listnet"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lightgmb:cs_listmle", "did you mean lightgbm"),
        ("lightgbm:cs_listml", "did you mean lightgbm:cs_listmle"),
        ("cs_listmle", "names a loss only; write lightgbm:cs_listmle"),
        ("xgboost", "write xgboost:LOSS"),
        ("linear:lambdarank", "linear has no loss 'lambdarank'"),
        ("ranksvm:listnet", "has no choice of loss"),
        ("nothing_like_it", "models begin with lightgbm"),
        ("linear:listnet?Cc=1", "no parameter 'Cc'; did you mean C"),
        ("linear:listnet?C", "name=value"),
        ("lightgbm:cs_rglist?pcf=-1", "pcf"),
        ("lightgbm:listnet?backend=xgboost", "no parameter 'backend'"),
        ("lightgbm:listnet?objective=listmle", "no parameter 'objective'"),
        ("linear:listnet?C=1&C=2", "C is given twice"),
        ("ensemble:wub", "has no choice of loss"),
        ("ensemble?members=3", "no parameter 'members'"),
    ],
)
def test_names_that_stand_for_nothing(name, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        parse(name)


@pytest.mark.parametrize(("family", "known"), [("lightgbm", "min_gain_to_split"), ("xgboost", "gamma")])
def test_parameters_that_the_host_does_not_know(family, known):
    pytest.importorskip(family)
    model = Model(family, "listnet")
    with pytest.raises(ValueError, match=f"model {family}:listnet: .*foo"):
        check_host_parameters(model, {"num_leaves": 7, "foo": 1})
    check_host_parameters(model, {"num_leaves": 7, "early_stopping_rounds": 5, known: 1.0})
    # Right for data of three features, of which nothing is known here.
    check_host_parameters(model, {"monotone_constraints": "(1,-1,0)"})


def test_every_family_has_both_grids_and_makes_its_estimator():
    for family in SMALL:
        model = Model(family, "cs_listmle" if FAMILIES[family].loss else None)
        for grid in (SMALL, FULL):
            for setting in settings(model, grid):
                parameters = {k: v for k, v in setting.items() if k not in model.training_names}
                assert parameters.items() <= model.make(parameters, 0).get_params().items()
        assert len(settings(model, FULL)) >= len(settings(model, SMALL))


def test_options_replace_what_the_grid_varies():
    (model,) = parse("linear:listnet?C=5")
    assert settings(model, SMALL) == [{"C": 5, "features": "zscore"}]


def test_a_grid_file(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text('[linear]\nC = [1, 2]\nsolver = "lbfgs"\n\n["linear:listnet"]\nC = 7\n')
    grid = read_grid(str(path))
    assert settings(parse("linear:cs_rglist")[0], grid) == [{"C": 1, "solver": "lbfgs"}, {"C": 2, "solver": "lbfgs"}]
    assert settings(parse("linear:listnet")[0], grid) == [{"C": 7}]
    assert settings(parse("ranksvm")[0], grid) == settings(parse("ranksvm")[0], SMALL)
    other = tmp_path / "grid.json"
    other.write_text(json.dumps({"lightgbm": {"num_leaves": [3]}}))
    assert settings(parse("lightgbm:listnet")[0], read_grid(str(other))) == [{"num_leaves": 3}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lightgb]\nC = 1", "no model family 'lightgb'; did you mean lightgbm"),
        ("[linear]\nD = 1", "no parameter 'D'"),
        ("[linear]\nC = []", "C has no values"),
        ("C = 1", "outside of a section"),
        ("[linear", "not a TOML file"),
    ],
)
def test_grid_files_that_are_none(tmp_path, text, message):
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_grid(str(path))
    with pytest.raises(ValueError, match="there is no file"):
        read_grid(str(tmp_path / "absent.toml"))


def test_settings_drawn_at_random():
    linear, other, trees = parse("linear:listnet")[0], parse("linear:cs_rglist?C=5")[0], parse("lightgbm:wub")[0]
    found = drawn(linear, RANGES, 200, seed=1)
    assert len({str(setting) for setting in found}) == 200
    assert drawn(linear, RANGES, 200, seed=1) == found != drawn(linear, RANGES, 200, seed=2)
    logs = np.log10([setting["C"] for setting in found])
    assert -3 <= logs.min() < -2.8 < 3.8 < logs.max() <= 4
    assert np.histogram(logs, 7, (-3, 4))[0].min() > 10  # equally likely in each decade
    assert {setting["features"] for setting in found} == {"zscore", "query-minmax"}
    # Options stay fixed, and models of a family share the rest.
    assert drawn(other, RANGES, 2, seed=1) == [{"C": 5, "features": each} for each in ("zscore", "query-minmax")]
    assert drawn(parse("lightgbm:listnet")[0], RANGES, 5, seed=0) == drawn(trees, RANGES, 5, seed=0)
    leaves = [setting["num_leaves"] for setting in drawn(trees, RANGES, 50, seed=0)]
    assert all(isinstance(number, int) for number in leaves)
    assert 4 <= min(leaves) < 8 < 64 < max(leaves) <= 128


def test_fewer_settings_than_asked_for():
    (model,) = parse("linear:listnet?features=plain")
    grid = read_grid({"linear": {"C": {"low": 1, "high": 3}}})
    assert sorted(setting["C"] for setting in drawn(model, grid, 10, seed=0)) == [1, 2, 3]
    assert len(drawn(model, SMALL, 10, seed=0)) == len(settings(model, SMALL)) == 3


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"linear": {"C": {"low": 1}}}, r"grid, \[linear\]: C is no range; write"),
        ({"linear": {"C": {"low": 2, "high": 1}}}, "a range has low < high"),
        ({"linear": {"C": {"low": 0, "high": 1, "log": True}}}, "with log 0 < low"),
        ({"linear": {"C": ()}}, r"\[linear\]: C has no values"),
        ({"mine": {"C": 1}}, "no model family 'mine'"),
    ],
)
def test_ranges_that_are_none(grid, message):
    with pytest.raises(ValueError, match=message):
        read_grid(grid)


def test_ranges_have_to_be_drawn_from():
    with pytest.raises(ValueError, match="model linear:listnet: C has a range; say how many settings to draw"):
        settings(parse("linear:listnet")[0], RANGES)
    assert read_grid({"mine": {"alpha": 1}}, ["mine"])["mine"] == {"alpha": [1]}


def test_a_label_has_what_differs():
    among = [{"C": 1.0, "solver": "newton"}, {"C": 10.0, "solver": "newton"}]
    assert label(among[1], among) == "C=10"
