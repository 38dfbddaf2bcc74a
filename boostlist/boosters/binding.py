"""What a host says in a call, and a cache so that binding happens once per data set and not once per round.

A host calls a plug-in - objective or metric - in one of three ways:

- ``lgb.train``, ``lgb.cv``: ``(scores, lightgbm.Dataset)``
- ``xgb.train``, ``xgb.cv``: ``(scores, xgboost.DMatrix)``
- ``LGBMRanker``: ``(labels, scores, weight, group)``, all arrays

`read_call` turns each into a `Call`. LightGBM has weights by document, XGBoost by query.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from boostlist._typing import AnyArray
from boostlist.boosters.lists import Lists
from boostlist.queries import Queries

_T = TypeVar("_T")


class Fields(NamedTuple):
    """Labels, documents of each query, weights and positions or None, as the host has them at the moment of a call."""

    labels: AnyArray
    sizes: AnyArray
    weight: AnyArray | None
    position: AnyArray | None = None

    def same_as(self, other: Fields) -> bool:
        """Whether both hold equal arrays."""
        return all(
            (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b))
            for a, b in zip(self, other, strict=True)
        )

    def copy(self) -> Fields:
        """Return copies, which stay as they are when the host's arrays change."""
        return Fields(*(None if array is None else array.copy() for array in self))  # type: ignore[arg-type]


class Call(NamedTuple):
    """A host's call of a plug-in.

    Attributes
    ----------
    scores
        Score of each document.
    owner
        The object on whose life the cache hangs: Dataset, DMatrix or, from LGBMRanker, the array of labels.
    fields
        What the owner holds.
    """

    scores: AnyArray
    owner: object
    fields: Fields


def is_instance(value: object, module: str, name: str) -> bool:
    """Whether value is of a host's class, without importing the host."""
    host = sys.modules.get(module)
    return host is not None and isinstance(value, getattr(host, name))


def read_call(a: Any, b: Any, weight: Any, group: Any) -> Call:
    """Tell the hosts' ways of calling a plug-in apart.

    Raises
    ------
    TypeError
        If the second argument is neither a Dataset, a DMatrix nor an array.
    ValueError
        If the data has no query information.
    """
    if is_instance(b, "lightgbm", "Dataset"):
        return Call(a, b, _read_lightgbm(b))
    if is_instance(b, "xgboost", "DMatrix"):
        return Call(np.asarray(a).reshape(-1), b, _read_xgboost(b))
    if hasattr(b, "__array__") or isinstance(b, list):
        return Call(b, a, _read_arrays(a, weight, group))
    raise TypeError(
        "a boostlist objective or metric is called with (scores, lightgbm.Dataset), (scores, xgboost.DMatrix) or "
        f"(labels, scores, weight, group); the second argument is a {type(b).__name__}"
    )


def _read_lightgbm(dataset: Any) -> Fields:
    sizes = dataset.get_group()
    if sizes is None:
        raise ValueError("the lightgbm.Dataset has no queries; make it with group=[documents of each query, ...]")
    weight = dataset.get_weight()
    position = dataset.get_position()
    if position is None and dataset.used_indices is not None:  # LightGBM does not take positions into a subset
        whole = dataset.reference.get_position()
        position = None if whole is None else np.asarray(whole)[dataset.used_indices]
    return Fields(
        np.asarray(dataset.get_label()),
        sizes,
        *(None if array is None else np.asarray(array) for array in (weight, position)),
    )


def _read_xgboost(dmatrix: Any) -> Fields:
    sizes = np.diff(dmatrix.get_uint_info("group_ptr").astype(np.int64))
    if not len(sizes) and dmatrix.num_row():
        raise ValueError("the xgboost.DMatrix has no queries; make it with qid=[query id of each document, ...]")
    weight = dmatrix.get_weight()
    if len(weight) not in (0, len(sizes)):
        raise ValueError(
            f"the xgboost.DMatrix has {len(weight):,} weights and {len(sizes):,} queries; with queries set, XGBoost "
            "takes one weight a query, not one a document"
        )
    return Fields(dmatrix.get_label(), sizes, weight if len(weight) else None)


def _read_arrays(labels: Any, weight: Any, group: Any) -> Fields:
    if group is None:
        raise ValueError(
            "no query information: use boostlist.TreeRanker, or LGBMRanker with fit(group=[documents of each query]). "
            "XGBoost's scikit-learn interface passes no queries to an objective: use xgb.train(..., obj=...) there. "
            "To score arrays, give a metric Queries: metric.mean(scores, Queries.from_qid(labels, qid))"
        )
    return Fields(np.asarray(labels), np.asarray(group), None if weight is None else np.asarray(weight))


class _Entry:
    """What is bound to one data set: its lists, the fields they were made of, and the last few bound things."""

    _KEEP = 64  # enough for an objective and a long list of metrics

    def __init__(self, owner: object, forget: Callable[[Any], object]) -> None:
        self.owner = weakref.ref(owner, forget)
        self.fields: Fields | None = None
        self.lists: Lists
        self.bound: OrderedDict[Hashable, Any] = OrderedDict()

    def follow(self, call: Call) -> Lists:
        """Return the lists, made anew if the data has changed; what was bound to the old ones is forgotten."""
        if self.fields is None or not self.fields.same_as(call.fields):
            self.fields = None
            self.bound.clear()
            self.lists = _lists(call)
            self.fields = call.fields.copy()
        return self.lists

    def get(self, key: Hashable) -> Any:
        if key in self.bound:
            self.bound.move_to_end(key)
        return self.bound.get(key)

    def put(self, key: Hashable, value: Any) -> Any:
        """Keep a value, and return what is kept: another thread may have been faster."""
        kept = self.bound.setdefault(key, value)
        while len(self.bound) > self._KEEP:
            self.bound.popitem(last=False)
        return kept


def _lists(call: Call) -> Lists:
    _refuse_cut_queries(call.owner)
    labels, sizes, weight, position = call.fields
    return Lists.of(Queries.from_sizes(labels, sizes), weight, position=position)


def _refuse_cut_queries(owner: Any) -> None:
    """Raise a ValueError for a part of a LightGBM Dataset that has some but not all documents of a query.

    ``lgb.cv`` draws folds by rows for every objective that is not its own ranking one.
    """
    rows = getattr(owner, "used_indices", None)
    if rows is None or not is_instance(owner, "lightgbm", "Dataset"):
        return
    sizes = np.asarray(owner.reference.get_group())
    query = np.searchsorted(np.cumsum(sizes), rows, side="right")
    count = np.bincount(query, minlength=len(sizes))
    cut = np.flatnonzero((count > 0) & (count < sizes))
    if cut.size:
        raise ValueError(
            f"the lightgbm.Dataset has {count[cut[0]]} of the {sizes[cut[0]]} documents of query {cut[0]}, and "
            f"{cut.size - 1:,} other queries are cut too. lgb.cv draws folds by rows: pass "
            "folds=boostlist.model_selection.QueryKFold(5).split(X, y, qid)"
        )


_lock = threading.RLock()  # re-entrant: a data set may be collected, and so forgotten, while the lock is held
_entries: dict[int, _Entry] = {}


def bound_once(call: Call, key: Hashable, bind: Callable[[Lists], _T]) -> _T:
    """Return what ``bind(lists)`` made for this key and data set, making it if there is none or the data has changed.

    Keys are compared by value, so a copy of an objective - LightGBM deep-copies its parameters - finds what the
    original bound. Data sets are compared by identity and then by labels, groups and weights, and are held weakly.
    Objective and metrics of a data set are bound to the same lists.
    """
    name = id(call.owner)

    def forget(reference: object) -> None:
        with _lock:
            if name in _entries and _entries[name].owner is reference:
                del _entries[name]

    with _lock:
        entry = _entries.get(name)
        if entry is None or entry.owner() is not call.owner:
            try:
                entry = _entries[name] = _Entry(call.owner, forget)
            except TypeError:  # a list, say, which cannot be referred to weakly
                return bind(_lists(call))
        lists = entry.follow(call)
        found: _T | None = entry.get(key)
    if found is None:
        found = bind(lists)
        with _lock:
            if entry.lists is lists:
                found = entry.put(key, found)
    return found
