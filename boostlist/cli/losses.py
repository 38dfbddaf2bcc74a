"""``boostlist losses [NAME]``: the registry as a table, or one loss with formula and parameters."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import shutil
import sys
from typing import Any

from boostlist.checks import did_you_mean
from boostlist.cli._usage import UsageError

EXAMPLES = """\
examples:
  boostlist losses                     all losses as a table
  boostlist losses cs_listmle          one loss with formula and parameters
  boostlist losses --families          by family, in Markdown
  boostlist losses --json | jq '.[] | select(.convex) | .name'
"""


def add_parser(commands: Any) -> None:
    """Declare the arguments."""
    parser = commands.add_parser(
        "losses",
        help="list the losses, or show one",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", help="a loss, such as cs_listmle")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="machine-readable output")
    form.add_argument("--markdown", action="store_true", help="the table in Markdown")
    form.add_argument("--families", action="store_true", help="a table by family in Markdown")
    parser.set_defaults(run=run)


def describe(name: str) -> dict[str, Any]:
    """Return what there is to say of a loss: class, summary, parameters with defaults, traits."""
    from boostlist.losses import registry

    loss = registry[name]()
    return {
        "name": name,
        "class": type(loss).__name__,
        "family": loss.family,
        "summary": (inspect.getdoc(type(loss)) or "").splitlines()[0],
        "parameters": {field.name: getattr(loss, field.name) for field in dataclasses.fields(loss)},
        **dataclasses.asdict(loss.traits),
    }


def table(width: int | None = None) -> str:
    """Return all losses as an aligned text table, its lines cut to a width."""
    from boostlist.losses import registry

    rows = [("name", "cost", "convex", "diag", "what it is")]
    for name in registry:
        about = describe(name)
        rows.append((name, f"O({about['cost']})", "yes" if about["convex"] else "no", about["diag"], about["summary"]))
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]) for row in rows]
    cut = (line if width is None or len(line) <= width else f"{line[: width - 1]}…" for line in lines)
    return "\n".join(cut)


def markdown() -> str:
    """Return all losses as a Markdown table that links to a section per loss: the one in docs/losses.md."""
    from boostlist.losses import registry

    lines = [
        "| objective | loss and default parameters | cost | convex | shift-invariant | diag | H v |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in registry:
        about = describe(name)
        convex, blind, hessp = ("yes" if about[trait] else "no" for trait in ("convex", "shift_invariant", "hessp"))
        loss, cost = f"`{registry[name]()!r}`", f"O({about['cost']})"
        cells = (f"[`{name}`](#{name})", loss, cost, convex, blind, about["diag"], hessp)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def families() -> str:
    """Return the families with their losses and costs as a Markdown table: the one in README.md."""
    from boostlist.losses import registry

    rows: dict[str, tuple[list[str], list[str]]] = {}
    for name, loss in registry.items():
        names, costs = rows.setdefault(loss.family, ([], []))
        names.append(f"`{name}`")
        costs.append(f"O({loss().traits.cost.replace('^2', '²')})")
    lines = ["| family | objectives | cost |", "|---|---|---|"]
    for family, (names, costs) in rows.items():
        lines.append(f"| {family} | {' '.join(names)} | {', '.join(dict.fromkeys(costs))} |")
    return "\n".join(lines)


def text(name: str) -> str:
    """Return one loss as text: its own documentation, and the formulas of its family."""
    from boostlist.losses import registry

    loss = registry[name]
    family = inspect.getdoc(sys.modules[loss.__module__]) or ""
    return f"{registry[name]()!r}\n\n{inspect.getdoc(loss)}\n\nThe family\n----------\n{family}"


def run(arguments: argparse.Namespace) -> int:
    """Print the table or the loss."""
    from boostlist.losses import registry

    name = arguments.name
    if name is not None and name not in registry:
        raise UsageError(f"there is no loss {name!r}; {did_you_mean(name, registry, 'see `boostlist losses`')}")
    if arguments.json:
        found = describe(name) if name else [describe(each) for each in registry]
        print(json.dumps(found, indent=2))
    elif arguments.markdown:
        print(markdown())
    elif arguments.families:
        print(families())
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(text(name) if name else table(width))
    return 0
