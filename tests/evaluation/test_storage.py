"""The output folder: what comes back from it, and what is damaged counts as not there."""

import numpy as np
import pytest

from boostlist.evaluation.folds import FoldFacts
from boostlist.evaluation.storage import Result, Store
from tests.test_files import flips

RESULT = Result(
    scores=np.array([0.5, -1.0, 2.0]),
    model="linear?C=1",
    fold=2,
    setting={"C": 1.0},
    vali={"ndcg@10": 0.5, "err": float("nan")},
    test={"ndcg@10": np.array([0.25, 0.75]), "err": np.array([0.5, 0.5])},
    train_seconds=1.5,
    rank_seconds=0.25,
    documents=9,
    history={"loss": [3.0, 1.0]},
    chosen_rounds=None,
    warnings=["slow"],
    largest=4.0,
)
FACTS = FoldFacts(
    fold=2,
    qid=np.array(["a", "b"]),
    length=np.array([4, 5]),
    relevant=np.array([1, 2]),
    best=np.array([1.0, 2.0]),
    labels=np.array([0.0, 1.0, 2.0]),
    parts={"test": {"documents": 9}},
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "out", {"seed": 0})


def same(found, given):
    assert type(found) is type(given)
    for name, value in vars(given).items():
        np.testing.assert_equal(getattr(found, name), value)


def test_round_trip(store):
    assert store.load("linear?C=1", 2, {"C": 1.0}) is None
    assert store.load_facts(2) is None
    store.save(RESULT)
    store.save_facts(FACTS)
    same(store.load("linear?C=1", 2, {"C": 1.0}), RESULT)
    same(store.load_facts(2), FACTS)
    for other in (("linear?C=2", 2, {"C": 1.0}), ("linear?C=1", 1, {"C": 1.0}), ("linear?C=1", 2, {"C": 2.0})):
        assert store.load(*other) is None
    assert store.load_facts(1) is None


def test_what_is_damaged_is_not_there(store):
    store.save(RESULT)
    store.save_facts(FACTS)
    result, facts = store.path("linear?C=1", 2, {"C": 1.0}), store.folder / "folds" / "fold2.npz"
    for path, load in ((result, lambda: store.load("linear?C=1", 2, {"C": 1.0})), (facts, lambda: store.load_facts(2))):
        good = path.read_bytes()
        for content in [b"", good[:50], *flips(good)]:
            path.write_bytes(content)
            assert load() is None
        path.write_bytes(good)
        assert load() is not None


def test_a_folder_belongs_to_one_experiment(store, tmp_path):
    store.save(RESULT)
    again = Store(store.folder, {"seed": 0})
    same(again.load("linear?C=1", 2, {"C": 1.0}), RESULT)
    with pytest.raises(ValueError, match=r"its seed is 0, here it is 1\. .*--fresh"):
        Store(store.folder, {"seed": 1})
    (store.folder / "report.html").write_text("old")
    fresh = Store(store.folder, {"seed": 1}, fresh=True)
    assert fresh.load("linear?C=1", 2, {"C": 1.0}) is None
    assert not (store.folder / "report.html").exists()
    fresh.save(RESULT)
    with pytest.raises(ValueError, match="its seed is 1, here it is 0"):
        Store(store.folder, {"seed": 0})
    (store.folder / "experiment.json").write_text("{")
    with pytest.raises(ValueError, match="its format is None"):
        Store(store.folder, {"seed": 1})
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file; choose a folder"):
        Store(tmp_path / "file", {"seed": 0})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"holds files of something else, such as thesis\.tex"):
        Store(tmp_path / "mine", {"seed": 0}, fresh=True)


def test_only_the_models_of_some_results_are_kept(store):
    for name in (store.path("linear?C=1", 2, {"C": 1.0}).stem, "other"):
        (store.models / f"{name}.npz").touch()
    assert store.has_model("linear?C=1", 2, {"C": 1.0})
    store.keep_models([RESULT])
    assert [path.stem for path in store.models.iterdir()] == [store.path("linear?C=1", 2, {"C": 1.0}).stem]
    store.keep_models([])
    assert not store.has_model("linear?C=1", 2, {"C": 1.0})
