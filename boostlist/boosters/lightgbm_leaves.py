"""Leaves of LightGBM's boosters, read from the text of the model."""

from __future__ import annotations

import re
from typing import Any

import lightgbm as lgb
import numpy as np

from boostlist._typing import IntArray
from boostlist.boosters.lightgbm_threads import threads
from boostlist.boosters.refitting import Leaves

_VALUES = re.compile(r"^leaf_value=(.*)$", re.MULTILINE)
_SHRINKAGE = re.compile(r"^shrinkage=(.*)$", re.MULTILINE)


def leaves(booster: Any, rate: float) -> Leaves:
    """Return the leaves; each tree knows its own rate.

    Raises
    ------
    ValueError
        If a prediction is no sum of the values of leaves.
    """
    text = booster.model_to_string()
    if re.search(r"^is_linear=1$|^average_output$", text, re.MULTILINE):
        raise ValueError("linear_tree and random forests cannot be refitted: a prediction is no sum of leaf values")
    values = [np.array(line.split(), np.float64) for line in _VALUES.findall(text)]
    return Leaves(values, [float(each) for each in _SHRINKAGE.findall(text)])


def leaf_numbers(booster: Any, prepared: Any, begin: int, end: int) -> IntArray:
    """Return the leaf of each document in the trees of some rounds, a column a tree."""
    rounds = {"start_iteration": begin, "num_iteration": end - begin}
    with threads(None) as number:
        found = booster.predict(prepared, pred_leaf=True, num_threads=number, **rounds)
    return np.asarray(found, np.int64).reshape(-1, end - begin)


def with_leaves(booster: Any, leaves: Leaves) -> Any:
    """Return a booster with other values."""
    copy = lgb.Booster(model_str=booster.model_to_string())
    for tree, values in enumerate(leaves.values):
        for leaf, value in enumerate(values.tolist()):
            copy.set_leaf_output(tree, leaf, value)
    return copy
