"""Arithmetic of losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from boostlist import Queries
from boostlist.losses import (
    BoundLoss,
    CsListMLE,
    LambdaLoss,
    Loss,
    PairwiseHinge,
    Pointwise,
    RankCosine,
    SmoothNDCG,
    Sum,
    Traits,
    WpLL,
    YetiRank,
)


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
    with pytest.raises(ValueError, match="it must be finite and > 0"):
        0 * CsListMLE()
    with pytest.raises(ZeroDivisionError):
        CsListMLE() / 0


def test_a_sum_is_written_as_it_is_made():
    assert repr(CsListMLE(k=5) + 0.3 * Pointwise()) == f"{CsListMLE(k=5)!r} + 0.3 * {Pointwise()!r}"


def test_a_label_set_goes_to_the_terms_that_lack_one():
    grades = (0.0, 1.0, 2.0)
    total = CsListMLE() + WpLL() + 2 * WpLL(grades=(0, 1, 2, 3))
    assert total.with_grades(grades) == CsListMLE() + WpLL(grades=grades) + 2 * WpLL(grades=(0, 1, 2, 3))


def test_a_sum_promises_what_all_terms_promise():
    assert (CsListMLE() + WpLL()).traits == Traits(hessp=True, step=4.0, cost="n G")
    assert (CsListMLE() + Pointwise()).traits == Traits(hessp=True, step=4.0, shift_invariant=False)
    assert (PairwiseHinge() + WpLL()).traits == Traits(diag="heuristic", step=16.0, cost="n log n")
    assert (RankCosine() + SmoothNDCG()).traits == Traits(
        diag="majorizer", convex=False, shift_invariant=False, cost="n"
    )
    assert (CsListMLE() + RankCosine()).traits.diag == "heuristic"
    assert (CsListMLE() + LambdaLoss()).traits.conservative is False
    assert (CsListMLE() + LambdaLoss()).traits.sampled is False
    assert (CsListMLE() + YetiRank()).traits.sampled is True


@pytest.mark.parametrize("first", ["n", "n G", "n log n", "n k", "n^2"])
def test_a_sum_costs_as_much_as_its_dearest_term(first):
    terms = {
        "n": CsListMLE(),
        "n G": WpLL(),
        "n log n": PairwiseHinge(),
        "n k": LambdaLoss(),
        "n^2": LambdaLoss(k=None),
    }
    for second, loss in terms.items():
        dearer = max(first, second, key=list(terms).index)
        assert (terms[first] + loss).traits.cost == dearer
    assert (terms[first] + Keeping()).traits.cost == "n!"  # what is not known may be worse


class BoundKeeping(BoundLoss):
    """Squared error that returns its own arrays."""

    def __init__(self, loss, queries):
        super().__init__(loss, queries)
        self.diag = np.ones(queries.n_documents)

    def evaluate(self, f, need):
        return np.add.reduceat(f**2, self.queries.start[:-1]) / 2, f, self.diag


@dataclass(frozen=True, kw_only=True)
class Keeping(Loss):
    traits = Traits(shift_invariant=False, cost="n!")

    def bind(self, queries):
        return BoundKeeping(self, queries)


def test_what_a_term_returned_is_left_as_it_is():
    bound = (2 * Keeping() + Pointwise(targets="linear")).bind(Queries.from_sizes([2.0, 0, 1], [3]))
    f = np.array([0.1, 0.3, -1])
    for _ in range(3):
        gradient, diag = bound.gradient_hessian(f)
        np.testing.assert_array_equal(diag, 3.0)
        np.testing.assert_allclose(gradient, 3 * f - [2, 0, 1])
    np.testing.assert_array_equal(f, [0.1, 0.3, -1])
