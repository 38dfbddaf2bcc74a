"""IntervalRank against a QP solver, the conditions for a minimum, its differences, and the paper's barrier."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostlist import Queries
from boostlist.losses import IntervalRank
from boostlist.losses.compiled import Lists
from boostlist.losses.interval_solver import X, room_for, solve, stand
from tests.losses.references import interval_rank as reference
from tests.losses.test_registry import dense, smooth_lists

PRICES = (0.0, 0.1, 1.0, 7.0)
GAP_PRICES = (*PRICES, np.inf)


def hard_list(rng, most_grades=6, longest=12):
    """Return labels and scores: grades absent, one document to a grade, ties, one grade, scores of every size."""
    labels = rng.choice(rng.permutation(most_grades)[: rng.integers(1, most_grades + 1)], rng.integers(1, longest + 1))
    n = len(labels)
    scores = [
        rng.normal(0, rng.choice([0.01, 1, 30]), n),
        rng.integers(-3, 4, n),
        np.full(n, rng.normal()),
        rng.uniform(-1e4, 1e4, n),
        labels * rng.choice([-1, 0.5, 1, 7]),
        labels + rng.normal(size=n),
        np.round(rng.normal(size=n), 1),
    ][rng.integers(7)]
    return labels.astype(float), scores.astype(float)


def theorem_5(loss, f, y, barrier=None):
    """Minimise theorem 5 as it stands, with slacks; or with the logarithmic barrier of algorithm 2 for its constraints.

    Return the minimum and the shifts delta. Constraints whose slack has no price are void. Of the last constraint the
    print has -eps inside the logarithm where the theorem has +eps.
    """
    grades = sorted(set(y))
    G = len(grades)
    t = np.array([reference.target(loss, grade) for grade in grades])
    # In units of the size of the list the solver's tolerances mean the same for every list.
    size = 1.0 if barrier else max(np.ptp(f) + np.ptp(t), 1.0)
    f, t = np.array(f) / size, t / size
    lower, upper = cp.Variable(G), cp.Variable(G)
    member = np.array([grades.index(label) for label in y])
    objective = (cp.sum_squares(cp.pos(lower[member] - f)) + cp.sum_squares(cp.pos(f - upper[member]))) / 2
    slacks = [upper - lower]
    if loss.lam1 > 0 and G > 1:
        hard = np.isinf(loss.lam1)
        eps = 0 if hard else cp.Variable(G - 1)
        objective += 0 if hard else loss.lam1 / 2 * cp.sum_squares(eps)
        slacks.append(lower[1:] - upper[:-1] - np.diff(t) + eps)
    if loss.lam2 > 0:
        xi = cp.Variable(G)
        objective += loss.lam2 / 2 * cp.sum_squares(xi)
        slacks.append(lower + xi - upper)
    if barrier is None:
        problem = cp.Problem(cp.Minimize(objective), [slack >= 0 for slack in slacks])
    else:
        problem = cp.Problem(cp.Minimize(objective - sum(cp.sum(cp.log(slack)) for slack in slacks) / barrier))
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.OPTIMAL
    shifts = f - np.clip(f, lower.value[member], upper.value[member])
    return objective.value * size**2, shifts * size


def minimise(loss, f, y):
    """Return l and u as the solver has them, relative to the score that comes first in its order."""
    queries = Queries.from_sizes(y, [len(y)])
    tables, levels = loss.tables(queries), queries.levels
    room = room_for(Lists(np.arange(1), queries.start, queries.weight, len(y)), levels)
    grades = len(levels.label)
    x = room.node[solve(0, grades, tables, stand(f, 0, grades, tables, room), room)[0] + X]
    t = np.array([reference.target(loss, label) for label in levels.label], dtype=float)
    return levels, room.f, t, x[::2], x[1::2]


def kkt_residual(loss, f, y):
    """Return the largest violation of the conditions for a minimum, over the size of scores and targets."""
    levels, scores, t, lower, upper = minimise(loss, f, y)
    gap = np.diff(t) - (lower[1:] - upper[:-1])
    hard = np.isinf(loss.lam1)
    press = 0 * gap if hard else loss.lam1 * np.maximum(gap, 0)
    press_up, press_down = np.append(0, press), np.append(press, 0)
    size = max(np.ptp(scores) + np.ptp(t), 1e-300)
    worst = max(np.max(lower - upper), np.max(gap, initial=0.0) if hard else 0.0)
    pushed = 0.0
    for g, (begin, end) in enumerate(zip(levels.document[:-1], levels.document[1:], strict=True)):
        mine = scores[begin:end]
        slope_l = np.maximum(lower[g] - mine, 0).sum() - press_up[g] - loss.lam2 * (upper[g] - lower[g])
        slope_u = -np.maximum(mine - upper[g], 0).sum() + press_down[g] + loss.lam2 * (upper[g] - lower[g])
        # Where a bound is met its force takes what has come together below it up to 0, and hands it on.
        for slope, met in (
            (slope_l, lower[g] >= upper[g]),
            (slope_u, hard and g < len(gap) and gap[g] > -1e-13 * size),
        ):
            pushed += slope
            worst = max(worst, pushed if met else abs(pushed))
            pushed = pushed if met else 0.0
    return worst / size


def test_is_the_minimum_of_theorem_5():
    rng = np.random.default_rng(0)
    one_grade = ties = absent = 0
    for _ in range(220):
        loss = IntervalRank(
            lam1=rng.choice(GAP_PRICES),
            lam2=rng.choice(PRICES),
            targets=("exp2", "linear", (0, 0.5, 3, 7, 10, 10))[rng.integers(3)],
        )
        y, f = hard_list(rng)
        one_grade += len(set(y)) == 1
        absent += len(set(y)) < max(y) + 1
        ties += len(set(zip(y, f, strict=True))) < len(y)
        minimum, gradient = theorem_5(loss, f, list(y))
        value, ours = loss.bind(Queries.from_sizes(y, [len(y)])).value_gradient(f)
        scale = max(np.ptp(f) + max(reference.target(loss, label) for label in y), 1)
        # The tolerance of the QP solver; a gap of that size leaves its square root for the shifts.
        assert abs(value - minimum) < 2e-8 * scale**2
        np.testing.assert_allclose(ours, gradient, atol=2e-4 * scale)
    assert min(one_grade, ties, absent) >= 10


def test_conditions_for_a_minimum_hold_to_rounding_error():
    rng = np.random.default_rng(1)
    for _ in range(1500):
        loss = IntervalRank(lam1=rng.choice((*GAP_PRICES, 1e3)), lam2=rng.choice((*PRICES, 1e3)), targets="linear")
        y, f = hard_list(rng, longest=40)
        assert kkt_residual(loss, f, y) < 1e-11


@given(seed=st.integers(0, 2**32 - 1), lam1=st.sampled_from(GAP_PRICES), lam2=st.sampled_from(PRICES))
def test_many_grades(seed, lam1, lam2):
    rng = np.random.default_rng(seed)
    y, f = hard_list(rng, most_grades=200, longest=400)
    assert kkt_residual(IntervalRank(lam1=lam1, lam2=lam2, targets="linear"), f, y) < 1e-10


def test_long_ripples_end():
    # Two hundred grades pressed together by a high price: gaps open one by one from the end.
    y = np.repeat(np.arange(200.0), 2)
    for f in (7.0 * y, -7.0 * y, np.zeros(400)):
        for lam1 in (1e3, np.inf):
            assert kkt_residual(IntervalRank(lam1=lam1, targets="linear"), f, y) < 1e-10


@pytest.mark.parametrize(
    "loss", [IntervalRank(), IntervalRank(lam1=0.5, lam2=0.2, lam3=0.1, targets="linear")], ids=repr
)
def test_derivatives_are_those_of_the_quadratic_program(loss):
    rng = np.random.default_rng(2)
    h = 2e-3
    for _ in range(10):
        queries, f = smooth_lists(reference.CASES[0], rng)
        for fq, y in zip(*(np.split(a, queries.start[1:-1]) for a in (f, queries.labels)), strict=True):
            if reference.kink_distance(loss, list(fq), list(y)) < 2 * h:
                continue

            def minimum(step, fq=fq, y=y):
                return reference.value(loss, list(fq + step), list(y), None)

            gradient, diag = loss.bind(Queries.from_sizes(y, [len(y)])).gradient_hessian(fq)
            steps = h * np.eye(len(fq))
            first = [(minimum(e) - minimum(-e)) / (2 * h) for e in steps]
            second = [(minimum(e) - 2 * minimum(0) + minimum(-e)) / h**2 for e in steps]
            np.testing.assert_allclose(gradient, first, atol=1e-8)
            np.testing.assert_allclose(diag, second, atol=1e-6)


def test_the_papers_barrier_approximates_it():
    rng = np.random.default_rng(3)
    loss = IntervalRank(targets=(0, 0.5, 3, 7, 10))
    for _ in range(8):
        y = np.append(np.arange(4), rng.integers(0, 4, 8)).astype(float)
        f = rng.normal(0, 2, 12)
        value, gradient = loss.bind(Queries.from_sizes(y, [12])).value_gradient(f)
        previous = np.inf
        for mu in (1, 64, 10_000):  # algorithm 2 ends with 64
            barrier, shifts = theorem_5(loss, f, list(y), barrier=mu)
            # Each of the 3 G - 1 constraints costs at most 1 / mu, and the shifts follow as the square root.
            assert -1e-6 <= barrier - value <= 11 / mu
            error = np.linalg.norm(shifts - gradient)
            assert error <= np.sqrt(2 * 11 / mu) + 1e-4
            assert error < previous
            previous = error
            if mu >= 64:
                assert shifts @ gradient > 0.9999 * np.linalg.norm(shifts) * np.linalg.norm(gradient)
        assert previous < 0.02


def test_hessian_lies_between_zero_and_one():
    rng = np.random.default_rng(4)
    for _ in range(100):
        y, f = hard_list(rng)
        loss = IntervalRank(lam1=rng.choice(GAP_PRICES), lam2=rng.choice(PRICES))
        bound = loss.bind(Queries.from_sizes(y, [len(y)]))
        hessian = dense(bound.hessp(f), len(f))
        values = np.linalg.eigvalsh((hessian + hessian.T) / 2)
        assert values.min() > -1e-9
        assert values.max() < 1 + 1e-9
        np.testing.assert_allclose(bound.gradient_hessian(f)[1], np.diag(hessian), atol=1e-9)


def test_first_round_of_boosting_has_curvature_everywhere():
    # At equal scores all grades are pressed together, and every document is outside its interval.
    y = np.array([0.0, 0, 0, 1, 1, 2, 2, 2, 4])
    gradient, diag = IntervalRank().bind(Queries.from_sizes(y, [9])).gradient_hessian(np.zeros(9))
    assert (np.sign(gradient[[0, -1]]) == [1, -1]).all()
    assert (diag > 0.2).all()


def test_scores_that_keep_their_distances_cost_nothing_but_width():
    y = np.array([0.0, 0, 1, 1, 2])
    bound = IntervalRank(lam2=0.0).bind(Queries.from_sizes(y, [5]))
    f = np.array([-0.5, 0.0, 1.0, 1.3, 3.4])
    np.testing.assert_array_equal(bound.per_query(f), 0)
    np.testing.assert_array_equal(bound.gradient_hessian(f), 0)


def test_documents_at_the_end_of_their_interval_have_no_curvature():
    gradient, diag = IntervalRank().bind(Queries.from_sizes([1.0, 1, 1], [3])).gradient_hessian([0.1, 0.1, 0.1])
    np.testing.assert_array_equal(gradient, 0)
    np.testing.assert_array_equal(diag, 0)


def test_two_documents_by_hand():
    # One grade, scores 0 and 3: l and u balance (l - 0) = lam2 (u - l) = (3 - u), so l = 1, u = 2 for lam2 = 1.
    bound = IntervalRank().bind(Queries.from_sizes([1.0, 1.0], [2]))
    value, gradient = bound.value_gradient([0.0, 3.0])
    np.testing.assert_allclose(value, 1.5)
    np.testing.assert_allclose(gradient, [-1, 1])
    # Each end holds on by 1 + 1/2.
    np.testing.assert_allclose(bound.gradient_hessian([0.0, 3.0])[1], 1 / 3)


@pytest.mark.parametrize(
    ("name", "price"),
    [(name, price) for name in ("lam1", "lam2", "lam3") for price in (-1.0, np.nan, "1")] + [("lam2", np.inf)],
)
def test_prices_are_checked(name, price):
    with pytest.raises(ValueError, match=f"{name} must be .*>= 0"):
        IntervalRank(**{name: price})


def test_choices_are_checked():
    with pytest.raises(ValueError, match='targets must be "exp2"'):
        IntervalRank(targets="x")
    with pytest.raises(ValueError, match="a target table"):
        IntervalRank(targets=(1, 0))
    with pytest.raises(ValueError, match="label 3 has no entry"):
        IntervalRank(targets=(0, 1, 2)).bind(Queries.from_sizes([3.0], [1]))
