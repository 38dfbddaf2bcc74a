"""What all commands share: help with examples, the version, exit codes, one-line errors."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

import boostlist
from boostlist.cli import COMMANDS, main, make_parser

NAMES = [command.__name__.rpartition(".")[2] for command in COMMANDS]


@pytest.mark.parametrize("arguments", [[], *([name] for name in NAMES)], ids=str)
def test_help_has_examples(arguments, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main([*arguments, "--help"])
    assert exit_info.value.code == 0
    found = capsys.readouterr().out
    assert "examples:" in found
    assert f"boostlist {' '.join(arguments)}" in found
    assert "`" not in found


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_in_help_can_be_parsed(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    text = re.sub(r"\\\n\s*", "", capsys.readouterr().out.partition("examples:")[2])
    parsed = 0
    for line in text.splitlines():
        for part in re.split(r"\s\|\s", line):
            command = re.split(r"\s>\s|\s{3,}", part.strip())[0]
            if command.startswith("boostlist "):
                make_parser().parse_args(shlex.split(command)[1:])
                parsed += 1
    assert parsed > 0


def test_version(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["--version"])
    assert exit_info.value.code == 0
    assert capsys.readouterr().out == f"boostlist {boostlist.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["data"], ["evaluate", "x"], ["evaluate", "x", "--scores"]])
def test_wrong_usage_ends_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    assert exit_info.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["compare"], ["train", "x", "-o", "y"], ["warmup"]], ids=lambda each: each[0])
@pytest.mark.parametrize("jobs", ["0", "-3", "two"])
def test_there_is_at_least_one_job(command, jobs, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main([*command, "--jobs", jobs])
    assert exit_info.value.code == 2
    assert f"--jobs: it must be a whole number of at least 1, got '{jobs}'" in capsys.readouterr().err


def test_debug_shows_the_traceback(tmp_path):
    command = [sys.executable, "-m", "boostlist"]
    rest = ["data", "describe", str(tmp_path / "nothing.txt")]
    plain = subprocess.run([*command, *rest], capture_output=True, text=True, check=False)
    assert plain.returncode == 2
    assert plain.stderr.count("\n") == 1
    debug = subprocess.run([*command, "--debug", *rest], capture_output=True, text=True, check=False)
    assert debug.returncode == 1
    assert "Traceback" in debug.stderr


def test_interruption(monkeypatch, capsys):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("boostlist.cli.data.run_describe", interrupt)
    assert main(["data", "describe"]) == 130
    assert "interrupted" in capsys.readouterr().err
