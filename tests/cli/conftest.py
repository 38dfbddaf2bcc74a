from __future__ import annotations

import io
import sys

import pytest

from boostlist.datasets import make_ranking, write_letor


@pytest.fixture
def letor(tmp_path):
    """A small LETOR file and the data in it."""
    data = make_ranking(12, docs=8, n_features=12, seed=3)
    return write_letor(data, tmp_path / "data.txt"), data


@pytest.fixture
def feed(monkeypatch):
    """Put bytes on standard input."""

    def put(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put
