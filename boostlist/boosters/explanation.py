"""Why a document stands before the next one: their difference in score, feature by feature.

A score is the sum of its SHAP values phi_j and a base. The lead of a document over the next one in its list is
therefore sum_j (phi_j - phi_j of the next): the base cancels, and so does all that the two have in common.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from boostlist._typing import FloatArray, IntArray


def leads(order: IntArray, query: IntArray, contributions: FloatArray, names: Sequence[str]) -> pd.DataFrame:
    """Return a row for each document in ranked order with its lead and the features' parts of it.

    Parameters
    ----------
    order
        Rows in ranked order, query after query.
    query
        Query of each row.
    contributions
        SHAP values of each row, the base in the last column.
    names
        Names of the features.
    """
    query, contributions = query[order], contributions[order]
    first = np.append(True, query[1:] != query[:-1])
    last = np.append(first[1:], True)
    parts = contributions - np.roll(contributions, -1, axis=0)
    parts[last] = np.nan
    about = {
        "query": query,
        "place": 1 + np.arange(len(order)) - np.flatnonzero(first)[query],
        "row": order,
        "score": contributions.sum(axis=1),
        "lead": parts.sum(axis=1),
    }
    return pd.concat([pd.DataFrame(about), pd.DataFrame(parts[:, :-1], columns=list(names))], axis=1)
