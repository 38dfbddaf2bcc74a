"""The seam: a loss is bound to queries, and what is bound gives values and derivatives.

A loss is a frozen dataclass of its parameters. `Loss.bind` does all work that depends on labels alone and returns a
`BoundLoss`; boosters, Newton trainers, tests and benchmarks know nothing else of a loss.

Notation, in every file of this folder: f are the scores of one query's documents, y their grades, H the Hessian of the
query's loss in f. The loss of a data set is the sum over queries of query weight x query loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from boostlist import plugins
from boostlist.checks import check_call

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist._typing import AnyArray, FloatArray
    from boostlist.boosters.objective import Objective
    from boostlist.queries import Queries

Curvature = Callable[[int, int, "FloatArray"], "FloatArray"]
Hessian = Literal["loss", "unit"]

VALUE, GRADIENT, DIAG = 1, 2, 4
"""What a bound loss is asked for, or-ed together; it may compute more where that costs nothing."""

# From cheap to dear; what is not among them may be worse.
_COSTS = ("n", "n G", "n log n", "n k", "n^2")


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What a loss promises; tests hold it to this.

    Attributes
    ----------
    diag
        What `BoundLoss.gradient_hessian` returns beside the gradient: the ``"exact"`` diagonal of H; a ``"majorizer"``:
        a diagonal matrix D with D - H positive semi-definite; or a positive ``"heuristic"``.
    convex
        Whether every query's loss is convex in f.
    shift_invariant
        Whether adding a constant to all scores of a query changes nothing.
    hessp
        Whether `BoundLoss.hessp` is offered.
    conservative
        Whether the gradient is that of a fixed function, the value. It is not where weights follow the current order.
    sampled
        Whether gradient and value are means over random draws, which are a pure function of scores and seed. Invariance
        under shifts and under another order of rows then holds on average over the draws.
    step
        Largest Newton step for which the diagonal can be trusted, in units of the scores unless `Loss.steps` has
        another: boosters raise the diagonal to |gradient| / step. Infinite where no bound is needed.
    cost
        Cost of a call for a query of n documents with G grades, after binding.
    """

    diag: Literal["exact", "majorizer", "heuristic"] = "exact"
    convex: bool = True
    shift_invariant: bool = True
    hessp: bool = False
    conservative: bool = True
    sampled: bool = False
    step: float = np.inf
    cost: str = "n"


class BoundLoss(ABC):
    """A loss bound to queries: value, gradient and curvature as functions of the scores, all in float64.

    Attributes
    ----------
    loss
        The loss that was bound.
    queries
        What it was bound to, with the label of the loss as the main one.
    """

    def __init__(self, loss: Loss, queries: Queries) -> None:
        self.loss = loss
        self.queries = queries.labelled(loss.label)

    @property
    def terms(self) -> tuple[tuple[float, BoundLoss], ...]:
        """Factor and bound loss of each term, where this is a sum; else this alone."""
        return ((1.0, self),)

    @abstractmethod
    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return each query's loss without its weight, gradient and diagonal; what is not needed may be anything."""

    def hessp(self, f: ArrayLike) -> Callable[[ArrayLike], FloatArray]:
        """Return the function v -> H v at the scores f; for a loss whose traits declare it."""
        raise NotImplementedError(f"{self.loss!r} offers no Hessian-vector product")

    def curvature(self, f: ArrayLike) -> Curvature | None:
        """Return the function (lo, hi, X) -> X'HX at the scores f, or None if the loss offers products H v only.

        X holds the rows of the queries lo <= q < hi, float64 and C-contiguous; only their part of H counts.
        """
        return None

    def per_query(self, f: ArrayLike) -> FloatArray:
        """Return the loss of each query, query weights not applied."""
        return self.evaluate(self.queries.scores(f), VALUE)[0]

    def value(self, f: ArrayLike) -> float:
        """Return the sum over queries of query weight x query loss."""
        return self._total(self.per_query(f))

    def value_gradient(self, f: ArrayLike) -> tuple[float, FloatArray]:
        """Return the value and its gradient in f."""
        value, gradient, _ = self.evaluate(self.queries.scores(f), VALUE | GRADIENT)
        return self._total(value), gradient

    def gradient_hessian(self, f: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the diagonal that `Traits.diag` describes, which has no positive floor here."""
        _, gradient, diag = self.evaluate(self.queries.scores(f), GRADIENT | DIAG)
        return gradient, diag

    def _total(self, per_query: FloatArray) -> float:
        # A pairwise sum in fixed order: a BLAS dot product may round differently with another number of threads.
        return float(np.sum(self.queries.weight * per_query))


class Shifted(BoundLoss):
    """A bound loss of scores that are added to given ones.

    Parameters
    ----------
    bound
        The loss.
    start
        The score of each document that is added to.
    """

    def __init__(self, bound: BoundLoss, start: FloatArray) -> None:
        self.loss, self.queries = bound.loss, bound.queries
        self.bound, self.start = bound, start

    def _moved(self, f: ArrayLike) -> FloatArray:
        return self.queries.scores(np.asarray(f) + self.start)

    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:  # noqa: D102
        return self.bound.evaluate(self._moved(f), need)

    def hessp(self, f: ArrayLike) -> Callable[[ArrayLike], FloatArray]:  # noqa: D102
        return self.bound.hessp(self._moved(f))

    def curvature(self, f: ArrayLike) -> Curvature | None:  # noqa: D102
        return self.bound.curvature(self._moved(f))


@dataclass(frozen=True, kw_only=True)
class Loss(ABC):
    """Base of all losses: a frozen dataclass of keyword parameters, hashable, picklable, and callable by the hosts.

    The losses here are `CompiledLoss` es. A subclass of `Loss` itself with `traits` and `bind` works everywhere too.

    Parameters
    ----------
    label
        Name of the label that the loss looks at, where documents have several (docs/several_labels.md); None for the
        main one.

    Attributes
    ----------
    family
        Heading under which tables list the loss.
    """

    family: ClassVar[str] = "others"

    label: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # or `dataclass` would write another

    def __repr__(self) -> str:
        """Return the call that makes the loss; the label is shown where there is one."""
        names = [field.name for field in fields(self) if field.name != "label"] + ["label"] * (self.label is not None)
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Make a loss of parameters by name; a host that was given the class is told so."""
        if len(args) > 1:  # scores and data
            raise TypeError(
                f"{cls.__name__} was called like a loss, but is the class: write {cls.__name__}(), with its parameters "
                "by name"
            )
        check_call(cls, args, parameters)
        return super().__new__(cls)

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What the loss promises."""

    @abstractmethod
    def bind(self, queries: Queries) -> BoundLoss:
        """Do the label-only work for these queries, and return value and derivatives as functions of scores."""

    def steps(self, queries: Queries) -> float | FloatArray:
        """Return the largest Newton step, for all documents or for each, in units of the scores."""
        return self.traits.step

    def by_label(self) -> dict[str | None, Loss]:
        """Return the losses whose sum this is, one for each label; None is the main label."""
        return {self.label: self}

    def with_grades(self, grades: tuple[float, ...], label: str | None = None) -> Loss:
        """Return the loss with the set of grades of its label, if it has a parameter ``grades`` that is None.

        Such a loss takes the labels of what it is bound to for that set: where the data is bound in parts, the set of
        all of them must be given first.
        """
        known = self.label == label and any(field.name == "grades" for field in fields(self))
        return replace(self, grades=grades) if known and self.grades is None else self  # type: ignore[attr-defined,call-arg]

    def objective(
        self,
        scale: float | Literal["auto"] = "auto",
        *,
        step: float | Literal["auto"] = "auto",
        hessian: Hessian = "loss",
        subsample_queries: float = 1.0,
        seed: int = 0,
        position_bias: Any = None,
    ) -> Objective:
        """Return this loss as an objective for LightGBM and XGBoost with chosen settings.

        Parameters
        ----------
        scale
            Factor on gradient and Hessian. It changes no Newton step, but decides how the hosts' ``lambda`` and minimal
            Hessian in a leaf bite. ``"auto"`` makes the mean of the positive diagonal entries 1 at scores of 0, as for
            squared error, so that the hosts' default parameters suit.
        step
            Largest step of a leaf before the learning rate, in units of the scores; in a sum it holds for every term.
            ``inf`` bounds nothing. ``"auto"`` is what the loss declares, `Traits.step`.
        hessian
            ``"loss"``: Newton steps, with the diagonal that the loss has. ``"unit"``: functional gradient descent, a
            leaf moves by the learning rate times its mean gradient, times the scale; no step is bounded.
        subsample_queries
            Share of the queries that each round sees.
        seed
            Seed of these samples.
        position_bias
            How biases of positions are learned where the data has positions, a `boostlist.boosters.PositionBias`; or
            biases by position to start from, a mapping or a series.
        """
        return plugins.objective(
            self,
            scale=scale,
            step=step,
            hessian=hessian,
            subsample_queries=subsample_queries,
            seed=seed,
            position_bias=position_bias,
        )

    def __call__(self, a: Any, b: Any, weight: Any = None, group: Any = None) -> tuple[AnyArray, AnyArray]:
        """Serve as a custom objective: ``(preds, Dataset)``, ``(preds, DMatrix)`` or ``(y, preds, weight, group)``."""
        return self.objective()(a, b, weight, group)

    def __add__(self, other: Loss) -> Sum:
        return Sum.of((1.0, self), (1.0, other)) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, factor: float) -> Sum:
        return Sum.of((factor, self)) if isinstance(factor, int | float | np.number) else NotImplemented

    __rmul__ = __mul__

    def __radd__(self, other: Literal[0]) -> Loss:
        """Make ``sum([loss, ...])`` work, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __truediv__(self, divisor: float) -> Sum:
        return self * (1 / divisor) if isinstance(divisor, int | float | np.number) else NotImplemented


@dataclass(frozen=True, repr=False)
class Sum(Loss):
    """A weighted sum of losses, which is a loss like any other: ``CsListMLE() + 0.3 * Pointwise()``.

    Value, gradient, diagonal and Hessian-vector product add. It is scaled as a whole when it serves as an objective.

    Parameters
    ----------
    terms
        Pairs of a factor > 0 and a loss.
    """

    terms: tuple[tuple[float, Loss], ...]

    def __post_init__(self) -> None:
        if self.label is not None:
            raise ValueError(f"give the label {self.label!r} to the terms of the sum")
        for factor, loss in self.terms:
            if not (np.isfinite(factor) and factor > 0):
                raise ValueError(f"the factor of {loss!r} is {factor}; it must be finite and > 0")

    @classmethod
    def of(cls, *terms: tuple[float, Loss]) -> Sum:
        """Make a sum, with the terms of sums among the terms spread out."""
        flat: list[tuple[float, Loss]] = []
        for factor, loss in terms:
            inner = loss.terms if isinstance(loss, Sum) else ((1.0, loss),)
            flat += [(float(factor) * f, term) for f, term in inner]
        return cls(terms=tuple(flat))

    def __repr__(self) -> str:
        return " + ".join(f"{loss!r}" if factor == 1 else f"{factor:g} * {loss!r}" for factor, loss in self.terms)

    @property
    def traits(self) -> Traits:
        """What all terms promise; an exact diagonal and a majorizer add up to neither."""
        traits = [loss.traits for _, loss in self.terms]
        kinds = {t.diag for t in traits}
        return Traits(
            diag=kinds.pop() if len(kinds) == 1 else "heuristic",
            convex=all(t.convex for t in traits),
            shift_invariant=all(t.shift_invariant for t in traits),
            hessp=all(t.hessp for t in traits),
            conservative=all(t.conservative for t in traits),
            sampled=any(t.sampled for t in traits),
            step=min(t.step for t in traits),
            cost=max((t.cost for t in traits), key=lambda cost: _COSTS.index(cost) if cost in _COSTS else len(_COSTS)),
        )

    def by_label(self) -> dict[str | None, Loss]:
        """Return the sum of the terms of each label."""
        labels = dict.fromkeys(loss.label for _, loss in self.terms)
        if len(labels) == 1:
            return dict.fromkeys(labels, self)
        return {label: Sum.of(*(term for term in self.terms if term[1].label == label)) for label in labels}

    def with_grades(self, grades: tuple[float, ...], label: str | None = None) -> Sum:
        """Return the sum with this set of grades in every term of the label that has one and was given none."""
        return Sum(terms=tuple((factor, loss.with_grades(grades, label)) for factor, loss in self.terms))

    def bind(self, queries: Queries) -> BoundLoss:
        """Bind every term."""
        return BoundSum.of(*((factor, term.bind(queries)) for factor, term in self.terms))


class BoundSum(BoundLoss):
    """A sum of losses that are bound to the same lists, if by different labels; make one with `BoundSum.of`."""

    def __init__(self, terms: tuple[tuple[float, BoundLoss], ...]) -> None:
        super().__init__(Sum(terms=tuple((factor, term.loss) for factor, term in terms)), terms[0][1].queries)
        self._terms = terms

    @classmethod
    def of(cls, *terms: tuple[float, BoundLoss]) -> BoundSum:
        """Make a sum, with the terms of sums among the terms spread out."""
        return cls(tuple((float(factor) * f, inner) for factor, term in terms for f, inner in term.terms))

    @property
    def terms(self) -> tuple[tuple[float, BoundLoss], ...]:
        """Factor and bound loss of each term."""
        return self._terms

    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:  # noqa: D102
        total = tuple(np.zeros(n) for n in (self.queries.n_queries, f.size, f.size))
        for factor, term in self._terms:
            for asked, out, part in zip((VALUE, GRADIENT, DIAG), total, term.evaluate(f, need), strict=True):
                if need & asked:
                    out += factor * part  # not in place: `part` may be the term's own
        return total[0], total[1], total[2]

    def hessp(self, f: ArrayLike) -> Callable[[ArrayLike], FloatArray]:  # noqa: D102
        products = [(factor, term.hessp(f)) for factor, term in self._terms]
        return lambda v: reduce(np.add, (factor * product(v) for factor, product in products))

    def curvature(self, f: ArrayLike) -> Curvature | None:  # noqa: D102
        parts = [(factor, term.curvature(f)) for factor, term in self._terms]
        known = [(factor, part) for factor, part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return lambda lo, hi, X: reduce(np.add, (factor * part(lo, hi, X) for factor, part in known))
