"""A small set, and quick members, for the tests of ensembles."""

from __future__ import annotations

import numpy as np

from boostlist import EnsembleRanker, LinearRanker, TreeRanker
from boostlist.datasets import make_ranking

DATA = make_ranking(150, docs=10, n_features=10, noise=0.5, seed=5)
TRAIN, VALI, TEST = (DATA.select(np.arange(a, b)) for a, b in ((0, 80), (80, 110), (110, 150)))
EVAL = [(VALI.X, VALI.y, VALI.qid)]


def tree(loss="listmle", **more):
    return TreeRanker(loss, **({"n_estimators": 8, "learning_rate": 0.2, "num_leaves": 7, "extra_trees": False} | more))


def fitted(members=None, fit=None, **more):
    members = [tree(), tree("cs_listmle"), LinearRanker("listmle")] if members is None else members
    return EnsembleRanker(members, **more).fit(TRAIN.X, TRAIN.y, TRAIN.qid, **(fit or {}))


def deviation_within(scores, data, weight=None):
    """Return the spread by its definition, query by query."""
    variances, weights = [], []
    for q, (a, b) in enumerate(zip(data.queries.start[:-1], data.queries.start[1:], strict=True)):
        if b - a > 1:
            variances.append(np.var(scores[a:b]))
            weights.append(1.0 if weight is None else weight[q])
    return float(np.sqrt(np.average(variances, weights=weights)))
