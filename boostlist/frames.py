"""Data frames with a column for the query."""

from __future__ import annotations

from typing import Any

QID = "qid"


def qid_column(X: Any) -> Any:
    """Return the column ``qid`` of a data frame, else None."""
    return X[QID] if QID in getattr(X, "columns", ()) else None


def without_qid(X: Any) -> Any:
    """Return X without a column ``qid``."""
    columns = getattr(X, "columns", ())
    return X[[column for column in columns if column != QID]] if QID in columns else X
