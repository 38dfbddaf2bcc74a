"""docs/models.md says what the table of rankers says."""

from __future__ import annotations

import re
from pathlib import Path

from boostlist.models import __all__ as names
from boostlist.rankers import RANKERS

PAGE = Path(__file__).parents[1] / "docs" / "models.md"


def test_the_table_has_the_first_line_of_every_model():
    rows = ["| estimator | | `compare` |", "| --- | --- | --- |"]
    for name in names:
        summary = RANKERS[name].load().__doc__.partition("\n")[0].rstrip(".").replace("|", r"\|")
        family = RANKERS[name].family
        rows.append(f"| `{name}` | {summary} | {f'`{family}`' if family else ''} |")
    text = PAGE.read_text(encoding="utf-8")
    table = re.search(r"<!-- models -->\n(.*)\n<!-- end of models -->", text, re.DOTALL)
    assert table
    assert table[1] == "\n".join(rows), "paste into docs/models.md:\n" + "\n".join(rows)
