"""Every ranker in one table: where its class is, and what `boostlist compare` makes of it.

A new ranker is a file of its own and an entry here (docs/adding_a_model.md). `boostlist` and `boostlist.models`, model
files, `compare` and its grids, the tests and docs/models.md all go by this table. A class is imported when it is first
used, so that ``import boostlist`` stays light.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # what editors and type checkers see of the table; a test compares both
    from boostlist.boosters.tree_ranker import TreeRanker as TreeRanker
    from boostlist.ensemble.ranker import EnsembleRanker as EnsembleRanker
    from boostlist.models.kernel import KernelRanker as KernelRanker
    from boostlist.models.linear import LinearRanker as LinearRanker
    from boostlist.models.quadratic import QuadraticRanker as QuadraticRanker
    from boostlist.models.rank_cosine import RankCosineRanker as RankCosineRanker
    from boostlist.models.rank_svm import RankSVM as RankSVM
    from boostlist.models.separate import BilinearRanker as BilinearRanker
    from boostlist.models.separate import DistanceRanker as DistanceRanker

Kind = Literal["tree", "linear", "kernel", "ensemble"]
Axes = Mapping[str, list[Any]]
"""Parameters and the values to try; all combinations are tried."""


@dataclass(frozen=True)
class Ranker:
    """A ranker, or with some parameters fixed a variant of one.

    Attributes
    ----------
    estimator
        Module and class.
    family
        Name in `boostlist compare`; None if it does not take part.
    kind
        What it is in a comparison of trees with kernels.
    loss
        Name of its loss parameter; None if it has no choice of loss.
    host
        Booster that must be installed; None if none must.
    stops
        Whether ``fit`` takes data to stop on: ``eval_set``, ``eval_metric``, ``early_stopping_rounds``.
    own
        Objectives of the host itself, which train without boostlist's losses.
    fixed
        Parameters that make the estimator this family.
    small, full
        What the small and the full grid of `compare` try. Besides parameters there are ``features``, how features are
        normalised before a linear or kernel model sees them (a method of `RankingData.normalize`, or "plain"), and for
        those that stop ``early_stopping_rounds``.
    """

    estimator: str
    family: str | None = field(default=None, kw_only=True)
    kind: Kind = field(default="linear", kw_only=True)
    loss: str | None = field(default=None, kw_only=True)
    host: str | None = field(default=None, kw_only=True)
    stops: bool = field(default=False, kw_only=True)
    own: tuple[str, ...] = field(default=(), kw_only=True)
    fixed: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    small: Axes = field(default_factory=dict, kw_only=True)
    full: Axes = field(default_factory=dict, kw_only=True)

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.estimator.rpartition(".")[2]

    def load(self) -> Any:
        """Import the class."""
        return getattr(import_module(self.estimator.rpartition(".")[0]), self.name)


_TREES: Axes = {
    "num_leaves": [7, 31],
    "learning_rate": [0.1],
    "n_estimators": [300],
    "early_stopping_rounds": [25],
}
_ALL_TREES: Axes = {
    "num_leaves": [7, 15, 31, 63],
    "learning_rate": [0.03, 0.1],
    "n_estimators": [1500],
    "early_stopping_rounds": [100],
}
# Random thresholds help a host's own objectives too: they get the choice that boostlist's losses get.
_THRESHOLDS: Axes = {"extra_trees": [False, True]}
_ZSCORE: Axes = {"features": ["zscore"]}
_EITHER: Axes = {"features": ["zscore", "query-minmax"]}

_TABLE = (
    Ranker(
        "boostlist.boosters.tree_ranker.TreeRanker",
        family="lightgbm",
        kind="tree",
        host="lightgbm",
        stops=True,
        loss="objective",
        own=("lambdarank", "rank_xendcg"),
        fixed={"backend": "lightgbm"},
        small={**_TREES, **_THRESHOLDS},
        full={**_ALL_TREES, **_THRESHOLDS},
    ),
    Ranker(
        "boostlist.boosters.tree_ranker.TreeRanker",
        family="xgboost",
        kind="tree",
        host="xgboost",
        stops=True,
        loss="objective",
        own=("rank:ndcg", "rank:map", "rank:pairwise"),
        fixed={"backend": "xgboost"},
        small=_TREES,
        full=_ALL_TREES,
    ),
    Ranker(
        "boostlist.models.linear.LinearRanker",
        family="linear",
        loss="loss",
        small={"C": [0.1, 10.0, 1000.0], **_ZSCORE},
        full={"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], **_EITHER},
    ),
    Ranker(
        "boostlist.models.kernel.KernelRanker",
        family="kernel",
        kind="kernel",
        loss="loss",
        small={"C": [100.0, 1000.0, 10000.0], "n_landmarks": [300], **_ZSCORE},
        full={"C": [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0], "n_landmarks": [1000], **_EITHER},
    ),
    Ranker(
        "boostlist.models.quadratic.QuadraticRanker",
        family="quadratic",
        loss="loss",
        small={"C": [1.0, 100.0], "rho": [0.05], **_ZSCORE},
        full={"C": [0.01, 0.1, 1.0, 10.0, 100.0], "rho": [0.02, 0.05, 0.15], **_EITHER},
    ),
    Ranker(
        "boostlist.models.rank_svm.RankSVM",
        family="ranksvm",
        small={"C": [0.1, 10.0, 1000.0], "normalize": ["pairs"], **_ZSCORE},
        full={"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], "normalize": ["pairs"], **_EITHER},
    ),
    Ranker("boostlist.models.rank_cosine.RankCosineRanker", family="rankcosine", small=_ZSCORE, full=_EITHER),
    Ranker(
        "boostlist.ensemble.ranker.EnsembleRanker",
        family="ensemble",
        kind="ensemble",
        host="lightgbm",
        stops=True,
        fixed={"members": None},
        small={"early_stopping_rounds": [50]},
        full={"weights": ["uniform", "fitted"], "n_bags": [1, 4], "early_stopping_rounds": [100]},
    ),
    Ranker("boostlist.models.separate.BilinearRanker"),
    Ranker("boostlist.models.separate.DistanceRanker"),
)

RANKERS: dict[str, Ranker] = {ranker.name: ranker for ranker in _TABLE}
"""The rankers by the name of their class."""

FAMILIES: dict[str, Ranker] = {ranker.family: ranker for ranker in _TABLE if ranker.family is not None}
"""Those that take part in `boostlist compare`, by family."""
