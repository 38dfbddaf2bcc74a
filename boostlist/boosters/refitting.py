"""Leaf values estimated anew on other data, while trees keep their splits.

Round by round, with gradient g and Hessian h of the loss at the scores so far and the sums G, H over the documents of a
leaf, as LightGBM's ``Booster.refit`` has it for its own objectives,

    value := decay x value + (1 - decay) x rate x step,   step = - sign(G) max(|G| - alpha, 0) / (H + lambda)

The next round sees the scores of the new values. LightGBM itself has no refit for custom objectives, and XGBoost's
``process_type="update"`` knows no decay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import FloatArray

if TYPE_CHECKING:
    from boostlist.boosters.hosts import Gradients, Host

_ROUNDS_AT_ONCE = 50  # of which the leaves of all documents are held


@dataclass(frozen=True)
class LeafRule:
    """How a host makes a leaf's value of gradients: learning rate, penalties, and largest step or 0 for none."""

    rate: float
    alpha: float
    lambda_: float
    max_step: float

    def step(self, gradient: FloatArray, hessian: FloatArray) -> FloatArray:
        """Return the step of leaves with these sums; 0 for a leaf without documents."""
        pull = np.sign(gradient) * np.maximum(np.abs(gradient) - self.alpha, 0)
        weight = hessian + self.lambda_
        step: FloatArray = np.divide(-pull, weight, out=np.zeros_like(pull), where=weight > 0)
        return np.clip(step, -self.max_step, self.max_step) if self.max_step > 0 else step


@dataclass(frozen=True)
class Leaves:
    """The leaves of a booster.

    Attributes
    ----------
    values
        For each tree the value of each leaf, at the number under which `Host.leaf_numbers` has it.
    rates
        For each tree the learning rate in its values.
    per_round
        Number of trees that are grown at the same scores.
    base
        Score of a document before the first tree.
    """

    values: list[FloatArray]
    rates: list[float]
    per_round: int = 1
    base: float = 0.0


def refitted(
    host: Host, booster: Any, X: Any, gradients: Gradients, rule: LeafRule, decay: float, start: FloatArray
) -> Any:
    """Return a booster with the same trees and new leaf values.

    Parameters
    ----------
    host, booster
        The booster and its host.
    X
        Features of the new data.
    gradients
        Scores -> gradient and Hessian there.
    rule
        How a leaf's value is made.
    decay
        Share of the old values.
    start
        Scores that the trees add to.
    """
    leaves = host.leaves(booster, rule.rate)
    prepared, scores = host.prepared(X), leaves.base + start
    values: list[FloatArray] = []
    for begin in range(0, host.rounds(booster), _ROUNDS_AT_ONCE):
        numbers = host.leaf_numbers(booster, prepared, begin, min(begin + _ROUNDS_AT_ONCE, host.rounds(booster)))
        for first in range(0, numbers.shape[1], leaves.per_round):
            g, h = gradients(scores)
            scores = scores.copy()
            for number in numbers.T[first : first + leaves.per_round]:
                old, rate = leaves.values[len(values)], leaves.rates[len(values)]
                G, H = (np.asarray(np.bincount(number, each, len(old)), np.float64) for each in (g, h))
                values.append(decay * old + (1 - decay) * rate * rule.step(G, H))
                scores += values[-1][number]
    return host.with_leaves(booster, replace(leaves, values=values))
