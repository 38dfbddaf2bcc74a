"""Metrics in training: as LightGBM's ``feval`` and XGBoost's ``custom_metric``, and as `TreeRanker` is given them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from boostlist.boosters.binding import bound_once, is_instance, read_call
from boostlist.boosters.lists import Lists
from boostlist.metrics.base import Metric
from boostlist.metrics.names import get_all
from boostlist.queries import Queries


def evaluate(
    metric: Metric, a: Any, b: Any, weight: Any = None, group: Any = None
) -> tuple[str, float, bool] | tuple[str, float]:
    """Return name, value and direction for LightGBM; name and value for XGBoost, which takes no direction."""
    call = read_call(a, b, weight, group)
    value = bound_once(call, metric, lambda lists: metric.bind(lists.judged)).mean(call.scores)
    if is_instance(call.owner, "xgboost", "DMatrix"):
        return metric.name, value
    return metric.name, value, metric.higher_is_better


def chosen_metrics(eval_metric: str | Metric | Sequence[str | Metric], data: Sequence[Queries]) -> list[Metric]:
    """Return metrics by name or as they are, for grades up to the largest of their label in any of the data."""

    def y_max(label: str | None) -> float:
        # Data for evaluation needs the labels of metrics, training data those of the loss.
        known = [queries for queries in data if label is None or label in queries.named]
        return max((float(queries.labelled(label).labels.max(initial=0)) for queries in known), default=0.0)

    return [metric.up_to(y_max(metric.label)) for metric in get_all(eval_metric)]


def refuse_missing_labels(metrics: Sequence[Metric], valid: Iterable[Lists]) -> None:
    """Raise a ValueError if a metric looks at a label that data for evaluation has not."""
    for i, lists in enumerate(valid):
        for metric in metrics:
            if metric.label not in (None, *lists.queries.named):
                raise ValueError(
                    f"eval_set[{i}] has no label {metric.label!r}, which eval_metric {metric.name!r} looks at; give it "
                    "labels by name too"
                )
