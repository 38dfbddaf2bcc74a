"""Pairwise losses: weights of table 9, capped exponents, long lists against matrices, small problems by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import (
    GBRank,
    PairwiseExponential,
    PairwiseHinge,
    PairwiseLogistic,
    PairwiseQuadratic,
    PairwiseSquaredHinge,
)
from boostlist.losses.ratios import FAR

EVERY = [PairwiseQuadratic, PairwiseHinge, PairwiseSquaredHinge, PairwiseExponential, PairwiseLogistic, GBRank]
PHI = {
    PairwiseQuadratic: (lambda d: (1 - d) ** 2, lambda d: -2 * (1 - d)),
    PairwiseHinge: (lambda d: np.maximum(1 - d, 0), lambda d: -1.0 * (d < 1)),
    PairwiseExponential: (lambda d: np.exp(-d), lambda d: -np.exp(-d)),
    PairwiseLogistic: (lambda d: np.logaddexp(0, -d), lambda d: -1 / (1 + np.exp(d))),
}


def dense(loss, f, y):
    """Value and gradient of a long list by n x n matrices, for V = y_i - y_j."""
    V = np.maximum(y[:, None] - y, 0)
    d = f[:, None] - f
    if type(loss) is PairwiseSquaredHinge:
        gap = np.maximum((y[:, None] - y) - d, 0)
        values, slopes = gap**2, -2 * gap
    else:
        phi, slope = PHI[type(loss)]
        values, slopes = phi(d), slope(d)
    return (V * values).sum(), (V * slopes).sum(1) - (V * slopes).sum(0)


@pytest.mark.parametrize("loss_type", EVERY[:-1])
@pytest.mark.parametrize("labels", ["five grades", "all different"])
def test_long_lists_agree_with_matrices(loss_type, labels):
    rng = np.random.default_rng(7)
    n = 550
    y = rng.integers(0, 5, n).astype(float) if labels == "five grades" else 0.01 * rng.permutation(n)
    f = np.round(rng.normal(size=n), 1 if loss_type is PairwiseSquaredHinge else 8)  # ties in score
    extra = {"targets": "linear"} if loss_type is PairwiseSquaredHinge else {}
    loss = loss_type(weights="grade", normalize=None, **extra)
    value, gradient = dense(loss, f, y)
    bound = loss.bind(Queries.from_sizes(y, [n]))
    np.testing.assert_allclose(bound.value(f), value, rtol=1e-11)
    np.testing.assert_allclose(bound.gradient_hessian(f)[0], gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())


@pytest.mark.parametrize("loss_type", PHI)
def test_close_labels_keep_their_digits(loss_type):
    # 1000 + small differences: multiplied out, (y_i - y_j) would lose ten digits.
    rng = np.random.default_rng(8)
    small = 2.0 ** -rng.integers(20, 23, 12)
    f = rng.normal(size=12)
    far, near = (
        loss_type(weights="grade", normalize=None).bind(Queries.from_sizes(y, [12])) for y in (1000 + small, small)
    )
    np.testing.assert_allclose(far.value(f), near.value(f), rtol=1e-12)
    np.testing.assert_allclose(far.gradient_hessian(f), near.gradient_hessian(f), rtol=1e-9, atol=1e-18)


def test_weights_of_table_9_by_hand():
    # Labels 2, 0, 1: positions 1, 3, 2, R = 3/7, 0, 1/7. At d = 0 the hinge is the sum of V.
    queries, f = Queries.from_sizes([2, 0, 1], [3]), np.zeros(3)
    eta = [1 / math.log(2), 1 / math.log(4), 1 / math.log(3)]
    ideal = 3 / 7 * eta[0] + 1 / 7 * eta[2]
    by_dcg = 3 / 7 * (eta[0] - eta[1]) + 1 / 7 * (eta[2] - eta[1]) + 2 / 7 * (eta[0] - eta[2])
    expected = {
        ("uniform", None): 3,
        ("uniform", "documents"): 1,
        ("uniform", "pairs"): 1,
        ("grade", None): 4,
        ("grade", "documents"): 4 / 3,
        ("gain", None): 6 / 7,
        ("gain", "documents"): 2 / 7,
        ("dcg", None): by_dcg,
        ("dcg", "documents"): by_dcg / 3,
        ("dcg", "dcg"): by_dcg / ideal,
    }
    for (weights, normalize), total in expected.items():
        loss = PairwiseHinge(weights=weights, normalize=normalize)
        np.testing.assert_allclose(loss.bind(queries).value(f), total, rtol=1e-14, err_msg=repr(loss))


@pytest.mark.parametrize("loss_type", EVERY)
@pytest.mark.parametrize("labels", [[1.0], [2.0, 2.0, 2.0], [0.0, 0.0]])
def test_one_grade_has_no_ordered_pairs(loss_type, labels):
    loss = GBRank(lam1=0) if loss_type is GBRank else loss_type()
    bound = loss.bind(Queries.from_sizes(labels, [len(labels)]))
    f = np.arange(len(labels)) * 1.5
    assert bound.value(f) == 0
    np.testing.assert_array_equal(bound.gradient_hessian(f), 0)


def test_exponential_loss_is_capped_beyond_a_spread_of_600():
    bound = PairwiseExponential(weights="uniform", normalize=None).bind(Queries.from_sizes([1, 0, 0], [3]))
    np.testing.assert_allclose(bound.value([-299, 299, 0]), math.exp(598) + math.exp(299), rtol=1e-12)
    np.testing.assert_allclose(bound.value([-1e4, 1e4, 0]), math.exp(600) + math.exp(300), rtol=1e-12)
    gradient, diag = bound.gradient_hessian([-1e4, 1e4, 0])
    assert gradient[0] < 0 < gradient[2] < gradient[1]
    assert (diag > 0).all()


@pytest.mark.parametrize("spread", [0.9 * FAR, 1.1 * FAR, 3e4])
def test_logistic_loss_is_right_on_both_paths(spread):
    rng = np.random.default_rng(9)
    y, f = rng.integers(0, 3, 30).astype(float), rng.uniform(-0.5, 0.5, 30)
    f[0], f[1] = -0.5, 0.5
    f *= spread
    V, d = np.maximum(y[:, None] - y, 0), f[:, None] - f
    bound = PairwiseLogistic(weights="grade", normalize=None).bind(Queries.from_sizes(y, [30]))
    np.testing.assert_allclose(bound.value(f), (V * np.logaddexp(0, -d)).sum(), rtol=1e-13)
    p = V * np.exp(-np.logaddexp(0, d))
    np.testing.assert_allclose(bound.value_gradient(f)[1], p.sum(0) - p.sum(1), rtol=1e-12, atol=1e-12)


def test_hinge_diag_is_the_mean_weight_of_a_document():
    # Pairs weigh 2, 1 and 1: 8 / 3 on average for the documents of the first query; nothing in the second.
    queries = Queries.from_sizes([2, 0, 1, 1, 1], [3, 2], [0.5, 3.0])
    _, diag = PairwiseHinge(weights="grade", normalize=None).bind(queries).gradient_hessian(np.zeros(5))
    np.testing.assert_allclose(diag, [4 / 3, 4 / 3, 4 / 3, 0, 0])


def test_one_newton_step_solves_the_quadratic_loss():
    rng = np.random.default_rng(10)
    queries = Queries.from_sizes(rng.integers(0, 4, 12), [12])
    bound = PairwiseQuadratic().bind(queries)
    f = rng.normal(size=12)
    product = bound.hessp(f)
    H = np.column_stack([product(e) for e in np.eye(12)])
    solution = f - np.linalg.pinv(H) @ bound.gradient_hessian(f)[0]
    np.testing.assert_allclose(bound.gradient_hessian(solution)[0], 0, atol=1e-12)
    assert bound.value(solution) < bound.value(f)


def test_gbrank_without_tied_term_is_the_squared_hinge():
    rng = np.random.default_rng(11)
    queries, f = Queries.from_sizes(rng.integers(0, 3, 40), [25, 15]), rng.normal(size=40)
    bare, gbrank = PairwiseSquaredHinge().bind(queries), GBRank(lam1=0).bind(queries)
    np.testing.assert_array_equal(gbrank.per_query(f), bare.per_query(f))
    np.testing.assert_array_equal(gbrank.gradient_hessian(f), bare.gradient_hessian(f))


def test_of_one_grade_gbrank_has_the_tied_pairs():
    value, gradient = GBRank(lam1=2.0).bind(Queries.from_sizes([1.0, 1, 0], [2, 1])).value_gradient([3.0, 0, 5])
    np.testing.assert_allclose(value, 2 * 3**2)
    np.testing.assert_allclose(gradient, [12, -12, 0])


def test_a_met_margin_costs_nothing():
    queries = Queries.from_sizes([0, 1, 2, 2], [4])
    assert GBRank().bind(queries).value([-5, -4, -2, -2]) == 0
    assert PairwiseHinge().bind(queries).value([0, 1, 2, 3]) == 0
    assert PairwiseSquaredHinge(targets="linear").bind(queries).value([0, 1, 2, 3]) == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weights": "gains"}, "weights must be one of 'uniform', 'grade', 'gain', 'dcg'"),
        ({"normalize": "query"}, "normalize must be one of 'documents', 'pairs', 'dcg', None"),
        ({"lam1": -1.0}, "lam1 must be finite and >= 0"),
        ({"targets": (1, 0)}, "target table holds .* do not fall"),
        ({"targets": "x"}, 'targets must be "exp2"'),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        GBRank(**parameters)


@pytest.mark.parametrize(("weights", "normalize"), [("gain", "documents"), ("dcg", "documents"), ("uniform", "dcg")])
def test_a_label_set_makes_shards_agree(weights, normalize):
    whole, shard = Queries.from_sizes([0, 1, 0, 4], [2, 2]), Queries.from_sizes([0, 1], [2])
    loss = PairwiseLogistic(weights=weights, normalize=normalize)
    expected = loss.bind(whole).per_query(np.array([0.3, -0.1, 0.2, 0.5]))[0]
    found = [each.bind(shard).per_query(np.array([0.3, -0.1]))[0] for each in (loss.with_grades((0, 1, 4)), loss)]
    assert found[0] == pytest.approx(expected)
    assert found[1] != pytest.approx(expected)
