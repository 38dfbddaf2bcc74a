"""Parametric rankers: scikit-learn estimators made of a design, a loss and a solver."""

from boostlist.models.kernel import KernelRanker
from boostlist.models.linear import LinearRanker
from boostlist.models.quadratic import QuadraticRanker
from boostlist.models.rank_cosine import RankCosineRanker
from boostlist.models.rank_svm import RankSVM
from boostlist.models.separate import BilinearRanker, DistanceRanker

__all__ = [
    "BilinearRanker",
    "DistanceRanker",
    "KernelRanker",
    "LinearRanker",
    "QuadraticRanker",
    "RankCosineRanker",
    "RankSVM",
]
