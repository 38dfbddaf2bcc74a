"""The folds of an experiment, and the facts about them that the report needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.datasets import Fold, Folds, RankingData, find_folds, sample_folder
from boostlist.datasets.folds import ROLES


def find_source(
    data: str | Path | None, folds: Sequence[int] | None = None, seed: int = 0, *, comments: bool = False
) -> Folds:
    """Find the folds of a data set; see `boostlist.datasets.find_folds`.

    They are dense: XGBoost would take what a sparse matrix does not store for missing, LightGBM for 0.

    Parameters
    ----------
    data
        A folder or file; None for the sample that comes with the package.
    folds
        Which folds to use; None for all.
    seed
        For a single file: how its queries are dealt out to the parts.
    comments
        Whether to keep the comments of LETOR text, which have the ids of documents.

    Raises
    ------
    FileNotFoundError
        If the path holds no data set, or not these folds; the message says what was looked for.
    """
    found = find_folds(sample_folder() if data is None else data, seed=seed, sparse=False, comments=comments)
    return found if folds is None else found.choose(folds)


@dataclass(frozen=True, eq=False)
class FoldFacts:
    """What the report says of a fold's data.

    Attributes
    ----------
    fold
        Its number.
    qid
        Query ids of the test part as text; the entries of the arrays below are in the same order.
    length, relevant
        Number of documents, and of documents with a label above 0, of each test query.
    best
        Highest label of each test query.
    labels
        Label of each test document.
    parts
        Numbers of documents, queries and features, documents by label, and the largest label, of train, vali and test.
    """

    fold: int
    qid: AnyArray
    length: IntArray
    relevant: IntArray
    best: FloatArray
    labels: FloatArray
    parts: dict[str, dict[str, Any]]

    @property
    def largest(self) -> float:
        """The largest label of all parts."""
        return float(max(numbers["largest"] for numbers in self.parts.values()))

    @classmethod
    def of(cls, fold: Fold) -> FoldFacts:
        """Collect the facts."""
        queries = fold.test.queries
        head = queries.start[:-1]
        parts = {name: _numbers(getattr(fold, name)) for name in ROLES}
        return cls(
            fold=fold.number,
            qid=np.asarray(fold.test.qid[head]).astype(str),
            length=np.asarray(queries.sizes, np.int64),
            relevant=np.add.reduceat(queries.labels > 0, head).astype(np.int64),
            best=np.maximum.reduceat(queries.labels, head),
            labels=queries.labels,
            parts=parts,
        )


def _numbers(data: RankingData) -> dict[str, Any]:
    about = data.describe()
    return {
        "documents": about.documents,
        "queries": about.queries,
        "features": about.features,
        "grades": {f"{grade:g}": count for grade, count in about.grades.items()},
        "largest": max(about.grades),
        "without_relevant": about.empty_queries,
        "shortest": about.shortest,
        "median_length": about.median_length,
        "longest": about.longest,
    }
