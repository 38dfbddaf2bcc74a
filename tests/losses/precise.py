"""Softmax mixtures in 60-digit arithmetic: the shape that Plackett-Luce losses and CS-ListMLE have in common.

l = sum_j weight_j log( sum_t mass_jt e^{f_t - f_j} ), whose gradient is sum_j weight_j (share_jk - [j = k]) with
share_jt = mass_jt e^{f_t} / sum_s mass_js e^{f_s}.
"""

from __future__ import annotations

from decimal import Decimal, localcontext


def value_gradient(f, weight, mass):
    """Return value and gradient as floats; mass[j] maps t to mass_jt."""
    with localcontext() as context:
        context.prec = 60
        scores = [Decimal(float(x)) for x in f]
        value, gradient = Decimal(0), [Decimal(0)] * len(f)
        for j, w in enumerate(map(Decimal, weight)):
            parts = {t: Decimal(m) * (scores[t] - scores[j]).exp() for t, m in mass[j].items()}
            total = sum(parts.values())
            if not w or not total:
                continue
            rest = sum(part for t, part in parts.items() if t != j)
            # log(1 + x) is x to 30 digits for so small an x
            value += w * (rest if mass[j][j] == 1 and rest < Decimal("1e-30") else total.ln())
            for t, part in parts.items():
                if t != j:
                    gradient[t] += w * part / total
                    gradient[j] -= w * part / total
        return float(value), [float(g) for g in gradient]


def hard_scores(rng, labels):
    """Yield scores of spreads up to 2e4: random, and with whole grades hundreds below the others."""
    n = len(labels)
    for spread in (1, 30, 400, 2e4):
        yield rng.uniform(-spread / 2, spread / 2, n)
    for step in (-800, 800, -5000, 5000):
        yield step * labels + rng.normal(size=n)
    yield 800 * rng.integers(-2, 3, n) + rng.normal(size=n)
