"""Biases of positions: the rule, one state a training, both hosts, files and continuations."""

from __future__ import annotations

import threading
import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

import boostlist
from boostlist import Queries, TreeRanker
from boostlist.boosters import PositionBias, plot_position_bias, position_bias
from boostlist.boosters.binding import read_call
from boostlist.boosters.position_bias import Debiased
from boostlist.losses import CsListMLE, ListMLE, PairwiseLogistic, registry
from boostlist.positions import Positions

LISTS, SHOWN = 30, 6
SIZES = np.full(LISTS, SHOWN)
RNG = np.random.default_rng(0)
POSITION = np.concatenate([RNG.permutation(SHOWN) for _ in range(LISTS)])
POSITION[:SHOWN] = np.arange(SHOWN)  # LightGBM numbers positions as they come
X = RNG.normal(size=(LISTS * SHOWN, 4)).astype(np.float32)
CLICKS = (RNG.random(len(X)) < 1 / (1 + POSITION) / (1 + np.exp(-2 * X[:, 0]))).astype(np.float64)
PARAMS = {"verbose": -1, "num_leaves": 4, "min_data_in_leaf": 5, "num_threads": 1, "deterministic": True}

pytestmark = pytest.mark.filterwarnings("ignore:the ranker that made this log")  # small logs


def dataset(**fields):
    return lgb.Dataset(X, CLICKS, group=SIZES, free_raw_data=False, **{"position": POSITION, **fields})


def ranker(backend="lightgbm", **parameters):
    settings = {"objective": "cs_listmle", "n_estimators": 4, "num_leaves": 4, "min_child_weight": 1.0}
    return TreeRanker(backend=backend, **settings | {"extra_trees": False, "n_jobs": 1} | parameters)


def by_hand(bound, rounds, rate, regularization=0.0):
    """Train with an own loop over positions, and return booster and biases."""
    b = np.zeros(SHOWN)
    data = dataset(position=None)
    booster = lgb.Booster({**PARAMS, "learning_rate": rate}, data)

    def gradients(scores, _):
        g, h = bound(scores + b[POSITION])
        for p in range(SHOWN):
            rows = p == POSITION
            n = rows.sum()
            step = -g[rows].sum(dtype=float) - regularization * b[p] * n
            b[p] += rate * step / (abs(h[rows].sum(dtype=float)) + regularization * n + 0.001)
        return g, h

    for _ in range(rounds):
        booster.update(fobj=gradients)
    return booster, b


def test_lgb_train_follows_the_rule():
    rule = PositionBias(regularization=0.2)
    objective = CsListMLE().objective(position_bias=rule)
    data = dataset()
    booster = lgb.train({**PARAMS, "objective": objective, "learning_rate": 0.1}, data, 5)
    expected, b = by_hand(CsListMLE().objective().bind(Queries.from_sizes(CLICKS, SIZES)), 5, 0.1, 0.2)
    np.testing.assert_allclose(position_bias(data), b, rtol=1e-6)
    np.testing.assert_allclose(booster.predict(X), expected.predict(X), rtol=1e-6)
    assert b[0] > 0.1 > b[-1]


def lambdarank(scores):
    """Return gradient and diagonal of LightGBM's lambdarank, pair by pair."""
    g, h = np.zeros(len(scores)), np.zeros(len(scores))
    for first in range(0, len(scores), SHOWN):
        rows = first + np.argsort(-scores[first : first + SHOWN], kind="stable")
        y, s, discount = CLICKS[rows], scores[rows], 1 / np.log2(2 + np.arange(SHOWN))
        best = np.sum(np.sort(y)[::-1] * discount)
        total = 0.0
        for i in range(SHOWN):
            for j in range(SHOWN):
                if y[i] > y[j]:
                    d = s[i] - s[j]
                    delta = abs(discount[i] - discount[j]) / best / (0.01 + abs(d) if s[0] != s[-1] else 1.0)
                    p = 1 / (1 + np.exp(d))
                    g[rows[i]] -= delta * p
                    g[rows[j]] += delta * p
                    h[rows[[i, j]]] += delta * p * (1 - p)
                    total += 2 * delta * p
        if total > 0:
            g[rows] *= np.log2(1 + total) / total
            h[rows] *= np.log2(1 + total) / total
    return g, h


def test_rule_is_lightgbm_s_own():
    params = {**PARAMS, "num_leaves": 2, "learning_rate": 0.3, "lambdarank_position_bias_regularization": 0.05}
    rule = PositionBias(learning_rate=0.3, regularization=0.05)
    debiased = Debiased(lambdarank, Positions.of(POSITION, len(X)), rule)
    ours = lgb.train({**params, "objective": lambda s, _: debiased(s)}, dataset(position=None), 4)
    own = lgb.train({**params, "objective": "lambdarank"}, dataset(), 4)
    plain = lgb.train({**params, "objective": "lambdarank"}, dataset(position=None), 4)
    assert np.abs(own.predict(X) - plain.predict(X)).max() > 0.02
    np.testing.assert_allclose(ours.predict(X), own.predict(X), atol=1e-3)


def test_step_goes_down_the_slope_of_the_loss_in_the_biases():
    bound = ListMLE().bind(Queries.from_sizes(CLICKS, SIZES))
    positions = Positions.of(POSITION, len(X))
    f, b = X[:, 1].astype(float), RNG.normal(size=SHOWN)
    rule = PositionBias(learning_rate=1e-6, start=dict(enumerate(b)))
    objective = ListMLE().objective(1.0, step=np.inf).hold(bound, None)
    debiased = Debiased(objective, positions, rule)
    debiased(f)
    slope = [
        (bound.value(f + (b + d)[POSITION]) - bound.value(f + (b - d)[POSITION])) / 2e-5 for d in 1e-5 * np.eye(SHOWN)
    ]
    _, h = bound.gradient_hessian(f + b[POSITION])
    step = (debiased.path[1] - b) / 1e-6
    np.testing.assert_allclose(step, -np.array(slope) / (np.bincount(POSITION, h) + 0.001), rtol=1e-3)


@pytest.mark.parametrize("name", registry)
def test_every_loss_learns_that_the_top_is_clicked_more(name):
    data = dataset()
    lgb.train({**PARAMS, "objective": registry[name]()}, data, 3)
    bias = position_bias(data)
    assert bias[0] == bias.max() > bias[SHOWN - 1]


def test_trainings_on_one_data_set_do_not_share_biases():
    data = dataset()
    objective = CsListMLE().objective()

    def trained(rounds=4):
        booster = lgb.train({**PARAMS, "objective": objective}, data, rounds)
        return booster.predict(X), position_bias(data)

    scores, bias = trained()
    again, same = trained()
    np.testing.assert_array_equal(scores, again)
    pd.testing.assert_series_equal(bias, same)
    # By hand, without the copy that lgb.train makes of an objective, and in turns.
    boosters = [lgb.Booster(PARAMS, data) for _ in range(2)]
    for _ in range(4):
        for booster in boosters:
            booster.update(fobj=objective)
    for booster in boosters:
        np.testing.assert_array_equal(booster.predict(X), scores)


def test_trainings_in_threads_do_not_share_biases():
    data = dataset(params=PARAMS).construct()  # made for these, or trainings would make it anew
    found = {}

    def train(i):
        found[i] = lgb.train({**PARAMS, "objective": boostlist.objectives.cs_listmle}, data, 6).predict(X)

    threads = [threading.Thread(target=train, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_positions_of_a_subset():
    """LightGBM drops positions from a subset, which is what lgb.cv trains on."""
    rows = np.concatenate([np.arange(6, 12), np.arange(60, 66)])
    subset = dataset().construct().subset(rows).construct()
    np.testing.assert_array_equal(read_call(np.zeros(12), subset, None, None).fields.position, POSITION[rows])


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_tree_ranker(backend):
    rule = PositionBias(learning_rate=0.3, regularization=0.1)
    loss = PairwiseLogistic()
    model = ranker(backend, objective=loss.objective(position_bias=rule), learning_rate=0.1)
    labels = [f"page 1, slot {p}" for p in POSITION]
    model.fit(X, CLICKS, group=SIZES, position=labels)
    bound = loss.objective().bind(Queries.from_sizes(CLICKS, SIZES))
    assert model.position_bias_.index.tolist() == [f"page 1, slot {p}" for p in range(SHOWN)]
    first = ranker(backend, objective=loss.objective(position_bias=rule), learning_rate=0.1, n_estimators=1)
    first.fit(X, CLICKS, group=SIZES, position=labels)
    debiased = Debiased(bound, Positions.of(POSITION, len(X)), rule)
    debiased(np.zeros(len(X)))
    np.testing.assert_allclose(first.position_bias_, debiased.path[1], rtol=1e-5)
    naive = ranker(backend, objective=loss, learning_rate=0.1).fit(X, CLICKS, group=SIZES)
    assert naive.position_bias_ is None
    assert np.abs(naive.predict(X) - model.predict(X)).max() > 1e-3
    frame = pd.DataFrame({"page": 1, "slot": POSITION})
    by_columns = ranker(backend, objective=loss.objective(position_bias=rule), learning_rate=0.1)
    by_columns.fit(X, CLICKS, group=SIZES, position=frame)
    np.testing.assert_array_equal(by_columns.predict(X), model.predict(X))
    assert by_columns.position_bias_.index[0] == (1, 0)


@pytest.mark.parametrize(("backend", "suffix"), [("lightgbm", ".txt"), ("xgboost", ".json")])
def test_saved_and_continued(backend, suffix, tmp_path):
    tuples = list(zip(["a"] * len(X), POSITION.tolist(), strict=True))
    whole = ranker(backend, n_estimators=5).fit(X, CLICKS, group=SIZES, position=tuples)
    part = ranker(backend, n_estimators=3).fit(X, CLICKS, group=SIZES, position=tuples)
    loaded = boostlist.load(part.save(tmp_path / f"model{suffix}"))
    pd.testing.assert_series_equal(loaded.position_bias_, part.position_bias_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        more = ranker(backend, n_estimators=2).fit(X, CLICKS, group=SIZES, position=tuples, init_model=loaded)
    np.testing.assert_allclose(more.predict(X), whole.predict(X), rtol=1e-4)
    np.testing.assert_allclose(more.position_bias_, whole.position_bias_, rtol=1e-4)
    with pytest.warns(UserWarning, match="biases of positions start at 0"):
        ranker(backend).fit(X, CLICKS, group=SIZES, position=tuples, init_model=loaded.booster_)


def test_rule_is_saved(tmp_path):
    rule = PositionBias(learning_rate=0.3, regularization=0.1, start={("a", 1): 0.5})
    model = ranker(objective=CsListMLE().objective(position_bias=rule)).fit(X, CLICKS, group=SIZES, position=POSITION)
    loaded = boostlist.load(model.save(tmp_path / "model.txt"))
    assert loaded.objective.position_bias == rule
    assert loaded.objective_ == model.objective_


def test_continued_in_lgb_train():
    data, rest = dataset(), dataset()
    first = lgb.train({**PARAMS, "objective": CsListMLE()}, data, 3)
    objective = CsListMLE().objective(position_bias=position_bias(data))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lgb.train({**PARAMS, "objective": objective}, rest, 2, init_model=first)
    whole = dataset()
    lgb.train({**PARAMS, "objective": CsListMLE()}, whole, 5)
    np.testing.assert_allclose(position_bias(rest), position_bias(whole), rtol=1e-5)
    with pytest.warns(UserWarning, match="start at 0 again"):
        lgb.train({**PARAMS, "objective": CsListMLE()}, dataset(), 1, init_model=first)


def test_bias_is_that_of_the_best_round():
    model = ranker(n_estimators=30)
    valid = [(X, 1 - CLICKS, np.repeat(np.arange(LISTS), SHOWN))]
    model.fit(X, CLICKS, group=SIZES, position=POSITION, eval_set=valid, early_stopping_rounds=3)
    assert model.n_estimators_ < 27
    short = ranker(n_estimators=model.n_estimators_).fit(X, CLICKS, group=SIZES, position=POSITION)
    pd.testing.assert_series_equal(model.position_bias_, short.position_bias_)


def test_host_objectives():
    own = TreeRanker("lambdarank", n_estimators=3, num_leaves=4, n_jobs=1).fit(
        X, CLICKS, group=SIZES, position=POSITION
    )
    naive = TreeRanker("lambdarank", n_estimators=3, num_leaves=4, n_jobs=1).fit(X, CLICKS, group=SIZES)
    assert np.abs(own.predict(X) - naive.predict(X)).max() > 0.01
    with pytest.raises(ValueError, match="rank_xendcg ignores positions"):
        TreeRanker("rank_xendcg").fit(X, CLICKS, group=SIZES, position=POSITION)
    with pytest.raises(ValueError, match="lambdarank_unbiased"):
        TreeRanker("rank:ndcg", backend="xgboost").fit(X, CLICKS, group=SIZES, position=POSITION)


def test_bad_input():
    with pytest.raises(ValueError, match="position has 5 entries but there are 180 documents"):
        ranker().fit(X, CLICKS, group=SIZES, position=[1, 2, 3, 4, 5])
    for position in (np.where(POSITION == 3, np.nan, POSITION), pd.Series(POSITION).where(POSITION != 3)):
        with pytest.raises(ValueError, match="position is missing in row 3"):
            ranker().fit(X, CLICKS, group=SIZES, position=position)
    with pytest.raises(ValueError, match="position is missing in row 3"):
        Positions.of([("a", p) if p != 3 else ("a", None) for p in POSITION], len(X))
    with pytest.raises(ValueError, match="no loss of boostlist"):
        position_bias(dataset())
    with pytest.raises(TypeError, match="position_bias must be"):
        CsListMLE().objective(position_bias=0.5)
    for wrong in ({"learning_rate": -1}, {"regularization": -1}, {"start": {1: np.inf}}):
        with pytest.raises(ValueError, match=r"must be finite|biases are finite"):
            PositionBias(**wrong)


def test_labels_without_an_order():
    positions = Positions.of([1, "a", 1, (2, "b")], 4)
    assert positions.labels == (1, "a", (2, "b"))
    assert positions.codes.tolist() == [0, 1, 0, 2]


def test_plot():
    pytest.importorskip("matplotlib").use("Agg")
    pytest.importorskip("matplotlib.pyplot").figure()
    model = ranker().fit(X, CLICKS, group=SIZES, position=POSITION)
    axes = plot_position_bias(model)
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(p) for p in range(SHOWN)]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), model.position_bias_)
    with pytest.raises(ValueError, match="without positions"):
        plot_position_bias(ranker().fit(X, CLICKS, group=SIZES))
