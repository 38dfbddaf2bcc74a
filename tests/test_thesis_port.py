"""The port of the thesis's program in examples/reproduce: as R runs it; with its errors mended, as the solver is."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from boostlist import LinearRanker
from boostlist.datasets import RankingData
from boostlist.losses import CsListMLE

PORT = Path(__file__).parents[1] / "examples" / "reproduce" / "_thesis.py"


@pytest.fixture(scope="module")
def thesis():
    spec = importlib.util.spec_from_file_location("_thesis", PORT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["_thesis"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["_thesis"]


def data(sizes=(6, 5, 7)):
    rng = np.random.default_rng(0)
    n = sum(sizes)
    y = rng.integers(0, 3, n).astype(float)
    return RankingData(rng.random((n, 4)), y, np.repeat(np.arange(len(sizes)), sizes))


def minus_row(matrix, i):
    """What R makes of ``matrix - matrix[i,]``: the row is repeated down the columns."""
    n, p = matrix.shape
    flat = matrix.flatten(order="F")
    return (flat - np.resize(matrix[i], n * p)).reshape((n, p), order="F")


def step_as_in_r(scores, matrix, y):
    """Return g / h of one query, in the loops of the appendix."""
    n, p = matrix.shape
    result = np.zeros(p)
    if y.sum() == 0:
        return result
    for j in range(p):
        g = h = 0.0
        for i in range(n):
            difference = minus_row(matrix, i)[:, j]
            first = second = 0.0
            for t in range(i + 1, n):
                if y[i] > y[t]:
                    share = (y[i] - y[t]) / y[i] * math.exp(scores[t] - scores[i])
                    first += share * difference[t]
                    second += share * difference[t] ** 2
            g += y[i] / y.sum() * first / (1 + first)
            h += y[i] / y.sum() * second / (1 + first) ** 2
        result[j] = 0.0 if g == 0 and h == 0 else g / h
    return result


@pytest.mark.parametrize("method", ["plain", "gaussian", "laplace", "polynomial", "tanh"])
def test_two_iterations_are_those_of_r(thesis, method, monkeypatch):
    monkeypatch.setattr(thesis, "LIMIT", 2)
    monkeypatch.setattr(thesis, "TOLERANCE", 0.0)
    lists = thesis.Lists.of(data(), 6)  # the second query is padded, the third cut
    assert lists.y.shape == (3, 6)
    assert lists.y[1, 5] == 0
    np.testing.assert_allclose((lists.X**2).sum(axis=1), 1)
    parameters = thesis.special(4)
    if method == "plain":
        matrices, length = list(lists.X), 1.0
    else:
        matrices, length = list(thesis.kernel(method, lists.X, parameters)), 10.0
    w, steps = np.full(matrices[0].shape[1], 0.05), []
    for _ in range(2):
        for matrix, y in zip(matrices, lists.y, strict=True):
            scores = matrix @ w if method == "plain" else matrix.sum(axis=1) * w
            steps.append(step_as_in_r(scores, matrix, y))
        w = w - np.mean(steps, axis=0)
        w = length * w / np.linalg.norm(w)
    found, iterations = thesis.train(lists, method, parameters)
    assert iterations == 2
    np.testing.assert_allclose(found, w, rtol=1e-9)


def test_kernels_are_of_rows_of_the_gram_matrix(thesis):
    X = thesis.Lists.of(data(), 6).X
    gram = X[0] @ X[0].T
    K = thesis.kernel("gaussian", X, thesis.VANILLA)[0]
    assert K[1, 4] == pytest.approx(math.exp(-((gram[1] - gram[4]) ** 2).sum() / 2))
    assert thesis.kernel("polynomial", X, thesis.special(4))[0][1, 4] == pytest.approx((gram[1, 4] / 4) ** 3)


def test_with_all_errors_mended_it_is_the_solver_by_query(thesis):
    part = data((6, 6, 6))
    w, iterations = thesis.train(thesis.Lists.of(part, 6), "plain", {}, thesis.ERRORS)
    cut = part.normalize("query-l2")
    ranker = LinearRanker(CsListMLE(weights="grade"), solver="diagonal-by-query", tol=1e-3, max_iter=200)
    ranker.fit(cut.X, cut.y, qid=cut.qid)
    assert ranker.n_iter_ == iterations
    np.testing.assert_allclose(ranker.coef_, w, rtol=1e-9)


def test_the_metric_knows_only_the_documents_ranked_first(thesis):
    lists = thesis.Lists(np.zeros((1, 4, 0)), np.array([[0.0, 1.0, 2.0, 0.0]]))
    scores = np.array([[3.0, 2.0, 1.0, 0.0]])
    assert thesis.ndcg(lists, scores, 2) == pytest.approx((1 / math.log2(3)) / 1)
    assert thesis.ndcg(lists, scores, 1) == 0
