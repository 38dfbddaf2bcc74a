"""Every Python block of README and docs runs, the blocks of a file one after the other."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import boostlist
from boostlist.cli import make_parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language="python"):
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text[: match.start(1)].count("\n") + 1, match[1]) for match in found]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, code in blocks(page):
        if code.startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), line)
            runner = doctest.DocTestRunner()
            runner.run(session, clear_globs=False)
            assert runner.failures == 0
            namespace.update(session.globs)
            continue
        # Blank lines in front, so that a traceback shows the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
        printed = re.findall(SCORE, capsys.readouterr().out)
        shown = shown_scores(page, line, code)
        # Trees may differ a little with the host's version.
        assert not shown or [float(each) for each in printed] == pytest.approx(shown, abs=0.006), f"line {line}"


SCORE = r"\b0\.\d{3}\b"


def shown_scores(page, line, code):
    """Return the scores that a page says a block prints: in a comment behind print, and in a block of text below it."""
    comments = re.findall(rf"^print\(.*# *({SCORE})$", code, re.MULTILINE)
    below = "\n".join(page.read_text(encoding="utf-8").splitlines()[line - 1 + code.count("\n") + 1 :]).lstrip()
    output = below[4:].partition("```")[0] if below.startswith("```\n") else ""
    return [float(each) for each in comments + re.findall(SCORE, output)]


SHELL = [(page, code) for page in PAGES for _, code in blocks(page, "(?:sh|console)")]


@pytest.mark.parametrize(("page", "code"), SHELL, ids=[page.name for page, _ in SHELL])
def test_shell_blocks(page, code, tmp_path):
    """Blocks run as they are, except that an installation or a whole comparison is only parsed."""
    commands = [line.removeprefix("$ ") for line in code.replace("\\\n", " ").splitlines()]
    if any(re.search(r"pip install|boostlist compare|examples/|benchmarks/", line) for line in commands):
        for line in commands:
            for command in re.findall(r"boostlist (compare[^#&|]*)", line):
                make_parser().parse_args(shlex.split(command))
        return
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http|#|mailto)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


MODULES = [module.name for module in pkgutil.walk_packages(boostlist.__path__, "boostlist.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
