"""Time of NDCG@10 against sorting, pytrec_eval and ranx: one run, each on its own prepared structures.

    python benchmarks/metrics.py [--queries 6000] [--documents 120] [--repeat 9]

Times are the best of several rounds in which the contenders take turns. The first table is CPU time on one thread;
there NDCG@10 is to take at most 1.2 times what numpy.argsort takes. The second is elapsed time on all cores, ranx
included; there the others are to take at least 10 times what boostlist takes.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from boostlist import Queries, metrics, set_threads


def best_times(calls: dict[str, Callable[[], object]], repeat: int, clock: Callable[[], float]) -> dict[str, float]:
    """Return the shortest time of each call, in milliseconds, after one round to warm up."""
    best = dict.fromkeys(calls, np.inf)
    for turn in range(repeat + 1):
        for name, call in calls.items():
            begin = clock()
            call()
            if turn:
                best[name] = min(best[name], 1000 * (clock() - begin))
    return best


def report(title: str, times: dict[str, float]) -> None:
    reference, base = next(iter(times.items()))
    print(f"{title:<48}{'ms':>10}   x {reference}")
    for name, milliseconds in times.items():
        print(f"{name:<48}{milliseconds:10.2f}{milliseconds / base:10.2f}")
    print()


def one_thread(queries: Queries, matrix: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return what to time on one thread: a sort, every metric, the rules for ties, and binding."""
    scores = matrix.ravel()
    calls: dict[str, Callable[[], object]] = {"numpy.argsort": lambda: np.argsort(matrix, axis=1)}
    names = [f"{name}@10" for name in metrics.registry if name not in ("kendalltau", "spearmanrho")]
    for name in (*names, "ndcg", "map", "kendalltau", "spearmanrho"):
        calls[name] = partial(metrics.get(name).bind(queries).mean, scores)
    for ties in ("worst", "average"):
        calls[f"ndcg@10, ties={ties}"] = partial(metrics.get("ndcg@10", ties=ties).bind(queries).mean, scores)
    calls["ndcg@10, binding"] = partial(metrics.NDCG(10).bind, queries)
    return calls


def all_threads(queries: Queries, scores: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return NDCG@10 here, in pytrec_eval and in ranx, their structures made beforehand."""
    import pytrec_eval
    from ranx import Qrels, Run, evaluate

    documents = [f"d{row:07d}" for row in range(len(scores))]
    labels = queries.labels.astype(np.int64)
    qrels, run = {}, {}
    for q, (a, b) in enumerate(itertools.pairwise(queries.start)):
        qrels[f"q{q}"] = dict(zip(documents[a:b], labels[a:b].tolist(), strict=True))
        run[f"q{q}"] = dict(zip(documents[a:b], scores[a:b].tolist(), strict=True))
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    ranx_qrels, ranx_run = Qrels(qrels), Run(run)
    return {
        "boostlist": partial(metrics.NDCG(10).bind(queries).mean, scores),
        "pytrec_eval, RelevanceEvaluator.evaluate": partial(evaluator.evaluate, run),
        "ranx, evaluate": partial(evaluate, ranx_qrels, ranx_run, "ndcg@10", make_comparable=False),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queries", type=int, default=6000)
    parser.add_argument("--documents", type=int, default=120)
    parser.add_argument("--repeat", type=int, default=9)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(arguments.queries, arguments.documents))
    sizes = np.full(arguments.queries, arguments.documents)
    queries = Queries.from_sizes(rng.integers(0, 5, matrix.size), sizes)
    print(f"{queries.n_documents:,} documents, {queries.n_queries:,} queries\n")
    set_threads(1)
    report("one thread", best_times(one_thread(queries, matrix), arguments.repeat, time.thread_time))
    set_threads(None)
    report(
        "ndcg@10, all threads", best_times(all_threads(queries, matrix.ravel()), arguments.repeat, time.perf_counter)
    )


if __name__ == "__main__":
    main()
