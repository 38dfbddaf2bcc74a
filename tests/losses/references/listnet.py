from __future__ import annotations

import math

from boostlist.losses import ListNet, MulticlassLogistic

CASES = [
    ListNet(),
    ListNet(target="gain"),
    ListNet(target="gain", gain="linear"),
    ListNet(target="gain", gain=(0, 0, 1, 4, 9)),
    MulticlassLogistic(),
]


def target(loss, y):
    if isinstance(loss, MulticlassLogistic):
        return [1.0 if label == max(y) else 0.0 for label in y]
    if loss.target == "softmax":
        return [math.exp(label) for label in y]
    if loss.gain == "linear":
        return y
    return [2**label - 1 if loss.gain == "exp2" else loss.gain[int(label)] for label in y]


def value(loss, f, y, label_set):
    t = target(loss, y)
    if sum(t) == 0:
        return 0.0
    partition = sum(math.exp(score) for score in f)
    return -sum(ti / sum(t) * math.log(math.exp(fi) / partition) for ti, fi in zip(t, f, strict=True))
