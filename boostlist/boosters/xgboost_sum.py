"""Weighted sums of XGBoost's boosters: the trees of all, their leaves multiplied by each booster's factor.

XGBoost writes a model as JSON. A tree's leaf values are `split_conditions` where it has no left child, and a constant
`base_score` is added to the sum. XGBoost keeps leaves and adds them in float32, tree by tree. A sum loses least when it
starts with the smallest terms: half of what it loses in the order of the boosters. Of a thousand trees it is then the
sum of its parts to a few 1e-6 of the scores' spread, and to less than 1e-6 in the mean square; the parts, which XGBoost
adds likewise, are not more precise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xgboost as xgb

_IDENTITY = ("reg:squarederror", "rank:ndcg", "rank:map", "rank:pairwise")


def weighted_sum(boosters: Sequence[Any], factors: Sequence[float]) -> Any:
    """Return a booster whose raw scores are the sum over boosters of factor x raw score."""
    documents = [model_document(booster) for booster in boosters]
    trees = []
    base = 0.0
    for document, factor in zip(documents, factors, strict=True):
        base += float(factor) * base_score(document)
        for tree, share in zip(tree_model(document)["trees"], _shares(document), strict=True):
            trees.append(_scaled(tree, factor * share))
    trees.sort(key=_size)
    for i, tree in enumerate(trees):
        tree["id"] = i
    total = documents[0]
    model = tree_model(total)
    model["trees"] = trees
    model["tree_info"] = [0] * len(trees)
    model["iteration_indptr"] = list(range(len(trees) + 1))
    model["gbtree_model_param"] |= {"num_trees": str(len(trees)), "num_parallel_tree": "1"}
    learner = total["learner"]
    learner["gradient_booster"] = {"model": model, "name": "gbtree"}
    learner["attributes"] = {}
    learner["objective"] = {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}
    learner["learner_model_param"]["base_score"] = _like(learner["learner_model_param"]["base_score"], base)
    return xgb.Booster(model_file=bytearray(json.dumps(total).encode()))


def same_features(first: Any, other: Any) -> bool:
    """Whether two boosters take the same features."""
    return (first.num_features(), first.feature_names, first.feature_types) == (
        other.num_features(),
        other.feature_names,
        other.feature_types,
    )


def why_no_sum(booster: Any) -> str | None:
    """Return why a booster's score is not the sum of its trees' leaves; None if it is."""
    learner = model_document(booster)["learner"]
    if learner["gradient_booster"]["name"] not in ("gbtree", "dart"):
        return "it has no trees"
    name = learner["objective"]["name"]
    return None if name in _IDENTITY else f"its objective {name} transforms the sum of the leaves"


def model_document(booster: Any) -> dict[str, Any]:
    """Return the JSON of a booster."""
    document: dict[str, Any] = json.loads(booster.save_raw("json"))
    return document


def tree_model(document: dict[str, Any]) -> dict[str, Any]:
    """Return the part that describes the trees; the booster "dart" wraps another."""
    trees = document["learner"]["gradient_booster"]
    model: dict[str, Any] = trees.get("gbtree", trees)["model"]
    return model


def _shares(document: dict[str, Any]) -> list[float]:
    """Return the factor of each tree, which "dart" keeps beside the trees."""
    shares: list[float] | None = document["learner"]["gradient_booster"].get("weight_drop")
    return [1.0] * len(tree_model(document)["trees"]) if shares is None else shares


def base_score(document: dict[str, Any]) -> float:
    """Return what the trees add to."""
    return float(document["learner"]["learner_model_param"]["base_score"].strip("[]"))


def _like(text: str, value: float) -> str:
    """Return a number in the form of another: XGBoost writes a list of one from 3.1 on."""
    return f"[{value!r}]" if text.startswith("[") else repr(value)


def is_leaf(tree: dict[str, Any]) -> Any:
    """Return which nodes of a tree are leaves."""
    return np.asarray(tree["left_children"]) == -1


def _size(tree: dict[str, Any]) -> float:
    return float(np.abs(np.asarray(tree["split_conditions"])[is_leaf(tree)]).max())


def _scaled(tree: dict[str, Any], factor: float) -> dict[str, Any]:
    """Return the tree with its leaves multiplied; `base_weights` are what nodes would give as leaves."""
    values = np.asarray(tree["split_conditions"], np.float64)
    values = np.where(is_leaf(tree), factor * values, values)
    weights = factor * np.asarray(tree["base_weights"], np.float64)
    return tree | {"split_conditions": values.tolist(), "base_weights": weights.tolist()}
