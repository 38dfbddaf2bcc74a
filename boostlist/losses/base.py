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
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from boostlist import plugins
from boostlist.arrays import frozen
from boostlist.parallel import over_queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist._typing import AnyArray, FloatArray, IntArray
    from boostlist.boosters.objective import Objective
    from boostlist.losses.combination import Sum
    from boostlist.queries import Queries

Curvature = Callable[[int, int, "FloatArray"], "FloatArray"]

VALUE, GRADIENT, DIAG = 1, 2, 4
"""What a loop is asked for, or-ed together; it may compute more where that costs nothing."""


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
        What it was bound to.
    """

    def __init__(self, loss: Loss, queries: Queries) -> None:
        self.loss = loss
        self.queries = queries

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


@dataclass(frozen=True, kw_only=True)
class Loss(ABC):
    """Base of all losses: a frozen dataclass of keyword parameters, hashable, picklable, and callable by the hosts.

    The losses here are `CompiledLoss` es. A subclass of `Loss` itself with `traits` and `bind` works everywhere too.
    """

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Make a loss of parameters by name; a host that was given the class is told so."""
        if len(args) > 1:  # scores and data
            raise TypeError(
                f"{cls.__name__} was called like a loss, but is the class: write {cls.__name__}(), with its parameters "
                "by name"
            )
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

    def with_grades(self, grades: tuple[float, ...]) -> Loss:
        """Return the loss with this label set, if it has one - a parameter ``grades`` - and none was given.

        Such a loss takes the labels of what it is bound to for the label set: where the data is bound in parts, the
        label set of all of them must be given first.
        """
        known = any(field.name == "grades" for field in fields(self))
        return replace(self, grades=grades) if known and self.grades is None else self  # type: ignore[attr-defined,call-arg]

    def objective(
        self,
        scale: float | Literal["auto"] = "auto",
        *,
        step: float | Literal["auto"] = "auto",
        subsample_queries: float = 1.0,
        seed: int = 0,
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
        subsample_queries
            Share of the queries that each round sees.
        seed
            Seed of these samples.
        """
        return plugins.objective(self, scale=scale, step=step, subsample_queries=subsample_queries, seed=seed)

    def __call__(self, a: Any, b: Any, weight: Any = None, group: Any = None) -> tuple[AnyArray, AnyArray]:
        """Serve as a custom objective: ``(preds, Dataset)``, ``(preds, DMatrix)`` or ``(y, preds, weight, group)``."""
        return self.objective()(a, b, weight, group)

    def __add__(self, other: Loss) -> Sum:
        from boostlist.losses.combination import Sum

        return Sum.of((1.0, self), (1.0, other)) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, factor: float) -> Sum:
        from boostlist.losses.combination import Sum

        return Sum.of((factor, self)) if isinstance(factor, int | float | np.number) else NotImplemented

    __rmul__ = __mul__

    def __radd__(self, other: Literal[0]) -> Loss:
        """Make ``sum([loss, ...])`` work, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __truediv__(self, divisor: float) -> Sum:
        return self * (1 / divisor) if isinstance(divisor, int | float | np.number) else NotImplemented


class Lists(NamedTuple):
    """The queries that a loop is to handle, each q in `query`: its rows are ``start[q]:start[q + 1]``."""

    query: IntArray
    start: IntArray
    weight: FloatArray


class Outputs(NamedTuple):
    """What a loop writes: ``value[q]`` without, gradient and diag of the rows of q with the weight of q."""

    value: FloatArray
    gradient: FloatArray
    diag: FloatArray


class Stages(NamedTuple):
    """X, with the rows from query `first` on, and what a stage loop makes of it.

    S has a row for each row of X; A and B have one for each level from that query on.
    """

    first: int
    X: FloatArray
    S: FloatArray
    A: FloatArray
    B: FloatArray


class LongLoops(NamedTuple):
    """Loops for long lists, tried before the others, and the tables that they read.

    They take one argument more than `CompiledLoss.loop` and `CompiledLoss.hessp_loop`: ``done``, by query, where they
    put True. What they leave is left to the others.
    """

    loop: Callable[..., None]
    hessp_loop: Callable[..., None] | None
    tables: Any


LONG = 128
"""Documents from which on a list is long, the shortest at which `LongLoops` were measured to be worth a look."""


@dataclass(frozen=True, kw_only=True)
class CompiledLoss(Loss):
    """A loss given by compiled loops over queries and the tables that they read.

    To add a loss, write its loop and a subclass with `traits`, `loop`, `tables` and, where it has true curvature,
    `hessp_loop`; docs/adding_a_loss.md shows it. Loops are class attributes wrapped in `staticmethod`.

    Attributes
    ----------
    loop
        ``loop(lists: Lists, f, need, out: Outputs, tables)``: write the outputs of the queries in ``lists.query``.
        ``out.value`` starts at 0. Only what `need` asks for must be right.
    hessp_loop
        ``hessp_loop(lists: Lists, f, v, out, tables)``: write H v, weights included; or None.
    stage_loop
        ``stage_loop(lists: Lists, f, stages: Stages, tables)``, or None. It makes X'HX two matrix products where H is
        diag(D) less an outer product for each of `tables.levels`, each of two means over documents:

            X'HX = S'S - A'B - B'A,   S = D^(1/2) X

        Since such an H takes constants to 0, the loop subtracts a query's first row from all its rows: features far
        from 0 keep their digits.
    """

    loop: ClassVar[Callable[..., None]]
    hessp_loop: ClassVar[Callable[..., None] | None] = None
    stage_loop: ClassVar[Callable[..., None] | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Traits that depend on parameters are known of instances only; tests hold these to their word.
        if isinstance(cls.traits, Traits) and cls.traits.hessp != (cls.hessp_loop is not None):
            raise TypeError(
                f"{cls.__name__} has traits.hessp={cls.traits.hessp} and hessp_loop={cls.hessp_loop}: declare "
                "Hessian-vector products if and only if there is a loop for them"
            )

    @abstractmethod
    def tables(self, queries: Queries) -> Any:
        """Return what the loops read besides scores, all that depends on labels and parameters alone: a NamedTuple."""

    def idle(self, queries: Queries, tables: Any) -> IntArray:
        """Return the queries that contribute nothing whatever the scores: loops are spared these."""
        return np.empty(0, np.int64)

    def long_loops(self, queries: Queries, tables: Any) -> LongLoops | None:
        """Return loops for lists of `LONG` documents or more, if there are any that scale better."""
        return None

    def bind(self, queries: Queries) -> BoundLoss:
        """Compute the tables for these queries."""
        return _BoundLoops(self, queries)


def _frozen_tables(tables: Any) -> Any:
    """Freeze the arrays of a NamedTuple, and of those within it."""
    if isinstance(tables, tuple):
        return type(tables)(*(_frozen_tables(table) for table in tables))
    return frozen(tables) if isinstance(tables, np.ndarray) else tables


class _BoundLoops(BoundLoss):
    """A compiled loss and its tables."""

    loss: CompiledLoss

    def __init__(self, loss: CompiledLoss, queries: Queries) -> None:
        super().__init__(loss, queries)
        self._tables = _frozen_tables(loss.tables(queries))
        idle = np.zeros(queries.n_queries, np.bool_)
        idle[loss.idle(queries, self._tables)] = True
        active = np.flatnonzero(~idle)
        self._active = Lists(frozen(active), queries.start, queries.weight)
        self._idle_rows = np.flatnonzero(np.repeat(idle, queries.sizes))
        long = active[queries.sizes[active] >= LONG]
        self._long_loops = loss.long_loops(queries, self._tables) if long.size else None
        self._long = long

    def _over(self, query: IntArray, loop: Callable[..., None], *args: Any) -> None:
        """Run a loop over some queries, on all threads."""
        over_queries(
            lambda lo, hi: loop(self._active._replace(query=frozen(query[lo:hi])), *args),
            np.concatenate(([0], np.cumsum(self.queries.sizes[query]))),
        )

    def _over_active(self, loop: Callable[..., None], long_loop: Callable[..., None] | None, *args: Any) -> None:
        """Run the loop for long lists over these, and the other over all that are left."""
        query = self._active.query
        if long_loop is not None and self._long_loops is not None:
            done = np.zeros(self.queries.n_queries, np.bool_)
            self._over(self._long, long_loop, *args, self._long_loops.tables, done)
            query = query[~done[query]]
        if query.size:
            self._over(query, loop, *args, self._tables)

    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        out = Outputs(np.zeros(self.queries.n_queries), np.empty_like(f), np.empty_like(f))
        out.gradient[self._idle_rows] = out.diag[self._idle_rows] = 0.0
        self._over_active(self.loss.loop, self._long_loops and self._long_loops.loop, frozen(f), need, out)
        return out

    def hessp(self, f: ArrayLike) -> Callable[[ArrayLike], FloatArray]:
        loop = self.loss.hessp_loop
        if loop is None:
            return super().hessp(f)
        scores = self.queries.scores(f)

        def product(v: ArrayLike) -> FloatArray:
            out = np.empty_like(scores)
            out[self._idle_rows] = 0.0
            long_loop = self._long_loops and self._long_loops.hessp_loop
            self._over_active(loop, long_loop, scores, self.queries.scores(v), out)
            return out

        return product

    def curvature(self, f: ArrayLike) -> Curvature | None:
        loop = self.loss.stage_loop
        if loop is None:
            return None
        scores, stage = self.queries.scores(f), self._tables.levels.start

        def product(lo: int, hi: int, X: FloatArray) -> FloatArray:
            S = np.zeros_like(X)
            A, B = np.zeros((2, stage[hi] - stage[lo], X.shape[1]))
            query = self._active.query[slice(*np.searchsorted(self._active.query, (lo, hi)))]
            self._over(query, loop, scores, Stages(lo, frozen(X), S, A, B), self._tables)
            cross: FloatArray = A.T @ B
            return np.asarray(S.T @ S - cross - cross.T)

        return product
