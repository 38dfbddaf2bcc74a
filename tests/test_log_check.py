"""Whether a log shows documents in a better order than what is learned from it, on queries that are held out."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from boostlist import LinearRanker, Queries, TreeRanker
from boostlist.boosters import PositionBias
from boostlist.log_check import _rate, _upper, compared, documents, same_query
from boostlist.losses import CsListMLE

QUERIES, SHOWN, SESSIONS = 40, 6, 6
RNG = np.random.default_rng(0)
# What is relevant, which no feature shows but for a little, and the ranker that made the log may know.
RELEVANCE = RNG.normal(size=(QUERIES, SHOWN))
FEATURES = np.stack([RELEVANCE + 3 * RNG.normal(size=RELEVANCE.shape), RNG.normal(size=RELEVANCE.shape)], axis=2)
POSITION = np.tile(np.arange(1, SHOWN + 1), QUERIES * SESSIONS)
SESSION = np.repeat(np.arange(QUERIES * SESSIONS), SHOWN)


def shown(score, random_share=0.0):
    """Return the document at each position of each session, by its number."""
    rng = np.random.default_rng(1)
    query = np.repeat(np.arange(QUERIES), SESSIONS)
    at_random = rng.random(len(query)) < random_share
    ranked = np.where(at_random[:, None], rng.random((len(query), SHOWN)), -score[query])
    return (query[:, None] * SHOWN + np.argsort(ranked, axis=1)).ravel()


def log(score, random_share=0.0):
    """Return features, clicks and documents of a log."""
    document = shown(score, random_share)
    attraction = 1 / (1 + np.exp(-3 * RELEVANCE.ravel()[document]))
    clicks = (np.random.default_rng(2).random(len(document)) < attraction / POSITION).astype(float)
    return FEATURES.reshape(-1, 2)[document], clicks, document


def trees(**parameters):
    defaults = {"n_estimators": 12, "learning_rate": 0.3, "num_leaves": 4, "min_child_weight": 1.0, "n_jobs": 1}
    return TreeRanker(**{"objective": "cs_listmle"} | defaults | parameters)


@pytest.mark.parametrize("random_share", [0.0, 0.4])
@pytest.mark.parametrize("model", [trees(), LinearRanker()], ids=["trees", "linear"])
def test_warns_where_the_log_knows_more(model, random_share):
    X, y, _ = log(RELEVANCE, random_share)
    with pytest.warns(UserWarning, match="the ranker that made this log was as good as"):
        model.fit(X, y, SESSION, position=POSITION)


@pytest.mark.parametrize("score", [RNG.normal(size=RELEVANCE.shape), -RELEVANCE], ids=["random", "bad"])
def test_does_not_warn_of_other_logs(score):
    X, y, document = log(score)
    X = np.column_stack([X, RELEVANCE.ravel()[document] + 0.3 * RNG.normal(size=RELEVANCE.size)[document]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (trees(), LinearRanker()):
            model.fit(X, y, SESSION, position=POSITION)


def test_does_not_warn_of_what_it_cannot_or_need_not_judge():
    X, y, document = log(RELEVANCE)
    chosen = CsListMLE().objective(position_bias=PositionBias(check=False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trees(objective=chosen).fit(X, y, SESSION, position=POSITION)
        trees(n_estimators=2, learning_rate=0.1).fit(X, y, SESSION, position=POSITION)  # biases on their way
        trees().fit(X, y, SESSION, position=POSITION, init_score=3 * RELEVANCE.ravel()[document])  # as good as the log


def test_lists_with_a_document_in_common_are_of_one_query():
    X, _, _ = log(RNG.normal(size=RELEVANCE.shape), 1.0)
    X[(POSITION == 1) | (POSITION == 3)] = 0  # features that say nothing, of two documents in every list
    queries = Queries.from_sizes(np.zeros(len(X)), np.full(QUERIES * SESSIONS, SHOWN))
    found = same_query(documents(X), queries).reshape(QUERIES, SESSIONS)
    assert (found == found[:, :1]).all()
    assert len(np.unique(found)) == QUERIES


def test_upper_half_of_lists():
    bias = np.array([-1.0, 0.0, -0.5, -0.2, 0.0, -0.1, -0.7])
    found = _upper(bias, Queries.from_sizes(np.zeros(7), [3, 1, 3]))
    np.testing.assert_array_equal(found, [False, True, True, True, True, True, False])


def test_documents_are_known_by_their_features():
    _, _, document = log(RELEVANCE)
    X = FEATURES.reshape(-1, 2)[document]
    X[X[:, 1] < -1, 1] = np.nan
    category = pd.Categorical(np.array(["u", "v"])[document % 2])
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=category)
    _, expected = np.unique(document, return_inverse=True)
    for features in (X, X.astype(np.float32), np.asfortranarray(X), sparse.csr_matrix(X), frame):
        found = documents(features)
        assert len(set(zip(found.tolist(), expected.tolist(), strict=True))) == found.max() + 1 == expected.max() + 1


def test_numbers():
    """Against arithmetic by hand: two lists of two documents, the second list weighs three times as much."""
    queries = Queries.from_sizes([1, 0, 1, 1], [2, 2], [1, 3])
    bias, f = np.array([0.0, -0.4, -0.4, 0.0]), np.array([0.3, 0.1, 0.5, 0.0])

    def likelihood(beta):
        z = beta * (f + bias)
        lists = np.log(np.exp(z[:2]).sum()), np.log(np.exp(z[2:]).sum())
        return z[0] - lists[0] + 3 * (z[2] + z[3] - 2 * lists[1])

    beta = minimize_scalar(lambda beta: -likelihood(beta), bounds=(0, 50), method="bounded").x
    assert _rate(queries, f + bias) == pytest.approx(beta, rel=1e-4)
    weights = np.array([1, 0, np.exp(0.4 * beta), 1]) * [1, 1, 3, 3]
    second = 1 / np.log2(3)
    held_out = np.array([1.0, 2.0, 2.0, 1.0])
    learned = weights @ [second, 1, 1, second] / weights.sum()
    # Document 7 had the biases 0 and -0.4, document 8 -0.4 and 0: tied in the mean.
    tied = weights @ np.full(4, (1 + second) / 2) / weights.sum()
    found = compared(queries, np.array([0, 1]), held_out, f, bias, np.array([0, 1, 0, 1]))
    assert found[:2] == pytest.approx((learned, tied))
    apart = weights * [1, second, second, 1]
    found = compared(queries, np.array([0, 1]), held_out, f, bias, np.arange(4))
    gain = (weights * [second, 1, 1, second] - apart).reshape(2, 2).sum(axis=1)
    error = np.sqrt(2) * np.std(gain) / weights.sum()
    assert found == pytest.approx((learned, apart.sum() / weights.sum(), error))
