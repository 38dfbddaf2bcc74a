"""docs/losses.md says what the registry says."""

from __future__ import annotations

import re
from pathlib import Path

from boostlist.cli.losses import families, markdown
from boostlist.losses import registry

PAGE = Path(__file__).parents[1] / "docs" / "losses.md"


def test_the_table_is_that_of_the_registry():
    text = PAGE.read_text(encoding="utf-8")
    table = re.search(r"<!-- table: boostlist losses --markdown -->\n(.*)\n<!-- end of table -->", text, re.DOTALL)
    assert table
    assert table[1] == markdown(), "paste the output of `boostlist losses --markdown` into docs/losses.md"


def test_every_loss_has_a_section():
    assert sorted(re.findall(r"^### (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == sorted(registry)


def test_the_readme_has_the_families_of_the_registry():
    text = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    table = re.search(r"<!-- losses: boostlist losses --families -->\n(.*)\n<!-- end of losses -->", text, re.DOTALL)
    assert table
    assert table[1] == families(), "paste the output of `boostlist losses --families` into README.md"
    assert sorted(re.findall(r"`(\w+)`", table[1])) == sorted(registry)
    assert f"| {len(registry)} and their sums |" in text
