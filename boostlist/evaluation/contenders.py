"""What can stand in a comparison: a model of the panel, a user's own estimator or function, or scores made elsewhere.

All of them have a name, the parameters that a grid may vary, and `fit`, which returns a `Trained` model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from boostlist._typing import FloatArray
from boostlist.datasets import RankingData
from boostlist.metrics import Metric

Grid = Mapping[str, Mapping[str, Any]]
"""By family or name of a model, the parameters to vary, each with a list of values or a range to draw from."""


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Attributes
    ----------
    scores
        Scores the documents of a part of a fold.
    estimator
        What was fitted, to be saved; None where nothing was.
    history, rounds
        As in `Result.history` and `Result.chosen_rounds`.
    objective
        What was trained on, as text.
    """

    scores: Callable[[RankingData], FloatArray]
    estimator: Any = None
    history: Mapping[str, list[float]] = field(default_factory=dict)
    rounds: int | None = None
    objective: str = ""


def inputs(data: RankingData) -> Any:
    """Return the features as estimators take them: an array, or a data frame where there are categories."""
    return data.feature_frame() if data.categories else data.X


class Contender(Protocol):
    """What a comparison knows of a model."""

    @property
    def name(self) -> str:
        """Its name in all tables."""

    @property
    def family(self) -> str:
        """What kind of estimator it is."""

    @property
    def kind(self) -> str:
        """``"tree"``, ``"linear"`` or ``"kernel"``, which the report sets against each other, or ``"other"``."""

    @property
    def loss(self) -> str | None:
        """Name of its loss, by which the report brings families together; None if it has none of boostlist's."""

    @property
    def is_reference(self) -> bool:
        """Whether it is a baseline by nature, such as a host's own objective."""

    @property
    def learns(self) -> bool:
        """Whether it is trained at all."""

    @property
    def origin(self) -> str:
        """What tells it from another model of the same name; results of the other are not taken for its own."""

    def axes(self, grid: Grid) -> Mapping[str, Any]:
        """Return the parameters to try and their values."""

    def fit(
        self, setting: Mapping[str, Any], train: RankingData, vali: RankingData, metric: Metric, seed: int
    ) -> Trained:
        """Train with a setting; the validation part and the metric are for early stopping."""


@dataclass(frozen=True, eq=False)
class Guest(ABC):
    """What models from outside of the panel have in common."""

    name: str

    @property
    def family(self) -> str:
        """Its name: there is no other of its kind."""
        return self.name

    kind: ClassVar[str] = "other"
    loss: ClassVar[str | None] = None
    is_reference: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    @property
    def origin(self) -> str:
        """Nothing: the name says it all."""
        return ""

    def axes(self, grid: Grid) -> Mapping[str, Any]:
        """Return what the grid has under the model's name, else nothing."""
        return grid.get(self.name, {})

    @abstractmethod
    def fit(
        self, setting: Mapping[str, Any], train: RankingData, vali: RankingData, metric: Metric, seed: int
    ) -> Trained:
        """Train with a setting."""
