"""Parametric rankers: scikit-learn estimators made of a design, a loss and a solver."""

from boostlist.models.kernel import KernelRanker
from boostlist.models.linear import LinearRanker
from boostlist.models.quadratic import QuadraticRanker
from boostlist.models.rank_svm import RankSVM

__all__ = ["KernelRanker", "LinearRanker", "QuadraticRanker", "RankSVM"]
