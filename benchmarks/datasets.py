"""Reading LETOR text against scikit-learn and XGBoost: one run on one generated file shaped as MSLR-WEB is.

    python benchmarks/datasets.py [--queries 2000] [--repeat 3] [--file some.txt]

136 features, about 110 documents a query, 0.14 MB of text a query. The contenders take turns; times are the best of the
rounds, elapsed. Asked for: 15 times scikit-learn on one thread, faster than XGBoost's text reader, two threads 1.7
times one, at most 64 MB of memory beyond the arrays, and a mapped copy 100 times faster than the first load.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from boostlist import set_threads
from boostlist.datasets import RankingData, load_letor, sample_folder, write_ranking


def best_times(calls: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeat):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def boostlist(path: Path, threads: int, cache: Literal[True, False, "map"] = False) -> Callable[[], RankingData]:
    def load() -> RankingData:
        set_threads(threads)
        return load_letor(path, cache=cache)

    return load


def scikit_learn(path: Path) -> object:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(str(path), query_id=True, dtype=np.float32)


def xgboost(path: Path) -> object:
    import xgboost as xgb

    return xgb.DMatrix(f"{path}?format=libsvm", silent=True)


def memory(field: str) -> int:
    """Return a field of /proc/self/status in bytes; getrusage would count the process that started this one too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def peak_memory(path: Path) -> None:
    """Print the memory that a load takes at its peak beyond what it returns. Run in a process of its own."""
    warm_up()
    before = memory("VmRSS")
    data = load_letor(path)
    arrays = data.X.nbytes + data.y.nbytes + data.qid.nbytes
    extra = memory("VmHWM") - before - arrays
    print(f"{extra / 2**20:.0f} MB beyond {arrays / 2**20:.0f} MB of arrays")


def warm_up() -> None:
    load_letor(sample_folder() / "S1.txt.gz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--file", type=Path, help="measure on this file instead of a generated one")
    parser.add_argument("--peak-memory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak_memory:
        peak_memory(arguments.peak_memory)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mslr.txt"
        if arguments.file:
            path.symlink_to(arguments.file.resolve())
        else:
            begin = time.perf_counter()
            write_ranking(path, arguments.queries, docs=100, n_features=136)
            print(f"generated and written in {time.perf_counter() - begin:.1f} s")
        measure(path, arguments.repeat)


def measure(path: Path, repeat: int) -> None:
    warm_up()
    megabytes = path.stat().st_size / 1e6
    print(f"{megabytes:.0f} MB, {load_letor(path)}\n")
    ours = {"boostlist, one thread": boostlist(path, 1), "boostlist, two threads": boostlist(path, 2)}
    times = best_times(ours | {"xgboost": lambda: xgboost(path), "scikit-learn": lambda: scikit_learn(path)}, repeat)
    times |= best_times({"boostlist, cache made": boostlist(path, 2, cache=True)}, 1)
    times |= best_times({"boostlist, copy read": boostlist(path, 2, cache=True)}, 5)
    times |= best_times({"boostlist, copy mapped": boostlist(path, 2, cache="map")}, 5)
    for name, seconds in times.items():
        print(f"{name:<26}{seconds:9.4f} s {megabytes / seconds:10.0f} MB/s")
    one, two, xgb, sklearn, made, copied, mapped = times.values()
    print(f"\nscikit-learn / one thread  {sklearn / one:8.1f}   (at least 15)")
    print(f"xgboost / one thread       {xgb / one:8.1f}   (above 1)")
    print(f"one thread / two threads   {one / two:8.2f}   (at least 1.7)")
    print(f"first load / copy read     {min(made, two) / copied:8.0f}")
    print(f"first load / copy mapped   {min(made, two) / mapped:8.0f}   (at least 100)")
    command = [sys.executable, __file__, "--peak-memory", str(path)]
    print(
        "peak memory               ", subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    )


if __name__ == "__main__":
    main()
