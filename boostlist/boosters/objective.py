"""A loss as an objective of LightGBM and XGBoost: scale, a bound on steps, weights, samples of queries, a floor.

Scale. Both hosts hold the Hessians of a leaf against fixed thresholds (``min_sum_hessian_in_leaf`` 1e-3 in LightGBM,
``min_child_weight`` 1 and ``lambda`` 1 in XGBoost). A loss divided by DCG or list length lies far below these and would
grow no tree. So the loss is multiplied by a constant, found when binding, such that the mean of the positive diagonal
entries at scores of 0 is 1, which is what squared error has.

Step. The diagonal h of a document says how the gradient g changes only nearby. At scores of 0 the best of n documents
has under Plackett-Luce g of about -1 and h of about 1/n, and a leaf of such documents would go up by n at once. So

    h := max(h, |g| / s),    hence in every leaf    |step| = rate |sum g| / sum h <= rate s.

A loss declares its s, in units of the scores (`Traits.step`); in a sum each term is bounded by its own. Losses that aim
at targets, and those whose curvature holds everywhere, need none: s is infinite.

For losses made of softmax stages, sum_j w_j log sum_k a_jk e^{f_k} less a linear function - Plackett-Luce, CS-ListMLE,
ListNet, multiclass logistic - the training loss l then falls in every round, at rates up to 0.33 with s = 4. Let v be
the step of a tree, d its value in a leaf, G and K the leaf's sums of g and h, so that d = -rate G / K. A stage has the
Hessian H = w (diag(p) - pp'), whose off-diagonal entries are <= 0 and whose rows sum to 0, so that

    v'Hv = - sum over i < k of H_ik (v_i - v_k)^2 <= - 2 sum over i < k of H_ik (v_i^2 + v_k^2) = 2 sum_i H_ii v_i^2.

Its third derivative along v is at most max |v_i - v_k| <= 2 rate s =: R times v'Hv, so that on the way v'Hv grows by
e^R at most. With psi(R) = 2 (e^R - 1 - R) / R^2, over all stages and leaves,

    l(f + v) - l(f) <= sum g v + psi(R) v'Hv / 2 <= sum over leaves of G d + psi(R) K d^2
                     = sum over leaves of (rate G^2 / K) (rate psi(2 rate s) - 1).

That is negative while rate psi(2 rate s) < 1: at s = 4 up to a rate of 0.33, and both hosts' penalties only shorten d.

Unit Hessian. With ``hessian="unit"`` a tree is fitted to the gradient by least squares and a leaf moves by rate times
its mean, as functional gradient descent has it (Moon, Smola, Chang, Zheng, *IntervalRank* (2010), algorithm 1). There
is no bound on steps then, and the scale of the loss counts: with the automatic one the mean of the diagonal at scores
of 0 is 1, so that rates mean about the same for all losses; with ``scale=1`` the steps are those of the print.

Weights. Query weights multiply the query's loss. Weights that differ within a query multiply gradient and diagonal of
their document, as in the hosts' own ranking objectives; that is not the gradient of any function. What weighs nothing
adds nothing to a leaf, neither gradient nor Hessian.

Samples. With ``subsample_queries`` each round sees some of the queries, and the others add nothing to a leaf. Hosts
tell an objective neither the round nor a random state: the sample is a pure function of seed and scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.arrays import Room
from boostlist.boosters.binding import Call, bound_once, is_instance, read_call
from boostlist.boosters.finishing import add_term, finished
from boostlist.boosters.lists import NO_WEIGHT, Lists
from boostlist.boosters.position_bias import DEFAULT_RULE, Debiased, Gradients, PositionBias, of_training
from boostlist.checks import check_choice, check_whole, warn
from boostlist.losses.base import BoundLoss, Hessian, Loss
from boostlist.losses.draws import key_of
from boostlist.positions import Positions
from boostlist.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from boostlist.boosters.labels import CodedLabels, RowLabels

BAGGING_BY_QUERY = (
    "LightGBM ignores bagging_by_query with a custom objective and would bag single documents; remove it. Samples of "
    "whole queries are subsample_queries=, of TreeRanker and of loss.objective()"
)
"""What is said to those who want LightGBM to sample queries."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A loss as LightGBM and XGBoost call it; make one with `Loss.objective`.

    Parameters
    ----------
    loss
        The loss.
    scale
        Factor on gradient and Hessian, or ``"auto"``.
    step
        Largest step of a leaf before the learning rate, in units of the scores, for the loss and every term of a sum;
        ``inf`` for none, ``"auto"`` for what each of them declares.
    hessian
        ``"loss"`` for the diagonal of the loss; ``"unit"`` for 1, or the weight where there are weights.
    subsample_queries
        Share of the queries that each round sees.
    seed
        Seed of the samples.
    position_bias
        How biases of positions are learned, if the data has positions; or biases by position to start from.
    labels
        Further labels of the data, which the host cannot hold; set by `boostlist.objectives.with_labels`.
    """

    loss: Loss
    scale: float | Literal["auto"] = "auto"
    step: float | Literal["auto"] = "auto"
    hessian: Hessian = "loss"
    subsample_queries: float = 1.0
    seed: int = 0
    position_bias: PositionBias = DEFAULT_RULE
    labels: RowLabels | CodedLabels | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise TypeError(f"loss must be a loss of boostlist, got {self.loss!r}")
        if self.scale != "auto" and not (np.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f'scale must be a finite number > 0 or "auto", got {self.scale}')
        if self.step != "auto" and not self.step > 0:
            raise ValueError(f'step must be a number > 0, inf for no bound, or "auto", got {self.step}')
        check_choice("hessian", self.hessian, Hessian)
        if self.hessian == "unit" and self.step != "auto":
            raise ValueError('step bounds Newton steps, and hessian="unit" takes none: leave it out')
        if not 0 < self.subsample_queries <= 1:
            raise ValueError(f"subsample_queries must be above 0 and at most 1, got {self.subsample_queries}")
        check_whole("seed", self.seed, least=0)
        object.__setattr__(self, "position_bias", PositionBias.of(self.position_bias))

    def __call__(self, a: Any, b: Any, weight: Any = None, group: Any = None) -> tuple[AnyArray, AnyArray]:
        """Return gradient and Hessian diagonal in float32, as the hosts store them."""
        call = read_call(a, b, weight, group)
        return answer(call, *self.bind_call(call), self)

    def bind_call(self, call: Call) -> tuple[BoundObjective, Positions | None]:
        """Bind the loss to what a host holds, once for each data set; return the positions of its documents too."""

        def bind(lists: Lists) -> tuple[BoundObjective, Positions | None]:
            check_host(self.loss, call)
            queries = lists.queries if self.labels is None else self.labels.add_to(lists.queries, call.owner)
            return self.bind(queries, lists.document_weight), lists.position

        return bound_once(call, self, bind)

    def bind(self, queries: Queries, document_weight: FloatArray | None = None) -> BoundObjective:
        """Bind the loss to queries and find the scale.

        Parameters
        ----------
        queries
            The lists; query weights multiply the loss of their query.
        document_weight
            Factors on gradient and diagonal of each document, or None.
        """
        return self.hold(self.loss.bind(queries), document_weight)

    def hold(self, bound: BoundLoss, document_weight: FloatArray | None) -> BoundObjective:
        """Take a loss that is bound already, and find the scale."""
        weight = np.repeat(bound.queries.weight, bound.queries.sizes) if document_weight is None else document_weight
        counted = weight > 0
        if self.scale == "auto" and len(counted) and not counted.any():
            raise ValueError(NO_WEIGHT)
        scale = automatic_scale(bound) if self.scale == "auto" else float(self.scale)
        return BoundObjective(
            replace(self, loss=bound.loss, scale=scale),
            bound,
            [_least(term.loss.steps(term.queries) if self.step == "auto" else self.step) for _, term in bound.terms],
            document_weight,
            None if counted.all() else counted,
        )


@dataclass(frozen=True, eq=False)
class BoundObjective:
    """An objective bound to its data: scores -> gradient and Hessian diagonal.

    Attributes
    ----------
    objective
        What was bound, with its scale as a number.
    bound, least
        The bound loss, and for each of its terms 1 / s: the diagonal is at least this times the size of the
        gradient. One entry for all documents, or one each.
    document_weight
        Factors on gradient and diagonal of each document, or None.
    counted
        Documents that have weight, None if all have.
    """

    objective: Objective
    bound: BoundLoss
    least: list[FloatArray]
    document_weight: FloatArray | None
    counted: NDArray[np.bool_] | None

    @cached_property
    def _sums(self) -> Room:
        return Room(self.bound.queries.n_documents)

    @cached_property
    def _results(self) -> Room:
        return Room(self.bound.queries.n_documents, np.float32)

    def __call__(self, scores: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return gradient and Hessian diagonal in float32."""
        f = self.bound.queries.scores(scores)
        unit = self.objective.hessian == "unit"
        weight = np.ones(1) if self.document_weight is None else self.document_weight
        counted = f.size if self.counted is None else int(np.count_nonzero(self.counted))
        scale = float(self.objective.scale)
        g, h, least = self._with_unit_hessian(f) if unit else self._bounded(f)
        gradient, hessian = finished(g, h, least, weight, scale, 1.0 if unit else scale, counted, self._results)
        for kept in (self.counted, self._sample(f)):
            if kept is not None:
                gradient *= kept
                hessian *= kept
        return gradient, hessian

    def _bounded(self, f: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return gradient, diagonal, and what this is at least; in a sum each term's diagonal is at least its own."""
        if len(self.least) == 1 and self.bound.terms[0][0] == 1:
            return *self.bound.gradient_hessian(f), self.least[0]
        gradient, diag = self._sums.empty(), self._sums.empty()
        for total in (gradient, diag):
            total.fill(0.0)
        for (factor, term), least in zip(self.bound.terms, self.least, strict=True):
            add_term(*term.gradient_hessian(f), least, factor, gradient, diag)
        return gradient, diag, np.zeros(1)

    def _with_unit_hessian(self, f: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradient, the query weight of each document, and no bound."""
        queries = self.bound.queries
        return self.bound.value_gradient(f)[1], np.repeat(queries.weight, queries.sizes), np.zeros(1)

    def _sample(self, f: FloatArray) -> NDArray[np.bool_] | None:
        """Return which documents this round sees, None for all."""
        share, queries = self.objective.subsample_queries, self.bound.queries
        if share == 1:
            return None
        rng = np.random.default_rng(int(key_of(f, self.objective.seed)))
        chosen = np.zeros(queries.n_queries, np.bool_)
        chosen[rng.permutation(queries.n_queries)[: math.ceil(share * queries.n_queries)]] = True
        return np.repeat(chosen, queries.sizes)


def answer(
    call: Call, gradients: Gradients, positions: Positions | None, objective: Objective
) -> tuple[AnyArray, AnyArray]:
    """Return gradient and Hessian diagonal at the scores of a call, with biases of positions if there are any."""
    if positions is None:
        return gradients(call.scores)
    made = partial(Debiased, gradients, positions, objective.position_bias)
    return of_training(call.owner, call.scores, (objective, positions), made)(call.scores)


def _least(s: float | FloatArray) -> FloatArray:
    """Return 1 / s as an array, of one entry where all are the same."""
    least = 1 / np.atleast_1d(np.asarray(s, dtype=np.float64))
    return least[:1] if least.size and (least == least[0]).all() else least


def automatic_scale(bound: BoundLoss) -> float:
    """Return the factor that makes the mean of the positive diagonal entries 1 at scores of 0; 1 if there are none."""
    return scale_from_sums(*curvature_sums(bound))


def curvature_sums(bound: BoundLoss) -> tuple[float, int]:
    """Return the sum and the number of positive diagonal entries at scores of 0."""
    _, diag = bound.gradient_hessian(np.zeros(bound.queries.n_documents))
    positive = diag[diag > 0]
    return float(positive.sum()), positive.size


def scale_from_sums(total: float, count: int) -> float:
    """Return count / total, to 24 bits: sums over parts of the data round otherwise than over all."""
    if not count:
        return 1.0
    digits, exponent = np.frexp(count / total)
    return float(np.ldexp(np.float64(np.float32(digits)), exponent))


def is_true(value: object) -> bool:
    """Whether LightGBM takes a parameter for true."""
    return str(value).lower() in ("true", "1", "+")


def check_host(loss: Loss, call: Call) -> None:
    """Refuse or warn of host settings that would silently spoil the training, where they can be seen."""
    scores, owner = call.scores, call.owner
    if is_instance(owner, "lightgbm", "Dataset"):
        params = owner.params or {}  # type: ignore[attr-defined]
        if is_true(params.get("bagging_by_query", False)):
            raise ValueError(BAGGING_BY_QUERY)
    elif is_instance(owner, "xgboost", "DMatrix") and not loss.traits.shift_invariant:
        constant = float(scores[0]) if len(scores) else 0.0
        if constant != 0 and (scores == constant).all():
            warn(
                f"XGBoost starts from base_score={constant:g}, and {loss!r} depends on the level of the scores; set "
                "base_score=0 in the parameters"
            )
