"""Data frames of pandas, polars and pyarrow: the same features, names and queries whatever library holds them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from boostlist import LinearRanker, TreeRanker, metrics
from boostlist.datasets import make_ranking
from boostlist.frames import as_frame, qid_column, to_pandas, without_qid
from boostlist.queries import Queries


def frame():
    """All kinds of columns, some with missing values."""
    return pd.DataFrame(
        {
            "qid": [7, 7, 3],
            "whole": [1, 2, 3],
            "single": np.array([1.5, np.nan, 3], np.float32),
            "nullable": pd.array([1, None, 3], "Int64"),
            "truth": pd.array([True, None, False], "boolean"),
            "fact": [True, False, True],
            "kind": pd.Categorical(["b", None, "a"]),
        }
    )


MAKERS = {
    "pandas": lambda pandas: pandas,
    "arrow-backed pandas": lambda pandas: pa.Table.from_pandas(pandas).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@makers
def test_columns(make):
    given = make(frame())
    assert qid_column(given).tolist() == [7, 7, 3]
    found = without_qid(given)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == ["whole", "single", "nullable", "truth", "fact", "kind"]
    expected = [[1, 2, 3], [1.5, np.nan, 3], [1, np.nan, 3], [1, np.nan, 0], [1, 0, 1]]
    for name, values in zip(found.columns, expected, strict=False):
        assert isinstance(found[name].dtype, np.dtype)
        np.testing.assert_array_equal(found[name].to_numpy(float), values)
    assert found["single"].dtype == np.float32
    assert found["kind"].cat.categories.tolist() == ["a", "b"]
    assert found["kind"].cat.codes.tolist() == [1, -1, 0]


def test_other_columns():
    enum = pl.DataFrame({"a": pl.Series(["x", "z"], dtype=pl.Enum(["z", "y", "x"]))})
    assert without_qid(enum)["a"].cat.categories.tolist() == ["z", "y", "x"]
    number = pa.table({"a": pa.array([1, 2]).cast(pa.decimal128(30, 2))})
    assert without_qid(number)["a"].tolist() == [1.0, 2.0]
    unnamed = pd.DataFrame({0: pd.array([1, None], "Int64"), 1: [2.0, 3.0]})
    np.testing.assert_array_equal(to_pandas(as_frame(unnamed), [0, 1]), [[1, 2], [np.nan, 3]])
    mixed = pd.DataFrame({"a": pd.Series([1, None, True, 2.5], dtype=object)})
    np.testing.assert_array_equal(without_qid(mixed)["a"].to_numpy(np.float64), [1, np.nan, 1, 2.5])
    for bad in (["x", "y"], [1, "x"], [pd.Timestamp("2020-01-01")], [1j]):
        with pytest.raises(ValueError, match=r"column 'a' is .*, not numeric; make it a number or a category"):
            without_qid(pd.DataFrame({"a": bad}))
    with pytest.raises(ValueError, match="X has no features: its columns are qid"):
        without_qid(pd.DataFrame({"qid": [1]}))
    for text in (pl.DataFrame({"a": ["x"]}), pa.table({"a": ["x"]})):
        with pytest.raises(ValueError, match="column 'a' is String, not numeric; make it a number or a category"):
            without_qid(text)
    with pytest.raises(TypeError, match=r"rows of this LazyFrame are not computed yet; call collect\(\)"):
        without_qid(enum.lazy())


def test_what_is_no_frame_stays():
    X = np.ones((2, 2))
    assert without_qid(X) is X
    assert qid_column(X) is None
    plain = pd.DataFrame({"a": [1.0]})
    pd.testing.assert_frame_equal(without_qid(plain), plain)
    assert qid_column(plain) is None


def ranking():
    """Data with missing values, and a category that says more than all else."""
    data = make_ranking(40, docs=10, n_features=10, seed=2)
    table = pd.DataFrame(data.X, columns=[f"f{j}" for j in range(10)])
    table["f3"] = table["f3"].where(table["f3"] > table["f3"].median())
    table["kind"] = pd.Categorical(np.array(["one", "two", "three", "four", "five"])[data.y.astype(int)])
    table.insert(0, "qid", data.qid)
    return table, data


@makers
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees(make, backend):
    table, data = ranking()
    ranker = TreeRanker("cs_listmle", backend=backend, n_estimators=5, random_state=0, min_child_weight=1)
    expected = ranker.fit(table, data.y).predict(table)
    given = make(table)
    found = ranker.fit(given, data.y)
    np.testing.assert_array_equal(found.predict(given), expected)
    assert list(found.feature_names_in_) == [*(f"f{j}" for j in range(10)), "kind"]
    assert found.score(given, data.y) == metrics.NDCG(k=10).mean(expected, data.queries)
    other = make(table.assign(kind=pd.Categorical(["one"] * len(table))))
    assert not np.array_equal(found.predict(other), expected)  # the category counts
    assert found.rank(given)[0] < 10


@makers
def test_linear(make):
    table, data = ranking()
    table = table.drop(columns=["kind", "f3"])
    expected = LinearRanker().fit(table, data.y).coef_
    given = make(table)
    model = LinearRanker().fit(given, data.y)
    np.testing.assert_array_equal(model.coef_, expected)
    assert model.feature_names_in_.tolist() == [f"f{j}" for j in range(10) if j != 3]
    assert model.score(given, data.y) == model.score(table, data.y)


@makers
def test_labels_and_weights_of_any_library(make):
    table = pd.DataFrame({"y": [1, 0, 2], "qid": [1, 1, 2], "weight": [1.0, 2.0, 0.5]})
    given = as_frame(make(table))
    labels, ids = (given[name].to_native() for name in ("y", "qid"))
    queries = Queries.from_qid(labels, ids)
    assert (queries.labels.tolist(), queries.start.tolist()) == ([1, 0, 2], [0, 2, 3])


def test_the_advice_for_scattered_queries_works():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[5, 6, 7])
    y, qid = np.array([1, 2, 0]), np.array([4, 2, 4])
    with pytest.raises(ValueError, match=r'order = np.argsort\(qid, kind="stable"\).* X.iloc\[order\]'):
        LinearRanker().fit(X, y, qid)
    order = np.argsort(qid, kind="stable")
    for rows in (X.iloc[order], X.to_numpy()[order], pl.from_pandas(X)[order]):
        LinearRanker().fit(rows, y[order], qid[order])
