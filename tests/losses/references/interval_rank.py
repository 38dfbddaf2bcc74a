from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from boostlist.losses import IntervalRank

CASES = [
    IntervalRank(),
    IntervalRank(lam1=0.3, lam2=2.0, targets="linear"),
    IntervalRank(lam1=10.0, lam2=0.1, targets=(0, 0.5, 3, 7, 10)),
    IntervalRank(lam3=0.5),
    IntervalRank(lam1=0.0),
    IntervalRank(lam2=0.0),
    IntervalRank(lam1=np.inf, lam2=0.5),
    IntervalRank(lam1=np.inf, lam2=0.0),
]


def target(loss, label):
    if loss.targets == "linear":
        return label
    return 2**label - 1 if loss.targets == "exp2" else loss.targets[int(label)]


def intervals(loss, f, y):
    """Return grades, l, u and the minimum of theorem 5, as a least-squares problem with bounds.

    (a)_+^2 is the minimum over s >= 0 of (a + s)^2, so that with slacks for every document and every gap, and with
    u = l + w, w >= 0, only squares and bounds are left. Gaps that must not be smaller than their targets are these plus
    e >= 0, which makes every l a sum of what is below it.
    """
    grades, n = sorted(set(y)), len(f)
    G = len(grades)
    rows, right = [], []

    def add(weight, constant, **terms):
        row = np.zeros(2 * G + 2 * n + G)
        for name, (index, factor) in terms.items():
            row[index + {"l": 0, "w": G, "s": 2 * G, "r": 2 * G + n, "e": 2 * G + 2 * n, "m": 0}[name]] += factor
        rows.append(weight**0.5 * row)
        right.append(weight**0.5 * constant)

    for i in range(n):
        g = grades.index(y[i])
        add(1.0, f[i], l=(g, 1), s=(i, 1))
        add(1.0, -f[i], l=(g, -1), w=(g, -1), r=(i, 1))
    for g in range(G):
        add(loss.lam2, 0.0, w=(g, 1))
        if g + 1 < G and loss.lam1 < np.inf:
            delta = target(loss, grades[g + 1]) - target(loss, grades[g])
            add(loss.lam1, -delta, l=(g, 1), w=(g, 1), m=(g + 1, -1), e=(g, 1))
    lower = np.zeros(2 * G + 2 * n + G)
    lower[:G] = -np.inf
    rows, right = np.array(rows), np.array(right)
    t = np.array([target(loss, grade) - target(loss, grades[0]) for grade in grades])
    above = np.tri(G, k=-1)
    if loss.lam1 == np.inf:
        of_l = rows[:, :G].copy()
        rows[:, 0], rows[:, 1:G] = of_l.sum(axis=1), 0
        rows[:, G : 2 * G] += of_l @ above
        rows[:, 2 * G + 2 * n :] = of_l @ above
        right = right - of_l @ t
    solution = lsq_linear(rows, right, (lower, np.inf), method="bvls", tol=1e-15, max_iter=1000)
    low = solution.x[:G]
    if loss.lam1 == np.inf:
        low = low[0] + t + above @ (solution.x[G : 2 * G] + solution.x[2 * G + 2 * n :])
    return grades, low, low + solution.x[G : 2 * G], solution.cost


def value(loss, f, y, label_set):
    minimum = intervals(loss, f, y)[-1]
    return minimum + loss.lam3 / 2 * sum((fi - target(loss, yi)) ** 2 for fi, yi in zip(f, y, strict=True))


def kink_distance(loss, f, y):
    """Return how far ends of intervals can move before the gradient has a kink.

    That is where an end meets a document or the other end, a gap closes or opens, or the force dies that holds the two
    ends of an interval, or two intervals, together.
    """
    grades, low, high, _ = intervals(loss, f, y)
    t = [target(loss, grade) for grade in grades]
    distance, force = np.inf, 0.0
    for g, grade in enumerate(grades):
        mine = np.array([fi for fi, yi in zip(f, y, strict=True) if yi == grade])
        gaps = [t[k + 1] - t[k] - (low[k + 1] - high[k]) if 0 <= k < len(grades) - 1 else 0.0 for k in (g - 1, g)]
        pressure = [loss.lam1 * max(gap, 0.0) if loss.lam1 < np.inf else 0.0 for gap in gaps]
        width = high[g] - low[g]
        # Forces upwards on the two ends, and with them what holds them together where they are held.
        force += np.maximum(low[g] - mine, 0).sum() - pressure[0] - loss.lam2 * width
        held = width <= 1e-12 and -force > 1e-9
        if width > 1e-12:
            distance, force = min(distance, width), 0.0
        elif held:
            distance = min(distance, -force / len(mine))
        force += pressure[1] + loss.lam2 * width - np.maximum(mine - high[g], 0).sum()
        if g + 1 < len(grades):
            bound = loss.lam1 == np.inf and abs(gaps[1]) <= 1e-9
            distance = min(distance, -force / len(mine) if bound and -force > 1e-9 else abs(gaps[1]))
            force = force if bound else 0.0
        if not held:
            # With equal ends and no force one of them has nothing beyond it, and goes where the other one goes.
            distance = min(distance, *abs(mine - low[g]), *abs(mine - high[g]))
    return distance
