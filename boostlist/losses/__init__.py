"""The losses: the mathematics, a file per family. Knows nothing of boosters.

`registry` holds every loss by its name, the lower-case name under which `boostlist.objectives` has a ready instance.
Tests, documentation, benchmarks and the command line iterate over it.
"""

# `X as X` exports a name, as type checkers have it; `__all__` follows the registry.

from boostlist.losses.base import BoundLoss as BoundLoss
from boostlist.losses.base import Loss as Loss
from boostlist.losses.base import Sum as Sum
from boostlist.losses.base import Traits as Traits
from boostlist.losses.compiled import CompiledLoss as CompiledLoss
from boostlist.losses.cs_listmle import CsListMLE as CsListMLE
from boostlist.losses.group_pl import GroupPL as GroupPL
from boostlist.losses.interval_rank import IntervalRank as IntervalRank
from boostlist.losses.lambda_loss import LambdaLoss as LambdaLoss
from boostlist.losses.listnet import ListNet as ListNet
from boostlist.losses.listnet import MulticlassLogistic as MulticlassLogistic
from boostlist.losses.mapped import Mapped as Mapped
from boostlist.losses.markov import WUB as WUB
from boostlist.losses.markov import WpLL as WpLL
from boostlist.losses.pairwise import GBRank as GBRank
from boostlist.losses.pairwise import PairwiseExponential as PairwiseExponential
from boostlist.losses.pairwise import PairwiseHinge as PairwiseHinge
from boostlist.losses.pairwise import PairwiseLogistic as PairwiseLogistic
from boostlist.losses.pairwise import PairwiseQuadratic as PairwiseQuadratic
from boostlist.losses.pairwise import PairwiseSquaredHinge as PairwiseSquaredHinge
from boostlist.losses.plackett_luce import CsRgList as CsRgList
from boostlist.losses.plackett_luce import ListMLE as ListMLE
from boostlist.losses.plackett_luce import ReversePL as ReversePL
from boostlist.losses.plackett_luce import WeightedPL as WeightedPL
from boostlist.losses.pointwise import Isotonic as Isotonic
from boostlist.losses.pointwise import Pointwise as Pointwise
from boostlist.losses.rank_cosine import RankCosine as RankCosine
from boostlist.losses.smoothed import SmoothERR as SmoothERR
from boostlist.losses.smoothed import SmoothMRR as SmoothMRR
from boostlist.losses.smoothed import SmoothNDCG as SmoothNDCG
from boostlist.losses.yeti_rank import YetiRank as YetiRank

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

__all__ = ["BoundLoss", "CompiledLoss", "Loss", "Mapped", "Sum", "Traits", "registry"]
__all__ += [loss.__name__ for loss in registry.values()]
