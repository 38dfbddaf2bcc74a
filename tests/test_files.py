"""Files that are whole or not there, and archives that notice damage."""

import json
import os
import stat
import zipfile

import numpy as np
import pytest

from boostlist import files
from boostlist.files import FileFormatError, Kind, read_archive, write_archive

THING = Kind("thing", 7, "a hint")
ABOUT = {"list": [1, 2.5, "ü"], "none": None}
ARRAYS = {
    "whole": np.arange(5),
    "ndcg@10": np.array([0.1, np.nan]),
    "words": np.array(["a", "größer"]),
    "none": np.empty((0, 3), np.float32),
    "scalar": np.array(3.5),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "truth": np.array([True, False]),
}


@pytest.fixture
def path(tmp_path):
    return write_archive(tmp_path / "a.npz", THING, ABOUT, ARRAYS)


def flips(content):
    """Yield the content with one bit changed: some bytes, and each of the last 90, where what it is stands."""
    for at in [*range(0, len(content) - 90, 13), *range(len(content) - 90, len(content))]:
        yield content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]


class TestArchive:
    @pytest.mark.parametrize("mapped", [False, True])
    def test_round_trip(self, path, mapped):
        found = read_archive(path, THING, mapped=mapped)
        assert found.about == ABOUT
        assert list(found.arrays) == list(ARRAYS)
        for name, array in found.arrays.items():
            np.testing.assert_array_equal(array, ARRAYS[name])
            assert array.dtype == ARRAYS[name].dtype
            assert array.flags.aligned
            assert not array.flags.writeable

    def test_numpy_and_zip_read_it(self, path):
        with np.load(path) as found:
            assert found.files == [*ARRAYS, "about.json"]
            layout = json.loads(found["about.json"])["arrays"]
            assert all(offset % 64 == 0 for _, _, offset in layout.values())
            for name, array in ARRAYS.items():
                np.testing.assert_array_equal(found[name], array)
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None

    def test_same_contents_same_bytes(self, path, tmp_path):
        assert write_archive(tmp_path / "b.npz", THING, ABOUT, ARRAYS).read_bytes() == path.read_bytes()

    def test_no_damage_passes(self, path):
        good = path.read_bytes()
        swapped = bytearray(good)
        swapped[64:128], swapped[192:256] = good[192:256], good[64:128]
        damaged = [good[:size] for size in (0, 1, 7, 50, 129, len(good) // 2, len(good) - 1)]
        for content in [*damaged, good + b"\0", good[1:], good[:500] + good[564:], bytes(swapped), *flips(good)]:
            path.write_bytes(content)
            with pytest.raises(FileFormatError, match=r"a\.npz is not a thing of boostlist, or is damaged; a hint"):
                read_archive(path, THING)
        for content in (b"", b"1234567", b"12345678", damaged[-1]):
            path.write_bytes(content)
            with pytest.raises(FileFormatError):
                read_archive(path, THING, mapped=True)

    def test_only_a_mapped_file_changes_what_was_read(self, path):
        """What is read is a copy, unless mapping was asked for."""
        for mapped in (False, True):
            write_archive(path, THING, ABOUT, ARRAYS)
            options = {"mapped": True} if mapped else {}
            array = read_archive(path, THING, **options).arrays["whole"]
            with path.open("r+b") as file:
                file.write(b"\xff" * 300)
            assert (array.tolist() == [0, 1, 2, 3, 4]) is not mapped

    def test_every_block_counts(self, path, monkeypatch):
        monkeypatch.setattr(files, "_BLOCK_BYTES", 1000)
        write_archive(path, THING, {}, {"a": np.arange(1000)})
        assert read_archive(path, THING).arrays["a"][-1] == 999
        good = path.read_bytes()
        for first, second in ((1000, 2000), (3000, 5000)):  # whole blocks that changed places
            content = bytearray(good)
            content[first : first + 1000] = good[second : second + 1000]
            content[second : second + 1000] = good[first : first + 1000]
            path.write_bytes(content)
            with pytest.raises(FileFormatError):
                read_archive(path, THING)

    def test_a_mapped_file_is_summed_once_but_anew_when_it_was_replaced(self, path, monkeypatch):
        sums, real = [], files._sum
        monkeypatch.setattr(files, "_sum", lambda blocks: sums.append(1) or real(blocks))
        for _ in range(3):
            read_archive(path, THING, mapped=True)
        assert len(sums) == 1
        damaged = bytearray(path.read_bytes())
        damaged[200] ^= 1
        files.write(path, bytes(damaged))
        with pytest.raises(FileFormatError):
            read_archive(path, THING, mapped=True)

    def test_other_kinds_and_versions(self, path):
        with pytest.raises(FileFormatError, match=r"not a book of boostlist, or is damaged$"):
            read_archive(path, Kind("book", 7))
        with pytest.raises(FileFormatError, match="has version 7 of the format; this boostlist reads version 8"):
            read_archive(path, Kind("thing", 8))

    @pytest.mark.parametrize(
        "text",
        [
            b"[]",
            b"{",
            b'{"about": {}, "arrays": []}',
            b'{"about": 1, "arrays": {}}',
            b'{"about": {}, "arrays": {"a": ["O", [1], 0]}}',
            b'{"about": {}, "arrays": {"a": ["<f8", [1000000], 0]}}',
            b'{"about": {}, "arrays": {"a": ["<f8", [-1], 0]}}',
            b'{"about": {}, "arrays": {"a": ["(", [1], 0]}}',
        ],
    )
    def test_forged_contents(self, path, text):
        good = path.read_bytes()
        trailer = f"boostlist thing 7 {len(good):016x} {len(text):016x} ".encode()
        forged = good + text + trailer
        path.write_bytes(forged + files.checksum(forged).encode())
        with pytest.raises(FileFormatError, match="not a thing"):
            read_archive(path, THING)

    def test_a_file_of_another_user_is_refused_where_owners_are_given(self, path):
        uid = path.stat().st_uid
        assert read_archive(path, THING, owners={uid}).about == ABOUT
        with pytest.raises(FileFormatError, match="another user"):
            read_archive(path, THING, owners={uid + 1})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
class TestPipesAndDevices:
    def test_are_not_read(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
            with pytest.raises((FileFormatError, IsADirectoryError)):
                read_archive(path, THING)

    def test_are_written_to_not_replaced(self, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        files.write(pipe, b"hello")
        assert os.read(reader, 100) == b"hello"
        os.close(reader)
        assert stat.S_ISFIFO(pipe.stat().st_mode)


class TestCreate:
    def test_nothing_is_there_before_the_end_and_nothing_after_a_failure(self, tmp_path):
        path = files.write(tmp_path / "a", b"old")

        def fail():
            with files.create(path) as file:
                file.write(b"new")
                assert path.read_bytes() == b"old"
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]
        files.write(path, b"new")
        assert path.read_bytes() == b"new"

    @pytest.mark.skipif(os.name == "nt", reason="needs permission bits and links")
    def test_permissions_are_those_of_a_new_file_and_links_stay(self, tmp_path):
        ordinary = tmp_path / "ordinary"
        ordinary.touch()
        written = files.write(tmp_path / ("long" * 60), b"x")
        assert written.stat().st_mode == ordinary.stat().st_mode
        link = tmp_path / "link"
        link.symlink_to(ordinary)
        files.write(link, b"y")
        assert link.is_symlink()
        assert ordinary.read_bytes() == b"y"
        write_archive(link, THING, {}, {})
        assert link.is_symlink()
        write_archive(link, THING, {}, {}, replace=True)
        assert not link.is_symlink()
