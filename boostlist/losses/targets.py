"""Targets and weights that grow with the power of the grade, and the labels at which that ceases to work.

Losses that divide by the largest gain take labels of any size. Those that aim at 2^y - 1 itself, or weigh a stage by
pcf^y, do not: scores, gradients and Hessians are float32 in both hosts, and one high grade drowns all lower ones.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

import numpy as np

from boostlist.gains import Gain, gains

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.losses.base import Loss

# As far as both hosts' own objectives go with gains of 2^y - 1.
LAST_GRADE = 31
# Beside a larger weight, a weight of 1 is lost even in float64.
_LARGEST_WEIGHT = 2.0**53

_HOSTS = ("boostlist", "lightgbm", "xgboost", "sklearn")


def grade_targets(loss: Loss, labels: FloatArray, targets: Gain) -> FloatArray:
    """Return the target of each label; warn where 2^y - 1 is too large to be learnt."""
    largest = labels.max(initial=0.0)
    t = gains(labels, targets, "targets")
    if targets == "exp2" and largest > LAST_GRADE:
        _warn(
            f'{type(loss).__name__} with targets="exp2" aims at 2^y - 1, {t.max():.2g} at the largest label '
            f"{largest:g}: it learns little above grade {LAST_GRADE}, and nothing where float32 ends, at 2^128. "
            'Use targets="linear" or a table by grade'
        )
    return t


def warn_of_large_weights(loss: Loss, pcf: float, labels: FloatArray) -> None:
    """Warn where pcf^y leaves no weight to lower grades."""
    largest = labels.max(initial=0.0)
    if pcf**largest > _LARGEST_WEIGHT:
        lower = np.floor(100 * _LARGEST_WEIGHT ** (1 / largest)) / 100
        _warn(
            f"{type(loss).__name__} weighs the largest label {largest:g} by pcf ** y = {pcf**largest:.2g}, beside "
            f"which lower grades count for nothing. Lower pcf to {lower:g} or less, or "
            "rescale the labels"
        )


def _warn(message: str) -> None:
    """Warn at the line of the user's that led here, through this package or a host."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _HOSTS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
