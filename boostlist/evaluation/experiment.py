"""The cross-validated experiment: every model and setting on every fold, stored as it comes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from boostlist.evaluation.agenda import Agenda
from boostlist.evaluation.folds import FoldFacts
from boostlist.evaluation.plan import Plan
from boostlist.evaluation.progress import Progress
from boostlist.evaluation.storage import Result, Store
from boostlist.evaluation.training import Failure, Task, Trainer
from boostlist.evaluation.workers import Workers


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
            largest = max(facts.largest for facts in outcome.facts.values())
            agenda = Agenda(plan, largest, lambda task: _look_up(task, outcome, store, progress))
            progress.begin(agenda.expected)
            for task, came in workers.run(agenda.waiting, progress.started, progress.tick, progress.compiling):
                _record(task, came, outcome, store, progress)
                agenda.ended(task, came)
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


def _look_up(task: Task, outcome: Outcome, store: Store, progress: Progress) -> Result | None:
    """Return what an earlier run stored of a task, and note it; None if there is nothing that serves."""
    plan, which = outcome.plan, (task.model.name, task.fold, task.setting)
    found = store.load(*which)
    if (
        found is None
        or (found.largest, found.origin) != (task.largest, task.origin)
        or not set(plan.measured) <= set(found.test)
        or (plan.keep_models and task.model.learns and not store.has_model(*which))
    ):
        return None
    outcome.results.append(found)
    progress.found(found)
    return found


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
