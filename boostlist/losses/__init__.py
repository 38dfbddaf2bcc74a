"""The losses: the mathematics, a file per family. Knows nothing of boosters.

`registry` holds every loss by its name, the lower-case name under which `boostlist.objectives` has a ready instance.
Tests, documentation, benchmarks and the command line iterate over it.
"""

from boostlist.losses.base import BoundLoss, KernelLoss, Loss, Traits
from boostlist.losses.combination import Sum
from boostlist.losses.cs_listmle import CsListMLE
from boostlist.losses.plackett_luce import CsRgList, ListMLE, ReversePL, WeightedPL

registry: dict[str, type[Loss]] = {
    "cs_listmle": CsListMLE,
    "listmle": ListMLE,
    "weighted_pl": WeightedPL,
    "cs_rglist": CsRgList,
    "reverse_pl": ReversePL,
}

__all__ = [
    "BoundLoss",
    "CsListMLE",
    "CsRgList",
    "KernelLoss",
    "ListMLE",
    "Loss",
    "ReversePL",
    "Sum",
    "Traits",
    "WeightedPL",
    "registry",
]
