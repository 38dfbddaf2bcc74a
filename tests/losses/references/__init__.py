"""Brute-force values of every loss, written from the formulas with plain loops; they call nothing of boostlist.

A module of a family has ``value(loss, f, y, label_set)``: the loss of one query with scores f and labels y, the label
set being that of the whole data set; and CASES: the losses to test, every parameter choice at least once.
"""

from __future__ import annotations

from collections.abc import Callable

from boostlist.losses import Loss
from tests.losses.references import cs_listmle, plackett_luce

FAMILIES = [
    cs_listmle,
    plackett_luce,
]

CASES: list[Loss] = [loss for family in FAMILIES for loss in family.CASES]


def reference_of(loss: Loss) -> Callable[..., float]:
    """Return the brute-force value function of a loss."""
    return next(family.value for family in FAMILIES if loss in family.CASES)
