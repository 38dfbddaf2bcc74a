"""Metrics: defined once, for NumPy arrays, LightGBM, XGBoost and scikit-learn alike, with every convention a parameter.

`registry` holds every metric by its name without cut-off; `get` makes one from a name such as ``"ndcg@10"``;
`conventions` has the parameters that reproduce other tools.
"""

from boostlist.metrics.base import BoundMetric, Metric
from boostlist.metrics.binary import MAP, MRR, Precision, Recall
from boostlist.metrics.correlation import KendallTau, SpearmanRho
from boostlist.metrics.graded import DCG, ERR, NDCG, AvgNDCG
from boostlist.metrics.names import conventions, get, registry

__all__ = [
    "DCG",
    "ERR",
    "MAP",
    "MRR",
    "NDCG",
    "AvgNDCG",
    "BoundMetric",
    "KendallTau",
    "Metric",
    "Precision",
    "Recall",
    "SpearmanRho",
    "conventions",
    "get",
    "registry",
]
