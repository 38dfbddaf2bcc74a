"""`fit_ensemble`: the members of an ensemble, one after the other, each by its host's engine on the whole cluster.

Data stays where it is: spreads are joined from sums over parts, and only for fitted weights the members' scores on the
validation data come to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from boostlist._typing import FloatArray
from boostlist.boosters.lists import Lists
from boostlist.boosters.tree_ranker import TreeRanker
from boostlist.distributed.parts import Parts, Split, gather_parts, require_dask
from boostlist.distributed.training import train
from boostlist.ensemble import EnsembleRanker
from boostlist.ensemble.bags import bag_seeds
from boostlist.ensemble.members import fresh
from boostlist.ensemble.training import Trained, first_line
from boostlist.ensemble.weights import Moments
from boostlist.metrics import Metric
from boostlist.metrics.names import get_all
from boostlist.queries import Queries


def fit_ensemble(
    client: Any,
    data: Any,
    ensemble: EnsembleRanker | None = None,
    *,
    label: str = "label",
    qid: str = "qid",
    weight: str | None = None,
    split: Split = "repartition",
    eval_data: Any = None,
    eval_metric: str | Metric | Sequence[str | Metric] = "ndcg@10",
    early_stopping_rounds: int | None = None,
    timeout: float | None = None,
) -> EnsembleRanker:
    """Train an `EnsembleRanker` of trees on a Dask cluster.

    Parameters
    ----------
    client, data, label, qid, weight, split, eval_data, eval_metric, early_stopping_rounds
        As for `fit`. With `eval_data`, spreads are measured and weights fitted there.
    ensemble
        Parameters; it is not changed. None means ``EnsembleRanker()``. All members must be a `TreeRanker`, and
        ``n_bags`` 1.
    timeout
        Seconds after which the training of a member is given up; None waits as long as all its workers live.

    Returns
    -------
    EnsembleRanker
        An ordinary one, with the boosters in this process.

    Raises
    ------
    ValueError
        If a member is no `TreeRanker`; the message names it.
    """
    require_dask()
    model: EnsembleRanker = clone(EnsembleRanker() if ensemble is None else ensemble)
    if early_stopping_rounds is not None and eval_data is None:
        raise ValueError("early_stopping_rounds needs eval_data")
    members = model.checked_members(eval_data is not None, early_stopping_rounds is not None, weight is not None)
    for name, member in members:
        if not isinstance(member, TreeRanker):
            raise ValueError(f"member {name!r} is no TreeRanker but a {type(member).__name__}; a cluster trains trees")
    if model.n_bags != 1:
        raise ValueError(f"n_bags is {model.n_bags}, but bags are drawn in one process only; on a cluster it must be 1")
    parts = gather_parts(client, data, label, qid, weight, split)
    valid = None if eval_data is None else gather_parts(client, eval_data, label, qid, weight, split)
    judged = parts if valid is None else valid
    metrics = get_all(eval_metric)
    results = []
    (seed,) = bag_seeds(1, model.random_state)
    for position, (name, member) in enumerate(members):
        begin = time.perf_counter()
        try:
            fitted = train(client, fresh(member, seed, position), parts, valid, metrics, early_stopping_rounds, timeout)
        except Exception as error:  # whatever a member raises, the message is to say which one it was
            if model.on_error == "raise":
                raise RuntimeError(f"member {name!r} failed: {first_line(error)}") from error
            results.append(Trained(name, name, 0, None, error=f"{type(error).__name__}: {first_line(error)}"))
            continue
        moments = client.gather(client.map(_moments, judged.futures, ranker=fitted, pure=False))
        scores = _gathered(client, judged, fitted) if model.fits_weights else None
        seconds = time.perf_counter() - begin
        results.append(Trained(name, name, 0, fitted, Moments.of_all(moments).spread, scores, seconds))
        if model.verbose:
            print(f"[{len(results)}/{len(members)}] {results[-1].said}", flush=True)
    validate_data(model, parts.head, reset=True, skip_check_array=True)
    return model.adopt(results, [_queries(client, judged)] if model.fits_weights else [])


def _moments(part: Lists, ranker: TreeRanker) -> Moments:
    return Moments.of(ranker.predict(part.X), part.judged)


def _gathered(client: Any, parts: Parts, ranker: TreeRanker) -> FloatArray:
    return np.concatenate(client.gather(client.map(_scores, parts.futures, ranker=ranker, pure=False)))


def _scores(part: Lists, ranker: TreeRanker) -> FloatArray:
    return ranker.predict(part.X)


def _queries(client: Any, parts: Parts) -> Queries:
    """Return the lists of all parts, without their features."""
    lists = client.gather(client.map(_judged, parts.futures, pure=False))
    labels, sizes, weight = (
        np.concatenate([getattr(each, name) for each in lists]) for name in ("labels", "sizes", "weight")
    )
    return Queries.from_sizes(labels, sizes, weight)


def _judged(part: Lists) -> Queries:
    return part.judged
