"""Arithmetic of losses."""

from __future__ import annotations

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import CsListMLE, Pointwise, Sum


def test_the_sum_of_a_list():
    assert sum([CsListMLE(), Pointwise()]) == CsListMLE() + Pointwise()
    assert sum([CsListMLE()]) == CsListMLE()


def test_division_is_multiplication_by_the_inverse():
    loss = (CsListMLE() + 0.6 * Pointwise()) / 2
    assert loss == Sum.of((0.5, CsListMLE()), (0.3, Pointwise()))
    queries, f = Queries.from_sizes([2.0, 0, 1], [3]), np.array([0.1, 0.3, -1])
    np.testing.assert_allclose((Pointwise() / 4).bind(queries).value(f), Pointwise().bind(queries).value(f) / 4)


@pytest.mark.parametrize(
    "combine",
    [
        lambda loss: loss + 1,
        lambda loss: 1 + loss,
        lambda loss: 0.5 + loss,
        lambda loss: loss * "2",
        lambda loss: loss / loss,
        lambda loss: 2 / loss,
    ],
)
def test_what_makes_no_loss_is_refused(combine):
    with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
        combine(CsListMLE())


def test_factors_are_positive():
    with pytest.raises(ValueError, match=r"the factor of CsListMLE.* is -0.5; it must be finite and > 0"):
        CsListMLE() / -2
    with pytest.raises(ZeroDivisionError):
        CsListMLE() / 0
