"""Parametric rankers: scikit-learn estimators made of a design, a loss and a solver.

The classes are those of `boostlist.rankers` that live in this folder, imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boostlist.rankers import RANKERS as _RANKERS

if TYPE_CHECKING:
    from boostlist.rankers import *  # noqa: F403 - the classes of the table

__all__ = [name for name, ranker in _RANKERS.items() if ranker.estimator.startswith("boostlist.models.")]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _RANKERS[name].load()
    raise AttributeError(f"module 'boostlist.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
