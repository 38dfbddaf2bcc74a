r"""RankCosine: the angle between the vector of scores and the vector of labels.

Qin, Liu, Tsai, Zhang, Li, *Learning to search web pages with query-level loss functions* (2006), eq. 6:

    l = 1/2 (1 - cos(psi(y), phi(f))),   0 <= l <= 1

with rising maps psi and phi applied to each entry. At phi(f) = 0 the cosine has no limit, and boosting starts there; a
constant coordinate rho > 0 mends it. With g = psi(y) / |psi(y)|, u = phi(f) and r^2 = |u|^2 + rho^2,

    l = 1/2 (1 - c),   c = g'u / r
    gradient_i = - 1/2 ( g_i / r - c u_i / r^2 ) phi'(f_i)

which at u = 0 is -g / (2 rho) for phi = identity. A query with psi(y) = 0 contributes nothing. Large scores make r
large and the loss flat: it is neither convex nor blind to the level of the scores. diag bounds the loss from above by a
parabola along every direction, so that Newton steps on it descend:

- phi = a x + b:  2 a^2 / r^2  (the constant is the numerical supremum of that over all steps)
- exp:  1/2 sum over g_i > 0 of g_i h_i + 16 / (25 sqrt 5) sum over g_i < 0 of |g_i|, with h_i = u_i / r.  For g_i > 0:
  log h_i is concave with curvature >= -1, so h_i(f + d) >= h_i (1 + d' grad log h_i - |d|^2 / 2) as e^x >= 1 + x. For
  g_i < 0: the Hessian of h_i is at most 2 h (1 - h^2)^2, whose maximum is 32 / (25 sqrt 5)
- sigmoid:  2 / (16 r^2) + |dl/du_i| / (6 sqrt 3), from |sigma'| <= 1/4 and |sigma''| <= 1 / (6 sqrt 3)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from boostlist.checks import check_number
from boostlist.losses.base import Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.weights import by_document
from boostlist.parallel import compiled

if TYPE_CHECKING:
    from boostlist._typing import FloatArray, IntArray
    from boostlist.queries import Queries

Map = Literal["identity", "exp", "sigmoid"] | tuple[float, float]
"""A rising map: x, e^x, 1 / (1 + e^-x), or (a, b) for a x + b with a > 0."""

LabelMap = Map | Literal["position"]
"""For labels also ``"position"``: e^-pi with pi = 1 + the number of better documents."""

_LINEAR, _EXP, _SIGMOID = range(3)
_SIGMOID_CURVATURE = 1 / (6 * 3**0.5)
_EXP_CURVATURE = 16 / (25 * 5**0.5)


class Tables(NamedTuple):
    """phi, with a and b where it is linear; rho; and g of each document."""

    phi: int
    a: float
    b: float
    rho: float
    g: FloatArray


@compiled
def _rank_cosine(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    phi, a, b, rho, g = tables
    u = np.empty(lists.longest)
    for q in lists.query:
        rows, weight = slice(lists.start[q], lists.start[q + 1]), lists.weight[q]
        fq, gq, gradient, diag = f[rows], g[rows], out.gradient[rows], out.diag[rows]
        n = fq.size
        constant = rho
        if phi == _LINEAR:
            for i in range(n):
                u[i] = a * fq[i] + b
        elif phi == _SIGMOID:
            for i in range(n):
                u[i] = 1 / (1 + np.exp(-fq[i]))
        else:
            # Only ratios count: relative to the largest coordinate nothing overflows.
            top = np.log(rho)
            for i in range(n):
                top = max(top, fq[i])
            for i in range(n):
                u[i] = np.exp(fq[i] - top)
            constant = np.exp(np.log(rho) - top)
        r2, dot, positive, negative = constant * constant, 0.0, 0.0, 0.0
        for i in range(n):
            r2 += u[i] * u[i]
            dot += gq[i] * u[i]
            positive += max(gq[i], 0.0) * u[i]
            negative -= min(gq[i], 0.0)
        r = np.sqrt(r2)
        c = dot / r
        out.value[q] = max(0.5 * (1 - c), 0.0)
        for i in range(n):
            slope = -0.5 * (gq[i] / r - c * u[i] / r2)
            if phi == _LINEAR:
                gradient[i] = weight * slope * a
                diag[i] = weight * 2 * a * a / r2
            elif phi == _SIGMOID:
                gradient[i] = weight * slope * u[i] * (1 - u[i])
                diag[i] = weight * (0.125 / r2 + abs(slope) * _SIGMOID_CURVATURE)
            else:
                gradient[i] = weight * slope * u[i]
                diag[i] = weight * (0.5 * positive / r + _EXP_CURVATURE * negative)


def _check_map(name: str, value: object, names: tuple[str, ...]) -> object:
    """Return a named map, or (a, b) as floats."""
    if isinstance(value, str) and value in names:
        return value
    if isinstance(value, tuple | list) and len(value) == 2:
        a, b = float(value[0]), float(value[1])
        if np.isfinite([a, b]).all() and a > 0:
            return a, b
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))} or a pair (a, b) with a > 0, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class RankCosine(CompiledLoss):
    """Half of 1 - cosine between labels and scores; every query counts the same, however long it is.

    Parameters
    ----------
    psi
        Map of the labels: ``"identity"``, ``"exp"``, ``"sigmoid"``, ``(a, b)`` for a y + b, or ``"position"`` for e^-pi
        with pi = 1 + the number of better documents.
    phi
        Map of the scores: the same, without ``"position"``.
    rho
        Constant coordinate > 0: the length of phi(f) from which on mostly its direction counts.

    References
    ----------
    Qin, Liu, Tsai, Zhang, Li: Learning to search web pages with query-level loss functions. 2006. Eq. 6-11.
    """

    psi: LabelMap = "identity"
    phi: Map = "identity"
    rho: float = 1.0

    family = "cosine"
    traits = Traits(diag="majorizer", convex=False, shift_invariant=False, cost="n")
    loop = staticmethod(_rank_cosine)

    def __post_init__(self) -> None:
        names = ("identity", "exp", "sigmoid")
        object.__setattr__(self, "psi", _check_map("psi", self.psi, (*names, "position")))
        object.__setattr__(self, "phi", _check_map("phi", self.phi, names))
        check_number("rho", self.rho, above=True)

    def tables(self, queries: Queries) -> Tables:
        """Return phi and g."""
        a, b = self.phi if isinstance(self.phi, tuple) else (1.0, 0.0)
        kind = {"exp": _EXP, "sigmoid": _SIGMOID}.get(str(self.phi), _LINEAR)
        first, sizes = queries.start[:-1], queries.sizes
        psi = self._mapped_labels(queries)
        largest = np.maximum.reduceat(np.abs(psi), first)
        g = psi / np.repeat(np.where(largest > 0, largest, 1.0), sizes)
        norm = np.sqrt(np.add.reduceat(g * g, first))
        return Tables(kind, a, b, float(self.rho), g / np.repeat(np.where(largest > 0, norm, 1.0), sizes))

    def idle(self, queries: Queries, tables: Tables) -> IntArray:
        """Return the queries with psi(y) = 0."""
        return np.flatnonzero(~np.logical_or.reduceat(tables.g != 0, queries.start[:-1]))

    def _mapped_labels(self, queries: Queries) -> FloatArray:
        """Return psi(y) for each document, up to a factor by query."""
        y, levels = queries.labels, queries.levels
        match self.psi:
            case "identity":
                return y
            case "exp":
                largest: FloatArray = np.maximum.reduceat(y, queries.start[:-1])
                return np.exp(y - np.repeat(largest, queries.sizes))
            case "sigmoid":
                return 1 / (1 + np.exp(-y))
            case "position":
                return by_document(queries, np.exp(1.0 - levels.position))  # the best documents have position 1
            case a, b:
                return a * y + b
