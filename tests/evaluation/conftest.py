from __future__ import annotations

import pytest

from boostlist.evaluation import experiment
from boostlist.evaluation.experiment import Plan, run
from boostlist.evaluation.folds import find_source
from boostlist.evaluation.panel import panel
from boostlist.evaluation.progress import Progress
from boostlist.evaluation.storage import Store
from tests.evaluation.stubs import GRID, StubTrainer, write_parts


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("data") / "small")


class Here:
    """Runs tasks in this process: what `Workers` does, without the seconds that each process takes to start."""

    def __init__(self, trainer, jobs):
        self.trainer = trainer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, tasks, facts_of, started, tick, compiling):
        wanted = set(facts_of)
        for task in tasks:
            started(task)
            outcome = self.trainer.run(task)
            if task.fold in wanted and not getattr(outcome, "fatal", False):
                wanted.discard(task.fold)
                yield self.trainer.facts(task.fold)
            yield task, outcome


@pytest.fixture
def stub_run(data, tmp_path, monkeypatch):
    """Return a function that runs an experiment with stub models and returns plan, store and outcome."""
    monkeypatch.setattr(experiment, "Trainer", StubTrainer)
    workers = experiment.Workers

    def go(names, folder=None, jobs=1, fresh=False, folds=(1, 2), stream=None, processes=False, **changes):
        monkeypatch.setattr(experiment, "Workers", workers if processes else Here)
        models = tuple(panel(names))
        plan = Plan(find_source(data, folds), models, models[0], GRID, ("ndcg@10", "err"), "ndcg@10", **changes)
        store = Store(folder or tmp_path / "out", plan.identity, fresh)
        return plan, store, run(plan, store, jobs, Progress(stream, plan.select, jobs))

    return go
