"""Leaves of XGBoost's boosters, read from the JSON of the model: a leaf's number is that of its node."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xgboost as xgb

from boostlist._typing import IntArray
from boostlist.boosters.refitting import Leaves
from boostlist.boosters.xgboost_sum import base_score, is_leaf, model_document, tree_model


def leaves(booster: Any, rate: float) -> Leaves:
    """Return the leaves; trees of one round share its learning rate.

    Raises
    ------
    ValueError
        If trees have factors beside them.
    """
    document = model_document(booster)
    if document["learner"]["gradient_booster"]["name"] != "gbtree":
        raise ValueError('only booster="gbtree" can be refitted')
    model = tree_model(document)
    values = [np.where(is_leaf(tree), tree["split_conditions"], 0.0) for tree in model["trees"]]
    per_round = int(model["gbtree_model_param"]["num_parallel_tree"])
    return Leaves(values, [rate / per_round] * len(values), per_round, base_score(document))


def leaf_numbers(booster: Any, prepared: Any, begin: int, end: int) -> IntArray:
    """Return the leaf of each document in the trees of some rounds, a column a tree."""
    # XGBoost knows leaves from its first round on only.
    found = booster.predict(prepared, pred_leaf=True, iteration_range=(0, end)).reshape(prepared.num_row(), end, -1)
    return np.asarray(found[:, begin:], np.int64).reshape(prepared.num_row(), -1)


def with_leaves(booster: Any, leaves: Leaves) -> Any:
    """Return a booster with other values."""
    document = model_document(booster)
    for tree, values in zip(tree_model(document)["trees"], leaves.values, strict=True):
        leaf = is_leaf(tree)
        for name in ("split_conditions", "base_weights"):
            tree[name] = np.where(leaf, values, tree[name]).tolist()
    return xgb.Booster(model_file=bytearray(json.dumps(document).encode()))
