"""A small set and rankers on it, for the tests of TreeRanker."""

from __future__ import annotations

import numpy as np
import pytest

from boostlist import TreeRanker, metrics
from boostlist.datasets import make_ranking

DATA = make_ranking(160, docs=12, n_features=12, noise=0.1, interactions=0.3, blur=0, seed=5)
TRAIN, TEST = DATA.select(np.arange(100)), DATA.select(np.arange(100, 160))
UNTRAINED = metrics.NDCG(10).mean(np.zeros(TEST.n_documents), TEST.queries)

both_hosts = pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])


# Without random thresholds two trainings differ in what a test is about, and in nothing else.
PARAMS = {"n_estimators": 12, "learning_rate": 0.2, "extra_trees": False, "n_jobs": 1}


def ranker(backend="lightgbm", objective="cs_listmle", **params):
    return TreeRanker(objective, backend=backend, **(PARAMS | params))


def fitted(backend="lightgbm", objective="cs_listmle", **params):
    return ranker(backend, objective, **params).fit(TRAIN.X, TRAIN.y, TRAIN.qid)


def frame(data):
    """Features and query ids as a user keeps them."""
    return data.to_frame().drop(columns="label")
