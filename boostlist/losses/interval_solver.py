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
alternate; then the forces left over at y, no larger than rounding of the positions makes them, are the sign.

A pass over the documents of a grade gives its counts and forces, so that nothing is sorted: O(n) a step. The number of
steps grows with log n: about 4 for 100 documents, 13 for a million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist.parallel import compiled, longest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist._typing import FloatArray

# Rows of a piece: documents at each node, their pull on it, stiffness of the spring to the next node.
_N, PULL, _K = range(3)

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
    """What a query's minimum is found in, large enough for some queries; all but the scores by node.

    Attributes
    ----------
    f
        Scores in ascending order of grade, relative to one of them.
    x, here, joined
        The nodes, the piece that they are in, and which are joined to the next.
    rest, stiffness
        Rest length of the spring to the next node, and at even nodes the largest stiffness of the grade.
    y, there, z, c, m
        To work in.
    """

    f: FloatArray
    x: FloatArray
    here: FloatArray
    joined: NDArray[np.bool_]
    rest: FloatArray
    stiffness: FloatArray
    y: FloatArray
    there: FloatArray
    z: FloatArray
    c: FloatArray
    m: FloatArray


@compiled
def room_for(lists, levels):  # type: ignore[no-untyped-def]
    """Return room for the longest of the queries."""
    nodes = 2 * longest(lists.query, levels.start)
    x, rest, stiffness, y = np.empty(nodes), np.empty(nodes), np.empty(nodes), np.empty(nodes)
    z, c, m = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    here, there = np.empty((3, nodes)), np.empty((3, nodes))
    f, joined = np.empty(longest(lists.query, lists.start)), np.empty(nodes, np.bool_)
    return Room(f, x, here, joined, rest, stiffness, y, there, z, c, m)


@compiled
def measure(x, piece, first, last, tables, room):  # type: ignore[no-untyped-def]
    """Fill the piece at x and return F(x). A document at an end counts as beyond it, once if l = u."""
    f, rest, lam1, lam2, document = room.f, room.rest, tables.lam1, tables.lam2, tables.levels.document
    begin = document[first]
    total = 0.0
    soft = not np.isinf(lam1)
    for g in range(last - first):
        low, high = document[first + g] - begin, document[first + g + 1] - begin
        l_g, u_g = x[2 * g], x[2 * g + 1]
        below = above = 0
        down = up = squares = 0.0
        for i in range(low, high):
            a = max(l_g - f[i], 0.0)
            b = max(f[i] - u_g, 0.0)
            below += f[i] <= l_g
            above += f[i] >= u_g
            down += a
            up += b
            squares += a * a + b * b
        piece[_N, 2 * g] = below
        piece[_N, 2 * g + 1] = above if l_g < u_g else high - low - below
        piece[PULL, 2 * g] = -down
        piece[PULL, 2 * g + 1] = up
        piece[_K, 2 * g] = lam2
        piece[_K, 2 * g + 1] = 0.0
        total += squares + lam2 * (u_g - l_g) ** 2
        if first + g + 1 < last and soft:
            gap = rest[2 * g + 1] - (x[2 * g + 2] - u_g)
            if gap > 0:
                piece[_K, 2 * g + 1] = lam1
                total += lam1 * gap * gap
    return 0.5 * total


@compiled
def chain(nodes, x, piece, rest, joined, c, m, y):  # type: ignore[no-untyped-def]
    """Fill y, the minimum of a piece with joined nodes at rest length.

    Node i and those before it are tied to m_i by c_i.
    """
    e = t = 0.0
    loose = 0
    for i in range(nodes):
        c[i] = e + piece[_N, i]
        if c[i] > 0:
            m[i] = x[i] + (e * (t - x[i]) + piece[PULL, i]) / c[i]
            loose = 0
        else:
            m[i] = x[i] + loose * (t - x[i]) / (loose + 1)
            loose += 1
        k = piece[_K, i]
        if joined[i]:
            e, t = c[i], m[i] + rest[i]
        elif k > 0:
            e, t = c[i] * k / (c[i] + k), m[i] + rest[i]
        else:
            e = 0.0
            loose = 0
    y[nodes - 1] = m[nodes - 1]
    for i in range(nodes - 2, -1, -1):
        k = piece[_K, i]
        if joined[i]:
            y[i] = y[i + 1] - rest[i]
        elif k > 0:
            y[i] = m[i] + k * (y[i + 1] - rest[i] - m[i]) / (c[i] + k)
        else:
            y[i] = m[i]


@compiled
def _equilibrium(nodes, x, piece, rest, hard, joined, c, m, y):  # type: ignore[no-untyped-def]
    """Fill y, the minimum of a piece under l <= u and, if they are hard, bounds on the gaps."""
    for i in range(nodes):
        joined[i] = False
    crossed = True
    while crossed:
        chain(nodes, x, piece, rest, joined, c, m, y)
        crossed = False
        for i in range(0, nodes - 1, 1 if hard else 2):
            if y[i] + rest[i] > y[i + 1] and not joined[i]:
                joined[i] = crossed = True


@compiled
def force(i, nodes, x, piece, rest):  # type: ignore[no-untyped-def]
    """Slope of F in the position of node i."""
    slope = -piece[PULL, i]
    if i > 0:
        slope += piece[_K, i - 1] * (x[i] - x[i - 1] - rest[i - 1])
    if i + 1 < nodes:
        slope -= piece[_K, i] * (x[i + 1] - x[i] - rest[i])
    return slope


@compiled
def _slope(nodes, x, piece, rest, a, b):  # type: ignore[no-untyped-def]
    """Slope of F at x in the direction b - a, summed over documents and springs."""
    total = 0.0
    for i in range(nodes):
        total -= piece[PULL, i] * (b[i] - a[i])
        if i + 1 < nodes and piece[_K, i] > 0:
            total += piece[_K, i] * (x[i + 1] - x[i] - rest[i]) * ((b[i + 1] - a[i + 1]) - (b[i] - a[i]))
    return total


@compiled
def _at_bound(i, nodes, x, rest, hard, edge):  # type: ignore[no-untyped-def]
    """Whether node i is at its bound to the next: the other end of its interval or, if gaps are hard, the next one."""
    if i % 2 == 0:
        return x[i] >= x[i + 1]
    return hard and i + 1 < nodes and x[i + 1] - x[i] - rest[i] <= edge


@compiled
def _left_over(nodes, x, piece, rest, hard, stiffness, size):  # type: ignore[no-untyped-def]
    """Largest force over stiffness that is not balanced by a bound: 0 at the minimum.

    Along a run of nodes at their bounds forces add up; what has come together must press on, and nothing be left.
    """
    worst = total = stiff = 0.0
    for i in range(nodes):
        total += force(i, nodes, x, piece, rest)
        stiff += stiffness[i - i % 2]
        held = _at_bound(i, nodes, x, rest, hard, _EXACT * size)
        worst = max(worst, (total if held else abs(total)) / stiff)
        if not held:
            total = stiff = 0.0
    return worst


@compiled
def _same_piece(nodes, piece, other):  # type: ignore[no-untyped-def]
    same = True
    for i in range(nodes):
        same &= piece[_N, i] == other[_N, i] and piece[_K, i] == other[_K, i]
    return same


@compiled
def stand(f, first, last, tables, room):  # type: ignore[no-untyped-def]
    """Gather the scores f of a query by grade, put nodes at the means of their grades, return the size of it all.

    Differences of scores are what counts; relative to a score of the list they keep their digits. So does the mean
    relative to a score of the grade: where all scores of a grade are equal it is that score. Hard gaps move nodes up.
    """
    order, document, t = tables.levels.order, tables.levels.document, tables.t
    sorted_f, x, rest, stiffness = room.f, room.x, room.rest, room.stiffness
    hard = np.isinf(tables.lam1)
    origin = f[order[document[first]]]
    size = 0.0
    for g in range(last - first):
        low, high = document[first + g], document[first + g + 1]
        head, total = f[order[low]] - origin, 0.0
        for i in range(low, high):
            score = f[order[i]] - origin
            sorted_f[i - document[first]] = score
            total += score - head
            size = max(size, abs(score))
        start = head + total / (high - low)
        if hard and g > 0:
            start = max(start, x[2 * g - 1] + rest[2 * g - 1])
        x[2 * g] = x[2 * g + 1] = start
        rest[2 * g] = rest[2 * g + 1] = 0.0
        if first + g + 1 < last:
            rest[2 * g + 1] = t[first + g + 1] - t[first + g]
        stiffness[2 * g] = high - low + (0.0 if hard else 2 * tables.lam1) + tables.lam2
    return size + (t[last - 1] - t[first])


@compiled
def solve(first, last, tables, size, room):  # type: ignore[no-untyped-def]
    """Move x from a start with l <= u to the minimum, fill the piece `here`, and return F and the number of steps.

    `stand` makes the start, and returns the size of scores and targets, for what counts as rounding error.
    """
    _, x, here, joined, rest, stiffness, y, there, z, c, m = room
    nodes, hard = 2 * (last - first), np.isinf(tables.lam1)
    F = measure(x, here, first, last, tables, room)
    left = np.inf
    for step in range(_STEPS * (nodes + 10)):
        _equilibrium(nodes, x, here, rest, hard, joined, c, m, y)
        F_y = measure(y, there, first, last, tables, room)
        before, left = left, _left_over(nodes, y, there, rest, hard, stiffness, size)
        done = (
            _same_piece(nodes, here, there) or left <= _EXACT * size or (left <= _SMALL * size and left > 0.5 * before)
        )
        down, up = _slope(nodes, x, here, rest, x, y), _slope(nodes, y, there, rest, x, y)
        if not done and up > 0 and (F_y - F > _GAIN * down or -down < _SMALL * F):
            # Regula falsi for the zero of the slope, which rises along the segment, ending on the falling side.
            low, high, at_low, at_high = 0.0, 1.0, down, up
            for _ in range(60):
                s = low + (high - low) * min(max(at_low / (at_low - at_high), 0.01), 0.99)
                for i in range(nodes):
                    z[i] = x[i] + s * (y[i] - x[i])
                for i in range(0, nodes, 2):
                    z[i] = min(z[i], z[i + 1])
                F_y = measure(z, there, first, last, tables, room)
                up = _slope(nodes, z, there, rest, x, y)
                if up > 0:
                    high, at_high = s, up
                    at_low *= 0.5
                elif up < 0.5 * down:
                    low, at_low = s, up
                    at_high *= 0.5
                else:
                    break
            y, z = z, y
        # Entry by entry: the assignment of slices takes several times as long to compile as the rest of this function.
        for i in range(nodes):
            x[i] = y[i]
            for row in range(3):
                here[row, i] = there[row, i]
        F = F_y
        if done:
            return F, step + 1
    return F, step + 1


@compiled
def settle(first, last, tables, size, room):  # type: ignore[no-untyped-def]
    """Turn the piece at the minimum into that of the Hessian, and return the margin beyond which a document counts.

    Where a bound carries a force its nodes are joined. A document at an end of its interval, a gap that has
    just closed and a bound without force do not count: there H jumps, and this is the smaller choice.
    """
    f, x, piece, joined, rest, stiffness = room.f, room.x, room.here, room.joined, room.rest, room.stiffness
    document = tables.levels.document
    nodes, hard = 2 * (last - first), np.isinf(tables.lam1)
    edge = _EDGE * size
    total = stiff = 0.0
    for i in range(nodes):
        total += force(i, nodes, x, piece, rest)
        stiff += stiffness[i - i % 2]
        held = _at_bound(i, nodes, x, rest, hard, edge)
        joined[i] = held and -total > edge * stiff
        if not held:
            total = stiff = 0.0
    for g in range(last - first):
        l_g, u_g = x[2 * g], x[2 * g + 1]
        if not joined[2 * g]:
            below = above = 0
            for i in range(document[first + g] - document[first], document[first + g + 1] - document[first]):
                below += f[i] < l_g - edge
                above += f[i] > u_g + edge
            piece[_N, 2 * g], piece[_N, 2 * g + 1] = below, above
        if first + g + 1 < last and not rest[2 * g + 1] - (x[2 * g + 2] - u_g) > edge:
            piece[_K, 2 * g + 1] = 0.0
    return edge


@compiled
def hold(nodes, piece, joined, C):  # type: ignore[no-untyped-def]
    """Fill C, the stiffness with which each node holds on to the ground: the inverse of the diagonal of K^-1."""
    e = 0.0
    for i in range(nodes):
        C[i] = e + piece[_N, i]
        k = piece[_K, i]
        e = C[i] if joined[i] else C[i] * k / (C[i] + k) if k > 0 else 0.0
    e = 0.0
    for i in range(nodes - 1, 0, -1):
        C[i] += e
        k = piece[_K, i - 1]
        e += piece[_N, i]
        e = e if joined[i - 1] else e * k / (e + k) if k > 0 else 0.0
    C[0] += e
