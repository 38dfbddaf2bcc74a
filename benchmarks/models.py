"""Newton against the bare matrix product and against L-BFGS; KernelRanker against its kernel matrix; memory.

    python benchmarks/models.py [--documents 740000] [--features 136] [--kernel-documents 100000] [--landmarks 500]
                                [--plot convergence.png]

Data come from make_ranking, standardised: features correlated as real ones are. Figures to reach:

- a Newton iteration of LinearRanker on cs-RgList (Breslow ties): at most 1.5 x the bare ``X.T @ (d[:, None] * X)`` in
  float64, and 2 x in float32, whose bare product is of single precision
- with C = 100, to gradient norm 1e-8: at most half the time of SciPy's L-BFGS on the same loss and loops. Where that
  ends earlier because its line search can no longer tell two values apart, its time to that point is taken.
- KernelRanker: training at most 6 x the landmark kernel matrix and one Gram product
- memory beyond X while a LinearRanker trains: blocks, not a copy of X

Times are CPU times; run it on one thread, OMP_NUM_THREADS=1 BOOSTLIST_THREADS=1, so that they are those of a core.
"""

from __future__ import annotations

import argparse
import ctypes
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from boostlist import KernelRanker, LinearRanker
from boostlist.datasets import RankingData, make_ranking
from boostlist.models.base import as_loss
from boostlist.models.kernels import kernel_function, kernel_matrix
from boostlist.solvers import MatrixDesign, Problem


def best_time(call: Callable[[], object], repeat: int = 3) -> float:
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def data(documents: int, features: int) -> RankingData:
    made = make_ranking(int(documents / 135), docs=120, n_features=features, seed=0)
    X = made.X.astype(np.float64)
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return RankingData(X, made.y, made.qid)


class Peak:
    """Largest resident memory while a block runs, above that at its start, in MB; of Linux."""

    def __enter__(self) -> Peak:
        ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back, so that it cannot serve the block unseen
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        self._start = self._status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.megabytes = self._status("VmHWM") - self._start

    @staticmethod
    def _status(name: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def weighed(X: np.ndarray, d: np.ndarray) -> np.ndarray:
    return np.asarray(X.T @ (d[:, None] * X))


def linear(documents: int, features: int, plot: str | None) -> None:
    train = data(documents, features)
    X, y, qid = train.X, train.y, train.qid
    print(f"{train}\n")
    d = np.random.default_rng(0).random(len(y))
    for dtype in (np.float64, np.float32):
        typed, weight = X.astype(dtype, copy=False), d.astype(dtype)
        ranker = LinearRanker("cs_rglist", C=100.0)
        bare = step = np.inf
        for _ in range(3):  # interleaved, so that both see the same machine
            bare = min(bare, best_time(partial(weighed, typed, weight)))
            with Peak() as peak:
                training = best_time(partial(ranker.fit, typed, y, qid=qid), repeat=1)
            step = min(step, training / ranker.n_iter_)
        name = np.dtype(dtype).name
        print(f"{name}: bare product          {bare:8.2f} s")
        print(f"{name}: Newton iteration      {step:8.2f} s{step / bare:8.2f} x")
        print(f"{name}: memory while training {peak.megabytes:8.0f} MB, X has {typed.nbytes / 2**20:.0f} MB\n")
    records, seconds = {}, {}
    for solver in ("newton", "newton-cg", "lbfgs"):
        ranker = LinearRanker("cs_rglist", C=100.0, solver=solver)
        with quiet():
            seconds[solver] = best_time(partial(ranker.fit, X, y, qid=qid), repeat=1)
        records[solver] = ranker.convergence_
    problem = Problem(MatrixDesign(X), as_loss("cs_rglist").bind(train.queries), 100.0 / train.n_queries)
    options: Any = {"maxcor": 20, "maxiter": 1000, "ftol": 0.0, "gtol": 1e-9}
    begin = time.process_time()
    found = minimize(problem.value_gradient, np.zeros(features), jac=True, method="L-BFGS-B", options=options)
    seconds["SciPy's L-BFGS"] = time.process_time() - begin
    ends = {name: (record.iterations[-1].gradient_norm, record.n_iter) for name, record in records.items()}
    ends["SciPy's L-BFGS"] = float(np.linalg.norm(found.jac)), found.nit
    for name, (norm, iterations) in ends.items():
        print(
            f"{name:<14} to gradient norm {norm:8.1e}: {seconds[name]:8.2f} s, {iterations:4d} iterations"
            f"{seconds[name] / seconds['newton']:8.2f} x newton"
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
    training = best_time(lambda: ranker.fit(train.X, train.y, qid=train.qid), repeat=2)
    function = kernel_function("gaussian", ranker.kernel_parameters_)
    K = kernel_matrix(function, train.X, ranker.basis_)
    build = best_time(lambda: kernel_matrix(function, train.X, ranker.basis_))
    gram = best_time(lambda: K.T @ (np.ones(len(K))[:, None] * K))
    print(f"kernel matrix {build:.2f} s, Gram product {gram:.2f} s")
    print(f"training, {ranker.n_iter_} iterations: {training:.2f} s{training / (build + gram):8.2f} x both")


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
    for solver in ("newton", "newton-cg"):
        LinearRanker("cs_rglist", solver=solver).fit(small.X, small.y, qid=small.qid)
    linear(arguments.documents, arguments.features, arguments.plot)
    kernel(arguments.kernel_documents, arguments.features, arguments.landmarks)


if __name__ == "__main__":
    main()
