from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.errors import NumbaError

import boostlist
from boostlist import Queries
from boostlist.losses import CsListMLE
from boostlist.parallel import at_most, compiled, in_order, inner, keep_apart, over_queries


@compiled
def count(lo, hi, calls):
    for q in range(lo, hi):
        calls[q] += 1


@inner
def twice(x):
    return 2 * x


@compiled
def four_times(x):
    return twice(twice(x))


@inner
def upper_half(x):
    return x[x.size // 2 :]


@inner
def as_many_zeros(x):
    return np.zeros(x.size).size


@compiled
def call(function, x):
    return function(x)


def test_inner_functions_serve_compiled_ones_and_refuse_python():
    assert four_times(3.0) == 12.0
    with pytest.raises(TypeError, match="twice is called by compiled functions only"):
        twice(3.0)


@pytest.mark.parametrize("function", [upper_half, as_many_zeros])
def test_inner_functions_make_no_arrays_and_return_none(function):
    """They count no references, so that an array of theirs would be gone while it is in use."""
    with pytest.raises(NumbaError):
        call(function.dispatcher, np.ones(4))


@compiled
def of_nothing(x):
    return x.nothing


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_not_collected_while_a_function_is_compiled(collecting):
    """One that fails: it is never in the cache."""
    seen = []

    class Listener(event.Listener):
        def on_start(self, event):
            seen.append(gc.isenabled())

        def on_end(self, event):
            pass

    listener, before = Listener(), gc.isenabled()
    event.register("numba:compile", listener)
    try:
        (gc.enable if collecting else gc.disable)()
        with pytest.raises(NumbaError):
            of_nothing(np.ones(3))
        assert gc.isenabled() == collecting
    finally:
        event.unregister("numba:compile", listener)
        (gc.enable if before else gc.disable)()
    assert seen == [False]


@pytest.fixture(autouse=True)
def default_threads():
    yield
    boostlist.set_threads(None)


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_every_query_is_handled_once(threads):
    boostlist.set_threads(threads)
    rng = np.random.default_rng(0)
    for queries in (1, 2, 7, 500):
        start = np.concatenate(([0], np.cumsum(rng.integers(1, 90_000 // queries, queries))))
        calls = np.zeros(queries, np.int64)
        over_queries(count, start, calls)
        assert (calls == 1).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order_and_items_no_sooner_than_needed(threads):
    boostlist.set_threads(threads)
    taken, done, limit = 0, 0, 4

    def items():
        nonlocal taken
        for k in range(40):
            taken += 1
            yield (k,)

    def slow_at_first(k):
        time.sleep(0.01 * (k % 3 == 0))
        return k * k

    for k, result in enumerate(in_order(slow_at_first, items(), limit)):
        assert result == k * k
        assert taken - done <= limit
        done += 1
    assert done == 40


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_comes_in_its_turn_and_nothing_is_left_running(threads):
    boostlist.set_threads(threads)
    running = set()

    def work(k):
        running.add(k)
        time.sleep(0.01)
        running.discard(k)
        return 1 // (k - 3)

    seen = []
    with pytest.raises(ZeroDivisionError):
        seen.extend(in_order(work, ((k,) for k in range(20)), 4))
    assert len(seen) == 3
    assert not running


def large_bound(seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 100, 500)
    queries = Queries.from_sizes(rng.integers(0, 5, sizes.sum()), sizes)
    return CsListMLE().bind(queries), rng.normal(size=sizes.sum())


def test_two_python_threads_at_once():
    boostlist.set_threads(2)
    bound, f = large_bound()
    expected = bound.gradient_hessian(f)
    failures = []

    def work():
        for _ in range(30):
            if not np.array_equal(bound.gradient_hessian(f), expected):
                failures.append("differs")

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def _child(connection):
    bound, f = large_bound()
    connection.send(bound.gradient_hessian(f))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_works():
    boostlist.set_threads(2)
    bound, f = large_bound()
    expected = bound.gradient_hessian(f)  # the parent's pool has threads now, which the child will not have
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs,))
    process.start()
    assert ours.poll(60), "the forked process hangs"
    np.testing.assert_array_equal(ours.recv(), expected)
    process.join(10)
    assert process.exitcode == 0


def test_thread_count_by_environment(monkeypatch):
    monkeypatch.setenv("BOOSTLIST_THREADS", "3")
    assert boostlist.get_threads() == 3
    boostlist.set_threads(5)
    assert boostlist.get_threads() == 5
    boostlist.set_threads(None)
    monkeypatch.setenv("BOOSTLIST_THREADS", "many")
    with pytest.raises(ValueError, match="BOOSTLIST_THREADS"):
        boostlist.get_threads()
    for bad in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match="set_threads: n must be a whole number of at least 1, got"):
            boostlist.set_threads(bad)
    boostlist.set_threads(np.int64(2))
    assert boostlist.get_threads() == 2


def test_what_trains_side_by_side_takes_its_share_of_threads():
    boostlist.set_threads(4)
    with at_most(3):
        assert boostlist.get_threads() == 3
        with ThreadPoolExecutor(1) as other:
            assert other.submit(boostlist.get_threads).result() == 4
        with at_most(-1):
            assert boostlist.get_threads() == 4
    with at_most(8):
        assert boostlist.get_threads() == 4


def test_jobs_of_a_training_bound_the_threads_of_its_loss():
    boostlist.set_threads(4)
    seen = []
    data = boostlist.datasets.make_ranking(5, docs=5)
    ranker = boostlist.TreeRanker("listnet", n_estimators=2, n_jobs=2)
    ranker.fit(data.X, data.y, data.qid, callbacks=[lambda _: seen.append(boostlist.get_threads())])
    assert seen == [2, 2]


def test_import_is_light():
    """Neither host nor a compiler is loaded by `import boostlist`, and no host by the objectives."""
    code = (
        "import sys, boostlist; heavy = {'numba', 'pandas', 'lightgbm', 'xgboost', 'sklearn'} & set(sys.modules); "
        "assert not heavy, heavy; from boostlist import objectives; objectives.cs_listmle; boostlist.Queries; "
        "hosts = {'lightgbm', 'xgboost'} & set(sys.modules); assert not hosts, hosts"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_a_folder_to_write_to_it_works_and_warns_once():
    code = (
        "import warnings; from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    from boostlist import Queries, metrics\n"
        "    assert metrics.get('mrr').mean([0.0, 1.0], Queries.from_sizes([1, 0], [2])) == 0.5\n"
        "assert ['NUMBA_CACHE_DIR' in str(w.message) for w in caught] == [True], [str(w.message) for w in caught]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_processes_that_compile_for_different_types_at_once_find_their_own(tmp_path):
    ours, theirs, later = (IndexDataCacheFile(str(tmp_path), "function", "today") for _ in range(3))
    keep_apart(ours)
    keep_apart(theirs)
    theirs._load_index = dict  # they have read it before we wrote
    write = ours._save_data

    def write_after_them(name, data):
        theirs.save("int", "code for int")
        write(name, data)
        assert list(later._load_index()) == ["int"]  # a file is named when it is there

    ours._save_data = write_after_them
    ours.save("float", "code for float")
    assert later.load("float") in (None, "code for float")
    assert later.load("int") in (None, "code for int")


def test_the_cache_keeps_what_its_index_names_and_what_may_be_in_the_making(tmp_path):
    file = IndexDataCacheFile(str(tmp_path), "function", "today")
    keep_apart(file)
    file.save("float", "code for float")
    for name in ("function.1.nbc", "function.2.nbc", "functional.1.nbc"):
        (tmp_path / name).write_bytes(b"")
    for name in (*file._load_index().values(), "function.1.nbc", "functional.1.nbc"):
        os.utime(tmp_path / name, (0, 0))
    file.save("int", "code for int")
    names = {"function.nbi", "function.2.nbc", "functional.1.nbc", *file._load_index().values()}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert (file.load("float"), file.load("int")) == ("code for float", "code for int")
    file.save("int", "better code")
    assert {path.name for path in tmp_path.iterdir()} == names
    assert file.load("int") == "better code"


def test_a_cache_that_cannot_be_read_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def twice(x):
        return 2 * x

    def compiled_how_often():
        function = compiled(twice)
        assert function(21) == 42
        return sum(function.stats.cache_misses.values())

    assert [compiled_how_often(), compiled_how_often()] == [1, 0]
    (index,) = tmp_path.rglob("*.nbi")
    for damaged in (index.read_bytes()[:-9], pickle.dumps(numba.__version__) + b"cboostlist.losses.base\nNeverWas\n."):
        index.write_bytes(damaged)
        assert [compiled_how_often(), compiled_how_often()] == [1, 0]
