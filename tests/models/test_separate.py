"""BilinearRanker and DistanceRanker: gradients against differences, a local optimum, and something learnt."""

import numpy as np
import pytest
from sklearn.base import clone

from boostlist import BilinearRanker, DistanceRanker, Queries
from boostlist.losses import MulticlassLogistic, PairwiseLogistic, registry
from boostlist.metrics import MRR
from boostlist.models.kernels import row_ranges
from tests.models.data import numerical_gradient

RANKERS = {
    "sigmoid": BilinearRanker(n_query_features=3, d=2, activation="sigmoid", random_state=1),
    "tanh": BilinearRanker(n_query_features=3, d=2, activation="tanh", random_state=1),
    "distance": DistanceRanker(n_query_features=3, d=2, tau=1.5, random_state=1),
}
FORMULAS = {
    "sigmoid": lambda u, v: 1 / (1 + np.exp(-u)) @ v,
    "tanh": lambda u, v: np.tanh(u) @ v,
    "distance": lambda u, v: -((u - v) @ (u - v)) / 1.5,
}


def questions(seed, queries=60, answers=5):
    """Return data where the answer nearest to the question, after linear maps, is the right one."""
    rng = np.random.default_rng(seed)
    maps = np.random.default_rng(99)
    A, B = maps.normal(size=(2, 3)), maps.normal(size=(2, 4))
    q, z = np.repeat(rng.normal(size=(queries, 3)), answers, axis=0), rng.normal(size=(queries * answers, 4))
    distance = ((q @ A.T - z @ B.T) ** 2).sum(axis=1).reshape(queries, answers)
    y = (distance == distance.min(axis=1, keepdims=True)).astype(float).ravel()
    return np.hstack([q, z]), y, np.repeat(np.arange(queries), answers)


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("loss", [MulticlassLogistic(), PairwiseLogistic(), registry["rank_cosine"]()], ids=repr)
def test_the_fit_ends_where_the_gradient_vanishes(name, loss):
    X, y, qid = questions(0, queries=12)
    ranker = RANKERS[name].set_params(loss=loss, C=30.0, tol=1e-5)
    ranker.fit(X, y, qid=qid)
    bound = loss.bind(Queries.from_qid(y, qid))
    cut = ranker.A_.size

    def value(w):
        A, B = w[:cut].reshape(ranker.A_.shape), w[cut:].reshape(ranker.B_.shape)
        f = [FORMULAS[name](A @ row[:3], B @ row[3:]) for row in X]
        return 0.5 * w @ w + 30.0 / 12 * bound.value(f)

    w = np.concatenate([ranker.A_.ravel(), ranker.B_.ravel()])
    assert ranker.convergence_.iterations[-1].loss == pytest.approx(value(w))
    np.testing.assert_allclose(numerical_gradient(value, w), 0, atol=1e-4)
    np.testing.assert_allclose(ranker.predict(X), [FORMULAS[name](ranker.A_ @ r[:3], ranker.B_ @ r[3:]) for r in X])


@pytest.mark.parametrize("name", RANKERS)
def test_single_precision_in_blocks_gives_the_same_gradient(name, monkeypatch):
    monkeypatch.setattr(row_ranges, "__defaults__", (20,))
    X, y, qid = questions(0, queries=6)
    X = X.astype(np.float32)
    ranker = clone(RANKERS[name]).set_params(loss=MulticlassLogistic(), C=30.0)
    single, double = (ranker._problem(kind(X), Queries.from_qid(y, qid)) for kind in (np.asarray, np.float64))
    w = np.random.default_rng(0).normal(size=14)
    np.testing.assert_allclose(single.value_gradient(w)[1], double.value_gradient(w)[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        double.value_gradient(w)[1], numerical_gradient(lambda v: double.value_gradient(v)[0], w), atol=1e-4
    )


def test_it_learns_and_depends_on_the_seed():
    train, test = questions(1, queries=300), questions(2, queries=300)
    queries = Queries.from_qid(test[1], test[2])
    ranker = DistanceRanker(n_query_features=3, d=2, random_state=0).fit(*train[:2], qid=train[2])
    chance = MRR().mean(np.random.default_rng(0).random(len(test[1])), queries)
    assert MRR().mean(ranker.predict(test[0]), queries) > 0.85 > chance + 0.3
    again = DistanceRanker(n_query_features=3, d=2, random_state=0).fit(*train[:2], qid=train[2])
    np.testing.assert_array_equal(again.A_, ranker.A_)
    other = DistanceRanker(n_query_features=3, d=2, random_state=1).fit(*train[:2], qid=train[2])
    assert not np.allclose(other.A_, ranker.A_)


@pytest.mark.parametrize("n", [1, 6])
def test_one_column_is_enough_on_either_side(n):
    X, y, qid = questions(0, queries=3)
    ranker = BilinearRanker(n_query_features=n, d=2, random_state=0).fit(X, y, qid=qid)
    assert (ranker.A_.shape[-1], ranker.B_.shape[-1]) == (n, 7 - n)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (BilinearRanker(), "n_query_features must say how many of the 7 columns"),
        (BilinearRanker(n_query_features=7), "n_query_features must say"),
        (BilinearRanker(n_query_features=0), "n_query_features must say"),
        (BilinearRanker(n_query_features=3, activation="relu"), "activation must be one of"),
        (BilinearRanker(n_query_features=3, d=0), "d must be a whole number of at least 1"),
        (DistanceRanker(n_query_features=3, tau=0.0), "tau must be finite and > 0"),
        (DistanceRanker(n_query_features=3, C=0.0), "C must be finite and > 0"),
    ],
)
def test_errors(ranker, message):
    X, y, qid = questions(0, queries=3)
    with pytest.raises(ValueError, match=message):
        ranker.fit(X, y, qid=qid)
