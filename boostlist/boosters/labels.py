"""Further labels of data that a host holds: a Dataset or a DMatrix has room for one vector.

In ``lgb.train`` and ``xgb.train`` the objective has them, an entry for each row: `RowLabels`. On a cluster, where rows
move to their workers with all that the host knows of them, the host's label of a document is the number of its
combination of labels, and the objective has the table of combinations: `CodedLabels`. Hosts keep labels in float32,
which holds numbers up to 2^24.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from boostlist._typing import FloatArray
from boostlist.arrays import frozen, vector
from boostlist.boosters.objective import Objective
from boostlist.losses.base import Loss
from boostlist.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_MOST_COMBINATIONS = 2**24


def with_labels(loss: Loss | Objective, labels: Mapping[str, ArrayLike]) -> Objective:
    """Return an objective that has further labels for the rows of its training data; `boostlist.objectives` has it."""
    objective = loss.objective() if isinstance(loss, Loss) else loss
    if not isinstance(objective, Objective):
        raise TypeError(f"with_labels takes a loss or an objective of boostlist, got {loss!r}")
    if not hasattr(labels, "items"):
        raise TypeError(f"labels go by name, {{'purchase': array}} or a data frame; got {type(labels).__name__}")
    missing = [label for label in objective.loss.by_label() if label not in (None, *labels)]
    if missing:
        raise ValueError(f"{objective.loss!r} needs the label {missing[0]!r}; given are {', '.join(map(repr, labels))}")
    return replace(objective, labels=RowLabels.of(labels))


@dataclass(frozen=True, eq=False)
class RowLabels:
    """Labels by name, with an entry for each row of the data set that is trained on."""

    named: Mapping[str, FloatArray]

    @classmethod
    def of(cls, labels: Mapping[str, ArrayLike]) -> Self:
        """Copy labels."""
        return cls({name: frozen(vector(values, f"labels[{name!r}]")) for name, values in labels.items()})

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # LightGBM copies its parameters deeply, and these never change

    def add_to(self, queries: Queries, owner: Any) -> Queries:
        """Return the lists of a data set with all labels; of a subset of a LightGBM Dataset, those of its rows."""
        rows = getattr(owner, "used_indices", None)
        return queries.with_labels({name: v if rows is None else v[rows] for name, v in self.named.items()})


@dataclass(frozen=True)
class CodedLabels:
    """A table of combinations of labels, a row for each; a host's label is the number of a row.

    Attributes
    ----------
    names
        Names of the labels, the main one first.
    table
        The combinations.
    """

    names: tuple[str, ...]
    table: tuple[tuple[float, ...], ...]

    @classmethod
    def of_parts(cls, names: Sequence[str], combinations: Sequence[FloatArray]) -> Self:
        """Make the table of what occurs in the parts of some data."""
        table = np.unique(np.concatenate(combinations), axis=0)
        if len(table) > _MOST_COMBINATIONS:
            raise ValueError(
                f"labels have {len(table):,} different combinations; round them: {_MOST_COMBINATIONS:,} fit"
            )
        return cls(tuple(names), tuple(map(tuple, table.tolist())))

    def codes(self, queries: Queries) -> FloatArray:
        """Return the number of each document's combination."""
        found, inverse = np.unique(combinations_of(queries), axis=0, return_inverse=True)
        number = {combination: float(i) for i, combination in enumerate(self.table)}
        return np.array([number[tuple(each)] for each in found.tolist()])[inverse.reshape(-1)]

    def add_to(self, queries: Queries, owner: Any) -> Queries:
        """Return lists, whose labels are numbers of combinations, with the labels that these stand for."""
        columns = np.array(self.table)[queries.labels.astype(np.int64)].T
        return Queries.from_sizes(dict(zip(self.names, columns, strict=True)), queries.sizes, queries.weight)


def combinations_of(queries: Queries) -> FloatArray:
    """Return the labels of each document, a column for each."""
    return np.column_stack(list(queries.named.values()))
