"""docs/adding_a_loss.md, followed to the letter: the package with the file and the lines that the page has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import boostlist

ROOT = Path(__file__).parents[2]
PACKAGE = Path(boostlist.__file__).parent
TESTS = ROOT / "tests"

USED = """
import sys
import boostlist
from boostlist import LinearRanker, losses, objectives
from boostlist.cli.losses import families, markdown
from boostlist.datasets import load_sample
from boostlist.evaluation.panel import parse

assert boostlist.__file__.startswith(sys.argv[1]) and "TopOne" in losses.__all__
assert objectives.top_one == losses.TopOne() == objectives.TopOne()
assert "`top_one`" in families() and "[`top_one`](#top_one)" in markdown()
assert [model.loss for model in parse("lightgbm:top_one")] == ["top_one"]
train = load_sample().train
ranker = LinearRanker("top_one").fit(train.X, train.y, qid=train.qid)
assert ranker.convergence_.converged
"""


def mirror(source: Path, target: Path, own: set[str]) -> None:
    """Link to everything in a folder but what is to be changed."""
    target.mkdir()
    for path in source.iterdir():
        if path.name not in own | {"__pycache__"}:
            (target / path.name).symlink_to(path)


def test_a_loss_is_its_own_file_and_its_lines_in_the_registry(tmp_path):
    page = (ROOT / "docs" / "adding_a_loss.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```py(?:thon)?\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    (source,) = (block for block in blocks if block.startswith('"""TopOne'))
    export, entry, reference = blocks[-3:]
    package, tests = tmp_path / "boostlist", tmp_path / "tests"
    mirror(PACKAGE, package, {"losses"})
    mirror(PACKAGE / "losses", package / "losses", {"__init__.py"})
    (package / "losses" / "top_one.py").write_text(source)
    names = (PACKAGE / "losses" / "__init__.py").read_text(encoding="utf-8")
    head, last = "registry: dict[str, type[Loss]] = {\n", "\n}\n\n__all__"
    assert names.count(head) == names.count(last) == 1
    names = names.replace(head, export + "\n" + head).replace(last, "\n" + entry + last[1:])
    (package / "losses" / "__init__.py").write_text(names)
    mirror(TESTS, tests, {"losses"})
    mirror(TESTS / "losses", tests / "losses", {"references"})
    mirror(TESTS / "losses" / "references", tests / "losses" / "references", set())
    (tests / "losses" / "references" / "top_one.py").write_text(textwrap.dedent(reference))

    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", USED, str(tmp_path)], env=env, cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-o", "pythonpath="]
    options = [f"--rootdir={tmp_path}", "-n", "0", "-p", "no:cacheprovider", "-k", "TopOne or cover"]
    test = str(tests / "losses" / "test_registry.py")
    run = subprocess.run([*command, *options, test], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) >= 30
