"""XGBoost as a host of `TreeRanker`."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xgboost as xgb

from boostlist._typing import AnyArray, FloatArray
from boostlist.boosters import cluster_bias
from boostlist.boosters.batches import batch_bounds, batches
from boostlist.boosters.early_stopping import xgboost_early_stopping, xgboost_name
from boostlist.boosters.hosts import CHECKSUM, NOTE, DistributedJob, Job, Trained, TreeParameters
from boostlist.boosters.lists import Lists
from boostlist.boosters.refitting import LeafRule
from boostlist.boosters.xgboost_leaves import leaf_numbers as leaf_numbers
from boostlist.boosters.xgboost_leaves import leaves as leaves
from boostlist.boosters.xgboost_leaves import with_leaves as with_leaves
from boostlist.boosters.xgboost_sum import same_features as same_features
from boostlist.boosters.xgboost_sum import tree_model
from boostlist.boosters.xgboost_sum import weighted_sum as weighted_sum
from boostlist.boosters.xgboost_sum import why_no_sum as why_no_sum

RANDOM_THRESHOLDS = False

_ALIASES = {
    "eta": "learning_rate",
    "alpha": "reg_alpha",
    "lambda": "reg_lambda",
    "seed": "random_state",
    "nthread": "n_jobs",
}

# Two threads that catch warnings at once would leave those of the process caught for good.
_catching = threading.Lock()


def parameters(tree: TreeParameters, objective: str | None) -> dict[str, Any]:
    """Translate the parameters; what the user gave in XGBoost's own names wins over their translation.

    Trees grow by leaves, as LightGBM's do, and scores start from 0: a constant start would move losses that feel the
    level of the scores.

    Raises
    ------
    ValueError
        For ``extra_trees``: XGBoost looks at every bin of a feature.
    """
    if tree.extra_trees:
        raise ValueError('XGBoost has no extra_trees: use backend="lightgbm", or colsample_bynode for random splits')
    translated = {
        "eta": tree.learning_rate,
        "max_leaves": tree.num_leaves,
        "max_depth": tree.max_depth or 0,
        "grow_policy": "lossguide",
        "tree_method": "hist",
        "min_child_weight": tree.min_child_weight,
        "alpha": tree.reg_alpha,
        "lambda": tree.reg_lambda,
        "subsample": tree.subsample,
        "colsample_bytree": tree.colsample_bytree,
        "max_bin": tree.max_bin,
        "seed": tree.seed,
        "nthread": tree.n_jobs,
        "base_score": 0.0,
        "verbosity": 0,
    }
    own = {
        name: value
        for name, value in translated.items()
        if value is not None and name not in tree.more and _ALIASES.get(name) not in tree.more
    }
    own |= dict(tree.more) | {"disable_default_eval_metric": True}
    return own if objective is None else own | {"objective": objective}


def leaf_rule(tree: TreeParameters) -> LeafRule:
    """Return how leaves get their values."""
    params = parameters(tree, None)
    names = {"eta": 0.3, "alpha": 0.0, "lambda": 1.0, "max_delta_step": 0.0}
    return LeafRule(
        *(float(params.get(name, params.get(_ALIASES.get(name, ""), usual))) for name, usual in names.items())
    )


def check_parameters(more: Mapping[str, Any], n_features: int) -> None:
    """Refuse parameters that XGBoost would only warn of: it says which when it first grows a tree."""
    if not more:
        return
    dmatrix = xgb.DMatrix(np.zeros((1, n_features)), [0.0], qid=[0])
    with _catching, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xgb.train({"tree_method": "hist"} | dict(more) | {"verbosity": 1}, dmatrix, 1)
    for warning in caught:
        unused = re.search(r"Parameters: \{.*\} are not used.*", str(warning.message))
        if unused:
            raise ValueError(f"{unused.group()} (XGBoost)")


def _dmatrix(lists: Lists, weight: FloatArray | None) -> Any:
    return xgb.DMatrix(
        lists.X,
        lists.queries.labels,
        group=lists.queries.sizes,
        weight=weight,
        base_margin=lists.init_score,
        enable_categorical=True,
    )


class _Batches(xgb.DataIter):  # type: ignore[misc]
    """Batches of whole queries for XGBoost, which keeps what it makes of them in files."""

    def __init__(self, lists: Lists, weight: FloatArray | None, rows: int, prefix: str) -> None:
        self._lists, self._weight = lists, weight
        self._bounds = batch_bounds(lists.queries.start, rows)
        self._batches: Iterator[tuple[slice, AnyArray]] = iter(())
        super().__init__(cache_prefix=prefix, **({"on_host": False} if _HAS_EXTERNAL_QUANTILES else {}))

    def reset(self) -> None:
        self._batches = batches(self._lists.X, self._bounds)

    def next(self, input_data: Callable[..., Any]) -> bool:
        rows, X = next(self._batches, (None, None))
        if rows is None:
            return False
        start = self._lists.queries.start
        lo, hi = np.searchsorted(start, [rows.start, rows.stop])
        qid = np.repeat(np.arange(lo, hi), np.diff(start[lo : hi + 1]))
        more = {} if self._weight is None else {"weight": self._weight[lo:hi]}
        if self._lists.init_score is not None:
            more["base_margin"] = self._lists.init_score[rows]
        input_data(data=X, label=self._lists.queries.labels[rows], qid=qid, **more)
        return True


_HAS_EXTERNAL_QUANTILES = hasattr(xgb, "ExtMemQuantileDMatrix")


@contextmanager
def _external(job: Job, params: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Make the matrices of a job in files, which go with the training."""
    with tempfile.TemporaryDirectory(prefix="boostlist-", ignore_cleanup_errors=True) as folder:
        matrices: list[Any] = []
        for i, lists in enumerate((job.train, *job.valid.values())):
            rows = _Batches(lists, _query_weight(job, lists), job.batch_rows or 1, f"{folder}/{i}")
            if _HAS_EXTERNAL_QUANTILES:
                reference = {"ref": matrices[0]} if matrices else {}
                matrices.append(xgb.ExtMemQuantileDMatrix(rows, max_bin=params.get("max_bin", 256), **reference))
            else:
                matrices.append(xgb.DMatrix(rows))
        yield matrices
        matrices.clear()


def _query_weight(job: Job, lists: Lists) -> FloatArray | None:
    """Return weights for the host's own objective; to gradients of boostlist's they are already applied."""
    if not isinstance(job.objective, str):
        return None
    if lists.document_weight is not None:
        raise ValueError(
            f"XGBoost's {job.objective} takes one weight a query, but sample_weight differs within a query; give equal "
            "weights to the documents of a query, or use an objective of boostlist"
        )
    weight = lists.queries.weight
    return None if (weight == 1).all() else weight


def _no_positions(objective: str) -> str:
    return (
        f"XGBoost's {objective} takes no positions; its parameter lambdarank_unbiased=True takes the order of rows for "
        "them. Or use an objective of boostlist"
    )


def train(job: Job) -> Trained:
    """Train with ``xgb.train``."""
    params = parameters(job.tree, job.objective if isinstance(job.objective, str) else None)
    if job.train.position is not None and isinstance(job.objective, str):
        raise ValueError(_no_positions(job.objective))
    if job.batch_rows is None:
        dtrain = _dmatrix(job.train, _query_weight(job, job.train))
        valid = [
            dtrain if job.shares_training_data(name) else _dmatrix(lists, _query_weight(job, lists))
            for name, lists in job.valid.items()
        ]
        return _train(job, params, [dtrain, *valid])
    with _external(job, params) as matrices:
        return _train(job, params, matrices)


def _train(job: Job, params: dict[str, Any], matrices: list[Any]) -> Trained:
    dtrain, valid = matrices[0], matrices[1:]
    options: dict[str, Any] = {}
    if not isinstance(job.objective, str):
        gradients = job.objective
        options["obj"] = lambda scores, _: gradients(np.asarray(scores).reshape(-1))
    if valid:
        bound = {id(data): metrics for data, metrics in zip(valid, job.bound_metrics().values(), strict=True)}
        options["custom_metric"] = lambda scores, data: [
            (xgboost_name(b.metric), b.mean(scores)) for b in bound[id(data)]
        ]
    callbacks = [*job.callbacks]
    if job.stop_after is not None:
        name = list(job.valid)[-1]
        callbacks.append(xgboost_early_stopping(job.metrics[0], job.stop_after, data_name=name))
    history: dict[str, dict[str, list[float]]] = {}
    booster = xgb.train(
        params,
        dtrain,
        job.rounds,
        evals=list(zip(valid, job.valid, strict=True)),
        evals_result=history,
        verbose_eval=False,
        xgb_model=job.start,
        callbacks=callbacks,
        **options,
    )
    if job.stop_after is not None:
        best = booster.attributes()
        booster = first_rounds(booster, booster.best_iteration + 1)
        booster.set_attr(**best)
    names = {xgboost_name(metric): metric.name for metric in job.metrics}
    return Trained(
        booster,
        {data: {names.get(name, name): values for name, values in found.items()} for data, found in history.items()},
    )


def train_distributed(job: DistributedJob) -> tuple[Any, list[FloatArray]]:
    """Train with ``xgboost.dask.train``."""
    from xgboost import dask as xgb_dask

    if int(xgb.__version__.partition(".")[0]) < 3:
        raise ImportError(f"XGBoost {xgb.__version__} cannot train on a Dask of 2025 or later; install xgboost>=3.0")
    if job.train.weight is not None:
        raise ValueError("XGBoost's Dask engine takes no weights with queries; use backend='lightgbm', or no weights")
    params = parameters(job.tree, job.objective if isinstance(job.objective, str) else None)
    params.pop("nthread", None)
    train, positions = job.train, job.positions
    if isinstance(job.objective, str):
        if positions is not None:
            raise ValueError(_no_positions(job.objective))
        options: dict[str, Any] = {}
    elif positions is None:
        options = {"obj": job.objective}
    else:
        objective = cluster_bias.ClusterObjective(job.objective, positions, job.tree.learning_rate)
        options = {"obj": objective, "callbacks": [cluster_bias.NotePath(objective)]}
    fields = {} if positions is None else {cluster_bias.FIELD: train.position}
    if train.init_score is not None:
        fields["base_margin"] = train.init_score
    dtrain = xgb_dask.DaskDMatrix(
        job.client, train.X, train.labels, qid=train.number, enable_categorical=True, **fields
    )
    booster = xgb_dask.train(job.client, params, dtrain, job.rounds, verbose_eval=False, **options)["booster"]
    return booster, [] if positions is None else cluster_bias.taken_path(booster)


_threads: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""Threads that a booster was told of: telling it again makes it configure itself anew, at a third of a prediction."""


def predict(booster: Any, X: Any, contributions: bool, n_jobs: int | None) -> FloatArray:
    """Return raw scores or contributions."""
    if n_jobs is not None and _threads.get(booster) != n_jobs:
        booster.set_param({"nthread": n_jobs})
        _threads[booster] = n_jobs
    if isinstance(X, np.ndarray) and not contributions:  # a DMatrix takes longer to make than a short list to score
        return np.asarray(booster.inplace_predict(X, predict_type="margin"), np.float64)
    result = booster.predict(prepared(X), output_margin=not contributions, pred_contribs=contributions)
    return np.asarray(result, np.float64)


def rounds(booster: Any) -> int:
    """Return the number of rounds."""
    return int(booster.num_boosted_rounds())


def prepared(X: Any) -> Any:
    """Return a DMatrix."""
    return xgb.DMatrix(X, enable_categorical=True)


def partial_scores(booster: Any, prepared: Any, begin: int, end: int) -> FloatArray:
    """Return what some rounds add to the raw scores."""
    scores = booster.predict(prepared, output_margin=True, iteration_range=(begin, end))
    return np.asarray(scores, np.float64)


def first_rounds(booster: Any, n: int) -> Any:
    """Return a booster of the first n rounds.

    From 3.1 on XGBoost knows categories by their names, but not in a slice: they are put back into its JSON.
    """
    cut = booster[:n]
    if "c" not in (booster.feature_types or ()):
        return cut
    whole, part = (json.loads(b.save_raw("json")) for b in (booster, cut))
    source, target = (tree_model(document) for document in (whole, part))
    if "cats" not in source:
        return cut
    target["cats"] = source["cats"]
    return xgb.Booster(model_file=bytearray(json.dumps(part).encode()))


def total_gain(booster: Any, n_features: int) -> FloatArray:
    """Return the summed gain of each feature."""
    names = booster.feature_names or [f"f{j}" for j in range(n_features)]
    gain = booster.get_score(importance_type="total_gain")
    return np.array([gain.get(name, 0.0) for name in names], np.float64)


def to_bytes(booster: Any, notes: Mapping[str, str], suffix: str) -> bytes:
    """Return JSON for the suffix ``.json``, binary JSON for ``.ubj``; notes are attributes of the booster."""
    copy = booster.copy()
    copy.set_attr(**notes)
    return bytes(copy.save_raw(suffix[1:]))


def from_bytes(content: bytes) -> tuple[Any, str | None]:
    """Read either of XGBoost's formats."""
    booster = xgb.Booster(model_file=bytearray(content))
    note = booster.attr(NOTE)
    booster.set_attr(**{NOTE: None, CHECKSUM: None})
    return booster, note
