"""A loss as an objective of LightGBM and XGBoost: scale, document weights, and a positive floor under the Hessian.

Scale. Both hosts hold the Hessians of a leaf against fixed thresholds (``min_sum_hessian_in_leaf`` 1e-3 in LightGBM,
``min_child_weight`` 1 and ``lambda`` 1 in XGBoost). A loss divided by DCG or list length lies far below these and would
grow no tree. So the loss is multiplied by a constant, found when binding, such that the mean of the positive diagonal
entries at scores of 0 is 1, which is what squared error has.

Weights. Query weights multiply the query's loss. Weights that differ within a query multiply gradient and diagonal of
their document, as in the hosts' own ranking objectives; that is not the gradient of any function.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.boosters.binding import Call, bound_once, is_instance, read_call
from boostlist.boosters.lists import Lists
from boostlist.losses.base import BoundLoss, Loss
from boostlist.queries import Queries

# A document may have no curvature at all, and hosts divide by it: never less than this part of the mean.
_FLOOR = 1e-6


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A loss with a scale, callable by LightGBM and XGBoost; make one with `Loss.objective`.

    Parameters
    ----------
    loss
        The loss.
    scale
        Factor on gradient and Hessian, or ``"auto"``.
    """

    loss: Loss
    scale: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if self.scale != "auto" and not (np.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f'scale must be a finite number > 0 or "auto", got {self.scale}')

    def __call__(self, a: Any, b: Any, weight: Any = None, group: Any = None) -> tuple[AnyArray, AnyArray]:
        """Return gradient and Hessian diagonal in float32, as the hosts store them."""
        call = read_call(a, b, weight, group)

        def bind(lists: Lists) -> BoundObjective:
            _check_host(self.loss, call)
            return self.bind(lists.queries, lists.document_weight)

        return bound_once(call, self, bind)(call.scores)

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
        scale = automatic_scale(bound) if self.scale == "auto" else float(self.scale)
        return BoundObjective(replace(self, loss=bound.loss, scale=scale), bound, document_weight)


@dataclass(frozen=True, eq=False)
class BoundObjective:
    """An objective bound to its data: scores -> gradient and floored Hessian diagonal.

    Attributes
    ----------
    objective
        What was bound, with its scale as a number.
    bound, document_weight
        The bound loss, and factors on gradient and diagonal of each document or None.
    """

    objective: Objective
    bound: BoundLoss
    document_weight: FloatArray | None

    def __call__(self, scores: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return gradient and Hessian diagonal in float32."""
        gradient, hessian = self.bound.gradient_hessian(scores)
        factor: Any = self.objective.scale
        if self.document_weight is not None:
            factor = factor * self.document_weight
        gradient, hessian = factor * gradient, factor * hessian
        mean = hessian.mean() if hessian.size else 0.0
        np.maximum(hessian, _FLOOR * mean if mean > 0 else 1.0, out=hessian)
        return gradient.astype(np.float32), hessian.astype(np.float32)


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


def _check_host(loss: Loss, call: Call) -> None:
    """Refuse or warn of host settings that would silently spoil the training, where they can be seen."""
    scores, owner = call.scores, call.owner
    if is_instance(owner, "lightgbm", "Dataset"):
        params = owner.params or {}  # type: ignore[attr-defined]
        if str(params.get("bagging_by_query", False)).lower() in ("true", "1"):
            raise ValueError(
                "LightGBM ignores bagging_by_query with a custom objective and would bag single documents; remove it, "
                "or use bagging_fraction alone if bagging documents is what you want"
            )
    elif is_instance(owner, "xgboost", "DMatrix") and not loss.traits.shift_invariant:
        constant = float(scores[0]) if len(scores) else 0.0
        if constant != 0 and (scores == constant).all():
            warnings.warn(
                f"XGBoost starts from base_score={constant:g}, and {loss!r} depends on the level of the scores; set "
                "base_score=0 in the parameters",
                stacklevel=4,
            )
