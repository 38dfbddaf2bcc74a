"""Evaluation: cross-validation over folds, comparisons, significance, reports."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boostlist.evaluation import significance
    from boostlist.evaluation.comparison import Comparison, compare
    from boostlist.evaluation.grids import Range

# Loaded on first use: they bring SciPy's statistics and more that training and ranking do not need.
_NAMES = {"Comparison": "comparison", "Range": "grids", "compare": "comparison"}

__all__ = ["Comparison", "Range", "compare", "significance"]


def __getattr__(name: str) -> Any:
    if name == "significance":
        return importlib.import_module("boostlist.evaluation.significance")
    if name in _NAMES:
        return getattr(importlib.import_module(f"boostlist.evaluation.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'boostlist.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
