"""Queries: labels, list boundaries and query weights, checked once. The only door for list data.

A query is a list of documents that are ranked against each other; its documents stand in adjacent rows. Losses, metrics
and trainers take a `Queries` and never look at sizes or ids themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.arrays import frozen, vector, whole_numbers
from boostlist.frames import columns_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist.levels import Levels

    Labels = ArrayLike | Mapping[str, ArrayLike] | Any


def _thawed(labels: FloatArray, start: IntArray, weight: FloatArray, named: dict[str, FloatArray]) -> Queries:
    return Queries(frozen(labels), frozen(start), frozen(weight), {name: frozen(each) for name, each in named.items()})


def _vectors(labels: Any) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the main label and, if they have names, all labels by name: the first one is the main one."""
    columns = columns_of(labels)
    if columns is None:
        return vector(labels, "labels"), {}
    if not columns:
        raise ValueError("labels has no columns; give at least one label")
    named = {name: vector(values, f"labels[{name!r}]") for name, values in columns.items()}
    first, *others = named
    for name in others:
        if len(named[name]) != len(named[first]):
            raise ValueError(
                f"labels[{name!r}] has {len(named[name]):,} rows but labels[{first!r}] has {len(named[first]):,}"
            )
    return named[first], named


def _checked_weight(query_weight: ArrayLike | None, queries: int) -> FloatArray:
    weight = np.ones(queries) if query_weight is None else vector(query_weight, "query_weight")
    if len(weight) != queries:
        raise ValueError(
            f"query_weight has {len(weight):,} entries but there are {queries:,} queries; give one weight a query"
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(f"query_weight[{bad[0]}] is {weight[bad[0]]}; weights must be finite and >= 0")
    return frozen(weight)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Queries:
    """Lists of documents with labels, ready for losses and metrics.

    Make one with `Queries.from_sizes` or `Queries.from_qid`; both copy and check their input. All arrays are read-only.

    Attributes
    ----------
    labels
        Relevance of each document: finite, >= 0, otherwise any real number.
    start
        Row at which each query begins, and at the end the number of rows: query q is ``labels[start[q]:start[q + 1]]``.
    weight
        Weight of each query, finite and >= 0.
    named
        All labels by name, the main one among them, where documents have several: clicks, purchases. Else empty.
    """

    labels: FloatArray
    start: IntArray
    weight: FloatArray
    named: Mapping[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def from_sizes(cls, labels: Labels, sizes: ArrayLike, query_weight: ArrayLike | None = None) -> Queries:
        """Make queries from the number of documents in each, as LightGBM's and XGBoost's ``group`` has it.

        Parameters
        ----------
        labels
            Relevance of each document, >= 0. NumPy arrays, lists and pandas Series alike. Several labels are a mapping
            from names to these, or a data frame with a column for each; the first is the main one.
        sizes
            Number of documents of each query, in row order.
        query_weight
            Weight of each query; None means 1.

        Raises
        ------
        ValueError
            If labels, sizes or weights are not what they must be; the message names the row or query and the remedy.

        Examples
        --------
        >>> from boostlist import Queries
        >>> Queries.from_sizes([2, 0, 1, 0, 0], sizes=[3, 2])
        Queries(2 queries, 5 documents, labels 0 to 2)
        """
        (main, named), sizes = _vectors(labels), whole_numbers(sizes, "sizes")
        bad = np.flatnonzero(sizes < 1)
        if bad.size:
            q, remedy = bad[0], "drop queries without any"
            if len(sizes) == len(main):
                remedy = "one id for each row, as this may be, is qid, or goes to Queries.from_qid"
            raise ValueError(f"sizes[{q}] is {sizes[q]}: a query has at least one document; {remedy}")
        if sizes.sum() != len(main):
            raise ValueError(
                f"sizes sum to {sizes.sum():,} but there are {len(main):,} labels; sizes, or group, hold the number of "
                "rows of each query, in row order (one id for each row is qid, or goes to Queries.from_qid)"
            )
        return cls._checked(main, named, np.concatenate(([0], np.cumsum(sizes))), query_weight)

    @classmethod
    def from_qid(cls, labels: Labels, qid: ArrayLike, query_weight: ArrayLike | None = None) -> Queries:
        """Make queries from one query id per document.

        Parameters
        ----------
        labels
            Relevance of each document, or several labels by name, as for `from_sizes`.
        qid
            Id of each document's query: numbers or strings. The rows of a query must be adjacent; ids need not ascend.
        query_weight
            Weight of each query, in the order in which queries appear; None means 1.

        Raises
        ------
        ValueError
            As `from_sizes` does, and if a query's rows are not adjacent: the message says how to sort them.

        Examples
        --------
        >>> from boostlist import Queries
        >>> Queries.from_qid([2, 0, 1, 0, 0], qid=["b", "b", "b", "a", "a"])
        Queries(2 queries, 5 documents, labels 0 to 2)
        """
        main, named = _vectors(labels)
        ids = np.asarray(qid)
        if ids.ndim and len(ids) != len(main):
            hint = ""
            if ids.ndim == 1 and ids.dtype.kind in "iu" and ids.sum() == len(main):
                hint = "; sizes of queries, as these may be, are group, or go to Queries.from_sizes"
            raise ValueError(f"qid has {len(ids):,} rows but there are {len(main):,} labels{hint}")
        start = query_boundaries(ids)
        return cls._checked(main, named, start, query_weight)

    @classmethod
    def _checked(
        cls, main: FloatArray, named: dict[str, FloatArray], start: IntArray, query_weight: ArrayLike | None
    ) -> Queries:
        for what, labels in [(f"labels[{name!r}]", each) for name, each in named.items()] or [("labels", main)]:
            bad = np.flatnonzero(~(np.isfinite(labels) & (labels >= 0)))
            if bad.size:
                row = int(bad[0])
                q = int(np.searchsorted(start, row, side="right")) - 1
                raise ValueError(
                    f"{what}[{row}] is {labels[row]} (query {q}); labels must be finite and >= 0"
                    + ("; drop unjudged documents or give them a grade" if not labels[row] >= 0 else "")
                )
        weight = _checked_weight(query_weight, len(start) - 1)
        return cls(frozen(main), frozen(start), weight, {name: frozen(each) for name, each in named.items()})

    def with_weight(self, query_weight: ArrayLike | None) -> Queries:
        """Return the same lists with other query weights, None for 1; what was computed of the labels is kept."""
        other = Queries(self.labels, self.start, _checked_weight(query_weight, self.n_queries), self.named)
        if "levels" in self.__dict__:
            other.__dict__["levels"] = self.levels
        return other

    def with_labels(self, labels: Mapping[str, ArrayLike]) -> Queries:
        """Return the same lists with further labels by name; the main one stays.

        Raises
        ------
        ValueError
            As `from_sizes` does, and if a label has not one entry for each document.
        """
        main, named = _vectors(labels)
        for name, each in named.items():
            if len(each) != self.n_documents:
                raise ValueError(
                    f"labels[{name!r}] has {len(each):,} rows but there are {self.n_documents:,} documents"
                )
        checked = Queries._checked(main, named, self.start, self.weight)
        return Queries(self.labels, self.start, self.weight, {**self.named, **checked.named})

    def labelled(self, name: str | None) -> Queries:
        """Return the same lists with one of their labels as the main one; None for these as they are.

        Raises
        ------
        ValueError
            If there is no label of this name.
        """
        if name is None:
            return self
        if name not in self.named:
            known = (
                f"labels are {', '.join(map(repr, self.named))}" if self.named else "there is one label, without a name"
            )
            raise ValueError(
                f"there is no label {name!r}: {known}. Give several labels by name, as a data frame or "
                f"y={{{name!r}: ..., ...}}; in lgb.train and xgb.train with boostlist.objectives.with_labels"
            )
        made: dict[str, Queries] = self.__dict__.setdefault("_labelled", {})
        if name not in made:
            made[name] = Queries(self.named[name], self.start, self.weight, self.named)
        return made[name]

    def __reduce__(self) -> tuple[Any, ...]:
        # An array comes out of a pickle writeable, and loops are compiled for read-only ones.
        return _thawed, (self.labels, self.start, self.weight, dict(self.named))

    def __repr__(self) -> str:
        span = f", labels {self.labels.min():g} to {self.labels.max():g}" if self.n_documents else ""
        return f"Queries({self.n_queries:,} queries, {self.n_documents:,} documents{span})"

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.start) - 1

    @property
    def n_documents(self) -> int:
        """Number of documents over all queries."""
        return len(self.labels)

    @property
    def sizes(self) -> IntArray:
        """Number of documents of each query."""
        return np.diff(self.start)

    @property
    def ordered(self) -> AnyArray:
        """Whether a query has documents of different labels, for each."""
        first = self.start[:-1]
        ordered: AnyArray = np.maximum.reduceat(self.labels, first) > np.minimum.reduceat(self.labels, first)
        return ordered

    @cached_property
    def levels(self) -> Levels:
        """The documents of each query sorted and grouped by grade; computed on first use."""
        from boostlist.levels import Levels  # brings numba, which takes a second that reading data does not need

        return Levels.of(self.labels, self.start)

    def scores(self, f: ArrayLike) -> FloatArray:
        """Check scores, one per document, and return them as a read-only float64 array.

        Raises
        ------
        ValueError
            If their number is wrong or one is not finite; the message names the first such row.
        """
        array = np.ascontiguousarray(f, dtype=np.float64)
        if array.shape != self.labels.shape:
            raise ValueError(f"scores have shape {array.shape} but there are {self.n_documents:,} documents")
        # One quick pass: any inf or nan makes the sum inf or nan. It may also overflow, hence the second look.
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(array)
        if not np.isfinite(total):
            bad = np.flatnonzero(~np.isfinite(array))
            if bad.size:
                row = int(bad[0])
                q = int(np.searchsorted(self.start, row, side="right")) - 1
                raise ValueError(f"scores[{row}] is {array[row]} (query {q}); scores must be finite")
        scores: FloatArray = frozen(array)
        return scores


_SORT_FIRST = (
    'sort first: order = np.argsort(qid, kind="stable"), then take X[order], or with pandas X.iloc[order], and y and '
    "qid likewise"
)


def query_boundaries(qid: ArrayLike, remedy: str = _SORT_FIRST) -> IntArray:
    """Return the row at which each run of equal ids begins, with the number of rows appended.

    Raises
    ------
    ValueError
        If an id is missing, or reappears after another one: the rows of a query must be adjacent. The remedy is what to
        do about it.
    """
    codes, ids = query_codes(qid)
    heads = np.flatnonzero(np.diff(codes, prepend=-1))
    if len(heads) != codes.max(initial=-1) + 1:
        seen = np.maximum.accumulate(codes[heads])
        row = int(heads[1:][codes[heads[1:]] <= seen[:-1]][0])
        raise ValueError(
            f"qid {ids[row : row + 1].tolist()[0]!r} reappears at row {row} after rows of another query; the rows of a "
            f"query must be adjacent; {remedy}"
        )
    return np.append(heads, len(codes)).astype(np.int64)


def query_codes(qid: ArrayLike) -> tuple[IntArray, AnyArray]:
    """Return 0, 1, ... for the query of each row, in order of the queries' first rows, and the ids as an array.

    Raises
    ------
    ValueError
        If ids are not one-dimensional, or one is missing.
    """
    import pandas as pd

    ids = np.asarray(qid)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise ValueError(f"qid must be one-dimensional, got shape {ids.shape}")
    codes, _ = pd.factorize(ids)
    missing = np.flatnonzero(codes < 0)
    if missing.size:
        raise ValueError(f"qid[{missing[0]}] is missing; every row needs a query id")
    return codes, ids


def check_queries(queries: object) -> None:
    """Raise a TypeError that says how queries are made, if these are none."""
    if not isinstance(queries, Queries):
        raise TypeError(
            "losses and metrics take labels and queries together, as Queries.from_qid(labels, qid) or "
            f"Queries.from_sizes(labels, sizes), not {type(queries).__name__}"
        )
