"""What makes a loss a good objective for trees, beyond the loss itself; the figures behind it are in docs/defaults.md.

A squared-error term beside a listwise loss ties the level of the scores to the grades where the loss alone is nearly
flat (Moon, Smola, Chang, Zheng, *IntervalRank* (2010), eq. 11, found it to help every listwise loss they tried):

    loss + share h Pointwise(centred),      h = mean of the positive diagonal entries of the loss at scores of 0

so that the term has `share` of the loss's curvature, whatever the loss is divided by. Pairwise losses are better off
without.
"""

from __future__ import annotations

from boostlist.boosters.objective import Objective, automatic_scale
from boostlist.checks import did_you_mean
from boostlist.gains import Gain
from boostlist.losses import Loss, Pointwise, Sum, registry
from boostlist.losses.pairwise import Pairwise
from boostlist.losses.targets import LAST_GRADE
from boostlist.queries import Queries

_SHARE = 0.3
_LAST_EXP2_GRADE = 4


def as_objective(objective: str | Loss | Objective) -> Objective | str:
    """Return an objective of boostlist's, or the name of one that the host has to know."""
    if isinstance(objective, Objective):
        return objective
    if isinstance(objective, Loss):
        return objective.objective()
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


def with_pointwise(objective: Objective, share: float, queries: Queries) -> Objective:
    """Add the squared-error term."""
    if share == 0 or not queries.n_documents:
        return objective
    scale = automatic_scale(objective.loss.bind(queries))
    loss = pointwise_term(objective.loss, share, scale, float(queries.labels.max()))
    return Objective(loss=loss, scale=objective.scale)


def pointwise_term(loss: Loss, share: float, scale: float, y_max: float) -> Loss:
    """Add the squared-error term to a loss whose mean curvature at scores of 0 is 1 / scale.

    Targets are the gains 2^y - 1 up to grade 4 and the grades themselves up to 31. Beyond that they would be so far
    apart that they swamp the loss, and there is no term.
    """
    if share == 0 or y_max > LAST_GRADE:
        return loss
    targets: Gain = "exp2" if y_max <= _LAST_EXP2_GRADE else "linear"
    return Sum.of((1.0, loss), (share / scale, Pointwise(targets=targets, centred=True)))
