"""Data frames of any library, read through narwhals: pandas, polars, pyarrow tables and others.

Within boostlist a data frame is one of pandas with NumPy's numbers and pandas' categories: what both hosts read alike.
Others are turned into it, column by column; columns of pandas that are so already are not copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from boostlist._typing import AnyArray

QID = "qid"


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return X for narwhals if it is a data frame, else None.

    Raises
    ------
    TypeError
        If its rows have yet to be computed.
    """
    if not hasattr(type(X), "columns"):
        return None
    found = nw.from_native(X, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        raise TypeError(f"the rows of this {type(X).__name__} are not computed yet; call collect() or compute() first")
    return found if isinstance(found, nw.DataFrame) else None


def qid_column(X: Any) -> AnyArray | None:
    """Return the column ``qid`` of a data frame, else None."""
    frame = as_frame(X)
    return None if frame is None or QID not in frame.columns else frame.get_column(QID).to_numpy()


def columns_of(labels: Any) -> dict[str, Any] | None:
    """Return the columns by name of a mapping or a data frame, else None."""
    if isinstance(labels, Mapping):
        return {str(name): column for name, column in labels.items()}
    frame = as_frame(labels)
    return None if frame is None else {str(name): frame.get_column(name).to_numpy() for name in frame.columns}


def numeric_columns(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield name, or number, and values of each numeric column of a data frame or an array; nothing of all else."""
    frame = as_frame(X)
    if frame is not None:
        for name in frame.columns:
            column = frame.get_column(name)
            if column.dtype.is_numeric():
                yield name, column
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        yield from enumerate(X.T)


def without_qid(X: Any) -> Any:
    """Return the other columns of a data frame as `to_pandas` does; anything else as it is.

    Raises
    ------
    ValueError
        As `to_pandas` does, and if there are none.
    """
    frame = as_frame(X)
    if frame is None:
        return X
    names = [name for name in frame.columns if name != QID]
    if not names:
        raise ValueError(f"X has no features: its columns are {', '.join(frame.columns) or 'none'}")
    return to_pandas(frame, names)


def to_pandas(frame: nw.DataFrame[Any], names: Sequence[str]) -> pd.DataFrame:
    """Return columns as a data frame of pandas with NumPy's numbers, missing ones as nan, and categories.

    A frame that is just that is returned itself.

    Raises
    ------
    ValueError
        If a column is neither a number nor a category; the message names it.
    """
    import pandas as pd

    native = frame.to_native()
    if not isinstance(native, pd.DataFrame):
        return pd.DataFrame({name: _column(frame.get_column(name)) for name in names}, columns=list(names), copy=False)
    found = native if list(native.columns) == list(names) else native[list(names)]
    foreign = [name for name in names if not _is_plain(native[name].dtype)]
    if foreign:
        found = found.copy(deep=False)
        for name in foreign:
            found[name] = _column(frame.get_column(name))
    return found


def _is_plain(kind: Any) -> bool:
    import pandas as pd

    if isinstance(kind, np.dtype):
        return kind.kind in "biuf"
    return isinstance(kind, pd.CategoricalDtype | pd.SparseDtype)


def _column(series: nw.Series[Any]) -> Any:
    import pandas as pd

    kind = series.dtype
    if kind.is_float() or kind.is_integer():
        return series.to_numpy()
    if kind.is_numeric() or kind == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    if isinstance(kind, nw.Enum):
        return pd.Categorical(series.to_list(), categories=list(kind.categories))
    if kind == nw.Categorical:
        # The values that occur, in order: polars would name those of every other column too.
        return pd.Categorical(series.to_list())
    if kind == nw.Object:  # of numbers of several kinds, perhaps
        with suppress(TypeError, ValueError):
            return series.to_numpy().astype(np.float64)
    raise ValueError(f"column {series.name!r} is {kind}, not numeric; make it a number or a category, or leave it out")


def refuse_categories(X: Any, who: str) -> None:
    """Raise a ValueError that names the first categorical column of a data frame."""
    import pandas as pd

    for name in X.columns:
        if isinstance(X[name].dtype, pd.CategoricalDtype):
            raise ValueError(
                f"column {name!r} is a category, which {who} does not take; make numbers of it, for example with "
                "sklearn.preprocessing.OneHotEncoder, leave it out, or use TreeRanker, which splits categories"
            )


def refuse_infinite(X: pd.DataFrame) -> None:
    """Raise a ValueError that names the first infinite number in a data frame."""
    for i, name in enumerate(X.columns):
        column = X.iloc[:, i]
        if column.dtype.kind != "f":
            continue
        values = column.to_numpy()
        found = np.flatnonzero(np.isinf(values))
        if found.size:
            raise ValueError(
                f"X is {values[found[0]]} in row {found[0]}, feature {name!r}; features must be finite or missing: "
                "replace it first"
            )
