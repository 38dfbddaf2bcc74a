"""What an experiment is to do: models, settings, folds and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boostlist.evaluation.contenders import Contender, Grid
from boostlist.evaluation.grids import drawn, label, settings
from boostlist.evaluation.guests import Column
from boostlist.evaluation.search import Study
from boostlist.evaluation.sources import Source
from boostlist.evaluation.training import CURVE, Task
from boostlist.metrics import get as get_metric


@dataclass(frozen=True)
class Plan:
    """What an experiment is to do.

    Attributes
    ----------
    source
        The data and its folds.
    models, baseline
        The panel, and the model of it that the others are compared with.
    grid
        Settings of each model.
    metrics
        Names of the metrics to report; the selection metric is one of them.
    select
        Name of the metric that early stopping and the choice of settings go by.
    seed
        Seed of estimators and of resampling.
    tune
        Number of settings of each model that are tried of the grid; None tries all of them.
    search
        How these are found: "random" draws them all beforehand, "optuna" each by what those before it gave on the fold.
    repeats
        How many times each query is tested, in folds that are cut in another way each time.
    keep_models
        Whether to save the trained models.
    notes
        What readers of the figures should know: what of the data is not used, which models are left out.
    """

    source: Source
    models: tuple[Contender, ...]
    baseline: Contender
    grid: Grid
    metrics: tuple[str, ...]
    select: str
    seed: int = 0
    tune: int | None = None
    search: str = "random"
    repeats: int = 1
    keep_models: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (*self.metrics, self.select):
            get_metric(name)
        if self.baseline not in self.models:
            raise ValueError(f"the baseline {self.baseline.name} is not one of the models")

    @property
    def identity(self) -> dict[str, Any]:
        """What results in one folder must share."""
        return {
            "data": self.source.name,
            "seed": self.seed,
            "select": self.select,
            "fingerprint": self.source.fingerprint,
        }

    @property
    def measured(self) -> tuple[str, ...]:
        """All metrics that are measured: those of the report and those of its curve."""
        return tuple(dict.fromkeys((self.select, *self.metrics, *CURVE)))

    def settings(self, model: Contender) -> list[dict[str, Any]]:
        """Return the settings of a model that are tried, or as many for a search to begin with."""
        return settings(model, self.grid) if self.tune is None else drawn(model, self.grid, self.tune, self.seed)

    @property
    def adaptive(self) -> bool:
        """Whether settings depend on how earlier ones did."""
        return self.tune is not None and self.search == "optuna"

    def study(self, model: Contender) -> Study:
        """Return a search for the settings of a model on a fold."""
        higher = get_metric(self.select).higher_is_better
        return Study(model.axes(self.grid), self.settings(model), higher_is_better=higher, seed=self.seed)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Columns of the data that are no features: they hold scores of a model."""
        columns = [model for model in self.models if isinstance(model, Column)]
        return tuple(column.feature for column in columns if column.name.startswith("column:"))

    def tasks(self) -> list[Task]:
        """Return all tasks that are known beforehand, fold by fold."""
        by_model = {model: self.settings(model) for model in self.models}
        return [
            Task(model, fold, each, label(each, by_model[model]))
            for fold in self.source.numbers
            for model in self.models
            for each in by_model[model]
        ]
