r"""Mapped: any loss of transformed scores, l(phi(f)), phi applied to each score.

Olinto, *Kernelized Cost-Sensitive Listwise Ranking* (2016), eq. 3.11 to 3.13, after Xia et al. (2008): ListMLE and
ListNet draw documents with probabilities phi(f_i) / sum phi(f_j), and RankCosine measures the angle to phi(f), with phi
a rising positive map. The losses here draw with e^f, so that for these the map is the logarithm of the thesis's phi:

    thesis                         ListMLE, ListNet (3.11, 3.12)    RankCosine (3.13)
    exponential e^(a x)            phi="linear", a=a
    sigmoid 1 / (1 + e^(-a x))     phi="log_sigmoid", a=a           phi="sigmoid", a=a
    probit, normal distribution    phi="log_probit"                 phi="probit"

(Its linear map a x + b has no logarithm where it is negative.) In eq. 3.12 and 3.13 phi is applied to the labels too:
that is ``ListNet(target="gain", gain=(phi(0), phi(1), ...))`` and ``RankCosine(psi="sigmoid")``. With P =
diag(phi'(f)), by the chain rule

    gradient = P g,   H = P H_l P + diag(g o phi''(f)),   g and H_l those of l at phi(f)

A majorizer D of H_l gives P D P + diag(g o phi''), a majorizer of H. A map that is bent makes a convex loss non-convex
and lets the level of the scores count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr

from boostlist.checks import check_choice, check_number
from boostlist.losses.base import DIAG, GRADIENT, BoundLoss, Curvature, Loss, Traits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist._typing import FloatArray
    from boostlist.queries import Queries

Phi = Literal["linear", "sigmoid", "probit", "log_sigmoid", "log_probit"]


class Transformed(NamedTuple):
    """A map at some points: its value, slope phi' and bend phi''."""

    value: FloatArray
    slope: FloatArray
    bend: FloatArray


def transform(phi: Phi, x: FloatArray) -> Transformed:
    """Return phi, phi' and phi'' at x, for a = 1."""
    if phi == "linear":
        return Transformed(x, np.ones_like(x), np.zeros_like(x))
    if phi == "sigmoid":
        value = expit(x)
        slope = value * expit(-x)
        return Transformed(value, slope, slope * (expit(-x) - value))
    if phi == "log_sigmoid":
        return Transformed(log_expit(x), expit(-x), -expit(x) * expit(-x))
    log_density = -0.5 * x * x - 0.5 * np.log(2 * np.pi)
    if phi == "probit":
        density = np.exp(log_density)
        return Transformed(ndtr(x), density, -x * density)
    # The ratio of density and distribution, which grows like -x where both vanish.
    slope = np.exp(log_density - log_ndtr(x))
    return Transformed(log_ndtr(x), slope, -slope * (x + slope))


@dataclass(frozen=True, kw_only=True)
class Mapped(Loss):
    """A loss of transformed scores phi(a f).

    Parameters
    ----------
    loss
        The loss of phi(a f).
    phi
        ``"linear"`` a f, ``"sigmoid"`` 1 / (1 + e^(-a f)), ``"probit"``, the normal distribution function at a f, or
        the logarithms ``"log_sigmoid"`` and ``"log_probit"`` of these.
    a
        Slope, > 0.

    Examples
    --------
    >>> from boostlist.losses import ListMLE, Mapped
    >>> loss = Mapped(ListMLE(), phi="log_sigmoid")  # drawn in proportion to 1 / (1 + e^-f)
    >>> loss.traits.convex
    False
    """

    loss: Loss = field(kw_only=False)
    phi: Phi = "sigmoid"
    a: float = 1.0

    def __post_init__(self) -> None:
        check_choice("phi", self.phi, Phi)
        check_number("a", self.a, above=True)
        labels = set(self.loss.by_label())
        if not {self.label} <= labels | {None} or len(labels) > 1:
            raise ValueError(
                f"give the label to the loss inside, and map losses of different labels one by one: {self!r}"
            )
        object.__setattr__(self, "label", labels.pop())

    @property
    def traits(self) -> Traits:
        """What the loss promises, with steps in units of a f; under a bent map neither convexity nor invariance."""
        traits = replace(self.loss.traits, step=self.loss.traits.step / self.a)
        return traits if self.phi == "linear" else replace(traits, convex=False, shift_invariant=False)

    def steps(self, queries: Queries) -> float | FloatArray:
        """Return the loss's own largest Newton step in units of the scores before the map."""
        return self.loss.steps(queries) / self.a

    def with_grades(self, grades: tuple[float, ...], label: str | None = None) -> Mapped:
        """Return the loss with this set of grades of a label, if it has one and none was given."""
        return replace(self, loss=self.loss.with_grades(grades, label))

    def bind(self, queries: Queries) -> BoundLoss:
        """Bind the loss of the transformed scores."""
        return _BoundMapped(self, self.loss.bind(queries))


class _BoundMapped(BoundLoss):
    loss: Mapped

    def __init__(self, loss: Mapped, inner: BoundLoss) -> None:
        super().__init__(loss, inner.queries)
        self._inner = inner

    def _transformed(self, f: ArrayLike) -> Transformed:
        a = self.loss.a
        at = transform(self.loss.phi, a * self.queries.scores(f))
        return Transformed(at.value, a * at.slope, a * a * at.bend)

    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        at = self._transformed(f)
        value, gradient, diag = self._inner.evaluate(at.value, need | GRADIENT if need & DIAG else need)
        if need & DIAG:
            diag = at.slope**2 * diag
            if self.loss.traits.diag != "heuristic":  # which has to stay positive
                diag = diag + gradient * at.bend
        return value, gradient * at.slope if need & GRADIENT else gradient, diag

    def hessp(self, f: ArrayLike) -> Callable[[ArrayLike], FloatArray]:
        if not self.loss.traits.hessp:
            return super().hessp(f)
        at = self._transformed(f)
        product = self._inner.hessp(at.value)
        bend = self._inner.value_gradient(at.value)[1] * at.bend
        return lambda v: at.slope * product(at.slope * np.asarray(v)) + bend * np.asarray(v)

    def curvature(self, f: ArrayLike) -> Curvature | None:
        at = self._transformed(f)
        inner = self._inner.curvature(at.value)
        if inner is None:
            return None
        bend = self._inner.value_gradient(at.value)[1] * at.bend
        start = self.queries.start

        def product(lo: int, hi: int, X: FloatArray) -> FloatArray:
            rows = slice(start[lo], start[hi])
            return inner(lo, hi, at.slope[rows, None] * X) + X.T @ (bend[rows, None] * X)

        return product
