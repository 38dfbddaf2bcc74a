"""Significance tests against published examples, enumeration and closed forms."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boostlist
from boostlist import Queries, metrics
from boostlist.evaluation import significance

# Student's sleep data (1908): extra hours of sleep of ten patients under two drugs.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# Hollander and Wolfe (1973), 27 ff.: depression scale at the first and second visit.
VISIT_1 = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
VISIT_2 = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]


def test_t_test_on_students_sleep_data():
    assert significance.t_test(DRUG_1, DRUG_2) == pytest.approx(0.002833, abs=5e-7)
    assert significance.t_test(DRUG_1, DRUG_2, alternative="less") == pytest.approx(0.002833 / 2, abs=5e-7)


def test_wilcoxon_on_the_depression_scale():
    # V = 40; of the 2^9 sign patterns, 10 have a rank sum of 40 or more.
    assert significance.wilcoxon(VISIT_1, VISIT_2, alternative="greater") == pytest.approx(10 / 512)
    assert significance.wilcoxon(VISIT_1, VISIT_2) == pytest.approx(20 / 512)


def test_wilcoxon_drops_queries_without_difference():
    more = [0.5, 0.5, 1.0]
    assert significance.wilcoxon(VISIT_1 + more, VISIT_2 + more) == significance.wilcoxon(VISIT_1, VISIT_2)


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_randomization_of_few_queries_tries_every_swap(alternative):
    d = np.subtract(VISIT_1, VISIT_2)
    means = np.array([np.mean(d * signs) for signs in itertools.product([1, -1], repeat=len(d))])
    greater, less = np.mean(means >= d.mean() - 1e-12), np.mean(means <= d.mean() + 1e-12)
    expected = {"greater": greater, "less": less, "two-sided": min(2 * min(greater, less), 1)}[alternative]
    assert significance.randomization(VISIT_1, VISIT_2, alternative=alternative) == pytest.approx(expected)


def test_the_number_of_swaps_bounds_the_p_value():
    a = np.linspace(0.5, 0.9, 30)
    assert significance.randomization(a, a - 0.1, alternative="greater", resamples=99) == pytest.approx(0.01)


def test_randomization_of_many_queries_samples_swaps():
    rng = np.random.default_rng(1)
    steps = rng.integers(-6, 9, 40)
    # Exact distribution of the sum of randomly signed steps, by convolution.
    chances = {0: 1.0}
    for step in map(int, steps):
        following: dict[int, float] = {}
        for total, chance in chances.items():
            for signed in (step, -step):
                following[total + signed] = following.get(total + signed, 0) + chance / 2
        chances = following
    exact = sum(chance for total, chance in chances.items() if total >= steps.sum())
    b = rng.random(40)
    sampled = significance.randomization(b + steps / 10, b, alternative="greater", resamples=20_000)
    assert 0.001 < exact < 0.2
    assert sampled == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))


def test_seeds():
    rng = np.random.default_rng(2)
    a, b = rng.random(50), rng.random(50)
    for function in (significance.randomization, significance.difference_interval):
        assert function(a, b, seed=1) == function(a, b, seed=1)
        assert function(a, b, seed=1) != function(a, b, seed=2)


def test_the_interval_of_a_mean_is_near_the_normal_one():
    rng = np.random.default_rng(3)
    values = rng.normal(0.5, 0.1, 500)
    low, high = significance.mean_interval(values)
    half = 1.96 * values.std(ddof=1) / math.sqrt(500)
    assert low == pytest.approx(values.mean() - half, abs=0.05 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.05 * half)
    narrow = significance.mean_interval(values, confidence=0.5)
    assert narrow.high - narrow.low == pytest.approx((high - low) * 0.6745 / 1.96, rel=0.05)


def test_the_interval_of_a_difference_is_paired():
    rng = np.random.default_rng(4)
    difficulty = rng.random(200)
    a, b = difficulty + 0.01, difficulty + 0.001 * rng.normal(size=200)
    low, high = significance.difference_interval(a, b)
    assert 0.0095 < low < 0.01 < high < 0.0105


def test_no_difference():
    same = significance.compare([0.5, 0.2, 0.9], [0.5, 0.2, 0.9])
    assert (same.t_test, same.wilcoxon, same.randomization) == (1, 1, 1)
    assert (same.difference, same.low, same.high) == (0, 0, 0)


def test_all_tests_at_once_are_those_one_by_one():
    drawn = {"resamples": 99, "seed": 3}
    found = significance.compare(DRUG_1, DRUG_2, alternative="less", confidence=0.5, **drawn)
    assert found.t_test == significance.t_test(DRUG_1, DRUG_2, alternative="less")
    assert found.wilcoxon == significance.wilcoxon(DRUG_1, DRUG_2, alternative="less")
    assert found.randomization == significance.randomization(DRUG_1, DRUG_2, alternative="less", **drawn)
    assert (found.low, found.high) == significance.difference_interval(DRUG_1, DRUG_2, confidence=0.5, **drawn)


def test_constant_difference():
    a, b = np.array([0.75, 0.5, 1.0]), np.array([0.5, 0.25, 0.75])
    assert significance.t_test(a, b) == 0
    assert significance.t_test(a, b, alternative="greater") == 0
    assert significance.t_test(a, b, alternative="less") == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.999))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values, level):
    rejected = set()
    for step, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        bound = level / (len(p_values) - step)
        if abs(p_values[i] - bound) < 1e-9:  # decided by rounding
            return
        if p_values[i] > bound:
            break
        rejected.add(i)
    assert set(np.flatnonzero(significance.holm(p_values) <= level)) == rejected


def test_holm_by_hand():
    np.testing.assert_allclose(significance.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert significance.holm([]).shape == (0,)
    with pytest.raises(ValueError, match=r"p_values\[1\] is 1.5"):
        significance.holm([0.5, 1.5])


def test_compare_leaves_skipped_queries_out():
    queries = Queries.from_sizes([1, 0, 0, 0, 0, 2, 1, 0], [2, 2, 2, 2])
    metric = metrics.MRR(empty="skip")
    a = metric.per_query([1.0, 0, 0, 0, 0, 1, 1, 0], queries)
    b = metric.per_query([0.0, 1, 0, 0, 0, 1, 1, 0], queries)
    comparison = significance.compare(a, b)
    assert comparison.n_queries == 3
    assert comparison.mean_a == 1
    assert comparison.mean_b == pytest.approx(2.5 / 3)
    assert comparison.difference == pytest.approx(0.5 / 3)


def test_table():
    rng = np.random.default_rng(5)
    base = rng.random(80)
    models = {"base": base, "same": base + 0.001 * rng.normal(size=80), "better": base + 0.05 + 0.1 * rng.random(80)}
    pairs = significance.table(models, resamples=500)
    assert list(zip(pairs["a"], pairs["b"], strict=True)) == [("base", "same"), ("base", "better"), ("same", "better")]
    against = significance.table(pd.DataFrame(models), baseline="base", resamples=500)
    assert list(against["a"]) == ["same", "better"]
    assert set(against["b"]) == {"base"}
    raw = [significance.t_test(models[name], base) for name in against["a"]]
    np.testing.assert_allclose(against["t_test"], [max(raw[0], 2 * raw[1]), 2 * raw[1]])
    assert against["t_test"][1] < 0.001 < against["t_test"][0]
    assert (against["low"] <= against["difference"]).all()
    assert (against["difference"] <= against["high"]).all()
    with pytest.raises(ValueError, match="baseline 'best' is not among the models: base, same, better"):
        significance.table(models, baseline="best")
    with pytest.raises(ValueError, match="nothing to compare"):
        significance.table({"base": base})


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([0.1, 0.2], [0.1, 0.2, 0.3], "a has 2 queries and b 3"),
        ([0.1, np.nan, 0.3], [0.1, 0.2, 0.3], "query 1 has a value in one ranker only"),
        ([0.1, np.inf], [0.1, 0.2], r"a\[1\] is inf"),
        ([0.1, np.nan], [0.1, np.nan], "at least 2 queries, got 1"),
        ([[0.1], [0.2]], [0.1, 0.2], "a must be one-dimensional"),
    ],
)
def test_bad_input(a, b, message):
    with pytest.raises(ValueError, match=message):
        significance.compare(a, b)


def test_it_is_reached_without_an_import_of_its_own():
    code = "import boostlist; print(boostlist.evaluation.significance.holm([0.01, 0.04, 0.03]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0.03 0.06 0.06]\n"
    with pytest.raises(AttributeError, match="has no attribute 'signficance'"):
        _ = boostlist.evaluation.signficance
