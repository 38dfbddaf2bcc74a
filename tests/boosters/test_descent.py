"""Training descends, on data that is hard for the curvature of a loss, in both hosts and at high learning rates."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

from boostlist import Queries, metrics
from boostlist.losses import (
    WUB,
    CsListMLE,
    CsRgList,
    GroupPL,
    ListMLE,
    ListNet,
    MulticlassLogistic,
    Pointwise,
    ReversePL,
    WeightedPL,
    WpLL,
    registry,
)

ROUNDS = 30


def one_relevant(rng):
    """Of 200 documents one is relevant, and a feature tells it."""
    sizes = np.full(12, 200)
    X, y = rng.normal(size=(sizes.sum(), 3)), np.zeros(sizes.sum())
    best = np.cumsum(sizes) - 100
    y[best] = 1
    X[best, 0] += 30
    return X, y, sizes, None


def long_among_short(rng):
    """A long list with fractional labels among short ones."""
    sizes = np.array([800] + [8] * 20)
    X = rng.normal(size=(sizes.sum(), 3))
    y = np.clip(np.round(np.exp(0.5 * X[:, 0] + 0.3 * rng.normal(size=len(X))), 1), 0, 4)
    return X, y, sizes, None


def many_grades(rng):
    """Labels 0 to 20."""
    sizes = np.full(25, 20)
    X = rng.normal(size=(sizes.sum(), 3))
    return X, np.clip(np.round(8 + 4 * (X[:, 0] + 0.5 * rng.normal(size=len(X)))), 0, 20), sizes, None


def tiny(rng):
    """Lists of 1 to 3."""
    sizes = rng.integers(1, 4, 200)
    X = rng.normal(size=(sizes.sum(), 3))
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)), [0, 1, 2]).astype(float), sizes, None


def wild_weights(rng):
    """Query weights from 1e-3 to 1e3."""
    sizes = np.full(30, 15)
    X = rng.normal(size=(sizes.sum(), 3))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)), [0.5, 1.5, 2.5]).astype(float)
    return X, y, sizes, 10 ** rng.uniform(-3, 3, len(sizes))


def outliers(rng):
    """Features with very long tails."""
    sizes = np.full(30, 15)
    X = rng.standard_cauchy(size=(sizes.sum(), 3)) ** 3
    return X, np.digitize(2 * np.tanh(X[:, 0]) + rng.normal(size=len(X)), [0.5, 1.5, 2.5]).astype(float), sizes, None


def all_different(rng):
    """No two labels are equal."""
    sizes = np.full(25, 20)
    X = rng.normal(size=(sizes.sum(), 3))
    return X, np.exp(0.5 * X[:, 0] + 0.3 * rng.normal(size=len(X))), sizes, None


SHAPES = (one_relevant, long_among_short, many_grades, tiny, wild_weights, outliers, all_different)


def data(shape):
    X, y, sizes, weight = shape(np.random.default_rng(3))
    return X, Queries.from_sizes(y, sizes, weight)


def losses_of_rounds(objective, X, queries, host, rate, **params):
    """Return training loss and NDCG at the start and after each round."""
    bound = objective.loss.bind(queries)
    seen = []

    def look(scores):
        seen.append((bound.value(scores), metrics.NDCG(10).mean(scores, queries)))
        return "loss", 0.0

    look(np.zeros(len(X)))
    if host == "lightgbm":
        weight = np.repeat(queries.weight, queries.sizes)
        train = lgb.Dataset(X, queries.labels, group=queries.sizes, weight=weight, params={"verbose": -1})
        params = {
            "objective": objective,
            "learning_rate": rate,
            "num_threads": 1,
            "verbose": -1,
            "metric": "None",
        } | params
        lgb.train(params, train, ROUNDS, valid_sets=[train], feval=lambda f, _: (*look(f), False))
    else:
        train = xgb.DMatrix(X, queries.labels, group=queries.sizes, weight=queries.weight)
        params = {"eta": rate, "nthread": 1, "base_score": 0, "disable_default_eval_metric": True} | params
        xgb.train(
            params, train, ROUNDS, obj=objective, evals=[(train, "train")], custom_metric=lambda f, _: look(f),
            verbose_eval=False,
        )  # fmt: skip
    return np.transpose(seen)


def takes(loss, queries):
    """Whether the loss takes so many grades: one that models each of them has a limit."""
    return not isinstance(loss, WpLL) or len(np.unique(queries.labels)) <= 64


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("name", registry)
def test_training_descends(name, shape):
    X, queries = data(shape)
    objective = registry[name]().objective()
    traits = objective.loss.traits
    if not takes(objective.loss, queries):
        pytest.skip("the loss refuses so many grades")
    for host, rate, params in (
        ("lightgbm", 0.1, {}),
        ("lightgbm", 1.0, {"min_data_in_leaf": 1}),
        ("xgboost", 0.3, {}),
        ("xgboost", 1.0, {}),
    ):
        loss, ndcg = losses_of_rounds(objective, X, queries, host, rate, **params)
        if not traits.conservative:
            assert ndcg[-1] > ndcg[0]
            continue
        assert loss[-1] < loss[0]
        if traits.convex and rate <= 0.3:
            assert (loss[1:] <= 1.05 * loss[:-1] + 1e-3 * (loss[0] - loss[-1])).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("loss", "shape"),
    [
        (CsRgList(), many_grades),
        (WeightedPL(), long_among_short),
        (ListMLE(), tiny),
        (ReversePL(), tiny),
        (GroupPL(), many_grades),
        (GroupPL(aggregation="mean"), many_grades),
        (CsListMLE(weights="grade"), many_grades),
        (ListNet(), many_grades),
        (MulticlassLogistic(), outliers),
        (WpLL(), tiny),
        (WUB(), tiny),
        (WUB(gamma=0.1), tiny),
        (CsRgList() + 1e-6 * Pointwise(), many_grades),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_without_the_bound_it_would_diverge(loss, shape):
    """The shapes above are hard: the same trainings multiply the loss where steps are not bounded."""
    X, queries = data(shape)
    end = {}
    for step in ("auto", np.inf):
        values, _ = losses_of_rounds(loss.objective(step=step), X, queries, "lightgbm", 1.0, min_data_in_leaf=1)
        end[step] = values[-1] / values[0]
    assert end["auto"] < 1 < 5 < end[np.inf]


SOFTMAX = [
    ListMLE(), ListMLE(ties="order"), WeightedPL(), ReversePL(), CsRgList(), CsListMLE(), ListNet(),
    CsListMLE(weights="grade", k=3), MulticlassLogistic(), CsListMLE() + 0.3 * Pointwise(centred=True),
]  # fmt: skip


@pytest.mark.parametrize("loss", SOFTMAX, ids=repr)
def test_every_step_of_a_softmax_loss_descends(loss):
    """The proof in objective.py: from any scores, with any leaves, at rates up to 0.33."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = rng.integers(2, 12, rng.integers(1, 6))
        queries = Queries.from_sizes(rng.integers(0, 4, sizes.sum()), sizes, 10 ** rng.uniform(-1, 1, len(sizes)))
        bound = loss.bind(queries)
        f = rng.normal(size=queries.n_documents) * 10 ** rng.uniform(-1, 1.5)
        g, h = (array.astype(np.float64) for array in loss.objective().bind(queries)(f))
        leaf = rng.integers(0, rng.integers(1, 5), queries.n_documents)
        G, K = np.bincount(leaf, g), np.bincount(leaf, h)
        before, after = bound.value(f), bound.value(f - 0.33 * (G / np.maximum(K, 1e-300))[leaf])
        assert after <= before * (1 + 1e-6)  # gradients are rounded to float32


def test_steps_are_bounded():
    """No leaf of any documents goes further than s, whatever the scores."""
    X, queries = data(wild_weights)
    for step, bound in (("auto", 4), (0.5, 0.5), (20, 20)):
        g, h = CsListMLE().objective(step=step).bind(queries)(40 * X[:, 0])
        assert (np.abs(g) <= bound * h * (1 + 1e-6)).all()
        assert (np.abs(g) > 0.99 * bound * h).any()
    g, h = CsListMLE().objective(step=np.inf).bind(queries)(40 * X[:, 0])
    assert (np.abs(g) > 1000 * h).any()


def test_each_term_of_a_sum_is_bounded_by_its_own():
    _, queries = data(many_grades)
    f = 5 * np.random.default_rng(0).normal(size=queries.n_documents)
    loss = CsListMLE() + 0.3 * Pointwise(targets="linear")
    (g1, h1), (_, h2) = (term.bind(queries).gradient_hessian(f) for _, term in loss.terms)
    _, h = loss.objective(scale=2.0).bind(queries)(f)
    np.testing.assert_allclose(h, 2 * (np.maximum(h1, np.abs(g1) / 4) + 0.3 * h2), rtol=1e-6)
    assert (np.abs(g1) > 4 * h1).any()


UNBOUNDED = {
    "pairwise_quadratic", "pairwise_hinge", "pairwise_squared_hinge", "pairwise_exponential", "pairwise_logistic",
    "gbrank", "isotonic", "pointwise", "interval_rank", "rank_cosine", "smooth_ndcg", "smooth_err", "smooth_mrr",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(UNBOUNDED))
def test_losses_that_aim_at_targets_are_as_they_were(name):
    """A target may be far away: these losses get their own curvature, so that they converge as fast as without."""
    loss = registry[name]()
    assert loss.traits.step == np.inf
    _, queries = data(outliers)
    f = np.random.default_rng(0).normal(size=queries.n_documents)
    gradient, diag = loss.bind(queries).gradient_hessian(f)
    got = loss.objective(scale=1.0).bind(queries)(f)
    np.testing.assert_array_equal(got[0], gradient.astype(np.float32))
    np.testing.assert_array_equal(got[1], np.maximum(diag, 1e-6 * diag.mean()).astype(np.float32))


def test_far_targets_are_reached_in_a_few_rounds():
    """Labels up to 30 at rate 0.5: the bound of other losses would stop each round after 2."""
    X, _, sizes, _ = many_grades(np.random.default_rng(3))
    queries = Queries.from_sizes(np.where(X[:, 0] > 0, 30, 0), sizes)
    free, held = (
        losses_of_rounds(Pointwise(targets="linear").objective(step=step), X, queries, "lightgbm", 0.5)[0]
        for step in ("auto", 4.0)
    )
    assert free[5] < 0.002 * free[0]
    assert held[5] > 0.2 * held[0]


@pytest.mark.parametrize("step", [0, -1, np.nan])
def test_steps_that_are_none(step):
    with pytest.raises(ValueError, match="step must be a number > 0, inf for no bound"):
        CsListMLE().objective(step=step)
