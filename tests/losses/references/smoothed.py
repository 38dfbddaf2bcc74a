from __future__ import annotations

import math

from boostlist.losses import SmoothERR, SmoothMRR, SmoothNDCG
from tests.losses.references.pairwise import gain

CASES = [
    SmoothNDCG(),
    SmoothNDCG(tau=0.5, gain="linear"),
    SmoothNDCG(k=1),
    SmoothNDCG(k=3, tau=2.0),
    SmoothNDCG(k=2, tau=0.3, gain=(0, 0.5, 3, 7, 10)),
    SmoothERR(),
    SmoothERR(tau=0.5, grades=(0, 1, 2, 3, 4, 5)),
    SmoothERR(tau=2.0, gain="linear"),
    SmoothMRR(),
    SmoothMRR(tau=0.5),
]


def value(loss, f, y, label_set):
    n = len(f)
    if len(set(y)) == 1:
        return 0.0
    s = [[1 / (1 + math.exp((f[i] - f[j]) / loss.tau)) for j in range(n)] for i in range(n)]
    h = [1 + sum(s[i][j] for j in range(n) if j != i) for i in range(n)]
    if isinstance(loss, SmoothMRR):
        best = [i for i in range(n) if y[i] == max(y)]
        return 1 - sum(1 / h[i] for i in best) / len(best)
    a = [gain(loss.gain, grade) for grade in y]
    if isinstance(loss, SmoothERR):
        R = [g / (gain(loss.gain, max(loss.grades or label_set)) + 1) for g in a]
        return 1 - sum(R[i] / h[i] * math.prod(1 - R[j] * s[i][j] for j in range(n) if j != i) for i in range(n))
    k = loss.k or n
    ideal = sum(g / math.log2(1 + rank) for rank, g in enumerate(sorted(a, reverse=True)[:k], 1))
    gate = [1.0 if loss.k is None else 1 / (1 + (p / (k + 0.5)) ** (4 / loss.tau)) for p in h]
    return 1 - sum(a[i] * gate[i] / math.log2(1 + h[i]) for i in range(n)) / ideal if ideal else 0.0
