"""What `TreeRanker` asks of a host, and what it hands over: one interface over LightGBM and XGBoost.

A `Job` has everything that a training needs in boostlist's own terms; each host turns it into its own data, parameters
and callbacks. Gradients and metrics come bound to their lists, so that no host reads labels, groups or weights back
between rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, Protocol

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.boosters.lists import Lists
from boostlist.boosters.objective import Objective
from boostlist.boosters.refitting import LeafRule, Leaves
from boostlist.metrics.base import BoundMetric, Metric

Backend = Literal["lightgbm", "xgboost"]
Gradients = Callable[[AnyArray], tuple[AnyArray, AnyArray]]
History = dict[str, dict[str, list[float]]]

NOTE, CHECKSUM = "boostlist", "boostlist_checksum"
"""Names of what boostlist adds to a host's model file."""


@dataclass(frozen=True, kw_only=True)
class TreeParameters:
    """Parameters that both hosts have, under the names of their scikit-learn interfaces; None is the host's default."""

    learning_rate: float
    num_leaves: int
    max_depth: int | None
    min_child_weight: float | None
    reg_alpha: float
    reg_lambda: float | None
    subsample: float
    colsample_bytree: float
    extra_trees: bool
    max_bin: int
    seed: int | None
    n_jobs: int | None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A training.

    Attributes
    ----------
    tree, rounds
        Parameters, and the number of trees to add.
    objective
        Scores of the training documents -> gradient and Hessian; or the name of an objective that the host has.
    train, valid
        Training data; data for evaluation, by name.
    metrics
        Evaluated on each of `valid` after each round. The first one, on the last of `valid`, decides on stopping.
    stop_after
        Number of rounds without improvement after which training stops; None trains to the end.
    start
        Booster to continue from.
    batch_rows
        Read features in batches of about so many rows, without ever copying all of them; None: at once.
    callbacks
        The user's own callbacks, of the host's kind.
    """

    tree: TreeParameters
    rounds: int
    objective: Gradients | str
    train: Lists
    valid: Mapping[str, Lists]
    metrics: Sequence[Metric]
    stop_after: int | None = None
    start: Any = None
    batch_rows: int | None = None
    callbacks: Sequence[Any] = ()

    def shares_training_data(self, name: str) -> bool:
        """Whether data for evaluation has the very features of the training: a host need not hold them twice."""
        sharing = [each for each, lists in self.valid.items() if lists.X is self.train.X]
        return sharing == [name] and self.valid[name].starts_like(self.train)

    def bound_metrics(self) -> dict[str, list[BoundMetric]]:
        """Bind every metric to every set of lists for evaluation."""
        return {name: [metric.bind(lists.judged) for metric in self.metrics] for name, lists in self.valid.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Shards:
    """Lists on a Dask cluster: Dask collections with the same partitions, each of whole queries.

    Attributes
    ----------
    X, labels
        Features and labels of the documents.
    number
        Number of each document's query, ascending over all partitions.
    sizes
        Number of documents of each query.
    weight
        Weight of each document, or None if all are 1.
    position
        Code of each document's position, or None.
    init_score
        Scores that trees add to, or None.
    """

    X: Any
    labels: Any
    number: Any
    sizes: Any
    weight: Any
    position: Any = None
    init_score: Any = None


@dataclass(frozen=True, kw_only=True, eq=False)
class DistributedJob:
    """A training by the host's own Dask engine.

    Attributes
    ----------
    client
        The ``distributed.Client``.
    tree, rounds
        Parameters, and the number of trees.
    objective
        An objective in which every property of the whole data is fixed, since each worker binds it to its own queries;
        or the name of one that the host has.
    train
        Training data.
    positions
        The positions that the codes in it stand for, or None.
    """

    client: Any
    tree: TreeParameters
    rounds: int
    objective: Objective | str
    train: Shards
    positions: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class Trained:
    """A plain booster of the host, cut at its best round, and the values of the metrics after each round."""

    booster: Any
    history: History


class Host(Protocol):
    """A module with these functions; `boostlist.boosters.lightgbm_host` and `boostlist.boosters.xgboost_host` are.

    Attributes
    ----------
    RANDOM_THRESHOLDS
        Whether it can split features at random thresholds: ``extra_trees``.
    """

    RANDOM_THRESHOLDS: bool

    def train(self, job: Job) -> Trained:
        """Train a booster."""

    def train_distributed(self, job: DistributedJob) -> tuple[Any, list[FloatArray]]:
        """Train a booster on a Dask cluster; return it and, with positions, the biases at the start and of each round.

        Raises
        ------
        ValueError
            If the host cannot do that.
        """

    def parameters(self, tree: TreeParameters, objective: str | None) -> dict[str, Any]:
        """Return the host's parameters; `objective` is the host's own one, None for gradients of boostlist's."""

    def check_parameters(self, more: Mapping[str, Any], n_features: int) -> None:
        """Raise a ValueError with the host's words if the host does not know one of the parameters."""

    def predict(self, booster: Any, X: Any, contributions: bool, n_jobs: int | None) -> FloatArray:
        """Return raw scores, or the contribution of each feature to them and in the last column the base."""

    def rounds(self, booster: Any) -> int:
        """Return the number of rounds in the booster."""

    def prepared(self, X: Any) -> Any:
        """Return features in the form in which `partial_scores` takes them."""

    def partial_scores(self, booster: Any, prepared: Any, begin: int, end: int) -> FloatArray:
        """Return what the rounds begin <= r < end add to the raw scores."""

    def first_rounds(self, booster: Any, n: int) -> Any:
        """Return a booster of the first n rounds."""

    def weighted_sum(self, boosters: Sequence[Any], factors: Sequence[float]) -> Any:
        """Return a booster whose raw scores are the sum over boosters of factor x raw score."""

    def why_no_sum(self, booster: Any) -> str | None:
        """Return why a booster's raw score is not the sum of its trees' leaves, so that it cannot be part of a sum."""

    def same_features(self, first: Any, other: Any) -> bool:
        """Whether two boosters take the same features."""

    def leaf_rule(self, tree: TreeParameters) -> LeafRule:
        """Return how the leaves of a training with these parameters get their values."""

    def leaves(self, booster: Any, rate: float) -> Leaves:
        """Return the leaves of a booster that was trained with this learning rate, where it does not say which."""

    def leaf_numbers(self, booster: Any, prepared: Any, begin: int, end: int) -> IntArray:
        """Return the leaf of each document in the trees of the rounds begin <= r < end, a column a tree."""

    def with_leaves(self, booster: Any, leaves: Leaves) -> Any:
        """Return a booster with other values of its leaves."""

    def total_gain(self, booster: Any, n_features: int) -> FloatArray:
        """Return the summed gain of each feature's splits."""

    def to_bytes(self, booster: Any, notes: Mapping[str, str], suffix: str) -> bytes:
        """Return the host's model file, in its format for files of this suffix, with notes that the host ignores."""

    def from_bytes(self, content: bytes) -> tuple[Any, str | None]:
        """Return booster and `NOTE` of a model file; None if it has no such note."""


def host(backend: str) -> Host:
    """Return the host of this name.

    Raises
    ------
    ValueError
        If there is no such host.
    ImportError
        If it is not installed.
    """
    if backend not in ("lightgbm", "xgboost"):
        raise ValueError(f'backend must be "lightgbm" or "xgboost", got {backend!r}')
    try:
        import_module(backend)
    except ImportError as error:
        raise ImportError(
            f'backend="{backend}" needs {backend}, which is not installed: pip install "boostlist[{backend}]"'
        ) from error
    module: Any = import_module(f"boostlist.boosters.{backend}_host")
    return module  # type: ignore[no-any-return]
