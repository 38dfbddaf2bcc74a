"""RankCosineRanker: the loss by its definition, stage by stage."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix

from boostlist import RankCosineRanker
from boostlist.models import rank_cosine as module
from boostlist.models.rank_cosine import _Candidates, _Products
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
@example(seed=1693, stages=2, features=2)  # the one document of a list scores 0, and counts 1/2 only if just that
def test_the_record_is_the_loss_and_never_rises(seed, stages, features):
    X, y, qid = lists(seed, sizes=(6, 2, 1, 9, 5), features=features)
    ranker = RankCosineRanker(n_stages=stages).fit(X, y, qid=qid)
    losses = stage_losses(ranker)
    assert np.all(np.diff(losses) < 0)
    h = scaled(X)
    by_hand = np.zeros(len(y))
    for stage, alpha, loss in zip(ranker.stages_, ranker.alphas_, losses[1:], strict=True):
        by_hand += alpha * h[:, stage]
        assert loss == pytest.approx(cosine_loss(by_hand, y, qid), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(ranker.predict(X), by_hand, rtol=1e-9, atol=1e-12)


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


PSI = {
    "identity": lambda y: y,
    "exp": np.exp,
    "sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "position": lambda y: np.exp([-1.0 - np.sum(y > each) for each in y]),
    (2.0, 0.5): lambda y: 2 * y + 0.5,
    (1.0, -1.8): lambda y: y - 1.8,
}
PHI = {
    "identity": lambda f: f,
    "exp": lambda f: np.exp(0.5 * f) ** 2,
    "sigmoid": lambda f: 1 / (1 + np.exp(-f)),
    (2.0, 0.5): lambda f: 2 * f + 0.5,
}


@pytest.mark.parametrize(
    ("psi", "phi"), [(psi, "identity") for psi in PSI] + [("identity", phi) for phi in PHI] + [("exp", "exp")]
)
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_maps_of_labels_and_scores(psi, phi, kind, monkeypatch):
    """Eq. 6 by its definition after each stage, and no step of any feature is better."""
    monkeypatch.setattr(module, "_BLOCK_ROWS", 15)
    X, y, qid = lists(2, sizes=(6, 8, 9, 5))
    y[qid == 3] = 0
    weight = np.array([1.0, 2.0, 0.5, 3.0])
    ranker = RankCosineRanker(n_stages=3, psi=psi, phi=phi).fit(kind(X), y, qid=qid, sample_weight=weight)

    def loss(f):
        total = 0.0
        for q in range(4):
            g, u = PSI[psi](y[qid == q]), PHI[phi](f[qid == q])
            if g.any():
                total += weight[q] / 2 * (1 - (g @ u / np.linalg.norm(g) / np.linalg.norm(u) if u.any() else 0.0))
        return total

    h, H = scaled(X), np.zeros(len(y))
    losses = stage_losses(ranker)
    assert losses[0] == pytest.approx(loss(H))
    assert len(losses) == 4
    tried = np.concatenate([-np.logspace(-3, 1, 200), np.logspace(-3, 1, 200)])
    for feature, alpha, reached in zip(ranker.stages_, ranker.alphas_, losses[1:], strict=True):
        best = min(loss(H + step * column) for column in h.T for step in tried)
        H = H + alpha * h[:, feature]
        assert reached == pytest.approx(loss(H), rel=1e-9)
        assert reached <= best + 1e-4
    np.testing.assert_allclose(ranker.predict(kind(X)), H, atol=1e-12)


def test_a_first_stage_against_the_features():
    """Where psi is negative for most documents, the scores that point there are negative too."""
    X, y, qid = lists(2, sizes=(6, 8))
    ranker = RankCosineRanker(n_stages=1, psi=(1.0, -3.0)).fit(X, y, qid=qid)
    assert ranker.alphas_.tolist() == [-1.0]
    assert stage_losses(ranker)[1] < 0.5 < stage_losses(RankCosineRanker(n_stages=1).fit(X, y, qid=qid))[0]


def test_scores_may_be_large_under_exp():
    y = np.array([3.0, 2.0, 1.0, 0.0])
    ranker = RankCosineRanker(phi="exp", psi="exp", n_stages=40).fit(1e6 * y[:, None], y, group=[4])
    assert stage_losses(ranker)[-1] < 1e-12
    assert np.argsort(-ranker.predict(1e6 * y[:, None])).tolist() == [0, 1, 2, 3]


def candidates(seed, sizes, features=3, weight=None):
    """Return scores so far, candidates h, normalised labels g and the five numbers of each query and candidate."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    query = np.repeat(np.arange(len(sizes)), sizes)
    H, h, g = rng.normal(size=n), rng.normal(size=(n, features)), rng.random(n)
    g /= np.sqrt(np.bincount(query, g * g))[query]

    def by_query(*columns):
        return np.array([[a[query == q] @ b[query == q] for a, b in columns] for q in range(len(sizes))])

    numbers = _Products(
        gH=by_query((g, H)),
        HH=by_query((H, H)),
        gh=by_query(*((g, column) for column in h.T)),
        Hh=by_query(*((H, column) for column in h.T)),
        hh=by_query(*((column, column) for column in h.T)),
        weight=np.ones(len(sizes)) if weight is None else np.asarray(weight),
    )
    return H, h, g, query, numbers


def total_loss(f, g, query, weight):
    """Eq. 12, with g of length 1."""
    return sum(
        w / 2 * (1 - g[query == q] @ f[query == q] / np.linalg.norm(f[query == q])) for q, w in enumerate(weight)
    )


@pytest.mark.parametrize("seed", range(4))
def test_for_one_query_the_step_is_eq_13_as_printed(seed):
    H, h, g, _, numbers = candidates(seed, (7,))
    printed = [((g @ H) * (H @ c) - (H @ H) * (g @ c)) / ((H @ c) * (g @ c) - (g @ H) * (c @ c)) for c in h.T]
    is_minimum = np.array([(H @ c) * (g @ c) - (g @ H) * (c @ c) < 0 for c in h.T])
    np.testing.assert_allclose(numbers._fixed_point(), np.where(is_minimum, printed, 0.0), rtol=1e-12)


def test_the_iterated_eq_13_ends_where_the_derivative_vanishes():
    weight = [1.0, 0.5, 3.0, 2.0]
    settled = 0
    for seed in range(20):
        H, h, g, query, numbers = candidates(seed, (6, 9, 5, 8), weight=weight)
        # Near the labels, where the denominators are negative.
        H += 6 * g
        for q in range(4):
            rows = query == q
            numbers.gH[q], numbers.HH[q], numbers.Hh[q] = g[rows] @ H[rows], H[rows] @ H[rows], H[rows] @ h[rows]
        for alpha, column in zip(numbers._fixed_point(), h.T, strict=True):
            loss = [total_loss(H + (alpha + step) * column, g, query, weight) for step in (-1e-4, 0.0, 1e-4)]
            settled += abs(loss[2] - loss[0]) / 2e-4 < 1e-6 and loss[1] <= min(loss)
    assert settled >= 55  # of 60: the iteration need not settle


@pytest.mark.parametrize("seed", range(6))
def test_the_line_search_finds_the_minimum_where_eq_13_has_none(seed):
    weight = [1.0, 0.5, 3.0]
    H, h, g, query, numbers = candidates(seed, (6, 9, 5), weight=weight)
    found = _Candidates.best_steps(numbers)
    for step, column in zip(found, h.T, strict=True):
        size = np.linalg.norm(H) / np.linalg.norm(column)
        tried = size * np.array([0, *(sign * 10.0**e for e in np.arange(-4, 1.1, 0.5) for sign in (-1, 1))])
        reached = total_loss(H + step * column, g, query, weight)
        assert reached <= min(total_loss(H + t * column, g, query, weight) for t in tried) + 1e-8
        if abs(step) < 9.9 * size:
            near = [total_loss(H + (step + d) * column, g, query, weight) for d in (-1e-3, 1e-3)]
            assert reached <= min(near) + 1e-10
    np.testing.assert_allclose(
        numbers.loss(found), [total_loss(H + a * c, g, query, weight) for a, c in zip(found, h.T, strict=True)]
    )


def test_the_better_of_both_steps_is_taken():
    for seed in range(12):
        H, h, g, query, numbers = candidates(seed, (6, 9, 5))
        best, fixed, searched = numbers.best_steps(), numbers._fixed_point(), _Candidates.best_steps(numbers)
        for a, f, s, column in zip(best, fixed, searched, h.T, strict=True):
            losses = {step: total_loss(H + step * column, g, query, np.ones(3)) for step in (a, f, s)}
            assert losses[a] <= min(losses.values()) + 1e-12


def test_the_end_of_all_stages_and_an_interrupt():
    X, y, qid = lists()
    ranker = RankCosineRanker(n_stages=3).fit(X, y, qid=qid)
    assert ranker.convergence_.message == "all 3 stages are done"
    assert ranker.convergence_.converged

    def interrupt(iteration):
        if iteration.number == 2:
            raise KeyboardInterrupt

    cut = RankCosineRanker(n_stages=3, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X, y, qid=qid)
    assert cut.stages_.tolist() == ranker.stages_[:2].tolist()
    np.testing.assert_array_equal(cut.alphas_, ranker.alphas_[:2])
    assert cut.predict(X) == pytest.approx(RankCosineRanker(n_stages=2).fit(X, y, qid=qid).predict(X))


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
    with pytest.raises(ValueError, match="phi must be one of 'identity', 'exp', 'sigmoid'"):
        RankCosineRanker(phi="cube").fit(X, y, qid=qid)
    ranker = RankCosineRanker(n_stages=50).fit(y[:, None], y, qid=qid)
    assert ranker.n_iter_ == 1
    assert ranker.convergence_.message == "no feature lowers the loss any further"
