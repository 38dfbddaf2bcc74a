"""`fit_ensemble`: the members of an ensemble, one after the other, each by its host's engine on the whole cluster.

Data stays where it is: spreads are joined from sums over parts, and only for fitted weights the members' scores on the
validation data come to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from boostlist._typing import FloatArray
from boostlist.boosters.lists import Lists
from boostlist.boosters.tree_ranker import TreeRanker
from boostlist.distributed.parts import Columns, Parts, Split, require_dask
from boostlist.distributed.training import gathered, train
from boostlist.distributed.watch import GivenUpError
from boostlist.ensemble import EnsembleRanker
from boostlist.ensemble.bags import bag_seeds, drawn_queries
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
    label: str | Sequence[str] = "label",
    qid: str = "qid",
    weight: str | None = None,
    position: str | None = None,
    split: Split = "repartition",
    eval_data: Any = None,
    eval_metric: str | Metric | Sequence[str | Metric] = "ndcg@10",
    early_stopping_rounds: int | None = None,
    timeout: float | None = None,
) -> EnsembleRanker:
    """Train an `EnsembleRanker` of trees on a Dask cluster.

    Parameters
    ----------
    client, data, label, qid, weight, position, split, eval_data, eval_metric, early_stopping_rounds
        As for `fit`. With `eval_data`, spreads are measured and weights fitted there.
    ensemble
        Parameters; it is not changed. None means ``EnsembleRanker()``. All members must be a `TreeRanker`; with
        ``n_bags`` above 1 one of LightGBM, since bags are weights and XGBoost's engine takes none. Without `eval_data`
        the queries that bags leave out stop members, measure spreads and fit weights.
    timeout
        Seconds after which the training of a member is given up; None waits as long as all its workers live. That is an
        error whatever ``on_error`` says: workers that are still at it would let the next member wait.

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
    bagged = model.n_bags != 1
    if early_stopping_rounds is not None and eval_data is None and not bagged:
        raise ValueError("early_stopping_rounds needs eval_data, or n_bags of 2 or more")
    members = model.checked_members(
        eval_data is not None, early_stopping_rounds is not None, weight is not None or bagged
    )
    for name, member in members:
        if not isinstance(member, TreeRanker):
            raise ValueError(f"member {name!r} is no TreeRanker but a {type(member).__name__}; a cluster trains trees")
    parts, valid = gathered(client, data, eval_data, Columns(label, qid, weight, position), split)
    bags = _bags(client, parts, valid, bag_seeds(model.n_bags, model.random_state))
    metrics = get_all(eval_metric)
    results: list[Trained] = []
    judged = [_queries(client, bag.judged) for bag in bags] if model.fits_weights(eval_data is not None) else []
    for bag in bags:
        for place, (name, member) in enumerate(members):
            unfitted = fresh(member, bag.seed, place)
            attempt = partial(train, client, unfitted, bag.train, bag.valid, metrics, early_stopping_rounds, timeout)
            queries = judged[bag.number] if judged else None
            title = f"{name} (bag {bag.number})" if bagged else name
            results.append(_trained(client, (title, name, bag.number), attempt, bag, queries, model.on_error == "drop"))
            if model.verbose:
                print(f"[{len(results)}/{len(members) * len(bags)}] {results[-1].said}", flush=True)
    validate_data(model, parts.head, reset=True, skip_check_array=True)
    return model.adopt(results, judged)


class _Bag(NamedTuple):
    """A sample of the queries on the cluster.

    Attributes
    ----------
    number, seed
        As those of a `Bag` in one process.
    train, valid
        What to train on, and to stop on if there is anything.
    judged
        What spreads are measured and weights are fitted on.
    """

    number: int
    seed: int | None
    train: Parts
    valid: Parts | None
    judged: Parts


def _bags(client: Any, parts: Parts, valid: Parts | None, seeds: Sequence[Any]) -> list[_Bag]:
    if len(seeds) == 1:
        return [_Bag(0, seeds[0], parts, valid, parts if valid is None else valid)]
    bags = []
    for number, seed in enumerate(seeds):
        drawn = drawn_queries(parts.n_queries, seed)
        held_out = parts.times(client, (drawn == 0).astype(np.float64)) if valid is None else valid
        bags.append(_Bag(number, seed, parts.times(client, drawn), held_out, held_out))
    return bags


def _trained(
    client: Any,
    who: tuple[str, str, int],
    attempt: Callable[[], TreeRanker],
    bag: _Bag,
    queries: Queries | None,
    drop: bool,
) -> Trained:
    """Return a member after its training, with its scores if queries are given, or by choice its failure."""
    begin = time.perf_counter()
    try:
        fitted = attempt()
    except Exception as error:  # whatever a member raises, the message is to say which one it was
        if not drop or isinstance(error, GivenUpError):
            raise RuntimeError(f"member {who[0]!r} failed: {first_line(error)}") from error
        return Trained(*who, None, error=f"{type(error).__name__}: {first_line(error)}")
    moments = client.gather(bag.judged.map(client, _moments, ranker=fitted))
    scores = None if queries is None else _gathered(client, bag.judged, fitted, queries)
    return Trained(*who, fitted, Moments.of_all(moments).spread, scores, time.perf_counter() - begin)


def _moments(part: Lists, ranker: TreeRanker) -> Moments:
    return Moments.of(ranker.predict(part.X), part.judged)


def _gathered(client: Any, parts: Parts, ranker: TreeRanker, queries: Queries) -> FloatArray:
    """Return the scores of all parts, 0 for queries of weight 0."""
    scores = np.concatenate(client.gather(parts.map(client, _scores, ranker=ranker)))
    return scores * np.repeat(queries.weight > 0, queries.sizes)


def _scores(part: Lists, ranker: TreeRanker) -> FloatArray:
    return ranker.predict(part.X)


def _queries(client: Any, parts: Parts) -> Queries:
    """Return the lists of all parts, without their features."""
    lists = client.gather(parts.map(client, _judged))
    labels, sizes, weight = (
        np.concatenate([getattr(each, name) for each in lists]) for name in ("labels", "sizes", "weight")
    )
    return Queries.from_sizes(labels, sizes, weight)


def _judged(part: Lists) -> Queries:
    return part.judged
