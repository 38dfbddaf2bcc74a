"""A ranker that takes no time, with ways to go wrong, as the model family ``stub``.

Worker processes know it because they unpickle a `StubTrainer`, whose module is this one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import warnings
from typing import Any, Self

import numpy as np

from boostlist.datasets import make_ranking, write_letor
from boostlist.evaluation import workers
from boostlist.evaluation.training import Trainer
from boostlist.rankers import FAMILIES, Ranker
from boostlist.solvers import Convergence, Iteration, Reason

GRID = {"stub": {"C": [1.0, 2.0]}}


class StubRanker:
    """Scores by one feature plus noise; `mode` is "good", "warn", "fail" or "die"."""

    def __init__(self, *, C: float = 1.0, noise: float = 0.0, mode: str = "good", random_state: int = 0) -> None:
        self.C, self.noise, self.mode, self.random_state = C, noise, mode, random_state

    def fit(self, X: Any, y: Any, qid: Any) -> Self:
        if self.mode == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.mode == "fail" or (self.mode == "fail2" and self.C == 2):
            raise RuntimeError("the stub was told to fail")
        if self.mode == "warn" and self.C == 2:
            warnings.warn("the stub was told\n to warn", UserWarning, stacklevel=2)
        steps = [Iteration(i, 10.0 / (i + 1), 10.0 ** -(3 * i), 0.1 * i) for i in range(4)]
        self.convergence_ = Convergence(steps, Reason.SMALL_GRADIENT)
        return self

    def predict(self, X: Any) -> Any:
        # C = 2 is the better setting: its noise is a tenth.
        noise = self.noise / (10 if self.C == 2 else 1)
        return X[:, 0] + noise * np.random.default_rng(self.random_state).standard_normal(len(X))


class StubTrainer(Trainer):
    """The ordinary trainer; unpickling it imports this module."""


FAMILIES["stub"] = Ranker("tests.evaluation.stubs.StubRanker", family="stub")


def write_parts(folder, n_queries=40):
    """Write a small data set as S1 to S5 and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = make_ranking(n_queries, docs=6, n_features=10, noise=0.1, interactions=0.3, blur=0, seed=3)
    for number, part in enumerate(data.split(*[0.2] * 5, seed=None), 1):
        write_letor(part, folder / f"S{number}.txt")
    return folder


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
