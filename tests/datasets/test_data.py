"""RankingData: what it holds, selects, normalises and hands to the boosters."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from boostlist.datasets import RankingData, make_ranking, write_letor
from boostlist.datasets.generation import _signal
from tests.test_frames import makers


@pytest.fixture
def data():
    X = np.array([[1, 2], [3, 2], [5, 2], [-1, 0], [4, np.nan], [0, 7]], np.float32)
    return RankingData(
        X,
        [2, 0, 1, 0, 0, 3],
        [7, 7, 7, 3, 3, 9],
        query_weight=[1, 2, 0.5],
        feature_names=("bm25", "length"),
        comments=np.array(list("abcdef"), object),
    )


class TestContents:
    def test_queries(self, data):
        assert data.queries.start.tolist() == [0, 3, 5, 6]
        assert data.queries.weight.tolist() == [1, 2, 0.5]
        assert data.queries is data.queries
        assert (data.n_documents, data.n_queries, data.n_features, len(data)) == (6, 3, 2, 6)
        assert repr(data) == "RankingData(6 documents, 3 queries, 2 features, dense float32)"

    def test_is_read_only(self, data):
        for array in (data.X, data.y, data.qid, data.query_weight):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        with pytest.raises(AttributeError):
            data.X = None

    def test_input_stays_writeable(self):
        X = np.ones((2, 1))
        RankingData(X, [0, 1], [1, 1])
        X[0] = 2
        sparse = csr_matrix(X)
        RankingData(sparse, [0, 1], [1, 1])
        sparse.data[0] = 3

    @pytest.mark.parametrize("weight", [[1, 2], [1, 2, 3, 4], [[1, 2, 0.5]], 1])
    def test_one_weight_for_each_query(self, data, weight):
        with pytest.raises(ValueError, match=r"query_weight has shape .* but there are 3 queries"):
            replace(data, query_weight=weight)

    def test_scattered_queries_are_refused_and_can_be_grouped(self, data):
        scattered = [7, 3, 9, 7, 3, 9]
        with pytest.raises(ValueError, match=r"qid 7 reappears at row 3 .*RankingData\.grouped\(X, y, qid\)"):
            RankingData(data.X, data.y, scattered)
        more = {"query_weight": [1, 2, 3], "comments": list("abcdef"), "position": list("ABCDEF")}
        for X in (data.X.tolist(), csr_matrix(data.X)):
            found = RankingData.grouped(X, range(6), scattered, **more)
            assert found.qid.tolist() == [7, 7, 3, 3, 9, 9]
            assert found.y.tolist() == [0, 3, 1, 4, 2, 5]
            np.testing.assert_array_equal(
                found.X.toarray() if found.is_sparse else found.X, data.X[found.y.astype(int)]
            )
            assert "".join(found.comments) + "".join(found.position) == "adbecfADBECF"
            assert found.queries.weight.tolist() == [1, 2, 3]

    def test_survives_pickle_and_copy(self, data):
        for twin in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
            np.testing.assert_array_equal(twin.X, data.X)
            assert twin.feature_names == data.feature_names
            assert twin.n_queries == 3

    def test_negative_labels_are_kept_but_are_no_queries(self):
        unjudged = RankingData([[1.0], [2.0]], [-1, 0], [1, 1])
        assert unjudged.y.tolist() == [-1, 0]
        with pytest.raises(ValueError, match=r"labels\[0\] is -1"):
            _ = unjudged.queries

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([[1.0]], [0, 1], [1]), "y has shape"),
            (([[1.0]], [0], [1, 2]), "qid has shape"),
            (([1.0], [0], [1]), "two-dimensional"),
            (([[1.0]], [0], [1], None, ("a", "b")), "feature_names"),
            (([[1.0, 2.0]], [0], [1], None, ("a", "a")), "feature_names"),
            (([[1.0]], [0], [1], None, None, ["a", "b"]), "comments"),
        ],
    )
    def test_shapes_are_checked(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            RankingData(*arguments)

    def test_describe(self, data):
        found = data.describe()
        assert (found.documents, found.queries, found.features, found.empty_queries) == (6, 3, 2, 1)
        assert found.grades == {0: 3, 1: 1, 2: 1, 3: 1}
        assert (found.shortest, found.median_length, found.longest) == (1, 2, 3)
        assert "3, of which 1 without a relevant document" in str(found)
        assert "0: 3 (50.0%)" in str(found)


class TestBoosters:
    def test_lightgbm_takes_weights_by_document(self, data):
        dataset = data.lgb_dataset(params={"verbose": -1}).construct()
        assert dataset.get_label().tolist() == data.y.tolist()
        assert dataset.get_group().tolist() == [3, 2, 1]
        assert dataset.get_weight().tolist() == [1, 1, 1, 2, 2, 0.5]
        assert dataset.get_feature_name() == ["bm25", "length"]

    def test_xgboost_takes_weights_by_query(self, data):
        matrix = data.xgb_dmatrix()
        assert matrix.get_label().tolist() == data.y.tolist()
        assert matrix.get_uint_info("group_ptr").tolist() == [0, 3, 5, 6]
        assert matrix.get_weight().tolist() == [1, 2, 0.5]
        assert matrix.feature_names == ["bm25", "length"]
        assert matrix.num_nonmissing() == 11

    def test_no_weights(self):
        data = make_ranking(3, docs=5)
        assert data.lgb_dataset(params={"verbose": -1}).construct().get_weight() is None
        assert data.xgb_dmatrix().get_weight().size == 0

    def test_options_win(self, data):
        assert data.xgb_dmatrix(weight=[3, 3, 3]).get_weight().tolist() == [3, 3, 3]
        assert data.lgb_dataset(feature_name="auto").feature_name == "auto"

    def test_sparse(self):
        data = make_ranking(3, docs=30, seed=1)
        sparse = RankingData(csr_matrix(data.X), data.y, data.qid)
        assert sparse.is_sparse
        dataset = sparse.lgb_dataset(params={"verbose": -1}).construct()
        assert dataset.num_data() == len(data)
        assert sparse.xgb_dmatrix().num_row() == len(data)


class TestFrames:
    def test_there_and_back(self, data):
        frame = data.to_frame()
        assert frame.columns.tolist() == ["qid", "label", "weight", "bm25", "length"]
        back = RankingData.from_frame(frame)
        for name in ("X", "y", "qid", "feature_names", "query_weight"):
            np.testing.assert_array_equal(getattr(back, name), getattr(data, name))
        assert back.X.dtype == np.float32

    def test_sparse_and_unnamed(self):
        data = RankingData(csr_matrix([[0, 2.0]]), [1], [5])
        assert data.to_frame("q", "y").to_dict("list") == {"q": [5], "y": [1], "f1": [0], "f2": [2]}

    def test_scattered_queries_are_grouped_if_so_wanted(self):
        frame = pd.DataFrame(
            {"session": ["b", "a", "b"], "clicks": [1, 2, 3], "price": [1.5, None, 2], "text": list("xyz")}
        )
        columns = {"qid": "session", "label": "clicks", "features": ["price"]}
        with pytest.raises(ValueError, match=r"'b' reappears at row 2 .*sort=True"):
            RankingData.from_frame(frame, **columns)
        data = RankingData.from_frame(frame, **columns, sort=True)
        assert data.qid.tolist() == ["b", "b", "a"]
        assert data.y.tolist() == [1, 3, 2]
        np.testing.assert_array_equal(data.X, [[1.5], [2], [np.nan]])
        assert data.queries.n_queries == 2

    @makers
    def test_any_library_with_weights_and_categories(self, make):
        shop = pd.DataFrame(
            {
                "kind": pd.Categorical(["shoe", None, "hat", "shoe"], categories=["shoe", "hat"]),
                "qid": ["b", "a", "b", "a"],
                "stars": pd.array([5, None, 3, 4], "Int64"),
                "label": pd.array([1, 2, 0, 0], "Int8"),
                "weight": [2.0, 0.5, 2.0, 0.5],
            }
        )
        data = RankingData.from_frame(make(shop), sort=True)
        assert data.feature_names == ("kind", "stars")
        assert data.qid.tolist() == ["b", "b", "a", "a"]
        assert data.y.tolist() == [1, 0, 2, 0]
        assert data.query_weight.tolist() == [2, 0.5]
        (values,) = data.categories.values()
        positions = [values.index("shoe"), values.index("hat"), np.nan, values.index("shoe")]
        np.testing.assert_array_equal(data.X, np.column_stack([positions, [5, 3, np.nan, 4]]))
        frame = data.to_frame()
        assert frame["kind"].tolist()[:2] == ["shoe", "hat"]
        assert frame["kind"].isna().tolist() == [False, False, True, False]
        assert frame["weight"].tolist() == [2, 2, 0.5, 0.5]

    def test_a_column_weight_is_no_feature_unless_told(self):
        frame = pd.DataFrame({"qid": [1, 1, 2], "label": [0, 1, 0], "weight": [1, 2, 3], "a": [1.0, 2.0, 3.0]})
        with pytest.raises(ValueError, match=r"'weight' is taken for the weight .* is 2 in row 1 and 1 in an earlier"):
            RankingData.from_frame(frame)
        for options in ({"weight": None}, {"features": ["weight", "a"]}):
            data = RankingData.from_frame(frame, **options)
            assert data.feature_names == ("weight", "a")
            assert data.query_weight is None
        frame["importance"] = [1, 1, 0.5]
        data = RankingData.from_frame(frame, weight="importance")
        assert data.query_weight.tolist() == [1, 0.5]
        assert data.feature_names == ("weight", "a")
        with pytest.raises(ValueError, match="no column 'importance'"):
            RankingData.from_frame(frame.drop(columns="importance"), weight="importance")

    def test_wrong_frames(self):
        with pytest.raises(TypeError, match="expected a data frame, got ndarray"):
            RankingData.from_frame(np.ones((2, 2)))
        for ids in ([1.0, None], ["a", None]):
            with pytest.raises(ValueError, match="column 'qid' is missing in row 1"):
                RankingData.from_frame(pd.DataFrame({"qid": ids, "label": [0, 1], "a": [1.0, 2.0]}))
        with pytest.raises(ValueError, match="'label' is category, not numeric"):
            RankingData.from_frame(pd.DataFrame({"qid": [1], "label": pd.Categorical(["x"]), "a": [1.0]}))

    def test_errors_name_the_column(self, data):
        frame = data.to_frame().assign(text="x")
        with pytest.raises(ValueError, match=r"'text' is .*, not numeric"):
            RankingData.from_frame(frame)
        with pytest.raises(ValueError, match=r"no column 'session'.*qid, label"):
            RankingData.from_frame(frame, qid="session")
        with pytest.raises(ValueError, match="'bm25' too"):
            data.to_frame(label="bm25")


class TestCategories:
    @pytest.fixture
    def data(self):
        X = np.array([[0, 1.5], [1, 2.5], [np.nan, 0.5], [2, 4.0]], np.float32)
        return RankingData(
            X, [1, 0, 2, 0], [1, 1, 2, 2], feature_names=("kind", "size"), categories={"kind": ("a", "b", "c")}
        )

    def test_reach_the_hosts(self, data):
        dataset = data.lgb_dataset(params={"verbose": -1, "min_data_in_bin": 1, "min_data_in_leaf": 1}).construct()
        assert dataset.categorical_feature == ["kind"]
        assert data.xgb_dmatrix().feature_types == ["c", "q"]
        assert data.feature_frame()["kind"].cat.categories.tolist() == ["a", "b", "c"]

    def test_are_kept(self, data):
        for other in (data.select([1]), *data.split(0.5), data.normalize("zscore"), RankingData.concat([data])):
            assert other.categories == data.categories
        scaled = data.normalize("query-minmax").X
        np.testing.assert_array_equal(scaled, [[0, 0], [1, 1], [np.nan, 0], [2, 1]])
        assert RankingData.from_frame(data.to_frame()).categories == data.categories
        other = RankingData(data.X, data.y, [5, 5, 6, 6], None, data.feature_names, None, {"kind": ("c", "b", "a")})
        with pytest.raises(ValueError, match="their features differ"):
            RankingData.concat([data, other])

    def test_letor_text_has_none(self, data, tmp_path):
        with pytest.raises(ValueError, match="no categories, such as those of 'kind'"):
            write_letor(data, tmp_path / "a.txt")
        assert not list(tmp_path.iterdir())
        weighted = RankingData([[1.0]], [1], [1], query_weight=[2])
        with pytest.warns(UserWarning, match="no place for the weights"):
            write_letor(weighted, tmp_path / "a.txt")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"categories": {"sort": ("a",)}}, "'sort', which is no name of a feature"),
            ({"categories": {"kind": ("a", "b")}}, "no positions of its 2 categories in column 'kind'"),
            ({"categories": {"size": tuple(range(9))}}, "no positions of its 9 categories in column 'size'"),
            ({"X": csr_matrix((4, 2))}, "dense X"),
        ],
    )
    def test_are_checked(self, data, changes, message):
        with pytest.raises(ValueError, match=message):
            replace(data, **changes)


class TestSelection:
    def test_select(self, data):
        chosen = data.select([2, 0])
        assert chosen.qid.tolist() == [9, 7, 7, 7]
        assert chosen.X[:, 0].tolist() == [0, 1, 3, 5]
        assert chosen.comments.tolist() == ["f", "a", "b", "c"]
        assert chosen.query_weight.tolist() == [0.5, 1]
        assert chosen.feature_names == data.feature_names
        assert data.select([True, False, True]).qid.tolist() == [7, 7, 7, 9]
        assert len(data.select([])) == 0

    @pytest.mark.parametrize("wrong", [[3], [0, 0], [0, -3], [True], [0.5], [[0]], ["a"]])
    def test_wrong_selections(self, data, wrong):
        with pytest.raises((ValueError, IndexError)):
            data.select(wrong)

    @pytest.mark.parametrize("wrong", [[0, 9999], [9999, -4], [-9999]])
    def test_queries_that_are_not_there(self, data, wrong):
        with pytest.raises(IndexError, match=r"there is no query -?9999: .* the data has 3 queries"):
            data.select(wrong)

    def test_split_keeps_queries_whole_and_loses_none(self):
        data = make_ranking(50, docs=8)
        for shares, sizes in [((0.8,), [40, 10]), ((0.6, 0.2, 0.2), [30, 10, 10]), ((0.5, 0.3), [25, 15, 10])]:
            parts = data.split(*shares, seed=1)
            assert [part.n_queries for part in parts] == sizes
            whole = RankingData.concat(parts)
            order = np.argsort(whole.qid, kind="stable")
            np.testing.assert_array_equal(whole.X[order], data.X)
        assert data.split(0.5, seed=None)[0].qid.max() == 25
        first, again, other = (data.split(0.5, seed=seed)[0].qid.tolist() for seed in (0, 0, 1))
        assert first == again != other

    @pytest.mark.parametrize("shares", [(), (0.0,), (0.7, 0.7), (-0.1,)])
    def test_wrong_shares(self, data, shares):
        with pytest.raises(ValueError, match="shares"):
            data.split(*shares)

    def test_shares_are_not_a_list(self, data):
        with pytest.raises(TypeError, match=r"such as split\(0.6, 0.2, 0.2\), got \[0.6, 0.2, 0.2\]"):
            data.split([0.6, 0.2, 0.2])

    @pytest.mark.parametrize(("shares", "part"), [((1e-6,), 0), ((0.9,), 1), ((0.3, 0.1, 0.6), 1)])
    def test_no_part_is_without_queries(self, data, shares, part):
        with pytest.raises(ValueError, match=rf"of 3 queries, part {part} would have none"):
            data.split(*shares)

    def test_concat(self, data):
        other = RankingData([[1.0, 2.0]], [1], [4], [5.0], ("bm25", "length"), ["z"])
        whole = RankingData.concat([data, other])
        assert whole.qid.tolist() == [7, 7, 7, 3, 3, 9, 4]
        assert whole.query_weight.tolist() == [1, 2, 0.5, 5]
        assert whole.comments[-1] == "z"
        with pytest.raises(ValueError, match="more than one"):
            RankingData.concat([data.select([0, 1]), data.select([1])])
        with pytest.raises(ValueError, match="features differ"):
            RankingData.concat([data, RankingData([[1.0]], [1], [4])])
        mixed = RankingData.concat([RankingData(csr_matrix([[1.0]]), [1], [1]), RankingData([[2.0]], [1], [2])])
        assert mixed.X.toarray().tolist() == [[1], [2]]


class TestNormalization:
    def test_query_minmax(self, data):
        expected = [[0, 0], [0.5, 0], [1, 0], [0, 0], [1, np.nan], [0, 0]]
        np.testing.assert_array_equal(data.normalize("query-minmax").X, np.array(expected, np.float32))

    def test_query_l2(self, data):
        a, b, c = np.sqrt(35), np.sqrt(12), np.sqrt(17)
        expected = [[1 / a, 2 / b], [3 / a, 2 / b], [5 / a, 2 / b], [-1 / c, 0], [4 / c, np.nan], [0, 1]]
        np.testing.assert_allclose(data.normalize("query-l2").X, expected, rtol=1e-7)
        zeros = np.nan_to_num(data.X)
        sparse = RankingData(csr_matrix(zeros), data.y, data.qid).normalize("query-l2")
        assert sparse.is_sparse
        np.testing.assert_allclose(sparse.X.toarray(), np.nan_to_num(expected), rtol=1e-7)

    def test_zscore(self, data):
        columns = [data.X[:, 0], data.X[~np.isnan(data.X[:, 1]), 1]]
        mean, deviation = [np.mean(c, dtype=float) for c in columns], [np.std(c, dtype=float) for c in columns]
        np.testing.assert_allclose(data.normalize("zscore").X, (data.X - mean) / deviation, rtol=1e-6)
        other = RankingData([[10.0, 3.0]], [1], [1])
        np.testing.assert_allclose(other.normalize("zscore", fit=data).X, (other.X - mean) / deviation, rtol=1e-12)
        constant = RankingData([[3.0], [3.0]], [0, 1], [1, 1])
        assert constant.normalize("zscore").X.tolist() == [[0], [0]]

    def test_data_set_larger_than_a_block(self):
        X = np.random.default_rng(0).normal(1e6, 1, (70_000, 2)).astype(np.float32)
        X[:, 1] = 0
        X[-1, 1] = 1
        found = RankingData(X, np.zeros(len(X)), np.zeros(len(X))).normalize("zscore").X
        expected = (X - X.mean(axis=0, dtype=float)) / X.std(axis=0, dtype=float)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    def test_keeps_the_rest(self, data):
        found = data.normalize("query-minmax")
        assert found.feature_names == data.feature_names
        assert found.query_weight.tolist() == data.query_weight.tolist()

    def test_errors(self, data):
        sparse = RankingData(csr_matrix(np.nan_to_num(data.X)), data.y, data.qid)
        with pytest.raises(ValueError, match="sparse=False"):
            sparse.normalize("query-minmax")
        with pytest.raises(ValueError, match="must be dense"):
            data.normalize("zscore", fit=sparse)
        with pytest.raises(ValueError, match="no parameters"):
            data.normalize("query-l2", fit=data)
        with pytest.raises(ValueError, match="one of query-minmax"):
            data.normalize("minmax")
        with pytest.raises(ValueError, match="fit has 1 features"):
            data.normalize("zscore", fit=RankingData([[1.0]], [1], [1]))


def test_several_labels_go_with_their_rows():
    named = {"click": [1.0, 0, 2, 0, 1], "purchase": [0.0, 1, 0, 0, 3]}
    data = RankingData.grouped(np.arange(5.0)[:, None], named, [7, 8, 7, 9, 9])
    assert data.y.tolist() == [1, 2, 0, 0, 1]
    assert data.labels["purchase"].tolist() == [0, 0, 1, 0, 3]
    assert data.queries.labelled("purchase").labels.tolist() == [0, 0, 1, 0, 3]
    some = data.select([2, 0])
    assert some.labels["purchase"].tolist() == [0, 3, 0, 0]
    assert RankingData.concat([data.select([0]), data.select([2])]).labels["purchase"].tolist() == [0, 0, 0, 3]
    assert data.normalize("zscore").targets["purchase"].tolist() == [0, 0, 1, 0, 3]
    again = RankingData.from_frame(data.to_frame(), label=["click", "purchase"])
    assert again.n_features == 1
    assert again.labels["purchase"].tolist() == [0, 0, 1, 0, 3]
    assert RankingData(data.X, data.y, data.qid).targets.tolist() == data.y.tolist()


def test_labels_may_be_missing():
    data = RankingData(np.zeros((2, 1)), {"a": [np.nan, 1], "b": [0, 1]}, [1, 1])
    np.testing.assert_array_equal(data.y, [np.nan, 1])


def test_the_signal_of_made_data_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    c, a = 0.7, [2 ** (-j / 2) for j in range(8)]
    z, u = rng.normal(size=(20, 8)), rng.normal(size=(20, 2))
    expected = []
    for x, v in zip(z, u, strict=True):
        linear = sum(a[j] * (1 + c * v[j % 2]) * x[j] for j in range(8))
        h = (x[0] * x[1] + (1 - x[3] ** 2) / 2**0.5) / 2 + (x[4] > 0 and x[5] > 0) + (x[2] > 0 and x[6] > 0.5)
        expected.append((linear + c * h) / ((1 + c**2) * sum(each**2 for each in a)) ** 0.5)
    np.testing.assert_allclose(_signal(z, u, c), expected)


def test_labels_that_do_not_fit():
    X, qid = np.zeros((3, 1)), [1, 1, 2]
    with pytest.raises(ValueError, match=r"labels\['b'\] has shape \(2,\) but X has 3 rows"):
        RankingData(X, {"a": [0, 1, 0], "b": [0, 1]}, qid)
    one = RankingData(X, {"a": [0, 1, 0], "b": [0, 1, 1]}, qid)
    with pytest.raises(ValueError, match="y is not the first of the labels"):
        replace(one, y=[1, 1, 1])
    with pytest.raises(ValueError, match="cannot join data with the labels a, b and data with others"):
        RankingData.concat([one, RankingData(X, [0, 1, 0], [3, 3, 4])])
