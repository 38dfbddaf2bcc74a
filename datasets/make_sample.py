"""Make the sample: 500 generated queries in five parts, as LETOR text. Run as ``python datasets/make_sample.py``."""

from __future__ import annotations

from pathlib import Path

from boostlist.datasets import RankingData, make_ranking, write_letor

PARTS = 5
FOLDER = Path(__file__).parent / "sample"


def make_sample() -> tuple[RankingData, ...]:
    """Return the five parts."""
    data = make_ranking(500, docs=30, n_features=25, grades=5, noise=0.8, interactions=1.0, blur=0.5, seed=2026)
    return data.split(*[1 / PARTS] * PARTS, seed=None)


if __name__ == "__main__":
    for number, part in enumerate(make_sample(), 1):
        print(write_letor(part, FOLDER / f"S{number}.txt.gz"), part)
