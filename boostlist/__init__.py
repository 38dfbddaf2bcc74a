"""Listwise ranking objectives for LightGBM and XGBoost, and the parametric rankers trained on the same losses."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from boostlist._version import __version__
from boostlist.rankers import RANKERS as _RANKERS

if TYPE_CHECKING:
    from boostlist import (
        boosters,
        datasets,
        distributed,
        ensemble,
        evaluation,
        losses,
        metrics,
        model_selection,
        models,
        objectives,
    )
    from boostlist.evaluation.comparison import compare
    from boostlist.parallel import get_threads, set_threads
    from boostlist.persistence import load
    from boostlist.queries import Queries
    from boostlist.rankers import *  # noqa: F403 - the classes of the table

# Loaded on first use: `import boostlist` compiles nothing and imports neither numba, pandas nor a booster.
_MODULES = (
    "boosters",
    "datasets",
    "distributed",
    "ensemble",
    "evaluation",
    "losses",
    "metrics",
    "model_selection",
    "models",
    "objectives",
)
_NAMES = {
    "Queries": "queries",
    "compare": "evaluation.comparison",
    "get_threads": "parallel",
    "load": "persistence",
    "set_threads": "parallel",
}

__all__ = [
    "Queries",
    "__version__",
    "boosters",
    "compare",
    "datasets",
    "distributed",
    "ensemble",
    "evaluation",
    "get_threads",
    "load",
    "losses",
    "metrics",
    "model_selection",
    "models",
    "objectives",
    "set_threads",
]
__all__ += list(_RANKERS)


def __getattr__(name: str) -> Any:
    if name in _RANKERS:
        return _RANKERS[name].load()
    if name in _MODULES:
        return importlib.import_module(f"boostlist.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"boostlist.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'boostlist' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
