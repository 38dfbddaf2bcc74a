"""Can a log tell bias from relevance? Two numbers, taken after training with biases b of positions.

A log whose lists were ranked by a function of the features, always the same, shows each document at one position. What
is due to the position and what to the features can then not be told apart but by the shape of the loss. All within
lists, with b the bias of each document's position and s the regression of b on the features and their ranks,

    explained = corr(s, b)^2               how far features decide on positions: 0 in random order, near 1 at worst
    agreement = corr(f, b) / corr(s, b)    how far the scores f, freed of bias, agree with the ranker that made the log

Features that decide on positions do no harm where that ranker was poor: f departs from it, and biases of positions
would only have copied it. Where it was good, relevance falls with the position, b takes its part of that, and a model
that takes clicks at face value, and so inherits the ranker's order, is better. docs/clicks.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.boosters.lists import Lists
from boostlist.checks import warn
from boostlist.queries import Queries

if TYPE_CHECKING:
    import pandas as pd

_EXPLAINED, _AGREEMENT = 0.15, 0.58
# Rows and columns that are looked at.
_ROWS, _COLUMNS = 20_000, 100


class Confounding(NamedTuple):
    """How far features decide on positions, and scores agree with the ranker that made the log."""

    explained: float
    agreement: float

    @property
    def warns(self) -> bool:
        """Whether biases of positions are likely to have taken relevance away."""
        return self.explained > _EXPLAINED and self.agreement > _AGREEMENT


def measure(
    X: Any, columns: IntArray, bias: FloatArray, queries: Queries, predict: Callable[[Any], FloatArray]
) -> Confounding:
    """Measure confounding on a sample of whole lists.

    Parameters
    ----------
    X, columns
        Features: an array, a CSR matrix or a data frame, and those of them that may matter, the most important first.
    bias
        The bias of each document's position.
    queries
        The lists.
    predict
        Features -> scores without bias.
    """
    drawn = np.random.default_rng(0).permutation(queries.n_queries)
    drawn = np.sort(drawn[: max(1, int(np.searchsorted(np.cumsum(queries.sizes[drawn]), _ROWS)))])
    sizes = queries.sizes[drawn]
    rows = np.arange(sizes.sum()) + np.repeat(queries.start[drawn] - np.cumsum(sizes) + sizes, sizes)
    lists = np.repeat(np.arange(len(drawn)), sizes)
    part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    b, f = (_centred(values[:, None], lists)[:, 0] for values in (bias[rows], predict(part)))
    if not (b.any() and f.any() and len(columns)):
        return Confounding(0.0, 0.0)
    features = _dense(part, columns[:_COLUMNS])
    design = np.hstack([_centred(values, lists) for values in (features, _ranks(features, lists))])
    design /= np.maximum(np.sqrt(np.mean(design**2, axis=0)), 1e-12)
    normal = design.T @ design + 1e-6 * len(rows) * np.eye(design.shape[1])
    s = design @ np.linalg.solve(normal, design.T @ b)
    reached = float(np.corrcoef(s, b)[0, 1]) if s.any() else 0.0
    agreement = float(np.corrcoef(f, b)[0, 1]) / reached if reached > 0 else 0.0
    return Confounding(reached**2, agreement)


def warn_if_confounded(
    train: Lists, bias: pd.Series[float], importance: FloatArray, predict: Callable[[Any], FloatArray]
) -> None:
    """Warn where biases of positions are likely to have taken relevance away, and say what to do.

    Parameters
    ----------
    train
        What was trained on, with positions.
    bias
        The biases that were learned.
    importance, predict
        Importance of each feature in the model, and its scores of features.
    """
    assert train.position is not None
    used = np.argsort(-importance, kind="stable")[: np.count_nonzero(importance)]
    biases = np.asarray(bias, np.float64)[train.position.codes]
    found = measure(train.X, used, biases, train.queries, predict)
    if found.warns:
        warn(
            f"features decide on positions ({found.explained:.0%} of what the biases vary), and the debiased scores "
            f"agree with the ranker that made this log ({found.agreement:.0%}): that ranker was good, and its order, "
            "which clicks at face value keep, is probably worth more than being rid of its bias. Fit without "
            "position=, or compare both on judged queries, or show a share of the lists in random order; see "
            "docs/clicks.md"
        )


def _dense(X: Any, columns: IntArray) -> FloatArray:
    """Return some columns as numbers, categories as their codes."""
    if hasattr(X, "iloc"):
        part = X.iloc[:, columns]
        parts = [part[c].cat.codes if str(part[c].dtype) == "category" else part[c] for c in part.columns]
        return np.column_stack([np.asarray(each, np.float64) for each in parts])
    part = X[:, columns]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, np.float64)


def _centred(values: FloatArray, lists: IntArray) -> FloatArray:
    """Return columns less their mean in each list, missing values 0."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    first = np.flatnonzero(np.diff(lists, prepend=-1))
    mean = np.add.reduceat(filled, first) / np.maximum(np.add.reduceat(known.astype(np.float64), first), 1.0)
    return np.where(known, filled - mean[lists], 0.0)


def _ranks(values: FloatArray, lists: IntArray) -> FloatArray:
    """Return the rank of each value in its list, equal ones alike, in units of the list's length."""
    import pandas as pd

    return pd.DataFrame(values).groupby(lists).rank(pct=True).to_numpy()
