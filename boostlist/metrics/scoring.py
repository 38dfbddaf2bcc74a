"""Metrics as scikit-learn scorers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boostlist.frames import qid_column
from boostlist.queries import Queries

if TYPE_CHECKING:
    from boostlist.metrics.base import Metric


@dataclass(frozen=True)
class Scorer:
    """What ``scoring=`` of `sklearn.model_selection.GridSearchCV` and `cross_validate` takes; larger is better.

    Queries come from a column ``"qid"`` of the data frame X, or by metadata routing: switch it on with
    ``sklearn.set_config(enable_metadata_routing=True)`` and pass ``qid=`` to ``fit``.
    """

    metric: Metric

    def __call__(self, estimator: Any, X: Any, y: Any, qid: Any = None) -> float:
        """Return the mean of the metric over the queries of X, negated where lower is better."""
        qid = qid_column(X) if qid is None else qid
        if qid is None:
            raise ValueError(
                f"scoring {self.metric.name} needs the query of each row: keep it in a column 'qid' of a data "
                "frame X, or pass qid= with metadata routing on, sklearn.set_config(enable_metadata_routing=True)"
            )
        mean = self.metric.mean(estimator.predict(X), Queries.from_qid(y, qid))
        return mean if self.metric.higher_is_better else -mean

    def get_metadata_routing(self) -> Any:
        """Ask scikit-learn for ``qid``."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request
