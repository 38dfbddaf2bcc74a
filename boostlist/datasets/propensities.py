r"""Propensities from logs in which documents were shown at several positions: swapped, shuffled, or by two rankers.

Let document d of a query be clicked on at position k with mean p_k r_d, whatever its relevance r_d. Given its number of
clicks C_d, they fall on the positions where it was shown n_dk times in proportion to n_dk p_k, and r_d is gone:

    log-likelihood = sum_dk c_dk log p_k - sum_d C_d log sum_k n_dk p_k

It is concave in log p, and Newton's method finds its maximum. With two positions and one document p_2 / p_1 is the
ratio of the two click rates, the estimate of Joachims, Swaminathan, Schnabel (WSDM 2017) for swapped documents; with
all of them it uses every change of position, wanted or not (Agarwal et al., *Estimating position bias without intrusive
interventions*, WSDM 2019). Documents that were shown at one position only say nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist._typing import FloatArray
from boostlist.arrays import vector
from boostlist.positions import Positions

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

_STEPS, _TOLERANCE = 100, 1e-9


def estimate_propensities(clicks: ArrayLike, position: Any, document: Any) -> pd.Series[float]:
    """Estimate how likely each position is looked at, relative to the one that is looked at most.

    Parameters
    ----------
    clicks
        Clicks on each row of the log, >= 0.
    position
        Where each row was shown: labels of any kind.
    document
        What was shown for which query: one label, or a row of several columns such as query and document.

    Returns
    -------
    Series
        The propensities by position, the largest 1: ``propensities.loc[position]`` gives those of rows.

    Raises
    ------
    ValueError
        If positions cannot be compared, since no documents were shown and clicked on at both.

    Examples
    --------
    >>> from boostlist.datasets import estimate_propensities
    >>> p = estimate_propensities([1, 1, 0, 1, 1, 0, 0, 0], [1, 1, 1, 1, 2, 2, 2, 2], ["a"] * 8)
    >>> p.round(3).tolist()
    [1.0, 0.333]
    """
    from scipy.sparse import csr_matrix

    c = vector(clicks, "clicks")
    if not (np.isfinite(c) & (c >= 0)).all():
        raise ValueError("clicks must be finite and >= 0")
    positions, documents = Positions.of(position, len(c)), Positions.of(document, len(c))
    shape = (len(documents.labels), len(positions.labels))
    cells = (documents.codes, positions.codes)
    shown = csr_matrix((np.ones(len(c)), cells), shape)
    clicked = csr_matrix((c, cells), shape)
    telling = (shown.getnnz(axis=1) > 1) & (np.asarray(clicked.sum(axis=1)).ravel() > 0)
    shown, clicked = shown[telling], clicked[telling]
    clicked.eliminate_zeros()
    _check_comparable(shown, clicked, positions)
    p = np.exp(_maximum(shown, clicked))
    series = positions.series(p / p.max())
    return series.rename("propensity")


def _check_comparable(shown: Any, clicked: Any, positions: Positions) -> None:
    """Raise unless a maximum exists: from each position clicks lead to every other one, document by document."""
    from scipy.sparse.csgraph import connected_components

    links = (clicked > 0).T.astype(np.float64) @ (shown > 0).astype(np.float64)
    parts, part = connected_components(links, directed=True, connection="strong")
    if parts > 1:
        first = positions.labels[0]
        other = positions.labels[int(np.flatnonzero(part != part[0])[0])]
        raise ValueError(
            f"positions {first!r} and {other!r} cannot be compared: too few documents were shown, and clicked on, at "
            "both or by way of others. Swap documents between them, or merge positions"
        )


def _maximum(shown: Any, clicked: Any) -> FloatArray:
    """Return log p, with mean 0, at the maximum of the likelihood."""
    by_document = np.asarray(clicked.sum(axis=1)).ravel()
    by_position = np.asarray(clicked.sum(axis=0)).ravel()
    theta = np.zeros(shown.shape[1])

    def likelihood(theta: FloatArray) -> float:
        return float(by_position @ theta - by_document @ np.log(shown @ np.exp(theta)))

    for _ in range(_STEPS):
        weights = shown.multiply(np.exp(theta)).tocsr()
        share = weights.multiply(1 / np.asarray(weights.sum(axis=1)).reshape(-1, 1)).tocsr()
        expected = share.T @ by_document
        slope = by_position - expected
        if np.abs(slope).max() <= _TOLERANCE * by_document.sum():
            break
        hessian = np.diag(expected) - (share.T @ share.multiply(by_document[:, None])).toarray()
        step = np.linalg.lstsq(hessian, slope, rcond=1e-12)[0]
        size, before = 1.0, likelihood(theta)
        while likelihood(theta + size * step) < before and size > 1e-8:
            size /= 2
        theta = theta + size * step
        theta -= theta.mean()
    return theta
