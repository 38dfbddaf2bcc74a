"""What a grade is worth: values by hand, and the edges of what is taken."""

from __future__ import annotations

import numpy as np
import pytest

from boostlist import Queries, metrics
from boostlist.gains import check_gain, gains
from boostlist.losses import CsListMLE


def test_values():
    labels = np.array([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(gains(labels, "exp2"), [0, 1, 3, 7])
    np.testing.assert_array_equal(gains(labels, "linear"), labels)
    np.testing.assert_array_equal(gains(labels, (0.0, 0.0, 5.0, 9.0)), [0, 0, 5, 9])
    assert gains(np.array([999.9]), "exp2")[0] == 2**999.9


@pytest.mark.parametrize(
    ("label", "gain", "message"),
    [
        (1000.0, "exp2", r'gain="exp2" overflows: 2\^y at label 1000; use gain="linear" or a table'),
        (2.0, (0.0, 1.0), "label 2 has no entry in the gain table"),
        (0.5, (0.0, 1.0), "label 0.5 has no entry in the gain table"),
    ],
)
def test_labels_without_a_gain(label, gain, message):
    with pytest.raises(ValueError, match=message):
        gains(np.array([0.0, label]), gain)


@pytest.mark.parametrize(("bound", "name"), [(CsListMLE(), "CsListMLE"), (metrics.get("ndcg@10"), "ndcg@10")])
def test_the_message_says_whose_gain(bound, name):
    with pytest.raises(ValueError, match=f'^{name}: gain="exp2" overflows'):
        bound.bind(Queries.from_sizes([2000, 1], [2]))


@pytest.mark.parametrize("table", [(), (-0.5, 1.0), (0.0, np.inf), (0.0, np.nan), (1.0, 0.9)])
def test_tables_that_are_none(table):
    with pytest.raises(ValueError, match="a target table holds finite targets >= 0 that do not fall"):
        check_gain(table, "targets")
