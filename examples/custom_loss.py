"""A loss of one's own
===================

A loss of one's own: two small classes in plain NumPy, and the trees of either host and linear models train on it.

The loss is the squared error between centred scores and centred grades, 1/2 sum_i (f_i - mean f - y_i + mean y)^2: what
matters is the order within a query, so the mean of the query is free.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import boostlist
from boostlist.losses import BoundLoss, Loss, Traits


class _BoundCentredError(BoundLoss):
    def evaluate(self, f, need):
        start, sizes = self.queries.start[:-1], self.queries.sizes
        weight = np.repeat(self.queries.weight, sizes)
        error = f - self.queries.labels
        error -= np.repeat(np.add.reduceat(error, start) / sizes, sizes)
        value = np.add.reduceat(error**2, start) / 2  # by query; gradient and diagonal of the Hessian by document
        return value, weight * error, weight * np.repeat(1 - 1 / sizes, sizes)


@dataclass(frozen=True, kw_only=True)
class _CentredError(Loss):
    traits = Traits(diag="exact", convex=True, shift_invariant=True, cost="n")

    def bind(self, queries):
        return _BoundCentredError(self, queries)


fold = boostlist.datasets.load_sample()
figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), sharey=True, layout="constrained")
models = (
    boostlist.TreeRanker(_CentredError(), n_estimators=100, learning_rate=0.1),
    boostlist.TreeRanker(_CentredError(), backend="xgboost", n_estimators=100, learning_rate=0.1),
    boostlist.LinearRanker(_CentredError(), C=0.1, solver="lbfgs"),
)
for ax, model in zip(axes, models, strict=True):
    model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    score = model.score(fold.test.X, fold.test.y, qid=fold.test.qid)
    print(f"{type(model).__name__:12} {getattr(model, 'backend', ''):8} NDCG@10 {score:.4f}")
    ax.boxplot([model.predict(fold.test.X[fold.test.y == grade]) for grade in range(5)], positions=range(5))
    ax.set_title(f"{type(model).__name__} {getattr(model, 'backend', '')}")
    ax.set_xlabel("grade")
axes[0].set_ylabel("score")
plt.show()
