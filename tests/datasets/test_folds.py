"""Folds, the sample, the generator."""

import importlib
import pickle
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from boostlist.datasets import (
    find_folds,
    load_fold,
    load_folds,
    load_letor,
    load_sample,
    make_ranking,
    sample_folder,
    write_letor,
    write_ranking,
)

folds_module = importlib.import_module("boostlist.datasets.folds")
DATASETS = Path(__file__).parents[2] / "datasets"


@pytest.fixture(scope="module")
def parts():
    return make_ranking(50, docs=5, n_features=12).split(*[0.2] * 5, seed=None)


@pytest.fixture(scope="module")
def five(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("five")
    for number, part in enumerate(parts, 1):
        write_letor(part, folder / f"S{number}.txt")
    return folder


def ids(data):
    return sorted(set(data.qid.tolist()))


class TestFolds:
    def test_parts_rotate_as_letor_does(self, parts, five):
        part_ids = [ids(part) for part in parts]
        folds = list(load_folds(five))
        assert [fold.number for fold in folds] == [1, 2, 3, 4, 5]
        for k, fold in enumerate(folds):
            assert ids(fold.train) == sorted(q for i in range(3) for q in part_ids[(k + i) % 5])
            assert ids(fold.vali) == part_ids[(k + 3) % 5]
            assert ids(fold.test) == part_ids[(k + 4) % 5]
        # LETOR's fold 3 trains on S3, S4, S5, validates on S1, tests on S2.
        assert ids(folds[2].test) == part_ids[1]
        single = load_fold(five, 3)
        np.testing.assert_array_equal(single.train.X, folds[2].train.X)

    @pytest.mark.parametrize("names", [("train", "vali", "test"), ("trainingset", "validationset", "testset")])
    @pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
    def test_folders(self, parts, tmp_path, names, suffix):
        for number in (1, 2, 10):
            folder = tmp_path / f"Fold{number}"
            folder.mkdir()
            for name, part in zip(names, parts, strict=False):
                write_letor(part, folder / (name + suffix))
        folds = list(load_folds(tmp_path, dtype="float64"))
        assert [fold.number for fold in folds] == [1, 2, 10]
        for fold in [*folds, load_fold(tmp_path, 10, dtype="float64"), load_fold(tmp_path / "Fold2", dtype="float64")]:
            assert (ids(fold.train), ids(fold.vali), ids(fold.test)) == tuple(ids(part) for part in parts[:3])
            assert fold.train.X.dtype == np.float64

    def test_all_data_of_a_fold_have_the_same_features(self, tmp_path):
        (tmp_path / "train.txt").write_text("1 qid:1 1:1 2:1\n")
        (tmp_path / "vali.txt").write_text("1 qid:2 1:1\n")
        (tmp_path / "test.txt").write_text("1 qid:3 9:1\n")
        fold = load_fold(tmp_path)
        for data in (fold.train, fold.vali, fold.test):
            assert data.n_features == 9
            assert not data.is_sparse
        assert load_fold(tmp_path, sparse=True).train.is_sparse

    def test_what_is_missing(self, parts, tmp_path):
        looked = r"no data set: looked for folders Fold1.*S1\.txt to S5\.txt.*train\.txt"
        with pytest.raises(FileNotFoundError, match=looked):
            load_folds(tmp_path)
        with pytest.raises(FileNotFoundError, match="there is no folder or file"):
            load_folds(tmp_path / "absent")
        write_letor(parts[0], tmp_path / "S1.txt")
        with pytest.raises(FileNotFoundError, match="not S2, S3, S4, S5"):
            load_folds(tmp_path)
        (tmp_path / "S1.txt").unlink()
        (tmp_path / "Fold1").mkdir()
        with pytest.raises(FileNotFoundError, match=r"no train file.*trainingset\.txt"):
            load_folds(tmp_path)
        for name in ("train", "vali", "test"):
            write_letor(parts[0], tmp_path / "Fold1" / f"{name}.txt")
        assert load_fold(tmp_path, 1).number == load_fold(tmp_path).number == 1
        with pytest.raises(FileNotFoundError, match="has the folds 1, not 2"):
            load_fold(tmp_path, 2)
        with pytest.raises(FileNotFoundError, match="the sample has the folds 1, 2, 3, 4, 5, not 6"):
            load_sample(6)
        with pytest.raises(FileNotFoundError, match="has the folds 1, 2, 3, 4, 5; say which"):
            load_fold(sample_folder())

    def test_a_part_of_one_fold_is_missed(self, parts, tmp_path):
        write_letor(parts[0], tmp_path / "train.txt")
        with pytest.raises(FileNotFoundError, match=r"holds no vali file; looked for vali\.txt, valid\.txt"):
            find_folds(tmp_path)

    def test_parts_are_read_once(self, five, monkeypatch):
        reads, real = [], folds_module.load_letor
        monkeypatch.setattr(folds_module, "load_letor", lambda *a, **k: reads.append(a) or real(*a, **k))
        folds = find_folds(five, sparse=False)
        assert not reads
        for number in (3, 1, 3):
            folds.load(number)
        assert len(list(folds)) == 5
        assert len(reads) == 5
        assert len(pickle.dumps(folds)) < 2000  # another process reads them itself

    def test_folds_can_be_chosen(self, five):
        chosen = find_folds(five).choose([4, 2, 4])
        assert chosen.numbers == (2, 4)
        assert [fold.number for fold in chosen] == [2, 4]
        with pytest.raises(FileNotFoundError, match="has the folds 2, 4, not 1"):
            chosen.load(1)
        with pytest.raises(FileNotFoundError, match="not 7"):
            find_folds(five).choose([1, 7])

    def test_one_file_is_cut_by_query(self, parts, tmp_path):
        path = write_letor(parts, tmp_path / "whole.txt.gz")
        folds = find_folds(path, seed=1)
        assert (folds.name, folds.layout, folds.numbers) == ("whole", "file", (1, 2, 3, 4, 5))
        tested = [query for fold in folds for query in ids(fold.test)]
        assert sorted(tested) == sorted(query for part in parts for query in ids(part))
        for fold in folds:
            assert not set(ids(fold.train)) & (set(ids(fold.vali)) | set(ids(fold.test)))
            assert (fold.train.n_queries, fold.vali.n_queries, fold.test.n_queries) == (30, 10, 10)
        assert ids(find_folds(path, seed=2).load(1).test) != ids(folds.load(1).test)
        small = write_letor(parts[0].select([0, 1, 2, 3]), tmp_path / "small.txt")
        with pytest.raises(ValueError, match="has 4 queries; at least 5 are needed"):
            find_folds(small).load(1)

    def test_the_fingerprint_is_of_the_contents(self, five, tmp_path, monkeypatch):
        def copy(name, change=None):
            (tmp_path / name).mkdir()
            for path in five.iterdir():
                text = path.read_text()
                (tmp_path / name / path.name).write_text(change(text) if change and path.name == "S5.txt" else text)
            return find_folds(tmp_path / name).fingerprint

        assert copy("same") == find_folds(five).fingerprint
        assert copy("changed", lambda text: text.replace("0 qid", "1 qid", 1)) != find_folds(five).fingerprint
        assert copy("longer", lambda text: text + "\n") != find_folds(five).fingerprint
        # Of a large file the size and both ends count.
        monkeypatch.setattr(folds_module, "_SAMPLED_BYTES", 4)
        given = find_folds(five).fingerprint
        assert copy("end", lambda text: text[:-2] + "7\n") != given
        assert copy("beginning", lambda text: "7" + text[1:]) != given
        assert copy("size", lambda text: text[:100] + " " + text[100:]) != given
        (tmp_path / "same" / "S5.txt").rename(tmp_path / "same" / "S5.txt.gz")
        assert find_folds(tmp_path / "same").fingerprint != given
        whole = tmp_path / "whole.txt"
        whole.write_bytes(b"".join(path.read_bytes() for path in sorted(five.iterdir())))
        assert find_folds(whole, seed=1).fingerprint != find_folds(whole, seed=2).fingerprint


class TestSample:
    def test_contents(self):
        fold = load_sample()
        assert fold.number == 1
        assert (fold.train.n_queries, fold.vali.n_queries, fold.test.n_queries) == (300, 100, 100)
        assert list(fold.train.describe().grades) == [0, 1, 2, 3, 4]
        assert sum(path.stat().st_size for path in sample_folder().iterdir()) < 3_000_000
        assert len(list(load_folds(sample_folder()))) == 5

    @pytest.mark.skipif(not DATASETS.is_dir(), reason="needs the source tree")
    def test_is_what_its_script_makes(self):
        made = runpy.run_path(str(DATASETS / "make_sample.py"))["make_sample"]()
        for number, part in enumerate(made, 1):
            stored = load_letor(sample_folder() / f"S{number}.txt.gz")
            np.testing.assert_array_equal(stored.qid, part.qid)
            # exp and log may differ in the last bit between processors, so a rounding or a cut may fall differently.
            np.testing.assert_allclose(stored.X, part.X, atol=2e-4, rtol=1e-6)
            assert np.mean(stored.y == part.y) > 0.999

    @pytest.mark.skipif(not DATASETS.is_dir(), reason="needs the source tree")
    def test_is_at_the_top_level_too(self):
        assert sorted(path.name for path in (DATASETS / "sample").iterdir()) == [f"S{i}.txt.gz" for i in range(1, 6)]

    def test_trees_and_kernels_beat_lines(self):
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from threadpoolctl import threadpool_limits

        fold = load_sample(1)
        train, test = fold.train.normalize("zscore"), fold.test.normalize("zscore", fit=fold.train)
        models = {
            "linear": Ridge(),
            "kernel": make_pipeline(Nystroem(gamma=0.02, n_components=400, random_state=0), Ridge()),
            "tree": HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=15, random_state=0),
        }
        with threadpool_limits(1):  # on such small data, threads that wait for each other take longer than one
            scores = {name: ndcg(test, model.fit(train.X, train.y).predict(test.X)) for name, model in models.items()}
        assert scores["linear"].mean() > 0.55
        for better in ("tree", "kernel"):
            assert ttest_rel(scores[better], scores["linear"], alternative="greater").pvalue < 0.02


def ndcg(data, f, k=10):
    values = []
    for a, b in zip(data.queries.start[:-1], data.queries.start[1:], strict=True):
        gain, discount = 2 ** data.y[a:b] - 1, 1 / np.log2(np.arange(2, k + 2))
        best = np.sort(gain)[::-1][:k]
        top = gain[np.argsort(-f[a:b], kind="stable")[:k]]
        values.append(top @ discount[: len(top)] / max(best @ discount[: len(best)], 1e-9))
    return np.array(values)


class TestGenerator:
    def test_shape(self):
        data = make_ranking(200, docs=30, n_features=17, grades=3, seed=4)
        found = data.describe()
        assert (found.queries, found.features, list(found.grades)) == (200, 17, [0, 1, 2])
        assert 24 <= found.median_length <= 36
        share = np.array(list(found.grades.values())) / len(data)
        np.testing.assert_allclose(share, np.array([25, 10, 4]) / 39, atol=0.06)
        assert data.feature_names[:9] == (*(f"document_{j}" for j in range(1, 9)), "query_1")

    def test_query_features_are_equal_within_a_query(self):
        data = make_ranking(20)
        column = data.X[:, data.feature_names.index("query_1")]
        for a, b in zip(data.queries.start[:-1], data.queries.start[1:], strict=True):
            assert len(set(column[a:b])) == 1

    def test_same_seed_same_data_and_more_queries_go_on_from_there(self):
        short, long, other = make_ranking(70), make_ranking(150), make_ranking(70, seed=1)
        np.testing.assert_array_equal(short.X, long.X[: len(short)])
        np.testing.assert_array_equal(short.y, long.y[: len(short)])
        assert short.X[0, 0] != other.X[0, 0]

    def test_without_interactions_and_noise_the_order_is_linear(self):
        data = make_ranking(100, interactions=0, noise=0, blur=0, grades=5, seed=2)
        # Undo the functions that hide z: plain, logistic, exponential, counts (known up to rounding).
        X = data.X.astype(float)
        z = np.column_stack([X[:, 0], np.log(X[:, 1] / (1 - X[:, 1])), np.log(X[:, 2]), X[:, 4]])
        z = np.column_stack([z, np.log(X[:, 5] / (1 - X[:, 5])), np.log(X[:, 6])])
        score = z @ 2.0 ** (-np.array([0, 1, 2, 4, 5, 6]) / 2)
        counts = [3, 7]
        score += (np.log((X[:, counts] + 0.5) / 10) / 0.7) @ 2.0 ** (-np.array(counts) / 2)
        relevant = np.maximum.reduceat(data.y, data.queries.start[:-1]) > 0
        assert ndcg(data, score)[relevant].mean() > 0.99

    def test_more_noise_is_harder(self):
        means = []
        for noise in (0.2, 2):
            data = make_ranking(100, noise=noise, interactions=0, seed=5)
            means.append(ndcg(data, data.X[:, 0].astype(float)).mean())
        assert means[0] > means[1] + 0.05

    def test_streams_to_a_file(self, tmp_path):
        options = {"docs": 10, "n_features": 11, "seed": 3}
        path = write_ranking(tmp_path / "a.txt.gz", 130, **options)
        data, found = make_ranking(130, **options), load_letor(path)
        np.testing.assert_array_equal(found.X, data.X)
        np.testing.assert_array_equal(found.y, data.y)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"n_queries": 0},
            {"n_features": 9},
            {"grades": 1},
            {"docs": 1},
            {"noise": -1},
            {"interactions": -1},
            {"blur": -1},
        ],
    )
    def test_wrong_options(self, wrong):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            make_ranking(**({"n_queries": 5} | wrong))
