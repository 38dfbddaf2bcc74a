from __future__ import annotations

import json

import numpy as np
import pytest

from boostlist import metrics
from boostlist.cli import main

# Two queries with relevant documents, one without.
TEXT = "2 qid:1 1:1\n0 qid:1 1:2\n1 qid:1 1:3\n0 qid:2 1:1\n0 qid:2 1:2\n0 qid:3 1:1\n1 qid:3 1:2\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "data.txt").write_text(TEXT)
    (tmp_path / "scores.txt").write_text("0.3\n0.2\n0.1\n1\n2\n5e-1\n-1\n")
    return str(tmp_path / "data.txt"), str(tmp_path / "scores.txt")


def found(capsys):
    return json.loads(capsys.readouterr().out)


def test_values_by_hand(files, capsys):
    data, scores = files
    assert main(["evaluate", data, "--scores", scores, "--metrics", "ndcg@3,mrr,p@1", "--json"]) == 0
    values = found(capsys)
    first = 3.5 / (3 + 1 / np.log2(3))
    third = 1 / np.log2(3)
    assert values["ndcg@3"]["mean"] == pytest.approx((first + 0 + third) / 3)
    assert values["mrr"]["mean"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert values["p@1"]["mean"] == pytest.approx(1 / 3)
    assert values["ndcg@3"]["std_error"] == pytest.approx(np.std([first, 0, third], ddof=1) / np.sqrt(3))


def test_conventions_of_a_tool_and_single_options(files, capsys):
    data, scores = files
    base = ["evaluate", data, "--scores", scores, "--metrics", "ndcg@3", "--json"]
    assert main([*base, "--conventions", "lightgbm"]) == 0
    one = found(capsys)["ndcg@3"]["mean"]
    assert main(base) == 0
    zero = found(capsys)["ndcg@3"]["mean"]
    assert one == pytest.approx(zero + 1 / 3)
    assert main([*base, "--empty", "skip"]) == 0
    skipped = found(capsys)["ndcg@3"]
    assert skipped["queries"] == 2
    assert skipped["mean"] == pytest.approx(zero * 3 / 2)
    assert main([*base, "--conventions", "lightgbm", "--empty", "0"]) == 0
    assert found(capsys)["ndcg@3"]["mean"] == pytest.approx(zero)


def test_every_convention_of_every_tool_can_be_asked_for(files, capsys):
    data, scores = files
    for tool in ("lightgbm", "xgboost", "sklearn", "letor3", "letor4", "trec"):
        for prefix, parameters in metrics.conventions(tool).items():
            name = f"{prefix}@2" if prefix in ("ndcg", "p", "recall") else prefix
            options = [word for key, value in parameters.items() for word in (f"--{key}", str(value))]
            base = ["evaluate", data, "--scores", scores, "--metrics", name, "--json"]
            assert main([*base, "--conventions", tool]) == 0
            by_tool = found(capsys)
            assert main([*base, *options]) == 0
            assert found(capsys) == by_tool


def test_per_query_and_stdin(files, feed, capsys):
    data, scores = files
    with open(scores, "rb") as file:
        feed(file.read())
    assert main(["evaluate", data, "--scores", "-", "--metrics", "ndcg@3,map", "--per-query"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["qid", "ndcg@3", "map"]
    assert [line[0] for line in lines[1:]] == ["1", "2", "3"]
    assert float(lines[3][2]) == pytest.approx(0.5)
    feed(TEXT.encode())
    assert main(["evaluate", "-", "--scores", scores]) == 0
    assert "ndcg@10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ("1\n2\n", "has 2 scores, but the data has 7 documents"),
        ("1\n2\nx\n4\n5\n6\n7\n", "line 3: expected one score a line, got 'x'"),
        ("1\n2\n3\nnan\n5\n6\n7\n", "line 4: scores must be finite"),
        ("", "has 0 scores"),
    ],
)
def test_bad_scores(files, tmp_path, capsys, scores, message):
    (tmp_path / "bad.txt").write_text(scores)
    assert main(["evaluate", files[0], "--scores", str(tmp_path / "bad.txt")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metrics", "ndgc@10"], "there is no metric 'ndgc@10'"),
        (["--metrics", "ndcg@ten"], "cut-off in 'ndcg@ten'"),
        (["--conventions", "letor4", "--metrics", "err"], "letor4 has no err; it has ndcg"),
        (["--conventions", "letor5"], "no conventions are known for 'letor5'"),
        (["--metrics", "ndcg@3", "--threshold", "2"], "--threshold has no effect on ndcg@3"),
    ],
)
def test_bad_options(files, capsys, options, message):
    assert main(["evaluate", files[0], "--scores", files[1], *options]) == 2
    assert message in capsys.readouterr().err


def test_files_that_are_not_there(files, tmp_path, capsys):
    absent = str(tmp_path / "none.txt")
    for arguments in ([absent, "--scores", files[1]], [files[0], "--scores", absent], [files[0], "--model", absent]):
        assert main(["evaluate", *arguments]) == 2
        assert f"there is no file {absent}" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path), "--scores", files[1]]) == 2
    assert "is a folder" in capsys.readouterr().err
    assert main(["evaluate", "-", "--scores", "-"]) == 2
    assert "both" in capsys.readouterr().err


def test_scores_go_by_row_so_that_rows_must_not_move(tmp_path, capsys):
    for name, text in {
        "a.csv": "qid,label,x\na,0,1\nb,2,2\na,2,3\n",
        "a.txt": "0 qid:1 1:1\n2 qid:2 1:2\n2 qid:1 1:3\n",
        "scores": "0\n2\n2\n",
    }.items():
        (tmp_path / name).write_text(text)
    table, letor, scores = (str(tmp_path / name) for name in ("a.csv", "a.txt", "scores"))
    model = str(tmp_path / "m.npz")
    assert main(["train", table, "-m", "linear:listnet", "-o", model, "-q", "--sort"]) == 0
    for path, message in ((table, "qid 'a' reappears at row 2"), (letor, "line 3, column 3")):
        for arguments in (["evaluate", path, "--scores", scores], ["rank", model, path]):
            assert main(arguments) == 1
            error = capsys.readouterr().err
            assert message in error
            assert "boostlist data convert --sort" in error
    for arguments in (["evaluate", letor, "--scores", scores], ["rank", model, letor, "--as", "ranking"]):
        assert main([*arguments, "--sort"]) == 2
        assert "--sort would change the order of the rows" in capsys.readouterr().err
    assert main(["rank", model, table, "--as", "trec", "--sort"]) == 0
    assert main(["evaluate", letor, "--model", model, "--sort"]) == 0
