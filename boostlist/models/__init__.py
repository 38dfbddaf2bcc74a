"""Parametric rankers: scikit-learn estimators made of a design, a loss and a solver."""

from boostlist.models.linear import LinearRanker

__all__ = ["LinearRanker"]
