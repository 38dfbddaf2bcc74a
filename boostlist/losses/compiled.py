"""Losses as compiled loops: the tables that they read, and the driver that runs them over queries on all threads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from boostlist.arrays import Room, frozen
from boostlist.checks import concerning
from boostlist.losses.base import BoundLoss, Curvature, Loss, Traits
from boostlist.losses.difference_sums import WIDE, double_loop_time, extremes
from boostlist.losses.long_lists import Part
from boostlist.parallel import get_threads, over_queries
from boostlist.queries import check_queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from boostlist._typing import FloatArray, IntArray
    from boostlist.queries import Queries


class Lists(NamedTuple):
    """The queries that a loop is to handle, each q in `query`: its rows are ``start[q]:start[q + 1]``.

    None has more than `longest` documents, so none has more grades.
    """

    query: IntArray
    start: IntArray
    weight: FloatArray
    longest: int


class Outputs(NamedTuple):
    """What a loop writes: ``value[q]`` without, gradient and diag of the rows of q with the weight of q."""

    value: FloatArray
    gradient: FloatArray
    diag: FloatArray


class Stages(NamedTuple):
    """X, with the rows from query `first` on, and what a stage loop makes of it.

    S has a row for each row of X; query q owns the rows ``start[q]:start[q + 1]`` of A and B, less ``start[first]``.
    """

    first: int
    start: IntArray
    X: FloatArray
    S: FloatArray
    A: FloatArray
    B: FloatArray


class LongTables(Protocol):
    """What the loops for long lists read.

    Attributes
    ----------
    pair
        By query: what one of n^2 pairs takes in the double loop, in ns.
    density
        By query: how many boxes a difference of 1 in scores takes up.
    """

    @property
    def pair(self) -> FloatArray: ...  # noqa: D102

    @property
    def density(self) -> FloatArray: ...  # noqa: D102

    def time(self, query: IntArray, n: Any, boxes: Any) -> Any:
        """Return what the sums of some queries take, in ns: of n documents whose scores lie in so many boxes."""


class LongLoops(NamedTuple):
    """Loops for long lists, tried before the others, and the tables that they read.

    They are called with a `Part` where `CompiledLoss.loop` and `CompiledLoss.hessp_loop` have `Lists`, and with one
    argument more: ``done``, by query, where they put True. What they leave is left to the others. Each step over all
    lists of a part is a compiled loop of its own: compiled into one, they would take as long to compile for every loss.
    """

    loop: Callable[..., None]
    hessp_loop: Callable[..., None] | None
    tables: LongTables


# Documents up to which a list is short for all losses.
_SHORT = 100
# Boxes between the lowest and the highest score of a list up to which all are taken to hold documents.
_NO_GAPS = 16

# Documents of a part, about: many share the calls of its loops, and what these work in stays in cache. There are at
# least so many parts, for threads, unless these would be small.
_TOGETHER, _PARTS, _SMALL = 49_152, 8, 16_384


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
        diag(D) less a sum of outer products of means over documents, as many for a query as `stage_start` says:

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

    def stage_start(self, tables: Any) -> IntArray:
        """Return where the rows of A and B of each query begin, for `stage_loop`: by default one for each level."""
        start: IntArray = tables.levels.start
        return start

    def long_loops(self, queries: Queries, tables: Any) -> LongLoops | None:
        """Return loops for long lists, if there are any that scale better."""
        return None

    def bind(self, queries: Queries) -> BoundLoss:
        """Compute the tables for these queries."""
        check_queries(queries)
        with concerning(type(self).__name__):
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
        queries = self.queries
        self._tables = _frozen_tables(loss.tables(queries))
        idle = np.zeros(queries.n_queries, np.bool_)
        idle[loss.idle(queries, self._tables)] = True
        active = np.flatnonzero(~idle)
        self._active = active
        self._active_rows = self._rows(active)
        self._room = Room(queries.n_documents)
        self._idle_rows = np.flatnonzero(np.repeat(idle, queries.sizes))
        sizes = queries.sizes[active]
        self._long_loops = loss.long_loops(queries, self._tables) if sizes.max(initial=0) > _SHORT else None
        # Lists that take sums wherever their scores lie in reason, and lists that take them where scores lie close.
        self._far = self._close = active[:0]
        if self._long_loops is not None:
            far, close = (self._sums_are_cheaper(active, boxes) for boxes in (_NO_GAPS, 1))
            self._far, self._close = active[far], active[close & ~far]
            self._density = self._long_loops.tables.density[self._close]
        self._far_parts, self._close_parts = list(self._cut(self._far)), list(self._cut(self._close))

    def _sums_are_cheaper(self, query: IntArray, boxes: Any) -> NDArray[np.bool_]:
        """Tell for which queries a double loop takes longer than sums do, if scores lie in so many boxes."""
        assert self._long_loops is not None
        n, tables = self.queries.sizes[query], self._long_loops.tables
        return np.asarray(double_loop_time(tables.pair[query], n) >= tables.time(query, n, boxes))

    def _lists(self, query: IntArray) -> Lists:
        start = self.queries.start
        longest = int((start[query + 1] - start[query]).max(initial=0))
        return Lists(frozen(query), start, self.queries.weight, longest)

    def _cut(self, query: IntArray) -> Iterator[Part]:
        """Yield parts of some queries; a wide list is one of its own."""
        rows = self._rows(query)
        wide = np.diff(rows) >= WIDE
        apart = np.diff(rows[:-1] // min(_TOGETHER, max(_SMALL, rows[-1] // _PARTS))) > 0
        cuts = np.flatnonzero(apart | wide[1:] | wide[:-1]) + 1
        return (Part.of(self._lists(each), self.queries.levels) for each in np.split(query, cuts) if each.size)

    def _parts(self, f: FloatArray) -> list[Part]:
        """Return parts of the lists that take sums, as far as the spread of their scores tells."""
        query, start = self._close, self.queries.start
        if not query.size:
            return self._far_parts
        low, high = extremes(np.stack((start[query], start[query + 1]), axis=1), f)
        with np.errstate(over="ignore"):
            boxes = 1 + (high - low) * self._density
            chosen = self._sums_are_cheaper(query, np.minimum(boxes, _NO_GAPS))
        return [*self._far_parts, *(self._close_parts if chosen.all() else self._cut(query[chosen]))]

    def _rows(self, query: IntArray) -> IntArray:
        """Return where the rows of some queries would begin, were there no others."""
        return np.concatenate(([0], np.cumsum(self.queries.sizes[query])))

    def _over(self, query: IntArray, loop: Callable[..., None], *args: Any) -> None:
        """Run a loop over some queries, on all threads."""
        rows = self._active_rows if query is self._active else self._rows(query)
        over_queries(lambda lo, hi: loop(self._lists(query[lo:hi]), *args), rows)

    def _over_active(
        self, loop: Callable[..., None], long_loop: Callable[..., None] | None, f: FloatArray, *args: Any
    ) -> None:
        """Run the loop for long lists over these, and the other over all that are left."""
        query = self._active
        if long_loop is not None and self._long_loops is not None:
            tables, done = self._long_loops.tables, np.zeros(self.queries.n_queries, np.bool_)

            def run(parts: Sequence[Part]) -> None:
                for part in parts:
                    long_loop(part, f, *args, tables, done)

            parts = self._parts(f)
            wide = [part for part in parts if part.wide]
            if len(wide) < get_threads():  # else each of them has one thread
                run(wide)
                parts = [part for part in parts if not part.wide]
            if parts:
                over_queries(lambda lo, hi: run(parts[lo:hi]), np.cumsum([0, *(part.size for part in parts)]))
            query = query[~done[query]]
        if query.size:
            self._over(query, loop, f, *args, self._tables)

    def evaluate(self, f: FloatArray, need: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        out = Outputs(np.zeros(self.queries.n_queries), self._room.empty(), self._room.empty())
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
        scores, stage = self.queries.scores(f), frozen(self.loss.stage_start(self._tables))

        def product(lo: int, hi: int, X: FloatArray) -> FloatArray:
            query = self._active[slice(*np.searchsorted(self._active, (lo, hi)))]
            S = np.empty_like(X) if query.size == hi - lo else np.zeros_like(X)
            A, B = np.zeros((2, stage[hi] - stage[lo], X.shape[1]))
            self._over(query, loop, scores, Stages(lo, stage, frozen(X), S, A, B), self._tables)
            cross: FloatArray = A.T @ B
            return np.asarray(S.T @ S - cross - cross.T)

        return product
