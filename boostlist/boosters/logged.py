"""Objectives on logs of clicks: list by list or, with propensities, click by click, and freed of position bias."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.arrays import vector
from boostlist.boosters.binding import bound_once, read_call
from boostlist.boosters.defaults import bind_for_trees
from boostlist.boosters.lists import Lists
from boostlist.boosters.objective import BoundObjective, Objective, answer, check_host
from boostlist.boosters.position_bias import Debiased
from boostlist.checks import warn
from boostlist.losses.base import Loss
from boostlist.positions import Positions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Gathered:
    """Gradients of documents that stand in several lists, from those of lists in which they stand once.

    Attributes
    ----------
    bound, rows
        What is bound to the latter, and for each of their documents its row among the former.
    """

    bound: BoundObjective
    rows: IntArray

    @property
    def objective(self) -> Objective:
        """What was bound."""
        return self.bound.objective

    def __call__(self, scores: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return gradient and Hessian diagonal in float32, summed over the lists."""
        g, h = (np.bincount(self.rows, each, len(scores)) for each in self.bound(scores[self.rows]))
        return g.astype(np.float32), h.astype(np.float32)


@dataclass(frozen=True, eq=False)
class PropensityObjective:
    """An objective with a propensity for each document of the one data set that it may be used on.

    Attributes
    ----------
    objective
        The objective.
    propensity, clip
        As for `boostlist.propensities.by_click`.
    """

    objective: Objective
    propensity: FloatArray
    clip: float

    def __call__(self, a: Any, b: Any, weight: Any = None, group: Any = None) -> tuple[AnyArray, AnyArray]:
        """Return gradient and Hessian diagonal in float32, as the hosts store them."""
        call = read_call(a, b, weight, group)

        def bind(lists: Lists) -> tuple[BoundObjective | Gathered, Positions | None]:
            check_host(self.objective.loss, call)
            return bind_by_click(self.objective, lists, self.propensity, self.clip), lists.position

        bound = bound_once(call, (self.objective, self.clip, self.propensity.tobytes()), bind)
        return answer(call, *bound, self.objective)


def bind_by_click(
    objective: Objective, lists: Lists, propensity: ArrayLike | None, clip: float
) -> BoundObjective | Gathered:
    """Bind an objective to lists as it is, click by click if propensities are known."""
    if propensity is None:
        return objective.bind(lists.queries, lists.document_weight)
    clicks, rows = lists.by_click(propensity, clip)
    return Gathered(objective.bind(clicks.queries, clicks.document_weight), rows)


def with_propensity(loss: Loss | Objective, propensity: ArrayLike, clip: float) -> PropensityObjective:
    """Return an objective that weighs clicks; see `boostlist.objectives.with_propensity`."""
    objective = loss if isinstance(loss, Objective) else Objective(loss=loss)
    return PropensityObjective(objective, vector(propensity, "propensity"), clip)


def debiased_training(
    bound: BoundObjective | Gathered | str, positions: Positions | None, before: Any, rate: float
) -> Debiased | None:
    """Return gradients for one training, freed of position bias; None without positions, or if the host has its own.

    Parameters
    ----------
    bound, positions
        What is trained on, and where its documents were shown.
    before
        A ranker or booster to continue from, or None; its ``position_bias_`` is where biases start.
    rate
        Learning rate of the trees.
    """
    if isinstance(bound, str) or positions is None:
        return None
    rule, known = bound.objective.position_bias, getattr(before, "position_bias_", None)
    if known is not None and not rule.start:
        rule = replace(rule, start=known)
    elif before is not None and not rule.start:
        warn(
            "the biases of positions start at 0, since init_model has none; give those of its training with "
            "objective=loss.objective(position_bias=...), if it had any"
        )
    return Debiased(bound, positions, rule, rate)


def bind_logged(
    objective: Objective | str, share: float | None, lists: Lists, propensity: ArrayLike | None, clip: float
) -> BoundObjective | Gathered | str:
    """Bind an objective to the data of a training, click by click if propensities are known.

    Raises
    ------
    ValueError
        If propensities are given for an objective of the host, or are not what they must be.
    """
    if isinstance(objective, str):
        if propensity is not None:
            raise ValueError(f"propensity= is for losses of boostlist; {objective} is the host's own")
        return objective
    if propensity is None:
        return bind_for_trees(objective, share, lists)
    clicks, rows = lists.by_click(propensity, clip)
    return Gathered(bind_for_trees(objective, share, clicks), rows)
