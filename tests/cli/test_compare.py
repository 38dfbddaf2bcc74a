from __future__ import annotations

import json
import signal

import numpy as np
import pandas as pd
import pytest

from boostlist.cli import main
from boostlist.datasets import make_ranking
from boostlist.evaluation import panel, report, workers
from tests.evaluation.stubs import Threads, write_parts


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture
def threads(monkeypatch):
    """Let comparisons run in threads of this process."""
    monkeypatch.setattr(workers, "_CONTEXT", Threads)


def test_trees_and_linear_models_from_end_to_end(data, tmp_path, capsys):
    pytest.importorskip("lightgbm")
    grid = tmp_path / "grid.toml"
    grid.write_text("[lightgbm]\nn_estimators = 5\nnum_leaves = [3, 7]\nearly_stopping_rounds = 2\n[linear]\nC = 1\n")
    out = tmp_path / "out"
    command = [
        "compare",
        str(data),
        "--models",
        "linear:cs_rglist,lightgbm:lambdarank,lightgbm:cs_listmle",
        "--grid",
        str(grid),
    ]
    command += ["--folds", "1-2", "--metrics", "ndcg@5,map", "--out", str(out), "--jobs", "2"]
    assert main(command) == 0
    first = capsys.readouterr()
    lines = [line for line in first.err.splitlines() if not line.startswith("compiling loops")]
    assert len(lines) == 2 * (2 + 2 + 1)
    table = first.out.splitlines()
    assert {line.split()[1] for line in table[1:4]} == {
        "linear:cs_rglist",
        "lightgbm:lambdarank",
        "lightgbm:cs_listmle",
    }
    assert "baseline" in next(line for line in table if "lambdarank" in line)
    assert table[-1] == f"report: {out / 'report.html'}"
    queries = pd.read_parquet(out / "per_query.parquet")
    assert {"ndcg@5", "map", "ndcg@10"} <= set(queries.columns)

    # The second run has nothing left to train, and says the same.
    assert main([*command, "--json"]) == 0
    second = capsys.readouterr()
    assert "10 of 10 results are there already" in second.err
    found = json.loads(second.out)
    assert [model["model"] for model in found["models"]] == [line.split()[1] for line in table[1:4]]
    assert found["models"][0]["metrics"]["ndcg@5"] == pytest.approx(float(table[1].split()[2]), abs=1e-4)

    assert main([*command, "--select", "map"]) == 2
    assert "belongs to another experiment: its select is 'ndcg@5', here it is 'map'" in capsys.readouterr().err


def test_a_model_that_fails_is_reported_and_the_exit_code_says_so(data, tmp_path, capsys, threads):
    command = ["compare", str(data), "--models", "linear:listnet?C=1,linear:cs_rglist?C=-1", "--folds", "1"]
    assert main([*command, "--out", str(tmp_path / "out"), "--jobs", "1", "--quiet"]) == 1
    done = capsys.readouterr()
    assert "linear:cs_rglist?C=-1: failed: ValueError: C must be finite and > 0, got -1" in done.out
    assert (tmp_path / "out" / "report.html").exists()
    assert done.err == ""


def test_csv_with_columns_of_other_names_drawn_settings_and_kept_models(tmp_path, capsys, threads):
    frame = make_ranking(30, docs=6, seed=1).to_frame().rename(columns={"qid": "search", "label": "grade"})
    frame["theirs"] = frame["grade"]
    path = tmp_path / "shop.csv"
    frame.to_csv(path, index=False)
    out = ["--out", str(tmp_path / "out"), "--jobs", "1"]
    command = ["compare", str(path), "--models", "linear:listnet,column:theirs", "--folds", "1,6", *out]
    # What fails before anything is known leaves nothing that blocks the next try.
    assert main([*command, "--repeats", "2"]) == 1
    assert "no column 'qid'" in capsys.readouterr().err
    columns = ["--qid-column", "search", "--label-column", "grade"]
    assert main([*command, *columns, "--repeats", "2", "--tune", "2", "--keep-models"]) == 0
    done = capsys.readouterr()
    assert "1  column:theirs" in done.out
    assert "of 2 folds of shop, cut in 2 ways" in done.out
    assert len(list((tmp_path / "out" / "models").iterdir())) == 2
    results = pd.read_csv(tmp_path / "out" / "results.csv")
    assert (results["model"] == "linear:listnet").sum() == 2 * 2
    # The other model has not seen the labels that are in the column.
    queries = pd.read_parquet(tmp_path / "out" / "per_query.parquet").set_index("model")["ndcg@10"]
    assert set(queries["column:theirs"]) <= {0.0, 1.0}
    assert queries["linear:listnet"].mean() < queries["column:theirs"].mean()


def test_clicks_and_categories(tmp_path, capsys, threads, monkeypatch):
    monkeypatch.setattr(panel, "DEFAULT", ("lightgbm:lambdarank?n_estimators=2&extra_trees=false", "linear:listnet"))
    frame = make_ranking(30, docs=6, seed=1).to_frame()
    frame.assign(position=1, town=np.where(frame["label"] > 1, "Ulm", "Bonn")).to_csv(tmp_path / "log.csv", index=False)
    command = ["compare", str(tmp_path / "log.csv"), "--categorical", "town", "--folds", "1", "--jobs", "1", "--quiet"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    notes = [
        "labels are taken at face value: the positions of the data are not used; see docs/clicks.md",
        "left out, since they take no categories: linear:listnet",
    ]
    done = capsys.readouterr()
    assert done.err.splitlines() == [f"boostlist: {note}" for note in notes]
    for note in notes:
        assert f'<p class="notice">{note}</p>' in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_data_that_cannot_be_read_does_not_block_the_next_try(data, tmp_path, capsys, threads):
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:1 nonsense\n" * 9)
    command = ["--models", "feature:1", "--folds", "1", "--out", str(tmp_path / "out"), "--jobs", "1", "--quiet"]
    (tmp_path / "bad.csv").write_text("qid,label,x\n1,1,2\n1,0,two\n")
    for name in ("bad.txt", "bad.csv"):
        assert main(["compare", str(tmp_path / name), *command]) == 1
        assert name in capsys.readouterr().err
    assert main(["compare", str(data), *command]) == 0


def test_options_of_a_file_are_not_for_a_folder(data, tmp_path, capsys):
    assert main(["compare", str(data), "--sort", "--out", str(tmp_path / "out")]) == 2
    assert "--sort is for one file" in capsys.readouterr().err


def test_ctrl_c_while_the_report_is_written(data, tmp_path, capsys, monkeypatch, threads):
    def pressed(*arguments):
        signal.raise_signal(signal.SIGINT)
        return embedded(*arguments)

    embedded = report._embedded
    monkeypatch.setattr(report, "_embedded", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    command = ["compare", str(data), "--models", "linear:listnet?C=1", "--folds", "1", "--out", str(tmp_path / "out")]
    try:
        assert main([*command, "--jobs", "1", "--quiet"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert "writing the report first; Ctrl-C again ends without it" in capsys.readouterr().err
    assert (tmp_path / "out" / "report.html").read_text().endswith("</html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "lightgbm:cs_listml"], "did you mean lightgbm:cs_listmle"),
        (["--models", "ligtgbm:cs_listmle"], "did you mean lightgbm"),
        (["--metrics", "ndcg@x"], "cut-off in 'ndcg@x' must be a whole number"),
        (["--metrics", "ndgc@10"], "there is no metric 'ndgc@10'"),
        (["--metrics", ","], "no metrics given"),
        (["--select", "p"], "p needs a cut-off"),
        (["--folds", "9"], "has the folds 1, 2, 3, 4, 5, not 9"),
        (["--folds", "a-b"], "--folds takes numbers and ranges"),
        (["--folds", "1-"], "--folds takes numbers and ranges"),
        (["--baseline", "nope"], "there is no model 'nope'"),
        (["--grid", "medium"], "--grid is small, full or a file"),
        (["--models", "lightgbm:cs_listmle?foo=1"], "model lightgbm:cs_listmle?foo=1: Unknown parameter: foo"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_done(data, tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    assert main(["compare", str(data), "--out", str(out), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_a_folder_that_is_no_data_set(tmp_path, capsys):
    assert main(["compare", str(tmp_path / "nope"), "--out", str(tmp_path / "out")]) == 2
    assert "there is no folder or file" in capsys.readouterr().err
    assert main(["compare", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "is no data set: looked for folders Fold1" in error
    assert error.count("\n") == 1


def test_a_baseline_joins_the_panel(data):
    from boostlist.cli import make_parser
    from boostlist.cli.compare import plan_of

    arguments = make_parser().parse_args(["compare", str(data), "--models", "linear:listnet", "--baseline", "ranksvm"])
    plan = plan_of(arguments, arguments.data)
    assert [model.name for model in plan.models] == ["ranksvm", "linear:listnet"]
    assert plan.baseline.name == "ranksvm"
    assert plan.metrics == ("ndcg@10", "err", "map")
