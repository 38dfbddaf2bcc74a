"""Clicks simulated from graded data: what a user would have clicked on, so that the truth is known.

In each session a query is drawn, its documents are ranked by a logging ranker, or at random, and the first of them are
shown. With grade y and largest grade y_max a document that is looked at attracts a click with probability

    a = noise + (1 - noise) (2^y - 1) / (2^y_max - 1).

Whether it is looked at depends on its position k = 1, 2, ...:

- ``"position"``: with probability k^-eta, whatever else happens (position-based model; Joachims, Swaminathan, Schnabel,
  *Unbiased Learning-to-Rank with Biased Feedback*, WSDM 2017).
- ``"cascade"``: the user goes down the list, from position k to k + 1 with probability (k / (k + 1))^eta, and leaves
  with the first click (Craswell, Zoeter, Taylor, Ramsey, WSDM 2008, with patience). A document below a click was not
  seen.
- ``"trust"``: looked at as in ``"position"``, but clicked on because it stands high, too: of those looked at a document
  is clicked on with probability a (1 - (k + 1) / 100) + (1 - a) 0.65 / k, k counting up to 20 in the first and 10 in
  the second term (Vardasbi, Oosterhuis, de Rijke, CIKM 2020, after Agarwal et al., WWW 2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.arrays import frozen, vector
from boostlist.checks import check_choice, check_whole
from boostlist.datasets.data import RankingData

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ClickModel = Literal["position", "cascade", "trust"]

_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class ClickLog:
    """A log of sessions, and what only a simulation knows.

    Attributes
    ----------
    data
        A query a session, the documents in the order in which they were shown, clicks as labels 0 and 1, and their
        positions 1, 2, ...
    propensity
        Probability that each document was looked at; in the cascade, that nothing above it was clicked on either.
    document
        Row of each document in the data that the log was made of.
    """

    data: RankingData
    propensity: FloatArray
    document: IntArray


def simulate_clicks(
    data: RankingData,
    ranker: Any = None,
    *,
    sessions: int,
    model: ClickModel = "position",
    eta: float = 1.0,
    noise: float = 0.1,
    top: int | None = 10,
    random_share: float = 0.0,
    seed: int = 0,
) -> ClickLog:
    """Simulate what users click on; the models are at the top of this module.

    Parameters
    ----------
    data
        Graded data.
    ranker
        Who ranked the documents that were shown: a fitted ranker, or a score for each document. None shows them in
        random order.
    sessions
        Number of sessions. In each a query is drawn, with its weight if queries have any.
    model
        How users click.
    eta
        How fast attention falls with the position; at 0 everything is looked at.
    noise
        Probability of a click on a document of grade 0 that is looked at.
    top
        Number of documents shown; None shows all.
    random_share
        Share of the sessions in which documents are shown in random order.
    seed
        Same seed, same clicks.

    Examples
    --------
    >>> from boostlist.datasets import make_ranking, simulate_clicks
    >>> log = simulate_clicks(make_ranking(20), sessions=100, top=5)
    >>> log.data.n_queries, log.data.position[:5].tolist()
    (100, [1, 2, 3, 4, 5])
    """
    check_choice("model", model, ClickModel)
    check_whole("sessions", sessions, least=1)
    if top is not None:
        check_whole("top", top, least=1, otherwise=", or None for all documents")
    if not (np.isfinite(eta) and eta >= 0):
        raise ValueError(f"eta must be finite and >= 0, got {eta}")
    for name, value in (("noise", noise), ("random_share", random_share)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be between 0 and 1, got {value}")
    scores = _scores(ranker, data)
    rng = np.random.default_rng(seed)
    weight = data.queries.weight
    drawn = rng.choice(data.n_queries, sessions, p=weight / weight.sum())
    at_random = np.full(sessions, True) if scores is None else rng.random(sessions) < random_share
    parts = list(_shown(data, np.zeros(data.n_documents) if scores is None else scores, drawn, at_random, top, rng))
    document, session, position = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    gain = 2.0**data.y - 1
    attraction = noise + (1 - noise) * (gain / max(gain.max(), 1.0))[document]
    clicked, seen = _clicks(model, attraction, position, eta, rng)
    log = RankingData(
        data.X[document], clicked, session, None, data.feature_names, None, data.categories, position=position
    )
    return ClickLog(log, frozen(seen), frozen(document))


def _scores(ranker: Any, data: RankingData) -> FloatArray | None:
    if ranker is None:
        return None
    if not hasattr(ranker, "predict"):
        scores = vector(ranker, "ranker")
        if len(scores) != len(data):
            raise ValueError(f"ranker holds {len(scores):,} scores but the data has {len(data):,} documents")
        return scores
    return np.asarray(ranker.predict(data.X), np.float64)


def _shown(
    data: RankingData,
    scores: FloatArray,
    drawn: IntArray,
    at_random: ArrayLike,
    top: int | None,
    rng: np.random.Generator,
) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield document, session and position of what was shown, in blocks of sessions."""
    start, sizes = data.queries.start[:-1], data.queries.sizes
    ends = np.cumsum(sizes[drawn])
    cuts = np.flatnonzero(np.diff(ends // _BLOCK, prepend=0, append=ends[-1] // _BLOCK + 1))
    for lo, hi in zip([0, *cuts[:-1]], cuts, strict=True):
        if lo == hi:
            continue
        queries, length = drawn[lo:hi], sizes[drawn[lo:hi]]
        session = np.repeat(np.arange(lo, hi), length)
        place = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        document = np.repeat(start[queries], length) + place
        random = np.repeat(np.asarray(at_random)[lo:hi], length)
        draws = rng.random(len(document))  # the order of documents shown at random, and of those with equal scores
        order = np.lexsort((draws, np.where(random, 0.0, -scores[document]), session))
        shown = np.full(len(order), True) if top is None else place < top
        yield document[order][shown], session[shown], place[shown] + 1


def _clicks(
    model: ClickModel, attraction: FloatArray, position: IntArray, eta: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return what was clicked on, and the probability that each document was looked at."""
    k = position.astype(np.float64)
    looked_at = k**-eta
    if model == "cascade":
        return _cascade(attraction, position, looked_at, rng)
    if model == "trust":
        attraction = attraction * (1 - (np.minimum(k, 20) + 1) / 100) + (1 - attraction) * 0.65 / np.minimum(k, 10)
    clicked = rng.random(len(k)) < looked_at * attraction
    return clicked.astype(np.float64), looked_at


def _cascade(
    attraction: FloatArray, position: IntArray, looked_at: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Go down all lists at once, position by position."""
    first = np.flatnonzero(position == 1)
    length = np.diff(np.append(first, len(position)))
    clicked, seen = np.zeros(len(position)), np.zeros(len(position))
    patience = 1 - rng.random(len(first))  # the user looks at position k if this is at most k^-eta
    unclicked, alive = np.ones(len(first)), np.full(len(first), True)
    for k in range(int(length.max())):
        lists = np.flatnonzero(length > k)
        rows = first[lists] + k
        seen[rows] = unclicked[lists] * looked_at[rows]
        here = alive[lists] & (patience[lists] <= looked_at[rows]) & (rng.random(len(rows)) < attraction[rows])
        clicked[rows] = here
        alive[lists[here]] = False
        unclicked[lists] *= 1 - attraction[rows]
    return clicked, seen
