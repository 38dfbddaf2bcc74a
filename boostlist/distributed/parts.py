"""Ranking data in partitions on a cluster, no query split between two of them.

Both hosts train on what each worker holds, and an objective sees the lists of its worker only: a query with documents
on two workers would silently become two queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.queries import Queries, query_boundaries

if TYPE_CHECKING:
    import pandas as pd

Split = Literal["repartition", "refuse"]


@dataclass(frozen=True, eq=False)
class Part:
    """The documents of a partition: features (array or data frame), labels, query ids, and weights or None."""

    X: Any
    y: AnyArray
    qid: AnyArray
    weight: AnyArray | None = None

    def rows(self, rows: AnyArray) -> Part:
        """Return some of the rows, in the order given."""
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return Part(X, self.y[rows], self.qid[rows], None if self.weight is None else self.weight[rows])

    def queries(self) -> Queries:
        """Return the lists; weights are those of the documents' queries."""
        start = query_boundaries(self.qid)
        weight = None if self.weight is None else np.add.reduceat(self.weight, start[:-1]) / np.diff(start)
        return Queries.from_sizes(self.y, np.diff(start), weight)


@dataclass(frozen=True)
class Summary:
    """What the client must know of a partition; of its queries the ids and numbers of rows, in two arrays."""

    ids: AnyArray
    counts: AnyArray
    adjacent: bool
    grades: FloatArray
    categories: dict[str, tuple[Any, ...]]
    head: Any

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Parts:
    """Partitions on the cluster and their summaries, in the same order."""

    futures: list[Any]
    summaries: list[Summary]

    @property
    def grades(self) -> tuple[float, ...]:
        """The label set of all documents."""
        return tuple(np.unique(np.concatenate([s.grades for s in self.summaries])).tolist())

    @property
    def head(self) -> Any:
        """Features without rows, to tell their kind, number and names."""
        return self.summaries[0].head


def read_letor(paths: Sequence[Any], *, n_features: int, **options: Any) -> Any:
    """Read LETOR files in parallel into a Dask DataFrame: a file a partition, columns qid, label, f1, f2, ...

    Parameters
    ----------
    paths
        The files; workers must be able to open them.
    n_features
        Number of features, so that all files agree.
    **options
        Passed on to `boostlist.datasets.load_letor`.
    """
    import dask.dataframe as dd
    from dask.delayed import delayed

    if not paths:
        raise ValueError("no files given")
    meta = _letor_frame(None, n_features, options)
    return dd.from_delayed([delayed(_letor_frame)(path, n_features, options) for path in paths], meta=meta)


def _letor_frame(path: Any, n_features: int, options: dict[str, Any]) -> pd.DataFrame:
    import io

    from boostlist.datasets import load_letor

    source = io.BytesIO(b"0 qid:1\n") if path is None else path
    frame = load_letor(source, n_features=n_features, sparse=False, **options).to_frame()
    return frame.iloc[:0] if path is None else frame


def gather_parts(client: Any, data: Any, label: str, qid: str, weight: str | None, split: Split) -> Parts:
    """Compute the partitions on the workers, and bring the rows of split queries together.

    Raises
    ------
    ValueError
        If a query is split and is to be refused, or partitions do not fit together; the message names the query.
    """
    if split not in ("repartition", "refuse"):
        raise ValueError(f'split must be "repartition" or "refuse", got {split!r}')
    parts = _summarised(client, client.compute(_delayed_parts(data, label, qid, weight)))
    _check_categories(parts)
    shared = _split_queries(parts)
    scattered = [i for i, summary in enumerate(parts.summaries) if not summary.adjacent]
    if not shared and not scattered:
        return parts
    if split == "refuse":
        if shared:
            query, where = next(iter(shared.items()))
            raise ValueError(
                f"query {query!r} has rows in the partitions {', '.join(map(str, where))}, and {len(shared) - 1:,} "
                'other queries are split too; repartition the data by query, or pass split="repartition"'
            )
        raise ValueError(
            f"in partition {scattered[0]} the rows of a query are not adjacent; sort each partition by query, or pass "
            'split="repartition"'
        )
    return _summarised(client, _moved(client, parts, shared))


def _split_queries(parts: Parts) -> dict[Any, dict[int, int]]:
    """Return for each query in several partitions the number of its rows in each of them."""
    import pandas as pd

    ids = np.concatenate([summary.ids for summary in parts.summaries])
    counts = np.concatenate([summary.counts for summary in parts.summaries])
    where = np.repeat(np.arange(len(parts.summaries)), [len(summary.ids) for summary in parts.summaries])
    codes, _ = pd.factorize(ids)
    split = np.bincount(codes)[codes] > 1
    shared: dict[Any, dict[int, int]] = {}
    for query, i, rows in zip(ids[split].tolist(), where[split].tolist(), counts[split].tolist(), strict=True):
        shared.setdefault(query, {})[i] = rows
    return shared


def _delayed_parts(data: Any, label: str, qid: str, weight: str | None) -> list[Any]:
    from dask.delayed import delayed

    if hasattr(data, "to_delayed") and hasattr(data, "columns"):
        missing = [name for name in (label, qid, weight) if name is not None and name not in data.columns]
        if missing:
            raise ValueError(f"the data has no column {missing[0]!r}; name it with label=, qid= or weight=")
        make = delayed(_frame_part)
        return [make(frame, label, qid, weight) for frame in data.to_delayed()]
    if not isinstance(data, tuple) or len(data) not in (3, 4):
        raise TypeError(
            "data must be a Dask DataFrame with columns for label and query, or a tuple (X, y, qid) or "
            f"(X, y, qid, weight) of Dask arrays; got {type(data).__name__}"
        )
    first = data[0].rechunk({1: -1}) if hasattr(data[0], "rechunk") else data[0]
    columns = [_blocks(column) for column in (first, *data[1:])]
    if len({len(blocks) for blocks in columns}) > 1:
        raise ValueError(
            f"X, y and qid have {', '.join(str(len(blocks)) for blocks in columns)} partitions; rechunk them alike"
        )
    make = delayed(_array_part)
    return [make(*blocks) for blocks in zip(*columns, strict=True)]


def _blocks(collection: Any) -> list[Any]:
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


def _frame_part(frame: pd.DataFrame, label: str, qid: str, weight: str | None) -> Part:
    X = frame.drop(columns=[name for name in (label, qid, weight) if name is not None])
    weights = None if weight is None else frame[weight].to_numpy(np.float64)
    return Part(X, frame[label].to_numpy(np.float64), frame[qid].to_numpy(), weights)


def _array_part(X: Any, y: Any, qid: Any, weight: Any = None) -> Part:
    lengths = [len(a) for a in (X, y, qid)]
    if len(set(lengths)) > 1:
        raise ValueError(f"a partition has {lengths[0]:,} rows of X, {lengths[1]:,} of y and {lengths[2]:,} of qid")
    return Part(X, np.asarray(y, np.float64), np.asarray(qid), None if weight is None else np.asarray(weight))


def _summary(part: Part) -> Summary:
    ids = part.qid
    runs = np.flatnonzero(ids[1:] != ids[:-1]).size + 1 if len(ids) else 0
    unique, counts = np.unique(ids, return_counts=True)
    frame = hasattr(part.X, "dtypes") and hasattr(part.X, "columns")
    categories = (
        {str(c): tuple(part.X[c].cat.categories) for c in part.X if str(part.X[c].dtype) == "category"} if frame else {}
    )
    return Summary(unique, counts, runs == len(unique), np.unique(part.y), categories, part.X[:0])


def _summarised(client: Any, futures: list[Any]) -> Parts:
    """Wait for partitions, leave out empty ones."""
    summaries = client.gather(client.map(_summary, futures, pure=False))
    kept = [i for i, summary in enumerate(summaries) if len(summary.ids)]
    if not kept:
        raise ValueError("there are no rows")
    return Parts([futures[i] for i in kept], [summaries[i] for i in kept])


def _check_categories(parts: Parts) -> None:
    first = parts.summaries[0].categories
    for i, summary in enumerate(parts.summaries):
        for column, categories in first.items():
            if summary.categories.get(column) != categories:
                raise ValueError(
                    f"column {column!r} has other categories in partition {i} than in partition 0, so that codes would "
                    "mean different things; make them known first: data = data.categorize()"
                )


def _moved(client: Any, parts: Parts, shared: dict[Any, dict[int, int]]) -> list[Any]:
    """Send the rows of each split query to one of the partitions that have some, the one with the fewest rows so far.

    Only these rows travel. Within a query rows keep the order that they had over all partitions.
    """
    load = [summary.rows for summary in parts.summaries]
    for where in shared.values():
        for i, rows in where.items():
            load[i] -= rows
    home: dict[Any, int] = {}
    for query, where in shared.items():
        home[query] = min(where, key=lambda i: load[i])
        load[home[query]] += sum(where.values())
    moves: dict[tuple[int, int], list[Any]] = {}
    for query, where in shared.items():
        for i in where:
            moves.setdefault((i, home[query]), []).append(query)
    leaving = {i: [q for (a, b), queries in moves.items() if a == i != b for q in queries] for i in range(len(load))}
    pieces = {
        (i, j): client.submit(_chosen, parts.futures[i], queries, pure=False)
        for (i, j), queries in moves.items()
        if i != j
    }
    merged = []
    for j, future in enumerate(parts.futures):
        before = [pieces[i, j] for i in range(j) if (i, j) in pieces]
        after = [pieces[i, j] for i in range(j + 1, len(parts.futures)) if (i, j) in pieces]
        merged.append(client.submit(_merge, before, future, leaving[j], after, pure=False))
    return merged


def _chosen(part: Part, queries: list[Any]) -> Part:
    return part.rows(np.flatnonzero(np.isin(part.qid, queries)))


def _merge(before: list[Part], part: Part, leaving: list[Any], after: list[Part]) -> Part:
    """Join pieces in order of the partitions they came from, and bring the rows of each query together."""
    import pandas as pd

    kept = part.rows(np.flatnonzero(~np.isin(part.qid, leaving)))
    pieces = [*before, kept, *after]

    def joined(arrays: list[Any]) -> Any:
        return pd.concat(arrays, ignore_index=True) if hasattr(arrays[0], "columns") else np.concatenate(arrays)

    whole = Part(
        joined([piece.X for piece in pieces]),
        joined([piece.y for piece in pieces]),
        joined([piece.qid for piece in pieces]),
        None if part.weight is None else joined([piece.weight for piece in pieces]),
    )
    codes, _ = pd.factorize(whole.qid)
    return whole.rows(np.argsort(codes, kind="stable"))
