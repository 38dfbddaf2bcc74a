"""All trees of an ensemble as one booster of their host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from boostlist.boosters.tree_ranker import TreeRanker

if TYPE_CHECKING:
    from boostlist.ensemble.members import Part


def merged(parts: Sequence[Part]) -> Any:
    """Return the booster that predicts the sum over parts of factor x score.

    Raises
    ------
    ValueError
        If there is none; the message names the member that is in the way.
    """
    for part in parts:
        _check(part, parts[0])
    counted = [part for part in parts if part.factor] or list(parts[:1])
    host = parts[0].estimator._host
    return host.weighted_sum([part.estimator.booster_ for part in counted], [part.factor for part in counted])


def _check(part: Part, first: Part) -> None:
    estimator = part.estimator
    if not isinstance(estimator, TreeRanker):
        raise ValueError(
            f"member {part.name!r} is no TreeRanker but a {type(estimator).__name__}; only trees can be merged. "
            "EnsembleRanker.save writes ensembles of any rankers of boostlist"
        )
    if estimator.backend != first.estimator.backend:
        raise ValueError(
            f"member {part.name!r} has trees of {estimator.backend}, but {first.name!r} of {first.estimator.backend}; "
            "only trees of one host can be merged"
        )
    reason = estimator._host.why_no_sum(estimator.booster_)
    if reason is not None:
        raise ValueError(f"member {part.name!r} cannot be merged: {reason}")
    if not estimator._host.same_features(first.estimator.booster_, estimator.booster_):
        raise ValueError(f"member {part.name!r} has other features than {first.name!r}, so that they cannot be merged")
