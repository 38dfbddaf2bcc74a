"""What the hosts hold about queries, and a cache so that binding happens once per data set and not once per round.

A host calls a plug-in - objective or metric - in one of three ways:

- ``lgb.train``, ``lgb.cv``: ``(scores, lightgbm.Dataset)``
- ``xgb.train``, ``xgb.cv``: ``(scores, xgboost.DMatrix)``
- ``LGBMRanker``: ``(labels, scores, weight, group)``, all arrays

`read_call` turns each into scores and a `HostLists`. LightGBM has weights by document, XGBoost by query.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.queries import Queries

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class HostLists:
    """Labels, groups and weights as the host has them at the moment of a call.

    Attributes
    ----------
    owner
        The object on whose life the cache hangs: Dataset, DMatrix or, from LGBMRanker, the array of labels.
    labels, sizes
        Labels, and the number of documents of each query.
    weight
        Weights by query or by document, or None.
    """

    owner: object
    labels: AnyArray
    sizes: AnyArray
    weight: AnyArray | None

    def same_as(self, other: HostLists) -> bool:
        """Whether both hold equal labels, groups and weights."""
        return (
            np.array_equal(self.labels, other.labels)
            and np.array_equal(self.sizes, other.sizes)
            and (self.weight is None) == (other.weight is None)
            and (self.weight is None or other.weight is None or np.array_equal(self.weight, other.weight))
        )

    def snapshot(self) -> HostLists:
        """Return a copy of the arrays without the owner, which must stay free to be collected."""
        weight = None if self.weight is None else self.weight.copy()
        return HostLists(None, self.labels.copy(), self.sizes.copy(), weight)

    def document_weight(self) -> FloatArray | None:
        """Return weights by document if they differ within a query, else None."""
        weight = self.weight
        if weight is None or len(weight) != len(self.labels):
            return None
        first = np.repeat(weight[np.cumsum(self.sizes) - self.sizes], self.sizes)
        return None if np.array_equal(first, weight) else weight.astype(np.float64)

    def queries(self) -> Queries:
        """Return the queries; the weight of a query is the mean weight of its documents."""
        weight = self.weight
        if weight is not None and len(weight) == len(self.labels):
            bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
            if bad.size:
                raise ValueError(f"weight[{bad[0]}] is {weight[bad[0]]}; weights must be finite and >= 0")
            begin = np.cumsum(self.sizes) - self.sizes
            weight = np.add.reduceat(weight.astype(np.float64), begin) / self.sizes if len(weight) else weight
        return Queries.from_sizes(self.labels, self.sizes, weight)


def is_instance(value: object, module: str, name: str) -> bool:
    """Whether value is of a host's class, without importing the host."""
    host = sys.modules.get(module)
    return host is not None and isinstance(value, getattr(host, name))


def read_call(a: Any, b: Any, weight: Any, group: Any) -> tuple[AnyArray, HostLists]:
    """Tell the hosts' ways of calling a plug-in apart, and return scores and lists.

    Raises
    ------
    TypeError
        If the second argument is neither a Dataset, a DMatrix nor an array.
    ValueError
        If the data has no query information.
    """
    if is_instance(b, "lightgbm", "Dataset"):
        return a, read_lightgbm(b)
    if is_instance(b, "xgboost", "DMatrix"):
        return np.asarray(a).reshape(-1), read_xgboost(b)
    if hasattr(b, "__array__") or isinstance(b, list):
        return b, read_arrays(a, weight, group)
    raise TypeError(
        "a boostlist objective or metric is called with (scores, lightgbm.Dataset), (scores, xgboost.DMatrix) or "
        f"(labels, scores, weight, group); the second argument is a {type(b).__name__}"
    )


def read_lightgbm(dataset: Any) -> HostLists:
    """Read a ``lightgbm.Dataset``."""
    sizes = dataset.get_group()
    if sizes is None:
        raise ValueError("the lightgbm.Dataset has no queries; make it with group=[documents of each query, ...]")
    weight = dataset.get_weight()
    return HostLists(dataset, np.asarray(dataset.get_label()), sizes, None if weight is None else np.asarray(weight))


def read_xgboost(dmatrix: Any) -> HostLists:
    """Read an ``xgboost.DMatrix``, whose weights are by query."""
    sizes = np.diff(dmatrix.get_uint_info("group_ptr").astype(np.int64))
    if not len(sizes) and dmatrix.num_row():
        raise ValueError("the xgboost.DMatrix has no queries; make it with qid=[query id of each document, ...]")
    weight = dmatrix.get_weight()
    if len(weight) not in (0, len(sizes)):
        raise ValueError(
            f"the xgboost.DMatrix has {len(weight):,} weights and {len(sizes):,} queries; with queries set, XGBoost "
            "takes one weight a query, not one a document"
        )
    return HostLists(dmatrix, dmatrix.get_label(), sizes, weight if len(weight) else None)


def read_arrays(labels: Any, weight: Any, group: Any) -> HostLists:
    """Read the arrays that LightGBM's scikit-learn interface passes."""
    if group is None:
        raise ValueError(
            "no query information: use boostlist.TreeRanker, or LGBMRanker with fit(group=[documents of each query]). "
            "XGBoost's scikit-learn interface passes no queries to an objective: use xgb.train(..., obj=...) there"
        )
    return HostLists(labels, np.asarray(labels), np.asarray(group), None if weight is None else np.asarray(weight))


class _Entry:
    """What is bound to one data set: the lists it was bound for, and the last few bound things."""

    _KEEP = 64  # enough for an objective and a long list of metrics

    def __init__(self, owner: object, forget: Callable[[Any], object]) -> None:
        self.owner = weakref.ref(owner, forget)
        self.lists: HostLists | None = None
        self.bound: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, lists: HostLists, key: Hashable) -> Any:
        if self.lists is None or not self.lists.same_as(lists):
            self.lists = lists.snapshot()
            self.bound.clear()
        if key in self.bound:
            self.bound.move_to_end(key)
        return self.bound.get(key)

    def put(self, key: Hashable, value: Any) -> None:
        self.bound[key] = value
        while len(self.bound) > self._KEEP:
            self.bound.popitem(last=False)


_lock = threading.RLock()  # re-entrant: a data set may be collected, and so forgotten, while the lock is held
_entries: dict[int, _Entry] = {}


def bound_once(lists: HostLists, key: Hashable, bind: Callable[[HostLists], _T]) -> _T:
    """Return what ``bind(lists)`` made for this key and data set, making it if there is none or the data has changed.

    Keys are compared by value, so a copy of an objective - LightGBM deep-copies its parameters - finds what the
    original bound. Data sets are compared by identity and then by labels, groups and weights, and are held weakly.
    """
    name = id(lists.owner)

    def forget(reference: object) -> None:
        with _lock:
            if name in _entries and _entries[name].owner is reference:
                del _entries[name]

    with _lock:
        entry = _entries.get(name)
        if entry is None or entry.owner() is not lists.owner:
            try:
                entry = _entries[name] = _Entry(lists.owner, forget)
            except TypeError:  # a list, say, which cannot be referred to weakly
                return bind(lists)
        found: _T | None = entry.get(lists, key)
    if found is None:
        found = bind(lists)
        with _lock:
            if entry.lists is not None and entry.lists.same_as(lists):
                entry.put(key, found)
    return found
