"""The cross-validated experiment: every model and setting on every fold, stored as it comes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from boostlist.evaluation.contenders import Contender, Grid
from boostlist.evaluation.folds import FoldFacts
from boostlist.evaluation.grids import drawn, label, settings
from boostlist.evaluation.guests import Column
from boostlist.evaluation.progress import Progress
from boostlist.evaluation.sources import Source
from boostlist.evaluation.storage import Result, Store
from boostlist.evaluation.training import CURVE, Failure, Task, Trainer
from boostlist.evaluation.workers import Workers
from boostlist.metrics import get as get_metric


@dataclass(frozen=True)
class Plan:
    """What an experiment is to do.

    Attributes
    ----------
    source
        The data and its folds.
    models, baseline
        The panel, and the model of it that the others are compared with.
    grid
        Settings of each model.
    metrics
        Names of the metrics to report; the selection metric is one of them.
    select
        Name of the metric that early stopping and the choice of settings go by.
    seed
        Seed of estimators and of resampling.
    tune
        Number of settings of each model that are drawn from the grid; None tries all of them.
    repeats
        How many times each query is tested, in folds that are cut in another way each time.
    keep_models
        Whether to save the trained models.
    """

    source: Source
    models: tuple[Contender, ...]
    baseline: Contender
    grid: Grid
    metrics: tuple[str, ...]
    select: str
    seed: int = 0
    tune: int | None = None
    repeats: int = 1
    keep_models: bool = False

    def __post_init__(self) -> None:
        for name in (*self.metrics, self.select):
            get_metric(name)
        if self.baseline not in self.models:
            raise ValueError(f"the baseline {self.baseline.name} is not one of the models")

    @property
    def identity(self) -> dict[str, Any]:
        """What results in one folder must share."""
        return {
            "data": self.source.name,
            "fingerprint": self.source.fingerprint,
            "select": self.select,
            "seed": self.seed,
        }

    @property
    def measured(self) -> tuple[str, ...]:
        """All metrics that are measured: those of the report and those of its curve."""
        return tuple(dict.fromkeys((self.select, *self.metrics, *CURVE)))

    def settings(self, model: Contender) -> list[dict[str, Any]]:
        """Return the settings of a model that are tried."""
        return settings(model, self.grid) if self.tune is None else drawn(model, self.grid, self.tune, self.seed)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Columns of the data that are no features: they hold scores of a model."""
        columns = [model for model in self.models if isinstance(model, Column)]
        return tuple(column.feature for column in columns if column.name.startswith("column:"))

    def tasks(self) -> list[Task]:
        """Return all tasks: fold by fold, so that what is there after an interruption compares all models."""
        by_model = {model: self.settings(model) for model in self.models}
        return [
            Task(model, fold, each, label(each, by_model[model]))
            for fold in self.source.numbers
            for model in self.models
            for each in by_model[model]
        ]


@dataclass
class Outcome:
    """What an experiment gave.

    Attributes
    ----------
    plan
        What was to be done.
    results, failures
        What came of it; failures only of this run.
    facts
        Facts of the folds.
    interrupted
        Whether the user stopped it.
    trouble
        Why it ended early, or what could not be stored; None if all went well.
    """

    plan: Plan
    results: list[Result] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    facts: dict[int, FoldFacts] = field(default_factory=dict)
    interrupted: bool = False
    trouble: str | None = None


def run(plan: Plan, store: Store, jobs: int, progress: Progress) -> Outcome:
    """Run what is not stored yet, and return everything.

    Ctrl-C ends it with what there is. So does a store that cannot be written to, since what follows would be lost.

    Parameters
    ----------
    plan
        What to do.
    store
        Where results are kept.
    jobs
        Number of processes, each of one thread.
    progress
        Told of every beginning and end.

    Raises
    ------
    ValueError
        If the data cannot be read.
    """
    outcome = Outcome(plan)
    models = store.models if plan.keep_models else None
    trainer = Trainer(plan.source, plan.select, plan.measured, plan.seed, models, plan.hidden)
    with contextlib.ExitStack() as stack:
        stack.callback(progress.end)
        try:
            workers = stack.enter_context(Workers(trainer, jobs))
            _find_facts(outcome, store, workers, progress)
            missing = _find_results(outcome, store, progress)
            for task, came in workers.run(missing, progress.started, progress.tick, progress.compiling):
                _record(task, came, outcome, store, progress)
        except KeyboardInterrupt:
            outcome.interrupted = True
        except _CannotStoreError as error:
            outcome.trouble = str(error)
    return outcome


def _find_facts(outcome: Outcome, store: Store, workers: Workers, progress: Progress) -> None:
    """Collect the facts of all folds before anything is trained: what is measured depends on the largest grade."""
    numbers = outcome.plan.source.numbers
    stored = {number: facts for number in numbers if (facts := store.load_facts(number)) is not None}
    outcome.facts.update(stored)
    missing = [number for number in numbers if number not in stored]
    for facts in workers.facts(missing, progress.tick, progress.compiling):
        outcome.facts[facts.fold] = facts
        with _storing(store):
            store.save_facts(facts)


def _find_results(outcome: Outcome, store: Store, progress: Progress) -> list[Task]:
    """Collect the results that are stored, and return the tasks that are left."""
    plan, missing = outcome.plan, []
    largest = max(facts.largest for facts in outcome.facts.values())
    origins = {model.name: model.origin for model in plan.models}
    tasks = [replace(task, largest=largest, origin=origins[task.model.name]) for task in plan.tasks()]
    for task in tasks:
        which = task.model.name, task.fold, task.setting
        stored = store.load(*which)
        if (
            stored is not None
            and (stored.largest, stored.origin) == (largest, task.origin)
            and set(plan.measured) <= set(stored.test)
            and not (plan.keep_models and task.model.learns and not store.has_model(*which))
        ):
            outcome.results.append(stored)
        else:
            missing.append(task)
    progress.begin(tasks, outcome.results)
    return missing


class _CannotStoreError(Exception):
    """The store cannot be written to."""


def _record(task: Task, came: Result | Failure, outcome: Outcome, store: Store, progress: Progress) -> None:
    if isinstance(came, Failure):
        if came.fatal:
            raise ValueError(came.reason)
        outcome.failures.append(came)
    else:
        outcome.results.append(came)
        with _storing(store):
            store.save(came)
    progress.finished(task, came)


@contextlib.contextmanager
def _storing(store: Store) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        stored = len(list(Path(store.folder / "results").glob("*.npz")))
        raise _CannotStoreError(
            f"cannot write to {store.folder}: {error.strerror or error}; {stored} results are stored there. "
            "Make room and run the same command again to go on"
        ) from error
