"""Numbers equal Python's float(), rounded to the type, to the last bit."""

import io
import math
import random

import numpy as np
import pytest

from boostlist.datasets import LetorError, load_letor


def texts():
    """Random decimals of all lengths and exponents, and the cases that are hard to round."""
    rng = random.Random(0)
    for _ in range(20_000):
        digits = str(rng.randrange(10 ** rng.randint(1, 25)))
        point = rng.randint(0, len(digits))
        exponent = rng.choice(["", f"e{rng.randint(-30, 30)}", f"E{rng.randint(-345, 290):+d}"])
        yield rng.choice(["", "-", "+"]) + f"{digits[:point]}.{digits[point:]}" + exponent
    for _ in range(5_000):
        yield repr(rng.random() * 10.0 ** rng.randint(-300, 300))
        yield repr(float(np.float32(rng.random())))
    for _ in range(5_000):  # halfway between two neighbours of float64, and one unit of the last digit beside it
        middle = 2 * rng.randrange(2**52, 2**53) + 1
        yield from (str(middle), str(middle * 2), str(middle + 1), str(middle - 1), str(5**18 * middle))
    for power in range(-1080, 1024, 3):
        yield repr(2.0**power)
    yield from ["0", "-0", "0e999999999999", "1e-400", "4.9406564584124654e-324", "2.4703282292062327e-324"]
    yield from ["2.4703282292062328e-324", "2.2250738585072011e-308", "1.7976931348623157e308", "9007199254740993"]
    yield from ["0." + "0" * 400 + "1", "1" + "0" * 300 + "e-300", "." + "9" * 50]


def test_float64_to_the_last_bit():
    numbers = [number for number in texts() if math.isfinite(float(number))]
    text = "".join(f"0 qid:1 1:{number}\n" for number in numbers).encode()
    expected = np.array([float(number) for number in numbers])
    np.testing.assert_array_equal(
        load_letor(io.BytesIO(text), dtype="float64").X[:, 0].view(np.int64), expected.view(np.int64)
    )


def test_float32_is_float64_rounded_once_more():
    numbers = [number for number in texts() if abs(float(number)) < 3e38]
    text = "".join(f"0 qid:1 1:{number}\n" for number in numbers).encode()
    expected = np.array([float(number) for number in numbers]).astype(np.float32)
    np.testing.assert_array_equal(load_letor(io.BytesIO(text)).X[:, 0].view(np.int32), expected.view(np.int32))


def test_labels_are_float64():
    numbers = [number for number in texts() if math.isfinite(float(number))][::7]
    text = "".join(f"{number} qid:1\n" for number in numbers).encode()
    expected = np.array([float(number) for number in numbers])
    np.testing.assert_array_equal(load_letor(io.BytesIO(text)).y.view(np.int64), expected.view(np.int64))


# The middle between the largest float32 and 2^128 rounds to infinity, the float64 below it does not.
@pytest.mark.parametrize(
    ("below", "middle"),
    [
        ("3.4028235677973362e38", "3.4028235677973366e38"),
        ("340282356779733620000000000000000000000", "340282356779733661637539395458142568448"),
    ],
)
def test_largest_float32(below, middle):
    assert load_letor(io.BytesIO(f"0 qid:1 1:{below}\n".encode())).X[0, 0] == np.finfo(np.float32).max
    with pytest.raises(LetorError, match="too large for float32"):
        load_letor(io.BytesIO(f"0 qid:1 1:{middle}\n".encode()))
