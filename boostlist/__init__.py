"""Listwise ranking objectives for LightGBM and XGBoost, and the parametric rankers trained on the same losses."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from boostlist._version import __version__

if TYPE_CHECKING:
    from boostlist import boosters, datasets, distributed, evaluation, losses, metrics, model_selection, objectives
    from boostlist.boosters.tree_ranker import TreeRanker
    from boostlist.parallel import get_threads, set_threads
    from boostlist.queries import Queries

# Loaded on first use: `import boostlist` compiles nothing and imports neither numba, pandas nor a booster.
_MODULES = ("boosters", "datasets", "distributed", "evaluation", "losses", "metrics", "model_selection", "objectives")
_NAMES = {
    "Queries": "queries",
    "get_threads": "parallel",
    "set_threads": "parallel",
    "TreeRanker": "boosters.tree_ranker",
}

__all__ = [
    "Queries",
    "TreeRanker",
    "__version__",
    "boosters",
    "datasets",
    "distributed",
    "evaluation",
    "get_threads",
    "losses",
    "metrics",
    "model_selection",
    "objectives",
    "set_threads",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"boostlist.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"boostlist.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'boostlist' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
