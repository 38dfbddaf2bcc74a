"""Models in files: the same predictions after loading, and clear errors for anything else."""

import json
import pickle
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import boostlist
from boostlist import LinearRanker, files, persistence
from boostlist.losses import CsListMLE, ListMLE, Pointwise, WeightedPL, registry
from tests.models.data import lists
from tests.models.test_ranking_estimator import ALL, frame


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_round_trip(name, kind, tmp_path):
    X, y, qid = lists()
    model = clone(ALL[name]).fit(kind(X), y, qid=qid)
    path = model.save(tmp_path / "m.npz")
    loaded = boostlist.load(path)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(kind(X)), model.predict(kind(X)))
    assert loaded.get_params() == model.get_params()
    assert loaded.n_features_in_ == 4
    assert list(tmp_path.iterdir()) == [path]


def test_names_of_features_are_kept(tmp_path):
    X, y, qid = lists()
    model = LinearRanker().fit(frame(X, qid), y)
    loaded = boostlist.load(model.save(tmp_path / "m.npz"))
    assert list(loaded.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame(X, qid).rename(columns={"a": "z"}))


@pytest.mark.parametrize(
    "loss",
    [
        *(loss() for loss in registry.values()),
        CsListMLE(k=5, gain=(0, 1, 5)),
        WeightedPL(grades=(0, 1, 2)),
        ListMLE() + 0.3 * Pointwise(),
    ],
    ids=repr,
)
def test_losses_are_kept(loss):
    stored = json.loads(json.dumps(persistence.encode(loss, "loss")))
    assert persistence.decode(stored) == loss


@pytest.fixture
def saved(tmp_path):
    X, y, qid = lists()
    return LinearRanker().fit(X, y, qid=qid).save(tmp_path / "m.npz")


def forge(path, version=2, **changes):
    """Change entries of the JSON, and make the sum right again."""
    about, arrays = files.read_archive(path, files.Kind("model", 2))
    files.write_archive(path, files.Kind("model", version), about | changes, arrays)


def test_cut_and_flipped_bytes_give_a_clear_error(saved):
    data = saved.read_bytes()
    damaged = [data[:length] for length in [0, 1, 10, len(data) // 2, len(data) - 1]]
    damaged += [data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in range(0, len(data), 11)]
    for content in damaged:
        saved.write_bytes(content)
        with pytest.raises(files.FileFormatError, match="not a model of boostlist, or is damaged; expected is"):
            boostlist.load(saved)


def test_foreign_files_and_versions(saved, tmp_path):
    foreign = {
        "text": b"hello",
        "pickle": pickle.dumps({"model": 1}),
        "npz": b"PK\x03\x04 cut short",
    }
    for name, data in foreign.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(ValueError, match="is not a model of boostlist, or is damaged; expected is") as caught:
            boostlist.load(path)
        assert caught.value.__context__ is None  # such as NumPy's advice to unpickle the file
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    np.save(tmp_path / "array.npy", np.ones(3))
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        archive.writestr("a.txt", "text")
    for name in ("other.npz", "array.npy", "plain.zip"):
        with pytest.raises(ValueError, match="is not a model of boostlist"):
            boostlist.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        boostlist.load(tmp_path / "nothing.npz")
    for changes, message in [
        ({"version": 3}, "has version 3 of the format.*Upgrade"),
        ({"version": 1}, "has version 1 of the format.*older boostlist: make the file anew"),
        ({"model": "os.system"}, "does not know"),
        ({"parameters": {"D": 1}}, "is damaged: its LinearRanker cannot be put together"),
        ({"parameters": {"loss": {"loss": "os.system", "parameters": {}}}}, "cannot be put together"),
        ({"parameters": None}, "does not say what model it holds"),
    ]:
        data = saved.read_bytes()
        forge(saved, **changes)
        with pytest.raises(ValueError, match=message):
            boostlist.load(saved)
        saved.write_bytes(data)


def test_an_array_of_objects_is_not_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    np.savez(tmp_path / "bomb.npz", header=np.array([Bomb()], dtype=object))
    with pytest.raises(ValueError, match="not a model of boostlist"):
        boostlist.load(tmp_path / "bomb.npz")


def test_what_cannot_be_saved_is_refused(tmp_path):
    X, y, qid = lists()
    model = boostlist.KernelRanker(kernel=lambda A, B: A @ B.T).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"kernel=.* cannot be saved"):
        model.save(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="not fitted"):
        LinearRanker().save(tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    data = saved.read_bytes()
    X, y, qid = lists(1)
    model = LinearRanker().fit(X, y, qid=qid)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(files, "_sum", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(saved)
    assert saved.read_bytes() == data
    assert list(saved.parent.iterdir()) == [saved]
