"""QuadraticRanker: correlations by the book, and a product that a linear function cannot see."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from boostlist import LinearRanker, QuadraticRanker
from boostlist.models import kernels, quadratic
from tests.models.data import lists


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_correlations_by_the_book(kind, monkeypatch):
    monkeypatch.setattr(kernels.row_ranges, "__defaults__", (20,))
    X, y, _ = lists()
    X[:, 3] = 2.0
    found = quadratic.product_correlations(kind(X), y)
    for j in range(4):
        for k in range(4):
            expected = 0 if j == k == 3 else np.corrcoef(X[:, j] * X[:, k], y)[0, 1]
            assert found[j, k] == pytest.approx(expected, abs=1e-12)
    assert not quadratic.product_correlations(X, np.ones(len(y))).any()


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 7e5 / 9, 1e-5])
def test_constants_correlate_with_nothing_and_levels_do_not_matter(constant):
    X, y, _ = lists()
    X[:, 0] += 30.0  # the products of this vary little beside their mean
    X[:, 3] = constant
    found = quadratic.product_correlations(X, y)
    assert found[3, 3] == 0
    for j, k in ((0, 0), (0, 1), (1, 2)):
        assert found[j, k] == pytest.approx(np.corrcoef(X[:, j] * X[:, k], y)[0, 1], abs=1e-8)


def test_rho_itself_counts():
    X, y, qid = lists()
    correlation = np.abs(quadratic.product_correlations(X, y))
    j, k = 0, 1
    ranker = QuadraticRanker("listmle", rho=float(correlation[j, k])).fit(X, y, qid=qid)
    assert [j, k] in ranker.pairs_.tolist()
    assert len(ranker.pairs_) == np.sum(np.triu(correlation) >= correlation[j, k])


def test_it_finds_the_product_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 5))
    relevance = X[:, 0] + 2 * X[:, 1] * X[:, 3]
    y = (relevance > 1).astype(float)
    sizes = [20] * 40
    ranker = QuadraticRanker("listmle", rho=0.3, C=100.0).fit(X, y, group=sizes)
    assert ranker.pairs_.tolist() == [[1, 3]]
    by_hand = LinearRanker("listmle", C=100.0).fit(np.column_stack([X, X[:, 1] * X[:, 3]]), y, group=sizes)
    np.testing.assert_allclose(ranker.coef_, by_hand.coef_, atol=1e-8)
    linear = LinearRanker("listmle", C=100.0).fit(X, y, group=sizes)
    assert ranker.score(X, y, group=sizes) > 0.95 > linear.score(X, y, group=sizes) + 0.1


def test_rho_is_a_threshold():
    X, y, qid = lists()
    counts = [len(QuadraticRanker("listmle", rho=rho).fit(X, y, qid=qid).pairs_) for rho in (0.0, 0.1, 1.0)]
    assert counts[0] == 10 > counts[1] > counts[2] == 0
    with pytest.raises(ValueError, match="rho must be between 0 and 1"):
        QuadraticRanker(rho=1.5).fit(X, y, qid=qid)
