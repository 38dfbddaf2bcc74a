"""Grids: which settings of each model are tried; the best on the validation part is kept.

A grid maps a family, or the name of a model, to parameters and the values to try. Those of the families are in
`boostlist.rankers`.
"""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from boostlist.checks import did_you_mean
from boostlist.evaluation.contenders import Contender, Grid
from boostlist.evaluation.panel import Model, check_parameter, parse
from boostlist.rankers import FAMILIES


@dataclass(frozen=True)
class Range:
    """Numbers to draw from: equally likely between `low` and `high`, or with `log` their logarithms."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"a range has low < high, and with log 0 < low; got {self.low} and {self.high}")

    def draw(self, rng: np.random.Generator) -> float | int:
        """Return a number of the range."""
        if self.log:
            return self.shown(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))
        return self.shown(rng.uniform(self.low, self.high))

    @property
    def whole(self) -> bool:
        """Whether both ends are whole numbers, and so all that are drawn."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def shown(self, value: float) -> float | int:
        """Return a number as it is tried: a whole one, or one of four digits."""
        return round(value) if self.whole else float(f"{value:.4g}")

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}{', logarithmic' if self.log else ''}"


SMALL: Grid = {name: ranker.small for name, ranker in FAMILIES.items()}
FULL: Grid = {name: ranker.full for name, ranker in FAMILIES.items()}

_TREE_RANGES: dict[str, Any] = {
    "num_leaves": Range(4, 128, log=True),
    "learning_rate": Range(0.02, 0.2, log=True),
    "colsample_bytree": Range(0.5, 1.0),
    "n_estimators": [1000],
    "early_stopping_rounds": [50],
}
_FEATURES = ["zscore", "query-minmax"]
_DRAWS = 20
RANGES: Grid = {
    **FULL,
    "lightgbm": _TREE_RANGES,
    "xgboost": _TREE_RANGES,
    "linear": {"C": Range(1e-3, 1e4, log=True), "features": _FEATURES},
    "kernel": {"C": Range(1.0, 1e5, log=True), "n_landmarks": [1000], "features": _FEATURES},
    "quadratic": {"C": Range(1e-3, 1e3, log=True), "rho": Range(0.01, 0.2, log=True), "features": _FEATURES},
    "ranksvm": {"C": Range(1e-3, 1e4, log=True), "normalize": ["pairs"], "features": _FEATURES},
    "catboost": {"depth": Range(3, 8), "learning_rate": Range(0.02, 0.2, log=True), "iterations": [1000]},
}
"""What settings are drawn from where no grid is given; families that are not named here have the full grid."""


def read_grid(source: str | Path | Mapping[str, Any], guests: Collection[str] = ()) -> Grid:
    """Return a grid: ``"small"``, ``"full"``, the contents of a TOML or JSON file, or a mapping of the same shape.

    Its sections are families or models, their entries are parameters, values are lists or single values or, where
    settings are drawn, ranges: ``{low = 0.01, high = 1, log = true}``. What it does not name has the small grid.

    Parameters
    ----------
    source
        What was asked for.
    guests
        Names of models from outside of the panel, whose parameters are not known here.

    Raises
    ------
    ValueError
        If there is no such grid, or it names a family, model or parameter that there is not.
    """
    if isinstance(source, Mapping):
        return _checked(source, "grid", guests)
    named: dict[str, Grid] = {"small": SMALL, "full": FULL, "ranges": RANGES}
    if source in named:
        return named[str(source)]
    path = Path(source)
    if not path.is_file():
        raise ValueError(f"--grid is small, full or a file; there is no file {source}")
    try:
        content = path.read_text(encoding="utf-8")
        found = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
    except ValueError as error:
        raise ValueError(f"{path} is not a {'JSON' if path.suffix == '.json' else 'TOML'} file: {error}") from error
    return _checked(found, str(path), guests)


def _checked(found: Mapping[str, Any], where: str, guests: Collection[str]) -> Grid:
    grid: dict[str, Mapping[str, Any]] = dict(SMALL)
    for section, entries in found.items():
        if not isinstance(entries, Mapping):
            raise ValueError(f"{where}: {section} = {entries!r} stands outside of a section such as [lightgbm]")
        if section not in guests and section.partition(":")[0] != "catboost":
            model = _representative(section, where)
            for name in entries:
                check_parameter(model, name, f"{where}, [{section}]")
        grid[section] = {name: _values(value, f"{where}, [{section}]: {name}") for name, value in entries.items()}
    return grid


def _values(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        try:
            return Range(**value)
        except TypeError:
            raise ValueError(f"{where} is no range; write {{low = 0.01, high = 1, log = true}}") from None
    if isinstance(value, Range):
        return value
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise ValueError(f"{where} has no values")
    return values


def settings(model: Contender, grid: Grid) -> list[dict[str, Any]]:
    """Return the settings of a model in the grid's order: every combination, with the model's own options fixed."""
    axes = model.axes(grid)
    ranges = [name for name, values in axes.items() if isinstance(values, Range)]
    if ranges:
        raise ValueError(f"model {model.name}: {ranges[0]} has a range; say how many settings to draw with --tune")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def drawn(model: Contender, grid: Grid, count: int, seed: int) -> list[dict[str, Any]]:
    """Return settings of a model drawn at random: all models of a family get the same, and all models as many.

    Where there are no more combinations than that, each is tried once.
    """
    axes = model.axes(grid)
    if all(isinstance(values, list) for values in axes.values()) and count >= math.prod(map(len, axes.values())):
        return settings(model, grid)
    rng = np.random.default_rng(seed)
    found: dict[str, dict[str, Any]] = {}
    for _ in range(_DRAWS * count):  # there may be fewer different ones than that
        if len(found) == count:
            break
        setting = {name: _draw(values, rng) for name, values in axes.items()}
        found.setdefault(str(setting), setting)
    return list(found.values())


def _draw(values: Any, rng: np.random.Generator) -> Any:
    return values.draw(rng) if isinstance(values, Range) else values[int(rng.integers(len(values)))]


def label(setting: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> str:
    """Return what tells a setting from the others, as text."""
    varied = [name for name in setting if any(other.get(name) != setting[name] for other in among)]
    return as_text({name: setting[name] for name in varied})


def as_text(setting: Mapping[str, Any]) -> str:
    """Return a setting as text."""
    return ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in setting.items()
    )


def _representative(section: str, where: str) -> Model:
    """Return a model to check the parameters of a section with."""
    if section in FAMILIES:
        family = FAMILIES[section]
        return Model(section, "cs_listmle" if family.loss else None)
    if ":" in section:
        return parse(section)[0]
    hint = did_you_mean(section, FAMILIES, f"families are {', '.join(FAMILIES)}")
    raise ValueError(f"{where}: there is no model family {section!r}; {hint}")
