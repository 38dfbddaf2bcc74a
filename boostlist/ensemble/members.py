"""Who is in an ensemble: the default panel, names of members, and what a member's ``fit`` takes."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from boostlist.boosters.hosts import Backend
from boostlist.boosters.tree_ranker import TreeRanker
from boostlist.checks import check_choice

_SEEDS = 2**31 - 1

LOSSES = ("wub", "cs_listmle", "listmle", "pairwise_logistic")
"""Losses of the default panel: their errors differ."""
LEAVES = (7, 15)
"""Sizes of the default panel's trees, two for each loss."""


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
    last = member.steps[-1][1] if isinstance(member, Pipeline) else member
    loss = getattr(last, "objective", getattr(last, "loss", None))
    return loss.replace(":", "_") if isinstance(loss, str) else type(last).__name__.lower()


class Accepts(NamedTuple):
    """What a member's ``fit`` takes besides features and labels.

    Attributes
    ----------
    qid, weight
        Queries; weights of rows or queries.
    stopping
        Data to stop the training on.
    """

    qid: bool
    weight: bool
    stopping: bool


def accepts(member: Any) -> Accepts:
    """Return what a member, or the last step of a pipeline, takes by its signature."""
    if isinstance(member, Pipeline):
        return accepts(member.steps[-1][1])
    parameters = inspect.signature(member.fit).parameters
    # A search hands on whatever it is given, by scikit-learn's metadata routing.
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return Accepts(
        qid="qid" in parameters or anything,
        weight="sample_weight" in parameters,
        stopping={"eval_set", "eval_metric", "early_stopping_rounds"} <= parameters.keys(),
    )


def check_members(members: Sequence[tuple[str, Any]], bagged: bool) -> None:
    """Raise a ValueError if there are no members, or that names one which cannot take part."""
    if not members:
        raise ValueError("members must be a list of estimators, with names or without, or None for the default panel")
    names = [name for name, _ in members]
    for name, member in members:
        if not isinstance(name, str) or not name or "__" in name:
            raise ValueError(f"names of members are texts without '__', got {name!r}")
        if names.count(name) > 1:
            raise ValueError(f"there are several members of the name {name!r}; names must differ")
        _check_member(name, member, bagged)


def _check_member(name: str, member: Any, bagged: bool) -> None:
    if not (hasattr(member, "fit") and hasattr(member, "predict") and hasattr(member, "get_params")):
        raise ValueError(f"member {name!r} is no estimator: {member!r}")
    takes = accepts(member)
    if not takes.qid:
        raise ValueError(
            f"member {name!r}: fit of {type(member).__name__} takes no qid, so that it would not know the queries; "
            "TreeRanker trains both LightGBM's and XGBoost's own objectives"
        )
    if bagged and not takes.weight:
        raise ValueError(
            f"member {name!r}: fit of {type(member).__name__} takes no sample_weight, by which bags are drawn; set "
            "n_bags=1 or leave the member out"
        )


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
    last = member.steps[-1][1] if isinstance(member, Pipeline) else member
    if not isinstance(last, TreeRanker) or last.n_jobs is not None:
        yield
        return
    last.n_jobs = threads
    try:
        yield
    finally:
        last.n_jobs = None
