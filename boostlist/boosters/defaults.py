"""What makes a loss a good objective for trees, beyond the loss itself; the figures behind it are in docs/defaults.md.

A squared-error term beside a listwise loss ties the level of the scores to the grades where the loss alone is nearly
flat (Moon, Smola, Chang, Zheng, *IntervalRank* (2010), eq. 11, found it to help every listwise loss they tried):

    loss + share h Pointwise(centred),      h = mean of the positive diagonal entries of the loss at scores of 0

so that the term has `share` of the loss's curvature, whatever the loss is divided by. Pairwise losses are better off
without.
"""

from __future__ import annotations

from collections.abc import Callable

from boostlist.boosters.lists import Lists
from boostlist.boosters.objective import BoundObjective, Objective, automatic_scale
from boostlist.checks import did_you_mean
from boostlist.gains import Gain
from boostlist.losses import Loss, Pointwise, registry
from boostlist.losses.base import BoundSum
from boostlist.losses.pairwise import Pairwise
from boostlist.losses.targets import LAST_GRADE

_SHARE = 0.3
_LAST_EXP2_GRADE = 4


def as_objective(objective: str | Loss | Objective) -> Objective | str:
    """Return an objective of boostlist's, or the name of one that the host has to know."""
    if isinstance(objective, Objective):
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
        return share
    return 0.0 if isinstance(loss, Pairwise) else _SHARE


def bind_for_trees(objective: Objective, share: float | None, lists: Lists) -> BoundObjective:
    """Bind an objective to the data of a training, with its squared-error term beside it."""
    bound = objective.loss.bind(lists.queries)
    y_max = float(lists.queries.labels.max(initial=0))
    term = pointwise_term(objective.loss, share, y_max, lambda: automatic_scale(bound))
    if term is not None:
        factor, pointwise = term
        bound = BoundSum.of((1.0, bound), (factor, pointwise.bind(lists.queries)))
    return objective.hold(bound, lists.document_weight)


def pointwise_term(
    loss: Loss, share: float | None, y_max: float, scale: Callable[[], float]
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
    """
    share = pointwise_share(loss, share)
    if share == 0 or y_max > LAST_GRADE:
        return None
    targets: Gain = "exp2" if y_max <= _LAST_EXP2_GRADE else "linear"
    return share / scale(), Pointwise(targets=targets, centred=True)
