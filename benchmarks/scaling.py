"""How cost grows: an objective call by number of documents, two Dask workers against one, TreeRanker against lgb.train.

Everything runs on one thread a process. Times are the best of some runs, of processor time but for the cluster; ratios
compare times of this run only.

    python benchmarks/scaling.py [--largest 10000000] [--no-cluster]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import boostlist
from boostlist import Queries, TreeRanker, distributed
from boostlist.datasets import make_ranking
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
        call = best_of(5, lambda bound=bound, scores=scores: bound.gradient_hessian(scores), time.process_time)
        print(
            f"| {documents:,} | {call / documents * 1e9:.1f} | {bind / documents * 1e9:.0f} | {peak:.0f} |", flush=True
        )
        documents *= 10


def estimator_overhead() -> None:
    """Processor time of TreeRanker.fit over that of lgb.train with the same parameters, data and objective."""
    import lightgbm as lgb

    from boostlist.boosters.lightgbm_host import parameters

    data = make_ranking(1_500, docs=40, n_features=50, seed=1)
    ranker = TreeRanker("cs_listmle", n_estimators=100, n_jobs=1)
    objective = ranker._objective(data.queries)
    params = parameters(ranker._tree_parameters(), None) | {"objective": objective}

    def bare() -> None:
        lgb.train(params, lgb.Dataset(data.X, data.y, group=data.queries.sizes), ranker.n_estimators)

    def ours() -> None:
        ranker.fit(data.X, data.y, data.qid)

    ours(), bare()
    a, b = (
        min(times)
        for times in zip(
            *((best_of(1, ours, time.process_time), best_of(1, bare, time.process_time)) for _ in range(5)), strict=True
        )
    )
    print(f"\n## TreeRanker over lgb.train, {data.n_documents:,} documents, {data.n_features} features, 100 trees\n")
    print(f"TreeRanker.fit {a:.2f} s, lgb.train {b:.2f} s of processor time: {a / b - 1:+.1%}")


def cluster() -> None:
    """Time of `distributed.fit` on one and on two workers, and on none: TreeRanker.fit."""
    import dask.array as da
    from distributed import Client, LocalCluster

    data = make_ranking(5_000, docs=40, n_features=50, seed=2)
    print(f"\n## Dask workers, {data.n_documents:,} documents, {data.n_features} features, 60 trees\n")
    print(
        "| host | no cluster, s | one worker, s | two workers, s | two against one |\n| --- | --- | --- | --- | --- |"
    )
    for backend in ("lightgbm", "xgboost"):
        ranker = TreeRanker("cs_listmle", backend=backend, n_estimators=60, n_jobs=1)
        ranker.fit(data.X, data.y, data.qid)
        seconds = [best_of(2, lambda ranker=ranker: ranker.fit(data.X, data.y, data.qid))]
        for workers in (1, 2):
            with (
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
                ) as local,
                Client(local) as client,
            ):
                rows = -(-data.n_documents // 4)
                X, y, qid = (
                    client.persist(da.from_array(a, chunks=(rows, -1)[: a.ndim])) for a in (data.X, data.y, data.qid)
                )

                def fit(client: Any = client, X: Any = X, y: Any = y, qid: Any = qid, ranker: Any = ranker) -> None:
                    distributed.fit(client, (X, y, qid), ranker)

                fit()
                seconds.append(best_of(2, fit))
        cells = " | ".join(f"{s:.1f}" for s in seconds)
        print(f"| {backend} | {cells} | {seconds[2] / seconds[1]:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=10**7)
    parser.add_argument("--no-cluster", action="store_true")
    options = parser.parse_args()
    boostlist.set_threads(1)
    objective_calls(options.largest)
    estimator_overhead()
    if not options.no_cluster:
        cluster()


if __name__ == "__main__":
    main()
