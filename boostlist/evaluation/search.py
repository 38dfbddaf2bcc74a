"""Settings that depend on how earlier ones did: a study of Optuna for each model and fold.

Grids and random draws (`boostlist.evaluation.grids`) know all their settings beforehand; a study is asked for one at a
time, and told what came of it.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from typing import Any

from boostlist.evaluation.grids import Range

SEARCHES = ("random", "optuna")


def check_search(name: str) -> None:
    """Raise an error if there is no such search, or it needs a package that is not installed."""
    if name not in SEARCHES:
        raise ValueError(f"search is one of {', '.join(SEARCHES)}, got {name!r}")
    if name == "optuna" and importlib.util.find_spec("optuna") is None:
        raise ImportError('search "optuna" needs Optuna: pip install "boostlist[tune]"')


class Study:
    """Settings of one model on one fold, each chosen by what those before it gave: Optuna's TPE sampler.

    There are as many as would be drawn at random, none twice. They are the same whenever trainings give the same
    values, so that a run that goes on finds what is stored.

    Parameters
    ----------
    axes
        The parameters, each with a list of values or a `Range`.
    drawn
        Settings drawn at random: how many to try, and what to try where the sampler repeats itself.
    higher_is_better
        Whether large values are good ones.
    seed
        Seed of the sampler.
    """

    def __init__(
        self, axes: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]], *, higher_is_better: bool, seed: int
    ) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        # A third at random, so that a small budget is not all of it; Optuna's own default is ten.
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(10, 1 + len(drawn) // 3))
        self._study = optuna.create_study(direction="maximize" if higher_is_better else "minimize", sampler=sampler)
        self._failed = optuna.trial.TrialState.FAIL
        self._axes, self._drawn = axes, drawn
        self._values: list[tuple[Mapping[str, Any], float | None]] = []
        self._trial: Any = None

    def ask(self) -> Mapping[str, Any] | None:
        """Return the next setting; None if there have been enough."""
        if len(self._values) == len(self._drawn):
            return None
        self._trial = self._study.ask()
        setting: Mapping[str, Any] = {name: _suggested(self._trial, name, each) for name, each in self._axes.items()}
        tried = [each for each, _ in self._values]
        if setting in tried:
            self._finish(self._values[tried.index(setting)][1])
            setting = next(each for each in self._drawn if each not in tried)
        return setting

    def tell(self, setting: Mapping[str, Any], value: float | None) -> None:
        """Note what a setting gave; None if its training failed."""
        value = None if value is None or math.isnan(value) else value
        self._values.append((setting, value))
        if self._trial is not None:
            self._finish(value)

    def _finish(self, value: float | None) -> None:
        self._study.tell(self._trial, value, state=self._failed if value is None else None)
        self._trial = None


def _suggested(trial: Any, name: str, values: Any) -> Any:
    if not isinstance(values, Range):
        return values[0 if len(values) == 1 else trial.suggest_categorical(name, range(len(values)))]
    suggest = trial.suggest_int if values.whole else trial.suggest_float
    return values.shown(suggest(name, values.low, values.high, log=values.log))
