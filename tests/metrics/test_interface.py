"""What all metrics promise: names, values of a dataclass, bad input, threads, skipped queries."""

import copy
import pickle

import numpy as np
import pytest

from boostlist import Queries, metrics, set_threads
from boostlist.metrics.names import get_all

NAMES = ["dcg@5", "dcg", "ndcg@10", "ndcg", "avgndcg@10", "avgndcg", "err@5", "err", "p@3", "recall@20", "map", "map@7"]
NAMES += ["mrr", "mrr@10", "kendalltau", "spearmanrho"]


@pytest.mark.parametrize("name", NAMES)
def test_names_go_round(name):
    metric = metrics.get(name)
    assert metric.name == name
    assert metric.higher_is_better
    for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert other == metric
        assert hash(other) == hash(metric)
    with pytest.raises(AttributeError):
        metric.empty = 1


def test_every_metric_is_named():
    assert {name.partition("@")[0] for name in NAMES} == set(metrics.registry)


def test_names_in_any_case():
    assert metrics.get("NDCG@10") == metrics.get("ndcg@10")
    assert metrics.get("KendallTau") == metrics.get("kendalltau")


def test_one_or_several_by_name_or_as_they_are():
    assert get_all("map") == get_all(metrics.get("map")) == [metrics.get("map")]
    assert get_all(("mrr", metrics.NDCG(3))) == [metrics.get("mrr"), metrics.NDCG(3)]
    with pytest.raises(ValueError, match="no metric is given"):
        get_all([])


def test_get_passes_conventions_on():
    assert metrics.get("ndcg@10", gain=[0, 1, 3], empty="skip") == metrics.NDCG(10, gain=(0.0, 1.0, 3.0), empty="skip")
    assert metrics.NDCG(10) != metrics.DCG(10)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", r"there is no metric 'ndgc@10'; did you mean ndcg@10\?"),
        ("zzz", r"there is no metric 'zzz'; known are dcg, ndcg"),
        ("ndcg@", r"the cut-off in 'ndcg@' must be a whole number of at least 1, as in ndcg@10"),
        ("ndcg@0", r"must be a whole number of at least 1"),
        ("ndcg@ten", r"must be a whole number of at least 1"),
        ("p", r"p needs a cut-off, as in p@10"),
        ("kendalltau@5", r"takes no cut-off"),
    ],
)
def test_bad_names(name, message):
    with pytest.raises(ValueError, match=message):
        metrics.get(name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.NDCG(0), "k must be a whole number of at least 1, or None"),
        (lambda: metrics.NDCG(2.5), "k must be a whole number"),
        (lambda: metrics.NDCG(True), "k must be a whole number"),
        (lambda: metrics.Precision(None), "p needs a cut-off k"),
        (lambda: metrics.NDCG(gain="square"), "gain must be"),
        (lambda: metrics.NDCG(gain=[0, -1, 2]), "gain table holds finite gains >= 0"),
        (lambda: metrics.NDCG(discount="ln"), "discount must be one of 'log2', 'letor', got 'ln'"),
        (lambda: metrics.NDCG(ties="random"), "ties must be one of 'stable', 'worst', 'best', 'average', got 'random'"),
        (lambda: metrics.NDCG(empty="one"), "empty must be 0, 1 or \"skip\", got 'one'"),
        (lambda: metrics.NDCG(short="cut"), "short must be one of 'pad', 'zero', got 'cut'"),
        (lambda: metrics.MAP(threshold=0), "threshold must be finite and > 0, got 0"),
        (lambda: metrics.MAP(divisor="k"), "divisor must be"),
        (lambda: metrics.ERR(ties="average"), "ties of ERR must be one of 'stable', 'worst', 'best'"),
        (lambda: metrics.ERR(max_grade=0), "max_grade must lie between 0 and 1000"),
    ],
)
def test_bad_values_of_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_parameters_that_it_has_not():
    with pytest.raises(TypeError, match=r"NDCG: .* 'gian'; did you mean gain\? Its parameters, by name, are k, empty"):
        metrics.get("ndcg@10", gian="linear")


@pytest.mark.parametrize("name", NAMES)
def test_bad_scores(name):
    queries = Queries.from_sizes([1, 0, 2, 0], [2, 2])
    bound = metrics.get(name).bind(queries)
    with pytest.raises(ValueError, match=r"scores\[2\] is nan \(query 1\)"):
        bound.per_query([1.0, 2.0, np.nan, np.nan])
    with pytest.raises(ValueError, match=r"scores have shape \(3,\) but there are 4 documents"):
        bound.mean([1.0, 2.0, 3.0])


def test_bad_labels():
    with pytest.raises(ValueError, match=r"labels\[1\] is 5, above max_grade=4 of err@5"):
        metrics.ERR(5, max_grade=4).bind(Queries.from_sizes([1, 5], [2]))
    with pytest.raises(ValueError, match=r"label 3 has no entry in the gain table"):
        metrics.NDCG(gain=(0, 1, 2)).bind(Queries.from_sizes([1, 3], [2]))


def test_no_mean_where_every_query_is_skipped():
    queries = Queries.from_sizes([0, 0, 1, 0], [2, 2], query_weight=[1, 0])
    with pytest.raises(ValueError, match=r"ndcg@10 has no mean: none of the 2 queries has both"):
        metrics.NDCG(10, empty="skip").mean(np.zeros(4), queries)
    assert metrics.NDCG(10, empty=1).mean(np.zeros(4), queries) == 1


@pytest.mark.parametrize("name", NAMES)
def test_no_queries_at_all(name):
    bound = metrics.get(name).bind(Queries.from_sizes([], []))
    assert bound.per_query([]).shape == (0,)
    with pytest.raises(ValueError, match="has no mean"):
        bound.mean([])


@pytest.mark.parametrize("ties", ["stable", "worst", "average"])
@pytest.mark.parametrize("name", NAMES)
def test_same_bits_whatever_the_threads(name, ties):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 300, 120)
    labels, scores = rng.integers(0, 5, sizes.sum()), rng.integers(0, 50, sizes.sum()) / 7
    queries = Queries.from_sizes(labels, sizes)
    metric = metrics.get(name)
    if hasattr(metric, "ties") and (metric.prefix, ties) != ("err", "average"):
        metric = metrics.get(name, ties=ties)
    try:
        set_threads(1)
        one = metric.per_query(scores, queries)
        set_threads(3)
        three = metric.per_query(scores, queries)
    finally:
        set_threads(None)
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_only_read(name):
    scores = np.array([3, 1, 2, 5], np.float32)
    metrics.get(name).mean(scores, Queries.from_sizes([1, 0, 2, 0], [2, 2]))
    np.testing.assert_array_equal(scores, [3, 1, 2, 5])


def test_a_monotone_change_of_scores_changes_nothing():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 40, 30)
    labels, scores = rng.integers(0, 4, sizes.sum()), rng.normal(size=sizes.sum())
    queries = Queries.from_sizes(labels, sizes)
    for name in NAMES:
        bound = metrics.get(name).bind(queries)
        np.testing.assert_array_equal(bound.per_query(scores), bound.per_query(np.exp(3 * scores) - 100))
