"""Lists with at most m documents of a host, against a list that is filled document by document."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from boostlist import Queries
from boostlist.metrics import DCG, NDCG


def dcg(ranked, hosts, gains, most, k):
    """Fill the list from the top, leaving out documents of a host that has its number."""
    shown, total, rank = {}, 0.0, 0
    for i in ranked:
        shown[hosts[i]] = shown.get(hosts[i], 0) + 1
        if shown[hosts[i]] > most:
            continue
        rank += 1
        if rank <= k:
            total += gains[i] / math.log2(1 + rank)
    return total


@pytest.mark.parametrize("ties", ["stable", "worst", "best"])
def test_by_filling_lists(ties):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 7, 40)
    y, f = rng.integers(0, 3, sizes.sum()), rng.integers(0, 4, sizes.sum())
    hosts = np.array(list("abc"))[rng.integers(0, 3, sizes.sum())]
    queries = Queries.from_sizes(y, sizes)
    for most, k in itertools.product((1, 2), (1, 3, 10)):
        found = NDCG(k, per_host=most, ties=ties).bind(queries, hosts).per_query(f)
        bare = DCG(k, per_host=most, ties=ties).bind(queries, hosts).per_query(f)
        for q, (lo, hi) in enumerate(itertools.pairwise(queries.start)):
            own = range(lo, hi)
            second = {"stable": lambda i: 0, "worst": lambda i: y[i], "best": lambda i: -y[i]}[ties]
            gains = 2.0**y - 1
            value = dcg(sorted(own, key=lambda i: (-f[i], second(i), i)), hosts, gains, most, k)
            ideal = max(dcg(order, hosts, gains, most, k) for order in itertools.permutations(own))
            assert bare[q] == pytest.approx(value)
            assert found[q] == pytest.approx(value / ideal if ideal else 0)


def test_a_limit_that_nothing_reaches_changes_nothing():
    rng = np.random.default_rng(1)
    queries, f = Queries.from_sizes(rng.integers(0, 5, 60), [20, 25, 15], [1.0, 2.0, 0.5]), rng.normal(size=60)
    hosts = rng.integers(0, 9, 60)
    for short in ("pad", "zero"):
        every = NDCG(17, short=short).bind(queries)
        limited = NDCG(17, short=short, per_host=25).bind(queries, hosts)
        np.testing.assert_allclose(limited.per_query(f), every.per_query(f), rtol=1e-13)
        assert limited.mean(f) == pytest.approx(every.mean(f))


def test_a_list_is_as_short_as_its_hosts_make_it():
    queries = Queries.from_sizes([1, 0, 1], [3])
    metric = NDCG(2, short="zero", per_host=1)
    assert metric.bind(queries, ["a", "a", "a"]).mean([3, 2, 1]) == 0
    assert metric.bind(queries, ["a", "a", "b"]).mean([3, 2, 1]) == 1


def test_what_is_refused():
    queries = Queries.from_sizes([1, 0], [2])
    with pytest.raises(ValueError, match=r"needs them: metric.bind\(queries, hosts\)"):
        NDCG(5, per_host=2).mean([1, 0], queries)
    with pytest.raises(ValueError, match="takes no hosts"):
        NDCG(5).bind(queries, ["a", "b"])
    with pytest.raises(ValueError, match=r"hosts have shape \(3,\) but there are 2 documents"):
        NDCG(5, per_host=2).bind(queries, ["a", "b", "c"])
    with pytest.raises(ValueError, match="per_host must be a whole number"):
        NDCG(5, per_host=0)
    with pytest.raises(ValueError, match="per_host needs an order of equal scores"):
        NDCG(5, per_host=2, ties="average")
