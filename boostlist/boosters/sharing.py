"""What a host makes of features, once for all trainings on them: LightGBM's bins, which take a tenth of a training.

Whoever trains several models on the same array says so with `shared_features`; a host asks `shared` for what it needs,
and makes it where nobody has. Features are known by identity: it is the very object that is shared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

_T = TypeVar("_T")


@dataclass(eq=False)
class _Shelf:
    users: int = 0
    made: dict[Hashable, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_lock = threading.Lock()
_shelves: dict[int, _Shelf] = {}


@contextmanager
def shared_features(X: Any) -> Iterator[None]:
    """Let trainings on these features, in any thread, share what their host makes of them, while the block lasts."""
    with _lock:
        _shelves.setdefault(id(X), _Shelf()).users += 1
    try:
        yield
    finally:
        with _lock:
            shelf = _shelves[id(X)]
            shelf.users -= 1
            if not shelf.users:
                del _shelves[id(X)]


def shared(X: Any, key: Hashable, make: Callable[[], _T]) -> _T:
    """Return what was made of features under this key, or make it; it is kept only if the features are shared."""
    with _lock:
        shelf = _shelves.get(id(X))
    if shelf is None:
        return make()
    with shelf.lock:
        if key not in shelf.made:
            shelf.made[key] = make()
        found: _T = shelf.made[key]
    return found
