"""`fit` and `evaluate`: one objective for all workers, the host's own engine, and an error where a worker is lost.

An objective has two properties of all documents: its scale and, for some losses, the label set. Workers see their own
documents only, so both are found here first and become part of the objective that every worker gets:

    scale = sum over parts of the number of positive diagonal entries / sum over parts of their sum,   at scores of 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future as LocalFuture
from concurrent.futures import wait
from dataclasses import fields, is_dataclass, replace
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from boostlist._typing import FloatArray
from boostlist.boosters.defaults import as_objective, pointwise_share, pointwise_term
from boostlist.boosters.early_stopping import best_round
from boostlist.boosters.hosts import host
from boostlist.boosters.objective import Objective, curvature_sums, scale_from_sums
from boostlist.boosters.tree_ranker import TreeRanker
from boostlist.distributed.parts import Part, Parts, Split, gather_parts
from boostlist.losses import Loss, Sum
from boostlist.metrics import Metric
from boostlist.metrics import get as get_metric

if TYPE_CHECKING:
    from boostlist.metrics.base import BoundMetric

_POLL_SECONDS = 0.5
_REMEDY = "Fit again on the workers that are left"


def fit(
    client: Any,
    data: Any,
    ranker: TreeRanker | None = None,
    *,
    label: str = "label",
    qid: str = "qid",
    weight: str | None = None,
    split: Split = "repartition",
    eval_data: Any = None,
    eval_metric: str | Metric | Sequence[str | Metric] = "ndcg@10",
    early_stopping_rounds: int | None = None,
    timeout: float | None = None,
) -> TreeRanker:
    """Train a `TreeRanker` on a Dask cluster.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    data
        A Dask DataFrame with columns for label and query, for example from ``dask.dataframe.read_parquet`` or
        `read_letor`; or a tuple ``(X, y, qid)`` or ``(X, y, qid, weight)`` of Dask arrays, partitioned alike.
    ranker
        Parameters, host included; it is not changed. None means ``TreeRanker()``.
    label, qid, weight
        Names of the columns. Weights are one a row and, in XGBoost, not available.
    split
        What happens to queries with rows in several partitions: ``"repartition"`` moves these rows together,
        ``"refuse"`` raises an error that names such a query.
    eval_data
        Data like `data` to evaluate on.
    eval_metric
        Metrics of boostlist or their names; the first one decides on stopping.
    early_stopping_rounds
        Keep the rounds up to the best before the first metric failed to improve for so many rounds. The engines cannot
        stop on a metric over all workers, so all ``n_estimators`` rounds are trained and then cut.
    timeout
        Seconds after which training is given up; None waits as long as all its workers live.

    Returns
    -------
    TreeRanker
        An ordinary one, with the booster in this process.

    Raises
    ------
    RuntimeError
        If a worker that holds training data is lost, or the time is up.
    """
    model: TreeRanker = clone(TreeRanker() if ranker is None else ranker)
    parts = gather_parts(client, data, label, qid, weight, split)
    objective = _common_objective(client, model, parts)
    holders = {address for where in client.who_has(parts.futures).values() for address in where}
    train = _train_lightgbm if model.backend == "lightgbm" else _train_xgboost
    adapter = host(model.backend)
    adapter.check_parameters(model._host_parameters(), parts.head.shape[1])
    booster = _guarded(client, holders, lambda: train(client, model, objective, parts), timeout)
    validate_data(model, parts.head, reset=True, skip_check_array=True)
    history: dict[str, dict[str, list[float]]] = {}
    if eval_data is not None:
        names = [eval_metric] if isinstance(eval_metric, str | Metric) else list(eval_metric)
        metrics = [get_metric(name) if isinstance(name, str) else name for name in names]
        valid = gather_parts(client, eval_data, label, qid, weight, split)
        values = _combined(client, valid, model.backend, booster, metrics, staged=True)
        if early_stopping_rounds is not None:
            kept = _rounds_to_keep(metrics[0], values[0].tolist(), early_stopping_rounds)
            booster = adapter.first_rounds(booster, kept)
            values = values[:, : kept + early_stopping_rounds]
        history["valid_0"] = {metric.name: v.tolist() for metric, v in zip(metrics, values, strict=True)}
    elif early_stopping_rounds is not None:
        raise ValueError("early_stopping_rounds needs eval_data")
    return model._fitted(booster, objective, history)


def evaluate(
    client: Any,
    ranker: TreeRanker,
    data: Any,
    metric: str | Metric = "ndcg@10",
    *,
    label: str = "label",
    qid: str = "qid",
    weight: str | None = None,
    split: Split = "repartition",
) -> float:
    """Return the mean of a metric over all queries of the data, computed where the data is.

    Parameters
    ----------
    client, data, label, qid, weight, split
        As for `fit`.
    ranker
        A fitted ranker.
    metric
        A metric of boostlist, or its name.
    """
    chosen = get_metric(metric) if isinstance(metric, str) else metric
    parts = gather_parts(client, data, label, qid, weight, split)
    return float(_combined(client, parts, ranker.backend, ranker.booster_, [chosen], staged=False)[0, -1])


def _rounds_to_keep(metric: Metric, values: list[float], patience: int) -> int:
    """Return the number of rounds that early stopping would have kept."""
    for seen in range(1, len(values) + 1):
        best = best_round(metric, values[:seen])
        if seen - 1 - best >= patience:
            return best + 1
    return best_round(metric, values) + 1


def _common_objective(client: Any, model: TreeRanker, parts: Parts) -> Objective | str:
    """Return the objective with the label set, the squared-error term and the scale of all documents."""
    objective = as_objective(model.objective)
    if isinstance(objective, str):
        return objective
    loss = with_grades(objective.loss, parts.grades)
    share = pointwise_share(loss, model.pointwise)
    if share:
        loss = pointwise_term(loss, share, _scale(client, loss, parts), parts.grades[-1])
    scale = _scale(client, loss, parts) if objective.scale == "auto" else objective.scale
    return Objective(loss=loss, scale=scale)


def with_grades(loss: Loss, grades: tuple[float, ...]) -> Loss:
    """Return the loss with this label set, where it has one and none was given."""
    if isinstance(loss, Sum):
        return Sum(terms=tuple((factor, with_grades(term, grades)) for factor, term in loss.terms))
    if is_dataclass(loss) and any(f.name == "grades" for f in fields(loss)) and getattr(loss, "grades", 0) is None:
        return replace(loss, grades=grades)  # type: ignore[call-arg]
    return loss


def _scale(client: Any, loss: Loss, parts: Parts) -> float:
    sums = client.gather(client.map(_part_sums, parts.futures, loss=loss, pure=False))
    return scale_from_sums(sum(total for total, _ in sums), sum(count for _, count in sums))


def _part_sums(part: Part, loss: Loss) -> tuple[float, int]:
    return curvature_sums(loss.bind(part.queries()))


def _combined(client: Any, parts: Parts, backend: str, booster: Any, metrics: list[Metric], staged: bool) -> FloatArray:
    """Return the mean of each metric over the queries of all parts after each round, or after the last one."""
    options = {
        "backend": backend,
        "booster": client.scatter(booster, broadcast=True),
        "metrics": metrics,
        "staged": staged,
    }
    results = client.gather(client.map(_part_values, parts.futures, **options, pure=False))
    totals, weights = (np.sum(column, axis=0) for column in zip(*results, strict=True))
    if not weights.all():
        raise ValueError(f"{metrics[int(np.argmin(weights))].name} has no mean: no query counts")
    return np.asarray(totals / weights[:, np.newaxis])


def _part_values(
    part: Part, backend: str, booster: Any, metrics: list[Metric], staged: bool
) -> tuple[FloatArray, FloatArray]:
    """Return for each metric the sum over queries of weight x value, round by round, and the sum of the weights."""
    adapter = host(backend)
    bound = [metric.bind(part.queries()) for metric in metrics]
    last = adapter.rounds(booster)
    spans = [(i, i + 1) for i in range(last)] if staged else [(0, last)]
    scores = np.zeros(len(part.y))
    totals, weights = np.empty((len(bound), len(spans))), np.zeros(len(bound))
    prepared = adapter.prepared(part.X)
    for column, (begin, end) in enumerate(spans):
        scores += adapter.partial_scores(booster, prepared, begin, end)
        for row, metric in enumerate(bound):
            totals[row, column], weights[row] = _weighted_sum(metric, scores)
    return totals, weights


def _weighted_sum(metric: BoundMetric, scores: FloatArray) -> tuple[float, float]:
    values, weight = metric.per_query(scores), metric.queries.weight
    counted = ~np.isnan(values)
    return float(np.sum(values[counted] * weight[counted])), float(weight[counted].sum())


def _collections(client: Any, parts: Parts) -> tuple[Any, Any, Any, Any, Any]:
    """Return X, y, query number, group sizes and weights as Dask collections with the same partitions.

    Query numbers ascend over all partitions, which XGBoost asks for.
    """
    import dask.array
    import dask.dataframe as dd
    from dask.delayed import delayed

    da: Any = dask.array
    made = [delayed(future) for future in parts.futures]
    rows = [summary.rows for summary in parts.summaries]
    queries = [len(summary.ids) for summary in parts.summaries]
    first = np.cumsum([0, *queries])

    def vector(function: Callable[..., Any], lengths: list[int], dtype: Any, *more: Any) -> Any:
        call = delayed(function)
        blocks = [
            da.from_delayed(call(part, *(m[i] for m in more)), (n,), dtype)
            for i, (part, n) in enumerate(zip(made, lengths, strict=True))
        ]
        return da.concatenate(blocks)

    features = [delayed(_features)(part) for part in made]
    if hasattr(parts.head, "columns"):
        X = dd.from_delayed(features, meta=parts.head)
    else:
        width, dtype = parts.head.shape[1], parts.head.dtype
        X = da.concatenate([da.from_delayed(f, (n, width), dtype) for f, n in zip(features, rows, strict=True)])
    return (
        X,
        vector(_labels, rows, np.float64),
        vector(_numbers, rows, np.int64, first[:-1].tolist()),
        vector(_sizes, queries, np.int64),
        vector(_weights, rows, np.float64),
    )


def _features(part: Part) -> Any:
    return part.X


def _labels(part: Part) -> Any:
    return part.y


def _numbers(part: Part, first: int) -> Any:
    sizes = part.queries().sizes
    return np.repeat(np.arange(first, first + len(sizes)), sizes)


def _sizes(part: Part) -> Any:
    return part.queries().sizes


def _weights(part: Part) -> Any:
    return np.ones(len(part.y)) if part.weight is None else part.weight


_SKLEARN_NAMES = {
    "min_sum_hessian_in_leaf": "min_child_weight",
    "min_data_in_leaf": "min_child_samples",
    "lambda_l1": "reg_alpha",
    "lambda_l2": "reg_lambda",
    "bagging_fraction": "subsample",
    "bagging_freq": "subsample_freq",
    "feature_fraction": "colsample_bytree",
    "seed": "random_state",
    "num_threads": "n_jobs",
}


def _train_lightgbm(client: Any, model: TreeRanker, objective: Objective | str, parts: Parts) -> Any:
    import lightgbm as lgb

    X, y, _, sizes, weight = _collections(client, parts)
    adapter = host("lightgbm")
    params = adapter.parameters(model._tree_parameters(), objective if isinstance(objective, str) else None)
    params = {_SKLEARN_NAMES.get(name, name): value for name, value in params.items()} | {"objective": objective}
    params.pop("n_jobs", None)  # LightGBM takes as many threads as the worker has
    trainer = lgb.DaskLGBMRanker(client=client, n_estimators=model.n_estimators, **params)
    trainer.fit(X, y, group=sizes, sample_weight=None if _unweighted(parts, client) else weight)
    return lgb.Booster(model_str=trainer.booster_.model_to_string())


def _train_xgboost(client: Any, model: TreeRanker, objective: Objective | str, parts: Parts) -> Any:
    import xgboost as xgb
    from xgboost import dask as xgb_dask

    if int(xgb.__version__.partition(".")[0]) < 3:
        raise ImportError(f"XGBoost {xgb.__version__} cannot train on a Dask of 2025 or later; install xgboost>=3.0")
    if not _unweighted(parts, client):
        raise ValueError("XGBoost's Dask engine takes no weights with queries; use backend='lightgbm', or no weights")
    X, y, number, _, _ = _collections(client, parts)
    own = not isinstance(objective, str)
    params = host("xgboost").parameters(model._tree_parameters(), objective if isinstance(objective, str) else None)
    params.pop("nthread", None)
    dtrain = xgb_dask.DaskDMatrix(client, X, y, qid=number, enable_categorical=True)
    options = {"obj": objective} if own else {}
    result = xgb_dask.train(client, params, dtrain, model.n_estimators, verbose_eval=False, **options)
    return result["booster"]


def _unweighted(parts: Parts, client: Any) -> bool:
    return bool(client.submit(_has_no_weight, parts.futures[0], pure=False).result())


def _has_no_weight(part: Part) -> bool:
    return part.weight is None


def _guarded(client: Any, holders: set[str], train: Callable[[], Any], timeout: float | None) -> Any:
    """Run a training, and give up when one of its workers is gone.

    A task that the engines tie to a worker waits for that worker's return, for ever if it never returns, and so would
    whoever waits for the task: hence the thread, and the look at the cluster while it works.
    """
    known = set(client.futures)
    result: LocalFuture[Any] = LocalFuture()

    def run() -> None:
        try:
            result.set_result(train())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, name="boostlist-distributed-fit", daemon=True).start()
    begin = monotonic()
    while not wait([result], timeout=_POLL_SECONDS).done:
        lost = holders - set(client.ncores())
        late = timeout is not None and monotonic() - begin > timeout
        if not lost and not late:
            continue
        _cancel(client, set(client.futures) - known)
        reason = f"the worker {min(lost)} was lost" if lost else f"it took more than {timeout:g} seconds"
        raise RuntimeError(
            f"training was given up: {reason}; no model was made. Fit again on the workers that are left"
        )
    error = result.exception()
    if error is not None and holders - set(client.ncores()):
        lost_worker = min(holders - set(client.ncores()))
        raise RuntimeError(
            f"training failed: the worker {lost_worker} was lost; no model was made. {_REMEDY}"
        ) from error
    return result.result()


def _cancel(client: Any, keys: set[Any]) -> None:
    """Let go of the tasks that LightGBM ties to a worker; XGBoost's end by themselves when a worker is gone."""
    from distributed import Future

    client.cancel([Future(key, client) for key in keys if str(key).startswith("_train_part")])
