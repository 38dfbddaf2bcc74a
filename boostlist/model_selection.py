"""Cross-validation that keeps queries whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.model_selection import BaseCrossValidator

from boostlist._typing import IntArray
from boostlist.checks import check_whole
from boostlist.frames import qid_column

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["QueryKFold"]


class QueryKFold(BaseCrossValidator):  # type: ignore[misc]
    """K folds of whole queries, for scikit-learn and for ``lgb.cv(folds=...)``.

    ``lgb.cv`` with a custom objective would otherwise split by rows, so that every fold sees part of every query.
    Queries are dealt to folds so that all folds have about the same number of queries.

    Parameters
    ----------
    n_splits
        Number of folds, at least 2.
    shuffle
        Whether to deal the queries in random instead of row order.
    random_state
        Seed for ``shuffle=True``.

    Examples
    --------
    With scikit-learn the query ids come by metadata routing (``GridSearchCV(...).fit(X, y, qid=qid)`` after
    ``sklearn.set_config(enable_metadata_routing=True)``), or from a column ``qid`` if X is a DataFrame.
    With LightGBM they come from the Dataset's group: ``lgb.cv(params, dataset, folds=QueryKFold(5))``.

    >>> from boostlist.model_selection import QueryKFold
    >>> for train, test in QueryKFold(2).split([[0]] * 5, qid=[7, 7, 3, 5, 5]):
    ...     print(train, test)
    [2] [0 1 3 4]
    [0 1 3 4] [2]
    """

    # Without a request of its own, scikit-learn's searches would not pass qid on to the splitter.
    __metadata_request__split = {"qid": True}  # noqa: RUF012

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | None = None) -> None:
        check_whole("n_splits", n_splits, least=2)
        if random_state is not None and not shuffle:
            raise ValueError("random_state has no effect without shuffle=True; drop it or set shuffle")
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, qid: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the training and the test rows of each fold, both ascending.

        Parameters
        ----------
        X
            Data with one row a document; only its length matters, unless it is a DataFrame with a column ``qid``.
        y
            Ignored.
        groups, qid
            Query id of each row, under scikit-learn's or boostlist's name.

        Raises
        ------
        ValueError
            If there are no query ids, or fewer queries than folds.
        """
        ids = next((ids for ids in (qid, groups, qid_column(X)) if ids is not None), None)
        if ids is None:
            raise ValueError(
                "QueryKFold needs the query of each row: pass qid= (in scikit-learn's searches by metadata routing, "
                "sklearn.set_config(enable_metadata_routing=True)), or give X as a DataFrame with a column 'qid'"
            )
        query, _ = pd.factorize(np.asarray(ids))
        if len(query) != (rows := X.shape[0] if hasattr(X, "shape") else len(X)):
            raise ValueError(f"there are {len(query):,} query ids for {rows:,} rows")
        missing = np.flatnonzero(query < 0)
        if missing.size:
            raise ValueError(f"qid[{missing[0]}] is missing; every row needs a query id")
        return self._folds(query)

    def _folds(self, query: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
        queries = int(query.max()) + 1 if len(query) else 0
        if queries < self.n_splits:
            raise ValueError(f"cannot make {self.n_splits} folds of {queries} queries; lower n_splits")
        order = np.arange(queries)
        if self.shuffle:
            np.random.default_rng(self.random_state).shuffle(order)
        fold_of_query = np.empty(queries, np.int64)
        fold_of_query[order] = np.arange(queries) % self.n_splits
        fold = fold_of_query[query]
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)
