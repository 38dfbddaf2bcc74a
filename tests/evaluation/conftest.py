from __future__ import annotations

import contextlib
import os
import threading

import pytest

from boostlist.evaluation import experiment, workers
from boostlist.evaluation.experiment import Plan, run
from boostlist.evaluation.folds import find_source
from boostlist.evaluation.panel import panel
from boostlist.evaluation.progress import Progress
from boostlist.evaluation.storage import Store
from tests.evaluation.stubs import GRID, StubTrainer, write_parts


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("data") / "small")


class Threads:
    """Lets `Workers` run threads in place of processes, which take seconds to start; all else of it is real."""

    Pipe = staticmethod(workers._CONTEXT.Pipe)

    class Process:
        def __init__(self, target, args, daemon):
            assert target is workers._work
            pipe, self.pickled = args
            # `Workers` closes its end of the pipe, of which a process would have a copy.
            self.pipe = type(pipe)(os.dup(pipe.fileno()))
            self.exitcode = None

        def start(self):
            threading.Thread(target=self.work, daemon=True).start()

        def work(self):
            with contextlib.suppress(OSError), self.pipe:
                workers._serve(self.pipe, self.pickled)

        def terminate(self):
            """Do nothing: a thread ends when the other end of its pipe is closed."""

        def join(self, timeout=None):
            """Do nothing, for the same reason."""


@pytest.fixture
def threads(monkeypatch):
    """Let comparisons run in threads of this process."""
    monkeypatch.setattr(workers, "_CONTEXT", Threads)


@pytest.fixture
def stub_run(data, tmp_path, monkeypatch):
    """Return a function that runs an experiment with stub models and returns plan, store and outcome."""
    monkeypatch.setattr(experiment, "Trainer", StubTrainer)
    spawned = workers._CONTEXT

    def go(names, folder=None, jobs=1, fresh=False, folds=(1, 2), stream=None, processes=False, **changes):
        monkeypatch.setattr(workers, "_CONTEXT", spawned if processes else Threads)
        models = tuple(panel(names))
        plan = Plan(find_source(data, folds), models, models[0], GRID, ("ndcg@10", "err"), "ndcg@10", **changes)
        store = Store(folder or tmp_path / "out", plan.identity, fresh)
        return plan, store, run(plan, store, jobs, Progress(stream, plan.select, jobs))

    return go
