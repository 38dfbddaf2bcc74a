"""How cost grows: an objective call by number of documents, two Dask workers against one, TreeRanker against lgb.train.

Everything runs on one thread a process. Times are the best of some runs, of processor time but for the cluster; ratios
compare times of this run only. The cluster wants a machine that does nothing else, and two cores of it.

    python benchmarks/scaling.py [--parts calls,overhead,cluster] [--largest 10000000]
                                 [--cluster-documents 100000,300000,1000000,3000000] [--rounds 60] [--runs 3]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import numpy as np

import boostlist
from boostlist import Queries, TreeRanker, distributed
from boostlist.datasets import make_ranking
from boostlist.distributed.parts import Columns, gather_parts
from boostlist.losses import CsListMLE


def best_of(runs: int, call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for _ in range(runs):
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times)


def objective_calls(largest: int) -> None:
    """Time per document of a call and of binding, and the memory that it adds."""
    print("\n## An objective call (cs_listmle), lists of 100 documents\n")
    print(
        "| documents | ns a document, call | ns a document, bind | peak bytes a document |\n| --- | --- | --- | --- |"
    )
    CsListMLE().bind(Queries.from_sizes([1, 0], [2])).gradient_hessian([0, 0])  # compiles
    rng = np.random.default_rng(0)
    documents = 10**5
    while documents <= largest:
        labels = rng.choice(5, documents, p=[0.55, 0.25, 0.12, 0.05, 0.03]).astype(float)
        queries = Queries.from_sizes(labels, np.full(documents // 100, 100))
        scores = rng.normal(size=documents)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.process_time()
        bound = CsListMLE().bind(queries)
        bind = time.process_time() - begin
        bound.gradient_hessian(scores)
        peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / documents
        call = best_of(5, partial(bound.gradient_hessian, scores), time.process_time)
        print(
            f"| {documents:,} | {call / documents * 1e9:.1f} | {bind / documents * 1e9:.0f} | {peak:.0f} |", flush=True
        )
        documents *= 10


def estimator_overhead() -> None:
    """Processor time of TreeRanker.fit over that of lgb.train with the same parameters, data and objective."""
    import lightgbm as lgb

    from boostlist.boosters.lightgbm_host import parameters

    data = make_ranking(1_500, docs=40, n_features=50, seed=1)
    ranker = TreeRanker("cs_listmle", pointwise=0, n_estimators=100, n_jobs=1)
    params = parameters(ranker.tree_parameters(), None) | {"objective": CsListMLE().objective()}

    def bare() -> None:
        lgb.train(params, lgb.Dataset(data.X, data.y, group=data.queries.sizes), ranker.n_estimators)

    def ours() -> None:
        ranker.fit(data.X, data.y, data.qid)

    ours()
    bare()
    a, b = (
        min(times)
        for times in zip(
            *((best_of(1, ours, time.process_time), best_of(1, bare, time.process_time)) for _ in range(5)), strict=True
        )
    )
    print(f"\n## TreeRanker over lgb.train, {data.n_documents:,} documents, {data.n_features} features, 100 trees\n")
    print(f"TreeRanker.fit {a:.2f} s, lgb.train {b:.2f} s of processor time: {a / b - 1:+.1%}")


def partition(number: int, queries: int) -> tuple[Any, Any, Any]:
    """Make the documents of some queries, on the worker that is to hold them."""
    data = make_ranking(queries, docs=40, n_features=50, seed=number)
    return data.X, data.y, data.qid + number * queries


def objectives() -> Any:
    """Return the class of objectives on a worker, which counts its own time."""
    from boostlist.boosters.objective import Objective

    return Objective


def count_our_part() -> None:
    """Add up, on a worker, the processor time that its thread spends in objectives."""
    counted = objectives()
    counted.spent, bare = 0.0, counted.__call__
    if hasattr(bare, "__wrapped__"):
        return

    @wraps(bare)
    def timed(self: Any, *arguments: Any) -> Any:
        begin = time.thread_time()
        result = bare(self, *arguments)
        counted.spent += time.thread_time() - begin
        return result

    counted.__call__ = timed


def our_part() -> float:
    return float(objectives().spent)


def distributed_fit(client: Any, arrays: tuple[Any, ...], ranker: TreeRanker) -> np.ndarray:
    """Return wall time of a training; then, for its busiest worker, processor time of data, training, objective."""
    client.run(count_our_part)

    def clocks() -> np.ndarray:
        return np.array(list(client.run(time.process_time).values()))

    begin, first = time.perf_counter(), clocks()
    parts = gather_parts(client, arrays, Columns(), "refuse")
    second = clocks()
    distributed.training.train(client, ranker, parts, None, [], None, None)
    wall, third = time.perf_counter() - begin, clocks()
    spent = max(client.run(our_part).values())
    return np.array([wall, (second - first).max(), (third - second).max(), spent])


def fit_alone(number: int, queries: int, ranker: TreeRanker, clear: float) -> float:
    """Train on two partitions without a cluster, from the time `clear` on, and return when that was done."""
    parts = zip(*(partition(i, queries) for i in (number, number + 1)), strict=True)
    X, y, qid = (np.concatenate(arrays) for arrays in parts)
    with boostlist.parallel.at_most(1):
        time.sleep(max(clear - time.time(), 0))
        ranker.fit(X, y, qid)
    return time.time()


def fit_apart(client: Any, queries: int, ranker: TreeRanker, wait: float) -> float:
    """Return the wall time of two trainings at once, each on half of the documents, that do not know of each other."""
    clear = time.time() + wait
    ranker = ranker.set_params(n_jobs=1)
    workers = client.scheduler_info()["workers"]
    futures = [
        client.submit(fit_alone, 2 * i, queries, ranker, clear, workers=[worker], pure=False)
        for i, worker in enumerate(workers)
    ]
    return float(max(client.gather(futures)) - clear)


@contextmanager
def workers_of_one_thread(number: int) -> Iterator[Any]:
    """Start a cluster of processes of this machine, and yield its client."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=number, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


def hold(client: Any, queries: int) -> tuple[Any, ...]:
    """Make four partitions on the workers, and return them as arrays of features, labels and ids."""
    import dask.array as da
    from dask.delayed import delayed

    made = client.persist([delayed(partition, nout=3)(i, queries) for i in range(4)])
    lengths = client.gather(client.compute([delayed(len)(X) for X, _, _ in made]))
    arrays = (
        da.concatenate(
            [
                da.from_delayed(part[k], (n, 50)[: 2 if k == 0 else 1], dtype)
                for part, n in zip(made, lengths, strict=True)
            ]
        )
        for k, dtype in enumerate((np.float32, np.float64, np.int64))
    )
    return tuple(client.persist(list(arrays)))


def cluster(sizes: list[int], rounds: int, runs: int) -> None:
    """Time of `distributed.fit` on one and on two workers, by number of documents, and where it goes.

    What two workers take cannot be less than the processor time of the busier one: the rest is waiting, for the other
    worker, for the network, or for a processor. Nor can it be less than what the halves take that are trained at once
    without a cluster, `apart`: two busy cores share a memory. One worker and two take turns, so that a machine that is
    slower for a while is so for both; in brackets, least and largest ratio of two trainings that follow each other.
    """
    print(f"\n## Dask workers of one thread, 50 features, {rounds} trees of 15 leaves, best of {runs}\n")
    print(
        "| host | documents | workers | wall, s | busiest worker, s of processor time: data | training "
        "| of it objective | two against one: wall | processor time | apart |\n" + "| --- " * 10 + "|"
    )
    for documents in sizes:
        queries = documents // (4 * 45)  # in four partitions; make_ranking's mean length is about 45
        wait = 20 + documents / 100_000  # more than the partitions take to be made
        for backend in ("lightgbm", "xgboost"):
            ranker = TreeRanker("cs_listmle", backend=backend, n_estimators=rounds)
            with workers_of_one_thread(1) as alone, workers_of_one_thread(2) as pair:
                trainings = [
                    partial(distributed_fit, client, hold(client, queries), ranker) for client in (alone, pair)
                ]
                for train in trainings:
                    train()  # compiles
                turns = np.array([[train() for train in trainings] for _ in range(runs)])
                apart = min(fit_apart(pair, queries, ranker, wait) for _ in range(runs))
                n = len(trainings[0].args[1][0])
            one, two = turns.min(axis=0)
            single = turns[:, 1, 0] / turns[:, 0, 0]
            ratios = (
                f"{two[0] / one[0]:.2f} ({single.min():.2f} to {single.max():.2f}) "
                f"| {two[1:3].sum() / one[1:3].sum():.2f} | {apart / one[0]:.2f}"
            )
            for workers, times, last in ((1, one, " | | "), (2, two, ratios)):
                cells = " | ".join(f"{t:.1f}" for t in times)
                print(f"| {backend} | {n:,} | {workers} | {cells} | {last} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=10**7)
    parser.add_argument("--parts", default="calls,overhead,cluster")
    parser.add_argument("--cluster-documents", default="100000,300000,1000000,3000000")
    parser.add_argument("--rounds", type=int, default=60, help="of a training on the cluster")
    parser.add_argument("--runs", type=int, default=3, help="of which the best counts, on the cluster")
    options = parser.parse_args()
    boostlist.set_threads(1)
    parts = options.parts.split(",")
    if "calls" in parts:
        objective_calls(options.largest)
    if "overhead" in parts:
        estimator_overhead()
    if "cluster" in parts:
        cluster([int(n) for n in options.cluster_documents.split(",")], options.rounds, options.runs)


if __name__ == "__main__":
    main()
