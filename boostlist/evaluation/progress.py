"""What an experiment shows while it runs: a live block on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import statistics
import time
from collections import Counter, defaultdict
from typing import TextIO

from boostlist.evaluation.storage import Result
from boostlist.evaluation.training import Failure, Task
from boostlist.metrics import get as get_metric

_BAR = 24
COMPILING = "compiling loops (first run only) ..."


class Progress:
    """Follows an experiment.

    Parameters
    ----------
    stream
        Where to write, such as ``sys.stderr``; None writes nothing.
    select
        Name of the selection metric, whose validation values are shown.
    jobs
        Number of tasks that run at once.
    live
        Whether the stream is a terminal on which lines can be rewritten.
    """

    def __init__(self, stream: TextIO | None, select: str, jobs: int, live: bool = False) -> None:
        self._stream, self._select, self._jobs, self._live = stream, select, jobs, live
        self._metric = get_metric(select)
        self._expected: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._running: list[Task] = []
        self._best: dict[tuple[str, int], float] = {}
        self._warned: dict[str, list[str]] = defaultdict(list)
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._begun: dict[int, float] = {}
        self._compiling = False
        self._start = time.monotonic()
        self._shown = 0

    def found(self, result: Result) -> None:
        """Note a result that is stored from an earlier run."""
        self._done[result.model] += 1
        self._note(result)

    def begin(self, expected: Counter[str]) -> None:
        """Begin with a number of trainings of each model, some of which may have been found."""
        self._expected = expected
        found, total = self._done.total(), expected.total()
        if found:
            self._line(f"{found} of {total} results are there already; {total - found} to go")

    def started(self, task: Task) -> None:
        """Note that a task has begun."""
        self._running.append(task)
        self._begun[id(task)] = time.monotonic()
        # A process gets its next task before the end of its last one is told.
        if len(self._running) <= self._jobs:
            self._draw()

    def tick(self) -> None:
        """Note that time has passed."""
        self._draw()

    def compiling(self) -> None:
        """Say, the first time, that loops are being compiled: until that is done nothing else is told."""
        if not self._compiling:
            self._compiling = True
            self._line(COMPILING)
            self._draw()

    def finished(self, task: Task, came: Result | Failure) -> None:
        """Note that a task has ended."""
        self._running.remove(task)
        self._done[task.model.name] += 1
        begun = self._begun.pop(id(task))
        what = f"{task.model.name}  fold {task.fold}  {task.label}".rstrip()
        if isinstance(came, Failure):
            self._seconds[task.model.name].append(time.monotonic() - begun)
            self._line(f"{self._count()} {what}  failed: {came.reason}")
        else:
            self._note(came)
            if not self._live:
                self._line(f"{self._count()} {what}  {self._select} {came.vali[self._select]:.4f}  {self._times()}")
        self._draw()

    def end(self) -> None:
        """Leave the live block behind, and say in one line for each model what its trainings warned of."""
        self._erase()
        for model, texts in self._warned.items():
            self._line(f"{model}: {len(texts)} of {self._expected[model]} trainings warned, such as: {texts[0]}")

    def seconds_left(self) -> float | None:
        """Estimate the time left: each task takes as long as those of its model did; None if one has no such yet.

        Models differ too much to guess: an ensemble takes as long as ten others. Times are those of the tasks
        themselves: the first ones wait for processes to start and for compilation.
        """
        left = self._expected - self._done
        if not all(name in self._seconds for name in left):
            return None
        cost = {name: statistics.fmean(times) for name, times in self._seconds.items()}
        total = sum(number * cost[name] for name, number in left.items())
        now = time.monotonic()
        spent = sum(min(now - self._begun[id(task)], cost[task.model.name]) for task in self._running)
        return max(0.0, total - spent) / self._jobs

    def _note(self, result: Result) -> None:
        """Keep the best validation value of a model on a fold, and its first warning."""
        if result.warnings:
            self._warned[result.model].append(" ".join(result.warnings[0].split()))
        self._seconds[result.model].append(result.seconds)
        key, value = (result.model, result.fold), result.vali[self._select]
        better = max if self._metric.higher_is_better else min
        self._best[key] = better(value, self._best.get(key, value))

    def _leader(self) -> str:
        """Return the model with the best mean over the folds that all models so far have."""
        folds: dict[str, set[int]] = defaultdict(set)
        for model, fold in self._best:
            folds[model].add(fold)
        if not folds:
            return ""
        shared = set.intersection(*folds.values())
        means = {model: statistics.fmean(self._best[model, fold] for fold in shared) for model in folds if shared}
        if not means:
            return ""
        better = max if self._metric.higher_is_better else min
        model = better(means, key=lambda name: means[name])
        count = len(shared)
        return f"{model}  {self._select} {means[model]:.4f} on validation, {count} fold{'s' if count > 1 else ''}"

    def _count(self) -> str:
        total = self._expected.total()
        return f"[{self._done.total():{len(str(total))}}/{total}]"

    def _times(self) -> str:
        left = self.seconds_left()
        about = "" if left is None or self._done == self._expected else f", about {clock(left)} left"
        return f"{clock(time.monotonic() - self._start)}{about}"

    def _draw(self) -> None:
        if self._stream is None or not self._live:
            return
        filled = round(_BAR * self._done.total() / max(1, self._expected.total()))
        lines = [f"{'━' * filled}{'╌' * (_BAR - filled)} {self._count()}  {self._times()}"]
        for i, task in enumerate(self._running):
            lines.append(f"{'now ' if not i else '    '}  {task.model.name}  fold {task.fold}  {task.label}")
        leader = self._leader()
        if leader:
            lines.append(f"best  {leader}")
        width = shutil.get_terminal_size().columns - 1
        self._erase()
        self._stream.write("".join(f"{line[:width]}\n" for line in lines))
        self._stream.flush()
        self._shown = len(lines)

    def _erase(self) -> None:
        if self._stream is not None and self._shown:
            self._stream.write(f"\x1b[{self._shown}A\x1b[J")
            self._stream.flush()
            self._shown = 0

    def _line(self, text: str) -> None:
        if self._stream is not None:
            self._erase()
            self._stream.write(f"{text}\n")
            self._stream.flush()


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, or hours and minutes."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60}:{whole % 60:02d}"
