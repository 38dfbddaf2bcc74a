"""Names of documents, as runs of trec_eval call them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from boostlist.queries import query_boundaries

if TYPE_CHECKING:
    from boostlist.datasets.data import RankingData

_ID = re.compile(r"\bdocid\s*=\s*(\S+)")


def document_ids(data: RankingData) -> list[str]:
    """Return the id of each document: of its comment, ``docid = GX001 ...``, else its number in the list, from 1."""
    start = query_boundaries(data.qid)
    places = np.arange(1, data.n_documents + 1) - np.repeat(start[:-1], np.diff(start))
    comments = [""] * data.n_documents if data.comments is None else data.comments
    found = (_ID.search(str(comment)) for comment in comments)
    return [str(place) if match is None else match[1] for match, place in zip(found, places, strict=True)]
