from __future__ import annotations

import math

from boostlist.losses import CsRgList, ListMLE, ReversePL, WeightedPL

TABLE_8 = ("uniform", "grade", "sqrt_grade", "gain", "reciprocal", "log")

CASES = [
    ListMLE(),
    ListMLE(ties="order"),
    CsRgList(),
    CsRgList(grades=(0, 1, 2, 3, 4, 5, 6)),
    CsRgList(pcf=1.5, ties="order"),
    *(WeightedPL(weights=weights) for weights in TABLE_8),
    WeightedPL(weights="gain", gain="linear", grades=(0, 1, 2, 3, 4, 5)),
    WeightedPL(weights="log", ties="order"),
    ReversePL(),
    *(ReversePL(weights=weights) for weights in TABLE_8[:-1]),
    ReversePL(ties="order"),
]


def stage_weight(loss, j, y, label_set):
    position = 1 + sum(other > y[j] for other in y)
    if isinstance(loss, ListMLE):
        return 1.0
    if isinstance(loss, CsRgList):
        y_max = max(loss.grades or label_set)
        pcf = loss.pcf or (3 if y_max <= 2 else 9 ** (1 / y_max))
        return pcf ** y[j] / sum(other == y[j] for other in y)
    if loss.weights == "gain":
        y_max = max(loss.grades or label_set)
        return y[j] / (2 * y_max + 1) if loss.gain == "linear" else (2 ** y[j] - 1) / (2 ** (y_max + 1) - 1)
    return {
        "uniform": 1.0,
        "grade": y[j],
        "sqrt_grade": math.sqrt(y[j]),
        "reciprocal": 1 / position,
        "log": 1 / math.log(1 + position),
    }[loss.weights]


def value(loss, f, y, label_set):
    n = len(f)
    # Of equal grades, the earlier row is the better one under ties="order".
    rank = sorted(range(n), key=lambda i: (-y[i], i))
    stage = {document: position for position, document in enumerate(rank)}
    total = 0.0
    for j in range(n):
        if loss.ties == "order":
            worse = [k for k in range(n) if stage[k] >= stage[j]]
            better = [k for k in range(n) if stage[k] <= stage[j]]
        else:
            worse = [k for k in range(n) if y[k] <= y[j]]
            better = [k for k in range(n) if y[k] >= y[j]]
        if isinstance(loss, ReversePL):
            surprise = f[j] + math.log(sum(math.exp(-f[k]) for k in better))
        else:
            surprise = math.log(sum(math.exp(f[k]) for k in worse)) - f[j]
        total += stage_weight(loss, j, y, label_set) * surprise
    return total
