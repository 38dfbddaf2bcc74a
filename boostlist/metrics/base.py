"""The interface of metrics.

A metric is a frozen dataclass: its conventions and nothing else. `Metric.bind` does all work that depends on labels
alone, once per data set; the bound metric then scores as often as needed. All metrics have one form,

    value_q = s_q(f) / divisor_q,      queries without relevant documents: value_q = empty,

where s is what the compiled loop makes of the scores and the divisor depends on labels only (for NDCG, the ideal DCG).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from boostlist import plugins
from boostlist._typing import FloatArray, IntArray
from boostlist.arrays import frozen
from boostlist.checks import check_call, concerning
from boostlist.parallel import over_queries
from boostlist.queries import Queries, check_queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from boostlist.metrics.scoring import Scorer

Empty = Literal[0, 1, "skip"]
"""What a query without relevant documents scores; ``"skip"`` leaves it out of means (NaN in per-query results)."""


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """Base of all metrics.

    A subclass sets `prefix` and defines `_bind`; one line in the registry makes it known to `boostlist.metrics.get`.

    Parameters
    ----------
    empty
        What a query without relevant documents scores.
    label
        Name of the label that the metric looks at, where documents have several; None for the main one.

    Attributes
    ----------
    prefix
        Name without cut-off: "ndcg" of "ndcg@10".
    higher_is_better
        Whether a larger value means a better ranking.
    """

    prefix: ClassVar[str]
    higher_is_better: ClassVar[bool] = True

    empty: Empty = 0
    label: str | None = None

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Make a metric of parameters by name."""
        check_call(cls, args, parameters)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if self.empty not in (0, 1, "skip") or isinstance(self.empty, bool):
            raise ValueError(f'empty must be 0, 1 or "skip", got {self.empty!r}')

    @property
    def name(self) -> str:
        """Name as `get` parses it, such as ``"ndcg@10"`` or ``"ndcg@10:click"``; conventions are not part of it."""
        k = getattr(self, "k", None)
        return self.prefix + ("" if k is None else f"@{k}") + ("" if self.label is None else f":{self.label}")

    def bind(self, queries: Queries) -> BoundMetric:
        """Do all work that depends on labels alone."""
        return self._bound(queries)

    def _bound(self, queries: Queries, *more: Any) -> BoundMetric:
        """Do so, with what else the metric needs, and let errors begin with its name."""
        check_queries(queries)
        with concerning(self.name):
            return self._bind(queries.labelled(self.label), *more)

    @abstractmethod
    def _bind(self, queries: Queries) -> BoundMetric:
        """Bind to queries whose main label is the metric's."""

    def up_to(self, y_max: float) -> Metric:
        """Return the metric for data whose largest grade is y_max; itself if it does not depend on that.

        A metric that does takes the largest label of what it is bound to, unless told otherwise: where the data is
        bound in parts - folds, shards, training and validation - the largest of all of them must be given first.
        """
        return self

    def per_query(self, scores: ArrayLike, queries: Queries) -> FloatArray:
        """Return the value of each query; NaN for a query that is skipped.

        Parameters
        ----------
        scores
            Score of each document, finite; a higher score ranks further up.
        queries
            The lists and their labels.

        Raises
        ------
        ValueError
            If the number of scores is wrong or one is not finite; the message names the first such row.
        """
        return self.bind(queries).per_query(scores)

    def mean(self, scores: ArrayLike, queries: Queries) -> float:
        """Return the mean over queries, weighted by query weight, without the queries that are skipped."""
        return self.bind(queries).mean(scores)

    def __call__(
        self, a: Any, b: Any, weight: Any = None, group: Any = None
    ) -> tuple[str, float, bool] | tuple[str, float]:
        """Serve as a custom metric: ``(preds, Dataset)``, ``(preds, DMatrix)`` or ``(y, preds, weight, group)``.

        Returns
        -------
        tuple
            Name, value and whether higher is better for LightGBM; name and value for XGBoost, which is told the
            direction by `boostlist.boosters.xgboost_early_stopping`.
        """
        return plugins.evaluation(self, a, b, weight, group)

    def scorer(self) -> Scorer:
        """Return the metric as a scikit-learn scorer, ``scorer(estimator, X, y, qid=None)``.

        The query ids come by metadata routing as ``qid``, or from a column ``"qid"`` of a data frame X.
        """
        from boostlist.metrics.scoring import Scorer

        return Scorer(self)


@dataclass(frozen=True, eq=False)
class BoundMetric:
    """A metric with everything computed that depends on labels alone.

    Attributes
    ----------
    metric, queries
        What was bound to what.
    loop, args
        Compiled loop, called as ``loop(lo, hi, start, f, *args, out)``.
    divisor
        What the loop's value of each query is divided by; infinity for a query that scores 0 whatever the scores.
    empty
        Queries whose value is ``metric.empty`` whatever the scores.
    order
        Order in which rows go to the loop, where equal scores are not ranked by row; else None.
    """

    metric: Metric
    queries: Queries
    loop: Callable[..., None]
    args: tuple[Any, ...]
    divisor: FloatArray
    empty: NDArray[np.bool_]
    order: IntArray | None = None

    def per_query(self, scores: ArrayLike) -> FloatArray:
        """Return the value of each query; NaN for a query that is skipped."""
        f = self.queries.scores(scores)
        if self.order is not None:
            f = frozen(f[self.order])
        values = self.sums(f)
        np.divide(values, self.divisor, out=values, where=~self.empty)
        values[self.empty] = np.nan if self.metric.empty == "skip" else self.metric.empty
        return values

    def sums(self, f: FloatArray) -> FloatArray:
        """Return s of each query, for scores of rows in the order of the loop."""
        values = np.empty(self.queries.n_queries)
        over_queries(self.loop, self.queries.start, self.queries.start, f, *self.args, values)
        return values

    def mean(self, scores: ArrayLike) -> float:
        """Return the mean over queries, weighted by query weight, without the queries that are skipped.

        Raises
        ------
        ValueError
            If no query with positive weight is left.
        """
        values, weight = self.per_query(scores), self.queries.weight
        if self.metric.empty == "skip":
            values, weight = values[~self.empty], weight[~self.empty]
        total = weight.sum()
        if total == 0:
            raise ValueError(
                f"{self.metric.name} has no mean: none of the {self.queries.n_queries:,} queries has both a positive "
                'weight and relevant documents; with empty=0 or empty=1 instead of "skip" the others count too'
            )
        # Not a BLAS dot product, which may round differently with another number of threads.
        return float(np.sum(weight * values) / total)
