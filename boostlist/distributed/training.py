"""`fit` and `evaluate`: one objective for all workers, the host's own engine, and an error where a worker is lost.

An objective has two properties of all documents: its scale and, for some losses, the label set. Workers see their own
documents only, so both are found here first and become part of the objective that every worker gets:

    scale = sum over parts of the number of positive diagonal entries / sum over parts of their sum,   at scores of 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from boostlist._typing import FloatArray
from boostlist.boosters.defaults import pointwise_terms
from boostlist.boosters.early_stopping import best_round
from boostlist.boosters.hosts import DistributedJob, History, Shards, host
from boostlist.boosters.labels import CodedLabels, combinations_of
from boostlist.boosters.lists import NO_WEIGHT, Lists
from boostlist.boosters.objective import Objective, curvature_sums, scale_from_sums
from boostlist.boosters.tree_ranker import TreeRanker
from boostlist.distributed.parts import Columns, Parts, Split, gather_parts, require_dask
from boostlist.distributed.watch import guarded
from boostlist.losses import Loss, Sum
from boostlist.metrics import Metric
from boostlist.metrics import get as get_metric
from boostlist.metrics.names import get_all
from boostlist.positions import bias_series
from boostlist.ranking_estimator import RankingEstimator

if TYPE_CHECKING:
    from boostlist.metrics.base import BoundMetric


def fit(
    client: Any,
    data: Any,
    ranker: TreeRanker | None = None,
    *,
    label: str | Sequence[str] = "label",
    qid: str = "qid",
    weight: str | None = None,
    position: str | None = None,
    init_score: str | None = None,
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
        Names of the columns. Weights are one a row and, in XGBoost, not available. Several labels, of which the first
        is the main one, are several columns, or in a tuple a mapping from names to arrays for y.
    position
        Name of the column that says where each document was shown; each position then has a bias, learned from the sums
        over all workers (docs/clicks.md). In XGBoost only: LightGBM's engine cannot add up over workers.
    init_score
        Name of the column with the scores that trees are to add to, also of `eval_data`, as `TreeRanker.fit` has it.
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
    require_dask()
    model = _checked_ranker(ranker)
    metrics = get_all(eval_metric)
    if early_stopping_rounds is not None and eval_data is None:
        raise ValueError("early_stopping_rounds needs eval_data")
    parts, valid = gathered(client, data, eval_data, Columns(label, qid, weight, position, init_score), split)
    return train(client, model, parts, valid, metrics, early_stopping_rounds, timeout)


def gathered(client: Any, data: Any, eval_data: Any, columns: Columns, split: Split) -> tuple[Parts, Parts | None]:
    """Return the parts of training data and, if there is any, of data to evaluate on, which may have no positions."""
    parts = gather_parts(client, data, columns, split)
    if eval_data is None:
        return parts, None
    known = columns.position if columns.position in getattr(eval_data, "columns", ()) else None
    return parts, gather_parts(client, eval_data, columns._replace(position=known), split)


def train(
    client: Any,
    model: TreeRanker,
    parts: Parts,
    valid: Parts | None,
    metrics: Sequence[Metric],
    early_stopping_rounds: int | None,
    timeout: float | None,
) -> TreeRanker:
    """Train a ranker on parts that are on the cluster, and return it; what else there is as for `fit`."""
    if parts.without_weight:
        raise ValueError(NO_WEIGHT)
    adapter = host(model.backend)
    adapter.check_parameters(model.host_parameters(), parts.head.shape[1])
    tree = model.tree_parameters()
    objective = _common_objective(client, model.sampled_objective(tree.seed), model.pointwise, parts)

    def trained() -> tuple[Any, list[FloatArray]]:
        job = DistributedJob(
            client=client,
            tree=tree,
            rounds=model.n_estimators,
            objective=objective,
            train=_shards(client, parts, getattr(objective, "labels", None)),
            positions=parts.positions,
        )
        return adapter.train_distributed(job)

    booster, biases = guarded(client, set(parts.homes), trained, timeout)
    history: History = {}
    if valid is not None:
        chosen = [metric.up_to(max(each.grades(metric.label)[-1] for each in (parts, valid))) for metric in metrics]
        values = _combined(client, valid, model.backend, booster, chosen)
        if early_stopping_rounds is not None:
            kept = _rounds_to_keep(metrics[0], values[0].tolist(), early_stopping_rounds)
            booster = adapter.first_rounds(booster, kept)
            values = values[:, : kept + early_stopping_rounds]
        history["valid_0"] = {metric.name: v.tolist() for metric, v in zip(metrics, values, strict=True)}
    validate_data(model, parts.head, reset=True, skip_check_array=True)
    trained_on = objective if isinstance(objective, str) else replace(objective, labels=None)
    bias = dict(zip(parts.positions or (), biases[adapter.rounds(booster)].tolist(), strict=True)) if biases else None
    return model.adopt(booster, trained_on, history, None if bias is None else bias_series(bias))


def _checked_ranker(ranker: TreeRanker | None) -> TreeRanker:
    if ranker is not None and not isinstance(ranker, TreeRanker):
        raise TypeError(
            f"boostlist.distributed.fit trains a TreeRanker, not a {type(ranker).__name__}; fit_ensemble trains an "
            "EnsembleRanker of them, other models are fitted in one process"
        )
    model: TreeRanker = clone(TreeRanker() if ranker is None else ranker)
    return model


def evaluate(
    client: Any,
    ranker: RankingEstimator,
    data: Any,
    metric: str | Metric = "ndcg@10",
    *,
    label: str | Sequence[str] = "label",
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
        A fitted ranker of any kind.
    metric
        A metric of boostlist, or its name.
    """
    require_dask()
    chosen = get_metric(metric) if isinstance(metric, str) else metric
    parts = gather_parts(client, data, Columns(label, qid, weight), split)
    chosen = chosen.up_to(parts.grades(chosen.label)[-1])
    options = {"ranker": client.scatter(ranker, broadcast=True), "metric": chosen}
    total, weight = np.sum(client.gather(parts.map(client, _part_value, **options)), axis=0)
    if not weight:
        raise ValueError(f"{chosen.name} has no mean: no query counts")
    return float(total / weight)


def _part_value(part: Lists, ranker: RankingEstimator, metric: Metric) -> tuple[float, float]:
    return _weighted_sum(metric.bind(part.judged), ranker.predict(part.X))


def _rounds_to_keep(metric: Metric, values: list[float], patience: int) -> int:
    """Return the number of rounds that early stopping would have kept."""
    for seen in range(1, len(values) + 1):
        best = best_round(metric, values[:seen])
        if seen - 1 - best >= patience:
            return best + 1
    return best_round(metric, values) + 1


def _common_objective(client: Any, objective: Objective | str, share: float | None, parts: Parts) -> Objective | str:
    """Return the objective with the label sets, the squared-error terms and the scale of all documents."""
    if isinstance(objective, str):
        return objective
    loss = objective.loss
    labels = list(loss.by_label())
    for label in labels:
        loss = loss.with_grades(parts.grades(label), label)
    terms = pointwise_terms(
        loss, share, lambda label: parts.grades(label)[-1], lambda part: _scale(client, part, parts)
    )
    total = Sum.of((1.0, loss), *terms) if terms else loss
    scale = _scale(client, total, parts) if objective.scale == "auto" else objective.scale
    return replace(objective, loss=total, scale=scale, labels=None if labels == [None] else _coded(client, parts))


def _coded(client: Any, parts: Parts) -> CodedLabels:
    found = client.gather(parts.map(client, _part_combinations))
    return CodedLabels.of_parts(parts.labels, found)


def _part_combinations(part: Lists) -> FloatArray:
    return np.unique(combinations_of(part.queries), axis=0)


def _scale(client: Any, loss: Loss, parts: Parts) -> float:
    sums = client.gather(parts.map(client, _part_sums, loss=loss))
    return scale_from_sums(sum(total for total, _ in sums), sum(count for _, count in sums))


def _part_sums(part: Lists, loss: Loss) -> tuple[float, int]:
    return curvature_sums(loss.bind(part.queries))


def _combined(client: Any, parts: Parts, backend: str, booster: Any, metrics: list[Metric]) -> FloatArray:
    """Return the mean of each metric over the queries of all parts after each round."""
    options = {
        "backend": backend,
        "booster": client.scatter(booster, broadcast=True),
        "metrics": metrics,
    }
    results = client.gather(parts.map(client, _part_values, **options))
    totals, weights = (np.sum(column, axis=0) for column in zip(*results, strict=True))
    if not weights.all():
        raise ValueError(f"{metrics[int(np.argmin(weights))].name} has no mean: no query counts")
    return np.asarray(totals / weights[:, np.newaxis])


def _part_values(part: Lists, backend: str, booster: Any, metrics: list[Metric]) -> tuple[FloatArray, FloatArray]:
    """Return for each metric the sum over queries of weight x value, round by round, and the sum of the weights."""
    adapter = host(backend)
    bound = [metric.bind(part.judged) for metric in metrics]
    rounds = adapter.rounds(booster)
    scores = np.zeros(part.queries.n_documents) if part.init_score is None else part.init_score.copy()
    totals, weights = np.empty((len(bound), rounds)), np.zeros(len(bound))
    prepared = adapter.prepared(part.X)
    for column in range(rounds):
        scores += adapter.partial_scores(booster, prepared, column, column + 1)
        for row, metric in enumerate(bound):
            totals[row, column], weights[row] = _weighted_sum(metric, scores)
    return totals, weights


def _weighted_sum(metric: BoundMetric, scores: FloatArray) -> tuple[float, float]:
    values, weight = metric.per_query(scores), metric.queries.weight
    counted = ~np.isnan(values)
    return float(np.sum(values[counted] * weight[counted])), float(weight[counted].sum())


def _shards(client: Any, parts: Parts, coded: CodedLabels | None) -> Shards:
    """Return the parts as Dask collections, where they are, with labels as they are or coded."""
    import dask.array
    import dask.dataframe as dd
    from dask.delayed import delayed
    from distributed import wait

    da: Any = dask.array
    rows = [facts.documents for facts in parts.facts]
    queries = [facts.queries for facts in parts.facts]
    first = np.cumsum([0, *queries])

    def of_parts(function: Callable[..., Any], *more: Any) -> list[Any]:
        made = parts.map_there(client, function, *more)
        wait(made)  # or workers would seem to be busy
        return [delayed(future) for future in made]

    def vector(function: Callable[..., Any], lengths: list[int], dtype: Any, *more: Any) -> Any:
        blocks = zip(of_parts(function, *more), lengths, strict=True)
        return da.concatenate([da.from_delayed(block, (n,), dtype) for block, n in blocks])

    features = of_parts(_features)
    if hasattr(parts.head, "columns"):
        X = dd.from_delayed(features, meta=parts.head)
    else:
        width, dtype = parts.head.shape[1], parts.head.dtype
        X = da.concatenate([da.from_delayed(f, (n, width), dtype) for f, n in zip(features, rows, strict=True)])
    return Shards(
        X=X,
        labels=vector(_labels, rows, np.float64, [coded] * len(rows)),
        number=vector(_numbers, rows, np.int64, first[:-1].tolist()),
        sizes=vector(_sizes, queries, np.int64),
        weight=vector(_weights, rows, np.float64) if parts.weighted else None,
        position=None if parts.positions is None else vector(_codes, rows, np.float64, [parts.positions] * len(rows)),
        init_score=vector(_starts, rows, np.float64) if parts.facts[0].started else None,
    )


def _features(part: Lists) -> Any:
    return part.X


def _labels(part: Lists, coded: CodedLabels | None) -> Any:
    return part.queries.labels if coded is None else coded.codes(part.queries)


def _numbers(part: Lists, first: int) -> Any:
    return np.repeat(np.arange(first, first + part.queries.n_queries), part.queries.sizes)


def _sizes(part: Lists) -> Any:
    return part.queries.sizes


def _weights(part: Lists) -> Any:
    weight = part.weight_by_document
    return np.ones(part.queries.n_documents) if weight is None else weight


def _starts(part: Lists) -> Any:
    return part.init_score


def _codes(part: Lists, positions: tuple[Any, ...]) -> Any:
    """Return the place of each document's position among those of all parts."""
    assert part.position is not None
    place = {label: float(i) for i, label in enumerate(positions)}
    return np.array([place[label] for label in part.position.labels])[part.position.codes]
