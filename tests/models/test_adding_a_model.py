"""docs/adding_a_model.md, followed to the letter: the package with the file and the lines that the page has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import boostlist

ROOT = Path(__file__).parents[2]
PACKAGE = Path(boostlist.__file__).parent

USED = """
import sys, tempfile
import boostlist
assert "sklearn" not in sys.modules
from boostlist import RootRanker, models
from boostlist.datasets import load_sample
from boostlist.evaluation.grids import FULL, SMALL, settings
from boostlist.evaluation.panel import parse

assert boostlist.__file__.startswith(sys.argv[1]) and "RootRanker" in dir(models)
(model,) = parse("root:cs_listmle?tol=1e-6")
assert [len(settings(model, grid)) for grid in (SMALL, FULL)] == [2, 1]
train = load_sample().train
ranker = model.make({"C": 3.0}, seed=0).fit(train.X, train.y, qid=train.qid)
assert type(ranker) is RootRanker and ranker.C == 3.0
with tempfile.TemporaryDirectory() as folder:
    loaded = boostlist.load(ranker.save(f"{folder}/m.npz"))
assert (loaded.predict(train.X) == ranker.predict(train.X)).all()
"""


def mirror(source: Path, target: Path, own: set[str]) -> None:
    """Link to everything in a folder but what is to be changed; compiled loops are found through the links."""
    target.mkdir()
    for path in source.iterdir():
        if path.name not in own | {"__pycache__"}:
            (target / path.name).symlink_to(path)


def test_a_model_is_its_own_file_and_an_entry(tmp_path):
    page = (ROOT / "docs" / "adding_a_model.md").read_text(encoding="utf-8")
    source = re.search(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    entry, typed = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    copy = tmp_path / "boostlist"
    mirror(PACKAGE, copy, {"models", "rankers.py"})
    mirror(PACKAGE / "models", copy / "models", set())
    (copy / "models" / "root.py").write_text(source)
    table = (PACKAGE / "rankers.py").read_text(encoding="utf-8")
    before_table, before_imports = "_TABLE = (\n", "    from boostlist.models.separate import BilinearRanker"
    assert table.count(before_table) == table.count(before_imports) == 1
    table = table.replace(before_table, before_table + entry).replace(before_imports, typed + before_imports)
    (copy / "rankers.py").write_text(table)

    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    subprocess.run([sys.executable, "-c", USED, str(tmp_path)], env=env, cwd=tmp_path, check=True)
    tests = [str(ROOT / "tests" / name) for name in ("models/test_ranking_estimator.py", "test_persistence.py")]
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-o", "pythonpath=", *tests]
    options = ["-n", "0", "-p", "no:cacheprovider", "-k", "RootRanker or table"]
    run = subprocess.run([*command, *options], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) >= 15
