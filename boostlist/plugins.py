"""The one door upwards: losses and metrics as plug-ins of LightGBM and XGBoost.

``lgb.train({"objective": loss}, ...)`` calls the loss itself, ``feval=metric`` the metric. What such a call needs to
know of the hosts is in `boostlist.boosters`, which stands above losses and metrics and is built on them. They reach it
through here and nowhere else, when the call comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist.boosters.objective import Objective
    from boostlist.losses.base import Loss
    from boostlist.metrics.base import Metric


def objective(loss: Loss, **parameters: Any) -> Objective:
    """Return a loss as an objective."""
    from boostlist.boosters.objective import Objective

    return Objective(loss=loss, **parameters)


def with_labels(loss: Loss | Objective, labels: Mapping[str, ArrayLike]) -> Objective:
    """Return a loss as an objective that has further labels."""
    from boostlist.boosters.labels import with_labels

    return with_labels(loss, labels)


def with_propensity(loss: Loss | Objective, propensity: ArrayLike, clip: float) -> Any:
    """Return a loss as an objective that weighs clicks by inverse propensity."""
    from boostlist.boosters.logged import with_propensity

    return with_propensity(loss, propensity, clip)


def evaluation(metric: Metric, *call: Any) -> tuple[str, float, bool] | tuple[str, float]:
    """Answer a host that calls a metric."""
    from boostlist.boosters.evaluation import evaluate

    return evaluate(metric, *call)
