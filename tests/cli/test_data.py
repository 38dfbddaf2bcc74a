from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from boostlist.cli import main
from boostlist.datasets import RankingData, load_fold, load_folds, load_letor, write_letor


def same(a, b):
    return np.array_equal(a.X, b.X, equal_nan=True) and np.array_equal(a.y, b.y) and np.array_equal(a.qid, b.qid)


def test_describe_counts(letor, capsys):
    path, data = letor
    assert main(["data", "describe", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["documents"], found["queries"], found["features"]) == (len(data.y), 12, 12)
    assert sum(found["grades"].values()) == len(data.y)
    assert main(["data", "describe", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"documents      {len(data.y):,}\n")


def test_describe_without_data_is_the_sample(capsys):
    assert main(["data", "describe", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 500


def test_describe_a_folder(letor, tmp_path, capsys):
    path, data = letor
    assert main(["data", "split", str(path), str(tmp_path / "folds"), "--folds", "4"]) == 0
    assert main(["data", "describe", str(tmp_path / "folds"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(part["documents"] for part in found.values()) == len(data.y)
    assert len(found) == 4
    assert main(["data", "describe", str(tmp_path / "folds")]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'folds'}, fold 1, test\ndocuments  ")
    (tmp_path / "nothing").mkdir()
    assert main(["data", "describe", str(tmp_path / "nothing")]) == 2
    error = capsys.readouterr().err
    assert "Fold1" in error
    assert "train.txt" in error


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.txt.gz", "out.csv.gz"])
def test_convert_there_and_back(letor, tmp_path, name):
    path, data = letor
    assert main(["data", "convert", str(path), str(tmp_path / name)]) == 0
    assert main(["data", "convert", str(tmp_path / name), str(tmp_path / "back.txt")]) == 0
    assert same(load_letor(tmp_path / "back.txt"), data)


def test_convert_from_stdin_to_stdout(letor, feed, capsysbinary):
    path, data = letor
    feed(path.read_bytes())
    assert main(["data", "convert", "-", "-", "--to", "csv"]) == 0
    frame = pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))
    assert list(frame.columns[:2]) == ["qid", "label"]
    assert np.array_equal(frame["label"], data.y)
    feed(path.read_bytes())
    assert main(["data", "convert", "-", "-"]) == 0
    assert capsysbinary.readouterr().out == path.read_bytes()


def test_convert_keeps_comments_and_normalizes(tmp_path):
    (tmp_path / "a.txt").write_text("2 qid:1 1:4 2:1 # docid = A1\n0 qid:1 1:2 2:1 # docid = A2\n")
    assert (
        main(["data", "convert", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "--normalize", "query-minmax"]) == 0
    )
    found = load_letor(tmp_path / "b.txt", comments=True)
    assert found.X.tolist() == [[1, 0], [0, 0]]
    assert [comment.strip() for comment in found.comments] == ["docid = A1", "docid = A2"]


def test_a_failed_conversion_leaves_no_file(tmp_path, capsys):
    (tmp_path / "bad.txt").write_text("1 qid:1 1:0.5\n1 qid:1 1:zero\n")
    assert main(["data", "convert", str(tmp_path / "bad.txt"), str(tmp_path / "out.csv")]) == 1
    error = capsys.readouterr().err
    assert "bad.txt" in error
    assert "2" in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]


def test_sample_draws_whole_queries(letor, tmp_path, capsysbinary):
    path, data = letor
    out = tmp_path / "few.txt"
    for _ in range(2):
        assert main(["data", "sample", str(path), "--queries", "5", "--seed", "1", "-o", str(out)]) == 0
    few = load_letor(out, n_features=data.n_features)
    assert few.n_queries == 5
    for q in np.unique(few.qid):
        assert np.array_equal(few.X[few.qid == q], data.X[data.qid == q])
    assert main(["data", "sample", str(path), "--queries", "5", "--seed", "1"]) == 0
    assert capsysbinary.readouterr().out == out.read_bytes()
    assert main(["data", "sample", str(path), "--queries", "13"]) == 2


def test_split_by_shares(letor, tmp_path):
    path, data = letor
    folder = tmp_path / "parts"
    assert main(["data", "split", str(path), str(folder), "--shares", "0.5,0.25,0.25"]) == 0
    fold = load_fold(folder, n_features=data.n_features)
    assert [part.n_queries for part in (fold.train, fold.vali, fold.test)] == [6, 3, 3]
    assert same(RankingData.concat([fold.train, fold.vali, fold.test]).select(order(fold, data)), data)


def order(fold, data):
    have = np.concatenate([pd.unique(part.qid) for part in (fold.train, fold.vali, fold.test)])
    return [int(np.flatnonzero(have == q)[0]) for q in pd.unique(data.qid)]


def test_split_never_overwrites_unasked(letor, tmp_path, capsys):
    path, _ = letor
    command = ["data", "split", str(path), str(tmp_path / "parts"), "--shares", "0.5,0.5"]
    assert main(command) == 0
    before = (tmp_path / "parts" / "train.txt").read_bytes()
    assert main([*command, "--seed", "7"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "parts" / "train.txt").read_bytes() == before
    assert main([*command, "--seed", "7", "--force"]) == 0
    assert (tmp_path / "parts" / "train.txt").read_bytes() != before


def test_folds_rotate_as_letors_do(letor, tmp_path):
    path, data = letor
    assert main(["data", "split", str(path), str(tmp_path / "folds"), "--folds", "5"]) == 0
    folds = list(load_folds(tmp_path / "folds", n_features=data.n_features))
    ids = [{role: set(getattr(fold, role).qid) for role in ("train", "vali", "test")} for fold in folds]
    for fold in ids:
        assert len(fold["train"] | fold["vali"] | fold["test"]) == 12
        assert sum(map(len, fold.values())) == 12
    for this, following in zip(ids, [*ids[1:], ids[0]], strict=True):
        assert following["vali"] == this["test"]
        assert this["vali"] < following["train"]


@pytest.mark.parametrize("folds", ["2", "13"])
def test_bad_numbers_of_folds(letor, tmp_path, capsys, folds):
    assert main(["data", "split", str(letor[0]), str(tmp_path / "x"), "--folds", folds]) == 2
    assert "--folds must be from 3 to 12" in capsys.readouterr().err
    assert main(["data", "split", str(letor[0]), str(tmp_path / "y"), "--folds", "3"]) == 0


@pytest.mark.parametrize("shares", ["0.5", "0.5,0.6", "a,b", "0.2,0.2,0.2,0.4"])
def test_bad_shares(letor, tmp_path, capsys, shares):
    assert main(["data", "split", str(letor[0]), str(tmp_path / "x"), "--shares", shares]) == 2
    assert "--shares" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipe(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("1 qid:1 1:5\n",))
    writer.start()
    assert main(["data", "convert", str(tmp_path / "pipe"), str(tmp_path / "b.txt")]) == 0
    writer.join()
    assert (tmp_path / "b.txt").read_text() == "1 qid:1 1:5\n"


def test_errors_name_the_options_of_the_command(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("1 qid:1 0:5\n")
    assert main(["data", "describe", str(tmp_path / "a.txt")]) == 1
    assert "use --zero-based" in capsys.readouterr().err


def test_scattered_queries_need_sort(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3\n")
    assert main(["data", "describe", str(tmp_path / "a.txt")]) == 1
    error = capsys.readouterr().err
    assert "use --sort" in error
    assert "sort=True" not in error
    assert main(["data", "convert", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "--sort"]) == 0
    assert load_letor(tmp_path / "b.txt").qid.tolist() == [1, 1, 2]
    (tmp_path / "a.csv").write_text("qid,label,x\n1,1,1\n2,0,2\n1,0,3\n")
    assert main(["data", "describe", str(tmp_path / "a.csv")]) == 1
    assert "a.csv: qid 1 reappears at row 2" in (error := capsys.readouterr().err)
    assert "use --sort\n" in error
    assert main(["data", "convert", str(tmp_path / "a.csv"), str(tmp_path / "b.txt"), "--sort"]) == 0
    assert load_letor(tmp_path / "b.txt").qid.tolist() == [1, 1, 2]
    assert main(["data", "describe", str(tmp_path / "b.txt"), "--drop", "x"]) == 2
    assert "--drop and --categorical name columns of CSV" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qid,label,x\n", "a.csv: there are no documents"),
        (
            "qid;label;x\n1;0;2\n",
            "a.csv: there is no column 'qid', and --qid-column or --label-column name no other; its columns are",
        ),
    ],
)
def test_tables_that_are_none(tmp_path, capsys, text, message):
    (tmp_path / "a.csv").write_text(text)
    assert main(["data", "describe", str(tmp_path / "a.csv")]) == 1
    assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["data", "sample", "--seed", "-1"])
    assert "a seed is a whole number of at least 0, got '-1'" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((20_000, 5)), np.zeros(20_000), np.arange(20_000) // 10)
    write_letor(data, tmp_path / "long.txt")
    command = f"'{sys.executable}' -m boostlist data convert long.txt - | head -n 1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("0 qid:0 ")
    assert "Traceback" not in done.stderr
