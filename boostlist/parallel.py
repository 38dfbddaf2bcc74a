"""Run numba loops over ranges of queries on a thread pool.

A loop is a compiled function ``loop(lo, hi, ...)`` that handles the queries ``lo <= q < hi`` and writes only what
belongs to them. Because no query shares an output with another, results are the same to the last bit for every thread
count.

Numba's own ``parallel=True`` is not used: its default threading layer aborts the process when two Python threads enter
it at once, and it does not survive a fork.
"""

from __future__ import annotations

import gc
import glob
import os
import sys
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numba import njit
from numba.core.compiler_lock import global_compiler_lock

from boostlist._typing import IntArray
from boostlist.checks import check_whole

# Below this many documents the hand-over to another thread costs more than it saves.
_MIN_DOCUMENTS = 8_192
# More ranges than threads, so that a range of long lists does not leave the other threads idle.
_RANGES_PER_THREAD = 4
# Seconds for which a file of the cache may be one that a process is about to name in the index.
_IN_THE_MAKING = 3_600

_T = TypeVar("_T")

_lock = threading.Lock()
_pool: tuple[int, ThreadPoolExecutor] | None = None
_threads: int | None = None
_most: ContextVar[int | None] = ContextVar("_most", default=None)


class Inner:
    """A compiled function that only compiled functions can call: it has no form that Python could."""

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher
        self._numba_type_ = dispatcher._numba_type_  # what numba takes a global name for

    def __call__(self, *args: Any) -> NoReturn:
        """Refuse: numba itself would jump to no address."""
        name = self.dispatcher.__name__
        raise TypeError(f"{name} is called by compiled functions only; decorate it with @compiled to call it in Python")


FUSED = frozenset({"contract"})
"""Liberties that the compiler may take with sums: to round a product together with the sum that it goes into."""

REORDERED = FUSED | {"reassoc", "nsz"}
"""And to take sums in another order, fixed when they are compiled, so that they become vector instructions."""


def compiled(function: Callable[..., Any], liberties: frozenset[str] = frozenset()) -> Callable[..., Any]:
    """Compile a function: no GIL, cached on disk, IEEE division (x / 0 is inf, not an exception).

    Parameters
    ----------
    function
        What to compile.
    liberties
        `FUSED`, `REORDERED` or, by default, none.
    """
    return _compiled(function, liberties)


def inner(function: Callable[..., Any], liberties: frozenset[str] = frozenset()) -> Callable[..., Any]:
    """Compile a function for others that are compiled: without what unpacks Python's arguments, a tenth of the work.

    It counts no references to arrays, which would take some ns each at every call. So it makes no arrays and returns
    none, neither a part of its own nor in a tuple; of that numba refuses the most obvious only.

    Parameters
    ----------
    function, liberties
        As for `compiled`.
    """
    return Inner(_compiled(function, liberties, no_cpython_wrapper=True, _nrt=False))


def _compiled(function: Callable[..., Any], liberties: frozenset[str], **options: Any) -> Callable[..., Any]:
    fastmath = set(liberties) or False
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "fastmath": fastmath}
    result: Callable[..., Any]
    try:
        result = njit(cache=True, **options)(function)
        _mend_cache(result)
    except RuntimeError:  # numba's word for a disk on which nothing can be written
        _warn_of_no_cache()
        result = njit(**options)(function)
    _compile_without_pauses(result)
    return result


def _compile_without_pauses(dispatcher: Any) -> None:
    """Let the collection of garbage wait until a function is compiled: that takes a tenth less time."""
    compile_for = dispatcher.compile

    def compile_at_a_stretch(signature: Any) -> Any:
        with global_compiler_lock:  # which numba takes anyway, so that one thread at a time switches off and on
            collecting = gc.isenabled()
            gc.disable()
            try:
                return compile_for(signature)
            finally:
                if collecting:
                    gc.enable()

    dispatcher.compile = compile_at_a_stretch


def _mend_cache(dispatcher: Any) -> None:
    """Let the cache of a function serve processes side by side, and come after that of another version."""
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    # A numba that keeps its cache in another way is left to itself.
    if all(hasattr(file, name) for name in ("_load_index", "_save_index", "_save_data", "_index_name", "_cache_path")):
        forgive(file)
        keep_apart(file)


def forgive(file: Any) -> None:
    """Let an index that cannot be read count as empty, as numba has it for one that is outdated.

    Numba reads it before it finds out. That fails where a class is gone that an argument once had, or a file was cut.
    """
    read = file._load_index

    def read_or_begin_anew() -> Any:
        try:
            return read()
        except Exception:
            return {}

    file._load_index = read_or_begin_anew


def keep_apart(file: Any) -> None:
    """Write what is compiled for some types to a file of its own, and name that in the index only then.

    Numba numbers these files by the index that it has read: two processes that compile a function for different types
    at a time choose the same number, and all that come after may be given code for the wrong types. A name that nobody
    else chooses cannot be mistaken; files that the index no longer names are deleted in time.
    """
    folder, stem = Path(file._cache_path), file._index_name.removesuffix(".nbi")

    def save(key: Any, data: Any) -> None:
        name = file._load_index().get(key, f"{stem}.{uuid.uuid4().hex[:8]}.nbc")
        file._save_data(name, data)
        index = file._load_index() | {key: name}
        file._save_index(index)
        for other in folder.glob(f"{glob.escape(stem)}.*.nbc"):
            with suppress(OSError):  # another process may have been quicker
                if other.name not in index.values() and other.stat().st_mtime < time.time() - _IN_THE_MAKING:
                    other.unlink()

    file.save = save


@cache
def _warn_of_no_cache() -> None:
    """Say, once, that compiled functions cannot be kept."""
    warnings.warn(
        "neither the folder of boostlist nor the user's cache can be written, so that every process compiles anew what "
        "it uses, which takes seconds; set NUMBA_CACHE_DIR to a folder that can be written, or run `boostlist warmup` "
        "when the image is built",
        stacklevel=5,
    )


def vectorized(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop for others that are compiled, whose sums may be taken in another order."""
    return inner(function, REORDERED)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Copy a function into the loops that call it: it is compiled with them, under their liberties, never by itself.

    Best for what is small, and for the row of a double loop; a large one that many loops call is compiled for each.
    """
    result: Callable[..., Any] = njit(nogil=True, error_model="numpy", inline="always")(function)
    return result


@compiled
def longest(queries, start):  # type: ignore[no-untyped-def]
    """Length of the longest list among some queries, a range or an array: what a loop's scratch arrays must hold."""
    length = 0
    for q in queries:
        own = start[q + 1] - start[q]
        length = own if own > length else length  # `max` takes as long to compile as all of this
    return length


def set_threads(n: int | None) -> None:
    """Set the number of threads that losses and metrics use.

    Parameters
    ----------
    n
        A number of threads, or None for the default: the environment variable ``BOOSTLIST_THREADS`` if it is set, else
        all cores this process may use.
    """
    global _threads
    _threads = None if n is None else check_whole("set_threads: n", n, least=1)


@contextmanager
def at_most(n: int | None) -> Iterator[None]:
    """Let losses and metrics use n threads at most while the block lasts, in this Python thread.

    So trainings side by side share the cores, rather than each call waiting for ranges of the others. None, 0 and
    negative numbers, by which hosts mean all cores, are no bound.
    """
    token = _most.set(n if n and n > 0 else None)
    try:
        yield
    finally:
        _most.reset(token)


def get_threads() -> int:
    """Return the number of threads that losses and metrics use; in a task of a Dask worker, no more than that has."""
    bounds = (_all_threads(), _most.get(), _threads_of_worker())
    return min(n for n in bounds if n is not None)


def _threads_of_worker() -> int | None:
    """Return the threads of the Dask worker that this thread works for, None if there is none."""
    dask = sys.modules.get("distributed")
    try:
        return None if dask is None else int(dask.get_worker().state.nthreads)
    except ValueError:
        return None


def _all_threads() -> int:
    if _threads is not None:
        return _threads
    text = os.environ.get("BOOSTLIST_THREADS", "")
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"BOOSTLIST_THREADS must be a whole number of at least 1, got {text!r}")
    return int(text)


def _executor(threads: int) -> ThreadPoolExecutor:
    """Return a pool of so many threads; one of another size ends when the last call that uses it lets go."""
    global _pool
    with _lock:
        if _pool is None or _pool[0] != threads:
            # What runs on a thread of the pool has that one: waiting for others, all would wait for each other.
            own = ThreadPoolExecutor(threads, "boostlist", initializer=_most.set, initargs=(1,))
            _pool = threads, own
        return _pool[1]


def _after_fork() -> None:
    """Forget the pool and the lock in a forked child: the parent's threads do not exist there."""
    global _pool, _lock
    _pool = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def over_queries(loop: Callable[..., None], start: IntArray, *args: Any) -> None:
    """Call ``loop(lo, hi, *args)`` so that every query is in exactly one range.

    Parameters
    ----------
    loop
        A compiled loop.
    start
        Row at which each query begins, with the end of the last one appended. Ranges hold about equally many rows.
    *args
        Passed on unchanged.
    """
    queries, documents = len(start) - 1, int(start[-1] - start[0])
    threads = get_threads()
    if threads == 1 or queries < 2 or documents < _MIN_DOCUMENTS:
        loop(0, queries, *args)
        return
    ranges = min(threads * _RANGES_PER_THREAD, queries)
    cuts = np.searchsorted(start, np.linspace(start[0], start[-1], ranges + 1))
    cuts[0], cuts[-1] = 0, queries
    bounds = [(int(lo), int(hi)) for lo, hi in pairwise(cuts) if lo < hi]
    pool = _executor(threads)
    futures = [pool.submit(loop, lo, hi, *args) for lo, hi in bounds]
    for future in futures:
        future.result()


def over_shares(step: Callable[[int, int], None], begin: int, end: int) -> None:
    """Call ``step(lo, hi)`` on each thread for its share of begin:end; results must not depend on the cuts."""
    most = get_threads()
    threads = max(min(most, end - begin), 1)
    cuts = [begin + (end - begin) * k // threads for k in range(threads + 1)]
    # The calling thread takes a share too: handing over costs as much as some ten thousand rows.
    futures = [_executor(most).submit(step, lo, hi) for lo, hi in pairwise(cuts[1:])]
    step(*cuts[:2])
    for future in futures:
        future.result()


def in_order(function: Callable[..., _T], items: Iterable[tuple[Any, ...]], limit: int) -> Generator[_T, None, None]:
    """Yield ``function(*item)`` for each item, in order, computed on the thread pool.

    At most `limit` items are held at a time: the next one is taken when the first result of these has been dealt with.
    So a source of items may hand out that many buffers by turns; `in_flight` is a number that keeps all threads busy.
    """
    threads = get_threads()
    if threads == 1:
        for item in items:
            yield function(*item)
        return
    pool = _executor(threads)
    pending: deque[Future[_T]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(function, *item))
            if len(pending) == limit:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        wait(pending)


def in_flight() -> int:
    """Return a limit for `in_order`: an item for each thread, one on its way in and one on its way out."""
    return get_threads() + 2
