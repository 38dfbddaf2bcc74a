r"""IntervalRank: every grade is given an interval, and scores pay for leaving theirs.

Moon, Smola, Chang, Zheng, *IntervalRank: isotonic regression with listwise and pairwise constraints* (2010), theorem 5
with its slacks eliminated. With targets t by grade and Delta_g = t_{g+1} - t_g between adjacent grades of the query,

    l = min over l_g <= u_g of  1/2 sum_g sum_{i in g} [ (l_g - f_i)_+^2 + (f_i - u_g)_+^2 ]
        + lam1/2 sum_g (Delta_g - (l_{g+1} - u_g))_+^2 + lam2/2 sum_g (u_g - l_g)^2
        + lam3/2 sum_i (f_i - t_i)^2

    gradient_i = f_i - clip(f_i, l_g, u_g) + lam3 (f_i - t_i)
    H = I_out - A K^-1 A' + lam3 I

where I_out keeps the documents outside their interval, A puts each of them to the end that it is beyond (to the common
node where l_g = u_g is held by a force), and K is the Hessian of the minimum problem, tridiagonal in the order l_0,
u_0, l_1, u_1, ...: H_ii = 1 - [K^-1] at that end + lam3, and lam3 inside. l is convex, and its gradient is continuous
and piecewise linear; at a kink of the gradient H is that of the side where fewer documents count.

`boostlist.losses.interval_solver` finds the minimum, where the paper has a log-barrier that stops at mu = 100. (In
print the loss is eq. 4, the first sum alone, which does not have the gradient of lemma 2; the minimum of the whole, as
lemma 1 has it, does. Eq. 6 adds delta where theorem 5 subtracts it, and its constraints on all pairs, with slacks, are
not the same as theorem 5's on adjacent grades; here theorem 5 is the loss.)

On a list of a single grade this loss pulls the scores together. lam1 = 0 drops the order of the grades, lam2 = 0 lets
intervals be as wide as they like; then l and u are not unique, but value and gradient are. lam1 = inf asks for the
whole distances, l_{g+1} - u_g >= Delta_g; with lam2 = 0 as well that is eq. 5, the hard margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.checks import check_number
from boostlist.gains import Gain, check_gain
from boostlist.losses.base import DIAG, Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.interval_solver import (
    HOLD,
    JOINED,
    PULL,
    REST,
    K,
    N,
    X,
    chain,
    hold,
    room_for,
    settle,
    solve,
    stand,
)
from boostlist.losses.targets import grade_targets
from boostlist.parallel import compiled, inner

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.levels import Levels
    from boostlist.queries import Queries


class Tables(NamedTuple):
    """The prices; the levels, with the target of each."""

    lam1: float
    lam2: float
    lam3: float
    levels: Levels
    t: FloatArray


@inner
def _node(score, at, room, x, edge):  # type: ignore[no-untyped-def]
    """Node that a document pulls at, in the grade whose lower node is `at`; -1 inside the interval."""
    if room.node[JOINED, at] > 0 or score < room.node[x + X, at] - edge:
        return at
    return at + 1 if score > room.node[x + X, at + 1] + edge else -1


@compiled
def _interval_rank(lists, f, need, out, tables):  # type: ignore[no-untyped-def]
    lam3, levels, t = tables.lam3, tables.levels, tables.t
    order, document = levels.order, levels.document
    room = room_for(lists, levels)
    scores, node = room
    for q in lists.query:
        begin, weight = lists.start[q], lists.weight[q]
        first, last = levels.start[q], levels.start[q + 1]
        size = stand(f[begin : lists.start[q + 1]], first, last, tables, room)
        x, out.value[q] = solve(first, last, tables, size, room)
        edge = 0.0
        if need & DIAG:
            edge = settle(x, first, last, tables, size, room)
            hold(2 * (last - first), node, x)
        for g in range(first, last):
            at = 2 * (g - first)
            l_g, u_g = node[x + X, at], node[x + X, at + 1]
            low, high = l_g - edge, u_g + edge
            if node[JOINED, at] > 0:
                low = high = np.inf
            below, above = weight - weight / node[HOLD, at], weight - weight / node[HOLD, at + 1]
            for i in range(document[g], document[g + 1]):
                score, row = scores[i - document[first]], np.uint64(begin + order[i])
                out.gradient[row] = weight * (score - min(max(score, l_g), u_g))
                out.diag[row] = below if score < low else above if score > high else 0.0
        if lam3 > 0:
            for g in range(first, last):
                for i in range(document[g], document[g + 1]):
                    row = begin + order[i]
                    off = f[row] - t[g]
                    out.value[q] += 0.5 * lam3 * off * off
                    out.gradient[row] += weight * lam3 * off
                    out.diag[row] += weight * lam3


@compiled
def _interval_rank_hessp(lists, f, v, out, tables):  # type: ignore[no-untyped-def]
    lam3, levels = tables.lam3, tables.levels
    order, document = levels.order, levels.document
    room = room_for(lists, levels)
    scores, node = room
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        vq, out_q = v[rows], out[rows]
        first, last = levels.start[q], levels.start[q + 1]
        nodes = 2 * (last - first)
        size = stand(f[rows], first, last, tables, room)
        x, _ = solve(first, last, tables, size, room)
        edge = settle(x, first, last, tables, size, room)
        # K y = A' v: the chain again, with documents at v and springs without length.
        y, z = (x + 4) % 12, (x + 8) % 12
        for i in range(nodes):
            node[z + X, i] = node[z + PULL, i] = node[REST, i] = 0.0
            node[z + N, i], node[z + K, i] = node[x + N, i], node[x + K, i]
        for g in range(first, last):
            at = 2 * (g - first)
            for i in range(document[g], document[g + 1]):
                end = _node(scores[i - document[first]], at, room, x, edge)
                if end >= 0:
                    node[z + PULL, end] += vq[order[i]]
        chain(nodes, node, z, y)
        for g in range(first, last):
            at = 2 * (g - first)
            for i in range(document[g], document[g + 1]):
                end, vi = _node(scores[i - document[first]], at, room, x, edge), vq[order[i]]
                out_q[order[i]] = lists.weight[q] * (lam3 * vi + (vi - node[y + X, end] if end >= 0 else 0.0))


@dataclass(frozen=True, kw_only=True)
class IntervalRank(CompiledLoss):
    """Intervals by grade that keep the targets' distances: a listwise loss as cheap as a sort, and convex.

    Parameters
    ----------
    lam1
        Price of grades closer to each other than their targets are, >= 0; ``inf`` allows none that is closer. Prices
        below 100 rank worse (docs/defaults.md), higher ones alike.
    lam2
        Price of the width of a grade's interval, >= 0.
    lam3
        Weight >= 0 of a squared error to the targets ("IntervalRank_Reg", eq. 11), which fixes the level of the scores.
    targets
        Target t of a grade: ``"exp2"`` for 2^y - 1, ``"linear"`` for the grade itself, or a table by grade such as the
        paper's ``(0, 0.5, 3, 7, 10)``.

    References
    ----------
    Moon, Smola, Chang, Zheng: IntervalRank: isotonic regression with listwise and pairwise constraints. WSDM 2010.
    Theorem 5, eq. 11. With ``lam1=inf, lam2=0`` eq. 5. The paper boosts it with unit Hessian (algorithm 1):
    ``IntervalRank().objective(hessian="unit")``.
    """

    lam1: float = 100.0
    lam2: float = 1.0
    lam3: float = 0.0
    targets: Gain = "exp2"

    family = "intervals and squared error"
    loop = staticmethod(_interval_rank)
    hessp_loop = staticmethod(_interval_rank_hessp)

    def __post_init__(self) -> None:
        check_number("lam1", 0 if self.lam1 == np.inf else self.lam1, otherwise=", or inf")
        for name in ("lam2", "lam3"):
            check_number(name, getattr(self, name))
        object.__setattr__(self, "targets", check_gain(self.targets, "targets"))

    @property
    def traits(self) -> Traits:
        """Only the squared error feels the level of the scores."""
        return Traits(diag="exact", convex=True, shift_invariant=self.lam3 == 0, hessp=True, cost="n log n")

    def tables(self, queries: Queries) -> Tables:
        """Return the prices, the levels and their targets."""
        prices = float(self.lam1), float(self.lam2), float(self.lam3)
        t = grade_targets(self, queries.levels.label, self.targets)
        return Tables(*prices, queries.levels, t)
