"""Ranking data in partitions on a cluster, no query split between two of them.

Both hosts train on what each worker holds, and an objective sees the lists of its worker only: a query with documents
on two workers would silently become two queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.boosters.lists import Lists
from boostlist.positions import Positions
from boostlist.queries import Queries

if TYPE_CHECKING:
    import pandas as pd

Split = Literal["repartition", "refuse"]

# Share of the busiest worker's documents that a move must take off it.
_WORTH_A_MOVE = 0.1


class Columns(NamedTuple):
    """Names of the columns that are no features; several labels, of which the first is the main one, are a list."""

    label: str | Sequence[str] = "label"
    qid: str = "qid"
    weight: str | None = None
    position: str | None = None
    init_score: str | None = None

    @property
    def names(self) -> list[str]:
        """All names."""
        labels = [self.label] if isinstance(self.label, str) else list(self.label)
        return [*labels, *(name for name in self[1:] if name is not None)]


_OPTIONAL = ("weight", "position", "init_score")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a partition as they came, to be moved about: features, labels, query ids, and what else there is.

    Several labels are a data frame.
    """

    X: Any
    y: Any
    qid: AnyArray
    weight: AnyArray | None = None
    position: AnyArray | None = None
    init_score: AnyArray | None = None

    def take(self, rows: AnyArray) -> Rows:
        """Return some of the rows, in the order given."""
        X, y = (each.iloc[rows] if hasattr(each, "iloc") else each[rows] for each in (self.X, self.y))
        optional = (getattr(self, name) for name in _OPTIONAL)
        return Rows(X, y, self.qid[rows], *(a if a is None else a[rows] for a in optional))

    def lists(self) -> Lists:
        """Return the lists; the rows of each query must be adjacent."""
        lists = Lists.of(Queries.from_qid(self.y, self.qid), self.weight, self.X, self.position)
        return lists.starting_from(self.init_score)


@dataclass(frozen=True)
class Whereabouts:
    """What must be known of a partition to bring queries together: ids and numbers of rows, in two arrays."""

    ids: AnyArray
    counts: AnyArray
    adjacent: bool
    categories: dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Facts:
    """What the client must know of the lists of a partition.

    Attributes
    ----------
    documents, queries
        Their numbers.
    grades
        What occurs of each label; None is the main one.
    weight
        Sum of the documents' weights, None if all are 1.
    head
        Features without rows, to tell their kind, number and names.
    positions
        The positions that occur; None if there are none.
    started
        Whether there are scores that trees add to.
    """

    documents: int
    queries: int
    grades: dict[str | None, FloatArray]
    weight: float | None
    head: Any
    positions: tuple[Any, ...] | None = None
    started: bool = False

    @classmethod
    def of(cls, lists: Lists) -> Facts:
        """Return the facts of some lists."""
        queries, weight = lists.queries, lists.weight_by_document
        total = None if weight is None else float(weight.sum())
        grades = {name: np.unique(queries.labelled(name).labels) for name in (None, *queries.named)}
        positions = None if lists.position is None else lists.position.labels
        started = lists.init_score is not None
        return cls(queries.n_documents, queries.n_queries, grades, total, lists.X[:0], positions, started)


@dataclass(frozen=True)
class Parts:
    """`Lists` on the cluster, no query in two of them; the worker that each is on, and the facts of each."""

    futures: list[Any]
    homes: list[str]
    facts: list[Facts]

    def map(self, client: Any, function: Callable[..., Any], *more: Sequence[Any], **options: Any) -> list[Any]:
        """Return futures of what a function makes of each part, rather on the worker that has it than on another."""
        return _at_home(client, function, self.futures, self.homes, *more, **options)

    def map_there(self, client: Any, function: Callable[..., Any], *more: Sequence[Any]) -> list[Any]:
        """Do so on just that worker; if it is lost, futures wait for it for ever."""
        return _at_home(client, function, self.futures, self.homes, *more, elsewhere=False)

    @property
    def labels(self) -> list[str]:
        """Names of the labels, the main one first; none if there is but one, without a name."""
        return [name for name in self.facts[0].grades if name is not None]

    @property
    def positions(self) -> tuple[Any, ...] | None:
        """All positions that occur; None if there are none."""
        if self.facts[0].positions is None:
            return None
        labels = [label for facts in self.facts for label in facts.positions or ()]
        return Positions.of(labels, len(labels)).labels

    def grades(self, label: str | None = None) -> tuple[float, ...]:
        """Return what occurs of a label in all documents, ascending; None is the main label.

        Raises
        ------
        ValueError
            If there is no such label.
        """
        if label is not None and label not in self.labels:
            raise ValueError(f"there is no label {label!r}; name its column too, label=[..., {label!r}]")
        return tuple(np.unique(np.concatenate([facts.grades[label] for facts in self.facts])).tolist())

    @property
    def head(self) -> Any:
        """Features without rows, to tell their kind, number and names."""
        return self.facts[0].head

    @property
    def weighted(self) -> bool:
        """Whether there are weights other than 1."""
        return any(facts.weight is not None for facts in self.facts)

    @property
    def without_weight(self) -> bool:
        """Whether all documents have weight 0."""
        return all(facts.weight == 0 for facts in self.facts)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return sum(facts.queries for facts in self.facts)

    def times(self, client: Any, factor: FloatArray) -> Parts:
        """Return the same lists with weights multiplied by a factor for each query; features are not copied."""
        pieces = np.split(factor, np.cumsum([facts.queries for facts in self.facts])[:-1])
        times = replace(self, futures=self.map(client, _times, pieces))
        return replace(times, facts=client.gather(times.map(client, Facts.of)))


def _times(lists: Lists, factor: FloatArray) -> Lists:
    queries = lists.queries
    if lists.document_weight is None:
        return replace(lists, queries=queries.with_weight(queries.weight * factor))
    return replace(lists, document_weight=lists.document_weight * np.repeat(factor, queries.sizes))


def require_dask() -> None:
    """Raise an ImportError that says how to install Dask, if it is not there."""
    try:
        import_module("dask.dataframe")
        import_module("distributed")
    except ImportError as error:
        raise ImportError(
            f'boostlist.distributed needs Dask, which is not installed ({error}): pip install "boostlist[dask]"'
        ) from error


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
    require_dask()
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


def gather_parts(
    client: Any,
    data: Any,
    columns: Columns,
    split: Split,
) -> Parts:
    """Compute the partitions on the workers, bring the rows of split queries together, and give workers like shares.

    Raises
    ------
    ValueError
        If a query is split and is to be refused, or partitions do not fit together; the message names the query.
    """
    if split not in ("repartition", "refuse"):
        raise ValueError(f'split must be "repartition" or "refuse", got {split!r}')
    found = client.compute(_delayed_rows(data, columns))
    homes = _homes(client, found)
    where = client.gather(_at_home(client, _whereabouts, found, homes, range(len(found))))
    _check_categories(where)
    shared = _split_queries(where)
    scattered = [i for i, part in enumerate(where) if not part.adjacent]
    if split == "refuse" and shared:
        query, numbers = next(iter(shared.items()))
        raise ValueError(
            f"query {query!r} has rows in the partitions {', '.join(map(str, numbers))}, and {len(shared) - 1:,} other "
            'queries are split too; repartition the data by query, or pass split="repartition"'
        )
    if split == "refuse" and scattered:
        raise ValueError(
            f"in partition {scattered[0]} the rows of a query are not adjacent; sort each partition by query, or pass "
            'split="repartition"'
        )
    if shared or scattered:
        found = _moved(client, found, where, shared)
        homes = _homes(client, found)
    lists = _at_home(client, Rows.lists, found, homes)
    facts = client.gather(_at_home(client, Facts.of, lists, homes))
    kept = [i for i, each in enumerate(facts) if each.documents]
    if not kept:
        raise ValueError("there are no rows")
    return _balanced(client, Parts([lists[i] for i in kept], [str(homes[i]) for i in kept], [facts[i] for i in kept]))


def _homes(client: Any, futures: list[Any]) -> list[str | None]:
    """Return for each future a worker that holds it, None if it has failed."""
    from distributed import wait

    wait(futures)
    holders = client.who_has(futures)
    return [next(iter(holders.get(future.key, ())), None) for future in futures]


def _at_home(
    client: Any,
    function: Callable[..., Any],
    futures: list[Any],
    homes: Sequence[str | None],
    *more: Sequence[Any],
    elsewhere: bool = True,
    **options: Any,
) -> list[Any]:
    """Return futures of what a function makes of each of some futures, on the worker that has it.

    Dask itself would rather copy a part to a worker that is idle than wait for the one that has it. Copies take memory,
    and where parts have two places, engines may put most of them on one worker. `elsewhere` lets others take over.
    """
    made = []
    for home, *arguments in zip(homes, futures, *more, strict=True):
        place = {"workers": [home], "allow_other_workers": elsewhere} if home else {}
        made.append(client.submit(function, *arguments, pure=False, **place, **options))
    return made


def _balanced(client: Any, parts: Parts) -> Parts:
    """Move partitions from workers that have much more to do than others: in every round all wait for the last."""
    from distributed import wait

    wanted = shares([facts.documents for facts in parts.facts], parts.homes, client.nthreads())
    futures = [
        future if there == here else client.submit(_same, future, workers=[there], pure=False)
        for future, here, there in zip(parts.futures, parts.homes, wanted, strict=True)
    ]
    wait(futures)
    return replace(parts, futures=futures, homes=wanted)


def shares(documents: Sequence[int], holder: Sequence[str], threads: Mapping[str, int]) -> list[str]:
    """Return the worker that each partition should be on.

    Partitions stay where they are but for moves that take a tenth or more off what the busiest worker has to do.

    Parameters
    ----------
    documents, holder
        Of each partition, how many documents it has and the worker that it is on.
    threads
        Of each worker.
    """
    wanted = list(holder)
    load = dict.fromkeys(threads, 0.0)
    for worker, number in zip(wanted, documents, strict=True):
        load[worker] += number / threads[worker]
    while True:
        most, least = max(load, key=lambda worker: load[worker]), min(load, key=lambda worker: load[worker])
        after = {
            i: max(load[most] - documents[i] / threads[most], load[least] + documents[i] / threads[least])
            for i, worker in enumerate(wanted)
            if worker == most
        }
        i = min(after, key=lambda i: (after[i], documents[i]))
        if after[i] > (1 - _WORTH_A_MOVE) * load[most]:
            return wanted
        wanted[i] = least
        load[most] -= documents[i] / threads[most]
        load[least] += documents[i] / threads[least]


def _same(lists: Lists) -> Lists:
    return lists


def _split_queries(parts: list[Whereabouts]) -> dict[Any, dict[int, int]]:
    """Return for each query in several partitions the number of its rows in each of them."""
    import pandas as pd

    ids = np.concatenate([part.ids for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    where = np.repeat(np.arange(len(parts)), [len(part.ids) for part in parts])
    codes, _ = pd.factorize(ids)
    split = np.bincount(codes)[codes] > 1
    shared: dict[Any, dict[int, int]] = {}
    for query, i, rows in zip(ids[split].tolist(), where[split].tolist(), counts[split].tolist(), strict=True):
        shared.setdefault(query, {})[i] = rows
    return shared


def _delayed_rows(data: Any, columns: Columns) -> list[Any]:
    from dask.delayed import delayed

    if hasattr(data, "to_delayed") and hasattr(data, "columns"):
        missing = [name for name in columns.names if name not in data.columns]
        if missing:
            options = ", ".join(f"{name}=" for name in columns._fields)
            raise ValueError(f"the data has no column {missing[0]!r}; name it with one of {options}")
        make = delayed(_frame_rows)
        return [make(frame, columns) for frame in data.to_delayed()]
    for option in ("position", "init_score"):
        name = getattr(columns, option)
        if name is not None:
            raise ValueError(f"{option}={name!r} names a column: give the data as a Dask DataFrame")
    if not isinstance(data, tuple) or len(data) not in (3, 4):
        raise TypeError(
            "data must be a Dask DataFrame with columns for label and query, or a tuple (X, y, qid) or "
            f"(X, y, qid, weight) of Dask arrays; got {type(data).__name__}"
        )
    X, y, *others = data
    first = X.rechunk({1: -1}) if hasattr(X, "rechunk") else X
    labels = _named_blocks(y) if isinstance(y, Mapping) else _blocks(y)
    arrays = [_blocks(first), labels, *map(_blocks, others)]
    if len({len(blocks) for blocks in arrays}) > 1:
        raise ValueError(
            f"X, y and qid have {', '.join(str(len(blocks)) for blocks in arrays)} partitions; rechunk them alike"
        )
    make = delayed(_array_rows)
    return [make(*blocks) for blocks in zip(*arrays, strict=True)]


def _blocks(collection: Any) -> list[Any]:
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


def _named_blocks(labels: Mapping[str, Any]) -> list[Any]:
    """Return the blocks of several labels, each a mapping from names."""
    columns = {name: _blocks(column) for name, column in labels.items()}
    return [dict(zip(columns, blocks, strict=True)) for blocks in zip(*columns.values(), strict=True)]


def _frame_rows(frame: pd.DataFrame, columns: Columns) -> Rows:
    label = columns.label
    y = frame[label].to_numpy(np.float64) if isinstance(label, str) else frame[list(label)]
    kinds = {"weight": np.float64, "position": None, "init_score": np.float64}
    optional = {
        role: frame[name].to_numpy(kinds[role]) for role in _OPTIONAL if (name := getattr(columns, role)) is not None
    }
    return Rows(frame.drop(columns=columns.names), y, frame[columns.qid].to_numpy(), **optional)


def _array_rows(X: Any, y: Any, qid: Any, weight: Any = None) -> Rows:
    import pandas as pd

    y = pd.DataFrame(y) if isinstance(y, dict) else np.asarray(y, np.float64)
    lengths = [len(a) for a in (X, y, qid)]
    if len(set(lengths)) > 1:
        raise ValueError(f"a partition has {lengths[0]:,} rows of X, {lengths[1]:,} of y and {lengths[2]:,} of qid")
    return Rows(X, y, np.asarray(qid), None if weight is None else np.asarray(weight))


def _whereabouts(part: Rows, number: int) -> Whereabouts:
    import pandas as pd

    ids = part.qid
    missing = np.flatnonzero(pd.isna(ids))
    if missing.size:
        raise ValueError(f"partition {number} has no query id in row {missing[0]}; every row needs one")
    runs = np.flatnonzero(ids[1:] != ids[:-1]).size + 1 if len(ids) else 0
    unique, counts = np.unique(ids, return_counts=True)
    frame = hasattr(part.X, "dtypes") and hasattr(part.X, "columns")
    categories = (
        {str(c): tuple(part.X[c].cat.categories) for c in part.X if str(part.X[c].dtype) == "category"} if frame else {}
    )
    return Whereabouts(unique, counts, runs == len(unique), categories)


def _check_categories(parts: list[Whereabouts]) -> None:
    filled = [(i, part.categories) for i, part in enumerate(parts) if len(part.ids)]
    for i, categories in filled:
        for column, first in filled[0][1].items():
            if categories.get(column) != first:
                raise ValueError(
                    f"column {column!r} has other categories in partition {i} than in partition {filled[0][0]}, so "
                    "that codes would mean different things; make them known first: data = data.categorize()"
                )


def _moved(
    client: Any, parts: list[Any], whereabouts: list[Whereabouts], shared: dict[Any, dict[int, int]]
) -> list[Any]:
    """Send the rows of each split query to one of the partitions that have some, the one with the fewest rows so far.

    Only these rows travel. Within a query rows keep the order that they had over all partitions.
    """
    load = [int(part.counts.sum()) for part in whereabouts]
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
        (i, j): client.submit(_chosen, parts[i], queries, pure=False) for (i, j), queries in moves.items() if i != j
    }
    merged = []
    for j, future in enumerate(parts):
        before = [pieces[i, j] for i in range(j) if (i, j) in pieces]
        after = [pieces[i, j] for i in range(j + 1, len(parts)) if (i, j) in pieces]
        merged.append(client.submit(_merge, before, future, leaving[j], after, pure=False))
    return merged


def _chosen(part: Rows, queries: list[Any]) -> Rows:
    return part.take(np.flatnonzero(np.isin(part.qid, queries)))


def _merge(before: list[Rows], part: Rows, leaving: list[Any], after: list[Rows]) -> Rows:
    """Join pieces in order of the partitions they came from, and bring the rows of each query together."""
    import pandas as pd

    kept = part.take(np.flatnonzero(~np.isin(part.qid, leaving)))
    pieces = [*before, kept, *after]

    def joined(arrays: list[Any]) -> Any:
        return pd.concat(arrays, ignore_index=True) if hasattr(arrays[0], "columns") else np.concatenate(arrays)

    whole = Rows(
        joined([piece.X for piece in pieces]),
        joined([piece.y for piece in pieces]),
        joined([piece.qid for piece in pieces]),
        *(
            None if getattr(part, name) is None else joined([getattr(piece, name) for piece in pieces])
            for name in _OPTIONAL
        ),
    )
    codes, _ = pd.factorize(whole.qid)
    return whole.take(np.argsort(codes, kind="stable"))
