from __future__ import annotations

import math

from boostlist.losses import CsListMLE

CASES = [
    CsListMLE(),
    CsListMLE(k=1),
    CsListMLE(k=4),
    CsListMLE(weights="grade"),
    CsListMLE(weights="grade", k=3),
    CsListMLE(gain="linear"),
    CsListMLE(gain=(0, 0.5, 3, 7, 10)),
]


def gain(loss, y):
    if loss.gain == "exp2":
        return 2.0**y - 1
    return y if loss.gain == "linear" else loss.gain[int(y)]


def terms(loss, y):
    """Return DCG and, for each j, beta_j and alpha_jt by t."""
    n = len(y)
    k = loss.k or n
    a = [gain(loss, grade) for grade in y]
    position = [1 + sum(other > grade for other in y) for grade in y]
    dcg = sum(a[j] / math.log2(1 + position[j]) for j in range(n) if position[j] <= k)
    c = [
        a[j] * math.log(2) / ((1 + position[j]) * math.log(1 + position[j]) ** 2) if position[j] <= k else 0.0
        for j in range(n)
    ]
    beta, alpha = [], []
    for j in range(n):
        lower = [t for t in range(n) if y[t] < y[j]]
        if loss.weights == "ndcg":
            beta_j = sum(c[j] + c[t] for t in lower)
            alpha_j = {t: (c[j] + c[t]) / beta_j for t in lower} if beta_j else {}
        else:
            beta_j = y[j] / sum(y) if sum(y) else 0.0
            alpha_j = {t: (y[j] - y[t]) / y[j] for t in lower}
        beta.append(beta_j)
        alpha.append(alpha_j)
    return dcg, c, beta, alpha


def value(loss, f, y, label_set):
    dcg, _, beta, alpha = terms(loss, y)
    if dcg == 0:
        return 0.0
    return (
        sum(
            beta[j] * math.log2(1 + sum(alpha[j][t] * math.exp(f[t] - f[j]) for t in alpha[j]))
            for j in range(len(y))
            if beta[j]
        )
        / dcg
    )
