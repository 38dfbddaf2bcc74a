"""The import graph of the package, held against the layers of docs/architecture.md."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "boostlist"
DOOR = "boostlist.plugins"


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


def targets(node):
    """Yield the modules of the package that an import statement names: submodules rather than their package."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        for alias in node.names:
            submodule = f"{node.module}.{alias.name}"
            if submodule in MODULES or node.module in MODULES:
                yield submodule if submodule in MODULES else node.module


def for_annotations(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"


def imports(name):
    """Return what a module imports, at its top or inside a function; not what only its annotations name."""
    found, nodes = set(), [ast.parse(MODULES[name].read_text())]
    while nodes:
        node = nodes.pop()
        found |= set(targets(node))
        nodes += node.orelse if for_annotations(node) else ast.iter_child_nodes(node)
    return found - {name}


def layers():
    """Return the layer of each folder or module, in the order of the table: a row for each layer, the lowest first."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("<!-- layers -->")[2].partition("<!-- end of layers -->")[0]
    rows = [row.split("|")[1] for row in table.strip().splitlines()[2:]]
    return {name: level for level, row in enumerate(rows) for name in re.findall(r"`(\w+)(?:\.py|/)`", row)}


def unit(module):
    """Return the folder or module right below the package, ``__init__`` for the package itself."""
    return [*module.split("."), "__init__"][1]


def test_every_module_has_a_layer():
    assert {unit(name) for name in MODULES} == set(layers())


@pytest.mark.parametrize("name", sorted(set(MODULES) - {DOOR}))
def test_imports_go_down(name):
    level = layers()
    upward = {target for target in imports(name) if level[unit(target)] > level[unit(name)]}
    assert not upward, "a lower layer reaches up; is its code in the right place?"


def test_the_door_opens_when_it_is_called():
    at_the_top = [target for node in ast.parse(MODULES[DOOR].read_text()).body for target in targets(node)]
    assert not at_the_top
    assert {unit(target) for target in imports(DOOR)} == {"boosters"}


def test_no_cycles():
    graph = {name: imports(name) for name in MODULES if name != DOOR}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_the_graph_sees_lazy_imports():
    """What the tests above rest on: these are known to be there, the first inside a function."""
    assert "boostlist.solvers" in imports("boostlist.evaluation.panel")
    assert "boostlist.arrays" in imports("boostlist.losses.compiled")
    assert "boostlist.boosters.objective" not in imports("boostlist.losses.base")
