"""TreeRanker in files: the host's own format, with a note; what cannot be read or written."""

from __future__ import annotations

import os

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import boostlist
from boostlist.boosters import model_file
from boostlist.boosters.hosts import CHECKSUM, NOTE, host
from boostlist.files import FileFormatError
from boostlist.losses import CsListMLE, Pointwise
from tests.boosters.rankers import TEST, TRAIN, fitted, frame, ranker


@pytest.mark.parametrize(("backend", "suffix"), [("lightgbm", ".txt"), ("xgboost", ".ubj"), ("xgboost", ".json")])
class TestFiles:
    def test_round_trip(self, backend, suffix, tmp_path):
        objective = CsListMLE(k=5) + 0.2 * Pointwise()
        model = ranker(backend, objective, random_state=1).fit(frame(TRAIN), TRAIN.y, eval_set=[(frame(TEST), TEST.y)])
        loaded = boostlist.load(model.save(tmp_path / f"model{suffix}"))
        np.testing.assert_array_equal(loaded.predict(frame(TEST)), model.predict(frame(TEST)))
        assert loaded.get_params() == model.get_params()
        assert (loaded.objective_, loaded.evals_result_) == (model.objective_, model.evals_result_)
        assert loaded.n_estimators_ == 12
        with pytest.raises(ValueError, match="feature names should match"):
            loaded.predict(frame(TEST).drop(columns=TEST.names[0]))

    def test_plain_hosts_read_it(self, backend, suffix, tmp_path):
        model = fitted(backend)
        path = str(model.save(tmp_path / f"model{suffix}"))
        assert b"TreeRanker" in (tmp_path / f"model{suffix}").read_bytes(), "the note says what it is"
        if backend == "lightgbm":
            scores = lgb.Booster(model_file=path).predict(TEST.X)
        else:
            scores = xgb.Booster(model_file=path).predict(xgb.DMatrix(TEST.X))
        np.testing.assert_array_equal(scores, model.predict(TEST.X))

    def test_continues(self, backend, suffix, tmp_path):
        loaded = boostlist.load(fitted(backend).save(tmp_path / f"model{suffix}"))
        more = ranker(backend, n_estimators=8).fit(TRAIN.X, TRAIN.y, TRAIN.qid, init_model=loaded)
        assert more.n_estimators_ == 20
        np.testing.assert_allclose(more.predict(TEST.X), fitted(backend, n_estimators=20).predict(TEST.X), atol=1e-4)

    def test_damaged_and_foreign_files(self, backend, suffix, tmp_path):
        path = fitted(backend).save(tmp_path / f"model{suffix}")
        content = path.read_bytes()
        for length in (len(content) // 3, len(content) // 2, *range(len(content) - 60, len(content), 7)):
            path.write_bytes(content[:length])
            with pytest.raises(ValueError, match="is damaged"):
                boostlist.load(path)
        fitted(backend).booster_.save_model(str(path))
        with pytest.raises(ValueError, match=f"plain model of {backend}, which has no checksum"):
            boostlist.load(path)

    def test_flipped_bits_never_reach_the_host(self, backend, suffix, tmp_path, monkeypatch):
        path = fitted(backend, n_estimators=2).save(tmp_path / f"model{suffix}")
        content = path.read_bytes()
        monkeypatch.setattr(f"boostlist.boosters.{backend}_host.from_bytes", lambda _: pytest.fail("was read"))
        for i in np.random.default_rng(0).choice(len(content) * 8, 300, replace=False):
            damaged = bytearray(content)
            damaged[i // 8] ^= 1 << (i % 8)
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"is damaged|is not a model|not a regular|no member"):
                boostlist.load(path)

    @pytest.mark.parametrize(
        "forge",
        [
            lambda note: note.replace('"version": 2', '"version": 1'),
            lambda note: note.replace('"version": 2', '"version": 3'),
            lambda note: note.replace('"parameters"', '"parametres"'),
            lambda note: note.replace('"n_features_in_"', '"n_features"'),
            lambda note: note.replace('"cs_listmle"', '"no_such"'),
            lambda note: "[1, 2]",
            lambda note: "7",
            lambda note: "{",
        ],
    )
    def test_forged_notes_are_one_clear_error(self, backend, suffix, tmp_path, forge):
        path = fitted(backend, n_estimators=2).save(tmp_path / f"model{suffix}")
        booster, note = host(backend).from_bytes(path.read_bytes())
        notes = {NOTE: forge(note), CHECKSUM: "00000000"}
        path.write_bytes(model_file._sealed(host(backend).to_bytes(booster, notes, suffix)))
        with pytest.raises(FileFormatError, match=r"is damaged: |has version 1 .*anew|has version 3 .*Upgrade"):
            boostlist.load(path)

    def test_a_note_without_its_checksum(self, backend, suffix, tmp_path):
        path = fitted(backend, n_estimators=2).save(tmp_path / f"model{suffix}")
        path.write_bytes(path.read_bytes().replace(CHECKSUM.encode(), b"boostlist_checkzum"))
        with pytest.raises(FileFormatError, match="is damaged: it is not what was written"):
            boostlist.load(path)

    def test_a_suffix_that_xgboost_does_not_know(self, backend, suffix, tmp_path):
        if backend == "lightgbm":
            fitted(backend).save(tmp_path / "model.any")
            return
        with pytest.raises(ValueError, match=r"must end in \.json or \.ubj, not .*model\.txt"):
            fitted(backend).save(tmp_path / "model.txt")
        assert not list(tmp_path.iterdir())

    def test_a_failed_save_leaves_the_old_file(self, backend, suffix, tmp_path, monkeypatch):
        path = fitted(backend).save(tmp_path / f"model{suffix}")
        before = path.read_bytes()

        def fail(*_):
            raise OSError("no space left")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no space left"):
            fitted(backend, n_estimators=2).save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


def test_a_callable_cannot_be_saved(tmp_path):
    model = fitted()
    model.extra = print
    with pytest.raises(ValueError, match=r"extra=.* cannot be saved"):
        model.save(tmp_path / "model.txt")
    assert not list(tmp_path.iterdir())
