"""Run tasks in processes of one thread each.

The processes are spawned, not forked: a fork of a process that has used OpenMP hangs in LightGBM. A process that dies
(killed for want of memory, or crashed in a booster) fails its task alone and is replaced.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import cloudpickle
from numba.core import event

from boostlist.evaluation import interrupts
from boostlist.evaluation.folds import FoldFacts
from boostlist.evaluation.storage import Result
from boostlist.evaluation.training import Failure, Task, Trainer, Unreadable

Item = Task | int
"""What a process is given: a task, or the number of a fold whose facts are wanted."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BOOSTLIST_THREADS")
_TICK = 1.0
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    item: Item | None = None


@dataclass(frozen=True)
class _Death:
    reason: str


class Workers:
    """Processes that run tasks.

    Parameters
    ----------
    trainer
        Sent to every process once.
    jobs
        Number of processes.

    Use it as a context manager: on leaving, the processes are ended at once, whatever they are doing.
    """

    def __init__(self, trainer: Trainer, jobs: int) -> None:
        self._trainer = trainer
        self._jobs = jobs
        self._workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(5)
            worker.pipe.close()

    def facts(
        self, numbers: Sequence[int], tick: Callable[[], None], compiling: Callable[[], None]
    ) -> Iterator[FoldFacts]:
        """Yield the facts of folds as they come; `tick` and `compiling` as for `run`.

        Raises
        ------
        ValueError
            If a fold cannot be read.
        """
        for number, answer in self._answers(deque(numbers), lambda _: None, tick, compiling):
            if isinstance(answer, _Death):
                raise ValueError(f"fold {number} of {self._trainer.source.path}: {answer.reason}")
            if isinstance(answer, Unreadable):
                raise ValueError(answer.reason)
            yield answer

    def run(
        self,
        tasks: deque[Task],
        started: Callable[[Task], None],
        tick: Callable[[], None],
        compiling: Callable[[], None],
    ) -> Iterator[tuple[Task, Result | Failure]]:
        """Yield the outcome of each task as it comes.

        Parameters
        ----------
        tasks
            In the order in which they are to be started. They are taken out one by one; more may be put in meanwhile.
        started
            Called with each task when it is handed to a process.
        tick
            Called about every second while nothing ends.
        compiling
            Called when a process begins to compile a loop; it does so only where none is stored from earlier runs.
        """
        for task, answer in self._answers(tasks, started, tick, compiling):
            yield task, Failure(task, answer.reason) if isinstance(answer, _Death) else answer

    def _answers(
        self,
        waiting: deque[Any],
        started: Callable[[Any], None],
        tick: Callable[[], None],
        compiling: Callable[[], None],
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with what its process answered, or how the process died."""

        def hand_out(worker: _Worker) -> None:
            worker.item = waiting.popleft()
            # A process that has just died is noticed when its answer is read.
            with contextlib.suppress(OSError):
                worker.pipe.send_bytes(cloudpickle.dumps(worker.item))
            started(worker.item)

        def busy_workers() -> list[_Worker]:
            for worker in [each for each in self._workers if each.item is None][: len(waiting)]:
                hand_out(worker)
            while waiting and len(self._workers) < self._jobs:
                hand_out(self._start())
            return [worker for worker in self._workers if worker.item is not None]

        while busy := busy_workers():
            ready = wait([worker.pipe for worker in busy], timeout=_TICK)
            if not ready:
                tick()
            for pipe in ready:
                worker = next(worker for worker in busy if worker.pipe is pipe)
                item, answer = worker.item, _answer(worker)
                if answer is None:
                    compiling()
                    continue
                if isinstance(answer, _Death):
                    self._workers.remove(worker)
                worker.item = None
                yield item, answer

    def _start(self) -> _Worker:
        here, there = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=_work, args=(there, cloudpickle.dumps(self._trainer)), daemon=True)
        with _single_threaded(), _without_script(), interrupts.ignored():
            process.start()
        there.close()
        worker = _Worker(process, here)
        self._workers.append(worker)
        return worker


@contextlib.contextmanager
def _single_threaded() -> Iterator[None]:
    """Let a process that is started here find one thread in its environment: OpenMP looks there when it is loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _without_script() -> Iterator[None]:
    """Let a process that is started here not import the user's script.

    It would run the script again where that does not ask for its ``__name__``. What is defined in a script or notebook
    is pickled by value, so that the process does not need it.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


class FirstCompilation(event.Listener):  # type: ignore[misc]
    """Tells, once, when numba begins to compile: what it finds in its cache it does not compile."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell, self._told = tell, False

    def on_start(self, event: Any) -> None:
        """Tell, the first time."""
        if not self._told:
            self._told = True
            self._tell()

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def _work(pipe: Connection, trainer: bytes) -> None:
    """Be a process of `Workers`."""
    # Where it is not inherited, as on Windows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    event.register("numba:compile", FirstCompilation(lambda: pipe.send_bytes(pickle.dumps(None))))
    _serve(pipe, trainer)


def _serve(pipe: Connection, pickled: bytes) -> None:
    """Answer until the other end of the pipe is closed."""
    trainer: Trainer = pickle.loads(pickled)
    while True:
        try:
            item = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        answer = trainer.run(item) if isinstance(item, Task) else trainer.facts(item)
        pipe.send_bytes(cloudpickle.dumps(answer))


def _answer(worker: _Worker) -> Any:
    """Return what a process sent; None while it compiles, how it died if it has died."""
    try:
        return pickle.loads(worker.pipe.recv_bytes())
    except (EOFError, OSError):
        worker.process.join()
        return _Death(_obituary(worker.process.exitcode))


def _obituary(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"its process was ended by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
    return f"its process ended with code {code}"
