"""A metric as LightGBM's ``feval`` and XGBoost's ``custom_metric``."""

from __future__ import annotations

from typing import Any

from boostlist.boosters.binding import bound_once, is_instance, read_call
from boostlist.metrics.base import Metric


def evaluate(
    metric: Metric, a: Any, b: Any, weight: Any = None, group: Any = None
) -> tuple[str, float, bool] | tuple[str, float]:
    """Return name, value and direction for LightGBM; name and value for XGBoost, which takes no direction."""
    call = read_call(a, b, weight, group)
    value = bound_once(call, metric, lambda lists: metric.bind(lists.judged)).mean(call.scores)
    if is_instance(call.owner, "xgboost", "DMatrix"):
        return metric.name, value
    return metric.name, value, metric.higher_is_better
