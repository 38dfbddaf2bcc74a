"""Labels too large for targets of 2^y - 1 and weights of pcf^y."""

from __future__ import annotations

import warnings

import lightgbm as lgb
import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import (
    CsListMLE,
    CsRgList,
    GBRank,
    IntervalRank,
    Isotonic,
    PairwiseSquaredHinge,
    Pointwise,
    registry,
)

AIMING = [GBRank, PairwiseSquaredHinge, IntervalRank, Isotonic, Pointwise]


def lists(largest):
    return Queries.from_sizes([largest, 0, 1, 2], [2, 2])


@pytest.mark.parametrize("loss_type", AIMING)
def test_targets_beyond_float32_are_warned_of(loss_type):
    message = rf'{loss_type.__name__} with targets="exp2" .* largest label 200.*targets="linear"'
    with pytest.warns(UserWarning, match=message) as caught:
        loss_type().bind(lists(200.0))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_type().bind(lists(31.0))
        loss_type(targets="linear").bind(lists(200.0))
        loss_type(targets=(0, 1, 2, *range(3, 201))).bind(lists(200.0))


def test_weights_that_leave_nothing_to_lower_grades_are_warned_of():
    with pytest.warns(UserWarning, match=r"CsRgList .* largest label 200 .* Lower pcf to 1.2 or less") as caught:
        CsRgList(pcf=3).bind(lists(200.0))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CsRgList(pcf=3).bind(lists(31.0))
        CsRgList().bind(lists(200.0))
        CsRgList(pcf=1.2).bind(lists(200.0))


@pytest.mark.parametrize("name", [name for name, loss in registry.items() if loss not in AIMING])
def test_other_losses_take_labels_of_any_size(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient, _ = registry[name]()(np.array([200.0, 0, 1, 2]), np.zeros(4), None, np.array([2, 2]))
    assert gradient.any()


def test_the_warning_points_to_the_line_that_trains():
    X, y = np.arange(80.0)[:, None], np.arange(80.0)
    data = lgb.Dataset(X, y, group=[40, 40], params={"verbose": -1})
    with pytest.warns(UserWarning, match="Pointwise with targets") as caught:
        lgb.train({"objective": CsListMLE() + Pointwise(), "verbose": -1}, data, 2)
    assert [w.filename for w in caught if "targets" in str(w.message)] == [__file__]


@pytest.mark.parametrize("loss", [loss_type(targets="linear") for loss_type in AIMING] + [CsRgList()], ids=repr)
def test_the_remedies_learn(loss):
    X, y = np.repeat(np.arange(100.0), 2)[:, None], np.repeat(2 * np.arange(100.0), 2) + 2
    data = lgb.Dataset(X, y, group=[200], params={"verbose": -1})
    scores = lgb.train({"objective": loss, "verbose": -1, "num_threads": 1}, data, 10).predict(X)
    assert np.corrcoef(scores, y)[0, 1] > 0.5
