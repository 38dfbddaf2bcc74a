"""Run tasks in processes of one thread each.

The processes are spawned, not forked: a fork of a process that has used OpenMP hangs in LightGBM. A process that dies
(killed for want of memory, or crashed in a booster) fails its task alone and is replaced.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from numba.core import event

from boostlist.evaluation.folds import FoldFacts
from boostlist.evaluation.storage import Result
from boostlist.evaluation.training import Failure, Task, Trainer

Outcome = Result | Failure
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BOOSTLIST_THREADS")
_TICK = 1.0


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    task: Task | None = None


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
        self._context = multiprocessing.get_context("spawn")

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(5)
            worker.pipe.close()

    def run(
        self,
        tasks: Sequence[Task],
        facts_of: Sequence[int],
        started: Callable[[Task], None],
        tick: Callable[[], None],
        compiling: Callable[[], None],
    ) -> Iterator[tuple[Task, Outcome] | FoldFacts]:
        """Yield the outcome of each task as it comes, and the facts of the folds in `facts_of`.

        Parameters
        ----------
        tasks
            In the order in which they are to be started.
        facts_of
            Folds whose facts are wanted.
        started
            Called with each task when it is handed to a process.
        tick
            Called about every second while nothing ends.
        compiling
            Called when a process begins to compile a loop; it does so only where none is stored from earlier runs.
        """
        waiting, wanted = list(reversed(tasks)), set(facts_of)

        def hand_out(worker: _Worker) -> None:
            task = worker.task = waiting.pop()
            # A process that has just died is noticed when its answer is read.
            with contextlib.suppress(OSError):
                worker.pipe.send((task, task.fold in wanted))
            wanted.discard(task.fold)
            started(task)

        for _ in range(min(self._jobs, len(tasks))):
            hand_out(self._start())
        while busy := [worker for worker in self._workers if worker.task is not None]:
            ready = wait([worker.pipe for worker in busy], timeout=_TICK)
            if not ready:
                tick()
            for pipe in ready:
                worker = next(worker for worker in busy if worker.pipe is pipe)
                task = worker.task
                assert task is not None
                try:
                    answer = worker.pipe.recv()
                    if answer is None:
                        compiling()
                        continue
                    facts, outcome = answer
                except (EOFError, OSError):
                    worker.process.join()
                    facts, outcome = None, Failure(task, _obituary(worker.process.exitcode))
                    self._workers.remove(worker)
                    if waiting:
                        worker = self._start()
                worker.task = None
                if waiting:
                    hand_out(worker)
                if facts is not None:
                    yield facts
                yield task, outcome

    def _start(self) -> _Worker:
        here, there = self._context.Pipe()
        process = self._context.Process(target=_work, args=(there, self._trainer), daemon=True)
        with _single_threaded(), _deaf_to_interrupts():
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
def _deaf_to_interrupts() -> Iterator[None]:
    """Let a process that is started here ignore Ctrl-C: it reaches all processes of a terminal, only we act on it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Compilation(event.Listener):  # type: ignore[misc]
    """Sends None, once, when numba begins to compile: what it finds in its cache it does not compile."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._told = pipe, False

    def on_start(self, event: Any) -> None:
        if not self._told:
            self._told = True
            self._pipe.send(None)

    def on_end(self, event: Any) -> None:
        pass


def _work(pipe: Connection, trainer: Trainer) -> None:
    """Run tasks until the other end of the pipe is closed."""
    # Where it is not inherited, as on Windows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    event.register("numba:compile", _Compilation(pipe))
    while True:
        try:
            task, facts_wanted = pipe.recv()
        except EOFError:
            return
        outcome = trainer.run(task)
        readable = not (isinstance(outcome, Failure) and outcome.fatal)
        pipe.send((trainer.facts(task.fold) if facts_wanted and readable else None, outcome))


def _obituary(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"its process was ended by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
    return f"its process ended with code {code}"
