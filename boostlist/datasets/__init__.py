"""Ranking data: LETOR files and folds, a generator, and the sample that comes with the package."""

from boostlist.datasets._reader import LetorError
from boostlist.datasets.clicks import ClickLog, simulate_clicks
from boostlist.datasets.data import RankingData
from boostlist.datasets.folds import Fold, Folds, find_folds, load_fold, load_folds, load_sample, sample_folder
from boostlist.datasets.generation import make_ranking, write_ranking
from boostlist.datasets.letor import load_letor
from boostlist.datasets.propensities import estimate_propensities
from boostlist.datasets.writing import write_letor

__all__ = [
    "ClickLog",
    "Fold",
    "Folds",
    "LetorError",
    "RankingData",
    "estimate_propensities",
    "find_folds",
    "load_fold",
    "load_folds",
    "load_letor",
    "load_sample",
    "make_ranking",
    "sample_folder",
    "simulate_clicks",
    "write_letor",
    "write_ranking",
]
