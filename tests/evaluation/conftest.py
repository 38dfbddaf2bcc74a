from __future__ import annotations

import pytest

from boostlist.evaluation import experiment, workers
from boostlist.evaluation.experiment import Plan, run
from boostlist.evaluation.folds import find_source
from boostlist.evaluation.panel import panel
from boostlist.evaluation.progress import Progress
from boostlist.evaluation.storage import Store
from tests.evaluation.stubs import GRID, StubTrainer, Threads, write_parts


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture
def threads(monkeypatch):
    """Let comparisons run in threads of this process."""
    monkeypatch.setattr(workers, "_CONTEXT", Threads)


@pytest.fixture
def stub_run(data, tmp_path, monkeypatch):
    """Return a function that runs an experiment with stub models and returns plan, store and outcome."""
    monkeypatch.setattr(experiment, "Trainer", StubTrainer)
    spawned = workers._CONTEXT

    def go(
        names,
        folder=None,
        jobs=1,
        fresh=False,
        folds=(1, 2),
        stream=None,
        processes=False,
        metrics=("ndcg@10", "err"),
        grid=GRID,
        source=None,
        **changes,
    ):
        monkeypatch.setattr(workers, "_CONTEXT", spawned if processes else Threads)
        models = tuple(panel(names))
        plan = Plan(source or find_source(data, folds), models, models[0], grid, metrics, "ndcg@10", **changes)
        store = Store(folder or tmp_path / "out", plan.identity, fresh)
        return plan, store, run(plan, store, jobs, Progress(stream, plan.select, jobs))

    return go
