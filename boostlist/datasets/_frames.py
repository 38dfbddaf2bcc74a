"""Ranking data from data frames and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.frames import as_frame, to_pandas

if TYPE_CHECKING:
    import pandas as pd

WEIGHT, POSITION, DOCID = "weight", "position", "docid"

Categories = Mapping[str, tuple[Any, ...]]


def read_frame(
    frame: Any,
    qid: str,
    label: str | Sequence[str],
    weight: str | None,
    features: Sequence[str] | None,
    position: str | None = None,
    docid: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of `RankingData` that a data frame holds; see `RankingData.from_frame`."""
    found = as_frame(frame)
    if found is None:
        raise TypeError(f"expected a data frame, got {type(frame).__name__}")
    weight, position, docid = (
        None if name in (features or ()) or (name == usual and name not in found.columns) else name
        for name, usual in ((weight, WEIGHT), (position, POSITION), (docid, DOCID))
    )
    labels = [label] if isinstance(label, str) else list(label)
    taken = [name for name in (qid, *labels, weight, position, docid) if name is not None]
    names = [name for name in found.columns if name not in taken] if features is None else list(features)
    for name in (*taken, *names):
        if name not in found.columns:
            raise ValueError(f"the frame has no column {name!r}; its columns are {', '.join(map(str, found.columns))}")
    table = to_pandas(found, [*(name for name in (*labels, weight) if name is not None), *names])
    X, categories = _matrix(table[names])
    ids = found.get_column(qid).to_numpy()
    missing = found.get_column(qid).is_null().to_numpy().nonzero()[0]
    if missing.size:
        raise ValueError(f"column {qid!r} is missing in row {missing[0]}; every row needs a query id")
    return {
        "X": X,
        "y": _numbers(table[label]) if isinstance(label, str) else {name: _numbers(table[name]) for name in labels},
        "qid": ids,
        "query_weight": None if weight is None else _query_weight(_numbers(table[weight]), ids, weight),
        "feature_names": tuple(map(str, names)),
        "categories": categories,
        "position": None if position is None else found.get_column(position).to_numpy(),
        "comments": None if docid is None else np.array([f"docid = {each}" for each in found.get_column(docid)]),
    }


def make_frame(X: AnyArray, names: Sequence[str], categories: Categories | None) -> pd.DataFrame:
    """Return features as a data frame, categories as such."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=list(names))
    for name, values in (categories or {}).items():
        codes = np.nan_to_num(np.asarray(frame[name], np.float64), nan=-1).astype(np.int64)
        kinds: Any = pd.Index(values)
        frame[name] = pd.Categorical.from_codes(codes, categories=kinds)
    return frame


def check_categories(X: Any, names: tuple[str, ...] | None, categories: Categories) -> None:
    """Raise a ValueError unless X holds positions of categories, or nan, in the columns that they are named for."""
    for name, values in categories.items():
        if names is None or name not in names:
            raise ValueError(f"categories are given for {name!r}, which is no name of a feature")
        if not isinstance(X, np.ndarray):
            raise ValueError("categories need a dense X: what a sparse one does not store would be the first of them")
        column = X[:, names.index(name)]
        if not np.all(np.isnan(column) | ((column >= 0) & (column < len(values)) & (column == np.floor(column)))):
            raise ValueError(f"X holds no positions of its {len(values):,} categories in column {name!r}")


def _matrix(table: pd.DataFrame) -> tuple[FloatArray, Categories | None]:
    """Return columns as one array, float32 if all numbers are, and the categories whose codes are in it."""
    import pandas as pd

    kinds = {name: table[name].dtype for name in table.columns}
    categories = {
        str(name): tuple(kind.categories) for name, kind in kinds.items() if isinstance(kind, pd.CategoricalDtype)
    }
    numbers = [kind for name, kind in kinds.items() if str(name) not in categories]
    single = bool(numbers) and all(kind == np.float32 for kind in numbers)
    X = np.empty(table.shape, np.float32 if single else np.float64)
    for j, name in enumerate(table.columns):
        if str(name) in categories:
            codes = table[name].cat.codes.to_numpy()
            X[:, j] = np.where(codes < 0, np.nan, codes)
        else:
            X[:, j] = _numbers(table[name])
    return X, categories or None


def _numbers(column: pd.Series[Any]) -> AnyArray:
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column):
        raise ValueError(f"column {column.name!r} is {column.dtype}, not numeric; encode it, or leave it out")
    return column.to_numpy()


def _query_weight(weight: AnyArray, qid: AnyArray, name: str) -> FloatArray:
    """Return the weight of each query in order of its first row."""
    import pandas as pd

    codes, values = pd.factorize(qid)
    first = np.full(len(values), len(qid))
    np.minimum.at(first, codes, np.arange(len(qid)))
    differ = np.flatnonzero(weight != weight[first][codes])
    if differ.size:
        row = int(differ[0])
        raise ValueError(
            f"column {name!r} is taken for the weight of the query, but is {weight[row]:g} in row {row} and "
            f"{weight[first[codes[row]]]:g} in an earlier row of query {qid[row]}; give the rows of a query the same "
            f"weight, or weight=None to make the column a feature"
        )
    return np.asarray(weight[first], np.float64)
