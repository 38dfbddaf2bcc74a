"""Losses whose pairs weigh what a metric loses when two documents swap places: LambdaLoss and YetiRank.

Weights come from the metric itself, taken before and after the swap; YetiRank's random numbers from a generator written
again on Python's whole numbers.
"""

from __future__ import annotations

import math
import struct

from boostlist.losses import LambdaLoss, YetiRank
from tests.losses.references.pairwise import gain

CASES = [
    LambdaLoss(),
    LambdaLoss(k=2),
    LambdaLoss(k=None, gain="linear"),
    *(LambdaLoss(metric=metric, k=k) for metric in ("map", "mrr", "err") for k in (None, 3)),
    LambdaLoss(metric="map", threshold=2.0),
    YetiRank(),
    YetiRank(samples=3, noise=0.3, decay=0.5, gain="linear", seed=7),
    *(YetiRank(samples=2, weights=weights) for weights in ("ndcg", "dcg", "map", "mrr", "err")),
]


def metric_value(loss, metric, k, y, label_set):
    """Value of the metric for labels in ranked order."""
    k = len(y) if k is None else k
    a = [gain(loss.gain, label) for label in y]
    relevant = [label >= loss.threshold for label in y]
    if metric in ("ndcg", "dcg"):
        dcg = sum(x / math.log2(1 + r) for r, x in enumerate(a[:k], 1))
        ideal = sum(x / math.log2(1 + r) for r, x in enumerate(sorted(a, reverse=True)[:k], 1))
        return dcg if metric == "dcg" else dcg / ideal if ideal else 0.0
    if metric == "map":
        hits = [sum(relevant[:r]) / r for r in range(1, min(k, len(y)) + 1) if relevant[r - 1]]
        return sum(hits) / max(sum(relevant), 1)
    if metric == "mrr":
        return next((1 / r for r, hit in enumerate(relevant[:k], 1) if hit), 0.0)
    err, going_on = 0.0, 1.0
    for r, x in enumerate(a[:k], 1):
        R = x / (gain(loss.gain, max(label_set)) + 1)
        err += going_on * R / r
        going_on *= 1 - R
    return err


def change(loss, metric, k, order, y, s, t, label_set):
    """Change of the metric when the ranks s and t, from 0, swap places."""
    swapped = list(order)
    swapped[s], swapped[t] = order[t], order[s]
    before, after = (metric_value(loss, metric, k, [y[i] for i in ranking], label_set) for ranking in (order, swapped))
    return abs(after - before)


def mix(x):
    mask = 2**64 - 1
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def key_of(values, seed):
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    whole = [struct.unpack("<Q", struct.pack("<d", value))[0] for value in values]
    total = sum(mix((bits + i * golden) & mask) for i, bits in enumerate(whole)) & mask
    return mix(total ^ mix((seed + golden) & mask))


def drawn_order(loss, f, y, sample):
    """Documents sorted by f + noise x Gumbel."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    key = mix((mix(key_of(f, 0) ^ key_of(y, loss.seed)) + sample) & mask)
    u = [((mix((key + i * golden) & mask) >> 12) + 0.5) / 2**52 for i in range(len(f))]
    z = [score - loss.noise * math.log(-math.log(x)) for score, x in zip(f, u, strict=True)]
    return sorted(range(len(f)), key=lambda i: -z[i])


def pairs(loss, f, y, label_set):
    """Triples of a better document, a worse one and the weight of the pair."""
    n = len(f)
    found = []

    def add(order, s, t, w):
        i, j = order[s], order[t]
        if y[i] != y[j]:
            found.append((i, j, w) if y[i] > y[j] else (j, i, w))

    if isinstance(loss, LambdaLoss):
        order = sorted(range(n), key=lambda i: -f[i])
        for s in range(n):
            for t in range(s + 1, n):
                add(order, s, t, change(loss, loss.metric, loss.k, order, y, s, t, label_set))
        return found
    for sample in range(loss.samples):
        order = drawn_order(loss, f, y, sample)
        for t in range(n - 1):
            if loss.weights == "decay":
                w = abs(gain(loss.gain, y[order[t]]) - gain(loss.gain, y[order[t + 1]])) * loss.decay**t
            else:
                w = change(loss, loss.weights, None, order, y, t, t + 1, label_set)
            add(order, t, t + 1, w / loss.samples)
    return found


def value(loss, f, y, label_set):
    return sum(w * math.log1p(math.exp(f[j] - f[i])) for i, j, w in pairs(loss, f, y, label_set))


def gradient_hessian(loss, f, y, label_set):
    gradient, diag = [0.0] * len(f), [0.0] * len(f)
    for i, j, w in pairs(loss, f, y, label_set):
        p = 1 / (1 + math.exp(f[i] - f[j]))
        gradient[i] -= w * p
        gradient[j] += w * p
        diag[i] += w * p * (1 - p)
        diag[j] += w * p * (1 - p)
    return gradient, diag
