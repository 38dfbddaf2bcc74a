"""Four doubles as one value, against NumPy."""

import numpy as np
import pytest
from numba.core.errors import NumbaError

from boostlist.losses.vectors import dot, load, pack, plus, store, times
from boostlist.parallel import compiled


@compiled
def arithmetic(v, w, x, out):
    store(plus(load(v, 1), times(x, load(w, 3))), out, 2)
    store(pack(v[0], w[0], x, 1.0), out, 6)
    return dot(load(v, 1), load(w, 3))


def test_element_by_element():
    rng = np.random.default_rng(0)
    v, w, x, out = rng.normal(size=5), rng.normal(size=7), 0.7, np.full(12, np.nan)
    p = v[1:] * w[3:]
    assert arithmetic(v, w, x, out) == (p[0] + p[2]) + (p[1] + p[3])
    np.testing.assert_array_equal(out[2:6], v[1:] + x * w[3:])
    np.testing.assert_array_equal(out[6:10], [v[0], w[0], x, 1])
    assert np.isnan(out[[0, 1, 10, 11]]).all()


@compiled
def second_row(matrix, out):
    store(load(matrix[1], 0), out, 0)


def test_rows_of_a_matrix():
    matrix, out = np.arange(12.0).reshape(3, 4), np.zeros(4)
    second_row(matrix, out)
    np.testing.assert_array_equal(out, matrix[1])


@compiled
def first_four(array):
    return dot(load(array, 0), load(array, 0))


@pytest.mark.parametrize(
    "array", [np.ones(4, np.float32), np.ones(4, np.int64), np.ones((4, 2))[:, 0], np.ones((2, 4)), np.ones(8)[::2]]
)
def test_what_is_not_contiguous_doubles_is_refused(array):
    with pytest.raises(NumbaError, match="load"):
        first_four(array)
