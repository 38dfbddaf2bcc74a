from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boostlist import Queries, metrics
from boostlist.losses import CsListMLE


def test_sizes_and_qid_agree():
    labels = [2, 0, 1.5, 40, 0]
    by_sizes = Queries.from_sizes(labels, [3, 2], query_weight=[0.5, 2])
    by_qid = Queries.from_qid(labels, ["b", "b", "b", "a", "a"], query_weight=[0.5, 2])
    for queries in (by_sizes, by_qid):
        np.testing.assert_array_equal(queries.start, [0, 3, 5])
        np.testing.assert_array_equal(queries.labels, labels)
        np.testing.assert_array_equal(queries.weight, [0.5, 2])
        np.testing.assert_array_equal(queries.sizes, [3, 2])
    assert repr(by_sizes) == "Queries(2 queries, 5 documents, labels 0 to 40)"


def test_pandas_and_columns():
    frame = pd.DataFrame({"y": [1, 0, 2], "qid": [5, 5, 9]}, index=[7, 3, 3])
    queries = Queries.from_qid(frame["y"], frame["qid"])
    np.testing.assert_array_equal(queries.start, [0, 2, 3])
    np.testing.assert_array_equal(Queries.from_sizes(frame[["y"]], [3]).labels, [1, 0, 2])


def test_what_was_checked_cannot_change():
    labels = np.array([1.0, 0.0])
    queries = Queries.from_sizes(labels, [2])
    labels[0] = np.nan
    assert queries.labels[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        queries.labels[0] = 5
    with pytest.raises(AttributeError):
        queries.labels = labels


def test_no_queries_at_all():
    queries = Queries.from_sizes([], [])
    assert (queries.n_queries, queries.n_documents) == (0, 0)
    assert Queries.from_qid([], []).n_queries == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Queries.from_sizes([1, np.nan, 0], [1, 2]), r"labels\[1\] is nan \(query 1\).*drop unjudged"),
        (lambda: Queries.from_sizes([1, -1], [2]), r"labels\[1\] is -1.0 \(query 0\); labels must be finite and >= 0"),
        (lambda: Queries.from_sizes([1, np.inf], [2]), r"labels\[1\] is inf"),
        (lambda: Queries.from_sizes(["a"], [1]), "labels must be numbers"),
        (lambda: Queries.from_sizes([[1, 2]], [1]), r"labels must be one-dimensional, got shape \(1, 2\)"),
        (lambda: Queries.from_sizes([1, 2], [1]), "sizes sum to 1 but there are 2 labels.*from_qid"),
        (lambda: Queries.from_sizes([1, 2], [2, 0]), r"sizes\[1\] is 0"),
        (lambda: Queries.from_sizes([1, 2], [3, -1]), r"sizes\[1\] is -1"),
        (lambda: Queries.from_sizes([1, 2], [0.5, 1.5]), r"sizes must be whole numbers: sizes\[0\] is 0.5"),
        (lambda: Queries.from_sizes([1, 2], [1, 1], [1]), "query_weight has 1 entries but there are 2 queries"),
        (lambda: Queries.from_sizes([1, 2], [1, 1], [1, -2]), r"query_weight\[1\] is -2.0"),
        (lambda: Queries.from_sizes([1, 2], [1, 1], [np.nan, 1]), r"query_weight\[0\] is nan"),
        (lambda: Queries.from_qid([1, 2], [1]), "qid has 1 rows but there are 2 labels$"),
        (
            lambda: Queries.from_qid([0, 1, 0, 1, 0], [2, 1, 2]),
            "5 labels; sizes of queries, as these may be, are group",
        ),
        (lambda: Queries.from_qid([1, 2, 3, 4], [4, 7, 7, 4]), "qid 4 reappears at row 3.*argsort"),
        (lambda: Queries.from_qid([1, 2, 3], ["x", "y", "x"]), "qid 'x' reappears at row 2"),
        (lambda: Queries.from_qid([1, 2], ["x", None]), r"qid\[1\] is missing"),
        (lambda: Queries.from_qid([1, 2], [1.0, np.nan]), r"qid\[1\] is missing"),
    ],
)
def test_errors_say_what_where_and_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=8), max_size=6))
def test_levels_sort_and_group_by_grade(lists):
    queries = Queries.from_sizes([y for y_q in lists for y in y_q], [len(y_q) for y_q in lists])
    untied = queries.levels.untied()
    for levels, tied in ((queries.levels, True), (queries.levels.descending(), True), (untied, False)):
        for q, y in enumerate(lists):
            own = range(levels.start[q], levels.start[q + 1])
            documents = [list(levels.order[levels.document[g] : levels.document[g + 1]]) for g in own]
            assert sorted(itertools.chain(*documents)) == list(range(len(y)))
            for g, group in zip(own, documents, strict=True):
                assert {y[i] for i in group} == {levels.label[g]}
                assert len(group) == 1 or tied
            grades = [y[group[0]] for group in documents]
            assert grades == sorted(grades, reverse=levels is not queries.levels and tied)
            if levels is queries.levels:
                assert [levels.position[g] for g in own] == [1 + sum(other > grade for other in y) for grade in grades]
        # Of equal grades, the earlier row ends up above the later one.
    for q, y in enumerate(lists):
        a, b = queries.start[q], queries.start[q + 1]
        assert list(untied.order[a:b][::-1]) == sorted(range(len(y)), key=lambda i: (-y[i], i))


def test_ids_in_the_place_of_sizes_are_told_from_empty_queries():
    with pytest.raises(ValueError, match=r"sizes\[0\] is 0: .* is qid"):
        Queries.from_sizes([1, 0, 2, 0], [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"sizes\[1\] is 0: .* drop queries without any"):
        Queries.from_sizes([1, 0, 2, 0], [3, 0, 1])


@pytest.mark.parametrize("bind", [CsListMLE().bind, metrics.get("ndcg").bind, partial(metrics.get("err").mean, [1, 2])])
def test_labels_alone_are_no_queries(bind):
    with pytest.raises(TypeError, match=r"Queries.from_sizes\(labels, sizes\), not list"):
        bind([1, 0])
