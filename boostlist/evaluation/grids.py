"""Grids: which settings of each model are tried; the best on the validation part is kept.

A grid maps a family, or the name of a model, to parameters and the values to try. Those of the families are in
`boostlist.rankers`.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boostlist.checks import did_you_mean
from boostlist.evaluation.panel import Model, check_parameter, parse
from boostlist.rankers import FAMILIES, Axes

Grid = Mapping[str, Axes]

SMALL: Grid = {name: ranker.small for name, ranker in FAMILIES.items()}
FULL: Grid = {name: ranker.full for name, ranker in FAMILIES.items()}


def read_grid(text: str) -> Grid:
    """Return a grid: ``small``, ``full``, or the contents of a TOML or JSON file.

    In a file, sections are families or models, entries are parameters, values are lists or single values. What a file
    does not name has the small grid.

    Raises
    ------
    ValueError
        If the file is no grid, or names a family, model or parameter that there is not.
    """
    if text in ("small", "full"):
        return SMALL if text == "small" else FULL
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"--grid is small, full or a file; there is no file {text}")
    try:
        content = path.read_text(encoding="utf-8")
        found = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
    except ValueError as error:
        raise ValueError(f"{path} is not a {'JSON' if path.suffix == '.json' else 'TOML'} file: {error}") from error
    grid: dict[str, Axes] = dict(SMALL)
    for section, entries in found.items():
        if not isinstance(entries, dict):
            raise ValueError(f"{path}: {section} = {entries!r} stands outside of a section such as [lightgbm]")
        model = _representative(section, path)
        for name in entries:
            check_parameter(model, name, f"{path}, [{section}]")
        grid[section] = {name: value if isinstance(value, list) else [value] for name, value in entries.items()}
        empty = [name for name, values in grid[section].items() if not values]
        if empty:
            raise ValueError(f"{path}, [{section}]: {empty[0]} has no values")
    return grid


def settings(model: Model, grid: Grid) -> list[dict[str, Any]]:
    """Return the settings of a model in the grid's order: every combination, with the model's own options fixed."""
    axes = dict(grid.get(model.name, grid[model.family]))
    axes |= {name: [value] for name, value in model.estimator_options().items()}
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def label(setting: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> str:
    """Return what tells a setting from the others, as text."""
    varied = [name for name in setting if any(other.get(name) != setting[name] for other in among)]
    return as_text({name: setting[name] for name in varied})


def as_text(setting: Mapping[str, Any]) -> str:
    """Return a setting as text."""
    return ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in setting.items()
    )


def _representative(section: str, path: Path) -> Model:
    """Return a model to check the parameters of a section with."""
    if section in FAMILIES:
        family = FAMILIES[section]
        return Model(section, "cs_listmle" if family.loss else None)
    if ":" in section:
        return parse(section)[0]
    hint = did_you_mean(section, FAMILIES, f"families are {', '.join(FAMILIES)}")
    raise ValueError(f"{path}: there is no model family {section!r}; {hint}")
