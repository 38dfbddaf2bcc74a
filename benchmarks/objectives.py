"""Cost of the objectives: beside a loop of exp and LightGBM's lambdarank, with list length, at first, and in memory.

    python benchmarks/objectives.py                      # all losses, all parts
    python benchmarks/objectives.py cs_listmle listmle   # some losses
    python benchmarks/objectives.py "LambdaLoss(k=10)"   # one with parameters
    python benchmarks/objectives.py --parts a,c          # some parts

Data: 6,000 queries with lengths lognormal(4.7, 0.5) clipped to 5..1000, seed 0 (about 743,000 documents), 136 features,
five grades. Everything that is compared runs in the same process, interleaved.

(a) gradient_hessian on one thread over a plain numba loop of exp on the same array; two threads over one.
(b) Share of an lgb.train round (64 leaves) spent inside the callable, and the whole round over built-in lambdarank's,
    in processor time on one thread.
    Growing the tree takes the host longer or shorter than for lambdarank, as the gradients make it grow: that part of
    the ratio is shown beside it.
(c) Processor time per document with lists of 100 to 100,000 documents, on one thread: a table in Markdown.
(d) The same with labels that all differ within a list, over that with five grades; lists of up to 10,000 documents.
(e) Wall time for one list of 100,000 documents, on two threads over one.
(f) An objective in a new installation, where nothing is compiled yet: processor time of binding and of the first call,
    the best of three, for a list of 50 documents, one of 1,000, and both at once, which may take other loops.
(m) Peak memory of a call beyond its inputs; binding and first call in a new process that has imported LightGBM, with
    loops cached on disk. Most of that time is numba's own start.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import boostlist
from boostlist import Queries, objectives
from boostlist.losses import BoundLoss, Loss, registry
from boostlist.parallel import compiled

# Numbers of an array that is given back before anything is measured, as reading data does. From then on glibc keeps so
# much freed memory for later arrays; before, arrays for one list of 100,000 have a page fault every 4 kB in each call.
READ_BEFORE = 3_000_000


@compiled
def exp_loop(x, out):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        out[i] = np.exp(x[i])


def make_queries(sizes: np.ndarray, seed: int = 0) -> tuple[Queries, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.choice(5, sizes.sum(), p=[0.55, 0.25, 0.12, 0.05, 0.03])
    return Queries.from_sizes(labels, sizes), rng.normal(size=sizes.sum())


def benchmark_sizes() -> np.ndarray:
    return np.clip(np.random.default_rng(0).lognormal(4.7, 0.5, 6000), 5, 1000).astype(int)


def best_times(
    calls: Sequence[Callable[[], object]], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the shortest time of each call, with the calls interleaved so that all see the same machine."""
    best = [np.inf] * len(calls)
    for _ in range(repeats + 1):  # the first round compiles
        for k, call in enumerate(calls):
            begin = clock()
            call()
            best[k] = min(best[k], clock() - begin)
    return best


def on_threads(bound: BoundLoss, f: np.ndarray) -> list[Callable[[], object]]:
    """Return calls on one thread and on two."""

    def call(threads: int) -> None:
        boostlist.set_threads(threads)
        bound.gradient_hessian(f)

    return [partial(call, 1), partial(call, 2)]


def against_exp(losses: dict[str, Loss]) -> None:
    queries, f = make_queries(benchmark_sizes())
    out = np.empty_like(f)
    print(f"\n(a) gradient_hessian, {queries.n_documents:,} documents")
    print(f"{'loss':24}{'cost':>10}{'ns/doc':>10}{'/ exp loop':>12}{'two threads / one':>20}{'bind, s':>10}")
    for name, loss in losses.items():
        begin = time.perf_counter()
        bound = loss.bind(queries)
        bind_time = time.perf_counter() - begin

        exp_time, one, two = best_times([lambda: exp_loop(f, out), *on_threads(bound, f)])
        print(
            f"{name:24}{loss.traits.cost:>10}{one / f.size * 1e9:10.1f}{one / exp_time:12.2f}"
            f"{two / one:20.2f}{bind_time:10.3f}"
        )
    boostlist.set_threads(None)


class Timed:
    """A callable objective that adds up the time spent in it. LightGBM deep-copies it, so the clock is the class's."""

    spent = 0.0

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def __call__(self, a: object, b: object) -> object:
        begin = time.process_time()
        result = self.loss(a, b)
        Timed.spent += time.process_time() - begin
        return result


def in_lightgbm(losses: dict[str, Loss], runs: int = 5, rounds: int = 4) -> None:
    import lightgbm as lgb

    sizes = benchmark_sizes()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sizes.sum(), 136)).astype(np.float32)
    relevance = X[:, 0] + np.tanh(X[:, 1] * X[:, 2]) + 0.5 * rng.normal(size=len(X))
    y = np.digitize(relevance, np.quantile(relevance, [0.55, 0.8, 0.92, 0.97]))
    dataset = lgb.Dataset(X, y, group=sizes, params={"verbose": -1}).construct()

    def train(objective: object) -> tuple[float, float]:
        """Return the time of a round and the share of it in our callable, the first round (binding) left out."""
        stamps: list[tuple[float, float]] = []

        def stamp(_: object) -> None:
            stamps.append((time.process_time(), Timed.spent))

        params = {"objective": objective, "num_leaves": 64, "verbose": -1, "metric": "None", "num_threads": 1}
        lgb.train(params, dataset, rounds + 1, callbacks=[stamp])
        elapsed, inside = stamps[-1][0] - stamps[0][0], stamps[-1][1] - stamps[0][1]
        return elapsed / rounds, inside / elapsed

    boostlist.set_threads(1)
    print(f"\n(b) lgb.train, 64 leaves, 136 features: median of {runs} interleaved runs of {rounds} rounds")
    print(f"{'':66}{'round / lambdarank':>24}")
    print(f"{'loss':24}{'cost':>10}{'round, s':>10}{'inside the callable':>22}{'all of it':>12}{'host alone':>12}")
    for name, loss in losses.items():
        ours, theirs = [], []
        for _ in range(runs):
            theirs.append(train("lambdarank")[0])
            ours.append(train(Timed(loss)))
        round_time, share = np.median(ours, axis=0)
        ratio = round_time / np.median(theirs)
        print(
            f"{name:24}{loss.traits.cost:>10}{round_time:10.3f}{share:22.1%}{ratio:12.2f}{ratio * (1 - share):12.2f}",
            flush=True,
        )
    boostlist.set_threads(None)


def of_length(n: int, documents: int) -> tuple[Queries, np.ndarray]:
    return make_queries(np.full(documents // n, n))


def markdown(cells: Iterable[object]) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def with_list_length(losses: dict[str, Loss], lengths: tuple[int, ...] = (100, 1_000, 10_000, 100_000)) -> None:
    print("\n(c) ns of processor time per document on one thread, by list length; over that at the first length\n")
    markdown(["loss", "cost", *(f"{n:,}" for n in lengths)])
    markdown(["---", "---", *("--:" for _ in lengths)])
    boostlist.set_threads(1)
    for name, loss in losses.items():
        times, cells = [], []
        for n in lengths:
            # Quadratic losses get few lists: 4e8 pairs are enough to time them, and one list of 100,000 has 1e10.
            documents = 400_000_000 // n if loss.traits.cost == "n^2" else 1_000_000
            if documents < n:
                cells.append("-")
                continue
            queries, f = of_length(n, documents)
            bound = loss.bind(queries)
            times += best_times([partial(bound.gradient_hessian, f)], 3, time.thread_time)
            times[-1] *= 1e9 / f.size
            cells.append(f"{times[-1]:.1f} ({times[-1] / times[0]:.2f} x)" if len(times) > 1 else f"{times[-1]:.1f}")
        markdown([f"`{name}`", loss.traits.cost, *cells])
    boostlist.set_threads(None)


def with_distinct_labels(losses: dict[str, Loss], lengths: tuple[int, ...] = (100, 1_000, 10_000)) -> None:
    print("\n(d) ns of processor time per document on one thread, labels that all differ; over that with five grades\n")
    markdown(["loss", *(f"{n:,}" for n in lengths)])
    markdown(["---", *("--:" for _ in lengths)])
    boostlist.set_threads(1)
    for name, loss in losses.items():
        cells = []
        for n in lengths:
            graded, f = of_length(n, min(200_000, 400_000_000 // n))
            rng = np.random.default_rng(0)
            labels = np.concatenate([4 * rng.permutation(n) / (n - 1) for _ in range(graded.n_queries)])
            try:
                bounds = [loss.bind(queries) for queries in (Queries.from_sizes(labels, graded.sizes), graded)]
            except ValueError:  # the loss models every grade, and says so
                cells.append("refused")
                continue
            calls = [partial(bound.gradient_hessian, f) for bound in bounds]
            distinct, few = best_times(calls, 3, time.thread_time)
            cells.append(f"{distinct / f.size * 1e9:.1f} ({distinct / few:.2f} x)")
        markdown([f"`{name}`", *cells])
    boostlist.set_threads(None)


def one_list(losses: dict[str, Loss], documents: int = 100_000) -> None:
    print(f"\n(e) ms of wall time for one list of {documents:,} documents, on one thread and on two\n")
    markdown(["loss", "one", "two", "two / one"])
    markdown(["---", "--:", "--:", "--:"])
    for name, loss in losses.items():
        if loss.traits.cost != "n^2":
            queries, f = of_length(documents, documents)
            one, two = best_times(on_threads(loss.bind(queries), f), 20)
            markdown([f"`{name}`", f"{one * 1e3:.1f}", f"{two * 1e3:.1f}", f"{two / one:.2f}"])
    boostlist.set_threads(None)


FIRST = """
import sys, time
import numpy as np
import boostlist
from boostlist import Queries, objectives

name, sizes = sys.argv[1], [int(n) for n in sys.argv[2:]]
loss = eval(name, vars(boostlist.losses)) if "(" in name else getattr(objectives, name)
rng = np.random.default_rng(0)
queries, f = Queries.from_sizes(rng.integers(0, 5, sum(sizes)), sizes), rng.normal(size=sum(sizes))
begin = time.process_time()
loss.objective().bind(queries)(f)
print(time.process_time() - begin)
"""


def first_call(losses: dict[str, Loss], lists: tuple[tuple[int, ...], ...] = ((50,), (1_000,), (50, 1_000))) -> None:
    print("\n(f) s of processor time of the first call where nothing is compiled, by list length\n", flush=True)
    markdown(["loss", "cost", *(" and ".join(f"{n:,}" for n in sizes) for sizes in lists)])
    markdown(["---", "---", *("--:" for _ in lists)])

    def seconds(name: str, sizes: tuple[int, ...]) -> float:
        with tempfile.TemporaryDirectory() as empty:
            command = [sys.executable, "-c", FIRST, name, *map(str, sizes)]
            environment = {**os.environ, "NUMBA_CACHE_DIR": empty}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return float(done.stdout)

    for name, loss in losses.items():
        times = (min(seconds(name, sizes) for _ in range(3)) for sizes in lists)
        markdown([f"`{name}`", loss.traits.cost, *(f"{t:.1f}" for t in times)])


MEMORY = """
import ctypes, sys, time
import numpy as np
from pathlib import Path
import lightgbm
import boostlist
from boostlist import Queries, objectives

name = sys.argv[1]
loss = eval(name, vars(boostlist.losses)) if "(" in name else getattr(objectives, name)
rng = np.random.default_rng(0)
small = Queries.from_sizes(rng.integers(0, 5, 50), [50])
begin = time.perf_counter()
loss.bind(small).gradient_hessian(np.zeros(50))
first = time.perf_counter() - begin
sizes = np.clip(rng.lognormal(4.7, 0.5, 20_000), 5, 1000).astype(int)
bound = loss.bind(Queries.from_sizes(rng.integers(0, 5, sizes.sum()), sizes))
f = rng.normal(size=sizes.sum())

def field(name):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in text.splitlines() if line.startswith(name)))

ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back, so that it cannot serve the call unseen
Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
before = field("VmRSS")
bound.gradient_hessian(f)
print(first, (field("VmHWM") - before) / f.size)
"""


def memory_and_first_call(losses: dict[str, Loss]) -> None:
    if not Path("/proc/self/clear_refs").exists():
        print("\n(m) left out: needs Linux's /proc")
        return
    print("\n(m) a call in a new process, loops cached on disk")
    print(f"{'loss':24}{'first call, s':>15}{'peak bytes a document':>24}")
    for name in losses:
        command = [sys.executable, "-c", MEMORY, name]
        subprocess.run(command, check=True, capture_output=True)  # fills the disk cache
        first, per_document = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        print(f"{name:24}{float(first):15.3f}{float(per_document):24.1f}")


PARTS = {
    "a": against_exp,
    "b": in_lightgbm,
    "c": with_list_length,
    "d": with_distinct_labels,
    "e": one_list,
    "f": first_call,
    "m": memory_and_first_call,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("losses", nargs="*", help="registry names, or losses as Python writes them; all by default")
    parser.add_argument("--parts", default="a,b,c,d,e,f,m")
    arguments = parser.parse_args()
    losses = {
        name: eval(name, vars(boostlist.losses)) if "(" in name else getattr(objectives, name)
        for name in arguments.losses or registry
    }
    np.zeros(READ_BEFORE)
    for part in arguments.parts.split(","):
        PARTS[part](losses)


if __name__ == "__main__":
    main()
