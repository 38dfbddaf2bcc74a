"""Biases of positions in linear and kernel models, further columns of the problem; and scores that models add to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import boostlist
from boostlist import BilinearRanker, KernelRanker, LinearRanker, QuadraticRanker, Queries, RankSVM
from boostlist.losses import CsListMLE, ListNet, PairwiseLogistic
from boostlist.models import RankCosineRanker
from boostlist.models.positioned import PositionedDesign
from boostlist.propensities import by_click
from boostlist.solvers import MatrixDesign

LISTS, SHOWN = 40, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(LISTS * SHOWN, 3))
POSITION = np.concatenate([RNG.permutation(SHOWN) for _ in range(LISTS)])
CLICKS = (RNG.random(len(X)) < 1 / (1 + POSITION) / (1 + np.exp(-2 * X[:, 0]))).astype(float)
SIZES = np.full(LISTS, SHOWN)

pytestmark = pytest.mark.filterwarnings("ignore:the ranker that made this log")  # small logs


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
def test_optimum(solver):
    """A general minimiser of the same function, written out, finds the same weights and biases."""
    model = LinearRanker(CsListMLE(), C=5.0, solver=solver).fit(X, CLICKS, group=SIZES, position=POSITION)
    bound = CsListMLE().bind(Queries.from_sizes(CLICKS, SIZES))

    def penalised(v):
        w, b = v[:3], v[3:]
        value, slope = bound.value_gradient(X @ w + b[POSITION])
        gradient = np.concatenate([X.T @ slope, np.bincount(POSITION, slope)])
        c = 5.0 / LISTS
        return 0.5 * w @ w + 0.0005 * b @ b + c * value, np.concatenate([w, 0.001 * b]) + c * gradient

    best = minimize(penalised, np.zeros(3 + SHOWN), jac=True, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(model.coef_, best.x[:3], atol=1e-4)
    np.testing.assert_allclose(model.position_bias_, best.x[3:], atol=2e-3)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_)
    assert model.position_bias_[0] > 0.5 > model.position_bias_[SHOWN - 1]


def test_design():
    inner = MatrixDesign(X)
    design = PositionedDesign(inner, POSITION, SHOWN)
    whole = design.block(0, len(X))
    np.testing.assert_array_equal(whole, np.hstack([X, np.sqrt(1000) * np.eye(SHOWN)[POSITION]]))
    np.testing.assert_array_equal(design.block(7, 19), whole[7:19])
    w, v = RNG.normal(size=3 + SHOWN), RNG.normal(size=len(X))
    np.testing.assert_allclose(design.scores(w), whole @ w)
    np.testing.assert_allclose(design.back(v), whole.T @ v)
    for j in (1, 5):
        np.testing.assert_array_equal(design.column(j), whole[:, j])


def test_kernel_and_files(tmp_path):
    labels = [("phone", int(p)) for p in POSITION]
    model = KernelRanker(ListNet(target="gain"), C=10.0, n_landmarks=20, random_state=0)
    model.fit(X, CLICKS, group=SIZES, position=labels)
    assert model.position_bias_.idxmax() == ("phone", 0)
    again = boostlist.load(model.save(tmp_path / "model.npz"))
    pd.testing.assert_series_equal(again.position_bias_, model.position_bias_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    naive = model.fit(X, CLICKS, group=SIZES)
    assert naive.position_bias_ is None
    assert boostlist.load(naive.save(tmp_path / "naive.npz")).position_bias_ is None


def test_with_propensities():
    model = LinearRanker(CsListMLE()).fit(
        X, CLICKS, group=SIZES, position=POSITION, propensity=1 / (1 + POSITION), propensity_clip=0.3
    )
    queries, rows = by_click(Queries.from_sizes(CLICKS, SIZES), 1 / (1 + POSITION), 0.3)
    spread = LinearRanker(CsListMLE()).fit(
        X[rows], queries.labels, group=queries.sizes, sample_weight=queries.weight, position=POSITION[rows]
    )
    np.testing.assert_allclose(model.coef_, spread.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.position_bias_, spread.position_bias_, rtol=1e-6)


def test_refused():
    with pytest.raises(ValueError, match="position has 3 entries"):
        LinearRanker().fit(X, CLICKS, group=SIZES, position=[1, 2, 3])
    with pytest.raises(ValueError, match="RankCosineRanker takes no positions"):
        RankCosineRanker().fit(X, CLICKS, group=SIZES, position=POSITION)
    with pytest.raises(ValueError, match="solver='diagonal' takes no positions"):
        LinearRanker(solver="diagonal").fit(X, CLICKS, group=SIZES, position=POSITION)
    assert QuadraticRanker().fit(X, CLICKS, group=SIZES, position=POSITION).position_bias_ is not None


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
def test_scores_that_are_added_to(solver):
    """The optimum is that of a general minimiser, click by click where there are propensities."""
    start, c = RNG.normal(size=len(X)), 5.0 / LISTS
    model = LinearRanker(CsListMLE(), C=5.0, solver=solver).fit(X, CLICKS, group=SIZES, init_score=start)
    bound = CsListMLE().bind(Queries.from_sizes(CLICKS, SIZES))

    def penalised(w):
        value, slope = bound.value_gradient(X @ w + start)
        return 0.5 * w @ w + c * value, w + c * X.T @ slope

    expected = minimize(penalised, np.zeros(3), jac=True, options={"gtol": 1e-10}).x
    np.testing.assert_allclose(model.coef_, expected, atol=1e-6)
    queries, rows = by_click(bound.queries, np.ones(len(X)))
    split = LinearRanker(CsListMLE(), C=5.0).fit(X[rows], queries.labels, group=queries.sizes, init_score=start[rows])
    weighed = LinearRanker(CsListMLE(), C=5.0).fit(X, CLICKS, group=SIZES, init_score=start, propensity=np.ones(len(X)))
    np.testing.assert_allclose(weighed.coef_, split.coef_)


def test_scores_that_are_added_to_by_other_models():
    start = RNG.normal(size=len(X))
    clicks = (start > np.median(start)).astype(float)  # which are all explained
    loss = PairwiseLogistic()
    for model in (KernelRanker(loss), QuadraticRanker(loss), RankSVM(), BilinearRanker(loss, n_query_features=1)):
        size = [np.ptp(model.fit(X, clicks, group=SIZES, init_score=f).predict(X)) for f in (None, 50 * start)]
        assert size[1] < 0.5 * size[0]
    for model in (RankCosineRanker(), RankSVM(loss="hinge"), LinearRanker(solver="diagonal")):
        with pytest.raises(ValueError, match="takes no init_score"):
            model.fit(X, clicks, group=SIZES, init_score=start)
    with pytest.raises(ValueError, match="init_score has 3 entries; give one for each of the 200 rows"):
        LinearRanker().fit(X, clicks, group=SIZES, init_score=[1, 2, 3])
