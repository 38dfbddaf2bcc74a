"""The reader: sources, options, errors."""

import bz2
import gzip
import io
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import zstandard
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import boostlist
from boostlist.datasets import LetorError, _grammar, _reader, load_letor, make_ranking, sample_folder, write_letor

TEXT = b"2 qid:10 1:0.5 3:-1e-2 #docid = A inc = 1\r\n\n# a comment\n0 qid:10 2:NULL\t3:4#B\n1.5 qid:7 1:3 \n"
X = np.array([[0.5, 0, -0.01], [0, np.nan, 4], [3, 0, 0]], np.float32)


def load(text, **options):
    return load_letor(io.BytesIO(text), **options)


def check(data):
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == [2, 0, 1.5]
    assert data.qid.tolist() == [10, 10, 7]


class TestSources:
    @pytest.mark.parametrize("name", [str, lambda path: path], ids=["str", "Path"])
    def test_path(self, tmp_path, name):
        (tmp_path / "a.txt").write_bytes(TEXT)
        check(load_letor(name(tmp_path / "a.txt")))

    @pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zstandard.compress])
    def test_compressed(self, tmp_path, compress):
        (tmp_path / "a").write_bytes(compress(TEXT))
        check(load_letor(tmp_path / "a"))
        check(load(compress(TEXT)))

    @pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zstandard.compress])
    def test_several_compressed_streams_in_one_file(self, compress):
        lines = TEXT.splitlines(keepends=True)
        check(load(b"".join(compress(line) for line in lines)))

    @pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zstandard.compress])
    def test_truncated_compressed_file(self, compress):
        text = b"".join(b"0 qid:1 1:%d\n" % i for i in range(5_000))
        with pytest.raises(LetorError, match="cannot be read") as caught:
            load(compress(text)[:-9])
        assert caught.value.text == ""

    def test_zstandard_is_optional(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(ImportError, match=r"boostlist\[zstd\]"):
            load(zstandard.compress(TEXT))

    def test_several_files_are_one_text(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(TEXT[:44])
        (tmp_path / "b.gz").write_bytes(gzip.compress(TEXT[44:]))
        check(load_letor([tmp_path / "a.txt", tmp_path / "b.gz"]))

    def test_file_object_is_read_from_where_it_stands_and_stays_open(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"rubbish" + TEXT)
        with (tmp_path / "a.txt").open("rb") as file:
            file.seek(7)
            check(load_letor(file))
            assert not file.closed

    def test_stream_that_cannot_go_back(self):
        class Pipe(io.RawIOBase):
            def __init__(self):
                self.rest = TEXT

            def readable(self):
                return True

            def readinto(self, buffer):
                part, self.rest = self.rest[:5], self.rest[5:]
                buffer[: len(part)] = part
                return len(part)

        check(load_letor(Pipe()))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    def test_named_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(TEXT,))
        writer.start()
        with pytest.raises(ValueError, match=r"pipe is a pipe or device, which may never end; give max_bytes="):
            load_letor(tmp_path / "pipe")
        check(load_letor(tmp_path / "pipe", max_bytes=1000))
        writer.join()

    @pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs devices")
    def test_a_device_that_never_ends(self):
        with pytest.raises(ValueError, match="may never end"):
            load_letor("/dev/zero")
        with pytest.raises(ValueError, match=r"/dev/zero has more than max_bytes=3,000,000 bytes"):
            load_letor("/dev/zero", max_bytes=3_000_000)

    @pytest.mark.parametrize("pack", [bytes, gzip.compress])
    def test_limits(self, tmp_path, monkeypatch, pack):
        (tmp_path / "a").write_bytes(pack(TEXT))
        size, rows = len(TEXT), len(load_letor(tmp_path / "a"))
        check(load_letor(tmp_path / "a", max_bytes=size, max_rows=rows))
        (tmp_path / "b").write_bytes(pack(TEXT.replace(b"qid:", b"qid:9")))
        twice = [tmp_path / "a", tmp_path / "b"]
        assert len(load_letor(twice, max_bytes=2 * size + 100, max_rows=2 * rows)) == 2 * rows
        monkeypatch.setattr(_reader, "_Reader", None)  # nothing is allocated: the first pass is enough
        for limits in ({"max_bytes": size - 1}, {"max_rows": rows - 1}):
            with pytest.raises(LetorError, match=f"the limit of {next(iter(limits))}="):
                load_letor(tmp_path / "a", **limits)
        with pytest.raises(LetorError, match="max_rows"):
            load_letor(twice, max_rows=2 * rows - 1)
        with pytest.raises(ValueError, match="max_rows must be at least 1, got 0"):
            load_letor(tmp_path / "a", max_rows=0)

    def test_a_bomb_is_found_early(self, tmp_path, monkeypatch):
        """Of 50 MB of text in 50 kB, not much more than the limit is looked at."""
        (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0 qid:1 1:1\n" * 4_000_000, 1))
        looked, scan = [], _grammar.scan
        monkeypatch.setattr(_grammar, "scan", lambda batch, longest: looked.append(len(batch)) or scan(batch, longest))
        with pytest.raises(LetorError, match="max_bytes"):
            load_letor(tmp_path / "bomb.gz", max_bytes=2_000_000)
        assert sum(looked) < 2_000_000 + 20 * _reader.BLOCK_BYTES

    def test_text_mode_is_refused(self):
        with pytest.raises(TypeError, match="binary mode"):
            load_letor(io.StringIO("0 qid:1\n"))

    def test_no_such_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load_letor(tmp_path / "missing.txt")

    def test_no_files(self):
        with pytest.raises(ValueError, match="no files"):
            load_letor([])

    def test_file_that_changes_between_the_passes(self, monkeypatch):
        monkeypatch.setattr(_reader, "KEEP_BYTES", 0)

        class Growing(io.BytesIO):
            def __init__(self, *texts):
                super().__init__(texts[0])
                self.texts = list(texts)

            def seek(self, *args):
                if args == (0,):
                    self.truncate(0)
                    super().seek(0)
                    self.write(self.texts.pop(0))
                return super().seek(*args)

        first = b"0 qid:1 1:5\n0 qid:1 1:5\n"
        for second in (
            b"0 qid:1 1:5 2:5 3:555\n \n",
            b"0 qid:1\n",
            b"7" * 24,  # the same size, but no line end to stop at
            b" " * 11 + b"\n" + first[:12],
            b"0 qid:1 2:5\n" * 2,
        ):
            for sparse in (False, True):
                with pytest.raises(OSError, match="changed while"):
                    load_letor(Growing(first, second), sparse=sparse)


class TestOptions:
    def test_comments(self):
        assert load(TEXT, comments=True).comments.tolist() == ["docid = A inc = 1", "B", ""]
        assert load(TEXT).comments is None

    def test_null_and_absent(self):
        assert load(TEXT, null=0).X[1, 1] == 0
        data = load(TEXT, null=0, absent=np.nan)
        np.testing.assert_array_equal(np.isnan(data.X), [[0, 1, 0], [1, 0, 0], [0, 1, 1]])

    def test_number_of_features(self):
        assert load(TEXT, n_features=5).X.shape == (3, 5)
        with pytest.raises(LetorError, match="line 1, column 16: '3:-1e-2': the highest index allowed is 2"):
            load(TEXT, n_features=2)

    def test_zero_based(self):
        data = load(b"1 qid:1 0:5 2:6\n", zero_based=True)
        np.testing.assert_array_equal(data.X, [[5, 0, 6]])

    def test_sparse_by_density(self):
        text = b"".join(b"0 qid:1 %d:1\n" % i for i in range(1, 10))
        assert load(text).is_sparse
        assert not load(text, sparse=False).is_sparse
        np.testing.assert_array_equal(load(text).X.toarray(), np.eye(9))
        assert not load(TEXT).is_sparse
        assert not load(text, absent=np.nan).is_sparse

    def test_huge_index_makes_a_sparse_matrix(self):
        assert load(b"0 qid:1 2147483647:1\n").X.shape == (1, 2**31 - 1)

    def test_no_features_at_all(self):
        for sparse in (True, False):
            assert load(b"0 qid:1\n1 qid:1\n", sparse=sparse).X.shape == (2, 0)
            assert load(b"0 qid:1\n1 qid:1\n", sparse=sparse, n_features=3).X.shape == (2, 3)

    def test_sort(self):
        text = b"0 qid:5 1:1\n1 qid:2 1:2\n2 qid:5 1:3\n3 qid:2 1:4 # x\n"
        data = load(text, sort=True, comments=True)
        assert data.qid.tolist() == [5, 5, 2, 2]
        assert data.y.tolist() == [0, 2, 1, 3]
        assert data.X[:, 0].tolist() == [1, 3, 2, 4]
        assert data.comments.tolist() == ["", "", "", "x"]
        with pytest.raises(LetorError, match=r"line 3, column 3: 'qid:5': .*sort=True"):
            load(text)

    @pytest.mark.parametrize(
        "options",
        [
            {"dtype": "int32"},
            {"null": 1},
            {"absent": -1},
            {"sparse": "maybe"},
            {"n_features": 0},
            {"sparse": True, "absent": np.nan},
        ],
    )
    def test_wrong_options(self, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            load(TEXT, **options)


@pytest.mark.parametrize(
    ("text", "line", "column", "found", "reason"),
    [
        (b"0 1:1\n", 1, 3, "1:1", "qid"),
        (b"0\n", 1, 2, "0", "qid"),
        (b"0 qid:1 1:1\n0 QID:1\n", 2, 3, "QID:1", "qid"),
        (b"0 qid:a\n", 1, 3, "qid:a", "query id"),
        (b"0 qid:1 0:4\n", 1, 9, "0:4", "counted from 1.*zero_based"),
        (b"0 qid:1 2:4 1:3\n", 1, 13, "1:3", "must rise"),
        (b"0 qid:1 2:4 2:3\n", 1, 13, "2:3", "must rise"),
        (b"0 qid:1 1:nan\n", 1, 9, "1:nan", "decimal number"),
        (b"0 qid:1 1:inf\n", 1, 9, "1:inf", "decimal number"),
        (b"0 qid:1 1:1_0\n", 1, 9, "1:1_0", "decimal number"),
        (b"0 qid:1 1:0x1\n", 1, 9, "1:0x1", "decimal number"),
        (b"0 qid:1 1:1e400\n", 1, 9, "1:1e400", 'too large for float32; use dtype="float64"'),
        (b"1e999 qid:1\n", 1, 1, "1e999", "too large"),
        (b"nan qid:1 1:1\n", 1, 1, "nan", "label"),
        (b"\xef\xbb\xbf0 qid:1 1:1\n", 1, 1, "\\xef\\xbb\\xbf0", "begins with a byte order mark; save it .* without"),
        (b"\xef\xbb\xbf# made by\n0 qid:1 1:1\n", 1, 1, "\\xef\\xbb\\xbf#", "begins with a byte order mark"),
        (b"0 qid:1 1:1\n\xef\xbb\xbf0 qid:1 1:1\n", 2, 1, "\\xef\\xbb\\xbf0", "a line begins with a label"),
        (b"0 qid:1 1:1\n0 qid:1 1:0.", 2, 13, "0 qid:1 1:0.", "cut off"),
        (b"0 qid:1 1:1\n0 qid:1 1:0.5 # \0\n", 2, 17, "\\x00", "NUL"),
        (b"0 qid:1 1:1\0\n", 1, 9, "1:1\\x00", "decimal number"),
        (b"0 qid:1 1:\xff\n", 1, 9, "1:\\xff", "decimal number"),
        (b"0 qid:1 1:1\r0 qid:1\n", 1, 9, "1:1\\r0", "decimal number"),
        (b"0 qid:1 1:" + b"9" * 10_000_000 + b"\n", 1, (4 << 20) + 1, "", "longer than"),
        (b"0 qid:1 1:5\n" + b" " * 10_000_000, 2, (4 << 20) + 1, "", "longer than"),
        (b"\n# nothing\n", 3, 1, "", "no documents"),
    ],
)  # fmt: skip
def test_errors_say_what_and_where(tmp_path, text, line, column, found, reason):
    (tmp_path / "bad.txt").write_bytes(text)
    with pytest.raises(LetorError, match=reason) as caught:
        load_letor(tmp_path / "bad.txt")
    error = caught.value
    assert (error.file, error.line, error.column) == (str(tmp_path / "bad.txt"), line, column)
    assert error.text.encode("unicode_escape").decode().replace("\\\\", "\\") == found
    assert f"bad.txt, line {line}, column {column}" in str(error)


def test_the_first_error_counts_whichever_pass_finds_it():
    bad = b"0 qid:1 1:x\n"
    for later in (b" " * 5_000_000 + b"\n", b"0 qid:1 1:0.5", bad, b"0 qid:2\n0 qid:1\n"):
        with pytest.raises(LetorError, match="line 2, column 9: '1:x'"):
            load(b"0 qid:1\n" + bad + later)


def test_line_numbers_far_into_a_file():
    text = b"0 qid:1 1:0.25 2:0.75\n" * 700_000 + b"0 qid:1 1:0,25\n"
    with pytest.raises(LetorError, match="line 700001, column 9: '1:0,25'"):
        load(text)


@pytest.fixture
def threads():
    yield boostlist.set_threads
    boostlist.set_threads(None)


def test_any_number_of_threads_gives_the_same(threads, monkeypatch):
    monkeypatch.setattr(_reader, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(_reader, "KEEP_BYTES", 0)
    text = io.BytesIO()
    data = make_ranking(300, docs=100, n_features=40, seed=3)
    text = b"".join(
        b"%g qid:%d 1:%r\n" % (y, q, float(x)) for y, q, x in zip(data.y, data.qid, data.X[:, 2], strict=True)
    )
    text += b"0 qid:999 1:1\n" * 700_000  # more than one batch
    loaded = []
    for n in (1, 4):
        threads(n)
        loaded.append(load(text, comments=False))
    for name in ("X", "y", "qid"):
        assert getattr(loaded[0], name).tobytes() == getattr(loaded[1], name).tobytes()
    np.testing.assert_array_equal(loaded[0].X[: len(data), 0], data.X[:, 2])


def test_agrees_with_scikit_learn(tmp_path):
    data = make_ranking(20, docs=20, n_features=12, seed=1)
    rng = np.random.default_rng(0)
    X = data.X * (rng.random(data.X.shape) < 0.4)
    dump_svmlight_file(X, data.y.copy(), str(tmp_path / "a.txt"), query_id=data.qid.copy(), zero_based=False)
    expected = load_svmlight_file(str(tmp_path / "a.txt"), query_id=True, dtype=np.float32, zero_based=False)
    found = load_letor(tmp_path / "a.txt", sparse=True)
    np.testing.assert_array_equal(found.X.toarray(), expected[0].toarray())
    np.testing.assert_array_equal(found.y, expected[1])
    np.testing.assert_array_equal(found.qid, expected[2])
    found = load_letor(tmp_path / "a.txt", sparse=False)
    np.testing.assert_array_equal(found.X, expected[0].toarray())


def test_agrees_with_scikit_learn_on_the_sample():
    path = sample_folder() / "S2.txt.gz"
    expected = load_svmlight_file(str(path), query_id=True, dtype=np.float64)
    found = load_letor(path, dtype="float64")
    np.testing.assert_array_equal(found.X, expected[0].toarray())
    np.testing.assert_array_equal(found.y, expected[1])
    np.testing.assert_array_equal(found.qid, expected[2])


def test_import_is_light():
    heavy = ("lightgbm", "xgboost", "zstandard", "numba", "scipy", "sklearn")
    code = f"import sys, boostlist.datasets; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


class TestWriting:
    @pytest.mark.parametrize(
        ("name", "opened"),
        [("a.txt", open), ("a.txt.gz", gzip.open), ("a.txt.bz2", bz2.open), ("a.txt.zst", zstandard.open)],
    )
    def test_reads_back(self, tmp_path, name, opened):
        data = make_ranking(10, docs=10, n_features=12, seed=2)
        found = load_letor(write_letor(data, tmp_path / name))
        with opened(tmp_path / name, "rb") as file:
            assert file.read().count(b"\n") == len(data)
        for field in ("X", "y", "qid"):
            np.testing.assert_array_equal(getattr(found, field), getattr(data, field))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("sparse", [True, False])
    def test_every_bit(self, tmp_path, dtype, sparse):
        from scipy.sparse import csr_matrix

        from boostlist.datasets import RankingData

        rng = np.random.default_rng(0)
        X = (rng.standard_normal((300, 7)) * 10.0 ** rng.integers(-30, 30, (300, 7))).astype(dtype)
        X[::5] = np.round(X[::5] % 10, 3)
        X[1, :6] = [0.0, -0.0, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny, 1e-40]
        X[2] = [-1.5, 100, 0.1, 1 / 3, 1e15, -1e-4, 123456.75]
        y = np.where(np.arange(300) % 3 == 0, rng.random(300), np.arange(300) % 5)
        comments = np.array([f"docid = é{i}" if i % 2 else "" for i in range(300)], object)
        data = RankingData(csr_matrix(X) if sparse else X, y, np.repeat([5, 2**62, 0], 100), comments=comments)
        found = load_letor(
            write_letor(data, tmp_path / "a", zero_based=True),
            dtype=dtype,
            zero_based=True,
            sparse=sparse,
            comments=True,
        )
        assert found.y.tobytes() == y.tobytes()
        assert found.qid.tolist() == data.qid.tolist()
        assert found.comments.tolist() == comments.tolist()
        values = (found.X.data, data.X.data) if sparse else (found.X, data.X)
        # Any NaN is as good as another.
        assert np.nan_to_num(values[0], nan=7).tobytes() == np.nan_to_num(values[1], nan=7).tobytes()
        assert np.isnan(values[0]).sum() == 1

    def test_failure_leaves_nothing(self, tmp_path):
        def parts():
            yield make_ranking(1)
            raise KeyboardInterrupt

        (tmp_path / "a.txt").write_text("old")
        with pytest.raises(KeyboardInterrupt):
            write_letor(parts(), tmp_path / "a.txt")
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
        assert (tmp_path / "a.txt").read_text() == "old"

    def test_what_cannot_be_written(self, tmp_path):
        from boostlist.datasets import RankingData

        for data, message in [
            (RankingData([[1.0]], [0], ["a"]), "whole numbers"),
            (RankingData([[1.0]], [0], [-1]), "whole numbers"),
            (RankingData([[np.inf]], [0], [1]), "infinite"),
            (RankingData([[1.0]], [np.nan], [1]), "labels"),
            (RankingData([[1.0]], [0], [1], comments=["a\nb"]), "line feed"),
        ]:
            with pytest.raises(ValueError, match=message):
                write_letor(data, tmp_path / "a.txt")
        assert list(tmp_path.iterdir()) == []
