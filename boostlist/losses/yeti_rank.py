r"""YetiRank: rankings drawn at random around the scores, and the pairs of neighbours in them.

Gulin, Kuralenok, Pavlov, *Winning the transfer learning track of Yahoo!'s learning to rank challenge with YetiRank*
(JMLR W&CP 14, 2011); Lyzhin et al., *Which tricks are important for learning to rank?* (ICML 2023). A ranking is drawn
by sorting f_i + noise x Gumbel_i in descending order, which for noise 1 is a draw from the Plackett-Luce model. For its
neighbours i and j at the places t and t + 1 = 1, 2, ..., y_i > y_j, d = f_i - f_j without noise and p = 1 / (1 + e^d),

    -w p is added to gradient_i,  w p to gradient_j,  w p (1 - p) to both diagonals

and the mean over the draws is the gradient. The weight w is |a_i - a_j| decay^{t - 1}, or the change of a metric when
the neighbours swap places: |z_i - z_j| c_t times

    ndcg, dcg   z = a / DCG_max, a         b(t) - b(t + 1),  b(t) = 1 / log2(1 + t);  c = 1
    map         z = relevant / n_+         1/t - 1/(t + 1);   c_t = 1 + the number of relevant documents before t
    mrr         z = relevant               1/t - 1/(t + 1);   c_t = 1 if no document before t is relevant, else 0
    err         z = R = a / (a_max + 1)    1/t - 1/(t + 1);   c_t = prod over r < t of (1 - R_r)

Randomness is a pure function of the seed and the bits of the query's scores and labels (`draws`): the same scores give
the same gradient to the last bit, in any thread, in a resumed training, and whatever was computed before. It is the
gradient of no fixed function. The value is the mean over the same draws of the logistic loss of the neighbours,
sum w log(1 + e^{-d}). O(samples x n log n); with decay the places that count are few, and O(samples x n) finds them.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from boostlist.checks import check_choice, check_number
from boostlist.gains import Gain, check_gain
from boostlist.losses.base import VALUE, Traits
from boostlist.losses.compiled import CompiledLoss
from boostlist.losses.draws import exponentials_of, key_of, mix
from boostlist.losses.lambda_loss import swap_gains
from boostlist.losses.ratios import FAR, exponentials
from boostlist.losses.weights import Grades, check_grades
from boostlist.ordering import Room, first_by_sort
from boostlist.parallel import compiled, inner, over_queries, vectorized
from boostlist.sorting import sort

if TYPE_CHECKING:
    from boostlist._typing import AnyArray, FloatArray, IntArray
    from boostlist.losses.compiled import Lists, Outputs
    from boostlist.queries import Queries

NeighbourWeights = Literal["decay", "ndcg", "dcg", "map", "mrr", "err"]
"""What a pair of neighbours weighs: a power of `decay`, or the change of a metric."""

_PLAIN, _MAP, _MRR, _ERR = range(4)


@compiled
def _label_keys(lo, hi, start, labels, seed, key):  # type: ignore[no-untyped-def]
    for q in range(lo, hi):
        key[q] = key_of(labels[start[q] : start[q + 1]], seed)


@inner
def _draw(key, near, rate, f, noise, wait):  # type: ignore[no-untyped-def]
    """Fill in what a draw sorts by: descending f + noise x Gumbel is ascending e^{-f / noise} x Exponential."""
    exponentials_of(key, wait)
    if near:
        for i in range(f.size):
            wait[i] *= rate[i]
    else:
        for i in range(f.size):
            wait[i] = np.log(wait[i]) - f[i] / noise


@inner
def _first(partly, wait, m, ascending, space):  # type: ignore[no-untyped-def]
    """Put the m documents that wait least, or all, in order; `ascending` is to work in."""
    if partly is None:
        sort(wait, 0, wait.size, ascending, space.order, space.space)
        return
    for i in range(wait.size):
        ascending[i] = -wait[i]
    first_by_sort(ascending[: wait.size], m, space)


@inner
def _chances(kind, z, step, chance):  # type: ignore[no-untyped-def]
    """Fill in c_t times the step of the discount, for documents in drawn order."""
    c = 1.0
    for t in range(z.size):
        chance[t] = c * step[t]
        if kind == _ERR:
            c *= 1 - z[t]
        elif z[t] > 0:
            c = c + 1 if kind == _MAP else 0.0


@vectorized
def _neighbours(r, z, weight, pull, curvature):  # type: ignore[no-untyped-def]
    """Fill in the pull and the curvature of the places t - 1 and t, for r_t = e^{f_t - f_{t-1}}; 0 at both ends."""
    n = z.size
    pull[0] = pull[n] = curvature[0] = curvature[n] = 0.0
    for t in range(1, n):
        w = (z[t - 1] - z[t]) * weight[t - 1]
        inverse = 1 / (1 + r[t])
        other = r[t] * inverse
        pull[t] = w * (other if w > 0 else inverse)
        curvature[t] = abs(w) * (other * inverse)


@inner
def _neighbours_value(x, z, weight):  # type: ignore[no-untyped-def]
    total = 0.0
    for t in range(x.size - 1):
        w = (z[t] - z[t + 1]) * weight[t]
        behind = x[t + 1] - x[t] if w > 0 else x[t] - x[t + 1]
        total += abs(w) * (max(behind, 0.0) + np.log1p(np.exp(-abs(behind))))
    return total


class Tables(NamedTuple):
    """samples, noise and the kind of c; the steps of the discount by place, a key by query, and z by document.

    partly is None where no list is so long that only its first places are put in order, which then is not compiled.
    """

    samples: int
    noise: float
    kind: int
    step: FloatArray
    key: AnyArray
    z: FloatArray
    partly: bool | None


def _yeti(lists: Lists, f: FloatArray, need: int, out: Outputs, tables: Tables) -> None:
    """Make what the loop has of other types than double, each of which would take some compiling, and run it."""
    _loop(lists, f, need, out, tables, Room.of(lists.longest))


@compiled
def _loop(lists, f, need, out, tables, space):  # type: ignore[no-untyped-def]
    samples, noise, kind, step, key, z, partly = tables
    size = lists.longest + 1
    x, E, rate, wait, drawn = np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    ratio, gain, chance = np.empty(size), np.empty(size), np.empty(size)
    pull, curvature, ascending = np.empty(size), np.empty(size), np.empty(size)
    order = space.order
    for q in lists.query:
        rows = slice(lists.start[q], lists.start[q + 1])
        fq, zq, gradient, diag = f[rows], z[rows], out.gradient[rows], out.diag[rows]
        n = fq.size
        m = min(n, step.size + 1)
        gradient[:] = 0.0
        diag[:] = 0.0
        for i in range(n):
            x[i] = -fq[i] / noise
        near_draws = exponentials(x, n, rate)
        for i in range(n):
            x[i] = fq[i]
        near = exponentials(x, n, E)
        query_key = mix(key_of(fq, np.int64(0)) ^ key[q])
        for t in range(m - 1):
            chance[t] = step[t]
        loss = 0.0
        for sample in range(samples):
            _draw(mix(query_key + np.uint64(sample)), near_draws, rate, fq, noise, wait[:n])
            _first(partly, wait[:n], m, ascending, space)
            for t in range(m):
                drawn[t] = E[order[t]] if near else fq[order[t]]
                gain[t] = zq[order[t]]
            for t in range(1, m):
                if near:
                    ratio[t] = drawn[t] / drawn[t - 1]
                else:
                    ratio[t] = np.exp(min(max(drawn[t] - drawn[t - 1], -FAR), FAR))
            if kind != _PLAIN:
                _chances(kind, gain[:m], step, chance)
            _neighbours(ratio, gain[:m], chance, pull, curvature)
            for t in range(m):
                gradient[order[t]] += pull[t] - pull[t + 1]
                diag[order[t]] += curvature[t] + curvature[t + 1]
            if need & VALUE:
                for t in range(m):
                    x[t] = fq[order[t]]
                loss += _neighbours_value(x[:m], gain, chance)
        for i in range(n):
            gradient[i] *= lists.weight[q] / samples
            diag[i] *= lists.weight[q] / samples
        out.value[q] = loss / samples


@dataclass(frozen=True, kw_only=True)
class YetiRank(CompiledLoss):
    """YetiRank's gradient: pairs of neighbours in rankings drawn at random around the scores.

    Parameters
    ----------
    samples
        Number of rankings drawn for each query and call.
    noise
        Factor on the Gumbel noise that is added to the scores, > 0.
    weights
        ``"decay"``, or the metric whose change weighs a pair: ``"ndcg"``, ``"dcg"``, ``"map"``, ``"mrr"``, ``"err"``.
    decay
        With ``weights="decay"``, what a place further down counts, in (0, 1].
    gain
        Gain a: ``"exp2"`` for 2^y - 1, ``"linear"`` for y, or a table by grade.
    grades
        Label set, for a_max of ERR; None for the labels seen when binding. Give it when shards of a data set must
        agree.
    threshold
        Smallest label of a relevant document, for MAP and MRR.
    seed
        A whole number >= 0: other seeds draw other rankings.

    References
    ----------
    Gulin, Kuralenok, Pavlov: Winning the transfer learning track of Yahoo!'s learning to rank challenge with YetiRank.
    JMLR W&CP 14, 2011.
    Lyzhin, Ustimenko, Gulin, Prokhorenkova: Which tricks are important for learning to rank? ICML 2023.
    """

    samples: int = 10
    noise: float = 1.0
    weights: NeighbourWeights = "decay"
    decay: float = 0.85
    gain: Gain = "exp2"
    grades: Grades = None
    threshold: float = 1.0
    seed: int = 0

    family = "of today's boosting systems"
    traits = Traits(
        diag="heuristic", convex=False, shift_invariant=True, conservative=False, sampled=True, cost="n log n"
    )
    loop = staticmethod(_yeti)

    def __post_init__(self) -> None:
        check_choice("weights", self.weights, NeighbourWeights)
        if not (_is_whole(self.samples) and self.samples >= 1):
            raise ValueError(f"samples must be a whole number of at least 1, got {self.samples!r}")
        if not (_is_whole(self.seed) and 0 <= self.seed < 2**63):
            raise ValueError(f"seed must be a whole number >= 0, got {self.seed!r}")
        check_number("noise", self.noise, above=True)
        check_number("decay", self.decay, above=True)
        if self.decay > 1:
            raise ValueError(f"decay must be at most 1, got {self.decay!r}")
        check_number("threshold", self.threshold, above=True)
        object.__setattr__(self, "gain", check_gain(self.gain))
        object.__setattr__(self, "grades", check_grades(self.grades))

    def tables(self, queries: Queries) -> Tables:
        """Return the steps of the discount, the keys, and z."""
        place = np.arange(1.0, queries.sizes.max(initial=0) + 1)
        if self.weights == "decay":
            step = self.decay ** (place - 1)
            step = step[step > 2.0**-53]  # places further down add nothing to the sums
        elif self.weights in ("ndcg", "dcg"):
            step = 1 / np.log2(place + 1) - 1 / np.log2(place + 2)
        else:
            step = 1 / place - 1 / (place + 1)
        kind = {"map": _MAP, "mrr": _MRR, "err": _ERR}.get(self.weights, _PLAIN)
        z = swap_gains(
            "dcg" if self.weights == "decay" else self.weights,
            queries,
            k=None,
            gain=self.gain,
            grades=self.grades,
            threshold=self.threshold,
        )
        key = np.empty(queries.n_queries, np.uint64)
        over_queries(_label_keys, queries.start, queries.start, queries.labels, int(self.seed), key)
        partly = True if 2 * (step.size + 1) < place.size else None
        return Tables(int(self.samples), float(self.noise), kind, step, key, z, partly)

    def idle(self, queries: Queries, tables: Tables) -> IntArray:
        """Return the queries whose documents all have the same z."""
        first = queries.start[:-1]
        return np.flatnonzero(np.minimum.reduceat(tables.z, first) == np.maximum.reduceat(tables.z, first))


def _is_whole(number: object) -> bool:
    return not isinstance(number, bool) and hasattr(number, "__index__") and operator.index(number) == number
