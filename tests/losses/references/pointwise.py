from __future__ import annotations

from boostlist.losses import Isotonic, Pointwise
from tests.losses.references.markov import TABLE_8, stage_weight

CASES = [
    Pointwise(),
    Pointwise(centred=True, targets="linear"),
    Pointwise(targets=(0, 0.5, 3, 7, 10)),
    *(Pointwise(weights=weights) for weights in TABLE_8[1:]),
    Pointwise(weights="gain", gain="linear", grades=(0, 1, 2, 3, 4, 5, 7)),
    Isotonic(),
    Isotonic(targets="linear"),
]


def target(loss, label):
    if loss.targets == "linear":
        return label
    return 2**label - 1 if loss.targets == "exp2" else loss.targets[int(label)]


def value(loss, f, y, label_set):
    t = [target(loss, label) for label in y]
    if isinstance(loss, Isotonic):
        # The minimum over the offset w of a parabola, from its values at three offsets.
        at = [sum((ti - fi + w) ** 2 / 2 for ti, fi in zip(t, f, strict=True)) for w in (-1, 0, 1)]
        return at[1] - (at[2] - at[0]) ** 2 / (8 * (at[0] + at[2] - 2 * at[1]))
    mean_t, mean_f = (sum(t) / len(t), sum(f) / len(f)) if loss.centred else (0.0, 0.0)
    W = [stage_weight(loss, y, i, loss.grades or label_set) for i in range(len(y))]
    return sum(Wi * ((fi - mean_f) - (ti - mean_t)) ** 2 for Wi, ti, fi in zip(W, t, f, strict=True)) / 2
