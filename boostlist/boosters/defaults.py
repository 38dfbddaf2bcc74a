"""What makes a loss a good objective for trees, beyond the loss itself; the figures behind it are in docs/defaults.md.

A squared-error term beside a listwise loss ties the level of the scores to the grades where the loss alone is nearly
flat (Moon, Smola, Chang, Zheng, *IntervalRank* (2010), eq. 11, found it to help every listwise loss they tried):

    loss + share h Pointwise(centred),      h = mean of the positive diagonal entries of the loss at scores of 0

so that the term has `share` of the loss's curvature, whatever the loss is divided by. Pairwise losses are better off
without. Where terms of a loss look at different labels, there is such a term for each label.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from boostlist.boosters.lists import Lists
from boostlist.boosters.objective import BoundObjective, Objective, automatic_scale
from boostlist.checks import check_number, did_you_mean
from boostlist.gains import Gain
from boostlist.losses import Loss, Pointwise, Sum, registry
from boostlist.losses.base import BoundSum
from boostlist.losses.pairwise import Pairwise
from boostlist.losses.targets import LAST_GRADE
from boostlist.ranking_estimator import warn_without_order

_SHARE = 0.3
_LAST_EXP2_GRADE = 4


def as_objective(objective: str | Loss | Objective) -> Objective | str:
    """Return an objective of boostlist's, or the name of one that the host has to know."""
    if isinstance(objective, Objective):
        if objective.labels is not None:
            raise ValueError(
                "with_labels is for lgb.train and xgb.train; give TreeRanker.fit the labels by name, y={...}"
            )
        return objective
    if isinstance(objective, Loss):
        return objective.objective()
    if isinstance(objective, type) and issubclass(objective, Loss):
        raise TypeError(f"objective is the class {objective.__name__}; write {objective.__name__}()")
    if not isinstance(objective, str):
        raise TypeError(
            f"objective must be a loss of boostlist, its name ({', '.join(registry)}) or the name of an objective of "
            f"the host, got {objective!r}"
        )
    if objective in registry:
        return registry[objective]().objective()
    # Names that are not much like one of boostlist's are the host's to judge.
    hint = did_you_mean(objective, registry, "", cutoff=0.85)
    if hint:
        raise ValueError(f"there is no objective {objective!r}; {hint}")
    return objective


def pointwise_share(loss: Loss, share: float | None) -> float:
    """Return the share, or the default for this kind of loss if it is None."""
    if share is not None:
        check_number("pointwise", share, otherwise=", or None")
        return share
    terms = loss.terms if isinstance(loss, Sum) else ((1.0, loss),)
    return 0.0 if all(isinstance(term, Pairwise) for _, term in terms) else _SHARE


def bind_for_trees(objective: Objective, share: float | None, lists: Lists) -> BoundObjective:
    """Bind an objective to the data of a training, with its squared-error term beside it."""
    queries, loss = lists.queries, objective.loss
    warn_without_order(loss, queries)
    bound = loss.bind(queries)
    terms = pointwise_terms(
        loss,
        share,
        lambda label: float(queries.labelled(label).labels.max(initial=0)),
        lambda part: automatic_scale(bound if part is loss else part.bind(queries)),
    )
    if terms:
        bound = BoundSum.of((1.0, bound), *((factor, pointwise.bind(queries)) for factor, pointwise in terms))
    return objective.hold(bound, lists.document_weight)


def pointwise_terms(
    loss: Loss, share: float | None, y_max: Callable[[str | None], float], scale: Callable[[Loss], float]
) -> list[tuple[float, Pointwise]]:
    """Return factor and loss of the squared-error term of each label that has one.

    Parameters
    ----------
    loss, share
        As for `pointwise_term`.
    y_max
        Finds the largest grade of a label in all data.
    scale
        Finds the factor that makes the mean curvature of a part of the loss 1.
    """
    parts = loss.by_label().items()
    terms = [pointwise_term(part, share, y_max(label), partial(scale, part), label) for label, part in parts]
    return [term for term in terms if term is not None]


def pointwise_term(
    loss: Loss, share: float | None, y_max: float, scale: Callable[[], float], label: str | None = None
) -> tuple[float, Pointwise] | None:
    """Return factor and loss of the squared-error term, or None if there is none.

    Targets are the gains 2^y - 1 up to grade 4 and the grades themselves up to 31. Beyond that they would be so far
    apart that they swamp the loss, and there is no term.

    Parameters
    ----------
    loss
        The loss beside which the term stands.
    share
        Its share of the curvature; None for the default.
    y_max
        The largest grade of all data.
    scale
        Finds the factor that makes the loss's mean curvature 1; asked only if there is a term.
    label
        The label that the loss looks at.
    """
    share = pointwise_share(loss, share)
    if share == 0 or y_max > LAST_GRADE:
        return None
    targets: Gain = "exp2" if y_max <= _LAST_EXP2_GRADE else "linear"
    return share / scale(), Pointwise(targets=targets, centred=True, label=label)
