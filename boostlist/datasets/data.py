"""RankingData: features, labels and query ids of a data set, and the way from there to either booster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.arrays import frozen
from boostlist.datasets._frames import DOCID, POSITION, WEIGHT, Categories, check_categories, make_frame, read_frame
from boostlist.datasets.description import Description
from boostlist.datasets.normalization import Method, normalized
from boostlist.frames import columns_of
from boostlist.positions import Positions
from boostlist.queries import Queries, query_boundaries, query_codes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class RankingData:
    """Documents with features, grouped into queries. Arrays are read-only.

    Attributes
    ----------
    X
        Features: a float32 or float64 array, or a ``scipy.sparse.csr_matrix``, a row a document.
    y
        Label of each document, float64; several labels by name, given as a mapping, are `labels`, and y is the first.
    qid
        Query id of each document; the documents of a query are adjacent.
    query_weight
        Weight of each query, in order of appearance, or None.
    feature_names
        A name for each feature, or None.
    comments
        What followed ``#`` on each line of the file, or None.
    categories
        Values of each categorical feature, by its name, or None. X holds their positions, nan where they are missing.
    position
        Where each document was shown, if the labels are clicks: labels of any kind; or None.
    labels
        All labels by name, the first of which is y, or None if there is but one.
    """

    X: Any
    y: FloatArray
    qid: AnyArray
    query_weight: FloatArray | None = None
    feature_names: tuple[str, ...] | None = None
    comments: AnyArray | None = None
    categories: Categories | None = None
    position: AnyArray | None = None
    labels: Mapping[str, FloatArray] | None = None
    _start: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        X = _matrix(self.X)
        columns = columns_of(self.y)
        labels = {name: np.asarray(each, np.float64) for name, each in (columns or self.labels or {}).items()}
        y = np.asarray(self.y if columns is None else next(iter(labels.values())), np.float64)
        qid = np.asarray(self.qid)
        for name, array in {"y": y, "qid": qid, **{f"labels[{name!r}]": each for name, each in labels.items()}}.items():
            if array.shape != (X.shape[0],):
                raise ValueError(f"{name} has shape {array.shape} but X has {X.shape[0]:,} rows")
        start = query_boundaries(qid, _GROUP_FIRST)
        checked: dict[str, Any] = {"X": X, "y": frozen(y), "qid": frozen(qid), "_start": start}
        if labels:
            if not np.array_equal(y, next(iter(labels.values())), equal_nan=True):
                raise ValueError("y is not the first of the labels; give all of them as y, by name")
            checked["labels"] = {name: frozen(each) for name, each in labels.items()}
        if self.query_weight is not None:
            checked["query_weight"] = frozen(_query_weight(self.query_weight, len(start) - 1))
        if self.feature_names is not None:
            names = tuple(str(name) for name in self.feature_names)
            if len(names) != X.shape[1] or len(set(names)) != len(names):
                raise ValueError(f"feature_names must be {X.shape[1]} different names, got {len(names)}")
            checked["feature_names"] = names
        for name, kind in (("comments", object), ("position", None)):
            if (given := getattr(self, name)) is not None:
                checked[name] = frozen(np.asarray(given, kind))
                if checked[name].shape != y.shape:
                    raise ValueError(f"{name} has shape {checked[name].shape} but X has {X.shape[0]:,} rows")
        if self.categories is not None:
            checked["categories"] = {name: tuple(values) for name, values in self.categories.items()}
            check_categories(X, checked.get("feature_names"), checked["categories"])
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        return (
            f"RankingData({self.n_documents:,} documents, {self.n_queries:,} queries, "
            f"{self.n_features:,} features, {kind} {self.X.dtype})"
        )

    def __len__(self) -> int:
        return self.n_documents

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self._start) - 1

    @property
    def is_sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return not isinstance(self.X, np.ndarray)

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names; f1, f2, ... where none were given."""
        return self.feature_names or tuple(f"f{j}" for j in range(1, self.n_features + 1))

    @cached_property
    def queries(self) -> Queries:
        """Labels, list boundaries and weights, as losses and metrics take them.

        Raises
        ------
        ValueError
            If a label is negative or not finite: LETOR marks unjudged documents by -1; drop these first.
        """
        return Queries.from_sizes(self.targets, np.diff(self._start), self.query_weight)

    @property
    def targets(self) -> Any:
        """What ``fit`` of a ranker takes for labels: y, or all labels by name where there are several."""
        return self.y if self.labels is None else dict(self.labels)

    def lgb_dataset(self, **options: Any) -> Any:
        """Make a ``lightgbm.Dataset`` with labels, groups, weights (one per document), names, categories, positions.

        Parameters
        ----------
        **options
            Passed on to ``lightgbm.Dataset``, for example ``reference=`` or ``params=``.
        """
        import lightgbm as lgb

        queries = self.queries
        given: dict[str, Any] = {"label": self.y, "group": queries.sizes}
        if self.query_weight is not None:
            given["weight"] = np.repeat(queries.weight, queries.sizes)
        if self.feature_names is not None:
            given["feature_name"] = list(self.feature_names)
        if self.categories is not None:
            given["categorical_feature"] = list(self.categories)
        if self.position is not None:
            given["position"] = Positions.of(self.position, len(self)).codes
        return lgb.Dataset(self.X, **(given | options))

    def xgb_dmatrix(self, **options: Any) -> Any:
        """Make an ``xgboost.DMatrix`` with labels, groups, weights (one per query), feature names and categories.

        In a CSR matrix, XGBoost takes what is not stored for missing, not for 0.

        Parameters
        ----------
        **options
            Passed on to ``xgboost.DMatrix``.
        """
        import xgboost as xgb

        queries = self.queries
        given: dict[str, Any] = {"label": self.y, "group": queries.sizes}
        if self.query_weight is not None:
            given["weight"] = queries.weight
        if self.feature_names is not None:
            given["feature_names"] = list(self.feature_names)
        if self.categories is not None:
            given["feature_types"] = ["c" if name in self.categories else "q" for name in self.names]
            given["enable_categorical"] = True
        return xgb.DMatrix(self.X, **(given | options))

    def feature_frame(self) -> pd.DataFrame:
        """Return the features as a data frame, with their names and categories."""
        return make_frame(self.X.toarray() if self.is_sparse else self.X, self.names, self.categories)

    def to_frame(
        self, qid: str = "qid", label: str = "label", weight: str = WEIGHT, position: str = POSITION
    ) -> pd.DataFrame:
        """Return a data frame with the columns qid, label, position and weight if there are any, then the features.

        Several labels have columns of their own names.
        """
        columns = {qid: self.qid, **({label: self.y} if self.labels is None else self.labels)}
        if self.position is not None:
            columns[position] = self.position
        if self.query_weight is not None:
            columns[weight] = np.repeat(self.query_weight, np.diff(self._start))
        taken = set(columns) & set(self.names)
        if taken:
            raise ValueError(f"a feature is named {min(taken)!r} too; give other names for qid=, label= and so on")
        frame = self.feature_frame()
        for place, (name, values) in enumerate(columns.items()):
            frame.insert(place, name, values)
        return frame

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        qid: str = "qid",
        label: str | Sequence[str] = "label",
        features: Sequence[str] | None = None,
        weight: str | None = WEIGHT,
        position: str | None = POSITION,
        docid: str | None = DOCID,
        sort: bool = False,
    ) -> RankingData:
        """Make ranking data from a data frame of pandas, polars, pyarrow or another library that narwhals knows.

        Parameters
        ----------
        frame
            A row a document.
        qid, label
            Names of the columns with query ids and labels; several labels, of which the first is y, are a list.
        features
            Names of the feature columns, numbers or categories; None means all others.
        weight
            Name of the column with the weight of the query, the same in all its rows. A column ``weight`` is one unless
            `features` names it; None makes it a feature.
        position
            Name of the column that says where the document was shown, likewise.
        docid
            Name of the column with ids of documents, likewise; they become comments, as in LETOR text.
        sort
            Bring the documents of a query together where others lie between, which is an error otherwise.

        Raises
        ------
        ValueError
            If a column is not there, or neither number nor category, or weights differ within a query, or its documents
            are scattered; the message names it.
        """
        given = read_frame(frame, qid, label, weight, features, position, docid)
        if sort:
            return cls.grouped(**given)
        query_boundaries(given["qid"], "use RankingData.from_frame(frame, sort=True)")
        return cls(**given)

    @classmethod
    def grouped(cls, X: Any, y: Any, qid: ArrayLike, **others: Any) -> RankingData:
        """Make data of documents in any order: those of a query are brought together, in the order of their first ones.

        Parameters
        ----------
        X, y, qid, **others
            The attributes, an entry for each document; `query_weight` has one for each query, in order of appearance.
        """
        codes, ids = query_codes(qid)
        if np.all(np.diff(codes) >= 0):
            return cls(X, y, ids, **others)
        given = {"X": _matrix(X), "y": columns_of(y) or y, "qid": ids, **others}
        return cls(**(given | _rows(given, np.argsort(codes, kind="stable"))))

    @classmethod
    def concat(cls, parts: Sequence[RankingData]) -> RankingData:
        """Put data sets with the same features one after the other.

        Raises
        ------
        ValueError
            If their features differ, or a query occurs in two of them.
        """
        first = parts[0]
        for part in parts[1:]:
            same = ("n_features", "feature_names", "categories")
            if any(getattr(part, name) != getattr(first, name) for name in same):
                raise ValueError(f"cannot join {first} and {part}: their features differ")
        if any(part.is_sparse for part in parts):
            from scipy.sparse import csr_matrix, vstack

            X = vstack([csr_matrix(part.X) for part in parts], format="csr")
        else:
            X = np.concatenate([part.X for part in parts])

        def joined(name: str) -> Any:
            arrays = [getattr(part, name) for part in parts]
            return None if any(array is None for array in arrays) else np.concatenate(arrays)

        qid = joined("qid")
        if query_codes(qid)[0].max(initial=-1) + 1 != sum(part.n_queries for part in parts):
            raise ValueError("a query occurs in more than one of the data sets")
        optional = {name: joined(name) for name in ("query_weight", "comments", "position")}
        named = [part.labels or {} for part in parts]
        if any(list(each) != list(named[0]) for each in named):
            raise ValueError(f"cannot join data with the labels {', '.join(named[0])} and data with others")
        optional["labels"] = {name: np.concatenate([each[name] for each in named]) for name in named[0]} or None
        return cls(X, joined("y"), qid, feature_names=first.feature_names, categories=first.categories, **optional)

    def select(self, queries: ArrayLike) -> RankingData:
        """Return some of the queries.

        Parameters
        ----------
        queries
            Their positions (0 is the first query of the data), in the order wanted, or a boolean for each query.
        """
        chosen = np.asarray(queries)
        if chosen.dtype == bool and chosen.shape != (self.n_queries,):
            raise ValueError(
                f"a mask holds one boolean for each of the {self.n_queries:,} queries, got {len(chosen):,}"
            )
        if chosen.size and not (chosen.dtype == bool or np.issubdtype(chosen.dtype, np.integer)):
            raise ValueError(f"queries are chosen by position or by a mask, got {chosen.dtype}")
        outside = chosen[(chosen < -self.n_queries) | (chosen >= self.n_queries)] if chosen.size else chosen
        if outside.size:
            raise IndexError(
                f"there is no query {outside.flat[0]}: select takes positions, not ids, and the data has "
                f"{self.n_queries:,} queries, counted from 0"
            )
        chosen = np.arange(self.n_queries)[chosen.astype(np.int64) if not chosen.size else chosen]
        if len(np.unique(chosen)) < len(chosen):
            raise ValueError("a query was chosen twice; its copies would be one query")
        start, sizes = self._start[chosen], np.diff(self._start)[chosen]
        # Rows of the chosen queries one after the other, without a loop over queries.
        rows = np.arange(sizes.sum()) + np.repeat(start - np.cumsum(sizes) + sizes, sizes)
        weight = None if self.query_weight is None else self.query_weight[chosen]
        return replace(self, **_rows(vars(self), rows), query_weight=weight)

    def split(self, *shares: float, seed: int | None = 0) -> tuple[RankingData, ...]:
        """Split by query.

        Parameters
        ----------
        *shares
            Share of the queries in each part; what is missing to 1 is one more part: ``split(0.8)`` gives two parts,
            ``split(0.6, 0.2, 0.2)`` three.
        seed
            Queries are assigned at random by this seed; None cuts them in the order they have.

        Raises
        ------
        ValueError
            If shares are not positive, sum to more than 1, or leave a part without queries.
        """
        if not all(isinstance(share, int | float | np.number) for share in shares):
            raise TypeError(f"shares are numbers, such as split(0.6, 0.2, 0.2), got {', '.join(map(repr, shares))}")
        total = sum(shares)
        if not shares or min(shares) <= 0 or total > 1 + 1e-9:
            raise ValueError(f"shares must be positive and sum to at most 1, got {shares}")
        cuts = np.rint(np.cumsum(shares) * self.n_queries).astype(np.int64)
        order = np.arange(self.n_queries) if seed is None else np.random.default_rng(seed).permutation(self.n_queries)
        groups = np.split(order, cuts[:-1] if total > 1 - 1e-9 else cuts)
        if not all(len(group) for group in groups):
            raise ValueError(
                f"with shares {shares} of {self.n_queries:,} queries, part {[len(group) for group in groups].index(0)} "
                "would have none; choose larger shares or fewer parts"
            )
        return tuple(self.select(np.sort(group)) for group in groups)

    def normalize(self, method: Method, fit: RankingData | None = None) -> RankingData:
        """Return the data with normalised features; missing values stay missing, and categories what they are.

        Parameters
        ----------
        method
            "query-minmax": (x - min) / (max - min) over the documents of the query, 0 where all are equal (LETOR's
            QueryLevelNorm). "query-l2": x / |x| with the Euclidean norm of the feature over the query's documents
            (Olinto's thesis). "zscore": (x - mean) / standard deviation over all documents (Tran et al. 2011).
        fit
            For "zscore": the training data that mean and deviation are taken from; None means this data itself.
        """
        X = normalized(self.X, self._start, method, None if fit is None else fit.X)
        for name in self.categories or ():
            X[:, self.names.index(name)] = self.X[:, self.names.index(name)]
        return replace(self, X=X)

    def describe(self) -> Description:
        """Summarise documents, queries, grades and list lengths."""
        sizes = np.diff(self._start)
        grades, counts = np.unique(self.y, return_counts=True)
        best = np.maximum.reduceat(self.y, self._start[:-1]) if len(sizes) else sizes
        return Description(
            documents=self.n_documents,
            queries=self.n_queries,
            features=self.n_features,
            grades=dict(zip(grades.tolist(), counts.tolist(), strict=True)),
            shortest=int(sizes.min()) if len(sizes) else 0,
            median_length=float(np.median(sizes)) if len(sizes) else 0.0,
            longest=int(sizes.max(initial=0)),
            empty_queries=int(np.sum(best <= 0)),
        )


_GROUP_FIRST = "sort first, or let RankingData.grouped(X, y, qid) bring them together"
_BY_ROW = ("X", "y", "qid", "comments", "position", "labels")


def _rows(given: Mapping[str, Any], rows: IntArray) -> dict[str, Any]:
    """Return some rows of those attributes that have an entry, or several by name, for each document."""

    def take(values: Any) -> Any:
        if isinstance(values, Mapping):
            return {name: take(each) for name, each in values.items()}
        return (values if hasattr(values, "tocsr") else np.asarray(values))[rows]

    return {name: take(given[name]) for name in _BY_ROW if given.get(name) is not None}


def _query_weight(weight: ArrayLike, queries: int) -> FloatArray:
    array = np.asarray(weight, np.float64)
    if array.shape != (queries,):
        raise ValueError(f"query_weight has shape {array.shape} but there are {queries:,} queries: one weight for each")
    return array


def _matrix(X: Any) -> Any:
    """Return a read-only two-dimensional array, or a CSR matrix, of float32 or float64."""
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_matrix

        matrix: Any = X if isinstance(X, csr_matrix) else csr_matrix(X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        arrays = tuple(frozen(array) for array in (matrix.data, matrix.indices, matrix.indptr))
        return csr_matrix(arrays, shape=matrix.shape)
    array = np.asarray(X)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got shape {array.shape}")
    return frozen(array)
