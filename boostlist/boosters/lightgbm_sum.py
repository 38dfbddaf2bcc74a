"""Weighted sums of LightGBM's boosters: the trees of all, their leaves multiplied by each booster's factor.

LightGBM writes a model as text: a head, a block of lines for each tree, then sections that describe the training. A
leaf's value is added to the score as it stands, so a sum of models is the text with all the blocks and scaled values.
What described the single trainings - objective, parameters, importances - is left out; LightGBM reads the text without
it and finds importances afresh.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import lightgbm as lgb

# A leaf is a constant, or with linear_tree a constant and coefficients; inner nodes tell what a pruned tree would give.
_SCALED = re.compile(r"^(leaf_value|internal_value|leaf_const|leaf_coeff)=(.*)$", re.MULTILINE)
_SHRINKAGE = re.compile(r"^shrinkage=(.*)$", re.MULTILINE)
_TREE = re.compile(r"^Tree=\d+\n", re.MULTILINE)
_END, _CATEGORIES = "end of trees", "pandas_categorical:"
# Lines of the head that hold for one training only, among them that random forests average: raw scores are sums.
_LEFT_OUT = ("average_output", "objective=", "tree_sizes=")


def weighted_sum(boosters: Sequence[Any], factors: Sequence[float]) -> Any:
    """Return a booster whose raw scores are the sum over boosters of factor x raw score."""
    texts = [booster.model_to_string() for booster in boosters]
    trees = [_scaled(tree, factor) for text, factor in zip(texts, factors, strict=True) for tree in _trees(text)]
    blocks = [f"Tree={i}\n{tree}" for i, tree in enumerate(trees)]
    tail = texts[0][texts[0].rindex(_CATEGORIES) :]
    return lgb.Booster(model_str="\n".join([_head(texts[0]), *blocks, _END, "", tail]))


def same_features(first: Any, other: Any) -> bool:
    """Whether two boosters take the same features, with the same categories."""
    return bool(first.feature_name() == other.feature_name() and first.pandas_categorical == other.pandas_categorical)


def why_no_sum(booster: Any) -> str | None:
    """Return why a booster's score is not the sum of its trees' leaves; None if it is."""
    return None if booster.num_model_per_iteration() == 1 else "it has several trees a round"


def _head(text: str) -> str:
    """Return the lines before the trees that hold for every sum; without sizes LightGBM finds the trees itself."""
    lines = text[: text.index("\n\n")].splitlines()
    return "\n".join(line for line in lines if not line.startswith(_LEFT_OUT)) + "\n"


def _trees(text: str) -> list[str]:
    return _TREE.split(text[: text.index(f"\n{_END}") + 1])[1:]


def _scaled(tree: str, factor: float) -> str:
    def line(match: re.Match[str]) -> str:
        # Spaces separate the values, two of them the leaves' lists of coefficients: they stay as they are.
        values = (f"{float(word) * factor:.17g}" if word else "" for word in match[2].split(" "))
        return f"{match[1]}={' '.join(values)}"

    tree = _SHRINKAGE.sub(lambda match: f"shrinkage={float(match[1]) * factor:.17g}", tree)
    return _SCALED.sub(line, tree)
