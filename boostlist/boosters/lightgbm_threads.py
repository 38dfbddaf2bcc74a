"""One number of threads for all that LightGBM does at once.

LightGBM keeps its number of threads once for a process, and whatever begins - a data set, a training, a prediction -
sets it anew. A training sizes its buffers by the number at its start; when another Python thread sets a larger one
meanwhile, it writes beyond them, and the process dies. So whoever begins while LightGBM is at work takes the number in
force. Models and predictions are the same for any number.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class _InForce:
    number: int = 0
    users: int = 0


_lock = threading.Lock()
_in_force = _InForce()


@contextmanager
def threads(wanted: int | None) -> Iterator[int]:
    """Give the number of threads to tell LightGBM while the block lasts; None and 0 stand for its default, all cores.

    It is the wanted one, unless LightGBM is at work in another block already.
    """
    with _lock:
        if not _in_force.users:
            _in_force.number = wanted or 0
        _in_force.users += 1
    try:
        yield _in_force.number
    finally:
        with _lock:
            _in_force.users -= 1
