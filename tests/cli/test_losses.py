from __future__ import annotations

import json

import pytest

from boostlist.cli import main
from boostlist.cli.losses import table
from boostlist.losses import registry


def test_table_has_every_loss(capsys):
    assert main(["losses"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(registry)
    assert lines[0].index("what it is") == lines[1].index("Cost-sensitive")


def test_table_in_a_narrow_terminal():
    whole, cut = table().splitlines(), table(80).splitlines()
    assert max(map(len, cut)) == 80 < max(map(len, whole))
    assert all(short == line or line.startswith(short[:79]) for short, line in zip(cut, whole, strict=True))
    assert all(short.endswith("…") for short, line in zip(cut, whole, strict=True) if short != line)


def test_one_loss_with_formula_and_parameters(capsys):
    assert main(["losses", "cs_listmle"]) == 0
    out = capsys.readouterr().out
    assert "l = 1/DCG sum_j beta_j log2(" in out
    assert "weights" in out


def test_json(capsys):
    assert main(["losses", "cs_rglist", "--json"]) == 0
    parameters = {"label": None, "ties": "breslow", "seed": 0, "pcf": None, "grades": None}
    assert json.loads(capsys.readouterr().out)["parameters"] == parameters
    assert main(["losses", "--json"]) == 0
    assert [loss["name"] for loss in json.loads(capsys.readouterr().out)] == list(registry)


def test_an_unknown_loss_is_answered_with_near_names(capsys):
    assert main(["losses", "cslistmle"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("boostlist: there is no loss 'cslistmle'; did you mean cs_listmle")
    assert error.count("\n") == 1


def test_wrong_usage(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["--nonsense"])
    assert exit_info.value.code == 2
    with pytest.raises(ValueError, match="no loss"):
        main(["--debug", "losses", "nothing_like_it"])
