"""`boostlist warmup` compiles what later processes need, and a second process compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys

from boostlist.cli import main, warmup
from boostlist.losses import registry
from boostlist.metrics import registry as metrics

COUNT = """
from numba.core import event
from boostlist.cli.warmup import compile_loss, compile_metric
with event.install_recorder("numba:compile") as recorder:
    compile_loss("listnet")
    compile_loss("pairwise_logistic")
    compile_metric("mrr")
print(len(recorder.buffer))
"""


def compiled_in_a_new_process(cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout)


def test_a_second_process_compiles_nothing(tmp_path):
    assert compiled_in_a_new_process(tmp_path) > 0
    assert compiled_in_a_new_process(tmp_path) == 0


def test_every_loss_and_metric_is_compiled():
    names = [name for name, _, _ in warmup.parts()]
    assert {f"loss {name}" for name in registry} | {f"metric {name}" for name in metrics} < set(names)


def test_the_command_shows_what_is_done(capsys, monkeypatch):
    monkeypatch.setattr(warmup, "parts", lambda: iter([("metric mrr", warmup.compile_metric, "mrr")]))
    assert main(["warmup", "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == "[1/1] metric mrr\n"
    assert out.startswith("1 parts compiled in ")


def test_no_processes_is_wrong_usage(capsys):
    assert main(["warmup", "--jobs", "0"]) == 2
    assert "--jobs" in capsys.readouterr().err
