r"""RankCosineRanker: stage by stage, the feature that turns the scores furthest towards the labels.

Qin, Liu, Tsai, Zhang, Li, *Learning to search web pages with query-level loss functions* (2006), section 4.2 and
figure 1. With g the labels of a query, of length 1, H the scores so far and h a candidate, the loss after a stage is

    L(alpha) = sum over queries 1/2 ( 1 - g'(H + alpha h) / |H + alpha h| )                              (eq. 12)

Candidates h are single features scaled to [0, 1]. Per query and candidate, L depends on five numbers only: g'H, g'h,
H'H, H'h and h'h. They are kept for all candidates, so that a stage reads the features once. The derivative of L is 0
where alpha = sum N / sum D (eq. 13) with

    N = (g'H H'h - H'H g'h) / |H + alpha h|^3,    D = (H'h g'h - g'H h'h) / |H + alpha h|^3

In print the denominators have alpha = 0 and |H|^(3/2), meaning (H'H)^(3/2); that is exact for one query only, and where
sum D >= 0 gives a maximum of L. Here alpha is put back into the denominators and the equation iterated while sum D < 0;
whatever comes of it is compared with a line search, and a stage that does not lower the loss is not taken. At the first
stage H = 0, and the length of alpha does not matter: alpha = +-1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boostlist._typing import FloatArray
from boostlist.checks import check_whole
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


@dataclass(eq=False)
class _Candidates:
    """The five numbers of each query (rows) and candidate (columns); those without h are a column."""

    gH: FloatArray  # noqa: N815 - the name in the formula
    HH: FloatArray
    gh: FloatArray
    Hh: FloatArray
    hh: FloatArray
    weight: FloatArray

    def loss(self, alpha: FloatArray) -> FloatArray:
        """Return eq. 12 for a step of each candidate; a query whose scores are all 0 counts 1/2."""
        along = self.gH + alpha * self.gh
        return np.asarray(self.weight @ (0.5 * (1 - along * self._inverse_norm(alpha))))

    def current_loss(self) -> float:
        """Return eq. 12 without a step."""
        return float(self.loss(np.zeros(self.gh.shape[1]))[0])

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
        fixed = self._fixed_point()
        searched = self._search()
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

    def _search(self) -> FloatArray:
        total = self.hh.sum(axis=0)
        unit = np.sqrt(np.divide(self.HH.sum(), total, out=np.zeros_like(total), where=total > 0))
        steps = np.concatenate([_GRID[:, None] * unit, np.zeros((1, len(unit)))])
        steps = np.sort(steps, axis=0)
        losses = np.stack([self.loss(step) for step in steps])
        best = np.clip(losses.argmin(axis=0), 1, len(steps) - 2)
        columns = np.arange(len(unit))
        low, high = steps[best - 1, columns], steps[best + 1, columns]
        for _ in range(40):  # golden section, all candidates at once
            left, right = high - 0.6180339887 * (high - low), low + 0.6180339887 * (high - low)
            lower = self.loss(left) <= self.loss(right)
            low, high = np.where(lower, low, left), np.where(lower, right, high)
        return np.asarray((low + high) / 2)


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
    verbose, callback
        As for `LinearRanker`; an iteration is a stage.

    Attributes
    ----------
    coef_, intercept_
        The same function as coef_'x + intercept_. The intercept does not change rankings but does change the loss.
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

    def _problem(self, X: Any, queries: Queries) -> _Stages:
        check_whole("n_stages", self.n_stages, least=1)
        if not np.any(queries.labels):
            raise ValueError("no document is relevant: the cosine with labels that are all 0 is not defined")
        return _Stages(_Scaled(X, queries), self.n_stages)

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
        loss = candidates.current_loss()
        least = _ROUNDING * loss
        yield Iterate(w, loss)
        while len(w) < self.n_stages:
            alpha = candidates.best_steps()
            best = int(np.argmin(candidates.loss(alpha)))
            H = H + alpha[best] * self.scaled.column(best)
            # From the new scores themselves: |H + alpha h|^2 as a sum of three terms may cancel.
            candidates = self.scaled.candidates(H, candidates)
            previous, loss = loss, candidates.current_loss()
            if not loss < previous - least:
                return Reason.NO_STAGE
            self.features.append(best)
            w = np.append(w, alpha[best])
            yield Iterate(w, loss)
        return Reason.ALL_STAGES


class _Scaled:
    """The candidates h: features scaled to [0, 1], constant ones to 0; and their products by query."""

    def __init__(self, X: Any, queries: Queries) -> None:
        self.design, self.queries = MatrixDesign(X), queries
        self.low, high = _extremes(self.design)
        span = high - self.low
        self.factor = np.divide(1, span, out=np.zeros_like(span), where=span > 0)
        norm = np.sqrt(self._by_query(queries.labels**2))
        self.weight = queries.weight * (norm > 0)
        self.g = queries.labels / np.repeat(np.where(norm > 0, norm, 1.0), queries.sizes)

    def column(self, j: int) -> FloatArray:
        return np.asarray((self.design.column(j) - self.low[j]) * self.factor[j])

    def candidates(self, H: FloatArray, before: _Candidates | None = None) -> _Candidates:
        """Return the five numbers for the scores H; those that do not depend on H are taken from before."""
        shape = (self.queries.n_queries, self.design.n_columns)
        Hh = np.zeros(shape)
        gh, hh = (np.zeros(shape), np.zeros(shape)) if before is None else (before.gh, before.hh)
        start = self.queries.start
        for first, last in whole_queries(start, _BLOCK_ROWS):
            rows, queries = slice(start[first], start[last]), slice(first, last)
            begin = start[first:last] - start[first]
            h = (self.design.block(rows.start, rows.stop) - self.low) * self.factor
            Hh[queries] = np.add.reduceat(H[rows, None] * h, begin)
            if before is None:
                gh[queries] = np.add.reduceat(self.g[rows, None] * h, begin)
                hh[queries] = np.add.reduceat(h * h, begin)
        gH, HH = self._by_query(self.g * H)[:, None], self._by_query(H * H)[:, None]
        return _Candidates(gH, HH, gh, Hh, hh, self.weight)

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
