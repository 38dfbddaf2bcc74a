"""Clicks weighed by the inverse of the probability that they could happen: every loss freed of bias.

Let r_i be the probability that document i of a list is clicked on once it is looked at, and p_i > 0 that it is looked
at, so that a click c_i has the mean p_i r_i. Take for the loss of a list

    L(c; f) = sum over clicked documents i of c_i / p_i  l(e_i; f),

where l(e_i; f) is any loss of the same list in which i alone is relevant, with label 1. It is linear in the clicks, so
its mean is that of the same loss under the true r, whatever the loss l and however the p_i were come by:

    E L(c; f) = sum over i of r_i l(e_i; f).

A list becomes as many lists as it has clicks, each with the weight 1/p_i and one relevant document. Under the softmax
and Plackett-Luce losses l(e_i; f) is the stage - log(e^{f_i} / sum e^f); under pairwise losses it sets i against every
other document, as Propensity SVM-Rank does (Joachims, Swaminathan, Schnabel, WSDM 2017); under losses that bound
1 - NDCG it bounds 1 - the discount at i's rank, so that L bounds a linear DCG. p is never taken for less than `clip`,
which costs a little bias and saves much variance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.arrays import vector
from boostlist.queries import Queries

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

CLIP = 0.01
"""The least propensity by default: no click weighs more than a hundred."""


class ByClick(NamedTuple):
    """A list for each click.

    Attributes
    ----------
    queries
        The lists, weighted, the clicked document with label 1 and the others with 0.
    rows
        Row of each of their documents in the data that they were made of.
    """

    queries: Queries
    rows: IntArray


def checked_propensity(queries: Queries, propensity: ArrayLike, clip: float = CLIP) -> FloatArray:
    """Return propensities as a vector of numbers.

    Raises
    ------
    ValueError
        If they are not as many as documents or no probabilities, if that of a clicked document is 0, or if there is no
        click.
    """
    p = vector(propensity, "propensity")
    if len(queries.named) > 1:
        raise ValueError("propensity= weighs the clicks of one label; give one label, not several")
    if not 0 < clip <= 1:
        raise ValueError(f"propensity_clip must be above 0 and at most 1, got {clip}")
    if len(p) != queries.n_documents:
        raise ValueError(
            f"propensity has {len(p):,} entries but there are {queries.n_documents:,} documents; give one for each"
        )
    bad = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if bad.size:
        raise ValueError(f"propensity[{bad[0]}] is {p[bad[0]]}; propensities are probabilities, from 0 to 1")
    clicked = np.flatnonzero(queries.labels > 0)
    if not clicked.size:
        raise ValueError("no document was clicked on (no label is above 0), so there is nothing to learn")
    unseen = clicked[p[clicked] == 0]
    if unseen.size:
        raise ValueError(
            f"the document in row {unseen[0]} was clicked on, but its propensity is 0: what cannot be looked at cannot "
            "be clicked on. Give it the probability with which it was seen"
        )
    return p


def by_click(queries: Queries, propensity: ArrayLike, clip: float = CLIP) -> ByClick:
    """Return a list for each clicked document; labels other than 1 multiply its weight.

    Parameters
    ----------
    queries
        The lists, with clicks as labels.
    propensity
        Probability that each document was looked at; that of documents without a click is not used.
    clip
        The least propensity that counts.

    Raises
    ------
    ValueError
        As `checked_propensity` does.
    """
    p = checked_propensity(queries, propensity, clip)
    clicked = np.flatnonzero(queries.labels > 0)
    query = np.searchsorted(queries.start, clicked, side="right") - 1
    sizes = queries.sizes[query]
    begin = np.cumsum(sizes) - sizes
    rows = np.arange(sizes.sum()) + np.repeat(queries.start[query] - begin, sizes)
    labels = np.zeros(len(rows))
    labels[begin + clicked - queries.start[query]] = 1.0
    weight = queries.weight[query] * queries.labels[clicked] / np.maximum(p[clicked], clip)
    return ByClick(Queries.from_sizes(labels, sizes, weight), rows)
