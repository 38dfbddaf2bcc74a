r"""The minimum over intervals that defines IntervalRank, for one query, to rounding error.

Over l_g <= u_g, one pair for each grade g of the query,

    F(l, u) = 1/2 sum_g sum_{i in g} [ (l_g - f_i)_+^2 + (f_i - u_g)_+^2 ]
              + lam1/2 sum_g (Delta_g - (l_{g+1} - u_g))_+^2 + lam2/2 sum_g (u_g - l_g)^2

Read x = (l_0, u_0, l_1, u_1, ...) as nodes on a line. A document below l_g or above u_g ties that node to the ground at
f_i by a spring of stiffness 1. Springs of stiffness k join neighbours: lam2 with rest length 0 within a grade and,
while two grades are closer than Delta_g, lam1 with rest length Delta_g between them. Where no document and no gap
changes its mind F is a quadratic, a *piece*, given by the counts of documents at each node and by which gaps press.
With lam1 = inf gaps have no springs: l_{g+1} - u_g >= Delta_g is a bound, as l_g <= u_g is.

**A piece under l <= u** (`_equilibrium`). Without the bounds the minimum of a piece is the equilibrium of a chain:
sweep once up and once down, with c the stiffness by which a node and those before it hold on to the ground, and m where
they would rest. No step subtracts stiffnesses, so nothing cancels. Then join the two nodes of every grade with l_g >
u_g, and of every bounded gap that is too small, solve again, and so on. What was joined stays joined: the forces lambda
that hold neighbours at their bounds solve a linear complementarity problem with the matrix B K^-1 B', where K is the
stiffness matrix and B x = l - u. Since K^-1_ij = a_i b_j for i <= j, with a rising and b falling along the chain, its
off-diagonal entries (a_l - a_u)(b_l - b_u) are <= 0: it is an M-matrix, for which this (Chandrasekaran's method) ends
at the solution, with every lambda >= 0, after at most as many rounds as there are bounds. Nodes that hold on to nothing
- there is no document beyond them - move as little as they can.

**Newton's method over pieces** (`solve`). From x go to y, the minimum under l <= u of a piece that contains x. The
segment from x to y stays within the bounds and F falls along it at first; if y is too far, stop before F rises. It
ends:

- There are finitely many pieces, so their curvatures are bounded, and every step lowers F by at least a fixed multiple
  of |y - x|^2. F >= 0, so y - x tends to 0.
- Some piece P is then met again and again, and x comes as near as one likes to a point x* of P that minimises P under l
  <= u. Value and slope of F and of P agree on P, and F is convex: x* minimises F.
- As soon as x lies in P the minimum of P is x* itself: the step from x to y = x* is the last.

(Where P has several minima, because no document is beyond some node, the nearest is taken; no list was found for which
that keeps the method from ending.) In floating point the sign of the end is that y lies in the piece of x: then y is
exact up to the rounding of one linear solve. Where documents tie with an end of their interval two pieces can
alternate; then, as soon as F falls no more, the forces left over at y are the sign: they are no larger than rounding of
the positions makes them.

A pass over the documents of a grade gives its counts and forces, so that nothing is sorted: O(n) a step. The number of
steps grows with log n: about 4 for 100 documents, 13 for a million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.parallel import compiled, inlined, inner, longest, vectorized

if TYPE_CHECKING:
    from boostlist._typing import FloatArray

# Rows of `Room.node`, of which four from 0, 4 or 8 on are a point: the nodes, and the piece that they are in, which is
# the number of documents at each node, their pull on it, and the stiffness of the spring to the next node.
X, N, PULL, K = range(4)
# Of the spring to the next node its rest length, and whether it is none because the two are joined (1 or 0).
REST, JOINED = 12, 13
# Largest stiffness of the grade, at even nodes; for `chain` m, and the share by which the next node draws from there.
_STIFFNESS, _M, _P = 14, 15, 16
# Stiffness with which each node holds on to the ground.
HOLD = 17
_ROWS = 18

# Forces relative to stiffness x size of the scores that are rounding error.
_EXACT = 1e-14

# At forces below this (the same unit) a step that does not halve them is one of rounding error. A change of F below
# this share of F is one too, and only the slope of F can be trusted then.
_SMALL = 1e-12

# What lies closer than this (times size) to a kink of F counts as on it when the Hessian is taken.
_EDGE = 1e-12

# Share of the first-order gain that a step beyond the lowest point must keep.
_GAIN = 0.1

# Steps for each node, many times what any list has needed: a list at the limit would keep its last intervals.
_STEPS = 10


class Room(NamedTuple):
    """What a query's minimum is found in, large enough for some queries.

    Attributes
    ----------
    f
        Scores in ascending order of grade, relative to one of them.
    node
        A column for each node; the rows are named above.
    """

    f: FloatArray
    node: FloatArray


@compiled
def room_for(lists, levels):  # type: ignore[no-untyped-def]
    """Return room for the longest of the queries and the most grades of one: a node's rows lie far apart otherwise."""
    return Room(np.empty(lists.longest), np.empty((_ROWS, 2 * longest(lists.query, levels.start))))


@vectorized
def _beyond(f, low, high, l_g, u_g):  # type: ignore[no-untyped-def]
    """Documents low:high at or below l_g and at or above u_g, their distances from there, and the sum of squares."""
    below = above = 0
    down = up = squares = 0.0
    for i in range(low, high):
        a = l_g - f[i] if f[i] < l_g else 0.0
        b = f[i] - u_g if f[i] > u_g else 0.0
        below += f[i] <= l_g
        above += f[i] >= u_g
        down += a
        up += b
        squares += a * a + b * b
    return below, above, down, up, squares


@inner
def measure(x, first, last, tables, room):  # type: ignore[no-untyped-def]
    """Fill the piece of the point x and return F. A document at an end counts as beyond it, once if l = u."""
    f, node, lam1, lam2, document = room.f, room.node, tables.lam1, tables.lam2, tables.levels.document
    total = 0.0
    soft = not np.isinf(lam1)
    for g in range(first, last):
        i, low, high = 2 * (g - first), document[g] - document[first], document[g + 1] - document[first]
        l_g, u_g = node[x + X, i], node[x + X, i + 1]
        below, above, down, up, squares = _beyond(f, low, high, l_g, u_g)
        node[x + N, i] = below
        node[x + N, i + 1] = above if l_g < u_g else high - low - below
        node[x + PULL, i] = -down
        node[x + PULL, i + 1] = up
        node[x + K, i] = lam2
        node[x + K, i + 1] = 0.0
        total += squares + lam2 * (u_g - l_g) ** 2
        if g + 1 < last and soft:
            gap = node[REST, i + 1] - (node[x + X, i + 2] - u_g)
            if gap > 0:
                node[x + K, i + 1] = lam1
                total += lam1 * gap * gap
    return 0.5 * total


@inner
def chain(nodes, node, x, y):  # type: ignore[no-untyped-def]
    """Fill the nodes of the point y with the minimum of the piece of x, with joined nodes at rest length.

    Node i and those before it are tied to m_i by c_i, and by e_i to what is a rest length from the next node.
    """
    e = t = loose = 0.0
    for i in range(nodes):
        x_i, k = node[x + X, i], node[x + K, i]
        c = e + node[x + N, i]
        if c > 0:
            m = x_i + node[x + PULL, i] / c + e / c * (t - x_i)
            loose = 0.0
        else:
            m = x_i + loose * (t - x_i) / (loose + 1)
            loose += 1
        if node[JOINED, i] > 0:
            p = 1.0
        elif k > 0:
            p = k / (c + k)
        else:
            p = loose = 0.0
        e, t = c * p, m + node[REST, i]
        node[_M, i], node[_P, i] = m, p
    y_i = m
    node[y + X, nodes - 1] = y_i
    for i in range(nodes - 2, -1, -1):
        m, t = node[_M, i], y_i - node[REST, i]
        y_i = t if node[JOINED, i] > 0 else m + node[_P, i] * (t - m)
        node[y + X, i] = y_i


@inlined
def _equilibrium(nodes, node, x, y, hard):  # type: ignore[no-untyped-def]
    """Fill y with the minimum of the piece of x under l <= u and, if they are hard, bounds on the gaps."""
    for i in range(nodes):
        node[JOINED, i] = 0.0
    crossed = True
    while crossed:
        chain(nodes, node, x, y)
        crossed = False
        for i in range(0, nodes - 1, 1 if hard else 2):
            if node[y + X, i] + node[REST, i] > node[y + X, i + 1] and node[JOINED, i] == 0:
                node[JOINED, i] = 1.0
                crossed = True


@inner
def _slope(nodes, node, x, a, b):  # type: ignore[no-untyped-def]
    """Slope of F at x in the direction b - a, summed over documents and springs."""
    total = step = 0.0
    for i in range(nodes - 1, -1, -1):
        after, step = step, node[b + X, i] - node[a + X, i]
        total -= node[x + PULL, i] * step
        if i + 1 < nodes:
            total += node[x + K, i] * (node[x + X, i + 1] - node[x + X, i] - node[REST, i]) * (after - step)
    return total


@inner
def _balance(nodes, node, x, hard, edge):  # type: ignore[no-untyped-def]
    """Join the nodes that a bound holds by a force; return the largest force over stiffness that none does.

    A bound is the other end of an interval and, if gaps are hard, the next one. Along a run of nodes at their bounds
    forces add up; what has come together must press on, and nothing be left: at the minimum the result is 0.
    """
    worst = total = stiff = ahead = 0.0
    for i in range(nodes):
        behind, ahead, slack = ahead, 0.0, np.inf
        if i + 1 < nodes:
            slack = node[x + X, i + 1] - node[x + X, i] - node[REST, i]
            ahead = node[x + K, i] * slack
        total += behind - ahead - node[x + PULL, i]
        stiff += node[_STIFFNESS, i - i % 2]
        held = slack <= 0 if i % 2 == 0 else hard and slack <= edge
        node[JOINED, i] = held and -total > edge * stiff
        worst = max(worst, (total if held else abs(total)) / stiff)
        if not held:
            total = stiff = 0.0
    return worst


@inlined
def _same_piece(nodes, node, x, y):  # type: ignore[no-untyped-def]
    same = True
    for i in range(nodes):
        same &= (node[x + N, i] == node[y + N, i]) & (node[x + K, i] == node[y + K, i])
    return same


@compiled
def stand(f, first, last, tables, room):  # type: ignore[no-untyped-def]
    """Gather the scores f of a query by grade, put nodes at the means of their grades, return the size of it all.

    Differences of scores are what counts; relative to a score of the list they keep their digits. So does the mean
    relative to a score of the grade: where all scores of a grade are equal it is that score. Hard gaps move nodes up.
    """
    order, document, t, node, sorted_f = tables.levels.order, tables.levels.document, tables.t, room.node, room.f
    hard = np.isinf(tables.lam1)
    origin = f[order[document[first]]]
    size = above = 0.0
    for g in range(first, last):
        low, high, i = document[g], document[g + 1], 2 * (g - first)
        head, total = f[order[low]] - origin, 0.0
        for k in range(low, high):
            score = f[order[k]] - origin
            sorted_f[k - document[first]] = score
            total += score - head
            size = max(size, abs(score))
        start = head + total / (high - low)
        if hard and g > first:
            start = max(start, above)
        rest = t[g + 1] - t[g] if g + 1 < last else 0.0
        above = start + rest
        node[X, i] = node[X, i + 1] = start
        node[REST, i], node[REST, i + 1] = 0.0, rest
        node[_STIFFNESS, i] = high - low + (0.0 if hard else 2 * tables.lam1) + tables.lam2
    return size + (t[last - 1] - t[first])


@compiled
def solve(first, last, tables, size, room):  # type: ignore[no-untyped-def]
    """Move nodes from a start with l <= u to the minimum; return where its point is, and F.

    `stand` makes the start, and returns the size of scores and targets, for what counts as rounding error.
    """
    node = room.node
    nodes, hard = 2 * (last - first), np.isinf(tables.lam1)
    # The start is the first y. As literals these would each be a type that all is compiled for.
    y, x, z = np.int64(0), np.int64(4), np.int64(8)
    F = left = np.inf
    done = False
    for step in range(_STEPS * (nodes + 10)):
        F_y = measure(y, first, last, tables, room)
        if step > 0:
            done = _same_piece(nodes, node, x, y)
            if not done and F - F_y <= _SMALL * F:
                before, left = left, _balance(nodes, node, y, hard, _EXACT * size)
                done = left <= _EXACT * size or (left <= _SMALL * size and left > 0.5 * before)
        if step > 0 and not done:
            down = _slope(nodes, node, x, x, y)
            up = _slope(nodes, node, y, x, y) if F_y - F > _GAIN * down or -down < _SMALL * F else 0.0
            if up > 0:
                # Regula falsi for the zero of the slope, which rises along the segment, ending on the falling side.
                low, high, at_low, at_high = 0.0, 1.0, down, up
                for _ in range(60):
                    s = low + (high - low) * min(max(at_low / (at_low - at_high), 0.01), 0.99)
                    for i in range(nodes - 1, -1, -1):
                        node[z + X, i] = node[x + X, i] + s * (node[y + X, i] - node[x + X, i])
                        if i % 2 == 0:
                            node[z + X, i] = min(node[z + X, i], node[z + X, i + 1])
                    F_y = measure(z, first, last, tables, room)
                    up = _slope(nodes, node, z, x, y)
                    if up > 0:
                        high, at_high = s, up
                        at_low *= 0.5
                    elif up < 0.5 * down:
                        low, at_low = s, up
                        at_high *= 0.5
                    else:
                        break
                y, z = z, y
        F, x, y = F_y, y, x
        if done:
            break
        _equilibrium(nodes, node, x, y, hard)
    return x, F


@inner
def settle(x, first, last, tables, size, room):  # type: ignore[no-untyped-def]
    """Turn the piece at the minimum x into that of the Hessian; return the margin beyond which a document counts.

    Where a bound carries a force its nodes are joined. A document at an end of its interval, a gap that has
    just closed and a bound without force do not count: there H jumps, and this is the smaller choice.
    """
    f, node, document = room.f, room.node, tables.levels.document
    edge = _EDGE * size
    _balance(2 * (last - first), node, x, np.isinf(tables.lam1), edge)
    for g in range(first, last):
        i = 2 * (g - first)
        l_g, u_g = node[x + X, i], node[x + X, i + 1]
        if node[JOINED, i] == 0:
            below = above = 0
            for k in range(document[g] - document[first], document[g + 1] - document[first]):
                below += f[k] < l_g - edge
                above += f[k] > u_g + edge
            node[x + N, i], node[x + N, i + 1] = below, above
        if g + 1 < last and not node[REST, i + 1] - (node[x + X, i + 2] - u_g) > edge:
            node[x + K, i + 1] = 0.0
    return edge


@inlined
def _passed_on(c, node, x, i):  # type: ignore[no-untyped-def]
    """Stiffness of c and the spring behind node i, one after the other."""
    k = node[x + K, i]
    return c if node[JOINED, i] > 0 else c * k / (c + k) if k > 0 else 0.0


@inner
def hold(nodes, node, x):  # type: ignore[no-untyped-def]
    """Fill the stiffness with which each node holds on to the ground: the inverse of the diagonal of K^-1."""
    e = 0.0
    for i in range(nodes):
        node[HOLD, i] = e + node[x + N, i]
        e = _passed_on(node[HOLD, i], node, x, i)
    e = 0.0
    for i in range(nodes - 1, 0, -1):
        node[HOLD, i] += e
        e = _passed_on(e + node[x + N, i], node, x, i - 1)
    node[HOLD, 0] += e
