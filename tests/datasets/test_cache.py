"""The binary copy beside a file."""

import mmap
import os
import subprocess
import sys

import numpy as np
import pytest

from boostlist import files
from boostlist.datasets import cache, load_letor, make_ranking, write_letor
from boostlist.datasets import letor as letor_module


@pytest.fixture
def path(tmp_path):
    return write_letor(make_ranking(5, docs=10, n_features=12), tmp_path / "a.txt")


@pytest.fixture
def reads(monkeypatch):
    """Count how often text is parsed."""
    count, read = [], letor_module.read
    monkeypatch.setattr(letor_module, "read", lambda *arguments: count.append(1) or read(*arguments))
    return count


def copies(folder):
    return sorted(folder.glob("*.boostlist"))


def same(a, b):
    for name in ("y", "qid", "comments"):
        mine, theirs = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    if a.is_sparse:
        assert b.is_sparse
        for name in ("data", "indices", "indptr", "shape"):
            np.testing.assert_array_equal(getattr(a.X, name), getattr(b.X, name))
    else:
        np.testing.assert_array_equal(a.X, b.X)
    assert a.X.dtype == b.X.dtype


@pytest.mark.parametrize("options", [{}, {"dtype": "float64"}, {"sparse": True}, {"comments": True}])
def test_second_load_reads_the_copy(tmp_path, path, reads, options):
    path.write_text("2 qid:1 1:0.5 7:2 # a\n0 qid:1 2:NULL # docid = é\n1 qid:5\n", encoding="utf-8")
    plain = load_letor(path, **options)
    loaded = [load_letor(path, cache=True, **options) for _ in range(3)]
    assert len(reads) == 2
    for data in loaded:
        same(plain, data)
    values = loaded[1].X.data if loaded[1].is_sparse else loaded[1].X
    assert not values.flags.writeable
    assert len(copies(tmp_path)) == 1
    assert loaded[1].queries.n_queries == 2


def test_options_have_copies_of_their_own(tmp_path, path, reads):
    for options in ({}, {"dtype": "float64"}, {"n_features": 20}, {"null": 0}, {"absent": np.nan}):
        for _ in range(2):
            load_letor(path, cache=True, **options)
    assert len(reads) == 5
    assert len(copies(tmp_path)) == 5


@pytest.mark.parametrize("change", ["size", "time"])
def test_stale_copy_is_made_anew(tmp_path, path, reads, change):
    load_letor(path, cache=True)
    if change == "size":
        stat = path.stat()
        path.write_text("1 qid:1 1:5\n")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    else:
        os.utime(path, ns=(0, 0))
    same(load_letor(path, cache=True), load_letor(path))
    load_letor(path, cache=True)
    assert len(reads) == 3
    assert len(copies(tmp_path)) == 1


def damages(content):
    yield b""
    yield content[:10]
    yield content[:-1]
    yield content[:-64]
    yield content[: len(content) // 2]
    yield content + b"\0"
    yield b"\0" * len(content)
    for at in [0, 17, 25, 40, 100, *range(130, len(content), 101)]:
        yield content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]


def test_damaged_copy_is_made_anew(tmp_path, path, reads):
    expected = load_letor(path, cache=True)
    (copy,) = copies(tmp_path)
    good = copy.read_bytes()
    for number, damaged in enumerate(damages(good), 2):
        copy.write_bytes(damaged)
        same(load_letor(path, cache=True), expected)
        assert len(reads) == number
        assert copy.read_bytes() == good


@pytest.mark.parametrize("way", [True, "map"])
def test_forged_copy_is_made_anew(tmp_path, path, reads, way):
    expected = load_letor(path, cache=way)
    (copy,) = copies(tmp_path)
    about, arrays = files.read_archive(copy, cache._COPY)
    forged = [
        (about, {}),
        (about, arrays | {"y": arrays["y"][:-1]}),
        (about, arrays | {"values": np.array("X")}),
        (about, arrays | {"indices": arrays["qid"]}),
        (about, arrays | {"comment_ends": arrays["y"]}),
        ({}, arrays),
        (about | {"key": None}, arrays),
    ]
    for number, contents in enumerate(forged, 2):
        files.write_archive(copy, cache._COPY, *contents)
        same(load_letor(path, cache=way), expected)
        assert len(reads) == number


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe_or_link_in_place_of_the_copy_is_replaced(tmp_path, path, reads):
    expected = load_letor(path, cache=True)
    (copy,) = copies(tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    for number, put in enumerate((os.mkfifo, lambda place: place.symlink_to(precious)), 2):
        copy.unlink()
        put(copy)
        for _ in range(2):
            same(load_letor(path, cache=True), expected)
        assert len(reads) == number
        assert copy.is_file()
    assert precious.read_text() == "years of work"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="regular files"):
        load_letor(tmp_path / "pipe", cache=True, max_bytes=1000)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_copy_of_another_user_is_replaced(tmp_path, path, reads, monkeypatch):
    expected = load_letor(path, cache=True)
    own = path.stat().st_uid
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: own + 1)
        assert cache._owners([path]) == {own, own + 1}
    monkeypatch.setattr(cache, "_owners", lambda paths: {os.geteuid() + 1})
    same(load_letor(path, cache=True), expected)
    assert len(reads) == 2


def test_copy_that_is_cut_off_after_it_was_loaded(tmp_path, path):
    code = (
        "import os, sys; from boostlist.datasets import load_letor\n"
        "for _ in range(2): data = load_letor(sys.argv[1], cache=True)\n"
        "(copy,) = [name for name in os.listdir() if name.endswith('.boostlist')]\n"
        "os.truncate(copy, 0); print(data.X.shape, float(data.X.sum()))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=tmp_path, capture_output=True, text=True)
    plain = load_letor(path)
    assert (done.returncode, done.stdout) == (0, f"{plain.X.shape} {float(plain.X.sum())}\n")


def test_mapped_copy(tmp_path, path, reads):
    for _ in range(3):
        data = load_letor(path, cache="map")
    assert len(reads) == 1
    base = data.X
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj, mmap.mmap)
    same(data, load_letor(path))
    with pytest.raises(ValueError, match="cache must be"):
        load_letor(path, cache="yes")


def test_folder_that_cannot_be_written(tmp_path, path, reads, monkeypatch):
    user = tmp_path / "user"
    monkeypatch.setenv("XDG_CACHE_HOME", str(user))
    write = cache.write_archive

    def refuse(place, *contents, **options):
        if place.parent == tmp_path:
            raise PermissionError(13, "Permission denied")
        return write(place, *contents, **options)

    monkeypatch.setattr(cache, "write_archive", refuse)
    same(load_letor(path, cache=True), load_letor(path, cache=True))
    assert len(reads) == 1
    assert copies(tmp_path) == []
    assert len(copies(user / "boostlist")) == 1

    user.joinpath("boostlist", copies(user / "boostlist")[0].name).unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))  # a file, so no folder can be made in it
    with pytest.warns(UserWarning, match=r"no cache copy could be written \(.*: Permission denied; .*: "):
        load_letor(path, cache=True)


def test_failed_write_leaves_nothing(tmp_path, path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_add_array", fail)
    with pytest.raises(KeyboardInterrupt):
        load_letor(path, cache=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_file_that_changes_while_it_is_loaded_is_not_cached(tmp_path, path, monkeypatch):
    read = letor_module.read

    def slow_read(*arguments):
        data = read(*arguments)
        os.utime(path, ns=(0, 0))
        return data

    monkeypatch.setattr(letor_module, "read", slow_read)
    load_letor(path, cache=True)
    assert copies(tmp_path) == []


def test_several_files_have_one_copy(tmp_path, path, reads):
    other = tmp_path / "b.txt"
    other.write_text("1 qid:999 1:5\n")
    first = load_letor([path, other], cache=True)
    same(first, load_letor([path, other], cache=True))
    assert len(reads) == 1
    other.write_text("1 qid:999 1:55\n")
    assert load_letor([path, other], cache=True).X[-1, 0] == 55


def test_file_objects_cannot_be_cached(path):
    with path.open("rb") as file, pytest.raises(ValueError, match="paths"):
        load_letor(file, cache=True)


def test_processes_loading_at_once(tmp_path, path):
    code = (
        "import sys; from boostlist.datasets import load_letor\n"
        "for _ in range(20): print(float(load_letor(sys.argv[1], cache=True).X.sum()))\n"
        "import os; os.utime(sys.argv[1])\n"
        "for _ in range(20): print(float(load_letor(sys.argv[1], cache=True).X.sum()))"
    )
    command = [sys.executable, "-c", code, str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    expected = str(float(load_letor(path).X.sum()))
    for process in running:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert set(output.split()) == {expected}
    assert len(copies(tmp_path)) == 1
    assert len(list(tmp_path.iterdir())) == 2
