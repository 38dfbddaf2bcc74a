"""RankCosineRanker: the loss by its definition, stage by stage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from boostlist import RankCosineRanker
from tests.models.data import lists


def cosine_loss(f, y, qid, weight=None):
    """Eq. 11, query by query."""
    total = 0.0
    for q in np.unique(qid):
        g, h = y[qid == q], f[qid == q]
        if g.any():
            cosine = g @ h / np.linalg.norm(g) / np.linalg.norm(h) if h.any() else 0.0
            total += 0.5 * (1 - cosine) * (1.0 if weight is None else weight[q])
    return total


def scaled(X):
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def stage_losses(ranker):
    return [iteration.loss for iteration in ranker.convergence_.iterations]


@given(seed=st.integers(0, 10_000), stages=st.integers(1, 12), features=st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_the_record_is_the_loss_and_never_rises(seed, stages, features):
    X, y, qid = lists(seed, sizes=(6, 2, 1, 9, 5), features=features)
    ranker = RankCosineRanker(n_stages=stages).fit(X, y, qid=qid)
    losses = stage_losses(ranker)
    assert losses[-1] == pytest.approx(cosine_loss(ranker.predict(X), y, qid), rel=1e-9, abs=1e-12)
    assert np.all(np.diff(losses) < 0)
    h = scaled(X)
    by_hand = np.zeros(len(y))
    for stage, alpha, loss in zip(ranker.stages_, ranker.alphas_, losses[1:], strict=True):
        by_hand += alpha * h[:, stage]
        assert loss == pytest.approx(cosine_loss(by_hand, y, qid), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_every_stage_takes_the_best_feature_and_step(seed):
    X, y, qid = lists(seed, sizes=(6, 8, 9, 5))
    ranker = RankCosineRanker(n_stages=4).fit(X, y, qid=qid)
    h, H = scaled(X), np.zeros(len(y))
    for stage, (k, alpha) in enumerate(zip(ranker.stages_, ranker.alphas_, strict=True)):
        reached = cosine_loss(H + alpha * h[:, k], y, qid)
        if stage == 0:
            assert abs(alpha) == 1
            best = min(cosine_loss(sign * h[:, j], y, qid) for j in range(4) for sign in (1, -1))
        else:
            size = np.linalg.norm(H)
            best = min(
                minimize_scalar(
                    lambda t, j=j, H=H: cosine_loss(H + t * h[:, j], y, qid), bounds=b, method="bounded"
                ).fun
                for j in range(4)
                for b in ((-size, 0), (0, size), (-0.1 * size, 0.1 * size))
            )
        assert reached <= best + 1e-6
        H = H + alpha * h[:, k]


def test_weights_constant_features_and_queries_without_relevant_documents():
    X, y, qid = lists()
    y[qid == 2] = 0
    weight = np.array([1.0, 3.0, 1.0, 0.5, 0.0, 2.0])
    ranker = RankCosineRanker(n_stages=10).fit(np.column_stack([X, np.ones(len(y))]), y, qid=qid, sample_weight=weight)
    assert 4 not in ranker.stages_
    scores = ranker.predict(np.column_stack([X, np.ones(len(y))]))
    assert stage_losses(ranker)[-1] == pytest.approx(cosine_loss(scores, y, qid, weight))


def test_errors_and_an_early_end():
    X, y, qid = lists()
    with pytest.raises(ValueError, match="n_stages must be a whole number of at least 1"):
        RankCosineRanker(n_stages=0).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="no document is relevant"):
        RankCosineRanker().fit(X, 0 * y, qid=qid)
    ranker = RankCosineRanker(n_stages=50).fit(y[:, None], y, qid=qid)
    assert ranker.n_iter_ == 1
    assert ranker.convergence_.message == "no feature lowers the loss any further"
