"""ListNet and MulticlassLogistic: targets, shares without exponent, digits at extreme scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import log_expit, log_softmax, softmax

from boostlist import Queries
from boostlist.losses import ListNet, Mapped, MulticlassLogistic

LABELS = np.array([0.0, 2, 1, 2])


@pytest.mark.parametrize(
    ("loss", "target"),
    [
        (ListNet(), softmax(LABELS)),
        (ListNet(target="gain"), [0, 3 / 7, 1 / 7, 3 / 7]),
        (ListNet(target="gain", gain="linear"), [0, 0.4, 0.2, 0.4]),
        (MulticlassLogistic(), [0, 0.5, 0, 0.5]),
    ],
    ids=repr,
)
def test_the_minimum_is_at_the_target(loss, target):
    bound = loss.bind(Queries.from_sizes(LABELS, [4]))
    with np.errstate(divide="ignore"):
        f = np.maximum(np.log(target), -50)
    np.testing.assert_allclose(bound.gradient_hessian(f)[0], 0, atol=1e-14)


def test_a_query_without_gain_contributes_nothing():
    bound = ListNet(target="gain").bind(Queries.from_sizes([0.0, 0, 1, 0], [2, 2]))
    f = np.array([1.0, 2, 3, 4])
    gradient, diag = bound.gradient_hessian(f)
    assert bound.per_query(f)[0] == 0
    np.testing.assert_array_equal([gradient[:2], diag[:2], bound.hessp(f)(f)[:2]], 0)
    assert (diag[2:] > 0).all()


def test_large_labels_do_not_overflow():
    for loss in (ListNet(), ListNet(target="gain"), ListNet(target="gain", gain="linear"), MulticlassLogistic()):
        bound = loss.bind(Queries.from_sizes([900.0, 899, 0], [3]))
        assert np.isfinite(bound.value(np.zeros(3)))
        np.testing.assert_allclose(bound.gradient_hessian(np.zeros(3))[0].sum(), 0, atol=1e-15)


def test_extreme_scores_keep_their_digits():
    f = np.array([0.0, -800, -801, 1e4])
    bound = MulticlassLogistic().bind(Queries.from_sizes([0.0, 1, 0, 0], [4]))
    np.testing.assert_allclose(bound.value(f), -log_softmax(f)[1], rtol=1e-15)
    np.testing.assert_allclose(bound.gradient_hessian(f)[0], [0, -1, 0, 1], atol=1e-300)


def test_choices_are_checked():
    with pytest.raises(ValueError, match="target must be one of 'softmax', 'gain'"):
        ListNet(target="labels")


def permutation_cross_entropy(f, y, phi=np.exp):
    """ListNet over all permutations (eq. 3.12 of Olinto's thesis), for lists of at most 8 documents."""
    total = 0.0
    for order in itertools.permutations(range(len(f))):
        target, log_p = 1.0, 0.0
        for i, document in enumerate(order):
            rest = list(order[i:])
            target *= phi(y[document]) / phi(y[rest]).sum()
            log_p += np.log(phi(f[document])) - np.log(phi(f[rest]).sum())
        total -= target * log_p
    return total


def test_on_pairs_the_first_place_says_all_of_a_permutation():
    y, f = np.array([2.0, 1.0]), np.array([0.3, -0.8])
    pair = Queries.from_sizes(y, [2])
    assert ListNet().bind(pair).value(f) == pytest.approx(permutation_cross_entropy(f, y), rel=1e-12)
    # A map of the scores; the target of Mapped stays that of the labels, so compare where phi leaves them alone.
    mapped = Mapped(ListNet(), phi="log_sigmoid").bind(pair).value(f)
    assert mapped == pytest.approx(permutation_cross_entropy(log_expit(f), y), rel=1e-12)


@pytest.mark.parametrize("n", [3, 5])
def test_a_permutation_is_a_first_place_and_a_permutation_of_the_others(n):
    """The loss over permutations is ListNet's plus the mean of that of the lists without their first document."""
    rng = np.random.default_rng(n)
    y, f = rng.integers(0, 3, n).astype(float), rng.normal(size=n)
    first = ListNet().bind(Queries.from_sizes(y, [n])).value(f)
    rest = [permutation_cross_entropy(np.delete(f, i), np.delete(y, i)) for i in range(n)]
    assert permutation_cross_entropy(f, y) == pytest.approx(first + softmax(y) @ rest, rel=1e-12)


def test_first_places_and_permutations_have_the_same_minimum():
    y = np.array([2.0, 0, 1, 2])
    bound = ListNet().bind(Queries.from_sizes(y, [4]))
    np.testing.assert_allclose(bound.gradient_hessian(y)[0], 0, atol=1e-15)
    least, away = permutation_cross_entropy(y, y), y + np.array([0.1, 0.2, -0.1, 0.3])
    assert least < permutation_cross_entropy(away, y)
    assert bound.value(y) < bound.value(away)
