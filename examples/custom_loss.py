"""A loss of one's own: two small classes in plain NumPy, then trees of either host and Newton's method can train on it.

The loss is the squared error between centred scores and centred grades, 1/2 sum_i (f_i - mean f - y_i + mean y)^2: what
matters is the order within a query, so the mean of the query is free.
"""

from dataclasses import dataclass

import numpy as np

import boostlist
from boostlist.losses import BoundLoss, Loss, Traits


class BoundCentredError(BoundLoss):
    """The loss on the lists it is bound to."""

    def _centred(self, v):
        start, sizes = self.queries.start[:-1], self.queries.sizes
        return v - np.repeat(np.add.reduceat(v, start) / sizes, sizes)

    def evaluate(self, f, need):
        """Return value by query, gradient and diagonal of the Hessian by document."""
        sizes = self.queries.sizes
        weight = np.repeat(self.queries.weight, sizes)
        error = self._centred(f - self.queries.labels)
        value = np.add.reduceat(error**2, self.queries.start[:-1]) / 2
        return value, weight * error, weight * np.repeat(1 - 1 / sizes, sizes)

    def hessp(self, f):
        """Return v -> H v, which Newton's method wants."""
        return lambda v: np.repeat(self.queries.weight, self.queries.sizes) * self._centred(np.asarray(v))


@dataclass(frozen=True, kw_only=True)
class CentredError(Loss):
    """1/2 sum_i (f_i - mean f - y_i + mean y)^2."""

    traits = Traits(diag="exact", convex=True, shift_invariant=True, cost="n")

    def bind(self, queries):
        """Do what depends on labels alone: nothing, here."""
        return BoundCentredError(self, queries)


if __name__ == "__main__":
    fold = boostlist.datasets.load_sample()
    for model in (
        boostlist.TreeRanker(CentredError(), n_estimators=100, learning_rate=0.1),
        boostlist.TreeRanker(CentredError(), backend="xgboost", n_estimators=100, learning_rate=0.1),
        boostlist.LinearRanker(CentredError(), C=10),
    ):
        model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        score = model.score(fold.test.X, fold.test.y, qid=fold.test.qid)
        print(f"{type(model).__name__:12} {getattr(model, 'backend', ''):8} NDCG@10 {score:.4f}")
