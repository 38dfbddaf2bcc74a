"""CatBoost's own ranking losses in a comparison: ``catboost:YetiRank``, ``catboost:QueryRMSE``, ...

CatBoost stops early by metrics of its own only. Here it grows all trees, and keeps as many as are best by the selection
metric on the validation part, measured after every tree; so it is chosen as the other trees are, only not trained less.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boostlist._typing import FloatArray
from boostlist.checks import did_you_mean
from boostlist.datasets import RankingData
from boostlist.evaluation.contenders import Grid, Guest, Trained, inputs
from boostlist.evaluation.panel import read_options
from boostlist.metrics import Metric

LOSSES = (
    "YetiRank",
    "YetiRankPairwise",
    "QueryRMSE",
    "QuerySoftMax",
    "PairLogit",
    "PairLogitPairwise",
    "StochasticRank:metric=NDCG",
    "LambdaMart",
    "RMSE",
)
SMALL: Mapping[str, Any] = {"depth": [4, 6], "learning_rate": [0.1], "iterations": [300]}


@dataclass(frozen=True)
class CatBoostModel(Guest):
    """CatBoost with a loss function of its own; `options` are fixed parameters of ``catboost.CatBoost``."""

    loss_function: str
    options: tuple[tuple[str, Any], ...] = ()

    kind = "tree"
    is_reference = True
    learns = True

    @property
    def family(self) -> str:
        """``"catboost"``, by which a grid may name all of them."""
        return "catboost"

    def axes(self, grid: Grid) -> Mapping[str, Any]:
        """Return what the grid has under the model's name or the family, else depths of 4 and 6."""
        found = grid.get(self.name, grid.get(self.family, SMALL))
        return {**found, **{name: [value] for name, value in self.options}}

    def fit(
        self, setting: Mapping[str, Any], train: RankingData, vali: RankingData, metric: Metric, seed: int
    ) -> Trained:
        """Grow all trees and keep as many as are best on the validation part."""
        from catboost import CatBoost, Pool

        fixed = {"loss_function": self.loss_function, "random_seed": seed, "thread_count": 1, "verbose": False}
        model = CatBoost({**fixed, "allow_writing_files": False, **setting})
        groups = np.unique(train.qid, return_inverse=True)[1]
        model.fit(Pool(inputs(train), train.y, cat_features=list(train.categories or ()), group_id=groups))
        bound = metric.bind(vali.queries)
        stages = model.staged_predict(inputs(vali), thread_count=1)
        values = [float(np.nanmean(bound.per_query(np.asarray(scores, np.float64)))) for scores in stages]
        best = int(np.argmax(values) if metric.higher_is_better else np.argmin(values)) + 1

        def scores(data: RankingData) -> FloatArray:
            return np.asarray(model.predict(inputs(data), ntree_end=best, thread_count=1), np.float64)

        return Trained(scores, model, {"rounds": values}, best, self.loss_function)


def parse_catboost(text: str) -> CatBoostModel:
    """Return the model of a name such as ``catboost:YetiRank?depth=6``.

    Raises
    ------
    ValueError
        If CatBoost has no such loss.
    ImportError
        If CatBoost is not installed.
    """
    base, _, options = text.partition("?")
    loss = base.partition(":")[2]
    if loss not in LOSSES:
        hint = did_you_mean(loss, LOSSES, f"its losses are {', '.join(LOSSES)}", prefix="catboost:")
        raise ValueError(f"model {text!r}: catboost has no loss {loss!r}; {hint}")
    if importlib.util.find_spec("catboost") is None:
        raise ImportError(f'{base} needs CatBoost: pip install "boostlist[catboost]"')
    return CatBoostModel(text, loss, tuple(read_options(base, options)))
