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
from boostlist.boosters.binding import HostLists, bound_once, is_instance, read_call
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
        scores, lists = read_call(a, b, weight, group)

        def bind(lists: HostLists) -> BoundObjective:
            _check_host(self.loss, scores, lists.owner)
            return self.bind(lists)

        return bound_once(lists, self, bind)(scores)

    def bind(self, lists: HostLists) -> BoundObjective:
        """Bind the loss to a host's lists and find the scale."""
        queries, document_weight = lists.queries(), lists.document_weight()
        if document_weight is not None:
            queries = Queries.from_sizes(lists.labels, lists.sizes)
        bound = self.loss.bind(queries)
        scale = automatic_scale(bound) if self.scale == "auto" else float(self.scale)
        return BoundObjective(bound, scale, document_weight)

    def scaled(self, queries: Queries) -> Objective:
        """Return the objective with the scale that ``"auto"`` means for these queries."""
        return replace(self, scale=automatic_scale(self.loss.bind(queries))) if self.scale == "auto" else self


@dataclass(frozen=True, eq=False)
class BoundObjective:
    """An objective bound to a host's data: scores -> gradient and floored Hessian diagonal."""

    bound: BoundLoss
    scale: float
    document_weight: FloatArray | None

    def __call__(self, scores: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return gradient and Hessian diagonal in float32."""
        gradient, hessian = self.bound.gradient_hessian(scores)
        factor = self.scale if self.document_weight is None else self.scale * self.document_weight
        gradient *= factor
        hessian *= factor
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


def _check_host(loss: Loss, scores: AnyArray, owner: object) -> None:
    """Refuse or warn of host settings that would silently spoil the training, where they can be seen."""
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
