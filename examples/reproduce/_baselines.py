"""Baselines of the papers that are of interest to reproductions only: RankBoost and a two-layer RankNet.

They are here and not in the package since better ones are: trees on `PairwiseExponential` and `PairwiseLogistic` grow
more than one split a round, take Newton steps and stop early.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from boostlist.losses import PairwiseExponential, PairwiseLogistic
from boostlist.queries import Queries
from boostlist.solvers import Limits, follow, minimize_lbfgs

Normalize = Literal["pairs"] | None
"""None: every pair counts the same; ``"pairs"``: every query does."""


@dataclass
class RankBoost(BaseEstimator):
    r"""RankBoost with weak learners h(x) = 1 if x_j > theta, else 0.

    Freund, Iyer, Schapire, Singer, *An efficient boosting algorithm for combining preferences* (2003). With D the
    weights of pairs, proportional to exp(-(f_i - f_j)), the potential pi_i is the weight of the pairs in which document
    i is to be the better one, less that of those in which it is to be the worse one: the negative gradient of the
    exponential loss over its value. A round takes the h with the largest |r|, and adds it with

        r = sum_i pi_i h(x_i),    alpha = 1/2 log((1 + r) / (1 - r))

    the third method of the paper, which bounds the loss for h between 0 and 1.

    Parameters
    ----------
    rounds
        Number of weak learners.
    normalize
        Whether pairs or queries count the same.
    """

    rounds: int = 100
    normalize: Normalize = None

    def fit(self, X: Any, y: Any, qid: Any) -> RankBoost:
        """Train."""
        X = np.asarray(X, np.float64)
        bound = PairwiseExponential(weights="uniform", normalize=self.normalize).bind(Queries.from_qid(y, qid))
        order = np.argsort(X, axis=0, kind="stable")
        ascending = np.take_along_axis(X, order, axis=0)
        last = ascending[:-1] < ascending[1:]  # a threshold fits behind these
        f = np.zeros(len(X))
        self.learners_: list[tuple[int, float, float]] = []
        for _ in range(self.rounds):
            value, gradient = bound.value_gradient(f)
            r = gradient[order].cumsum(axis=0)[:-1] / value  # of the documents above a threshold: all sum to 0
            r[~last] = 0.0
            i, j = np.unravel_index(np.abs(r).argmax(), r.shape)
            if r[i, j] == 0:
                break
            alpha = float(np.arctanh(np.clip(r[i, j], -1 + 1e-9, 1 - 1e-9)))
            theta = float(0.5 * (ascending[i, j] + ascending[i + 1, j]))
            f += alpha * (X[:, j] > theta)
            self.learners_.append((int(j), theta, alpha))
        return self

    def predict(self, X: Any) -> Any:
        """Return the score of each row."""
        X = np.asarray(X, np.float64)
        return sum((alpha * (X[:, j] > theta) for j, theta, alpha in self.learners_), np.zeros(len(X)))


@dataclass
class TwoLayerRankNet(BaseEstimator):
    r"""RankNet with a hidden layer: f(x) = v'tanh(W x + b), trained on the logistic loss of pairs.

    Burges et al., *Learning to rank using gradient descent* (2005), who have 10 hidden units and stochastic gradient
    descent. Here L-BFGS minimises 1/2 |parameters|^2 + (C/m) x loss, m the number of queries, from a random start.

    Parameters
    ----------
    C
        Weight of the loss against the penalty.
    hidden
        Number of hidden units.
    normalize
        Whether pairs or queries count the same.
    max_iter
        Largest number of iterations.
    seed
        Seed of the start.
    """

    C: float = 1.0
    hidden: int = 10
    normalize: Normalize = None
    max_iter: int = 100
    seed: int = 0

    def fit(self, X: Any, y: Any, qid: Any) -> TwoLayerRankNet:
        """Train, on features with mean 0 and deviation 1."""
        X = np.asarray(X, np.float64)
        self.centre_, deviation = X.mean(axis=0), X.std(axis=0)
        self.scale_ = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        Z = (X - self.centre_) * self.scale_
        queries = Queries.from_qid(y, qid)
        bound = PairwiseLogistic(weights="uniform", normalize=self.normalize).bind(queries)
        c, features = self.C / queries.n_queries, X.shape[1]

        def value_gradient(w: Any) -> tuple[float, Any]:
            W, b, v = self._layers(w, features)
            hidden = np.tanh(Z @ W + b)
            value, slope = bound.value_gradient(hidden @ v)
            back = np.outer(slope, v) * (1 - hidden**2)
            gradient = np.concatenate([(Z.T @ back).ravel(), back.sum(axis=0), hidden.T @ slope])
            return 0.5 * float(w @ w) + c * value, w + c * gradient

        size = (features + 2) * self.hidden
        start = np.random.default_rng(self.seed).normal(0, features**-0.5, size)
        solution = follow(minimize_lbfgs(value_gradient, start), Limits(0.0, self.max_iter))
        self.weights_ = solution.w
        return self

    def _layers(self, w: Any, features: int) -> Iterator[Any]:
        W, b, v = np.split(w, [features * self.hidden, (features + 1) * self.hidden])
        return iter((W.reshape(features, self.hidden), b, v))

    def predict(self, X: Any) -> Any:
        """Return the score of each row."""
        Z = (np.asarray(X, np.float64) - self.centre_) * self.scale_
        W, b, v = self._layers(self.weights_, Z.shape[1])
        return np.tanh(Z @ W + b) @ v
