"""Data larger than memory
=======================

Train on a data set without ever holding it in memory, in either host, and measure the peak.

The features come from the memory-mapped copy that ``load_letor(..., cache="map")`` leaves beside a LETOR file. LightGBM
keeps a byte a value, XGBoost keeps its binned data in temporary files; both get gradients from boostlist. Either needs
some memory whatever the size of the data (XGBoost about 190 MB at 136 features), so the data must be a few hundred MB.

    python examples/out_of_core.py [lightgbm | xgboost] [queries]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from boostlist import TreeRanker
from boostlist.datasets import load_letor, write_ranking


def resident(kind: str) -> int:
    """Return bytes of this process's memory: VmHWM is the peak so far."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) * 1024


def train(backend: str, path: Path) -> None:
    data = load_letor(path, cache="map", sparse=False)
    warm = data.select(range(50))
    TreeRanker(backend=backend, n_estimators=1).fit(warm.X, warm.y, warm.qid)  # loads libraries, compiles loops
    before = resident("VmRSS")
    # On Linux writing 5 here sets the peak back to what is resident now.
    Path("/proc/self/clear_refs").write_text("5")
    ranker = TreeRanker("cs_listmle", backend=backend, n_estimators=20, learning_rate=0.2)
    ranker.fit(data.X, data.y, data.qid, batch_rows=10_000)
    size, peak = data.X.nbytes, resident("VmHWM") - before
    print(f"{data}\nfeatures {size / 2**20:,.0f} MB, peak of the training {peak / 2**20:,.0f} MB: {peak / size:.0%}")
    some = data.select(range(500))
    print(f"NDCG@10 on 500 of its queries: {ranker.score(some.X, some.y, some.qid):.3f}")
    if peak >= size:
        raise SystemExit("the training needed more memory than the data")


def main() -> None:
    backend = sys.argv[1] if len(sys.argv) > 1 else "lightgbm"
    queries = int(sys.argv[2]) if len(sys.argv) > 2 else 14_000
    if len(sys.argv) > 3:
        train(backend, Path(sys.argv[3]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = write_ranking(Path(folder) / "train.txt", queries, docs=40, n_features=136, seed=1)
        load_letor(path, cache="map", sparse=False)
        # A process of its own, so that what writing and parsing needed does not count.
        subprocess.run([sys.executable, __file__, backend, str(queries), str(path)], check=True)


if __name__ == "__main__":
    main()
