from __future__ import annotations

import math

from boostlist.losses import WUB, WpLL
from tests.losses.references.pairwise import gain, pair_weight

TABLE_8 = ("uniform", "grade", "sqrt_grade", "gain", "reciprocal", "log")

CASES = [
    WpLL(),
    *(WpLL(weights=weights) for weights in TABLE_8 if weights != "reciprocal"),
    WpLL(gamma=0.3, grades=(0, 1, 2, 3, 4, 5, 7)),
    WpLL(weights="gain", gain="linear", gamma=0.1),
    WpLL(gamma="pairs"),
    WUB(),
    *(WUB(weights=weights, normalize=None) for weights in ("uniform", "grade", "gain", "dcg")),
    *(WUB(weights=weights, normalize=normalize) for weights in ("uniform", "dcg") for normalize in ("pairs", "dcg")),
    WUB(gamma="pairs"),
    WUB(gamma=0.4, grades=(0, 1, 2, 3, 4, 5, 7), gain="linear", weights="gain"),
]


def sign(x):
    return int(x > 0) - int(x < 0)


def stage_weight(loss, y, i, labels):
    position = 1 + sum(other > y[i] for other in y)
    if loss.weights == "gain":
        return gain(loss.gain, y[i]) / (2 * gain(loss.gain, max(labels)) + 1)
    return {
        "uniform": 1.0,
        "grade": y[i],
        "sqrt_grade": math.sqrt(y[i]),
        "reciprocal": 1 / position,
        "log": 1 / math.log(1 + position),
    }[loss.weights]


def value(loss, f, y, label_set):
    n = len(f)
    labels = loss.grades or label_set
    pairs = n * (n - 1) / 2
    gamma = (1 / pairs if pairs else 0.0) if loss.gamma == "pairs" else loss.gamma
    if isinstance(loss, WpLL):
        total = 0.0
        for i in range(n):
            s = {v: gamma * sum(sign(v - y[j]) * (f[i] - f[j]) for j in range(n) if j != i) for v in labels}
            total += stage_weight(loss, y, i, labels) * (math.log(sum(map(math.exp, s.values()))) - s[y[i]])
        return total
    if len(labels) == 1 or not pairs:
        return 0.0
    total = 0.0
    for i in range(n):
        for j in range(n):
            if y[i] > y[j] or (y[i] == y[j] and i < j):
                if loss.normalize == "pairs":
                    W = pair_weight(WUB(weights=loss.weights, normalize=None), i, j, y, labels) / pairs
                else:
                    W = pair_weight(loss, i, j, y, labels)
                d = f[i] - f[j]
                psi = math.log(len(labels) * (1 + (len(labels) - 1) * math.cosh(gamma * d)))
                total += W * (psi - gamma * sign(y[i] - y[j]) * d)
    return total
