"""Grids: which settings of each model are tried; the best on the validation part is kept.

A grid maps a family, or the name of a model, to parameters and the values to try. ``features`` says how features are
normalised before a linear or kernel model sees them (trees need none): a method of `RankingData.normalize`, or "plain".
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boostlist.checks import did_you_mean
from boostlist.evaluation.panel import FAMILIES, Model, check_parameter, parse

Grid = Mapping[str, Mapping[str, list[Any]]]

_TREES: dict[str, list[Any]] = {
    "num_leaves": [7, 31],
    "learning_rate": [0.1],
    "n_estimators": [300],
    "early_stopping_rounds": [25],
}
_ALL_TREES: dict[str, list[Any]] = {
    "num_leaves": [7, 15, 31, 63],
    "learning_rate": [0.03, 0.1],
    "n_estimators": [1500],
    "early_stopping_rounds": [100],
}
_ZSCORE: dict[str, list[Any]] = {"features": ["zscore"]}
_EITHER: dict[str, list[Any]] = {"features": ["zscore", "query-minmax"]}

SMALL: Grid = {
    "lightgbm": _TREES,
    "xgboost": _TREES,
    "linear": {"C": [0.1, 10.0, 1000.0], **_ZSCORE},
    "kernel": {"C": [100.0, 1000.0, 10000.0], "n_landmarks": [300], **_ZSCORE},
    "quadratic": {"C": [1.0, 100.0], "rho": [0.05], **_ZSCORE},
    "ranksvm": {"C": [0.1, 10.0, 1000.0], "normalize": ["pairs"], **_ZSCORE},
    "rankcosine": {**_ZSCORE},
}

FULL: Grid = {
    "lightgbm": _ALL_TREES,
    "xgboost": _ALL_TREES,
    "linear": {"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], **_EITHER},
    "kernel": {"C": [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0], "n_landmarks": [1000], **_EITHER},
    "quadratic": {"C": [0.01, 0.1, 1.0, 10.0, 100.0], "rho": [0.02, 0.05, 0.15], **_EITHER},
    "ranksvm": {"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], "normalize": ["pairs"], **_EITHER},
    "rankcosine": {**_EITHER},
}


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
    grid: dict[str, Mapping[str, list[Any]]] = dict(SMALL)
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
