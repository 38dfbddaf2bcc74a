"""The losses: the mathematics, a file per family. Knows nothing of boosters.

`registry` holds every loss by its name, the lower-case name under which `boostlist.objectives` has a ready instance.
Tests, documentation, benchmarks and the command line iterate over it.
"""

from boostlist.losses.base import BoundLoss, CompiledLoss, Loss, Traits
from boostlist.losses.combination import Sum
from boostlist.losses.cs_listmle import CsListMLE
from boostlist.losses.group_pl import GroupPL
from boostlist.losses.interval_rank import IntervalRank
from boostlist.losses.lambda_loss import LambdaLoss
from boostlist.losses.listnet import ListNet, MulticlassLogistic
from boostlist.losses.mapped import Mapped
from boostlist.losses.markov import WUB, WpLL
from boostlist.losses.pairwise import (
    GBRank,
    PairwiseExponential,
    PairwiseHinge,
    PairwiseLogistic,
    PairwiseQuadratic,
    PairwiseSquaredHinge,
)
from boostlist.losses.plackett_luce import CsRgList, ListMLE, ReversePL, WeightedPL
from boostlist.losses.pointwise import Isotonic, Pointwise
from boostlist.losses.rank_cosine import RankCosine
from boostlist.losses.smoothed import SmoothERR, SmoothMRR, SmoothNDCG
from boostlist.losses.yeti_rank import YetiRank

registry: dict[str, type[Loss]] = {
    "cs_listmle": CsListMLE,
    "listmle": ListMLE,
    "weighted_pl": WeightedPL,
    "cs_rglist": CsRgList,
    "reverse_pl": ReversePL,
    "pairwise_quadratic": PairwiseQuadratic,
    "pairwise_hinge": PairwiseHinge,
    "pairwise_squared_hinge": PairwiseSquaredHinge,
    "pairwise_exponential": PairwiseExponential,
    "pairwise_logistic": PairwiseLogistic,
    "gbrank": GBRank,
    "group_pl": GroupPL,
    "listnet": ListNet,
    "multiclass_logistic": MulticlassLogistic,
    "isotonic": Isotonic,
    "pointwise": Pointwise,
    "rank_cosine": RankCosine,
    "interval_rank": IntervalRank,
    "wpll": WpLL,
    "wub": WUB,
    "smooth_ndcg": SmoothNDCG,
    "smooth_err": SmoothERR,
    "smooth_mrr": SmoothMRR,
    "lambda_loss": LambdaLoss,
    "yeti_rank": YetiRank,
}

__all__ = [
    "WUB",
    "BoundLoss",
    "CompiledLoss",
    "CsListMLE",
    "CsRgList",
    "GBRank",
    "GroupPL",
    "IntervalRank",
    "Isotonic",
    "LambdaLoss",
    "ListMLE",
    "ListNet",
    "Loss",
    "Mapped",
    "MulticlassLogistic",
    "PairwiseExponential",
    "PairwiseHinge",
    "PairwiseLogistic",
    "PairwiseQuadratic",
    "PairwiseSquaredHinge",
    "Pointwise",
    "RankCosine",
    "ReversePL",
    "SmoothERR",
    "SmoothMRR",
    "SmoothNDCG",
    "Sum",
    "Traits",
    "WeightedPL",
    "WpLL",
    "YetiRank",
    "registry",
]
