"""When a log cannot tell bias from relevance."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from boostlist import Queries, TreeRanker
from boostlist.boosters.confounding import measure

LISTS, SHOWN = 150, 8
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(LISTS * SHOWN, 3))
QUERY = np.repeat(np.arange(LISTS), SHOWN)
POSITION = np.tile(np.arange(1, SHOWN + 1), LISTS)


def fitted(logging_score, X=FEATURES, **parameters):
    """Train on clicks on lists that were ranked by a score; relevant is what has a large first feature."""
    order = np.lexsort((-logging_score, QUERY))
    rows = X.iloc[order] if hasattr(X, "iloc") else X[order]
    rng = np.random.default_rng(1)
    clicks = (rng.random(len(order)) < 1 / POSITION / (1 + np.exp(-2 * FEATURES[order, 0]))).astype(float)
    model = TreeRanker("cs_listmle", n_jobs=1, **{"n_estimators": 15, "learning_rate": 0.3} | parameters)
    return model.fit(rows, clicks, QUERY, position=POSITION)


@pytest.mark.parametrize(
    "X",
    [
        FEATURES,
        sparse.csr_matrix(FEATURES),
        pd.DataFrame(FEATURES, columns=list("abc")).assign(d=pd.Categorical(["u", "v"] * (LISTS * SHOWN // 2))),
    ],
    ids=["dense", "sparse", "frame"],
)
def test_warns_of_a_good_ranker(X):
    with pytest.warns(UserWarning, match="features decide on positions"):
        fitted(FEATURES[:, 0], X)


@pytest.mark.parametrize("score", [RNG.normal(size=len(FEATURES)), -FEATURES[:, 0]], ids=["random", "bad"])
def test_does_not_warn_of_others(score):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(score)


def test_does_not_judge_biases_that_are_on_their_way():
    """After three small steps trees follow the features that decide on positions, whatever they are worth."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(FEATURES[:, 0], n_estimators=3, learning_rate=0.1)


def test_numbers():
    queries = Queries.from_sizes(np.zeros(len(FEATURES)), np.full(LISTS, SHOWN))
    w = np.array([1.0, -2.0, 0.5])
    noise = RNG.normal(size=len(FEATURES))
    bias = FEATURES @ w + noise + 100 * QUERY  # what is common to a list does not count
    missing = np.where(RNG.random(FEATURES.shape) < 0.01, np.nan, FEATURES)
    for X, tolerance in ((FEATURES, 0.03), (missing, 0.05)):
        found = measure(X, np.arange(3), bias, queries, lambda part: np.nan_to_num(part) @ w)
        share = (w @ w) / (w @ w + 1)
        assert found.explained == pytest.approx(share, abs=tolerance)
        assert found.agreement == pytest.approx(1, abs=tolerance)
    opposite = measure(FEATURES, np.arange(3), bias, queries, lambda part: -(part @ w))
    assert opposite.agreement == pytest.approx(-1, abs=0.03)
    assert measure(FEATURES, np.arange(0), bias, queries, lambda part: part[:, 0]) == (0, 0)
