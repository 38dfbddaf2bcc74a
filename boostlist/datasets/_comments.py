"""Positions in the comments of LETOR text: ``# position = 3``, beside what else a comment says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from boostlist._typing import AnyArray

_POSITION = re.compile(r"\s*\bposition = (\S+)")


def with_position(comment: str, position: Any) -> str:
    """Return a comment that tells the position, and none but this."""
    label = str(position)
    if not label or re.search(r"\s", label):
        raise ValueError(f"position {label!r} cannot be written to LETOR text: it is empty or has white space in it")
    return f"{_POSITION.sub('', comment)} position = {label}".strip()


def positions(comments: AnyArray) -> AnyArray | None:
    """Return the position of each document, whole numbers where all are; None unless every comment tells it."""
    found = [_POSITION.search(comment) for comment in comments]
    labels = [match[1] for match in found if match is not None]
    if not labels or len(labels) < len(comments):
        return None
    return np.array(labels, np.int64 if all(label.isdecimal() for label in labels) else object)
