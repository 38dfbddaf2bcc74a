"""Sums over all pairs by boxes: against 50-digit arithmetic, and long lists of every loss that uses them."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from boostlist import Queries, parallel, set_threads
from boostlist.losses import WUB, PairwiseLogistic, SmoothERR, SmoothMRR, SmoothNDCG, difference_sums, long_positions
from boostlist.losses.difference_sums import VALUES, lay_out_lists, list_sums, profile
from boostlist.losses.graded_sums import graded_sums
from boostlist.losses.weights import Factors

# Such that no list is too short.
ALWAYS = 1e12


def no_time(n, boxes):
    return 0 * n


@pytest.fixture(params=["whole lists", "lists in shares"])
def shares(request, monkeypatch):
    """Run a test with lists that are gone through as a whole, and again with lists cut into shares for all threads."""
    if request.param == "lists in shares":
        monkeypatch.setattr(difference_sums, "WIDE", 60)
        monkeypatch.setattr(difference_sums, "_BLOCK", 50)
        monkeypatch.setattr(parallel, "_threads", 3)


def exact_functions(u, c):
    """E, E' and E'' as Decimals, in the precision of the context."""
    r = (-abs(u)).exp()
    whole = 1 + 2 * c * r + r * r
    slope = (1 - r * r) / whole
    return abs(u) + whole.ln(), slope if u >= 0 else -slope, 2 * r * (c * (1 + r * r) + 2 * r) / whole**2


def exact_sums(x, w, c):
    with localcontext() as context:
        context.prec = 50
        x, w, c = [Decimal(float(v)) for v in x], [Decimal(float(v)) for v in w], Decimal(c)
        sums = [[Decimal(0)] * len(x) for _ in range(3)]
        for i, xi in enumerate(x):
            for xj, wj in zip(x, w, strict=True):
                for total, value in zip(sums, exact_functions(xi - xj, c), strict=True):
                    total[i] += wj * value
        return np.array([[float(v) for v in row] for row in sums])


def score_sets(rng, n):
    for spread in (1e-3, 1.0, 30.0, 2e4):
        yield f"spread {spread:g}", rng.uniform(0, spread, n)
    yield "clusters", rng.choice([0.0, 3.7, 900.0, 2e4], n) + 1e-6 * rng.normal(size=n)
    yield "ties", rng.integers(0, 4, n).astype(float)
    yield "two points", rng.choice([-1e4, 1e4], n)
    yield "one point", np.full(n, 3.0)


@pytest.mark.parametrize("c", [1.0, 0.25, 0.0])
@pytest.mark.parametrize("tolerance", [1e-12, 1e-6])
def test_sums_keep_the_tolerance(c, tolerance):
    rng = np.random.default_rng(0)
    n = 30
    for name, x in score_sets(rng, n):
        w = rng.normal(size=n)
        rows, out = np.array([[0, n]]), np.zeros((n, 3))
        layout = lay_out_lists(rows, x, profile(c, tolerance), np.array([ALWAYS]), no_time)
        list_sums(layout, w, layout, profile(c, tolerance), VALUES, out)
        error = np.abs(out.T - exact_sums(x, w, c)).max(1) / np.abs(w).sum()
        assert error[0] <= tolerance * (1 + np.ptp(x)), name
        assert error[1:].max() <= tolerance, name


def test_a_looser_tolerance_is_less_work():
    assert profile(1.0, 1e-6).matrix.size < profile(1.0).matrix.size / 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [1e9, 1e308, np.inf])
def test_scores_too_far_apart_are_left_to_the_double_loop(far):
    x, pair = np.array([-far, far, 0.0, 1.0]), np.full(2, ALWAYS)
    layout = lay_out_lists(np.array([[0, 2], [2, 4]]), x, profile(1.0), pair, no_time)
    np.testing.assert_array_equal(layout.found, [False, True])


@pytest.mark.usefixtures("shares")
@pytest.mark.parametrize(("n", "grades"), [(60, 2), (60, 5), (60, 40), (1500, 10**9)])
@pytest.mark.parametrize("spread", [2.0, 200.0])
def test_sums_over_other_grades(n, grades, spread):
    rng = np.random.default_rng(1)
    y = np.sort(rng.integers(0, grades, n))
    y = np.unique(y, return_inverse=True)[1]
    bounds = np.append(np.flatnonzero(np.diff(y, prepend=-1)), n)
    x, w = spread * rng.normal(size=n), rng.normal(size=n)
    A, B = (np.cumsum(rng.random(y[-1] + 1)) for _ in range(2))
    for alpha, beta in ((0.0, 0.0), (0.5, 2.0)):
        V = (alpha + np.abs(A[y][:, None] - A[y])) * (beta + np.abs(B[y][:, None] - B[y])) * w
        d = x[:, None] - x
        K = np.array(
            [
                np.logaddexp(d, 0) + np.logaddexp(-d, 0),
                np.tanh(d / 2),
                0.5 / np.cosh(np.clip(d, -400, 400) / 2) ** 2,
            ]
        )
        scale = np.abs(V).sum(1).max() * (1 + np.ptp(x))
        for first in (0, 1, 2):
            out = np.zeros((2, n, 3 - first))
            ranges, factors = np.array([[0, len(A)]]), Factors(alpha, beta, A, B)
            assert graded_sums(
                ranges, np.full(len(ranges), ALWAYS), x, w, bounds, factors, profile(1.0), first, *out
            ).all()
            for found, part in zip(out, (y[:, None] > y, y[:, None] < y), strict=True):
                expected = (V * part * K[first:]).sum(2).T
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)


def pair_matrices(loss, y, f):
    """Weights of pairs i, j with y_i > y_j, or of all pairs i < j, from the definition of table 9."""
    n = len(y)
    a = 2.0**y - 1
    R = a / (2 * a.max() + 1)
    eta = 1 / np.log1p(1 + (y[:, None] < y).sum(1))
    V = {
        "uniform": np.ones((n, n)),
        "grade": y[:, None] - y,
        "gain": R[:, None] - R,
        "dcg": (R[:, None] - R) * (eta[:, None] - eta),
    }[loss.weights]
    return np.where(y[:, None] > y, V, 0.0), f[:, None] - f


def check(loss, y, f, value, gradient, curvature):
    """Compare with a value, a gradient and a matrix of curvatures by pair, symmetric with zeros on the diagonal."""
    bound = loss.bind(Queries.from_sizes(y, [len(y)]))
    found, slope = bound.value_gradient(f)
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(found, value, rtol=1e-10)
    np.testing.assert_allclose(slope, gradient, rtol=1e-9, atol=1e-11 * scale)
    again, diag = bound.gradient_hessian(f)
    np.testing.assert_allclose(again, slope, rtol=1e-12, atol=1e-13 * scale)
    np.testing.assert_allclose(diag, curvature.sum(1), rtol=1e-9, atol=1e-11 * scale)
    v = np.random.default_rng(2).normal(size=len(y))
    product = curvature.sum(1) * v - curvature @ v
    np.testing.assert_allclose(bound.hessp(f)(v), product, rtol=1e-8, atol=1e-11 * np.abs(product).max())


LENGTHS = {"short": 50, "long": 900}


@pytest.mark.usefixtures("shares")
@pytest.mark.parametrize("weights", ["uniform", "grade", "gain", "dcg"])
@pytest.mark.parametrize("n", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("spread", [1.5, 20.0])
def test_pairwise_logistic(weights, n, spread):
    rng = np.random.default_rng(3)
    y, f = rng.integers(0, 5, n).astype(float), spread * rng.normal(size=n) + 1000
    loss = PairwiseLogistic(weights=weights, normalize=None)
    V, d = pair_matrices(loss, y, f)
    p = 0.5 - 0.5 * np.tanh(d / 2)
    curvature = V * p * (1 - p)
    check(loss, y, f, (V * np.logaddexp(0, -d)).sum(), (V * p).sum(0) - (V * p).sum(1), curvature + curvature.T)


@pytest.mark.usefixtures("shares")
@pytest.mark.parametrize("weights", ["uniform", "grade", "gain", "dcg"])
@pytest.mark.parametrize("n", LENGTHS.values(), ids=LENGTHS)
def test_wub(weights, n):
    rng = np.random.default_rng(4)
    y, f = rng.integers(0, 4, n).astype(float), 2 * rng.normal(size=n)
    loss, gamma = WUB(weights=weights, normalize=None, gamma=0.6), 0.6
    W, d = pair_matrices(loss, y, f)
    W, d = W + W.T, gamma * d
    if weights == "uniform":
        W = 1 - np.eye(n)
    sign, whole = np.sign(y[:, None] - y), 1 + 3 * np.cosh(d)
    value = np.triu(W * (np.log(4 * whole) - sign * d), 1).sum()
    gradient = gamma * (W * (3 * np.sinh(d) / whole - sign)).sum(1)
    check(loss, y, f, value, gradient, gamma**2 * W * 3 * (3 + np.cosh(d)) / whole**2)


@pytest.fixture
def by_groups(monkeypatch):
    """Record how many lists each call took whose documents were compared by groups."""
    lists, grouped_differences = [], long_positions._grouped_differences

    def recorded(layout, *args):
        lists.append(len(layout.rows))
        return grouped_differences(layout, *args)

    monkeypatch.setattr(long_positions, "_grouped_differences", recorded)
    return lists


@pytest.mark.usefixtures("shares")
@pytest.mark.parametrize("loss", [SmoothNDCG(tau=0.5), SmoothNDCG(k=20), SmoothMRR()], ids=repr)
@pytest.mark.parametrize("grouped", [False, True])
def test_soft_positions(loss, grouped, by_groups, monkeypatch):
    monkeypatch.setattr(long_positions, "_PAIR", ALWAYS if grouped else 0.0)
    rng = np.random.default_rng(6)
    n, tau = 2500, loss.tau
    y, f = rng.choice(4, n, p=[0.5, 0.2, 0.1, 0.2]).astype(float), 1.5 * rng.normal(size=n)
    s = 0.5 + 0.5 * np.tanh((f - f[:, None]) / (2 * tau))
    h, w = 0.5 + s.sum(1), s * (1 - s)
    np.fill_diagonal(w, 0)
    if isinstance(loss, SmoothMRR):
        a = (y == 3) / (y == 3).sum()
        value, c, e = 1 - (a / h).sum(), a / h**2, np.zeros(n)
    else:
        a = 2**y - 1
        cut = np.inf if loss.k is None else loss.k + 0.5
        a /= (np.sort(a)[::-1] / np.log2(np.arange(2, n + 2)))[: loss.k].sum()

        def b(h):
            return 1 / np.log2(1 + h) / (1 + (h / cut) ** (4 / tau))

        step = 1e-4 * h
        value, c = 1 - a @ b(h), a * (b(h - step) - b(h + step)) / (2 * step)
        e = a * np.maximum(-(b(h + step) - 2 * b(h) + b(h - step)) / step**2, 0) * (loss.k is not None)
    bound = loss.bind(Queries.from_sizes(y, [n]))
    found, gradient = bound.value_gradient(f)
    np.testing.assert_allclose(found, value, rtol=1e-11)
    expected = (w @ c - c * w.sum(1)) / tau
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    # A bound, and a close one: groups of c are a quarter of an octave wide.
    diag = bound.gradient_hessian(f)[1]
    eS = e * w.sum(1)
    exact = 2 / tau**2 * ((w * np.abs(c[:, None] - c)).sum(1) + w @ eS + eS * w.sum(1))
    assert (diag > exact * (1 - 1e-5)).all()
    assert (diag < 1.2 * exact + 1e-6 * exact.max()).all()
    assert diag.sum() < 1.03 * exact.sum()
    assert set(by_groups) == ({1} if grouped else set())


@pytest.mark.usefixtures("shares")
@pytest.mark.parametrize("tau", [1.0, 0.4])
@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("grades", ["few", "many", "all differ", "too many and too high"])
def test_soft_err(tau, gain, grades):
    rng = np.random.default_rng(7)
    n = 1500
    y, f = rng.choice(4, n, p=[0.7, 0.2, 0.07, 0.03]).astype(float), 2 * rng.normal(size=n)
    if grades != "few":
        y += rng.random(n) if grades == "all differ" else rng.integers(0, 20, n) / (20 if grades == "many" else 1)
        y[rng.random(n) < 0.5] = 0
    a = 2**y - 1 if gain == "exp2" else y
    R = a / (a.max() + 1)
    s = 0.5 + 0.5 * np.tanh((f - f[:, None]) / (2 * tau))
    h, w = 0.5 + s.sum(1), s * (1 - s)
    np.fill_diagonal(w, 0)
    stay = 1 - R * s
    np.fill_diagonal(stay, 1)
    T = R / h * np.exp(np.log(stay).sum(1))
    G = T[:, None] * (1 / h[:, None] + R / stay)
    bound = SmoothERR(tau=tau, gain=gain).bind(Queries.from_sizes(y, [n]))
    value, gradient = bound.value_gradient(f)
    np.testing.assert_allclose(value, 1 - T.sum(), rtol=1e-11)
    own, other = (w * G).sum(1), (w * G).sum(0)
    np.testing.assert_allclose(gradient, (other - own) / tau, rtol=1e-8, atol=1e-10 * np.abs(other).max())
    diag = bound.gradient_hessian(f)[1]
    np.testing.assert_allclose(diag, 2 / tau**2 * (own + other), rtol=1e-8, atol=1e-10 * np.abs(other).max())


@pytest.mark.parametrize("loss", [PairwiseLogistic(), WUB(), SmoothNDCG(k=10), SmoothMRR(), SmoothERR()], ids=repr)
@pytest.mark.parametrize("grades", [4, 10**9])
def test_lists_go_together_that_take_sums_and_loops(loss, grades):
    """Of lists side by side some spread too far for sums; each comes out as it does where all of them do, or none."""
    rng = np.random.default_rng(9)
    sizes = [1300, 1200, 40, 1250, 1400]
    labels, scores = 3 * (rng.integers(0, grades, sum(sizes)) / (grades - 1)), rng.normal(size=sum(sizes))
    apart = np.repeat([True, False, False, True, False], sizes)
    bound = loss.bind(Queries.from_sizes(labels, sizes))
    near, far, both = (
        np.array(bound.gradient_hessian(scores * factor)) for factor in (1.0, 1e5, np.where(apart, 1e5, 1.0))
    )
    np.testing.assert_allclose(both, np.where(apart, far, near), rtol=1e-9, atol=1e-13)
    assert not np.allclose(near, far)


@pytest.mark.parametrize("loss", [PairwiseLogistic(), WUB(), SmoothNDCG(k=10), SmoothMRR(), SmoothERR()], ids=repr)
@pytest.mark.parametrize(
    ("sizes", "spread"), [([2100, 2000, 2200], 12.0), ([10_000, 70_000, 5_000], 1.0)], ids=["far", "one wide"]
)
def test_lists_side_by_side_are_what_each_is_alone(loss, sizes, spread):
    """With boxes beyond reach, other numbers of grades in each list, and one list for all threads."""
    rng = np.random.default_rng(11)
    labels = np.concatenate([3 * rng.integers(0, g, n) / (g - 1) for g, n in zip((2, 4, 20), sizes, strict=True)])
    f, v = spread * rng.normal(size=(2, sum(sizes)))
    loss = loss.with_grades(np.unique(labels))

    def outputs(bound, f, v):
        product = [bound.hessp(f)(v)] if loss.traits.hessp else []
        return bound.value_gradient(f)[0], np.array([*bound.gradient_hessian(f), *product])

    value, together = outputs(loss.bind(Queries.from_sizes(labels, sizes)), f, v)
    cuts = np.cumsum(sizes)[:-1]
    alone = [
        outputs(loss.bind(Queries.from_sizes(y, [len(y)])), *rows)
        for y, *rows in zip(*(np.split(each, cuts) for each in (labels, f, v)), strict=True)
    ]
    expected = np.concatenate([each for _, each in alone], axis=1)
    if isinstance(loss, SmoothERR):  # its nodes are made for the grades of all lists
        np.testing.assert_allclose(together, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    else:
        np.testing.assert_array_equal(together, expected)
    assert value == pytest.approx(sum(each for each, _ in alone), rel=1e-11)


@pytest.mark.parametrize("loss", [SmoothNDCG(), SmoothNDCG(k=10)], ids=repr)
def test_lists_go_together_that_take_groups_and_pairs(loss, by_groups):
    """Documents of positive gain are compared one by one or by groups, in lists side by side as in each alone."""
    rng = np.random.default_rng(10)
    sizes = [900, 2600, 800, 3000]
    labels, scores = rng.integers(0, 4, sum(sizes)).astype(float), rng.normal(size=sum(sizes))
    together = loss.bind(Queries.from_sizes(labels, sizes)).gradient_hessian(scores)
    cuts = np.cumsum(sizes)[:-1]
    for n, y, f, *expected in zip(sizes, *(np.split(x, cuts) for x in (labels, scores, *together)), strict=True):
        alone = loss.bind(Queries.from_sizes(y, [n]))
        np.testing.assert_array_equal(alone.gradient_hessian(f), expected)
    assert by_groups == [2, 1, 1]


@pytest.mark.parametrize("loss", [PairwiseLogistic(), WUB()], ids=repr)
def test_a_list_of_100_000_documents(loss):
    """The sums of a sample of documents, one by one."""
    rng = np.random.default_rng(5)
    n = 100_000
    y, f = rng.integers(0, 3, n).astype(float), rng.normal(size=n)
    bound = loss.bind(Queries.from_sizes(y, [n]))
    gradient, diag = bound.gradient_hessian(f)
    for i in rng.choice(n, 5, replace=False):
        d, sign = f[i] - f, np.sign(y[i] - y)
        if isinstance(loss, WUB):
            slope = 2 * np.sinh(d) / (1 + 2 * np.cosh(d)) - sign
            bend = 2 * (2 + np.cosh(d)) / (1 + 2 * np.cosh(d)) ** 2
            bend[i] = 0
            V = np.ones(n)
        else:
            V = np.abs(2.0 ** y[i] - 2.0**y) / 7
            slope, bend = np.tanh(d / 2) / 2 - sign / 2, 0.25 / np.cosh(d / 2) ** 2
        np.testing.assert_allclose(gradient[i], V @ slope / n, rtol=1e-9)
        np.testing.assert_allclose(diag[i], V @ bend / n, rtol=1e-9)


@pytest.mark.parametrize("loss", [PairwiseLogistic(), WUB(), SmoothNDCG(k=10), SmoothMRR(), SmoothERR()], ids=repr)
@pytest.mark.parametrize(("lists", "n"), [(1, 100_000), (3, 100_000), (60, 1_500)])  # enough with a gain
def test_long_lists_have_the_same_bits_on_any_number_of_threads(loss, lists, n):
    rng = np.random.default_rng(6)
    y, f = rng.integers(0, 4, lists * n).astype(float), rng.normal(size=lists * n)
    bound, found = loss.bind(Queries.from_sizes(y, [n] * lists)), []
    try:
        for threads in (1, 2, 5):
            set_threads(threads)
            found.append(bound.gradient_hessian(f))
    finally:
        set_threads(None)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
