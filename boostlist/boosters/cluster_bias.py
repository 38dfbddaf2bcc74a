"""Biases of positions on a cluster of XGBoost: every worker holds the same, moved by sums over all workers.

XGBoost has no place for positions. Their codes travel with the rows as ``label_lower_bound``, which no objective but
those for survival times reads, and the sums of a round are added up over workers by XGBoost's own collective. When
training ends the biases of every round become an attribute of the booster, which is how they leave the cluster.
"""

from __future__ import annotations

import json
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xgboost as xgb
from xgboost import collective

from boostlist._typing import AnyArray, FloatArray
from boostlist.boosters.binding import read_call
from boostlist.boosters.objective import Objective
from boostlist.boosters.position_bias import Debiased
from boostlist.positions import Positions

FIELD = "label_lower_bound"
"""Where XGBoost keeps the codes of positions."""

_NOTE = "boostlist_position_bias"


class ClusterObjective:
    """An objective for the workers of one training, with the labels of all positions and the learning rate of trees."""

    def __init__(self, objective: Objective, labels: tuple[Any, ...], rate: float) -> None:
        self.objective, self.labels, self.rate = objective, labels, rate
        self._of_worker: WeakKeyDictionary[Any, Debiased] = WeakKeyDictionary()
        self.path: list[FloatArray] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.objective, self.labels, self.rate)

    def __call__(self, scores: Any, dmatrix: Any) -> tuple[AnyArray, AnyArray]:
        """Return gradient and Hessian diagonal of a worker's documents at scores with biases, and move these."""
        call = read_call(scores, dmatrix, None, None)
        if dmatrix not in self._of_worker:
            codes = dmatrix.get_float_info(FIELD).astype(np.int64)
            bound, _ = self.objective.bind_call(call)
            rule = self.objective.position_bias
            self._of_worker[dmatrix] = Debiased(bound, Positions(codes, self.labels), rule, self.rate, _over_workers)
        debiased = self._of_worker[dmatrix]
        self.path = debiased.path
        return debiased(call.scores)


def _over_workers(sums: FloatArray) -> FloatArray:
    return np.asarray(collective.allreduce(sums.ravel(), collective.Op.SUM)).reshape(sums.shape)


class NotePath(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """Notes the biases of every round in the booster when training ends."""

    def __init__(self, objective: ClusterObjective) -> None:
        self.objective = objective

    def after_training(self, model: Any) -> Any:  # noqa: D102
        model.set_attr(**{_NOTE: json.dumps([b.tolist() for b in self.objective.path])})
        return model


def taken_path(booster: Any) -> list[FloatArray]:
    """Take the note of `NotePath` out of a booster, and return it."""
    path = json.loads(booster.attr(_NOTE))
    booster.set_attr(**{_NOTE: None})
    return [np.array(b) for b in path]
