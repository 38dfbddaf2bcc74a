"""One training of an experiment: a model with one setting on one fold, timed and measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boostlist._typing import FloatArray
from boostlist.datasets import Fold, Folds, RankingData
from boostlist.evaluation.folds import FoldFacts, cached_fold
from boostlist.evaluation.panel import Model
from boostlist.evaluation.storage import Result
from boostlist.metrics import get as get_metric

CURVE = tuple(f"ndcg@{k}" for k in range(1, 11))
"""Metrics of the NDCG curve in the report, measured in every experiment."""

_WARM_QUERIES, _WARM_TREES = 8, 2


@dataclass(frozen=True)
class Task:
    """A model with one setting on one fold.

    Attributes
    ----------
    model, fold, setting
        What is to be trained, on what.
    label
        What tells the setting from the model's others.
    largest
        The largest label of the whole data, the top of the scale that ERR measures on.
    """

    model: Model
    fold: int
    setting: Mapping[str, Any]
    label: str = ""
    largest: float = 0.0


@dataclass(frozen=True)
class Failure:
    """Why a task gave no result; `fatal` if no other task can do better, because the data cannot be read."""

    task: Task
    reason: str
    fatal: bool = False


@dataclass(frozen=True)
class Unreadable:
    """Why a fold cannot be read."""

    reason: str


@dataclass
class Trainer:
    """What a worker process needs to know for all its tasks.

    Attributes
    ----------
    source
        Where the folds are.
    select
        Name of the metric that early stopping and the choice of the setting go by.
    metrics
        Names of all metrics that are measured.
    seed
        Seed of every estimator.
    """

    source: Folds
    select: str
    metrics: tuple[str, ...]
    seed: int = 0
    _warm: set[str] = field(default_factory=set)

    def run(self, task: Task) -> Result | Failure:
        """Train and measure; whatever goes wrong with the model is reported, not raised."""
        fold = self._read(task.fold)
        if isinstance(fold, Unreadable):
            return Failure(task, fold.reason, fatal=True)
        try:
            return self._train(task, fold)
        except Exception as error:  # a model that fails, for whatever reason, must not end the comparison
            # The first line says what is wrong; hosts append a stack trace of their own.
            return Failure(task, f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")

    def facts(self, number: int) -> FoldFacts | Unreadable:
        """Return the facts of a fold."""
        fold = self._read(number)
        return fold if isinstance(fold, Unreadable) else FoldFacts.of(fold)

    def _read(self, number: int) -> Fold | Unreadable:
        try:
            fold = cached_fold(self.source, number)
            _ = fold.train.queries, fold.vali.queries, fold.test.queries  # refuses labels that no metric takes
        except (ValueError, OSError) as error:
            return Unreadable(f"fold {number} of {self.source.path}: {error}")
        return fold

    def _train(self, task: Task, fold: Fold) -> Result:
        _check_features(fold.train)
        train, vali, test = features(fold, task.setting)
        if task.model.name not in self._warm:
            self._warm_up(task, train)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            begin = time.perf_counter()
            estimator = self._fitted(task, task.setting, train, vali)
            trained = time.perf_counter()
        metrics = {name: get_metric(name).up_to(task.largest) for name in self.metrics}
        scores = estimator.predict(test.X)
        ranked = time.perf_counter()
        vali_scores = estimator.predict(vali.X)
        return Result(
            model=task.model.name,
            fold=task.fold,
            setting=task.setting,
            vali={name: mean(metric.per_query(vali_scores, vali.queries)) for name, metric in metrics.items()},
            test={name: metric.per_query(scores, test.queries) for name, metric in metrics.items()},
            largest=task.largest,
            train_seconds=trained - begin,
            rank_seconds=ranked - trained,
            documents=test.n_documents,
            history=history(estimator),
            chosen_rounds=getattr(estimator, "n_estimators_", None),
            warnings=tuple(dict.fromkeys(str(each.message) for each in caught)),
        )

    def _fitted(self, task: Task, setting: Mapping[str, Any], train: RankingData, vali: RankingData) -> Any:
        parameters = {name: value for name, value in setting.items() if name not in task.model.training_names}
        estimator = task.model.make(parameters, self.seed)
        if not task.model.stops:
            return estimator.fit(train.X, train.y, qid=train.qid)
        return estimator.fit(
            train.X,
            train.y,
            qid=train.qid,
            eval_set=[(vali.X, vali.y, vali.qid)],
            eval_metric=get_metric(self.select).up_to(task.largest),
            early_stopping_rounds=setting.get("early_stopping_rounds"),
        )

    def _warm_up(self, task: Task, train: RankingData) -> None:
        """Compile the model's loops on a few queries, so that compilation is in no measured time."""
        few = train.select(np.arange(min(_WARM_QUERIES, train.n_queries)))
        short = {"n_estimators": _WARM_TREES} if task.model.kind == "tree" else {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._fitted(task, {**task.setting, **short}, few, few).predict(few.X)
        except Exception:  # the queries may be too few for the model; the training itself will tell
            return
        finally:
            self._warm.add(task.model.name)


def _check_features(train: RankingData) -> None:
    """Raise a ValueError if nothing can be learned; LightGBM would say "Check failed", others nothing at all."""
    if not np.ptp(train.X, axis=0).any():
        raise ValueError(
            f"each of the {train.n_features:,} features has the same value in all {train.n_documents:,} documents of "
            "the training part: there is nothing to learn from"
        )


def features(fold: Fold, setting: Mapping[str, Any]) -> tuple[RankingData, RankingData, RankingData]:
    """Return the parts of a fold with features normalised as the setting says, fitted on the training part."""
    method = setting.get("features", "plain")
    parts = (fold.train, fold.vali, fold.test)
    if method == "plain":
        return parts
    fit = fold.train if method == "zscore" else None
    train, vali, test = (part.normalize(method, fit) for part in parts)
    return train, vali, test


def mean(per_query: FloatArray) -> float:
    """Return the mean over the queries that count."""
    counted = per_query[~np.isnan(per_query)]
    return float(counted.mean()) if counted.size else float("nan")


def history(estimator: Any) -> dict[str, list[float]]:
    """Return how training went, as `Result.history` has it."""
    evaluated = getattr(estimator, "evals_result_", None)
    if evaluated:
        by_metric = next(iter(evaluated.values()))
        return {"rounds": [float(value) for value in next(iter(by_metric.values()))]}
    convergence = getattr(estimator, "convergence_", None)
    if convergence is None:
        return {}
    names = ("loss", "gradient_norm", "seconds")
    return {name: [float(getattr(each, name)) for each in convergence.iterations] for name in names}
