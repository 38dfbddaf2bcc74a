"""Position bias as a term of the scores while training: what was clicked is what is relevant and was seen.

A document x at position p is taken to have been scored f(x) + b_p, whatever the loss. Gradient g and diagonal h of the
loss are taken there. A tree then moves f, and each bias moves by a damped Newton step on the sums over the n_p
documents of its position, from b_p = 0 on:

    b_p += rate (- sum g - regularization n_p b_p) / (|sum h| + regularization n_p + 0.001),

which is the rule that LightGBM has for its ``lambdarank`` alone, with ``lambdarank_position_bias_regularization``.
g and h are those that trees get: scaled, weighted, the step of h bounded. Biases are no part of a prediction.

One training has one `Debiased`. In ``lgb.train`` the objective learns of a training only by its calls; there the array
of scores tells trainings apart, since a ``lightgbm.Booster`` keeps one for its whole life and hands it to every call.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.checks import check_number, warn
from boostlist.positions import Positions

if TYPE_CHECKING:
    import pandas as pd

_RATE = 0.1  # LightGBM's own learning rate, where that of the trees is not known
_DAMPING = 1e-3
_LEFT = 0.15

Gradients = Callable[[AnyArray], tuple[AnyArray, AnyArray]]


@dataclass(frozen=True, kw_only=True)
class PositionBias:
    """How biases of positions are learned beside trees; the rule is at the top of this module.

    Parameters
    ----------
    learning_rate
        Factor on the steps. None is the learning rate of the trees in `boostlist.TreeRanker` and 0.1 in ``lgb.train``,
        which does not tell an objective its own.
    regularization
        Weight of the penalty on the squares of the biases, for each document; 0 for none.
    start
        Biases to start from, by position; 0 for positions that are not named. A mapping or a series.
    check
        Whether `boostlist.TreeRanker` checks that the log was not in a better order than what is learned from it, at
        the cost of half a training more (docs/clicks.md).
    """

    learning_rate: float | None = None
    regularization: float = 0.0
    start: Any = ()
    check: bool = True

    def __post_init__(self) -> None:
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, otherwise=", or None")
        check_number("regularization", self.regularization)
        pairs = tuple(dict(self.start).items()) if not isinstance(self.start, tuple) else self.start
        object.__setattr__(self, "start", tuple((label, float(value)) for label, value in pairs))
        bad = next((label for label, value in self.start if not np.isfinite(value)), None)
        if bad is not None:
            raise ValueError(f"the bias of position {bad!r} is {dict(self.start)[bad]}; biases are finite numbers")

    @classmethod
    def of(cls, value: Any) -> PositionBias:
        """Return a rule, given itself, biases to start from, or None."""
        if isinstance(value, cls):
            return value
        if value is None:
            return DEFAULT_RULE
        if not isinstance(value, Mapping) and not hasattr(value, "items"):
            raise TypeError(
                "position_bias must be a boostlist.boosters.PositionBias, or biases by position to start from: a "
                f"mapping or a series, such as position_bias_; got {type(value).__name__}"
            )
        return cls(start=value)

    def at(self, positions: Positions) -> FloatArray:
        """Return the biases to start from."""
        start = dict(self.start)
        return np.array([start.get(label, 0.0) for label in positions.labels])


DEFAULT_RULE = PositionBias()
"""The rule where none is chosen."""


def known_bias(biases: pd.Series[float] | None, positions: Positions | None) -> FloatArray | float:
    """Return the bias of each document, 0 where there are no positions or nothing is known of one.

    Raises
    ------
    ValueError
        If there are positions, but no biases.
    """
    if positions is None:
        return 0.0
    if biases is None:
        raise ValueError("the ranker was trained without positions and has no biases for them: leave position= out")
    return PositionBias.of(biases).at(positions)[positions.codes]


class Debiased:
    """Gradients of one training at f + b, and the biases b, which move after each call.

    Parameters
    ----------
    gradients
        Scores -> gradient and diagonal.
    positions
        Position of each document.
    rule, rate
        How biases move; the learning rate that stands for None.
    total
        Sums the gradient, diagonal and number of documents of each position over all parts of the data, if there are
        others than this.

    Attributes
    ----------
    path
        The biases before the first round, and after each.
    """

    def __init__(
        self,
        gradients: Gradients,
        positions: Positions,
        rule: PositionBias,
        rate: float = _RATE,
        total: Callable[[FloatArray], FloatArray] = lambda sums: sums,
    ) -> None:
        self.gradients = gradients
        self.positions = positions
        self.rule = rule
        self.rate = rate if rule.learning_rate is None else rule.learning_rate
        self.total = total
        self.path = [rule.at(positions)]

    def __call__(self, scores: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return gradient and diagonal at f + b, and move b."""
        b, positions = self.path[-1], self.positions
        g, h = self.gradients(scores + b[positions.codes])
        G, H, n = self.total(np.stack([positions.sums(g), positions.sums(h), positions.counts]))
        penalty = self.rule.regularization * n
        self.path.append(b + self.rate * (-G - penalty * b) / (np.abs(H) + penalty + _DAMPING))
        return g, h

    def to_check(self, rounds: int) -> bool:
        """Whether the log is to be checked: if the biases are near to where they go, from which step / rate is left."""
        if not self.rule.check or rounds < 1 or self.rate == 0:
            return False
        before, b = self.path[rounds - 1], self.path[rounds]
        return bool(np.abs(b - before).max() / self.rate <= _LEFT * np.ptp(b))

    def after(self, rounds: int) -> pd.Series[float]:
        """Return the biases after so many rounds, by position."""
        return self.positions.series(self.path[rounds])


_lock = threading.RLock()  # re-entrant: an array may be collected, and so forgotten, while the lock is held
_trainings: dict[int, tuple[Any, Hashable, Debiased]] = {}
_latest: weakref.WeakKeyDictionary[Any, Debiased] = weakref.WeakKeyDictionary()


def of_training(dataset: Any, scores: AnyArray, key: Hashable, make: Callable[[], Debiased]) -> Debiased:
    """Return the `Debiased` of the ``lightgbm.Booster`` to which an array of scores belongs, made if there is none.

    It is made anew for another key: another objective, or data that has changed.
    """
    array = scores if scores.base is None else scores.base
    name = id(array)

    def forget(reference: object) -> None:
        with _lock:
            if name in _trainings and _trainings[name][0] is reference:
                del _trainings[name]

    with _lock:
        reference, known, found = _trainings.get(name, (None, None, None))
        if found is None or reference is None or reference() is not array or known != key:
            found = make()
            _trainings[name] = (weakref.ref(array, forget), key, found)
            if getattr(dataset, "_predictor", None) is not None and not found.rule.start:
                warn(
                    "with init_model the biases of positions start at 0 again, since a booster does not hold them; "
                    "pass those of the first training, loss.objective(position_bias=...), or use "
                    "boostlist.TreeRanker, which saves them and continues from them"
                )
        _latest[dataset] = found
    return found


def position_bias(dataset: Any) -> pd.Series[float]:
    """Return the biases that the latest training on a ``lightgbm.Dataset`` has learned, by position.

    Parameters
    ----------
    dataset
        What ``lgb.train`` was given, with a loss of boostlist. LightGBM numbers its positions 0, 1, ... in the order in
        which they first occur.

    Raises
    ------
    ValueError
        If nothing of boostlist was trained on it, or it has no positions.
    """
    found = _latest.get(dataset)
    if found is None:
        raise ValueError(
            "no loss of boostlist has been trained on this lightgbm.Dataset with positions: make it with position=[...]"
        )
    return found.after(len(found.path) - 1)


def plot_position_bias(bias: Any, ax: Any = None, label: str | None = None) -> Any:
    """Plot the biases of positions, and return the axes. Needs matplotlib.

    Parameters
    ----------
    bias
        A fitted ranker, or its ``position_bias_``.
    ax, label
        Axes to draw on, the current ones by default, and the name of the line in a legend.
    """
    series = getattr(bias, "position_bias_", bias)
    if series is None:
        raise ValueError(f"this {type(bias).__name__} was fitted without positions: there is no bias to plot")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.gca()
    places = np.arange(len(series))
    ax.plot(places, series.to_numpy(), marker="o", label=label)
    ax.set_xticks(places, [str(position) for position in series.index])
    ax.set_xlabel("position")
    ax.set_ylabel("bias, in units of the score")
    return ax
