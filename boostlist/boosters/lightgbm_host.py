"""LightGBM as a host of `TreeRanker`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import lightgbm as lgb
import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.boosters.batches import release
from boostlist.boosters.early_stopping import lightgbm_early_stopping
from boostlist.boosters.hosts import NOTE, DistributedJob, Job, Trained, TreeParameters
from boostlist.boosters.lightgbm_leaves import leaf_numbers as leaf_numbers
from boostlist.boosters.lightgbm_leaves import leaves as leaves
from boostlist.boosters.lightgbm_leaves import with_leaves as with_leaves
from boostlist.boosters.lightgbm_sum import same_features as same_features
from boostlist.boosters.lightgbm_sum import weighted_sum as weighted_sum
from boostlist.boosters.lightgbm_sum import why_no_sum as why_no_sum
from boostlist.boosters.lightgbm_threads import threads
from boostlist.boosters.lists import Lists
from boostlist.boosters.objective import BAGGING_BY_QUERY, is_true
from boostlist.boosters.refitting import LeafRule
from boostlist.boosters.sharing import shared

RANDOM_THRESHOLDS = True

_LEAST_SAMPLE = 10_000
_BIN_SEED = 1  # LightGBM's own, where no other seed is given
_LAST_LINE = "\npandas_categorical:"


def parameters(tree: TreeParameters, objective: str | None) -> dict[str, Any]:
    """Translate the parameters; what the user gave in LightGBM's own names wins over their translation.

    `deterministic` and a fixed histogram layout make the same seed give the same model: left alone, LightGBM takes
    whichever layout is quicker in a first trial.

    Raises
    ------
    ValueError
        For ``bagging_by_query`` with gradients of boostlist's, which LightGBM then ignores.
    """
    if objective is None and is_true(tree.more.get("bagging_by_query", False)):
        raise ValueError(BAGGING_BY_QUERY)
    translated = {
        "learning_rate": tree.learning_rate,
        "num_leaves": tree.num_leaves,
        "max_depth": tree.max_depth,
        "min_sum_hessian_in_leaf": tree.min_child_weight,
        # XGBoost has no such bound; the Hessians of boostlist's objectives are scaled so that theirs does its work.
        "min_data_in_leaf": 1 if objective is None else None,
        "lambda_l1": tree.reg_alpha,
        "lambda_l2": tree.reg_lambda,
        "bagging_fraction": tree.subsample,
        "bagging_freq": 1 if tree.subsample < 1 else None,
        "feature_fraction": tree.colsample_bytree,
        "extra_trees": tree.extra_trees or None,
        "max_bin": tree.max_bin,
        "seed": tree.seed,
        "num_threads": tree.n_jobs,
        "deterministic": True,
        "force_col_wise": not _given("force_row_wise", tree.more),
        "verbosity": -1,
    }
    own = {name: value for name, value in translated.items() if value is not None and not _given(name, tree.more)}
    # Its own metric would be checked against the labels (whole, below 31) even where it is not wanted.
    return own | dict(tree.more) | {"metric": "None"} | ({} if objective is None else {"objective": objective})


def _aliases() -> dict[str, list[str]]:
    from lightgbm.basic import _ConfigAliases

    aliases: dict[str, list[str]] = _ConfigAliases._get_all_param_aliases()
    return aliases


def _given(name: str, more: Mapping[str, Any]) -> bool:
    return bool(more) and any(alias in more for alias in (name, *_aliases().get(name, ())))


def leaf_rule(tree: TreeParameters) -> LeafRule:
    """Return how leaves get their values."""
    params, aliases = parameters(tree, None), _aliases()
    names = {"learning_rate": 0.1, "lambda_l1": 0.0, "lambda_l2": 0.0, "max_delta_step": 0.0}
    given = {name: [params[each] for each in (name, *aliases[name]) if each in params] for name in names}
    return LeafRule(*(float((given[name] or [usual])[0]) for name, usual in names.items()))


def check_parameters(more: Mapping[str, Any], n_features: int) -> None:
    """Refuse parameters that LightGBM would only warn of."""
    known = {alias for name, aliases in _aliases().items() for alias in (name, *aliases)}
    for name in more:
        if name not in known:
            raise ValueError(f"Unknown parameter: {name} (LightGBM has no parameter of this name)")


def _dataset(lists: Lists, reference: Any, batch_rows: int | None, params: dict[str, Any]) -> Any:
    return lgb.Dataset(
        lists.X if batch_rows is None else _Rows(lists.X, batch_rows),
        lists.queries.labels,
        reference=reference,
        weight=lists.weight_by_document,
        group=lists.queries.sizes,
        position=None if lists.position is None else lists.position.codes,
        init_score=lists.init_score,
        params=params,
        free_raw_data=True,
    )


class _Rows(lgb.Sequence):  # type: ignore[misc]
    """Rows of an array for LightGBM, which asks for single rows (to find its bins) and then for ranges."""

    _SINGLE_ROWS = 1_000  # after so many, their pages are given back

    def __init__(self, X: AnyArray, batch_rows: int) -> None:
        self.X = X
        self.batch_size = batch_rows
        self._singles = 0

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> FloatArray:
        part = np.array(self.X[rows], np.float64)
        single = isinstance(rows, int | np.integer)
        self._singles += single
        if not single or self._singles % self._SINGLE_ROWS == 0:
            release(self.X)
        return part


# What tells trees apart and leaves bins alone. The seed is among them once the one for bins is given by itself.
_NOT_FOR_BINS = (
    *("learning_rate", "num_leaves", "max_depth", "min_sum_hessian_in_leaf", "lambda_l1", "lambda_l2", "num_threads"),
    *("bagging_fraction", "bagging_freq", "feature_fraction", "extra_trees", "seed", "objective"),
)


def _datasets(job: Job, params: dict[str, Any]) -> list[Any]:
    """Return data sets for training and, without a second copy of the features, for evaluation.

    Trainings on objectives of boostlist, whose gradients are weighted already, may share them.
    """
    data_params = {name: value for name, value in params.items() if name != "objective"}

    given = any(lists.init_score is not None for lists in (job.train, *job.valid.values()))

    def made(lists: Lists, reference: Any) -> Any:
        # To go on from a booster LightGBM scores the raw features, which a data set that is made already has no more.
        if isinstance(job.objective, str) or job.batch_rows is not None or job.start is not None or given:
            return _dataset(lists, reference, job.batch_rows, data_params)
        key = (id(lists.X), repr(sorted(item for item in params.items() if item[0] not in _NOT_FOR_BINS)))
        unweighted = Lists(lists.queries.with_weight(None), None, lists.X)
        return shared(job.train.X, key, lambda: _read_only(_dataset(unweighted, reference, None, data_params)))

    train_set = made(job.train, None)
    return [
        train_set,
        *(train_set if job.shares_training_data(name) else made(lists, train_set) for name, lists in job.valid.items()),
    ]


def _read_only(dataset: Any) -> Any:
    """Return a data set, made, that trainings in several threads can share.

    To ``lgb.train`` data that is made is constant but for one thing: what it evaluates on gets the names of features
    that the training data has, by a call outside Python's lock. Both have them already; "auto" leaves them alone.
    """
    dataset.construct()
    dataset.feature_name = "auto"
    return dataset


def train(job: Job) -> Trained:
    """Train with ``lgb.train``."""
    params = parameters(job.tree, job.objective if isinstance(job.objective, str) else None)
    if job.train.position is not None and isinstance(job.objective, str) and job.objective != "lambdarank":
        raise ValueError(
            f"LightGBM's {job.objective} ignores positions; lambdarank and every objective of boostlist heed them"
        )
    if not isinstance(job.objective, str):
        gradients = job.objective
        # A function and no object: lgb.train copies its parameters deeply, which would copy everything bound.
        params["objective"] = lambda scores, _: gradients(scores)
        if not _given("data_random_seed", job.tree.more):
            params["data_random_seed"] = _BIN_SEED
    if job.batch_rows is not None and not _given("bin_construct_sample_cnt", job.tree.more):
        # LightGBM holds the rows that it finds its bins on three times over, in float64.
        params["bin_construct_sample_cnt"] = max(job.batch_rows, _LEAST_SAMPLE)
    own_names = ("num_threads", *_aliases().get("num_threads", ()))
    wanted = next((int(params[name]) for name in own_names if name in params), None)
    with threads(wanted) as number:
        kept = {name: value for name, value in params.items() if name not in own_names}
        return _train(job, kept | {"num_threads": number})


def _train(job: Job, params: dict[str, Any]) -> Trained:
    train_set, *valid_sets = _datasets(job, params)
    bound = {id(data): metrics for data, metrics in zip(valid_sets, job.bound_metrics().values(), strict=True)}

    def evaluate(scores: AnyArray, data: Any) -> list[tuple[str, float, bool]]:
        return [(b.metric.name, b.mean(scores), b.metric.higher_is_better) for b in bound[id(data)]]

    history: dict[str, dict[str, list[float]]] = {}
    callbacks = [lgb.record_evaluation(history)] if valid_sets else []
    if job.stop_after is not None:
        callbacks.append(lightgbm_early_stopping(job.metrics[0], job.stop_after, data_name=list(job.valid)[-1]))
    callbacks += job.callbacks
    booster = lgb.train(
        params,
        train_set,
        job.rounds,
        valid_sets=valid_sets or None,
        valid_names=list(job.valid) or None,
        feval=evaluate if valid_sets else None,
        init_model=job.start,
        callbacks=callbacks,
    )
    return Trained(booster, {name: dict(values) for name, values in history.items()})


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


def train_distributed(job: DistributedJob) -> tuple[Any, list[FloatArray]]:
    """Train with ``DaskLGBMRanker``.

    Raises
    ------
    ValueError
        If there are positions: the engine neither takes them nor lets an objective add up over workers.
    """
    if job.positions is not None:
        raise ValueError(
            "LightGBM's Dask engine takes no positions, and no objective can add up over its workers; use "
            "backend='xgboost', or train in one process"
        )
    params = parameters(job.tree, job.objective if isinstance(job.objective, str) else None)
    params = {_SKLEARN_NAMES.get(name, name): value for name, value in params.items()} | {"objective": job.objective}
    params.pop("n_jobs", None)  # LightGBM takes as many threads as the worker has
    trainer = lgb.DaskLGBMRanker(client=job.client, n_estimators=job.rounds, **params)
    train = job.train
    trainer.fit(train.X, train.labels, group=train.sizes, sample_weight=train.weight, init_score=train.init_score)
    return lgb.Booster(model_str=trainer.booster_.model_to_string()), []


def predict(booster: Any, X: Any, contributions: bool, n_jobs: int | None) -> FloatArray:
    """Return raw scores or contributions."""
    with threads(n_jobs) as number:
        result = booster.predict(X, raw_score=not contributions, pred_contrib=contributions, num_threads=number)
    return np.asarray(result.toarray() if hasattr(result, "toarray") else result, np.float64)


def rounds(booster: Any) -> int:
    """Return the number of rounds."""
    return int(booster.current_iteration())


def prepared(X: Any) -> Any:
    """Return the features as they are."""
    return X


def partial_scores(booster: Any, prepared: Any, begin: int, end: int) -> FloatArray:
    """Return what some rounds add to the raw scores."""
    rounds = {"start_iteration": begin, "num_iteration": end - begin}
    with threads(None) as number:
        return np.asarray(booster.predict(prepared, raw_score=True, num_threads=number, **rounds))


def first_rounds(booster: Any, n: int) -> Any:
    """Return a booster of the first n rounds."""
    return lgb.Booster(model_str=booster.model_to_string(num_iteration=n))


def total_gain(booster: Any, n_features: int) -> FloatArray:
    """Return the summed gain of each feature."""
    return np.asarray(booster.feature_importance("gain"), np.float64)


def to_bytes(booster: Any, notes: Mapping[str, str], suffix: str) -> bytes:
    """Return LightGBM's text with the notes in lines before its last one; its readers skip lines they do not know.

    Under a custom objective LightGBM writes none, and converters to other formats refuse the file. It is a ranker,
    whose prediction is the raw score: ``lambdarank`` says just that.
    """
    text, last = booster.model_to_string().rsplit(_LAST_LINE, 1)
    if "\nobjective=" not in text.partition("\nTree=")[0]:
        text = re.sub(r"(\nnum_tree_per_iteration=.*\n)", r"\1objective=lambdarank\n", text, count=1)
        text = text.replace("\n[objective: custom]\n", "\n[objective: lambdarank]\n", 1)
    lines = "".join(f"\n{name}:{note}" for name, note in notes.items())
    return f"{text}{lines}{_LAST_LINE}{last}".encode()


def from_bytes(content: bytes) -> tuple[Any, str | None]:
    """Read LightGBM's text."""
    text = content.decode()
    line = next((line for line in reversed(text.splitlines()[-10:]) if line.startswith(f"{NOTE}:")), None)
    return lgb.Booster(model_str=text), None if line is None else line.removeprefix(f"{NOTE}:")
