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
    ListMLE(ties="efron"),
    CsRgList(ties="efron"),
    *(WeightedPL(weights=weights) for weights in TABLE_8),
    WeightedPL(weights="gain", gain="linear", grades=(0, 1, 2, 3, 4, 5)),
    *(WeightedPL(weights=weights, ties="order") for weights in ("gain", "reciprocal", "log")),
    *(WeightedPL(weights=weights, ties="efron") for weights in ("grade", "reciprocal")),
    ReversePL(),
    *(ReversePL(weights=weights) for weights in TABLE_8[:-1]),
    ReversePL(ties="order"),
    ReversePL(ties="efron"),
]


def stage_weight(loss, j, y, label_set):
    better = sum(other > y[j] for other in y) if loss.ties == "breslow" else ranking(y).index(j)
    position = 1 + better
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


def ranking(y):
    """Return the documents from the best place to the worst; of equal grades, the earlier row is the better one."""
    return sorted(range(len(y)), key=lambda i: (-y[i], i))


def left(loss, j, y):
    """Return by document how much of it is left when the place of document j is filled."""
    n, stage = len(y), ranking(y)
    if isinstance(loss, ReversePL):
        y, stage = [-grade for grade in y], stage[::-1]
    place = {document: position for position, document in enumerate(stage)}
    if loss.ties == "order":
        return {k: 1.0 for k in range(n) if place[k] >= place[j]}
    mass = {k: 1.0 for k in range(n) if y[k] <= y[j]}
    tied = [k for k in range(n) if y[k] == y[j]]
    if loss.ties == "efron":
        mass |= dict.fromkeys(tied, sum(place[k] >= place[j] for k in tied) / len(tied))
    return mass


def value(loss, f, y, label_set):
    sign = -1 if isinstance(loss, ReversePL) else 1
    weight = [stage_weight(loss, j, y, label_set) for j in range(len(f))]
    total = 0.0
    for j in range(len(f)):
        Z = sum(mass * math.exp(sign * f[k]) for k, mass in left(loss, j, y).items())
        # Under Efron's rule no document has a place of its own within its grade.
        own = (
            [w for w, grade in zip(weight, y, strict=True) if grade == y[j]]
            if loss.ties == "efron"
            else weight[j : j + 1]
        )
        total += weight[j] * math.log(Z) - sum(own) / len(own) * sign * f[j]
    return total
