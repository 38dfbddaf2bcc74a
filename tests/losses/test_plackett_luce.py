from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import CsRgList, ListMLE, ReversePL, WeightedPL
from tests.losses.precise import hard_scores, value_gradient
from tests.losses.references.plackett_luce import left, stage_weight

HARD = [ListMLE(), CsRgList(), WeightedPL(), ReversePL(), ListMLE(ties="order"), CsRgList(ties="efron")]


@pytest.mark.parametrize("loss", HARD, ids=repr)
def test_accuracy_at_extreme_scores(loss):
    rng = np.random.default_rng(0)
    sign = -1 if isinstance(loss, ReversePL) else 1
    for _ in range(10):
        n = int(rng.integers(2, 12))
        y = rng.integers(0, 4, n).astype(float)
        mass = [left(loss, j, list(y)) for j in range(n)]
        weight = [stage_weight(loss, j, y, sorted(set(y))) for j in range(n)]
        bound = loss.bind(Queries.from_sizes(y, [n]))
        for f in hard_scores(rng, y):
            value, gradient = value_gradient(sign * f, weight, mass)
            ours_value, ours = bound.value_gradient(f)
            scale = max(np.abs(gradient))
            np.testing.assert_allclose(ours, sign * np.array(gradient), rtol=0, atol=1e-9 * max(scale, 1e-300))
            np.testing.assert_allclose(ours_value, value, rtol=1e-9, atol=1e-300)


def test_a_grade_far_below_the_maximum_keeps_its_gradient():
    gradient, _ = ListMLE().bind(Queries.from_sizes([3, 2, 1, 0], [4])).gradient_hessian([0, -800, -801, -802])
    stage = math.exp(-1) + math.exp(-2)
    expected = 1 / (1 + stage) - 1  # the second stage, among -800, -801 and -802
    assert gradient[0] == pytest.approx(0, abs=1e-12)
    assert gradient[1] == pytest.approx(expected, rel=1e-12)
    assert gradient[1] == pytest.approx(-0.335, abs=1e-3)


@pytest.mark.parametrize("far", [140.0, 299.0, 800.0])
def test_a_large_weight_keeps_the_curvature_of_a_grade_far_below_the_maximum(far):
    with pytest.warns(UserWarning, match="weighs"):
        bound = CsRgList(pcf=3.0).bind(Queries.from_sizes([111, 110, 0], [3]))
    f = np.array([far, 0, 0])
    quarter = 3.0**110 / 4
    np.testing.assert_allclose(bound.gradient_hessian(f)[1], [0, quarter, quarter], rtol=1e-12, atol=1e-9 * quarter)
    product = bound.hessp(f)(np.array([1.0, 2, 4]))
    np.testing.assert_allclose(product, [0, -2 * quarter, 2 * quarter], rtol=1e-12, atol=1e-9 * quarter)


def test_listmle_by_hand():
    # Scores log 4, log 2, log 1 for the grades 2, 1, 0: stages 4/7, 2/3 and 1/1.
    bound = ListMLE().bind(Queries.from_sizes([2, 1, 0], [3]))
    assert bound.value(np.log([4, 2, 1])) == pytest.approx(math.log(7 / 4) + math.log(3 / 2))


def test_reverse_pl_pulls_the_best_document_up():
    gradient, _ = ReversePL().bind(Queries.from_sizes([2, 1, 0], [3])).gradient_hessian(np.zeros(3))
    assert gradient[0] < 0 < gradient[2]


def test_tied_rows_move_alike_under_breslow_only():
    queries = Queries.from_sizes([1, 1, 0], [3])
    shared, _ = ListMLE().bind(queries).gradient_hessian(np.zeros(3))
    ordered, _ = ListMLE(ties="order").bind(queries).gradient_hessian(np.zeros(3))
    assert shared[0] == shared[1]
    assert ordered[0] == pytest.approx(1 / 3 - 1)
    assert ordered[1] == pytest.approx(1 / 3 + 1 / 2 - 1)


def mean_over_orders(loss, y, f):
    """Return the mean of a loss in row order over all orders of the rows, hence of the tied ones."""
    orders = [list(order) for order in itertools.permutations(range(len(y)))]
    return np.mean([loss.bind(Queries.from_sizes(y[order], [len(y)])).value(f[order]) for order in orders])


@pytest.mark.parametrize("loss_type", [ListMLE, CsRgList, WeightedPL, ReversePL])
def test_efron_is_between_the_mean_over_orders_and_breslow(loss_type):
    y, f = np.array([2.0, 1, 2, 0, 0, 0]), np.array([0.3, -0.5, 1.2, 0.1, -0.9, 0.4])
    queries = Queries.from_sizes(y, [6])
    exact = mean_over_orders(loss_type(ties="order"), y, f)
    efron = loss_type(ties="efron").bind(queries).value(f)
    breslow = loss_type(ties="breslow").bind(queries).value(f)
    assert exact < efron < breslow
    assert efron - exact < 0.25 * (breslow - exact)
    level = np.zeros(6)
    assert loss_type(ties="efron").bind(queries).value(level) == pytest.approx(
        mean_over_orders(loss_type(ties="order"), y, level), rel=1e-12
    )


def test_random_order_is_drawn_once_by_seed():
    y, f = np.array([1.0, 1, 1, 0, 0]), np.array([0.3, -0.5, 1.2, 0.1, -0.9])
    queries = Queries.from_sizes(np.tile(y, 500), [5] * 500)
    loss = WeightedPL(ties="random", seed=1)
    values = loss.bind(queries).per_query(np.tile(f, 500))
    np.testing.assert_array_equal(values, loss.bind(queries).per_query(np.tile(f, 500)))
    possible = [
        WeightedPL(ties="order").bind(Queries.from_sizes(y, [5])).value(f[[*first, *second]])
        for first in itertools.permutations(range(3))
        for second in itertools.permutations((3, 4))
    ]
    nearest = np.abs(np.subtract.outer(values, possible))
    np.testing.assert_allclose(nearest.min(axis=1), 0, atol=1e-12)
    # Each of the 12 orders has its share of the 500 queries: 42, with a deviation of 6.
    assert np.bincount(nearest.argmin(axis=1), minlength=12).min() > 15
    other = WeightedPL(ties="random", seed=2).bind(queries).per_query(np.tile(f, 500))
    assert 300 < (np.abs(values - other) > 1e-9).sum() < 500


def test_label_set_makes_shards_agree():
    whole = Queries.from_sizes([0, 1, 0, 4], [2, 2])
    shard = Queries.from_sizes([0, 1], [2])
    f = np.array([0.3, -0.1, 0.2, 0.5])
    here = WeightedPL(weights="gain", grades=range(5)).bind(shard).per_query(f[:2])
    assert here == WeightedPL(weights="gain").bind(whole).per_query(f)[:1]
    assert here != WeightedPL(weights="gain").bind(shard).per_query(f[:2])
    with pytest.raises(ValueError, match=r"label 4 is not in grades=\(0.0, 1.0\)"):
        WeightedPL(weights="gain", grades=(1, 0)).bind(whole)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CsRgList(pcf=0.5), "pcf must be finite and >= 1"),
        (lambda: ListMLE(ties="exact"), "ties must be one of 'breslow', 'efron', 'order', 'random'"),
        (lambda: ListMLE(ties="random", seed=-1), "seed must be a whole number of at least 0"),
        (lambda: WeightedPL(weights="best"), "weights must be one of 'uniform'"),
        (lambda: WeightedPL(gain="cubic"), 'gain must be "exp2"'),
        (lambda: WeightedPL(gain=(0, 2, 1)), "do not fall"),
        (lambda: WeightedPL(grades=(0, 0, 1)), "distinct"),
        (lambda: WeightedPL(grades=(-1, 0, 1)), "grades must be distinct, finite and >= 0"),
        (lambda: WeightedPL(grades=(0, np.inf)), "grades must be distinct, finite and >= 0"),
        (lambda: WeightedPL(grades=()), "grades must be distinct, finite and >= 0"),
        (lambda: CsRgList(pcf=3).bind(Queries.from_sizes([1000, 0], [2])), "overflows at label 1000"),
        (lambda: WeightedPL(weights="gain").bind(Queries.from_sizes([2000, 0], [2])), 'use gain="linear"'),
        (
            lambda: WeightedPL(weights="gain", gain=(0, 1)).bind(Queries.from_sizes([1.5, 0], [2])),
            "label 1.5 has no entry",
        ),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_without_a_penalty_and_ties_cs_rglist_is_listmle():
    queries = Queries.from_sizes([2, 0, 1, 3], [4])
    f = np.array([0.3, -1, 2, 0.5])
    assert CsRgList(pcf=1).bind(queries).value(f) == pytest.approx(ListMLE().bind(queries).value(f))
