from __future__ import annotations

import math

from boostlist.losses import GroupPL

CASES = [GroupPL(aggregation=aggregation) for aggregation in ("min", "max", "mean", "logmeanexp")]

AGGREGATE = {
    "min": min,
    "max": max,
    "mean": lambda scores: sum(scores) / len(scores),
    "logmeanexp": lambda scores: math.log(sum(map(math.exp, scores)) / len(scores)),
}


def value(loss, f, y, label_set):
    grades = sorted(set(y), reverse=True)
    groups = [AGGREGATE[loss.aggregation]([fi for fi, yi in zip(f, y, strict=True) if yi == grade]) for grade in grades]
    return sum(math.log(sum(map(math.exp, groups[j:]))) - groups[j] for j in range(len(groups)))
