"""RankingEstimator: what every ranker shares, reading queries, weights and features, ranking and scoring.

An estimator is fitted with ``fit(X, y, qid=)``, ``fit(X, y, group=)``, or with a data frame X that has a column
``"qid"``. The column is the first choice for cross-validation, since every splitter carries it along; it is never a
feature, neither in ``fit`` nor in ``predict``. Query ids as an array reach an estimator inside scikit-learn's searches
by metadata routing; sizes of groups cannot, since no splitter can cut them.

Weights are ``sample_weight`` everywhere, one for each row or for each query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.calibration import METHODS, Isotonic, Logistic, Method
from boostlist.checks import check_choice, check_weight, warn
from boostlist.frames import QID, columns_of, numeric_columns, qid_column, refuse_categories, without_qid
from boostlist.queries import Queries, query_boundaries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist.losses import Loss
    from boostlist.queries import Labels

_MANY = 50  # rows in which a feature does not equal the label by chance


class RankingEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of ranking estimators.

    A subclass has ``fit(X, y, qid=None, group=None, *, sample_weight=None)``, which begins with `_read_training`, and
    ``predict(X)``, which begins with `_read_features`.
    """

    calibration_: Logistic | Isotonic

    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012

    def predict(self, X: Any) -> FloatArray:
        """Return the score of each row; a higher score ranks further up."""
        raise NotImplementedError

    def rank(self, X: Any, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> IntArray:
        """Return the rows in ranked order: query after query, in each the best row first, equal scores in row order.

        Parameters
        ----------
        X, qid, group
            As for ``fit``; with neither qid, group nor a column ``qid`` all rows are one query.
        """
        scores = self._list_scores(X, qid, group)
        return np.lexsort((-scores, self._query_numbers(X, qid, group, len(scores))))

    def _query_numbers(self, X: Any, qid: ArrayLike | None, group: ArrayLike | None, rows: int) -> IntArray:
        """Return 0, 1, ... for the query of each row; with neither ids, sizes nor a column all rows are one query."""
        start = list_starts(X, rows, qid, group)
        if start is None:
            return np.zeros(rows, np.int64)
        return np.repeat(np.arange(len(start) - 1), np.diff(start))

    # scikit-learn's Pipeline.score names sample_weight whether it is given or not, and fails if no step knows it.
    def score(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean NDCG@10 of the predicted ranking, with the defaults of `boostlist.metrics.NDCG`.

        Parameters
        ----------
        X, y, qid, group
            As for ``fit``.
        sample_weight
            Weight of each row or of each query; a query counts with the mean weight of its rows.
        """
        from boostlist.metrics import NDCG

        queries = self._read_queries(X, y, qid, group, "score")
        if sample_weight is not None:
            weight = checked_weight(sample_weight, queries)
            if len(weight) != queries.n_queries:
                weight = np.add.reduceat(weight, queries.start[:-1]) / queries.sizes
            queries = queries.with_weight(weight)
        return NDCG(k=10).mean(self._list_scores(X, qid, group), queries)

    def calibrate(
        self,
        X: Any,
        y: Labels,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        method: Method = "logistic",
    ) -> Self:
        """Learn what scores are worth: a rising map from score to expected label, for `predict_relevance`.

        Use data that the ranker was not trained on: of training data it would promise too much. The map is stored with
        the model and forgotten by the next ``fit``.

        Parameters
        ----------
        X, y
            Features and labels, as for ``fit``; of several labels the main one. Labels may be other than those of the
            training: with clicks of 0 and 1 `predict_relevance` is a probability of a click.
        qid, group
            Queries, needed only by a ranker whose scores depend on them, and where weights are by query.
        sample_weight
            Weight of each row or of each query.
        method
            ``"logistic"``, a smooth curve that keeps the order of all scores; or ``"isotonic"``, steps of any shape,
            for thousands of relevant documents.
        """
        check_choice("method", method, Method)
        scores = self._list_scores(X, qid, group)
        labels = next(iter((columns_of(y) or {"": y}).values()))
        if len(labels) != len(scores):
            raise ValueError(f"{type(self).__name__}.calibrate: X has {len(scores):,} rows but y has {len(labels):,}")
        start = list_starts(X, len(scores), qid, group)
        queries = Queries.from_sizes(y, [len(scores)] if start is None else np.diff(start))
        weight = np.ones(len(scores)) if sample_weight is None else checked_weight(sample_weight, queries)
        if len(weight) != len(scores):
            weight = np.repeat(weight, queries.sizes)
        counted = weight > 0
        self.calibration_ = METHODS[method].fitted(scores[counted], queries.labels[counted], weight[counted])
        return self

    def predict_relevance(self, X: Any, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> FloatArray:
        """Return the expected label of each row: what its score is worth by `calibrate`.

        Scores themselves have no unit. They order the documents of a query, and most losses leave open what is added to
        all of them.

        Parameters
        ----------
        X
            Features, as for ``predict``.
        qid, group
            Queries, for a ranker whose scores depend on them.

        Raises
        ------
        ValueError
            If the ranker is not calibrated.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise ValueError(
                f"this {type(self).__name__} does not know what its scores are worth: call calibrate(X, y) first, with "
                "data that it was not trained on"
            )
        return self.calibration_(self._list_scores(X, qid, group))

    def _uncalibrate(self) -> None:
        """Forget what scores were worth before a new fit."""
        if hasattr(self, "calibration_"):
            del self.calibration_

    def _list_scores(self, X: Any, qid: ArrayLike | None, group: ArrayLike | None) -> FloatArray:
        """Return the scores of rows in known lists; to be overridden where a score depends on its list."""
        return self.predict(X)

    def _read_training(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_weight: ArrayLike | None = None,
    ) -> tuple[Any, Queries]:
        """Return checked features, float32 or float64, dense or CSR, and the queries; remember number and names."""
        queries = self._read_queries(X, y, qid, group, "fit")
        if query_weight is not None:
            warn("query_weight is called sample_weight now, as everywhere", FutureWarning)
            if sample_weight is not None:
                raise ValueError(f"{type(self).__name__}.fit got sample_weight and, its old name, query_weight")
            sample_weight = query_weight
        if sample_weight is not None:
            weight = query_weights(checked_weight(sample_weight, queries), queries, type(self).__name__)
            queries = queries.with_weight(weight)
        return self._checked_features(X, "refuse", reset=True), queries

    def _read_features(self, X: Any, missing: Literal["refuse", "keep"] = "refuse") -> Any:
        """Return checked features for prediction; their number and names must be those of the training data."""
        check_is_fitted(self)
        return self._checked_features(X, missing, reset=False)

    def _read_queries(
        self,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        method: str,
    ) -> Queries:
        """Return the queries, from the arguments or else from the column ``qid`` of X."""
        name = f"{type(self).__name__}.{method}"
        if X is None or y is None:
            raise ValueError(f"{name} needs the features and the label of each row: pass X and y")
        if qid is not None and group is not None:
            raise ValueError(f"{name} got both qid and group; pass one of them")
        if group is not None:
            queries = Queries.from_sizes(y, group)
        else:
            ids = qid if qid is not None else qid_column(X)
            if ids is None:
                raise ValueError(
                    f"{name} needs the query of each row: pass qid= (an id for each row) or group= (the number of rows "
                    f"of each query), or give X as a data frame with a column {QID!r}. In scikit-learn's searches and "
                    "pipelines use that column, or switch metadata routing on, "
                    "sklearn.set_config(enable_metadata_routing=True), and pass qid= to the search"
                )
            queries = Queries.from_qid(y, ids)
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if rows != queries.n_documents:
            raise ValueError(f"{name}: X has {rows:,} rows but y has {queries.n_documents:,}")
        if not rows:
            raise ValueError(f"{name}: there are no rows")
        if method == "fit":
            _warn_of_label(X, queries.labels)
        return queries

    def _checked_features(self, X: Any, missing: Literal["refuse", "keep"], reset: bool) -> Any:
        checked = X
        if reset or not self._is_as_trained(X):
            given = without_qid(X)
            if hasattr(given, "columns"):
                refuse_categories(given, type(self).__name__)
            checked = validate_data(
                self,
                given,
                reset=reset,
                accept_sparse="csr",
                dtype=(np.float64, np.float32),
                ensure_all_finite=False,
            )
        _refuse_non_finite(checked, missing, getattr(self, "feature_names_in_", None))
        return checked

    def _is_as_trained(self, X: Any) -> bool:
        """Whether X is an array that scikit-learn would hand back as it is: its checks cost more than a list."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in (np.float64, np.float32)
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def list_starts(X: Any, rows: int, qid: ArrayLike | None, group: ArrayLike | None) -> IntArray | None:
    """Return where each list begins, with the number of rows appended; None if neither argument nor column says."""
    ids = qid if qid is not None else qid_column(X)
    if group is not None:
        return Queries.from_sizes(np.zeros(rows), group).start
    if ids is None:
        return None
    start = query_boundaries(ids)
    if start[-1] != rows:
        raise ValueError(f"there are {start[-1]:,} query ids for {rows:,} rows")
    return start


def checked_weight(sample_weight: ArrayLike, queries: Queries) -> FloatArray:
    """Return weights, one for each row or for each query, as an array.

    Raises
    ------
    ValueError
        If their number is wrong, if one is negative or not finite, or if all are 0.
    """
    weight = check_weight(sample_weight, queries.n_documents, queries.n_queries, "sample_weight")
    if not weight.any():
        raise ValueError("sample_weight is 0 everywhere, so that nothing counts; leave it out to weigh all alike")
    return weight


def warn_without_order(loss: Loss, queries: Queries) -> None:
    """Warn if a loss that compares documents has none to compare: all grades of each query are equal."""
    graded = (queries.labelled(label) for label in loss.by_label())
    if loss.traits.shift_invariant and not any(each.ordered.any() for each in graded):
        warn("no query has documents of different grades, so there is no order to learn: all scores come out equal")


def _warn_of_label(X: Any, labels: FloatArray) -> None:
    """Warn if a feature is the label, left among them by mistake: a model would look at nothing else."""
    if len(labels) < _MANY or (labels == labels[0]).all():
        return
    for name, column in numeric_columns(X):
        if np.array_equal(column[:_MANY], labels[:_MANY]) and np.array_equal(column, labels):
            warn(f"feature {name!r} is the label itself, in every row; leave it out of X: no model needs another")
            return


def query_weights(weight: FloatArray, queries: Queries, who: str) -> FloatArray:
    """Return the weight of each query, given those of queries or of rows that are equal within each query."""
    if len(weight) == queries.n_queries:
        return weight
    first = queries.start[:-1]
    row = np.flatnonzero(weight != np.repeat(weight[first], queries.sizes))
    if row.size:
        begin = int(first[np.searchsorted(first, row[0], side="right") - 1])
        raise ValueError(
            f"sample_weight is {weight[begin]:g} in row {begin} and {weight[row[0]]:g} in row {row[0]} of the same "
            f"query; {who} minimises a loss of whole lists, each of which has one weight. Give the rows of a query the "
            "same weight, or use TreeRanker, which multiplies the gradient of a document by its weight"
        )
    return weight[first]


def _refuse_non_finite(X: Any, missing: str, names: AnyArray | None) -> None:
    """Raise a ValueError that names the first infinite, or if so wanted missing, feature."""
    sparse = not isinstance(X, np.ndarray)
    values = X.data if sparse else X
    if not values.size:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):  # one quick pass; a sum may overflow, hence the second look
            return
    step = max(1, 2**20 // max(1, values.shape[-1] if values.ndim > 1 else 1))
    for begin in range(0, len(values), step):
        block = values[begin : begin + step]
        found = np.argwhere(np.isinf(block) if missing == "keep" else ~np.isfinite(block))
        if not len(found):
            continue
        at = int(found[0][0]) + begin
        row, column = (
            (int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])) if sparse else (at, found[0][1])
        )
        feature = repr(str(names[column])) if names is not None else str(column)
        value = values[at] if sparse else values[at, column]
        raise ValueError(
            f"X is {value} in row {row}, feature {feature}; features must be finite: fill or drop it first, "
            "for example with sklearn.impute.SimpleImputer"
        )
