"""An experiment's outcome made up from numbers, without any training."""

from __future__ import annotations

import numpy as np

from boostlist.datasets import Folds
from boostlist.evaluation.experiment import Outcome, Plan
from boostlist.evaluation.folds import FoldFacts
from boostlist.evaluation.grids import settings
from boostlist.evaluation.panel import panel
from boostlist.evaluation.storage import Result

NAMES = ("lightgbm:lambdarank", "lightgbm:cs_listmle", "linear:cs_listmle", "kernel:cs_listmle")
LEVEL = {"lightgbm:lambdarank": 0.6, "lightgbm:cs_listmle": 0.64, "linear:cs_listmle": 0.5, "kernel:cs_listmle": 0.6}
GRID = {
    "lightgbm": {"num_leaves": [7, 31]},
    "linear": {"C": [1.0]},
    "kernel": {"C": [1.0]},
}
QUERIES, FOLDS = 30, (1, 2, 3)
LENGTHS = np.arange(200) + 5


def made_up(path, names=NAMES, queries=QUERIES, metrics=("ndcg@10", "err"), models=None, grid=GRID) -> Outcome:
    """Return an outcome in which a model has its `LEVEL` plus noise; 31 leaves are better by 0.01."""
    models = models or tuple(panel(names))
    source = Folds(path, "file", FOLDS, {0: [path]})
    plan = Plan(source, models, models[0], grid, metrics, metrics[0])
    outcome = Outcome(plan)
    for fold in FOLDS:
        rng = np.random.default_rng(fold)
        difficulty = 0.1 * rng.standard_normal(queries)
        outcome.facts[fold] = _facts(fold, queries)
        for model in models:
            for i, setting in enumerate(settings(model, grid)):
                base = LEVEL.get(model.name, 0.55) + 0.01 * i + difficulty
                outcome.results.append(_result(model, fold, setting, base, rng, plan.measured))
    return outcome


def _facts(fold, queries):
    length = LENGTHS[:queries]
    numbers = {
        "documents": int(length.sum()),
        "queries": queries,
        "features": 10,
        "grades": {"0": 100, "1": 50},
        "largest": 1.0,
        "without_relevant": 0,
        "shortest": 5,
        "median_length": 20.0,
        "longest": queries + 4,
    }
    return FoldFacts(
        fold=fold,
        qid=np.array([f"{fold}-{q}" for q in range(queries)]),
        length=length,
        relevant=length // 3,
        best=(np.arange(queries) % 3).astype(float),
        labels=np.zeros(int(length.sum())),
        parts={"train": numbers, "vali": numbers, "test": numbers},
    )


def _result(model, fold, setting, base, rng, metrics):
    test = {name: np.clip(base + 0.02 * rng.standard_normal(len(base)), 0, 1) for name in metrics}
    tree = model.kind == "tree"
    return Result(
        model=model.name,
        fold=fold,
        setting=setting,
        vali={name: float(base.mean()) for name in metrics},
        test=test,
        train_seconds=0.5,
        rank_seconds=0.01,
        documents=int(sum(LENGTHS[: len(base)])),
        scores=rng.standard_normal(int(sum(LENGTHS[: len(base)]))),
        history={"rounds": [0.4, 0.5, 0.55 + 0.01 * fold]}
        if tree
        else {"loss": [3.0, 1.0], "gradient_norm": [1.0, 1e-9], "seconds": [0.0, 0.1]},
        chosen_rounds=3 if tree else None,
    )
