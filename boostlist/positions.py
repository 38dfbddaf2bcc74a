"""Positions: where each document was shown, as labels of any kind and their codes.

A position is whatever decides whether a document is seen: a rank, a page and a slot on it, a device and a rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.arrays import frozen

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Positions:
    """The position of each document; make one with `Positions.of`.

    Attributes
    ----------
    codes
        Place of each document's position in `labels`.
    labels
        The positions that occur, ascending if they can be ordered.
    """

    codes: IntArray
    labels: tuple[Any, ...]

    @classmethod
    def of(cls, position: Any, documents: int) -> Positions:
        """Make positions of one label for each document: numbers, strings, tuples, or rows of two or more columns.

        Raises
        ------
        ValueError
            If their number is wrong, or one is missing.
        """
        import pandas as pd

        rows = len(position) if hasattr(position, "__len__") else 0
        if rows != documents:
            raise ValueError(
                f"position has {rows:,} entries but there are {documents:,} documents; give the position of each"
            )
        index = _index(position)
        missing = np.flatnonzero(_missing(index))
        if missing.size:
            raise ValueError(
                f"position is missing in row {missing[0]}; give every document one, such as 'unknown' to those whose "
                "position was not recorded"
            )
        try:
            codes, labels = pd.factorize(index, sort=True)
        except TypeError:  # labels of several kinds, which have no order
            codes, labels = pd.factorize(index)
        return cls(frozen(np.asarray(codes, np.int64)), tuple(labels.tolist()))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: IntArray) -> Positions:
        """Return the positions of some rows, which may come more than once."""
        return Positions(frozen(self.codes[rows]), self.labels)

    @property
    def counts(self) -> FloatArray:
        """Number of documents of each position."""
        return self.sums(np.ones(len(self)))

    def sums(self, values: Any) -> FloatArray:
        """Return the sum of values over the documents of each position."""
        return np.bincount(self.codes, weights=values, minlength=len(self.labels)).astype(np.float64, copy=False)

    def series(self, bias: FloatArray) -> pd.Series[float]:
        """Return a number for each position as a series, by label."""
        return bias_series(dict(zip(self.labels, bias.tolist(), strict=True)))


def bias_series(bias: dict[Any, float]) -> pd.Series[float]:
    """Return biases by the label of their position as a series."""
    import pandas as pd

    labels = list(bias)
    index: Any = pd.Index(labels, tupleize_cols=False, name="position")
    return pd.Series(list(bias.values()), index=index, name="bias", dtype=np.float64)


def stored_bias(pairs: list[Any] | None) -> pd.Series[float] | None:
    """Return biases from pairs of label and bias as JSON holds them, which has lists for tuples; None for None."""
    return None if pairs is None else bias_series({hashable(label): bias for label, bias in pairs})


def hashable(label: Any) -> Any:
    """Return the label of a position as it was before it was stored."""
    return tuple(map(hashable, label)) if isinstance(label, list) else label


def _index(position: Any) -> Any:
    """Return labels as an index of pandas; rows of several columns become tuples."""
    import pandas as pd

    if getattr(position, "ndim", 1) == 2:
        columns = pd.DataFrame(position)
        return pd.Index(list(columns.itertuples(index=False, name=None)), tupleize_cols=False)
    values = position if hasattr(position, "dtype") else list(position)
    return pd.Index(values, tupleize_cols=False)


def _missing(index: Any) -> Any:
    import pandas as pd

    if index.dtype == object:
        return np.array([any(map(pd.isna, each)) if isinstance(each, tuple) else pd.isna(each) for each in index], bool)
    return index.isna()
