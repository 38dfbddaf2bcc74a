"""One training of an experiment: a model with one setting on one fold, timed and measured."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from boostlist._typing import FloatArray
from boostlist.datasets import Fold, RankingData
from boostlist.evaluation.contenders import Contender, Trained
from boostlist.evaluation.folds import FoldFacts
from boostlist.evaluation.guests import Column
from boostlist.evaluation.sources import Source, cached_fold
from boostlist.evaluation.storage import Result, file_stem
from boostlist.files import write
from boostlist.metrics import Metric
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
    origin
        What tells the model from another of its name, as it was before the task was sent to another process.
    """

    model: Contender
    fold: int
    setting: Mapping[str, Any]
    label: str = ""
    largest: float = 0.0
    origin: str = ""


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
    models
        Folder that trained models are saved in; None saves none.
    hidden
        Columns of the data that are no features.
    """

    source: Source
    select: str
    metrics: tuple[str, ...]
    seed: int = 0
    models: Path | None = None
    hidden: tuple[str, ...] = ()
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
        if task.model.learns:
            _check_features(fold.train)
        shown = fold if isinstance(task.model, Column) else _without(fold, self.hidden)
        train, vali, test = features(shown, task.setting)
        if task.model.name not in self._warm:
            self._warm_up(task, train)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            started, begin = time.perf_counter(), time.process_time()
            trained = self._fitted(task, task.setting, train, vali)
            ready = time.process_time()
        scores = _checked_scores(trained.scores(test), test)
        ranked = time.process_time()
        vali_scores = _checked_scores(trained.scores(vali), vali)
        seconds = time.perf_counter() - started
        metrics = {name: _scaled(get_metric(name), task, shown) for name in self.metrics}
        if self.models is not None and trained.estimator is not None:
            save_model(trained.estimator, self.models, task)
        return Result(
            model=task.model.name,
            fold=task.fold,
            setting=task.setting,
            vali={name: mean(metric.per_query(vali_scores, vali.queries)) for name, metric in metrics.items()},
            test={name: metric.per_query(scores, test.queries) for name, metric in metrics.items()},
            largest=task.largest,
            origin=task.origin,
            train_seconds=ready - begin,
            rank_seconds=ranked - ready,
            documents=test.n_documents,
            scores=scores,
            history=trained.history,
            chosen_rounds=trained.rounds,
            objective=trained.objective,
            seconds=seconds,
            warnings=tuple(dict.fromkeys(str(each.message) for each in caught)),
        )

    def _fitted(self, task: Task, setting: Mapping[str, Any], train: RankingData, vali: RankingData) -> Trained:
        metric = _scaled(get_metric(self.select), task, cached_fold(self.source, task.fold))
        return task.model.fit(setting, train, vali, metric, self.seed)

    def _warm_up(self, task: Task, train: RankingData) -> None:
        """Compile the model's loops on a few queries, so that compilation is in no measured time."""
        few = train.select(np.arange(min(_WARM_QUERIES, train.n_queries)))
        short = {name: _WARM_TREES for name in ("n_estimators", "iterations") if name in task.setting}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._fitted(task, {**task.setting, **short}, few, few).scores(few)
        except Exception:  # the queries may be too few for the model; the training itself will tell
            return
        finally:
            self._warm.add(task.model.name)


def _scaled(metric: Metric, task: Task, fold: Fold) -> Metric:
    """Return a metric for grades up to the largest of its label."""
    if metric.label is None:
        return metric.up_to(task.largest)
    parts = (fold.train, fold.vali, fold.test)
    return metric.up_to(max(float(part.queries.labelled(metric.label).labels.max()) for part in parts))


def _check_features(train: RankingData) -> None:
    """Raise a ValueError if nothing can be learned; LightGBM would say "Check failed", others nothing at all."""
    if not np.ptp(train.X, axis=0).any():
        raise ValueError(
            f"each of the {train.n_features:,} features has the same value in all {train.n_documents:,} documents of "
            "the training part: there is nothing to learn from"
        )


def _checked_scores(scores: Any, data: RankingData) -> FloatArray:
    """Return scores as an array, one a document.

    Raises
    ------
    ValueError
        If there are more or fewer, or some are not finite.
    """
    found = np.asarray(scores, np.float64)
    if found.shape != (data.n_documents,):
        raise ValueError(f"the model gave scores of shape {found.shape} for {data.n_documents:,} documents")
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise ValueError(f"the model gave the score {found[bad[0]]} to document {bad[0]}")
    return found


def save_model(estimator: Any, folder: Path, task: Task) -> Path:
    """Save a trained model: in a format of boostlist if it has one, else pickled by joblib."""
    stem = file_stem(task.model.name, task.fold, task.setting)
    if hasattr(estimator, "save") and hasattr(estimator, "rank"):
        suffix = {"lightgbm": ".txt", "xgboost": ".json"}.get(getattr(estimator, "backend", ""), ".npz")
        return Path(estimator.save(folder / f"{stem}{suffix}"))
    import joblib

    buffer = io.BytesIO()
    joblib.dump(estimator, buffer)
    return write(folder / f"{stem}.joblib", buffer.getvalue())


@lru_cache(maxsize=1)
def _without(fold: Fold, hidden: tuple[str, ...]) -> Fold:
    """Return a fold without some columns."""
    if not hidden:
        return fold
    kept = [i for i, name in enumerate(fold.train.names) if name not in hidden]
    names = tuple(fold.train.names[i] for i in kept)
    parts = (replace(part, X=part.X[:, kept], feature_names=names) for part in (fold.train, fold.vali, fold.test))
    return Fold(fold.number, *parts)


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
