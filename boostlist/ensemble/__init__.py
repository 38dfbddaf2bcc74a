"""Ensembles: rankers trained on different losses, and what they agree on."""

from boostlist.ensemble.members import default_members
from boostlist.ensemble.ranker import EnsembleRanker

__all__ = ["EnsembleRanker", "default_members"]
