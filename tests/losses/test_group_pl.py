"""GroupPL: what groups of one document, one group and equal scores come to, and the bound on the curvature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import GroupPL, WeightedPL
from tests.losses.references.group_pl import CASES
from tests.losses.test_registry import difference, random_lists

every_aggregation = pytest.mark.parametrize("loss", CASES, ids=repr)


@every_aggregation
def test_groups_of_one_document_are_documents(loss):
    rng = np.random.default_rng(0)
    queries, f = Queries.from_sizes(rng.permutation(12), [5, 7], [2.0, 0.5]), rng.normal(size=12)
    stages = WeightedPL(weights=loss.weights, gain=loss.gain, grades=tuple(range(12)))
    ours, theirs = replace(loss, grades=stages.grades).bind(queries), stages.bind(queries)
    np.testing.assert_allclose(ours.per_query(f), theirs.per_query(f), rtol=1e-13)
    np.testing.assert_allclose(ours.gradient_hessian(f), theirs.gradient_hessian(f), rtol=1e-12, atol=1e-15)


@every_aggregation
def test_one_group_has_nothing_to_be_ranked_against(loss):
    bound = loss.bind(Queries.from_sizes([2.0, 2, 2], [3]))
    f = np.array([1.0, -1, 0.5])
    np.testing.assert_allclose(bound.value(f), 0, atol=1e-15)
    np.testing.assert_allclose(bound.gradient_hessian(f)[0], 0, atol=1e-15)


@pytest.mark.parametrize("aggregation", ["min", "max", "mean", "logmeanexp"])
def test_equal_scores_share_equally(aggregation):
    loss = GroupPL(aggregation=aggregation)
    gradient, _ = loss.bind(Queries.from_sizes([0.0, 0, 0, 1], [4])).gradient_hessian(np.zeros(4))
    # Two groups of score 0: half a push, which the three documents of the lower group share.
    np.testing.assert_allclose(gradient, [1 / 6, 1 / 6, 1 / 6, -1 / 2])


def test_only_extreme_documents_are_pushed():
    queries, f = Queries.from_sizes([0.0, 0, 0, 1, 1], [5]), np.array([0.0, 3, 3, 1, 2])
    np.testing.assert_array_equal(
        GroupPL(aggregation="max").bind(queries).gradient_hessian(f)[0] != 0, [False, True, True, False, True]
    )
    np.testing.assert_array_equal(
        GroupPL(aggregation="min").bind(queries).gradient_hessian(f)[0] != 0, [True, False, False, True, False]
    )


def test_log_mean_exp_bounds_the_exact_diagonal():
    rng = np.random.default_rng(1)
    negative = 0
    for _ in range(30):
        queries, f = random_lists(rng)
        bound = GroupPL(aggregation="logmeanexp").bind(queries)
        exact = np.diag(difference(lambda x, bound=bound: bound.value_gradient(x)[1], f, queries, 1e-3))
        assert (bound.gradient_hessian(f)[1] >= exact - 1e-8).all()
        negative += (exact < -1e-3).any()
    assert negative > 0


def test_choices_are_checked():
    with pytest.raises(ValueError, match="aggregation must be one of 'min', 'max', 'mean', 'logmeanexp'"):
        GroupPL(aggregation="median")
