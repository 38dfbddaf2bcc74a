from __future__ import annotations

import math

from boostlist.losses import GroupPL
from tests.losses.references.markov import TABLE_8, stage_weight

CASES = [
    *(GroupPL(aggregation=aggregation) for aggregation in ("min", "max", "mean", "logmeanexp")),
    *(GroupPL(aggregation="mean", weights=weights) for weights in TABLE_8[1:]),
    GroupPL(weights="gain", gain="linear", grades=(0, 1, 2, 3, 4, 5, 7)),
]

AGGREGATE = {
    "min": min,
    "max": max,
    "mean": lambda scores: sum(scores) / len(scores),
    "logmeanexp": lambda scores: math.log(sum(map(math.exp, scores)) / len(scores)),
}


def value(loss, f, y, label_set):
    grades = sorted(set(y), reverse=True)
    groups = [AGGREGATE[loss.aggregation]([fi for fi, yi in zip(f, y, strict=True) if yi == grade]) for grade in grades]
    labels = loss.grades or label_set
    return sum(
        stage_weight(loss, grades, j, labels) * (math.log(sum(map(math.exp, groups[j:]))) - groups[j])
        for j in range(len(groups))
    )


def kink_distance(loss, f, y):
    """Return how far min or max of a group is from changing hands; inf for the smooth aggregations."""
    if loss.aggregation not in ("min", "max"):
        return math.inf
    gaps = []
    for grade in set(y):
        scores = sorted((fi for fi, yi in zip(f, y, strict=True) if yi == grade), reverse=loss.aggregation == "max")
        gaps += [abs(scores[1] - scores[0])] if len(scores) > 1 else []
    return min(gaps, default=math.inf)
