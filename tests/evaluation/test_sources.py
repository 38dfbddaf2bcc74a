"""What data for a comparison is."""

from __future__ import annotations

import pytest

from boostlist.datasets import make_ranking, simulate_clicks
from boostlist.evaluation.sources import make_source


def test_positions_of_clicks_are_not_used():
    log = simulate_clicks(make_ranking(5, docs=5), sessions=10, top=3)
    with pytest.warns(UserWarning, match="positions of the data are not used"):
        make_source(log.data)
