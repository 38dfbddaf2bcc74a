"""`boostlist warmup` compiles what later processes need; that these find it is in `test_second_process`."""

from __future__ import annotations

from boostlist.cli import main, warmup
from boostlist.losses import registry
from boostlist.metrics import registry as metrics


def test_every_loss_and_metric_is_compiled():
    names = [name for name, _, _ in warmup.parts()]
    assert {f"loss {name}" for name in registry} | {f"metric {name}" for name in metrics} < set(names)


def test_the_command_shows_what_is_done(capsys, monkeypatch):
    monkeypatch.setattr(warmup, "parts", lambda: iter([("metric mrr", warmup.compile_metric, "mrr")]))
    assert main(["warmup", "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == "[1/1] metric mrr\n"
    assert out.startswith("1 parts compiled in ")
