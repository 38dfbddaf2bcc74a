"""Every example runs, and says something sensible; the reproductions run on a few queries of the sample."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SIMPLE = sorted(EXAMPLES.glob("*.py"))
REPRODUCTIONS = sorted(path for path in (EXAMPLES / "reproduce").glob("*.py") if not path.name.startswith("_"))

# These start processes, or measure their own memory: each needs a process of its own.
ALONE = ("dask_cluster.py", "out_of_core.py")
# Arguments without which an example has nothing to do, or too much for a test.
ARGUMENTS = {
    "functionals.py": ["--quick", "--tables", "5,6"],
    "rank_cosine.py": ["--quick", "--tables", "4"],
    "interval_rank.py": ["--quick", "--tables", "3"],
    "cs_listmle.py": ["--quick"],
    "cs_rglist.py": ["--quick", "--tables", "1"],
    "rank_answers.py": ["--questions", "200"],
    "out_of_core.py": ["lightgbm", "2400"],
}
# NDCG@10 on the sample's test part, far above the 0.3 of an untrained model.
QUALITY = {
    "lightgbm_in_ten_lines": 0.61,
    "xgboost_in_ten_lines": 0.56,
    "grid_search": 0.58,
    "sums_of_losses": 0.61,
    "ensemble": 0.63,
    "custom_loss": 0.58,
    "tree_against_kernel": 0.57,
}


def output(path, capfd, monkeypatch):
    arguments = ARGUMENTS.get(path.name, [])
    if path.name in ALONE:
        # The tests may run from a checkout that is not installed, or installed elsewhere.
        search = os.pathsep.join([str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, str(path), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=600, env={**os.environ, "PYTHONPATH": search}
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    monkeypatch.syspath_prepend(str(path.parent))
    runpy.run_path(str(path), run_name="__main__")
    return capfd.readouterr().out


@pytest.mark.parametrize("path", SIMPLE, ids=lambda path: path.stem)
def test_example(path, capfd, monkeypatch):
    found = output(path, capfd, monkeypatch)
    assert found.strip()
    assert "nan" not in found.lower().split()
    if path.stem in QUALITY:
        assert min(float(value) for value in re.findall(r"0\.\d{4}", found)) > QUALITY[path.stem]

    if path.stem == "out_of_core" and sys.platform == "linux":
        batches, at_once = (int(share) for share in re.findall(r"MB: (\d+)%", found))
        assert batches < 100 < at_once


@pytest.mark.parametrize("path", REPRODUCTIONS, ids=lambda path: path.stem)
def test_reproduction(path, capfd, monkeypatch):
    found = output(path, capfd, monkeypatch)
    cells = [float(cell) for cell in re.findall(r"\b[01]\.\d{4}\b", found)]
    assert len(cells) > 20
    assert all(0 <= cell <= 1 for cell in cells)
    rows = [line.count("|") for line in found.splitlines() if line.startswith("|")]
    assert min(rows) >= 5


# A line for each document of a part; what a reproduction says of folds whose parts are this.
LACKING = {
    "is no data set": [],
    "training part of fold 1: there is no feature in which documents differ": ["0 qid:1", "1 qid:1", "2 qid:2"],
    "training part of fold 1: there is one query": ["0 qid:1 1:3", "1 qid:1 1:2"],
    "training part of fold 1: no query has documents of different grades": [
        "0 qid:1 1:3",
        "0 qid:1 1:2",
        "1 qid:2 1:2",
    ],
    "has no fold 9": ["0 qid:1 1:3", "1 qid:1 1:2", "0 qid:2 1:1"],
}


def parts(folder, lines):
    for part in ("train", "vali", "test") if lines else ():
        (folder / "Fold1").mkdir(exist_ok=True)
        (folder / "Fold1" / f"{part}.txt").write_text("\n".join(lines) + "\n")


def last_words(path, arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    monkeypatch.syspath_prepend(str(path.parent))
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(path), run_name="__main__")
    return str(stop.value)


@pytest.mark.parametrize("path", REPRODUCTIONS, ids=lambda path: path.stem)
@pytest.mark.parametrize("message", LACKING)
def test_a_reproduction_says_in_one_line_what_is_missing(path, message, tmp_path, monkeypatch):
    parts(tmp_path, LACKING[message])
    arguments = ["--folds", "9"] if "fold 9" in message else []
    said = last_words(path, [str(tmp_path), *arguments], monkeypatch)
    assert message in said
    assert "\n" not in said


def test_folds_of_all_queries_need_queries_with_ids_of_their_own(tmp_path, monkeypatch):
    parts(tmp_path, LACKING["has no fold 9"])
    said = last_words(EXAMPLES / "reproduce" / "rank_cosine.py", [str(tmp_path)], monkeypatch)
    assert said == "a query occurs in more than one of the data sets"


def test_rankboost_takes_the_best_weak_learner(monkeypatch):
    """Round by round, the largest |r| over all thresholds of the weights of pairs, and its alpha."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "reproduce"))
    from _baselines import RankBoost

    rng = np.random.default_rng(0)
    X, y, qid = rng.integers(0, 4, (12, 3)).astype(float), rng.integers(0, 3, 12), np.repeat([0, 1], 6)
    pairs = [(i, j) for i in range(12) for j in range(12) if qid[i] == qid[j] and y[i] > y[j]]
    f = np.zeros(12)
    for feature, theta, alpha in RankBoost(rounds=5).fit(X, y, qid).learners_:
        D = np.array([np.exp(f[j] - f[i]) for i, j in pairs])
        h = {(k, t): (X[:, k] > t).astype(float) for k in range(3) for t in (0.5, 1.5, 2.5)}
        r = {
            learner: sum(d * (g[i] - g[j]) for d, (i, j) in zip(D / D.sum(), pairs, strict=True))
            for learner, g in h.items()
        }
        assert abs(r[feature, theta]) == pytest.approx(max(map(abs, r.values())))
        assert alpha == pytest.approx(0.5 * np.log((1 + r[feature, theta]) / (1 - r[feature, theta])))
        f += alpha * h[feature, theta]


@pytest.mark.parametrize("path", SIMPLE + REPRODUCTIONS, ids=lambda path: path.stem)
def test_documented(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", SIMPLE, ids=lambda path: path.stem)
def test_the_gallery_has_a_picture_of_it(path):
    assert "plt.show()" in path.read_text(encoding="utf-8")
