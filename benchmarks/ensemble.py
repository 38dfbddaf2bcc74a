"""Cost of ensembles: training against a single TreeRanker, and serving merged trees.

    python benchmarks/ensemble.py [--queries 300] [--docs 60] [--features 45] [--repeat 3]

Data come from make_ranking. Figures to reach:

- the default EnsembleRanker with n_bags=1 trains in at most 6 x the time of a default TreeRanker on 2 cores
- the merged booster predicts in the time of a single booster with as many trees of as many leaves

Times are the least of `repeat` runs, on a machine that does nothing else; CPU times are shown beside them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from boostlist import EnsembleRanker, TreeRanker
from boostlist.datasets import make_ranking


def least(call: Callable[[], object], repeat: int) -> tuple[float, float]:
    """Return the least time and the least CPU time of some runs."""
    times = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = np.min(times, axis=0)
    return float(wall), float(cpu)


def show(name: str, times: tuple[float, float], base: tuple[float, float]) -> None:
    """Print times, and how often the base goes into them."""
    (wall, cpu), (base_wall, base_cpu) = times, base
    print(f"{name:34} {wall:8.3f} s  {wall / base_wall:5.2f} x   CPU {cpu:8.3f} s  {cpu / base_cpu:5.2f} x")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--docs", type=int, default=60)
    parser.add_argument("--features", type=int, default=45)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    data = make_ranking(arguments.queries, docs=arguments.docs, n_features=arguments.features, seed=1)
    print(f"{data.n_documents:,} documents of {data.n_queries:,} queries, {data.n_features} features")
    few = data.select(np.arange(10))
    EnsembleRanker().fit(few.X, few.y, few.qid)  # compiles all loops

    single, ensemble = TreeRanker(), EnsembleRanker()
    one = least(lambda: single.fit(data.X, data.y, data.qid), arguments.repeat)
    all_members = least(lambda: ensemble.fit(data.X, data.y, data.qid), arguments.repeat)
    show("train TreeRanker", one, one)
    show("train EnsembleRanker", all_members, one)

    merged = ensemble.merged()
    leaves = [part.estimator.num_leaves for part in ensemble.parts_]
    long = TreeRanker(num_leaves=round(np.mean(leaves)), n_estimators=merged.num_trees(), learning_rate=0.001)
    long.fit(data.X, data.y, data.qid)
    alike = least(lambda: long.booster_.predict(data.X, raw_score=True), arguments.repeat)
    show(f"predict booster of {merged.num_trees()} trees", alike, alike)
    show("predict merged", least(lambda: merged.predict(data.X), arguments.repeat), alike)
    show("predict ensemble", least(lambda: ensemble.predict(data.X), arguments.repeat), alike)


if __name__ == "__main__":
    main()
