"""Data larger than memory
=======================

Train on a data set without ever holding it in memory, in either host, and measure the peak. The picture shows the
memory of the training, in batches and at once, beside the size of the features.

The features come from the memory-mapped copy that ``load_letor(..., cache="map")`` leaves beside a LETOR file. LightGBM
keeps a byte a value, XGBoost keeps its binned data in temporary files; both get gradients from boostlist. Either needs
some memory whatever the size of the data (XGBoost about 190 MB at 136 features), so the data must be a few hundred MB.

    python examples/out_of_core.py [lightgbm | xgboost] [queries]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import matplotlib.pyplot as plt
import psutil

from boostlist import TreeRanker
from boostlist.datasets import load_letor, write_ranking


class Memory(threading.Thread):
    """Notes the memory of this process, in MB beyond what it had at first, every 10 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.process = psutil.Process()
        self.begin, self.before = time.perf_counter(), self.process.memory_info().rss
        self.curve = [(0.0, 0.0)]
        self.done = threading.Event()

    def run(self) -> None:
        """Take notes until it is done."""
        while not self.done.wait(0.01):
            beyond = self.process.memory_info().rss - self.before
            self.curve.append((time.perf_counter() - self.begin, beyond / 2**20))


def train(backend: str, path: Path, batch_rows: int | None) -> None:
    """Train in a process of its own, print figures for a reader, and on the last line for `main`."""
    data = load_letor(path, cache="map", sparse=False)
    warm = data.select(range(50))
    # Loads libraries and compiles loops.
    TreeRanker("cs_listmle", backend=backend, n_estimators=1).fit(warm.X, warm.y, warm.qid)
    ranker = TreeRanker("cs_listmle", backend=backend, n_estimators=20, learning_rate=0.2)
    memory = Memory()
    memory.start()
    ranker.fit(data.X, data.y, data.qid, batch_rows=batch_rows)
    memory.done.set()
    size, peak = data.X.nbytes / 2**20, max(beyond for _, beyond in memory.curve)
    how = "at once" if batch_rows is None else "in batches"
    print(f"{how:10}  features {size:,.0f} MB, peak of the training {peak:,.0f} MB: {peak / size:.0%}")
    some = data.select(range(500))
    print(f"{'':10}  NDCG@10 on 500 of its queries: {ranker.score(some.X, some.y, some.qid):.3f}")
    print(json.dumps({"size": size, "curve": memory.curve}))


def draw(found: dict[str, dict], backend: str) -> None:
    """Show the memory of both trainings."""
    _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, each in found.items():
        ax.plot(*zip(*each["curve"], strict=True), label=name)
    ax.axhline(found["in batches"]["size"], color="grey", ls=":", label="size of the features")
    ax.set(xlabel="seconds", ylabel="memory of the training, MB", title=backend, ylim=(0, None))
    ax.legend()
    plt.show()


def main() -> None:
    backend = sys.argv[1] if len(sys.argv) > 1 else "lightgbm"
    queries = int(sys.argv[2]) if len(sys.argv) > 2 else 14_000
    if len(sys.argv) > 3:
        train(backend, Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else None)
        return
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = write_ranking(Path(folder) / "train.txt", queries, docs=40, n_features=136, seed=1)
        print(load_letor(path, cache="map", sparse=False))
        for how, batch in (("in batches", ["10000"]), ("at once", [])):
            # A process of its own, so that what writing and parsing needed does not count.
            command = [sys.executable, sys.argv[0], backend, str(queries), str(path), *batch]
            *lines, figures = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
            print(*lines, sep="\n")
            found[how] = json.loads(figures)
    draw(found, backend)


if __name__ == "__main__":
    main()
