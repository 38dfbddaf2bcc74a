"""Simulated clicks against the formulas of their models, and positions in files and frames."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from boostlist.datasets import RankingData, load_letor, make_ranking, simulate_clicks, write_letor

GRADES = np.array([0.0, 2.0, 1.0, 0.0, 2.0, 1.0])
DATA = RankingData(np.arange(6.0)[:, None], GRADES, np.repeat(["a", "b"], 3))
SCORES = np.array([3.0, 2.0, 1.0, 1.0, 2.0, 3.0])
ATTRACTION = 0.1 + 0.9 * (2**GRADES - 1) / 3


def rates(log):
    """Return the share of clicks of each document at each position it was shown at."""
    return pd.Series(log.data.y).groupby([log.document, log.data.position]).mean()


def test_position_model():
    log = simulate_clicks(DATA, SCORES, sessions=40_000, eta=0.5, top=2)
    found = rates(log)
    assert found.index.tolist() == [(0, 1), (1, 2), (4, 2), (5, 1)]  # the order of the scores, cut at two
    expected = [ATTRACTION[0], ATTRACTION[1] / np.sqrt(2), ATTRACTION[4] / np.sqrt(2), ATTRACTION[5]]
    np.testing.assert_allclose(found, expected, atol=0.015)
    np.testing.assert_allclose(log.propensity, log.data.position**-0.5)


def test_random_order_and_share():
    log = simulate_clicks(DATA, sessions=20_000, top=None)
    np.testing.assert_allclose(pd.crosstab(log.document, log.data.position, normalize="index"), 1 / 3, atol=0.02)
    share = simulate_clicks(DATA, SCORES, sessions=20_000, random_share=0.3)
    moved = np.mean(share.data.position[share.document == 0] != 1)
    assert moved == pytest.approx(0.3 * 2 / 3, abs=0.02)


def test_cascade():
    log = simulate_clicks(DATA, SCORES, sessions=60_000, model="cascade", eta=1.0, noise=0.2)
    assert np.bincount(log.data.queries.start.searchsorted(np.flatnonzero(log.data.y), "right")).max() == 1
    a = 0.2 + 0.8 * (2**GRADES - 1) / 3
    expected = [a[0], (1 - a[0]) * a[1] / 2, (1 - a[0]) * (1 - a[1]) * a[2] / 3]
    np.testing.assert_allclose(rates(log)[:3], expected, atol=0.01)
    seen = pd.Series(log.propensity).groupby(log.document).first()
    np.testing.assert_allclose(seen[:3], [1, (1 - a[0]) / 2, (1 - a[0]) * (1 - a[1]) / 3], atol=1e-12)


def test_trust():
    log = simulate_clicks(DATA, SCORES, sessions=60_000, model="trust", eta=1.0)
    expected = [(a * (0.99 - k / 100) + (1 - a) * 0.65 / k) / k for a, k in zip(ATTRACTION[:3], (1, 2, 3), strict=True)]
    np.testing.assert_allclose(rates(log)[:3], expected, atol=0.015)


def test_same_seed_same_clicks_in_blocks(monkeypatch):
    whole = simulate_clicks(DATA, SCORES, sessions=50, seed=3)
    np.testing.assert_array_equal(whole.data.y, simulate_clicks(DATA, SCORES, sessions=50, seed=3).data.y)
    monkeypatch.setattr("boostlist.datasets.clicks._BLOCK", 7)
    parts = simulate_clicks(DATA, SCORES, sessions=50, seed=3)
    np.testing.assert_array_equal(parts.document, whole.document)
    np.testing.assert_array_equal(parts.data.qid, np.repeat(np.arange(50), 3))


def test_queries_are_drawn_by_weight():
    data = RankingData(DATA.X, DATA.y, DATA.qid, query_weight=[1.0, 3.0])
    log = simulate_clicks(data, sessions=4_000, top=1)
    assert np.mean(log.document >= 3) == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "dbn"}, "model must be one of"),
        ({"sessions": 0}, "sessions must be a whole number"),
        ({"eta": -1.0}, "eta must be"),
        ({"noise": 1.5}, "noise must be between 0 and 1"),
        ({"ranker": [1.0, 2.0]}, "ranker holds 2 scores but the data has 6 documents"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        simulate_clicks(DATA, **{"sessions": 5, **options})


def test_positions_travel_with_rows():
    log = simulate_clicks(make_ranking(5, docs=5), sessions=4, top=3).data
    chosen = log.select([2, 0])
    np.testing.assert_array_equal(chosen.position, [1, 2, 3, 1, 2, 3])
    joined = RankingData.concat([log.select([1]), log.select([0])])
    np.testing.assert_array_equal(joined.position, [1, 2, 3, 1, 2, 3])
    np.testing.assert_array_equal(log.lgb_dataset().get_position(), [0, 1, 2] * 4)
    with pytest.raises(ValueError, match=r"position has shape \(2,\) but X has 6 rows"):
        RankingData(DATA.X, DATA.y, DATA.qid, position=[1, 2])


def test_a_column_of_positions_is_no_feature():
    frame = pd.DataFrame({"qid": [1, 1, 2], "label": [0, 1, 0], "position": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
    data = RankingData.from_frame(frame)
    assert data.feature_names == ("x",)
    assert data.position.tolist() == ["a", "b", "a"]
    assert data.to_frame().columns.tolist() == ["qid", "label", "position", "x"]
    frame["position"] = [1, 2, 1]
    assert RankingData.from_frame(frame, position=None).feature_names == ("position", "x")
    assert RankingData.from_frame(frame, features=["position"]).position is None
    with pytest.raises(ValueError, match="no column 'slot'"):
        RankingData.from_frame(frame, position="slot")


def test_positions_in_letor_text(tmp_path):
    data = RankingData(np.eye(3), [1, 0, 0], [1, 1, 2], comments=["docid = x", "", "y"], position=[3, 1, 2])
    path = write_letor(data, tmp_path / "log.txt")
    assert path.read_text().splitlines()[0].endswith("# docid = x position = 3")
    for cache in (False, True):
        again = load_letor(path, comments=True, cache=cache)
        np.testing.assert_array_equal(again.position, data.position)
    assert write_letor(again, tmp_path / "again.txt").read_text() == path.read_text()
    assert load_letor(path).position is None
    words = RankingData(np.eye(2), [1, 0], [1, 1], position=["top", "side"])
    assert load_letor(write_letor(words, tmp_path / "w.txt"), comments=True).position.tolist() == ["top", "side"]
    some = load_letor(io.BytesIO(b"1 qid:1 1:1 # position = 2\n0 qid:1 1:0 # x\n"), comments=True)
    assert some.position is None
    with pytest.raises(ValueError, match="white space"):
        write_letor(RankingData(np.eye(1), [1], [1], position=["page 1"]), tmp_path / "p.txt")
