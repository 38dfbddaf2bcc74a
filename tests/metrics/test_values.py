"""Every metric against its definition, written out on ranked lists and averaged over all orders of equal scores."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from boostlist import Queries, metrics

TIES = ("stable", "worst", "best", "average")


def orders(labels, scores, ties):
    """All orders of the documents that the rule for ties allows, best rank first."""
    documents = range(len(labels))
    if ties == "stable":
        return [sorted(documents, key=lambda i: (-scores[i], i))]
    if ties == "worst":
        return [sorted(documents, key=lambda i: (-scores[i], labels[i]))]
    if ties == "best":
        return [sorted(documents, key=lambda i: (-scores[i], -labels[i]))]
    runs = [[i for i in documents if scores[i] == s] for s in sorted(set(scores), reverse=True)]
    return [list(itertools.chain(*order)) for order in itertools.product(*map(itertools.permutations, runs))]


def dcg(ranked, k=None, gain=lambda y: 2**y - 1, letor=False):
    total = 0.0
    for r, y in enumerate(ranked[:k], start=1):
        total += gain(y) / (max(1.0, math.log2(r)) if letor else math.log2(r + 1))
    return total


def ndcg(ranked, k=None, **options):
    ideal = dcg(sorted(ranked, reverse=True), k, **options)
    return dcg(ranked, k, **options) / ideal if ideal > 0 else 0.0


def err(ranked, k, max_grade):
    total, going_on = 0.0, 1.0
    for r, y in enumerate(ranked[:k], start=1):
        R = (2**y - 1) / 2**max_grade
        total += going_on * R / r
        going_on *= 1 - R
    return total


def average_precision(ranked, k, threshold=1):
    hits = [y >= threshold for y in ranked]
    precisions = [sum(hits[:r]) / r for r in range(1, len(hits) + 1)]
    return sum(p for p, hit in list(zip(precisions, hits, strict=True))[:k] if hit) / max(sum(hits), 1)


def reciprocal_rank(ranked, k, threshold=1):
    return next((1 / r for r, y in enumerate(ranked[:k], start=1) if y >= threshold), 0.0)


DEFINITIONS = [
    (metrics.DCG(3), lambda y: dcg(y, 3)),
    (metrics.DCG(), dcg),
    (metrics.NDCG(1), lambda y: ndcg(y, 1)),
    (metrics.NDCG(4), lambda y: ndcg(y, 4)),
    (metrics.NDCG(), ndcg),
    (metrics.NDCG(3, gain="linear"), lambda y: ndcg(y, 3, gain=float)),
    (metrics.NDCG(3, gain=[0, 0.5, 3, 7]), lambda y: ndcg(y, 3, gain=[0, 0.5, 3, 7].__getitem__)),
    (metrics.NDCG(4, discount="letor"), lambda y: ndcg(y, 4, letor=True)),
    (metrics.NDCG(4, short="zero"), lambda y: ndcg(y, 4) * (len(y) >= 4)),
    (metrics.AvgNDCG(4), lambda y: sum(ndcg(y, k) for k in range(1, 5)) / 4),
    (metrics.AvgNDCG(4, short="zero"), lambda y: sum(ndcg(y, k) for k in range(1, 5) if k <= len(y)) / 4),
    (metrics.AvgNDCG(4, short="cut"), lambda y: np.mean([ndcg(y, k) for k in range(1, 5) if k <= len(y)])),
    (metrics.AvgNDCG(None), lambda y: np.mean([ndcg(y, k) for k in range(1, len(y) + 1)])),
    (metrics.Precision(3), lambda y: sum(y_r >= 1 for y_r in y[:3]) / 3),
    (metrics.Precision(3, threshold=2), lambda y: sum(y_r >= 2 for y_r in y[:3]) / 3),
    (metrics.Precision(4, short="cut"), lambda y: np.mean([y_r >= 1 for y_r in y[:4]])),
    (metrics.Precision(4, short="zero"), lambda y: sum(y_r >= 1 for y_r in y[:4]) / 4 * (len(y) >= 4)),
    (metrics.Recall(2), lambda y: sum(y_r >= 1 for y_r in y[:2]) / max(sum(y_r >= 1 for y_r in y), 1)),
    (metrics.MAP(), lambda y: average_precision(y, None)),
    (metrics.MAP(threshold=2), lambda y: average_precision(y, None, threshold=2)),
    (metrics.MAP(3), lambda y: average_precision(y, 3)),
    (
        metrics.MAP(3, divisor="reachable"),
        lambda y: average_precision(y, 3) * max(sum(v >= 1 for v in y) / max(min(sum(v >= 1 for v in y), 3), 1), 1),
    ),
    (metrics.MRR(), lambda y: reciprocal_rank(y, None)),
    (metrics.MRR(2, threshold=2), lambda y: reciprocal_rank(y, 2, threshold=2)),
    (metrics.ERR(3, max_grade=3), lambda y: err(y, 3, 3)),
    (metrics.ERR(max_grade=4), lambda y: err(y, None, 4)),
]

lists = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("metric", "definition", "ties"),
    [(*case, ties) for case in DEFINITIONS for ties in TIES if not (ties == "average" and case[0].prefix == "err")],
    ids=lambda value: value if isinstance(value, str) else repr(value) if isinstance(value, metrics.Metric) else "",
)
def test_definition(metric, definition, ties):
    metric = dataclasses.replace(metric, ties=ties)
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 7, 60)
    labels = rng.integers(0, 4, sizes.sum()) * (rng.random(sizes.sum()) < 0.7)
    scores = rng.integers(0, 3, sizes.sum()).astype(float)
    expected = []
    for y, s in zip(*(np.split(x, np.cumsum(sizes)[:-1]) for x in (labels, scores)), strict=True):
        allowed = orders(y.tolist(), s.tolist(), ties)
        expected.append(np.mean([definition([int(y[i]) for i in order]) for order in allowed]))
    queries = Queries.from_sizes(labels, sizes)
    np.testing.assert_allclose(metric.per_query(scores, queries), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("order", ["random", "few", "equal", "ascending", "descending"])
@pytest.mark.parametrize("k", [1, 5, 20, 100, 201, 399, 1000, None])
def test_long_lists_are_ranked_like_a_stable_sort(k, order):
    rng = np.random.default_rng(6)
    sizes = np.array([1, 40, 200, 399, 400, 401, 900])
    n = sizes.sum()
    labels = rng.integers(0, 5, n)
    scores = {
        "random": rng.normal(size=n),
        "few": rng.integers(0, 40, n) / 8,
        "equal": np.zeros(n),
        "ascending": np.arange(n) // 2,
        "descending": -np.arange(n) // 2,
    }[order]
    queries = Queries.from_sizes(labels, sizes)
    expected = []
    for y, s in zip(*(np.split(x, np.cumsum(sizes)[:-1]) for x in (labels, scores)), strict=True):
        expected.append(ndcg([int(v) for v in y[np.argsort(-s, kind="stable")]], k))
    np.testing.assert_allclose(metrics.NDCG(k).per_query(scores, queries), expected, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(lists, min_size=1, max_size=4))
def test_bounds_and_order_of_tie_rules(data):
    labels = [y for query in data for y, _ in query]
    scores = [float(s) for query in data for _, s in query]
    queries = Queries.from_sizes(labels, [len(query) for query in data])
    for metric in (
        metrics.NDCG(3),
        metrics.AvgNDCG(4),
        metrics.Precision(2),
        metrics.Recall(2),
        metrics.MAP(),
        metrics.MRR(),
    ):
        worst, stable, average, best = (
            dataclasses.replace(metric, ties=ties).per_query(scores, queries)
            for ties in ("worst", "stable", "average", "best")
        )
        assert (worst >= 0).all()
        assert (best <= 1 + 1e-12).all()
        for middle in (stable, average):
            assert (worst <= middle + 1e-12).all()
            assert (middle <= best + 1e-12).all()


@settings(max_examples=60, deadline=None)
@given(lists)
def test_the_ideal_order_scores_exactly_one(query):
    labels = [y for y, _ in query] + [2]
    queries = Queries.from_sizes(labels, [len(labels)])
    for metric in (metrics.NDCG(3), metrics.NDCG(), metrics.NDCG(gain="linear", discount="letor"), metrics.MRR()):
        assert metric.mean(labels, queries) == 1.0


def test_err_by_hand():
    # Grades 3, 2, 0 on a scale of 0 to 4: R = 7/16, 3/16, 0.
    queries = Queries.from_sizes([3, 2, 0], [3])
    expected = 7 / 16 + 9 / 16 * 3 / 16 / 2
    assert metrics.ERR(max_grade=4).mean([3.0, 2.0, 1.0], queries) == pytest.approx(expected, abs=1e-15)
    assert metrics.ERR().mean([3.0, 2.0, 1.0], queries) == pytest.approx(7 / 8 + 1 / 8 * 3 / 8 / 2, abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, 10, 70])
def test_rank_correlations_against_scipy(n):
    rng = np.random.default_rng(n)
    for grades in (2, 5, 1000):
        labels, scores = rng.integers(0, grades, n), rng.integers(0, 2 * n, n) / 2
        labels[:2], scores[:2] = (0, 1), (0, 1)
        queries = Queries.from_sizes(np.tile(labels, 2), [n, n])
        f = np.concatenate([scores, -scores])
        tau = stats.somersd(labels, scores).statistic
        rho = stats.spearmanr(labels, scores).statistic
        np.testing.assert_allclose(metrics.KendallTau().per_query(f, queries), [tau, -tau], atol=1e-13)
        np.testing.assert_allclose(metrics.SpearmanRho().per_query(f, queries), [rho, -rho], atol=1e-13)


def test_tau_without_ties_is_kendalls_tau():
    rng = np.random.default_rng(9)
    labels, scores = rng.permutation(200), rng.normal(size=200)
    queries = Queries.from_sizes(labels, [200])
    assert metrics.KendallTau().mean(scores, queries) == pytest.approx(stats.kendalltau(labels, scores).statistic)


def test_rank_correlations_of_constants():
    queries = Queries.from_sizes([0, 1, 2, 1, 1], [3, 2])
    for metric in (metrics.KendallTau(), metrics.SpearmanRho()):
        np.testing.assert_array_equal(metric.per_query(np.zeros(5), queries), [0, np.nan])


@pytest.mark.parametrize(("empty", "expected"), [(0, [1, 0, 1]), (1, [1, 1, 1]), ("skip", [1, np.nan, 1])])
@pytest.mark.parametrize("name", ["ndcg@2", "avgndcg@2", "p@1", "recall@3", "map", "mrr"])
def test_queries_without_relevant_documents(name, empty, expected):
    queries = Queries.from_sizes([1, 0, 0, 0, 0, 2], [2, 2, 2], query_weight=[1, 2, 4])
    bound = metrics.get(name, empty=empty).bind(queries)
    scores = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    np.testing.assert_array_equal(bound.per_query(scores), expected)
    weight = np.where(np.isnan(expected), 0, [1, 2, 4])
    assert bound.mean(scores) == pytest.approx(np.nansum(expected * weight) / weight.sum())
