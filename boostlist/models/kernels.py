r"""Kernels K(x, z) between documents, and their parameters.

Olinto, *Kernelized Cost-Sensitive Listwise Ranking* (2016), chapter 4:

    polynomial (b x'z + a)^degree,  gaussian exp(-|x - z|^2 / (2 s^2)),  laplace exp(-gamma |x - z|),  tanh(b x'z + a)

The thesis squares the norm in its Laplace kernel, exp(-gamma |x - z|^2), which makes it a Gaussian one; that is
``"laplace-as-printed"``. A setting names the parameters
for all kernels:

- ``"vanilla"`` (section 5.4): a = 0, degree 1, b = s = gamma = 1.
- ``"special"``: a = 0, degree 3, and 1/p for p features as the factor in the exponent or on x'z: b = gamma = 1/p,
  s = (p/2)^(1/2), which the appendix uses.
- ``"median"``, not from the thesis: scale by the data. s and 1/gamma are the median distance between documents (its
  square for the printed Laplace kernel), 1/b is the mean of |x|^2; a = 1 and degree 2 for the polynomial, a = 0 for
  tanh.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from boostlist._typing import FloatArray

KernelName = Literal["gaussian", "polynomial", "laplace", "laplace-as-printed", "tanh"]
Setting = Literal["median", "vanilla", "special"]
KernelFunction = Callable[[Any, Any], FloatArray]

USED = {
    "gaussian": ("s",),
    "polynomial": ("a", "b", "degree"),
    "laplace": ("gamma",),
    "laplace-as-printed": ("gamma",),
    "tanh": ("a", "b"),
}
"""The parameters that each kernel has."""

_SAMPLE = 1_000


def setting_parameters(setting: Setting, kernel: str, X: Any, rng: np.random.Generator) -> dict[str, float]:
    """Return the parameters of a kernel under a setting, for training documents X."""
    if setting == "vanilla":
        values = {"a": 0.0, "b": 1.0, "degree": 1.0, "s": 1.0, "gamma": 1.0}
    elif setting == "special":
        p = X.shape[1]
        values = {"a": 0.0, "b": 1 / p, "degree": 3.0, "s": np.sqrt(p / 2), "gamma": 1 / p}
    else:
        rows = np.sort(rng.choice(X.shape[0], min(_SAMPLE, X.shape[0]), replace=False))
        sample = X[rows].astype(np.float64)
        pairs = _squared_distances(sample, sample)[np.triu_indices(len(rows), 1)]
        positive = pairs[pairs > 0]
        median = float(np.sqrt(np.median(positive))) if positive.size else 1.0
        square = float(row_norms(sample, squared=True).mean()) or 1.0
        offset = 1.0 if kernel == "polynomial" else 0.0
        rate = median**2 if kernel == "laplace-as-printed" else median
        values = {"a": offset, "b": 1 / square, "degree": 2.0, "s": median, "gamma": 1 / rate}
    return {name: values[name] for name in USED[kernel]}


def kernel_function(kernel: str, parameters: dict[str, float]) -> KernelFunction:
    """Return the function (X, Z) -> K, a row for each row of X and a column for each of Z."""

    def inner(X: Any, Z: Any) -> FloatArray:
        K = safe_sparse_dot(X, Z.T, dense_output=True)
        K *= parameters["b"]
        K += parameters["a"]
        return np.asarray(K)

    def gaussian(X: Any, Z: Any) -> FloatArray:
        K = _squared_distances(X, Z)
        K *= -1 / (2 * parameters["s"] ** 2)
        return np.exp(K, out=K)

    def laplace(X: Any, Z: Any) -> FloatArray:
        K = np.sqrt(_squared_distances(X, Z))
        K *= -parameters["gamma"]
        return np.exp(K, out=K)

    def laplace_as_printed(X: Any, Z: Any) -> FloatArray:
        K = _squared_distances(X, Z)
        K *= -parameters["gamma"]
        return np.exp(K, out=K)

    def polynomial(X: Any, Z: Any) -> FloatArray:
        # A power that is not finite is found out, and named, where the matrix is used.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.power(inner(X, Z), parameters["degree"])

    def tanh(X: Any, Z: Any) -> FloatArray:
        K = inner(X, Z)
        return np.tanh(K, out=K)

    functions = {
        "gaussian": gaussian,
        "laplace": laplace,
        "laplace-as-printed": laplace_as_printed,
        "polynomial": polynomial,
        "tanh": tanh,
    }
    return functions[kernel]


def _squared_distances(X: Any, Z: Any) -> FloatArray:
    D = np.asarray(safe_sparse_dot(X, Z.T, dense_output=True))
    D *= -2
    D += row_norms(X, squared=True)[:, None]
    D += row_norms(Z, squared=True)
    np.maximum(D, 0, out=D)
    return D


def kernel_matrix(function: KernelFunction, X: Any, Z: Any, numbers: int = 2**18) -> FloatArray:
    """Return K(X, Z) in float64, computed in blocks of rows of about so many numbers."""
    K = np.empty((X.shape[0], Z.shape[0]))
    for lo, hi in row_ranges(X.shape[0], Z.shape[0], numbers):
        K[lo:hi] = function(X[lo:hi].astype(np.float64, copy=False), Z)
    return K


def row_ranges(rows: int, columns: int, numbers: int = 2**18) -> list[tuple[int, int]]:
    """Return ranges of rows that hold about so many numbers each."""
    step = max(1, numbers // max(columns, 1))
    return [(lo, min(lo + step, rows)) for lo in range(0, rows, step)]
