"""The exponential of the loops against NumPy's."""

import numpy as np
import pytest

from boostlist.losses.exponential import exp
from boostlist.parallel import compiled


@compiled
def exponentials(x, out):
    for i in range(x.size):
        out[i] = exp(x[i])


@pytest.mark.parametrize(("low", "high"), [(-700, 700), (-100, 0), (-1, 1), (-1e-8, 1e-8)])
def test_within_three_units_in_the_last_place(low: float, high: float) -> None:
    x = np.concatenate((np.random.default_rng(0).uniform(low, high, 100_000), [low, 0.0, high]))
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=6.7e-16, atol=0)


def test_halfway_between_powers_of_two() -> None:
    k = np.arange(-1000, 1000)
    x = np.concatenate([np.nextafter((k + 0.5) * np.log(2), side) for side in (-np.inf, np.inf)])
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=6.7e-16, atol=0)
