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


@pytest.fixture
def stub_run(data, tmp_path, monkeypatch):
    """Return a function that runs an experiment with stub models and returns plan, store and outcome."""
    monkeypatch.setattr(experiment, "Trainer", StubTrainer)

    def go(names, folder=None, jobs=1, fresh=False, folds=(1, 2), stream=None, **changes):
        models = tuple(panel(names))
        plan = Plan(find_source(data, folds), models, models[0], GRID, ("ndcg@10", "err"), "ndcg@10", **changes)
        store = Store(folder or tmp_path / "out", plan.identity, fresh)
        return plan, store, run(plan, store, jobs, Progress(stream, plan.select, jobs))

    return go
