"""Early stopping of XGBoost on a boostlist metric.

XGBoost minimises a custom metric unless its name begins with one of a few that it knows (auc, pre, map, ndcg): on
``"mrr"`` or ``"err@10"`` it would stop at once and keep the worst round. LightGBM is told the direction by the metric.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boostlist.metrics import Metric


def xgboost_name(metric: Metric) -> str:
    """Return the metric's name without what XGBoost takes for the end of one: colons and blanks of a label."""
    return re.sub(r"[:\s]", "_", metric.name)


def xgboost_early_stopping(
    metric: Metric, rounds: int, *, data_name: str | None = None, save_best: bool = False, min_delta: float = 0.0
) -> Any:
    """Return a callback for ``xgb.train`` or ``xgb.cv`` that stops on the metric, in the metric's own direction.

    Parameters
    ----------
    metric
        The metric; it is also to be passed as ``custom_metric=``.
    rounds
        Number of rounds without improvement after which training stops.
    data_name
        Name, in ``evals=``, of the data to look at; the last one if None.
    save_best
        Whether the model returned ends at the best round.
    min_delta
        Smallest change that counts as an improvement.

    Examples
    --------
    >>> import xgboost as xgb
    >>> from boostlist import boosters, metrics
    >>> stop = boosters.xgboost_early_stopping(metrics.MRR(), rounds=20)
    >>> stop.maximize
    True
    """
    import xgboost as xgb

    return xgb.callback.EarlyStopping(
        rounds=rounds,
        metric_name=xgboost_name(metric),
        data_name=data_name,
        maximize=metric.higher_is_better,
        save_best=save_best,
        min_delta=min_delta,
    )


def lightgbm_early_stopping(metric: Metric, rounds: int, *, data_name: str) -> Any:
    """Return a callback for ``lgb.train`` that stops on one metric of one data set.

    LightGBM's own ``early_stopping`` knows the direction, but looks at every data set and stops at the first that no
    longer improves.

    Parameters
    ----------
    metric
        The metric; it is also to be passed as ``feval=``.
    rounds
        Number of rounds without improvement after which training stops.
    data_name
        Name, in ``valid_names=``, of the data to look at.
    """
    import lightgbm as lgb

    values: list[float] = []

    def stop(env: Any) -> None:
        if env.iteration == env.begin_iteration:
            values.clear()
        results = env.evaluation_result_list
        values.append(next(r[2] for r in results if r[0] == data_name and r[1] == metric.name))
        best = best_round(metric, values)
        if len(values) - 1 - best >= rounds or env.iteration == env.end_iteration - 1:
            raise lgb.callback.EarlyStopException(env.begin_iteration + best, results)

    stop.order = 30  # type: ignore[attr-defined]  # after the callback that records the results
    return stop


def best_round(metric: Metric, values: list[float]) -> int:
    """Return the first round with the best value, counted from 0."""
    best = max(values) if metric.higher_is_better else min(values)
    return values.index(best)
