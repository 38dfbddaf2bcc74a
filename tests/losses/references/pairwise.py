from __future__ import annotations

import math

from boostlist.losses import (
    GBRank,
    PairwiseExponential,
    PairwiseHinge,
    PairwiseLogistic,
    PairwiseQuadratic,
    PairwiseSquaredHinge,
)

WEIGHTS = ("uniform", "grade", "gain", "dcg")
NORMALIZE = (None, "documents", "pairs", "dcg")
CLASSES = (PairwiseQuadratic, PairwiseHinge, PairwiseSquaredHinge, PairwiseExponential, PairwiseLogistic, GBRank)

CASES = [
    *(loss() for loss in CLASSES),
    *(loss(weights=weights, normalize=None) for loss in CLASSES for weights in WEIGHTS),
    *(PairwiseQuadratic(weights="dcg", normalize=normalize) for normalize in NORMALIZE[1:]),
    PairwiseHinge(weights="grade", normalize="pairs"),
    PairwiseLogistic(weights="dcg", normalize="dcg", gain="linear"),
    PairwiseExponential(gain=(0, 0.5, 3, 7, 10), grades=(0, 1, 2, 3, 4)),
    PairwiseSquaredHinge(targets="linear"),
    GBRank(targets=(0, 0.5, 3, 7, 10), lam1=0.7),
]


def gain(table, y):
    if table == "exp2":
        return 2.0**y - 1
    return y if table == "linear" else table[int(y)]


def pair_weight(loss, i, j, y, label_set):
    """Table 9: V of a pair of a query with labels y, y_i > y_j."""
    n = len(y)
    R = [gain(loss.gain, g) / (2 * gain(loss.gain, max(loss.grades or label_set)) + 1) for g in y]
    eta = [1 / math.log(1 + 1 + sum(other > g for other in y)) for g in y]
    V = {
        "uniform": 1.0,
        "grade": y[i] - y[j],
        "gain": R[i] - R[j],
        "dcg": (R[i] - R[j]) * (eta[i] - eta[j]),
    }[loss.weights]
    divisor = {
        None: 1,
        "documents": n,
        "pairs": sum(a > b for a in y for b in y),
        "dcg": sum(r / math.log(1 + rank) for rank, r in enumerate(sorted(R, reverse=True), 1)),
    }[loss.normalize]
    return V / divisor if divisor else 0.0


def pair_loss(loss, d, high, low):
    """Table 3."""
    if isinstance(loss, PairwiseQuadratic):
        return (1 - d) ** 2
    if isinstance(loss, PairwiseHinge):
        return max(1 - d, 0.0)
    if isinstance(loss, PairwiseSquaredHinge):
        return max(gain(loss.targets, high) - gain(loss.targets, low) - d, 0.0) ** 2
    return math.exp(-d) if isinstance(loss, PairwiseExponential) else math.log(1 + math.exp(-d))


def value(loss, f, y, label_set):
    n = len(f)
    pairs = [(i, j) for i in range(n) for j in range(n) if y[i] > y[j]]
    total = sum(pair_weight(loss, i, j, y, label_set) * pair_loss(loss, f[i] - f[j], y[i], y[j]) for i, j in pairs)
    if isinstance(loss, GBRank):
        lam1 = 0.1 / n if loss.lam1 is None else loss.lam1
        total += lam1 * sum((f[i] - f[j]) ** 2 for i in range(n) for j in range(i) if y[i] == y[j])
    return total


def kink_distance(loss, f, y):
    """Return how far the scores can move before value or gradient of a hinge has a kink; inf for the smooth losses."""
    if not isinstance(loss, PairwiseHinge | PairwiseSquaredHinge):
        return math.inf
    n = len(f)
    gaps = []
    for i in range(n):
        for j in range(n):
            if y[i] > y[j]:
                squared = isinstance(loss, PairwiseSquaredHinge)
                margin = gain(loss.targets, y[i]) - gain(loss.targets, y[j]) if squared else 1.0
                gaps.append(abs(margin - f[i] + f[j]))
    return min(gaps, default=math.inf)
