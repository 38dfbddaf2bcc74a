from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from numba.core import event
from sklearn.base import clone

import boostlist
from boostlist.cli import main, make_parser
from boostlist.cli._io import read_data
from boostlist.datasets import load_letor, make_ranking, write_letor
from boostlist.evaluation.guests import document_keys
from boostlist.losses.compiled import _BoundLoops
from boostlist.metrics import get
from boostlist.parallel import get_threads, set_threads

MODELS = {
    "lightgbm:cs_listmle?n_estimators=10&num_leaves=5&k=5": "model.txt",
    "xgboost:listnet?n_estimators=10": "model.json",
    "lightgbm:lambdarank?n_estimators=10": "model.txt",
    "linear:cs_rglist?pcf=2&C=0.5": "model.npz",
    "kernel:cs_rglist?n_landmarks=20": "model.npz",
    "ranksvm?C=0.01": "model.npz",
    "ensemble?n_bags=2&weights=fitted": "model.npz",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data = make_ranking(40, docs=8, n_features=10, seed=5).normalize("zscore")
    train, test = data.split(0.75)
    return str(write_letor(train, folder / "train.txt")), str(write_letor(test, folder / "test.txt"))


@pytest.mark.parametrize("model", MODELS)
def test_train_rank_evaluate(files, tmp_path, capsys, model):
    train, test = files
    out = str(tmp_path / MODELS[model])
    assert main(["train", train, "--model", model, "-o", out]) == 0
    summary = capsys.readouterr()
    assert "trained in" in summary.err
    assert not summary.out
    assert main(["rank", out, test]) == 0
    scores = [float(line) for line in capsys.readouterr().out.splitlines()]
    data = load_letor(test, n_features=10)
    assert scores == boostlist.load(out).predict(data.X).tolist()
    assert main(["evaluate", test, "--model", out, "--metrics", "ndcg@5", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)["ndcg@5"]["mean"]
    assert value == get("ndcg@5").mean(scores, data.queries)


@pytest.mark.filterwarnings("ignore:the ranker that made this log")
def test_positions_count_and_are_no_feature(tmp_path, capsys):
    data = make_ranking(10, docs=8, n_features=10, seed=5)
    data = replace(data, position=np.concatenate([np.arange(n) for n in data.queries.sizes]) % 4)
    path, out = (str(tmp_path / name) for name in ("train.csv", "m.npz"))
    data.to_frame().to_csv(path, index=False)
    assert main(["train", path, "-m", "linear:cs_listmle", "-o", out]) == 0
    assert "positions allowed for" in capsys.readouterr().err
    model = boostlist.load(out)
    assert (model.n_features_in_, len(model.position_bias_)) == (10, 4)
    assert main(["train", path, "-m", "linear:cs_listmle", "-o", out, "--drop", "position"]) == 0
    assert "positions" not in capsys.readouterr().err
    assert main(["train", path, "-m", "linear:cs_listmle", "-o", out, "-q", "--position-column", ""]) == 0
    assert boostlist.load(out).n_features_in_ == 11
    assert main(["train", path, "-m", "rankcosine", "-o", out]) == 1
    assert "RankCosineRanker takes no positions; leave them out" in capsys.readouterr().err


def test_weights_of_queries_count_and_are_no_feature(tmp_path, capsys):
    data = replace(make_ranking(10, docs=8, n_features=10, seed=5), query_weight=np.arange(1.0, 11))
    path, out, tree = (str(tmp_path / name) for name in ("train.csv", "m.npz", "m.txt"))
    data.to_frame().to_csv(path, index=False)
    for columns, features in (([], 10), (["--weight-column", ""], 11)):
        assert main(["train", path, "--vali", path, "-m", "linear:cs_listmle", "-o", out, *columns]) == 0
        assert boostlist.load(out).n_features_in_ == features
    assert main(["train", path, "-m", "linear:cs_listmle", "-o", out, "-q"]) == 0
    model = boostlist.load(out)
    expected = clone(model).fit(data.X.astype(float), data.y, data.qid, sample_weight=data.query_weight)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4, atol=1e-9)
    assert main(["train", path, "--vali", path, "-m", "lightgbm:listnet?n_estimators=2", "-o", tree]) == 0
    capsys.readouterr()
    data.to_frame().assign(weight=np.arange(len(data))).to_csv(path, index=False)
    assert main(["train", path, "-m", "linear:cs_listmle", "-o", out]) == 1
    assert "or --weight-column '' to make the column a feature" in capsys.readouterr().err


def test_a_missing_label_is_named_with_its_file(tmp_path, capsys):
    for name, label in (("good", "0"), ("bad", "")):
        (tmp_path / f"{name}.csv").write_text(f"qid,label,x\n1,1,2\n1,{label},3\n")
    good, bad, model, scores = (str(tmp_path / name) for name in ("good.csv", "bad.csv", "m.npz", "scores.txt"))
    (tmp_path / "scores.txt").write_text("1\n2\n")
    assert main(["train", good, "-m", "linear:listnet", "-o", model, "-q"]) == 0
    for command in (
        ["train", bad, "-m", "linear:listnet", "-o", model],
        ["train", good, "--vali", bad, "-m", "linear:listnet", "-o", model],
        ["evaluate", bad, "--scores", scores],
        ["evaluate", bad, "--model", model],
        ["compare", bad, "--models", "feature:x", "--out", str(tmp_path / "out")],
    ):
        assert main(command) == 1
        assert "bad.csv: labels[1] is nan" in capsys.readouterr().err
    assert main(["rank", model, bad]) == 0


def test_text_is_dropped_or_a_category(tmp_path, capsys):
    table, other, model = (str(tmp_path / name) for name in ("train.csv", "test.csv", "m.txt"))
    rows = [
        f"{q},{y},{town},title {y},{y + q % 2}" for q in range(40) for y, town in enumerate(["Ulm", "Bonn", "", "Köln"])
    ]
    (tmp_path / "train.csv").write_text("\n".join(["qid,label,town,title,x", *rows]), encoding="utf-8")
    command = ["train", table, "-m", "lightgbm:listnet?n_estimators=3"]
    for options, message in (
        (
            [],
            "train.csv: column 'town' holds 'Ulm', no number, in row 0, and no numbers are in 'title' either; leave "
            "columns out by --drop town,title, or .*--categorical town,title",
        ),
        (["--drop", "title"], "column 'town' holds 'Ulm', no number, in row 0; leave columns out by --drop town, or"),
        (["--drop", "town,titel"], "there is no column 'titel'; did you mean title?"),
    ):
        assert main([*command, "-o", model, *options]) == 1
        assert re.search(message, capsys.readouterr().err)
    assert main([*command, "-o", model, "--drop", "town,title"]) == 0
    assert boostlist.load(model).feature_names_in_.tolist() == ["x"]
    columns = ["--drop", "title,x", "--categorical", "town"]
    assert main([*command, "-o", model, *columns]) == 0
    capsys.readouterr()
    (tmp_path / "test.csv").write_text("qid,town,title,x\n1,Köln,a,0\n1,Ulm,b,0\n1,,c,0\n", encoding="utf-8")
    assert main(["rank", model, other, *columns]) == 0
    koeln, ulm, unknown = map(float, capsys.readouterr().out.split())
    assert koeln > unknown > ulm


def test_names_on_one_side_only_leave_the_order(files, tmp_path, capsys, recwarn):
    table, named, plain = (str(tmp_path / name) for name in ("test.csv", "named.txt", "plain.npz"))
    data = load_letor(files[1], n_features=10)
    data.to_frame().to_csv(table, index=False)
    assert main(["train", table, "-m", "lightgbm:listnet?n_estimators=3", "--vali", files[1], "-o", named]) == 0
    assert capsys.readouterr().err.count("test.txt has no names of features: they are the model's") == 1
    assert main(["train", files[1], "-m", "linear:listnet", "-o", plain, "-q"]) == 0
    for model, path, note in ((named, files[1], "has no names"), (plain, table, "by their order, not by the names")):
        assert main(["rank", model, path]) == 0
        found = capsys.readouterr()
        assert note in found.err
        expected = boostlist.load(model).predict(data.feature_frame() if model == named else data.X)
        np.testing.assert_allclose([float(line) for line in found.out.splitlines()], expected, rtol=1e-5)
    assert not [each for each in recwarn if "feature names" in str(each.message)]


def test_compilation_is_told_once(files, tmp_path, capsys, monkeypatch):
    fit = boostlist.LinearRanker.fit

    def compile_and_fit(self, *arguments, **options):
        for _ in range(2):
            with event.trigger_event("numba:compile"):
                pass
        return fit(self, *arguments, **options)

    monkeypatch.setattr(boostlist.LinearRanker, "fit", compile_and_fit)
    for options, told in (([], 1), (["-q"], 0)):
        command = ["train", files[0], "-m", "linear:cs_listmle", "-o", str(tmp_path / "m.npz")]
        assert main([*command, *options]) == 0
        assert capsys.readouterr().err.count("compiling loops (first run only) ...\n") == told


def test_without_a_name_the_model_is_that_of_tree_ranker(letor, tmp_path):
    path, data = letor
    assert main(["train", str(path), "-o", str(tmp_path / "model.txt")]) == 0
    trained = boostlist.load(tmp_path / "model.txt").predict(data.X)
    ours = boostlist.TreeRanker(random_state=0).fit(data.X, data.y, data.qid).predict(data.X)
    np.testing.assert_array_equal(trained, ours)


def test_options_reach_loss_and_estimator(files, tmp_path):
    out = tmp_path / "model.npz"
    assert main(["train", files[0], "-m", "linear:cs_rglist?pcf=2&C=0.5", "-o", str(out), "-q"]) == 0
    model = boostlist.load(out)
    assert model.loss == boostlist.losses.CsRgList(pcf=2)
    assert model.C == 0.5


def test_early_stopping_and_validation(files, tmp_path, capsys):
    out = str(tmp_path / "m.txt")
    command = ["train", files[0], "--vali", files[1], "--metric", "err", "-o", out]
    assert main([*command, "-m", "lightgbm:cs_listmle?n_estimators=200", "--early-stopping", "3"]) == 0
    assert "err on" in capsys.readouterr().err
    ranker = boostlist.load(out)
    history = ranker.evals_result_["valid_0"]["err"]
    assert ranker.n_estimators_ == 1 + int(np.argmax(history))
    assert len(history) < 200


def test_the_model_through_standard_output_and_input(files, tmp_path, feed, capsysbinary):
    assert main(["train", files[0], "-m", "linear:listnet", "-o", "-"]) == 0
    model = capsysbinary.readouterr().out
    feed(model)
    assert main(["rank", "-", files[1]]) == 0
    scores = capsysbinary.readouterr().out
    (tmp_path / "m.npz").write_bytes(model)
    with open(files[1], "rb") as file:
        feed(file.read())
    assert main(["rank", str(tmp_path / "m.npz"), "-"]) == 0
    assert capsysbinary.readouterr().out == scores


def test_rankings(tmp_path, capsys):
    lines = "".join(
        f"{y} qid:{q} 1:{x} # docid = D{q}{x}\n" for q, y, x in [(7, 1, 3), (7, 0, 1), (7, 0, 2), (4, 0, 5)]
    )
    (tmp_path / "d.txt").write_text(lines)
    boostlist.LinearRanker(C=10).fit([[3.0], [1.0], [2.0]], [2, 0, 1], group=[3]).save(tmp_path / "m.npz")
    assert main(["rank", str(tmp_path / "m.npz"), str(tmp_path / "d.txt"), "--as", "ranking"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["qid", "rank", "row", "score", "comment"]
    assert [row[:3] for row in rows[1:]] == [["7", "1", "0"], ["7", "2", "2"], ["7", "3", "1"], ["4", "1", "3"]]
    assert main(["rank", str(tmp_path / "m.npz"), str(tmp_path / "d.txt"), "--as", "trec", "--top", "1"]) == 0
    runs = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [run[:4] for run in runs] == [["7", "Q0", "D73", "1"], ["4", "Q0", "D45", "1"]]


def test_documents_of_a_run_are_those_that_compare_looks_for(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("qid,f1,name\n7,3,a\n7,1,b\n4,5,c\n4,6,d\n")
    (tmp_path / "d.txt").write_text("0 qid:7 1:3\n0 qid:7 1:1\n0 qid:4 1:5\n0 qid:4 1:6\n")
    boostlist.LinearRanker(C=10).fit([[3.0], [1.0], [2.0]], [2, 0, 1], group=[3]).save(tmp_path / "m.npz")
    for name, options, expected in (("d.txt", [], "1221"), ("d.csv", ["--docid-column", "name"], "abdc")):
        command = ["rank", str(tmp_path / "m.npz"), str(tmp_path / name), "--as", "trec", *options]
        assert main(command) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert "".join(line[2] for line in lines) == expected
        data = read_data(str(tmp_path / name), make_parser().parse_args(command), labelled=False)
        assert sorted(document_keys(data)) == sorted((line[0], line[2]) for line in lines)


def test_named_columns_are_checked_and_labels_not_needed(tmp_path, capsys):
    (tmp_path / "a.csv").write_text(
        "qid,label,price,stars\n" + "".join(f"{i // 4},{i % 3},{i},{i % 5}\n" for i in range(40))
    )
    (tmp_path / "b.csv").write_text("qid,stars,price\n1,2,3\n")
    (tmp_path / "c.csv").write_text("qid,price,stars\n1,2,3\n")
    out = str(tmp_path / "m.npz")
    assert main(["train", str(tmp_path / "a.csv"), "-m", "linear:listnet", "-o", out, "-q"]) == 0
    assert main(["rank", out, str(tmp_path / "c.csv")]) == 0
    assert main(["rank", out, str(tmp_path / "b.csv")]) == 1
    assert "feature names" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "lightgbm:cslistmle"], "did you mean lightgbm:cs_listmle"),
        (["-m", "lightgmb:cs_listmle"], "did you mean lightgbm"),
        (["-m", "linear:all"], "boostlist compare"),
        (["-m", "linear:listnet?features=zscore"], "data convert --normalize"),
        (["-m", "linear:listnet", "--early-stopping", "5"], "--early-stopping needs"),
        (["-m", "lightgbm:listnet?early_stopping_rounds=5"], "--early-stopping N --vali FILE"),
        (["-m", "xgboost:listnet"], ".json or .ubj"),
        (["-m", "lightgbm:listnet?foo=1"], "Unknown parameter: foo"),
        (["--metric", "ndgc"], "there is no metric"),
    ],
)
def test_bad_requests(files, tmp_path, capsys, options, message):
    assert main(["train", files[0], "-o", str(tmp_path / "model.bin"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "jobs"), [("linear:cs_rglist", 1), ("lightgbm:cs_listmle?n_estimators=2", 1), ("ensemble", 2)]
)
def test_jobs_bound_the_threads_of_every_model(files, tmp_path, model, jobs, monkeypatch):
    used = []
    evaluate = _BoundLoops.evaluate
    monkeypatch.setattr(
        _BoundLoops, "evaluate", lambda self, *args: used.append(get_threads()) or evaluate(self, *args)
    )
    set_threads(4)
    try:
        out = str(tmp_path / ("model.txt" if "lightgbm" in model else "model.npz"))
        assert main(["train", files[0], "--model", model, "--out", out, "--jobs", str(jobs), "--quiet"]) == 0
    finally:
        set_threads(None)
    assert max(used) <= jobs


@pytest.mark.parametrize("option", ["learning_rate=0", "learning_rate=abc", "n_jobs=abc"])
def test_errors_of_the_host_are_no_traceback(files, tmp_path, capsys, option):
    assert main(["train", files[0], "-m", f"lightgbm:listnet?{option}", "-o", str(tmp_path / "m.txt"), "-q"]) == 1
    found = capsys.readouterr().err.splitlines()
    assert found[-1].startswith("boostlist: ")
    assert found[-1].endswith("(boostlist --debug ... shows where)")


def test_what_only_the_training_can_tell_ends_with_1(files, tmp_path, capsys):
    assert main(["train", files[0], "-o", str(tmp_path / "model.npz"), "-m", "linear:listnet?C=-1"]) == 1
    assert "C must be" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_bad_files(files, tmp_path, capsys):
    assert main(["train", files[0], "-o", str(tmp_path)]) == 2
    assert "it is a folder; give a file in it" in capsys.readouterr().err
    for command in (["train", files[0], "-o"], ["rank", "m.txt", files[1], "-o"], ["data", "convert", files[0]]):
        assert main([*command, str(tmp_path / "no" / "file.txt")]) == 2
        assert f"no folder {tmp_path / 'no'}, or" in capsys.readouterr().err
    (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04 not a model")
    assert main(["rank", str(tmp_path / "junk.npz"), files[1]]) == 1
    assert "junk.npz" in capsys.readouterr().err
    assert main(["rank", "-", "-"]) == 2
    assert "both" in capsys.readouterr().err
    assert main(["rank", str(tmp_path / "junk.npz"), files[1], "--top", "3"]) == 2
    assert "--top" in capsys.readouterr().err


def test_data_with_other_features_is_refused(files, tmp_path, capsys):
    out = str(tmp_path / "m.npz")
    assert main(["train", files[0], "-m", "linear:listnet", "-o", out, "-q"]) == 0
    (tmp_path / "wide.txt").write_text("1 qid:1 1:1 11:2\n")
    assert main(["rank", out, str(tmp_path / "wide.txt")]) == 1
    assert "11" in capsys.readouterr().err


def test_several_labels(tmp_path, capsys):
    data = make_ranking(40, docs=8, n_features=10, seed=5)
    frame = data.to_frame().rename(columns={"label": "click"}).assign(purchase=data.y > 2)
    path, model = tmp_path / "log.csv", tmp_path / "model.npz"
    frame.to_csv(path, index=False)
    columns = ["--label-column", "click,purchase"]
    assert main(["train", str(path), *columns, "--model", "linear:listmle?label=purchase", "-o", str(model)]) == 0
    found = boostlist.load(model)
    alone = boostlist.LinearRanker("listmle").fit(data.X, data.y > 2, data.qid)
    np.testing.assert_allclose(found.coef_, alone.coef_, atol=1e-6)
    assert main(["evaluate", str(path), *columns, "--model", str(model), "--metrics", "ndcg@5:purchase"]) == 0
    expected = get("ndcg@5").mean(alone.predict(data.X), replace(data, y=data.y > 2).queries)
    assert f"{expected:.4f}" in capsys.readouterr().out
    frame.drop(columns=["click", "purchase"]).to_csv(path, index=False)
    assert main(["rank", str(model), str(path), *columns]) == 0
    for wrong, code, message in (
        ({"--label-column": "qid,cart"}, 1, "no column 'cart'"),
        ({"--label-column": ","}, 2, "--label-column names no column"),
        (
            {"--model": "lightgbm:cs_listmle+0.3*listmle"},
            2,
            "sums of losses have no name; give the estimator in Python",
        ),
    ):
        options = {"--model": "linear:listmle", "--label-column": "click"} | wrong
        given = [text for pair in options.items() for text in pair]
        assert main(["train", str(path), "-o", str(model), *given]) == code
        assert message in capsys.readouterr().err
