"""Lists: the documents of some queries as boosters take them, with features and both kinds of weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.checks import check_init_score, check_weight
from boostlist.positions import Positions
from boostlist.propensities import by_click
from boostlist.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


NO_WEIGHT = "all weights are 0, so there is nothing to learn; give some document a positive weight"
"""What is said of data without weight."""


@dataclass(frozen=True, eq=False)
class Lists:
    """Queries, and what only boosters need beside them; make them with `Lists.of`.

    Attributes
    ----------
    queries
        The lists, as losses are bound to them: with query weights, which are 1 where documents have weights of their
        own.
    document_weight
        Weights that differ within a query, or None.
    X
        Features, a row a document; None where the host has them.
    position
        Where each document was shown, or None.
    init_score
        Scores that trees add to, or None for 0.
    """

    queries: Queries
    document_weight: FloatArray | None = None
    X: Any = None
    position: Positions | None = None
    init_score: FloatArray | None = None

    @classmethod
    def of(cls, queries: Queries, weight: ArrayLike | None = None, X: Any = None, position: Any = None) -> Lists:
        """Make lists with weights by query or by document; those by document that agree within queries are by query.

        Raises
        ------
        ValueError
            If weights are neither as many as documents nor as queries, or one is negative or not finite; if positions
            are not as many as documents.
        """
        shown = None if position is None else Positions.of(position, queries.n_documents)
        if weight is None:
            return cls(queries, None, X, shown)
        weight = check_weight(weight, queries.n_documents, queries.n_queries, "weight")
        if len(weight) == queries.n_queries:
            return cls(queries.with_weight(weight), None, X, shown)
        first = weight[queries.start[:-1]]
        if np.array_equal(np.repeat(first, queries.sizes), weight):
            return cls(queries.with_weight(first), None, X, shown)
        return cls(queries.with_weight(None), weight, X, shown)

    def by_click(self, propensity: ArrayLike, clip: float) -> tuple[Lists, IntArray]:
        """Return a list for each click, weighted by inverse propensity, and the row here of each of its documents."""
        queries, rows = by_click(self.queries, propensity, clip)
        weight = None if self.document_weight is None else self.document_weight[rows]
        return Lists(queries, weight), rows

    def starting_from(self, init_score: ArrayLike | None) -> Lists:
        """Return the lists with scores that trees add to, one for each document; None for 0.

        Raises
        ------
        ValueError
            If they are not as many as documents, or one is not finite.
        """
        if init_score is None:
            return self
        return replace(self, init_score=check_init_score(init_score, self.queries.n_documents))

    def starts_like(self, other: Lists) -> bool:
        """Whether trees add to the same scores."""
        one, two = self.init_score, other.init_score
        return one is two or (one is not None and two is not None and np.array_equal(one, two))

    @property
    def weight_by_document(self) -> FloatArray | None:
        """A weight for each document, None if all are 1."""
        if self.document_weight is not None:
            return self.document_weight
        weight = self.queries.weight
        return None if (weight == 1).all() else np.repeat(weight, self.queries.sizes)

    @property
    def judged(self) -> Queries:
        """The lists as metrics see them: a query weighs what its documents do in the mean."""
        if self.document_weight is None:
            return self.queries
        total = np.add.reduceat(self.document_weight, self.queries.start[:-1])
        return self.queries.with_weight(total / self.queries.sizes)

    @property
    def without_weight(self) -> bool:
        """Whether there are documents, and all of them have weight 0."""
        weight = self.queries.weight if self.document_weight is None else self.document_weight
        return bool(weight.size) and not weight.any()
