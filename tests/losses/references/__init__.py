"""Brute-force values of every loss, written from the formulas with plain loops; they call nothing of boostlist.

A module of a family has ``value(loss, f, y, label_set)``: the loss of one query with scores f and labels y, the label
set being that of the whole data set; and CASES: the losses to test, every parameter choice at least once. A family with
kinks has ``kink_distance(loss, f, y)``: how far the scores of a query are from the nearest one.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable

from boostlist.losses import Loss

FAMILIES = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]

CASES: list[Loss] = [loss for family in FAMILIES for loss in family.CASES]


def reference_of(loss: Loss) -> Callable[..., float]:
    """Return the brute-force value function of a loss."""
    return next(family.value for family in FAMILIES if loss in family.CASES)


def kink_distance(loss: Loss, f: list[float], y: list[float]) -> float:
    """Return how far the scores of a query are from a kink of value or gradient; inf if there is none."""
    family = next((family for family in FAMILIES if loss in family.CASES), None)
    return family.kink_distance(loss, f, y) if hasattr(family, "kink_distance") else math.inf
