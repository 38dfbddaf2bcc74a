"""Description: numbers of documents, queries and grades of a data set, in short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Description:
    """What `RankingData.describe` finds; prints as a short table.

    Attributes
    ----------
    documents, queries, features
        Their numbers.
    grades
        Number of documents of each label.
    shortest, median_length, longest
        Documents in a query.
    empty_queries
        Number of queries without a relevant document (label > 0).
    """

    documents: int
    queries: int
    features: int
    grades: Mapping[float, int]
    shortest: int
    median_length: float
    longest: int
    empty_queries: int

    def __str__(self) -> str:
        shown = list(self.grades.items())[:10]
        grades = ", ".join(f"{grade:g}: {count:,} ({count / self.documents:.1%})" for grade, count in shown)
        more = f", ... ({len(self.grades):,} different labels)" if len(self.grades) > len(shown) else ""
        return (
            f"documents      {self.documents:,}\n"
            f"queries        {self.queries:,}, of which {self.empty_queries:,} without a relevant document\n"
            f"features       {self.features:,}\n"
            f"grades         {grades}{more}\n"
            f"list length    {self.shortest:,} to {self.longest:,}, median {self.median_length:,g}"
        )
