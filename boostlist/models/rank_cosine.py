r"""RankCosineRanker: stage by stage, the feature that turns the scores furthest towards the labels.

Qin, Liu, Tsai, Zhang, Li, *Learning to search web pages with query-level loss functions* (2006), section 4.2 and
figure 1. With g the labels of a query, of length 1, H the scores so far and h a candidate, the loss after a stage is

    L(alpha) = sum over queries 1/2 ( 1 - g'(H + alpha h) / |H + alpha h| )                              (eq. 12)

for the identity as maps of labels and scores; in general (eq. 6) g is psi of the labels, and phi of the scores stands
for H + alpha h.

Candidates h are single features scaled to [0, 1]. Per query and candidate, L depends on five numbers only: g'H, g'h,
H'H, H'h and h'h. They are kept for all candidates, so that a stage reads the features once. The derivative of L is 0
where alpha = sum N / sum D (eq. 13) with

    N = (g'H H'h - H'H g'h) / |H + alpha h|^3,    D = (H'h g'h - g'H h'h) / |H + alpha h|^3

In print the denominators have alpha = 0 and |H|^(3/2), meaning (H'H)^(3/2); that is exact for one query only, and where
sum D >= 0 gives a maximum of L. Here alpha is put back into the denominators and the equation iterated while sum D < 0;
whatever comes of it is compared with a line search, and a stage that does not lower the loss is not taken. At the first
stage H = 0, and the length of alpha does not matter: alpha = +-1. A linear phi(x) = a x + b is the same with h times a
and H = b to begin with. Under a phi that is bent only the line search is left, and each of the hundred steps that it
tries at a stage reads all features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from boostlist._typing import FloatArray, IntArray
from boostlist.checks import check_whole
from boostlist.losses.rank_cosine import LabelMap, Map, RankCosine
from boostlist.models.base import ParametricRanker
from boostlist.queries import Queries
from boostlist.solvers import Iterate, Iterates, Limits, MatrixDesign, Reason
from boostlist.solvers.design import whole_queries

_REPEATS = 10
_BLOCK_ROWS = 4_096
# Steps tried beside eq. 13, as parts of |H| / |h|.
_GRID = np.concatenate([-np.logspace(1, -4, 11), np.logspace(-4, 1, 11)])
# A fall of the loss below this part of its first value is rounding.
_ROUNDING = 1e-12


class _Candidates(ABC):
    """What can be added at a stage."""

    @abstractmethod
    def loss(self, alpha: FloatArray) -> FloatArray:
        """Return eq. 12 for a step of each candidate."""

    @abstractmethod
    def units(self) -> FloatArray:
        """Return the length of step that is about as long as the scores so far, for each candidate."""

    def best_steps(self) -> FloatArray:
        """Return a step for each candidate, by a line search: golden section around the best of a grid."""
        unit = self.units()
        steps = np.concatenate([_GRID[:, None] * unit, np.zeros((1, len(unit)))])
        steps = np.sort(steps, axis=0)
        losses = np.stack([self.loss(step) for step in steps])
        best = np.clip(losses.argmin(axis=0), 1, len(steps) - 2)
        columns = np.arange(len(unit))
        low, high = steps[best - 1, columns], steps[best + 1, columns]
        for _ in range(40):  # all candidates at once
            left, right = high - 0.6180339887 * (high - low), low + 0.6180339887 * (high - low)
            lower = self.loss(left) <= self.loss(right)
            low, high = np.where(lower, low, left), np.where(lower, right, high)
        return np.asarray((low + high) / 2)


@dataclass(eq=False)
class _Products(_Candidates):
    """For a linear phi: the five numbers of each query (rows) and candidate (columns); those without h are a column."""

    gH: FloatArray  # noqa: N815 - the name in the formula
    HH: FloatArray
    gh: FloatArray
    Hh: FloatArray
    hh: FloatArray
    weight: FloatArray

    def loss(self, alpha: FloatArray) -> FloatArray:
        """Return eq. 12; a query whose scores are all 0 counts 1/2."""
        along = self.gH + alpha * self.gh
        return np.asarray(self.weight @ (0.5 * (1 - along * self._inverse_norm(alpha))))

    def units(self) -> FloatArray:
        """Return |H| / |h|."""
        total = self.hh.sum(axis=0)
        return np.asarray(np.sqrt(np.divide(self.HH.sum(), total, out=np.zeros_like(total), where=total > 0)))

    def _inverse_norm(self, alpha: FloatArray) -> FloatArray:
        square = np.maximum(self.HH + alpha * (2 * self.Hh + alpha * self.hh), 0.0)
        # What cancels to less than this is 0.
        least = 1e-14 * (self.HH + alpha**2 * self.hh)
        return np.divide(1, np.sqrt(square), out=np.zeros_like(square), where=square > least)

    def best_steps(self) -> FloatArray:
        """Return a step for each candidate: the better of the iterated eq. 13 and a line search."""
        if not self.HH.any():
            ones = np.ones(self.gh.shape[1])
            return np.where(self.loss(ones) <= self.loss(-ones), 1.0, -1.0)
        fixed, searched = self._fixed_point(), super().best_steps()
        return np.where(self.loss(fixed) <= self.loss(searched), fixed, searched)

    def _fixed_point(self) -> FloatArray:
        alpha = np.zeros(self.gh.shape[1])
        numerator = self.gH * self.Hh - self.HH * self.gh
        denominator = self.Hh * self.gh - self.gH * self.hh
        for _ in range(_REPEATS):
            cube = self._inverse_norm(alpha) ** 3
            N, D = self.weight @ (cube * numerator), self.weight @ (cube * denominator)
            alpha = np.where(D < 0, np.divide(N, D, out=np.zeros_like(N), where=D < 0), alpha)
        return alpha


@dataclass(eq=False)
class _Bent(_Candidates):
    """For any other phi: the scores so far, and the candidates themselves."""

    H: FloatArray
    scaled: _Scaled

    def loss(self, alpha: FloatArray) -> FloatArray:
        """Return eq. 12 with phi, which is positive."""
        total = np.zeros(len(alpha))
        for rows, queries, begin, h in self.scaled.blocks():
            u = self.scaled.phi(self.H[rows, None] + alpha * h, begin)
            along = np.add.reduceat(self.scaled.g[rows, None] * u, begin)
            total += self.scaled.weight[queries] @ (0.5 * (1 - along / np.sqrt(np.add.reduceat(u * u, begin))))
        return total

    def units(self) -> FloatArray:
        """Return the step that moves scores by about 1, or by their own size."""
        return np.full(self.scaled.design.n_columns, max(1.0, float(np.sqrt(np.mean(self.H**2)))))


@dataclass(eq=False, repr=False, kw_only=True)
class RankCosineRanker(ParametricRanker):
    """Additive ranking function f(x) = sum_t alpha_t h_t(x) over single features h, chosen stage by stage.

    Each stage adds the feature, scaled to [0, 1] on the training data, and the coefficient that together lower the
    cosine loss most. The loss never rises; the fit ends when no feature lowers it. Queries whose labels are all 0
    contribute nothing.

    Parameters
    ----------
    n_stages
        Number of stages, at least 1.
    psi, phi
        Maps of labels and scores, as for `boostlist.losses.RankCosine`. Under a bent phi, ``"exp"`` or ``"sigmoid"``, a
        stage reads the features about a hundred times instead of once.
    verbose, callback
        As for `LinearRanker`; an iteration is a stage.

    Attributes
    ----------
    coef_, intercept_
        The same function as ``coef_'x + intercept_``. The intercept does not change rankings but does change the loss.
    stages_
        Feature of each stage.
    alphas_
        Coefficient of each stage.
    convergence_, n_iter_, n_features_in_, feature_names_in_
        As for `LinearRanker`; ``convergence_`` has the loss after each stage, a sum over queries.

    References
    ----------
    Qin, Liu, Tsai, Zhang, Li: Learning to search web pages with query-level loss functions. 2006. Figure 1.
    """

    _stored = ("coef_", "intercept_", "stages_", "alphas_")

    n_stages: int = 100
    psi: LabelMap = "identity"
    phi: Map = "identity"

    def _problem(self, X: Any, queries: Queries) -> _Stages:
        check_whole("n_stages", self.n_stages, least=1)
        scaled = _Scaled(X, queries, RankCosine(psi=self.psi, phi=self.phi))
        if not scaled.g.any():
            raise ValueError("no document is relevant: the cosine with labels that are all 0 is not defined")
        return _Stages(scaled, self.n_stages)

    def _iterates(self, problem: _Stages) -> Iterates:
        return problem.iterates()

    def _limits(self) -> Limits:
        return Limits()

    def _keep(self, problem: _Stages, w: FloatArray) -> None:
        scaled = problem.scaled
        self.stages_, self.alphas_ = np.array(problem.features[: len(w)], np.int64), w
        self.coef_ = np.zeros(len(scaled.low))
        np.add.at(self.coef_, self.stages_, w)
        self.coef_ *= scaled.factor
        self.intercept_ = -float(self.coef_ @ scaled.low)

    def predict(self, X: Any) -> FloatArray:
        """Return the score of each row; a higher score ranks further up."""
        return MatrixDesign(self._read_features(X)).scores(self.coef_) + self.intercept_


@dataclass(eq=False)
class _Stages:
    """The stages of a fit: features chosen so far, and the candidates that they are chosen from.

    The weights w of an iterate are the coefficients alpha of the stages so far.
    """

    scaled: _Scaled
    n_stages: int
    features: list[int] = field(default_factory=list)

    def iterates(self) -> Iterates:
        """Add stages while they lower the loss."""
        H, w = np.zeros(self.scaled.design.n_rows), np.zeros(0)
        candidates = self.scaled.candidates(H)
        loss = self.scaled.loss(H)
        least = _ROUNDING * loss
        yield Iterate(w, loss)
        while len(w) < self.n_stages:
            alpha = candidates.best_steps()
            best = int(np.argmin(candidates.loss(alpha)))
            H = H + alpha[best] * self.scaled.column(best)
            # From the new scores themselves: |H + alpha h|^2 as a sum of three terms may cancel.
            candidates = self.scaled.candidates(H, candidates)
            previous, loss = loss, self.scaled.loss(H)
            if not loss < previous - least:
                return Reason.NO_STAGE
            self.features.append(best)
            w = np.append(w, alpha[best])
            yield Iterate(w, loss)
        return Reason.ALL_STAGES


class _Scaled:
    """The candidates h: features scaled to [0, 1], constant ones to 0; with the labels and the map of the scores."""

    def __init__(self, X: Any, queries: Queries, cosine: RankCosine) -> None:
        self.design, self.queries, self.cosine = MatrixDesign(X), queries, cosine
        self.low, high = _extremes(self.design)
        span = high - self.low
        self.factor = np.divide(1, span, out=np.zeros_like(span), where=span > 0)
        tables = cosine.tables(queries)
        self.g, self.a, self.b = tables.g, tables.a, tables.b
        self.weight = queries.weight * np.logical_or.reduceat(self.g != 0, queries.start[:-1])

    def column(self, j: int) -> FloatArray:
        return np.asarray((self.design.column(j) - self.low[j]) * self.factor[j])

    def blocks(self) -> Iterator[tuple[slice, slice, IntArray, FloatArray]]:
        """Yield some queries at a time: their rows, their numbers, where each begins among the rows, and h."""
        start = self.queries.start
        for first, last in whole_queries(start, _BLOCK_ROWS):
            rows = slice(int(start[first]), int(start[last]))
            h = (self.design.block(rows.start, rows.stop) - self.low) * self.factor
            yield rows, slice(first, last), start[first:last] - start[first], h

    def phi(self, f: FloatArray, begin: IntArray) -> FloatArray:
        """Return phi of scores, up to a factor by query; a query begins at each row of begin."""
        if self.cosine.phi == "sigmoid":
            return np.asarray(expit(f))
        if self.cosine.phi == "exp":
            sizes = np.diff(begin, append=len(f))
            return np.asarray(np.exp(f - np.repeat(np.maximum.reduceat(f, begin), sizes, axis=0)))
        return self.a * f + self.b

    def loss(self, H: FloatArray) -> float:
        """Return eq. 7 for the scores H; a query with phi(H) = 0 counts 1/2."""
        u = self.phi(H, self.queries.start[:-1])
        norm = np.sqrt(self._by_query(u * u))
        cosine = np.divide(self._by_query(self.g * u), norm, out=np.zeros_like(norm), where=norm > 0)
        return float(self.weight @ (0.5 * (1 - cosine)))

    def candidates(self, H: FloatArray, before: _Candidates | None = None) -> _Candidates:
        """Return what can be added to the scores H; what does not depend on H is taken from before."""
        if self.cosine.phi in ("exp", "sigmoid"):
            return _Bent(H, self)
        u = self.phi(H, self.queries.start[:-1])
        shape = (self.queries.n_queries, self.design.n_columns)
        uh = np.zeros(shape)
        known = before if isinstance(before, _Products) else None
        gh, hh = (known.gh, known.hh) if known else (np.zeros(shape), np.zeros(shape))
        for rows, queries, begin, h in self.blocks():
            uh[queries] = np.add.reduceat(u[rows, None] * h, begin)
            if known is None:
                gh[queries] = self.a * np.add.reduceat(self.g[rows, None] * h, begin)
                hh[queries] = self.a**2 * np.add.reduceat(h * h, begin)
        gu, uu = self._by_query(self.g * u)[:, None], self._by_query(u * u)[:, None]
        return _Products(gu, uu, gh, self.a * uh, hh, self.weight)

    def _by_query(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values, self.queries.start[:-1]))


def _extremes(design: MatrixDesign) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest value of each feature."""
    low, high = np.full(design.n_columns, np.inf), np.full(design.n_columns, -np.inf)
    for begin in range(0, design.n_rows, _BLOCK_ROWS):
        block = design.block(begin, min(begin + _BLOCK_ROWS, design.n_rows))
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    return low, high
