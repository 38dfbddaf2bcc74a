"""Samples of whole queries, and extra_trees."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest

from boostlist import boosters
from boostlist.losses import CsListMLE, ListMLE
from tests.boosters.rankers import TEST, TRAIN, UNTRAINED, both_hosts, fitted, ranker

QUERIES = TRAIN.queries
FIRST = QUERIES.start[:-1]


def seen(share, seed=0, scores=None, weight=None):
    """Return gradient and Hessian of one round, and which queries it saw."""
    objective = ListMLE().objective(subsample_queries=share, seed=seed)
    queries = QUERIES if weight is None else QUERIES.with_weight(weight)
    g, h = objective.bind(queries)(np.zeros(QUERIES.n_documents) if scores is None else scores)
    return g, h, np.add.reduceat(h, FIRST) > 0


def test_a_round_sees_whole_queries_and_nothing_of_others():
    g, h, queries = seen(0.3)
    whole_g, whole_h = ListMLE().objective().bind(QUERIES)(np.zeros(QUERIES.n_documents))
    assert queries.sum() == 30
    assert seen(0.305)[2].sum() == 31
    rows = np.repeat(queries, QUERIES.sizes)
    np.testing.assert_array_equal(g, np.where(rows, whole_g, 0))
    np.testing.assert_array_equal(h, np.where(rows, whole_h, 0))


def test_the_sample_is_a_pure_function_of_seed_and_scores():
    scores = np.random.default_rng(0).normal(size=QUERIES.n_documents)
    nudged = scores.copy()
    nudged[-1] = np.nextafter(nudged[-1], 9)
    samples = [seen(0.5, seed, f)[2] for seed, f in ((0, scores), (0, scores.copy()), (1, scores), (0, nudged))]
    np.testing.assert_array_equal(samples[0], samples[1])
    assert not np.array_equal(samples[0], samples[2])
    assert not np.array_equal(samples[0], samples[3])


def test_every_query_has_its_turn():
    rng = np.random.default_rng(0)
    counts = sum(seen(0.5, 0, rng.normal(size=QUERIES.n_documents))[2].astype(int) for _ in range(200))
    assert counts.min() > 60
    assert counts.max() < 140


def test_queries_of_weight_0_stay_out():
    weight = np.ones(QUERIES.n_queries)
    weight[:50] = 0
    assert not seen(0.9, weight=weight)[2][:50].any()


@both_hosts
def test_tree_ranker_samples_queries(backend):
    scores = {
        (share, seed): fitted(backend, subsample_queries=share, random_state=seed).predict(TEST.X)
        for share, seed in ((1.0, 0), (0.5, 0), (0.5, 1))
    }
    assert len({tuple(values) for values in scores.values()}) == 3
    again = fitted(backend, subsample_queries=0.5, random_state=1)
    np.testing.assert_array_equal(again.predict(TEST.X), scores[0.5, 1])
    assert (again.objective_.subsample_queries, again.objective_.seed) == (0.5, 1)
    model = fitted(backend, subsample_queries=0.5, min_child_weight=5, n_estimators=30)
    assert model.score(TEST.X, TEST.y, TEST.qid) > UNTRAINED + 0.2


@both_hosts
def test_continued_training_draws_what_a_longer_one_does(backend):
    """The sample depends on nothing but scores and seed, so a training in two parts sees the same queries."""
    half = fitted(backend, subsample_queries=0.5, n_estimators=6)
    both = ranker(backend, subsample_queries=0.5, n_estimators=6).fit(TRAIN.X, TRAIN.y, TRAIN.qid, init_model=half)
    whole = fitted(backend, subsample_queries=0.5, n_estimators=12)
    np.testing.assert_allclose(both.predict(TEST.X), whole.predict(TEST.X), atol=1e-4)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, np.nan])
def test_shares_that_are_none(share):
    with pytest.raises(ValueError, match="subsample_queries must be above 0 and at most 1"):
        ranker(subsample_queries=share).fit(TRAIN.X, TRAIN.y, TRAIN.qid)


def test_host_objectives_take_no_samples_of_ours():
    with pytest.raises(ValueError, match=r"is for losses of boostlist, not for lambdarank; .*bagging_by_query=True"):
        fitted(objective="lambdarank", subsample_queries=0.5)


def test_objectives_given_with_their_own_sample_keep_it():
    objective = CsListMLE().objective(subsample_queries=0.5, seed=3)
    assert isinstance(objective, boosters.Objective)
    kept = fitted(objective=objective).objective_
    assert (kept.subsample_queries, kept.seed) == (0.5, 3)


def test_extra_trees_is_lightgbms():
    model, plain = fitted(extra_trees=None, random_state=2), fitted(random_state=2)
    assert not np.array_equal(model.predict(TEST.X), plain.predict(TEST.X))
    assert "[extra_trees: 1]" in model.booster_.model_to_string()
    assert "[extra_trees: 0]" in plain.booster_.model_to_string()
    assert "[extra_trees: 0]" in fitted(objective="lambdarank", extra_trees=None).booster_.model_to_string()
    with pytest.raises(ValueError, match='XGBoost has no extra_trees: use backend="lightgbm"'):
        fitted("xgboost", extra_trees=True)
    fitted("xgboost", extra_trees=None, n_estimators=1)


@pytest.mark.parametrize(("share", "freq"), [(0.5, 1), (1.0, 0)])
def test_subsample_bags_documents_each_round(share, freq):
    text = fitted(subsample=share).booster_.model_to_string()
    assert f"[bagging_freq: {freq}]" in text
    assert f"[bagging_fraction: {share:g}]" in text
    # The seed decides which: without a frequency it would change nothing.
    a, b = (fitted(subsample=share, random_state=seed).predict(TEST.X) for seed in (1, 2))
    assert np.array_equal(a, b) == (share == 1)
    assert isinstance(fitted(subsample=share).booster_, lgb.Booster)
