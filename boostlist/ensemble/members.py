"""Who is in an ensemble: the default panel, names of members, and what a member's ``fit`` takes."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from boostlist._typing import FloatArray
from boostlist.boosters.hosts import Backend
from boostlist.boosters.tree_ranker import TreeRanker
from boostlist.checks import check_choice
from boostlist.losses import Loss

_SEEDS = 2**31 - 1

LOSSES = ("wub", "cs_listmle", "listmle", "pairwise_logistic")
"""Losses of the default panel: their errors differ."""
LEAVES = (7, 15)
"""Sizes of the default panel's trees, two for each loss."""


class Part(NamedTuple):
    """A fitted member on one bag, and its share in the sum.

    Attributes
    ----------
    name, bag
        Name of the member, and number of its bag.
    estimator
        The fitted estimator.
    spread
        Spread of its scores within queries.
    factor
        What its scores are multiplied by: the member's weight / (number of its bags x spread).
    """

    name: str
    bag: int
    estimator: Any
    spread: float
    factor: float


def default_members(backend: Backend = "lightgbm", **parameters: Any) -> list[tuple[str, Any]]:
    """Return the default panel, by name: on each of four losses, trees of 7 and of 15 leaves.

    Parameters
    ----------
    backend
        Host of all members.
    **parameters
        Further parameters of each `TreeRanker`.

    Examples
    --------
    >>> from boostlist.ensemble import default_members
    >>> [name for name, member in default_members()][:3]
    ['wub_7', 'wub_15', 'cs_listmle_7']
    """
    check_choice("backend", backend, Backend)
    return [
        (f"{loss}_{leaves}", TreeRanker(loss, **({"backend": backend, "num_leaves": leaves} | parameters)))
        for loss in LOSSES
        for leaves in LEAVES
    ]


def named(members: Any) -> list[tuple[str, Any]]:
    """Return members with their names: given as ``(name, estimator)``, else the name of the loss or of the class.

    Where several would have one name, they are numbered from 1: ``wub-1``, ``wub-2``. What is no list has no names;
    `check_members` refuses it.
    """
    if not isinstance(members, list | tuple):
        return []
    pairs = [member if isinstance(member, tuple | list) else (_own_name(member), member) for member in members]
    count = Counter(name for name, _ in pairs)
    number: Counter[str] = Counter()
    result = []
    for (name, estimator), member in zip(pairs, members, strict=True):
        number[name] += 1
        given = isinstance(member, tuple | list)
        result.append((name if given or count[name] == 1 else f"{name}-{number[name]}", estimator))
    return result


def _own_name(member: Any) -> str:
    last = last_step(member)
    loss = getattr(last, "objective", getattr(last, "loss", None))
    return loss.replace(":", "_") if isinstance(loss, str) else type(last).__name__.lower()


def last_step(member: Any) -> Any:
    """Return the last step of a pipeline, or the member itself."""
    return member.steps[-1][1] if isinstance(member, Pipeline) else member


class Accepts(NamedTuple):
    """What a member's ``fit`` takes besides features and labels.

    Attributes
    ----------
    names
        Names of the arguments.
    anything
        Whether it hands on whatever else it is given, as a search does by scikit-learn's metadata routing.
    """

    names: frozenset[str]
    anything: bool

    @property
    def stopping(self) -> bool:
        """Whether it takes data to stop the training on."""
        return {"eval_set", "eval_metric", "early_stopping_rounds"} <= self.names


def accepts(member: Any) -> Accepts:
    """Return what a member, or the last step of a pipeline, takes by its signature."""
    parameters = inspect.signature(last_step(member).fit).parameters
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return Accepts(frozenset(parameters), anything)


def check_members(members: Sequence[tuple[str, Any]], needed: Sequence[str]) -> None:
    """Raise a ValueError if there are no members, or that names one which cannot take part.

    Parameters
    ----------
    members
        The members by name.
    needed
        What their ``fit`` must take: ``sample_weight``, ``position``, ``propensity``.
    """
    if not members:
        raise ValueError("members must be a list of estimators, with names or without, or None for the default panel")
    names = [name for name, _ in members]
    for name, member in members:
        if not isinstance(name, str) or not name or "__" in name:
            raise ValueError(f"names of members are texts without '__', got {name!r}")
        if names.count(name) > 1:
            raise ValueError(f"there are several members of the name {name!r}; names must differ")
        _check_member(name, member, needed)


def _check_member(name: str, member: Any, needed: Sequence[str]) -> None:
    if not (hasattr(member, "fit") and hasattr(member, "predict") and hasattr(member, "get_params")):
        hint = f"; a loss is given as TreeRanker({member!r})" if isinstance(member, str | Loss) else ""
        raise ValueError(f"member {name!r} is no estimator: {member!r}{hint}")
    takes = accepts(member)
    if "qid" not in takes.names and not takes.anything:
        raise ValueError(
            f"member {name!r}: fit of {type(member).__name__} takes no qid, so that it would not know the queries; "
            "TreeRanker trains both LightGBM's and XGBoost's own objectives"
        )
    for argument in needed:
        if argument not in takes.names and (argument == "sample_weight" or not takes.anything):
            reason = (
                ", by which bags are drawn; set n_bags=1" if argument == "sample_weight" else f"; leave out {argument}="
            )
            raise ValueError(
                f"member {name!r}: fit of {type(member).__name__} takes no {argument}{reason} or leave the member out"
            )


def check_contributions(parts: Sequence[Part]) -> None:
    """Raise a ValueError that names a member which cannot say what each feature adds to a score."""
    for part in parts:
        if "pred_contrib" not in inspect.signature(part.estimator.predict).parameters:
            raise ValueError(f"member {part.name!r}, a {type(part.estimator).__name__}, has no contributions")


def mean_importances(parts: Sequence[Part]) -> FloatArray:
    """Return the mean of the members' importances of features, by weight.

    Raises
    ------
    AttributeError
        If a member has none; the message names it.
    """
    for part in parts:
        if not hasattr(part.estimator, "feature_importances_"):
            raise AttributeError(f"member {part.name!r}, a {type(part.estimator).__name__}, has no importances")
    # A factor is the weight of a member and bag, divided by the spread.
    shares = [part.factor * part.spread * np.asarray(part.estimator.feature_importances_) for part in parts]
    return np.asarray(np.sum(shares, axis=0), np.float64)


def fresh(member: Any, seed: int | None, position: int) -> Any:
    """Return an unfitted copy of a member.

    Unless the seed is None every ``random_state``, those of a pipeline's steps included, is set to one that depends on
    the seed and on the member's position.
    """
    member = clone(member)
    if seed is None:
        return member
    names = [name for name in member.get_params() if name == "random_state" or name.endswith("__random_state")]
    return member.set_params(**dict.fromkeys(names, (seed + position) % _SEEDS))


@contextmanager
def shared_threads(member: Any, threads: int | None) -> Iterator[None]:
    """Give boosted trees that would take all cores so many of them, or with None all, while they are at work."""
    last = last_step(member)
    if not isinstance(last, TreeRanker) or last.n_jobs is not None:
        yield
        return
    last.n_jobs = threads
    try:
        yield
    finally:
        last.n_jobs = None
