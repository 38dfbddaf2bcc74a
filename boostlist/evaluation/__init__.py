"""Evaluation: cross-validation over folds, comparisons, significance, reports."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boostlist.evaluation import significance

# Loaded on first use: it brings SciPy's statistics, which training and ranking do not need.
_MODULES = ("significance",)

__all__ = ["significance"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"boostlist.evaluation.{name}")
    raise AttributeError(f"module 'boostlist.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
