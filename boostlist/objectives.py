"""The losses as objectives: the classes, and a ready instance of each under its lower-case registry name.

The same object serves, as it is, ``lgb.train({"objective": o}, ...)``, ``LGBMRanker(objective=o)``,
``DaskLGBMRanker(objective=o)`` and ``xgb.train(params, dtrain, obj=o)``:

>>> from boostlist import objectives
>>> objectives.cs_listmle
CsListMLE(k=None, weights='ndcg', gain='exp2')
>>> objectives.CsListMLE(k=10)
CsListMLE(k=10, weights='ndcg', gain='exp2')
"""

from __future__ import annotations

from typing import Any

from boostlist.losses import registry

_CLASSES = {loss.__name__: loss for loss in registry.values()}

__all__ = [*registry, *_CLASSES]


def __getattr__(name: str) -> Any:
    if name in registry:
        return registry[name]()
    if name in _CLASSES:
        return _CLASSES[name]
    raise AttributeError(f"module 'boostlist.objectives' has no attribute {name!r}; it has {', '.join(registry)}")


def __dir__() -> list[str]:
    return __all__
