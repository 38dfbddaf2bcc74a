"""Trainings of members: each on a bag, side by side, on features that all share.

The transformers of a pipeline are fitted on all rows; its last step is trained on the bag.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn import config_context, get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from boostlist._typing import FloatArray, IntArray
from boostlist.boosters.binding import is_instance
from boostlist.boosters.sharing import shared_features
from boostlist.ensemble.bags import Bag
from boostlist.ensemble.members import accepts, fresh, shared_threads
from boostlist.ensemble.weights import fitted_weights, spread
from boostlist.log_check import unchecked
from boostlist.metrics import Metric
from boostlist.parallel import at_most, get_threads
from boostlist.queries import Queries
from boostlist.ranking_estimator import RankingEstimator

_ENOUGH_DOCUMENTS = 10_000


class Lists(NamedTuple):
    """Features and the lists that their rows make up."""

    X: Any
    queries: Queries

    @property
    def numbers(self) -> IntArray:
        """Number of each row's query."""
        return np.repeat(np.arange(self.queries.n_queries), self.queries.sizes)

    def labels_for(self, member: Any) -> Any:
        """Return the labels as a member takes them: several by name are for rankers of boostlist alone."""
        named = self.queries.named if isinstance(member, RankingEstimator) else {}
        return dict(named) if named else self.queries.labels

    def entry(self, member: Any) -> tuple[Any, ...]:
        """Return the lists as an entry of a member's ``eval_set``."""
        return self.X, self.labels_for(member), self.numbers, self.queries.weight


@dataclass(frozen=True, eq=False)
class Material:
    """What all trainings share.

    Attributes
    ----------
    train, valid
        Training data; data to stop on, to measure spreads and to weigh members, the last of which decides.
    metric
        What decides on stopping.
    patience
        Number of rounds without a gain after which boosting stops; None trains to the end.
    logged
        What is known of a log of clicks, by the names of the arguments of ``fit``: ``position``, ``propensity``.
    """

    train: Lists
    valid: tuple[Lists, ...]
    metric: str | Metric | Sequence[str | Metric]
    patience: int | None
    logged: Mapping[str, Any] = field(default_factory=dict)

    def held_out(self, bag: Bag) -> tuple[Lists, ...]:
        """Return data that a training on a bag does not see: `valid`, or else the queries left out, not copied."""
        if self.valid:
            return self.valid
        left_out = bag.held_out(self.train.queries)
        return () if left_out is None else (Lists(self.train.X, left_out),)

    def judged(self, bag: Bag) -> Lists:
        """Return where the spread of a member is measured: on data it has not seen, if there is any."""
        held_out = self.held_out(bag)
        return held_out[-1] if held_out else self.sample

    @cached_property
    def sample(self) -> Lists:
        """Training data, of much data some queries at even distances: enough for a spread."""
        X, queries = self.train
        if queries.n_documents <= _ENOUGH_DOCUMENTS:
            return self.train
        chosen = np.zeros(queries.n_queries, bool)
        chosen[:: -(-queries.n_documents // _ENOUGH_DOCUMENTS)] = True
        rows = np.flatnonzero(np.repeat(chosen, queries.sizes))
        labels = queries.labels[rows]
        return Lists(_safe_indexing(X, rows), Queries.from_sizes(labels, queries.sizes[chosen], queries.weight[chosen]))


class Training(NamedTuple):
    """An unfitted member, the bag that it is for, and its position among the members."""

    name: str
    bag: Bag
    member: Any
    position: int

    @property
    def title(self) -> str:
        """Name, with the number of the bag where there are several."""
        return self.name if self.bag.left_out is None else f"{self.name} (bag {self.bag.number})"


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted member.

    Attributes
    ----------
    title, name, bag
        Who, with and without the number of the bag, and that number.
    estimator
        The fitted estimator; None if it failed.
    spread
        Spread of its scores within queries.
    scores
        Its scores where `Material.judged` says, 0 for queries of weight 0; None if nobody asked for them.
    seconds
        How long it took.
    error
        Why it failed.
    """

    title: str
    name: str
    bag: int
    estimator: Any
    spread: float = 0.0
    scores: FloatArray | None = None
    seconds: float = 0.0
    error: str = ""

    @property
    def said(self) -> str:
        """What is printed of it."""
        if self.error:
            return f"{self.title} failed: {self.error}"
        rounds = getattr(self.estimator, "n_estimators_", None)
        return f"{self.title}: {f'{rounds} rounds, ' if rounds else ''}{self.seconds:.1f} s"


def train_all(
    trainings: Sequence[Training],
    material: Material,
    *,
    n_jobs: int | None,
    keep_scores: bool,
    drop: bool,
    verbose: bool,
) -> list[Trained]:
    """Train side by side, in threads: features are shared, and hosts and loops let others work meanwhile.

    Threads get scikit-learn's configuration. The filters of warnings, which its own `Parallel` would set too, belong to
    the whole process, and a training that outlasts the failure of another would set them back later.

    Parameters
    ----------
    trainings, material
        What to do.
    n_jobs
        Number of threads in all; None for all there are. Trainings share them.
    keep_scores
        Whether scores are needed.
    drop
        Whether a failure is a result rather than an error.
    verbose
        Whether to print a line for each.
    """
    threads = get_threads() if n_jobs is None else n_jobs
    workers = min(len(trainings), threads)
    config = get_config()
    calls = (
        delayed(_train)(config, number, training, material, threads // workers, keep_scores, drop)
        for number, training in enumerate(trainings)
    )
    side_by_side = Parallel(n_jobs=workers, require="sharedmem", return_as="generator_unordered")
    results: dict[int, Trained] = {}
    with shared_features(material.train.X):
        for number, result in side_by_side(calls):
            results[number] = result
            if verbose:
                print(f"[{len(results)}/{len(trainings)}] {result.said}", flush=True)
    return [results[number] for number in range(len(trainings))]


def _train(
    config: dict[str, Any],
    number: int,
    training: Training,
    material: Material,
    threads: int,
    keep_scores: bool,
    drop: bool,
) -> tuple[int, Trained]:
    bag = training.bag
    who = (training.title, training.name, bag.number)
    member = fresh(training.member, bag.seed, training.position)
    begin = time.perf_counter()
    try:
        checks = nullcontext() if training.position == bag.number == 0 else unchecked()  # one says it for all
        with config_context(**config), at_most(threads), shared_threads(member, threads), checks:
            member = _fitted(member, material, bag)
            judged = material.judged(bag)
            scores = judged.queries.scores(member.predict(judged.X))
    except Exception as error:  # whatever a member raises, the message is to say which one it was
        if not drop:
            kind = type(error) if type(error) in (ValueError, TypeError, ImportError) else RuntimeError
            raise kind(f"member {training.title!r} failed: {first_line(error)}") from error
        return number, Trained(*who, None, error=f"{type(error).__name__}: {first_line(error)}")
    size = spread(scores, judged.queries)
    kept = scores * np.repeat(judged.queries.weight > 0, judged.queries.sizes) if keep_scores else None
    return number, Trained(*who, member, size, kept, time.perf_counter() - begin)


def first_line(error: Exception) -> str:
    """Return what is wrong; hosts append a stack trace of their own."""
    return str(error).strip().partition("\n")[0]


def _fitted(member: Any, material: Material, bag: Bag) -> Any:
    if isinstance(member, Pipeline) and len(member.steps) > 1:
        return _fitted_pipeline(member, material, bag)
    takes, queries = accepts(member), material.train.queries
    options: dict[str, Any] = {"qid": material.train.numbers, **material.logged}
    if bag.weight is not None:
        options["sample_weight"] = _weights_for(member, bag.weight, queries)
    held_out = material.held_out(bag)
    if takes.stopping and held_out:
        options |= {
            "eval_set": [lists.entry(member) for lists in held_out],
            "eval_metric": material.metric,
            "early_stopping_rounds": material.patience,
        }
    return member.fit(material.train.X, material.train.labels_for(member), **options)


def _fitted_pipeline(pipeline: Pipeline, material: Material, bag: Bag) -> Pipeline:
    """Fit transformers and last step one after the other, since data to stop on must be transformed in between."""
    before, (name, last) = pipeline[:-1], pipeline.steps[-1]
    X = before.fit_transform(material.train.X, material.train.queries.labels)
    valid = tuple(Lists(before.transform(lists.X), lists.queries) for lists in material.valid)
    inner = replace(material, train=Lists(X, material.train.queries), valid=valid)
    return Pipeline(
        [*before.steps, (name, _fitted(last, inner, bag))], memory=pipeline.memory, verbose=pipeline.verbose
    )


def _weights_for(member: Any, weight: FloatArray, queries: Queries) -> FloatArray:
    """Return weights by query for rankers of boostlist and XGBRanker, else by row, as scikit-learn has it."""
    by_query = isinstance(member, RankingEstimator) or is_instance(member, "xgboost", "XGBRanker")
    return weight if by_query or len(weight) != queries.n_queries else np.repeat(weight, queries.sizes)


def fit_to_scores(trained: Sequence[Trained], judged: Sequence[Queries]) -> dict[str, float]:
    """Return weights by name that suit the mean of each member's scores over the bags that may judge a query.

    With data to validate on every bag may; else those that left the query out, and a query that no bag of some member
    did takes no part.

    Parameters
    ----------
    trained
        Members that have a spread, with their scores.
    judged
        For each bag the queries that it was scored on, with weight 0 where it may not judge.
    """
    names = list(dict.fromkeys(each.name for each in trained))
    columns, weight = [], np.max([queries.weight for queries in judged], axis=0)
    for name in names:
        mine = [each for each in trained if each.name == name]
        total = np.sum([np.asarray(each.scores) / each.spread for each in mine], axis=0)
        count = np.sum([judged[each.bag].weight > 0 for each in mine], axis=0)
        weight = np.where(count > 0, weight, 0)
        columns.append(total / np.repeat(np.maximum(count, 1), judged[0].sizes))
    if not names:
        return {}
    if not weight.any():
        raise ValueError(
            "no query was left out by a bag of every member, so that weights cannot be fitted; raise n_bags"
        )
    weights = fitted_weights(np.column_stack(columns), judged[0].with_weight(weight))
    return dict(zip(names, weights.tolist(), strict=True))
