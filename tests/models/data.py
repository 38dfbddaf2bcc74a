"""Small data sets for the tests of models."""

import numpy as np

from boostlist import Queries


def lists(seed=0, sizes=(8, 12, 5, 9, 14, 7), features=4, grades=3, noise=1.0):
    """Return features, labels that a linear function explains in part, and query ids."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = rng.normal(size=(n, features))
    X[:, 1] += 0.7 * X[:, 0]
    relevance = X @ np.linspace(1, -1, features) + noise * rng.normal(size=n)
    y = np.digitize(relevance, np.quantile(relevance, np.linspace(0, 1, grades + 1)[1:-1])).astype(float)
    return X, y, np.repeat(np.arange(len(sizes)), sizes)


def objective(loss, C, X, y, qid):
    """Return the function w -> 1/2 |w|^2 + (C/m) sum of query losses, from the loss's value alone."""
    queries = Queries.from_qid(y, qid)
    bound = loss.bind(queries)
    return lambda w: 0.5 * w @ w + C / queries.n_queries * bound.value(X @ w)


def numerical_gradient(function, w, step=1e-6):
    """Return central differences."""
    steps = step * np.eye(len(w))
    return np.array([(function(w + e) - function(w - e)) / (2 * step) for e in steps])
