"""What makes a loss a good objective for trees, beyond the loss itself; the figures behind it are in docs/defaults.md.

A squared-error term beside a listwise loss ties the level of the scores to the grades where the loss alone is nearly
flat (Moon, Smola, Chang, Zheng, *IntervalRank* (2010), eq. 11, found it to help every listwise loss they tried):

    loss + share h Pointwise(centred),      h = mean of the positive diagonal entries of the loss at scores of 0

so that the term has `share` of the loss's curvature, whatever the loss is divided by.
"""

from __future__ import annotations

from boostlist.boosters.objective import Objective, automatic_scale
from boostlist.losses import Loss, Pointwise, Sum, registry
from boostlist.queries import Queries

SHARE = 0.3


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
    return registry[objective]().objective() if objective in registry else objective


def with_pointwise(objective: Objective, share: float, queries: Queries) -> Objective:
    """Add the squared-error term."""
    if share == 0:
        return objective
    h = 1 / automatic_scale(objective.loss.bind(queries))
    term = Pointwise(centred=True)
    return Objective(loss=Sum.of((1.0, objective.loss), (share * h, term)), scale=objective.scale)
