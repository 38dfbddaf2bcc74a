"""Newton against the bare matrix product and against L-BFGS; KernelRanker against its kernel matrix; memory.

    python benchmarks/models.py [--documents 740000] [--features 136] [--kernel-documents 100000] [--landmarks 500]
                                [--plot convergence.png]

Data come from make_ranking, standardised: features correlated as real ones are. Figures to reach:

- a Newton iteration of LinearRanker on cs-RgList (Breslow ties): at most 3 x the bare ``X.T @ (d[:, None] * X)``
- with C = 100, to gradient norm 1e-8: at most half the time of SciPy's L-BFGS on the same loss and loops. Where
  L-BFGS ends earlier because its line search can no longer tell two values apart, its time to that point is taken.
- KernelRanker: training at most 6 x the landmark kernel matrix and one Gram product
- memory beyond X while a LinearRanker trains: blocks, not a copy of X
"""

from __future__ import annotations

import argparse
import resource
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

from boostlist import KernelRanker, LinearRanker
from boostlist.datasets import RankingData, make_ranking
from boostlist.models.kernels import kernel_function, kernel_matrix


def best_time(call: Callable[[], object], repeat: int = 3) -> float:
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def data(documents: int, features: int) -> RankingData:
    made = make_ranking(int(documents / 135), docs=120, n_features=features, seed=0)
    X = made.X.astype(np.float64)
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return RankingData(X, made.y, made.qid)


class Peak:
    """Largest resident memory while a block runs, above that at its start, in MB."""

    def __enter__(self) -> Peak:
        self.start = self.largest = self._resident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.largest = max(self.largest, self._resident())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def megabytes(self) -> float:
        """The peak above the start."""
        return self.largest - self.start

    @staticmethod
    def _resident() -> float:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20


@contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def linear(documents: int, features: int, plot: str | None) -> None:
    train = data(documents, features)
    X, y, qid = train.X, train.y, train.qid
    print(f"{train}\n")
    d = np.random.default_rng(0).random(len(y))
    for dtype in (np.float64, np.float32):
        typed, weight = X.astype(dtype, copy=False), d.astype(dtype)
        bare = best_time(lambda X=typed, d=weight: X.T @ (d[:, None] * X))
        with Peak() as peak:
            ranker = LinearRanker("cs_rglist", C=100.0).fit(typed, y, qid=qid)
        step = np.median(np.diff([iteration.seconds for iteration in ranker.convergence_.iterations]))
        name = np.dtype(dtype).name
        print(f"{name}: bare product          {bare:8.2f} s")
        print(f"{name}: Newton iteration      {step:8.2f} s{step / bare:8.2f} x")
        print(f"{name}: memory while training {peak.megabytes:8.0f} MB, X has {typed.nbytes / 2**20:.0f} MB\n")
    records = {}
    for solver in ("newton", "newton-cg", "lbfgs"):
        with quiet():
            record = LinearRanker("cs_rglist", C=100.0, solver=solver).fit(X, y, qid=qid).convergence_
        records[solver] = record
        last, newton = record.iterations[-1], records["newton"].iterations[-1]
        print(
            f"{solver:<10} to gradient norm {last.gradient_norm:8.1e}: {last.seconds:8.2f} s, {record.n_iter:4d} "
            f"iterations{last.seconds / newton.seconds:8.2f} x newton"
        )
    if plot:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        axes = plt.figure().gca()
        for solver, record in records.items():
            record.plot(axes, label=solver)
        axes.legend()
        plt.savefig(plot)


def kernel(documents: int, features: int, landmarks: int) -> None:
    train = data(documents, features)
    print(f"\n{train}, {landmarks} landmarks")
    ranker = KernelRanker("cs_rglist", C=100.0, n_landmarks=landmarks, random_state=0)
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        ranker.fit(train.X, train.y, qid=train.qid)
        times.append(time.perf_counter() - begin)
    function = kernel_function("gaussian", ranker.kernel_parameters_)
    K = kernel_matrix(function, train.X, ranker.basis_)
    build = best_time(lambda: kernel_matrix(function, train.X, ranker.basis_))
    gram = best_time(lambda: K.T @ (np.ones(len(K))[:, None] * K))
    print(f"kernel matrix {build:.2f} s, Gram product {gram:.2f} s")
    print(f"training, {ranker.n_iter_} iterations: {min(times):.2f} s{min(times) / (build + gram):8.2f} x both")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=740_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--kernel-documents", type=int, default=100_000)
    parser.add_argument("--landmarks", type=int, default=500)
    parser.add_argument("--plot", help="file to draw gradient norm against time in; needs matplotlib")
    arguments = parser.parse_args()
    # Compile first.
    small = data(4_000, 10)
    LinearRanker("cs_rglist").fit(small.X, small.y, qid=small.qid)
    linear(arguments.documents, arguments.features, arguments.plot)
    kernel(arguments.kernel_documents, arguments.features, arguments.landmarks)


if __name__ == "__main__":
    main()
