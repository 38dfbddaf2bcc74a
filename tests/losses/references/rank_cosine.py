from __future__ import annotations

import math

from boostlist.losses import RankCosine

CASES = [
    RankCosine(),
    RankCosine(phi="exp", rho=0.5),
    RankCosine(phi="sigmoid", psi="sigmoid"),
    RankCosine(phi=(2.0, 1.0), psi="exp", rho=3.0),
    RankCosine(psi="position"),
    RankCosine(psi=(1.0, -2.5), phi="exp"),
]


def mapped(kind, x):
    if kind == "exp":
        return math.exp(x)
    if kind == "sigmoid":
        return 1 / (1 + math.exp(-x))
    a, b = (1, 0) if kind == "identity" else kind
    return a * x + b


def value(loss, f, y, label_set):
    if loss.psi == "position":
        psi = [math.exp(-1 - sum(other > label for other in y)) for label in y]
    else:
        psi = [mapped(loss.psi, label) for label in y]
    u = [mapped(loss.phi, score) for score in f]
    if not any(psi):
        return 0.0
    length = math.sqrt(sum(x * x for x in psi)) * math.sqrt(sum(x * x for x in u) + loss.rho**2)
    return (1 - sum(p * x for p, x in zip(psi, u, strict=True)) / length) / 2
