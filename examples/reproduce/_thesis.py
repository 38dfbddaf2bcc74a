"""A literal port of the program in the appendix of Olinto's thesis (2016), errors included; for reproduction only.

What it does, and `boostlist` does not:

- A query is its first k documents in file order, filled up with documents of zeros; each feature is divided by its norm
  within the query.
- *pairs*: documents are not sorted by grade, so that only pairs in which the better one comes first in the file count.
- *difference*: in ``x - x[i,]`` R repeats the row x_i down the columns of the matrix x. Row t and column j is less
  element t + j n of the repeated row, not element j; for the n x n matrix of a kernel, K_tj - K_it instead of
  K_tj - K_ij.
- *denominator*: gradient and second derivative are divided by 1 + the sum of alpha e^(f_t - f_i) (x_tj - x_ij), where
  the loss has it without the difference, and the second derivative lacks the square of the first.
- *scores*: theta_l belongs to the l-th document of a query, and in training f_i = theta_i x the sum of row i of K. For
  the test f = K theta, with the vanilla parameters whatever the training had, and the lowest score comes first. (In
  print there is ``%%``, R's remainder, which would not run; it is read as ``%*%``.)
- Gaussian and Laplace kernels are those of rows of the Gram matrix XX'.
- A step is the mean of g / h over all queries and all iterations so far; then the weights are scaled to length 1, in
  the kernel model 10. It ends when no weight changes by 0.001 or more, or after 200 iterations.
- NDCG@m is relative to the best order of the m documents that were ranked first.

The errors in italics can be mended one by one, to see what each of them does in training.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boostlist.datasets import RankingData

Array = Any
START, TOLERANCE, LIMIT = 0.05, 0.001, 200
VANILLA = {"a": 0.0, "b": 1.0, "d": 1.0, "sigma": 1.0, "gamma": 1.0}
ERRORS = ("pairs", "difference", "denominator", "scores")


@dataclass(frozen=True)
class Lists:
    """The first k documents of each query, zeros where it has fewer: X is queries x k x features, y queries x k."""

    X: Array
    y: Array

    @classmethod
    def of(cls, data: RankingData, k: int) -> Lists:
        """Cut and pad each query, and divide each feature by its norm within the query."""
        start = data.queries.start
        X, y = np.zeros((len(start) - 1, k, data.n_features)), np.zeros((len(start) - 1, k))
        for q, (a, b) in enumerate(zip(start[:-1], np.minimum(start[1:], start[:-1] + k), strict=True)):
            X[q, : b - a], y[q, : b - a] = data.X[a:b], data.y[a:b]
        norm = np.sqrt((X**2).sum(axis=1, keepdims=True))
        return cls(X / np.where(norm == 0, 1, norm), y)


def kernel(name: str, X: Array, parameters: Mapping[str, float]) -> Array:
    """Return the kernel matrix of each query: ``kxxi`` of the appendix, with its defaults."""
    a, b, d, sigma, gamma = (parameters.get(key, value) for key, value in VANILLA.items())
    gram = X @ X.transpose(0, 2, 1)
    if name == "polynomial":
        return (b * gram + a) ** d
    if name == "tanh":
        return np.tanh(b * gram + a)
    distance = ((gram[:, :, None, :] - gram[:, None, :, :]) ** 2).sum(axis=-1)
    return np.exp(-distance / (2 * sigma**2) if name == "gaussian" else -gamma * distance)


def special(p: int) -> dict[str, float]:
    """Return the parameters of the column "special" for p features."""
    return {"a": 0.0, "b": 1 / p, "d": 3.0, "sigma": float(np.sqrt(p / 2)), "gamma": 1 / p}


def ratios(f: Array, y: Array, difference: Array, mended: Container[str]) -> Array:
    """Return g / h for each query and weight: ``grad_listMLE``; difference is queries x i x t x weights."""
    n = y.shape[1]
    counted = np.ones((n, n), bool) if "pairs" in mended else np.triu(np.ones((n, n), bool), 1)
    gap = y[:, :, None] - y[:, None, :]
    alpha = np.where(counted & (gap > 0), gap / np.where(y > 0, y, 1)[:, :, None], 0)
    beta = y / np.where(y.sum(axis=1) > 0, y.sum(axis=1), 1)[:, None]
    share = alpha * np.exp(np.where(alpha > 0, f[:, None, :] - f[:, :, None], 0))
    first = np.einsum("qit,qitj->qij", share, difference)
    second = np.einsum("qit,qitj->qij", share, difference**2)
    if "denominator" in mended:
        Z = 1 + share.sum(axis=2)[:, :, None]
        g = np.einsum("qi,qij->qj", beta, first / Z)
        h = np.einsum("qi,qij->qj", beta, second / Z - (first / Z) ** 2)
        # What is left of a second derivative of 0 by rounding has no meaning.
        g, h = np.where(h > 1e-12, (g, h), 0)
    else:
        g = np.einsum("qi,qij->qj", beta, first / (1 + first))
        h = np.einsum("qi,qij->qj", beta, second / (1 + first) ** 2)
    return np.divide(g, h, out=np.zeros_like(g), where=(g != 0) | (h != 0))


def descend(step: Callable[[Array], Array], length: float, size: int) -> tuple[Array, int]:
    """Return the weights and the number of iterations: the loop of the appendix."""
    w, total, change = np.full(size, START), np.zeros(size), np.inf
    iterations = 0
    while change >= TOLERANCE and iterations < LIMIT:
        iterations += 1
        total = total + step(w).mean(axis=0)
        new = w - total / iterations
        new = length * new / np.sqrt((new**2).sum())
        change, w = float(np.abs(new - w).max()), new
    return w, iterations


def train(lists: Lists, method: str, parameters: Mapping[str, float], mended: Container[str] = ()) -> tuple[Array, int]:
    """Return the weights, of features for "plain" and of places for a kernel, and the number of iterations.

    Weights that have overflowed are NaN; R ends there with an error.
    """
    X, y = lists.X, lists.y
    n, p = X.shape[1:]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if method == "plain":
            t, j = np.meshgrid(np.arange(n), np.arange(p), indexing="ij")
            own = X[:, :, None, :] if "difference" in mended else X[:, :, (t + j * n) % p]
            return descend(lambda w: ratios(X @ w, y, X[:, None, :, :] - own, mended), 1.0, p)
        K = kernel(method, X, parameters)
        row = K.sum(axis=2)
        own = K[:, :, None, :] if "difference" in mended else K[:, :, :, None]

        def step(theta: Array) -> Array:
            return ratios(K @ theta if "scores" in mended else row * theta, y, K[:, None, :, :] - own, mended)

        return descend(step, 10.0, n)


def ndcg(lists: Lists, scores: Array, m: int) -> float:
    """Return the mean of NDCG@m by the thesis's rule; documents with the highest scores come first."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :m]
    gains = 2.0 ** np.take_along_axis(lists.y, order, axis=1) - 1
    discount = 1 / np.log2(2 + np.arange(gains.shape[1]))
    best = np.sort(gains, axis=1)[:, ::-1] @ discount
    return float(np.mean(np.divide(gains @ discount, best, out=np.zeros_like(best), where=best > 0)))


def test_scores(lists: Lists, method: str, w: Array) -> Array:
    """Return the scores of test documents, the higher the earlier they come."""
    w = np.nan_to_num(w)  # without weights documents stay in the order of the file
    if method == "plain":
        return lists.X @ w
    return -(kernel(method, lists.X, VANILLA) @ w)


def random_order(lists: Lists, m: int, draws: int = 50) -> float:
    """Return the mean NDCG@m of lists in random order."""
    rng = np.random.default_rng(0)
    return float(np.mean([ndcg(lists, rng.random(lists.y.shape), m) for _ in range(draws)]))


def independent_lists(shares: Sequence[float], k: int, queries: int = 2_000) -> Lists:
    """Return lists of k documents without features whose grades are drawn independently with these shares."""
    y = np.random.default_rng(1).choice(len(shares), (queries, k), p=np.divide(shares, np.sum(shares)))
    return Lists(np.zeros((queries, k, 0)), y.astype(np.float64))
