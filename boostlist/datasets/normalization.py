"""Feature normalisations of the papers.

- query-minmax: (x - min) / (max - min) over the query, 0 where max = min (LETOR 3.0 and 4.0, "QueryLevelNorm")
- query-l2: x / |x|, |x| the Euclidean norm of the feature over the query, 1 if that is 0 (Olinto 2016, appendix)
- zscore: (x - mean) / deviation over the training set, deviation 1 if that is 0 (Tran, Phung and Venkatesh 2011)
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from boostlist._typing import FloatArray, IntArray

Method = Literal["query-minmax", "query-l2", "zscore"]


def normalized(X: Any, start: IntArray, method: Method, fit: Any = None) -> Any:
    """Return normalised features, computed in float64 and stored as X is; see `RankingData.normalize`."""
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {', '.join(get_args(Method))}, got {method!r}")
    if fit is not None and method != "zscore":
        raise ValueError(f"{method} has no parameters to fit; it looks at one query at a time")
    if not isinstance(X, np.ndarray):
        return _sparse_query_l2(X, start, method)
    out = np.empty_like(X)
    if method == "zscore":
        mean, deviation = _moments(X if fit is None else fit)
        if len(mean) != X.shape[1]:
            raise ValueError(f"fit has {len(mean):,} features, the data {X.shape[1]:,}")
    for a, b in pairwise(start.tolist()):
        x = X[a:b].astype(np.float64)
        if method == "zscore":
            out[a:b] = (x - mean) / deviation
        elif method == "query-l2":
            norm = np.sqrt(np.nansum(np.square(x), axis=0))
            out[a:b] = x / np.where(norm > 0, norm, 1)
        else:
            # fmin and fmax pass over missing values.
            low, high = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)
            out[a:b] = (x - low) / np.where(high > low, high - low, 1)
    return out


def _moments(X: Any) -> tuple[FloatArray, FloatArray]:
    if not isinstance(X, np.ndarray):
        raise ValueError("fit must be dense, as the data is; load it with sparse=False")
    mean, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    count = np.zeros(X.shape[1])
    rows = 65_536  # in blocks, so that no float64 copy of the whole of X is made
    for first in range(0, len(X), rows):
        count += np.sum(~np.isnan(X[first : first + rows]), axis=0)
        mean += np.nansum(X[first : first + rows], axis=0, dtype=np.float64)
    mean /= np.maximum(count, 1)
    for first in range(0, len(X), rows):
        square += np.nansum(np.square(X[first : first + rows] - mean), axis=0)
    deviation = np.sqrt(square / np.maximum(count, 1))
    return mean, np.where(deviation > 0, deviation, 1)


def _sparse_query_l2(X: Any, start: IntArray, method: Method) -> Any:
    if method != "query-l2":
        raise ValueError(f"{method} moves zeros, so a sparse matrix would not stay sparse; load with sparse=False")
    out = X.astype(X.dtype, copy=True)
    out.data.flags.writeable = True
    for a, b in pairwise(X.indptr[start].tolist()):
        x, column = X.data[a:b].astype(np.float64), X.indices[a:b]
        columns, place = np.unique(column, return_inverse=True)
        norm = np.sqrt(np.bincount(place, weights=np.nan_to_num(x) ** 2, minlength=len(columns)))
        out.data[a:b] = x / np.where(norm > 0, norm, 1)[place]
    return out
