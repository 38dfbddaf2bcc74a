"""Was the ranker that made a log better than the one that is learned from it? A check on queries that are held out.

Clicks at face value carry on the order in which documents were shown: the first was clicked on since it was seen.
Biases of positions take that order out of the scores. Where whoever ranked the lists was good, it is knowledge that a
log has no other source of, above all on documents that were never shown, and a debiased ranker is worse for the lack of
it (docs/clicks.md). So the two are held against each other on the log itself:

1. Lists that have a document in common, known by its features, are of one query. The queries are cut in two halves, and
   rankers trained on either half score the other. They are trained on the upper half of each list, by the biases, and
   score all of it: as a log has not shown most documents that a ranker will meet.
2. Clicks are freed of bias. With scores f and biases b of the whole training, click rates within a list are taken to be
   in proportion to exp(beta (f + b)), with beta at the maximum of the likelihood

       sum over lists of  sum_i c_i beta (f_i + b_i) - (sum_i c_i) log sum_i exp(beta (f_i + b_i)),

   so that a document is looked at with a probability in proportion to p = exp(beta b).
3. Two orders have a DCG, sum of c_i / p_i / log2(1 + rank): that of the held-out scores, and that of the log, by the
   bias which a document had in the mean over the log, since some lists may have been in random order.

There is a warning unless the learned order is better by more than one standard error, over queries, of the difference:
where the two cannot be told apart, clicks at face value are the smaller risk. Nothing here is tuned; what it costs is
half a training, in two parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.checks import warn
from boostlist.metrics import DCG
from boostlist.propensities import CLIP
from boostlist.queries import Queries

if TYPE_CHECKING:
    from boostlist.positions import Positions

_LEAST_HALF = 0.25  # of the lists; with less, as where all lists have documents in common, there is no check
_STEPS, _TOLERANCE = 50, 1e-6
_DCG = DCG(gain="linear", ties="average")

_off: ContextVar[bool] = ContextVar("_off", default=False)


@contextmanager
def unchecked() -> Iterator[None]:
    """Check no log while the block lasts, in this thread."""
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)


class Orders(NamedTuple):
    """DCG by clicks freed of bias, in units of their sum: of what was learned, on held-out queries, and of the log.

    With the standard error of the difference, over queries.
    """

    learned: float
    logged: float
    error: float


def check_log(
    ranker: Any,
    X: Any,
    queries: Queries,
    positions: Positions,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    **options: FloatArray | None,
) -> None:
    """Warn if a log shows documents in a better order than rankers that are learned from it find on held-out queries.

    Parameters
    ----------
    ranker
        A ranker, fitted with positions.
    X, queries, positions
        What it was fitted to: features, lists and positions.
    parameters
        Parameters in which the rankers of the halves differ from it.
    **options
        Further arguments of ``fit`` with an entry for each row, or None; scores are added to its ``init_score``.
    """
    if _off.get():
        return
    document = documents(X)
    query = same_query(document, queries)
    half = np.random.default_rng(0).permutation(query.max(initial=0) + 1)[query] % 2 == 1
    if not _LEAST_HALF <= half.mean() <= 1 - _LEAST_HALF:
        return
    base = options.get("init_score")
    base = np.zeros(queries.n_documents) if base is None else base
    held_out = base.copy()
    lists = np.repeat(np.arange(queries.n_queries), queries.sizes)
    bias = np.asarray(ranker.position_bias_, np.float64)[positions.codes]
    upper = _upper(bias, queries)
    labels = np.empty(len(positions.labels), object)
    labels[:] = positions.labels
    for side in (False, True):
        rows, others = np.flatnonzero((half[lists] == side) & upper), np.flatnonzero(half[lists] != side)
        y = {name: label[rows] for name, label in queries.named.items()} or queries.labels[rows]
        given = {name: value[rows] for name, value in options.items() if value is not None}
        with unchecked():
            part = clone(ranker).set_params(**parameters)
            part.fit(_safe_indexing(X, rows), y, lists[rows], position=labels[positions.codes[rows]], **given)
        held_out[others] += part.predict(_safe_indexing(X, others))
    found = compared(queries, query, held_out, ranker.predict(X) + base, bias, document)
    if found.learned - found.logged <= found.error:
        warn(
            "the ranker that made this log was as good as what is learned from it with position=, or better: on "
            f"queries held out, and by clicks freed of bias, the log's order has a DCG of {found.logged:.3f} and the "
            f"debiased model's {found.learned:.3f} (+- {found.error:.3f}). That order is knowledge, which biases of "
            "positions take away: fit without position=, or on top of that ranker's scores, init_score=; or compare on "
            "judged queries (docs/clicks.md)"
        )


def _upper(bias: FloatArray, queries: Queries) -> AnyArray:
    """Return whether each document is in the half of its list, rounded up, whose positions have the largest bias."""
    lists = np.repeat(np.arange(queries.n_queries), queries.sizes)
    rank = np.empty(len(bias), np.int64)
    rank[np.lexsort((-bias, lists))] = np.arange(len(bias)) - np.repeat(queries.start[:-1], queries.sizes)
    return 2 * rank < np.repeat(queries.sizes, queries.sizes)


def compared(
    queries: Queries, query: IntArray, held_out: FloatArray, scores: FloatArray, bias: FloatArray, document: IntArray
) -> Orders:
    """Return what two orders are worth.

    Parameters
    ----------
    queries, query
        The lists, with clicks as labels, and the number of the query that each of them is of.
    held_out, scores
        Scores of rankers that have not seen the query, and of one that has.
    bias
        Bias of each document's position, that of the latter ranker.
    document
        The same number wherever the same document is shown.
    """
    looked_at = np.exp(_rate(queries, scores + bias) * (bias - bias.max(initial=-np.inf)))
    weighed = Queries.from_sizes(queries.labels / np.maximum(looked_at, CLIP), queries.sizes, queries.weight)
    usual = (np.bincount(document, bias) / np.bincount(document))[document]
    total = float(np.repeat(weighed.weight, weighed.sizes) @ weighed.labels)
    orders = [np.bincount(query, weighed.weight * _DCG.per_query(f, weighed)) for f in (held_out, usual)]
    gain = orders[0] - orders[1]
    learned, logged, error = (float(each) / total for each in (*map(np.sum, orders), gain.std() * len(gain) ** 0.5))
    return Orders(learned, logged, error)


def _rate(queries: Queries, z: FloatArray) -> float:
    """Return beta >= 0 at which exp(beta z) is in proportion to click rates within lists, by Newton's method."""
    beta, first = 1.0, queries.start[:-1]
    lists = np.repeat(np.arange(queries.n_queries), queries.sizes)
    clicks = np.add.reduceat(queries.labels, first) * queries.weight
    reached = np.repeat(queries.weight, queries.sizes) * queries.labels @ z
    for _ in range(_STEPS):
        p = np.exp(beta * z - np.maximum.reduceat(beta * z, first)[lists])
        p /= np.add.reduceat(p, first)[lists]
        mean = np.add.reduceat(p * z, first)
        curvature = clicks @ (np.add.reduceat(p * z * z, first) - mean**2)
        step = (reached - clicks @ mean) / max(curvature, np.finfo(float).tiny)
        beta = max(beta + np.clip(step, -1, 1), 0.0)
        if abs(step) <= _TOLERANCE:
            break
    return float(beta)


def same_query(document: IntArray, queries: Queries) -> IntArray:
    """Return a number for each list, the same for lists that have a document in common.

    Documents that stand twice in one list have features that say nothing, and do not count.
    """
    lists = np.repeat(np.arange(queries.n_queries), queries.sizes)
    shown = sparse.csr_array((np.ones(len(lists)), (lists, document)))
    shown.sum_duplicates()
    links = shown[:, shown.max(axis=0).toarray().ravel() == 1]
    both = sparse.block_array([[None, links], [links.T, None]])
    _, part = sparse.csgraph.connected_components(both, directed=False)
    return np.asarray(np.unique(part[: queries.n_queries], return_inverse=True)[1], np.int64)


def documents(X: Any) -> IntArray:
    """Return the same number for equal rows: sums of the bits of their entries, with factors, are the same."""
    factor = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    if hasattr(X, "indptr"):
        total = np.append(np.uint64(0), np.cumsum(_bits(X.data) * factor[X.indices], dtype=np.uint64))
        sums = total[X.indptr[1:]] - total[X.indptr[:-1]]
    else:
        sums = np.zeros(X.shape[0], np.uint64)
        for j in range(X.shape[1]):
            sums += _bits(_column(X, j)) * factor[j]
    return np.asarray(np.unique(sums, return_inverse=True)[1], np.int64)


def _column(X: Any, j: int) -> Any:
    """Return a column as numbers, categories as their codes."""
    if not hasattr(X, "iloc"):
        return X[:, j]
    column = X.iloc[:, j]
    return column.cat.codes if str(column.dtype) == "category" else column


def _bits(values: Any) -> AnyArray:
    return np.ascontiguousarray(values, np.float64).view(np.uint64)
