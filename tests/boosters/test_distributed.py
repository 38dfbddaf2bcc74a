"""Training on two worker processes: plain engines with our objectives, and `boostlist.distributed`."""

from __future__ import annotations

import copy
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from dataclasses import replace

import dask.array as da
import dask.dataframe as dd
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from distributed import Client, LocalCluster, default_client, get_worker
from xgboost import dask as xgb_dask

import boostlist
from boostlist import LinearRanker, Queries, TreeRanker, distributed, metrics, objectives, set_threads
from boostlist.boosters import Objective, lightgbm_host
from boostlist.boosters.defaults import bind_for_trees
from boostlist.boosters.lists import Lists
from boostlist.datasets import make_ranking, write_letor
from boostlist.distributed.parts import Columns, gather_parts, shares
from boostlist.distributed.training import _common_objective, _rounds_to_keep
from boostlist.distributed.watch import guarded
from boostlist.losses import ListMLE, WeightedPL, registry
from boostlist.parallel import get_threads

TRAIN = make_ranking(90, docs=12, n_features=10, noise=0.1, interactions=0.3, blur=0, seed=3)
CHUNK = 250  # cuts through queries
UNTRAINED = metrics.NDCG(10).mean(np.zeros(TRAIN.n_documents), TRAIN.queries)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@contextmanager
def two_workers():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster, timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def arrays(data=TRAIN, rows=CHUNK):
    return (
        da.from_array(data.X, chunks=(rows, -1)),
        da.from_array(data.y, chunks=rows),
        da.from_array(data.qid, chunks=rows),
    )


def halves():
    """Two partitions of whole queries, as X, y, group and qid."""
    cut = int(TRAIN.queries.start[45])
    chunks = (cut, TRAIN.n_documents - cut)
    X = da.from_array(TRAIN.X, chunks=(chunks, -1))
    y, qid = (da.from_array(a, chunks=(chunks,)) for a in (TRAIN.y, TRAIN.qid))
    return X, y, da.from_array(TRAIN.queries.sizes, chunks=((45, 45),)), qid


def ranker(backend, objective="cs_listmle", **params):
    return TreeRanker(
        objective,
        backend=backend,
        **({"n_estimators": 8, "learning_rate": 0.3, "extra_trees": False, "n_jobs": 1} | params),
    )


def fit(client, data, model, **options):
    return distributed.fit(client, data, model, timeout=120, **options)


# Half of the objectives in each engine.
@pytest.mark.parametrize("name", list(registry)[::2])
def test_objectives_in_dask_lgbm_ranker(client, name):
    X, y, sizes, _ = halves()
    model = lgb.DaskLGBMRanker(
        client=client, objective=getattr(objectives, name), n_estimators=4, learning_rate=0.3, num_leaves=7, verbose=-1,
        metric="None",
    )  # fmt: skip
    model.fit(X, y, group=sizes)
    assert metrics.NDCG(10).mean(model.booster_.predict(TRAIN.X), TRAIN.queries) > UNTRAINED + 0.1


@pytest.mark.parametrize("name", list(registry)[1::2])
def test_objectives_in_xgboost_dask(client, name):
    X, y, _, qid = halves()
    params = {"eta": 0.3, "max_depth": 3, "base_score": 0, "tree_method": "hist", "verbosity": 0}
    booster = xgb_dask.train(
        client, params, xgb_dask.DaskDMatrix(client, X, y, qid=qid), 4, obj=getattr(objectives, name)
    )["booster"]
    assert metrics.NDCG(10).mean(booster.predict(xgb.DMatrix(TRAIN.X)), TRAIN.queries) > UNTRAINED + 0.1


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_two_workers_train_the_model_of_one(client, backend):
    model = fit(client, arrays(), ranker(backend, "weighted_pl"))
    alone = ranker(backend, "weighted_pl").fit(TRAIN.X, TRAIN.y, TRAIN.qid)
    assert isinstance(model, TreeRanker)
    assert model.n_estimators_ == 8
    assert model.n_features_in_ == TRAIN.n_features
    score, expected = (m.score(TRAIN.X, TRAIN.y, TRAIN.qid) for m in (model, alone))
    assert expected > UNTRAINED + 0.15
    assert score == pytest.approx(expected, abs=0.03)
    assert distributed.evaluate(client, model, arrays()) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("name", registry)
def test_gradients_of_the_parts_are_those_of_the_whole(client, name):
    """Label set, squared-error term and scale come from all documents: nothing depends on the partition."""
    parts = gather_parts(client, arrays(), Columns(), "repartition")
    objective = _common_objective(client, registry[name]().objective(), None, parts)
    alone = bind_for_trees(registry[name]().objective(), None, Lists(TRAIN.queries)).objective
    scores = np.random.default_rng(0).normal(size=TRAIN.n_documents)
    score_of = {tuple(x): s for x, s in zip(TRAIN.X.tolist(), scores, strict=True)}
    gradients = np.transpose(alone.loss.bind(TRAIN.queries).gradient_hessian(scores))
    whole = {tuple(x): g for x, g in zip(TRAIN.X.tolist(), gradients, strict=True)}
    assert objective.scale == alone.scale
    seen = 0
    for part in client.gather(parts.futures):
        f = np.array([score_of[tuple(x)] for x in part.X.tolist()])
        pieces = np.transpose(objective.loss.bind(part.queries).gradient_hessian(f))
        np.testing.assert_array_equal(pieces, [whole[tuple(x)] for x in part.X.tolist()])
        seen += len(f)
    assert seen == TRAIN.n_documents


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_several_labels(client, backend, tmp_path):
    named = {"click": TRAIN.y, "purchase": (TRAIN.X[:, 3] > np.median(TRAIN.X[:, 3])) / 2}
    loss = WeightedPL(label="click") + 2 * ListMLE(label="purchase")
    X, _, qid = arrays()
    data = (X, {name: da.from_array(y, chunks=CHUNK) for name, y in named.items()}, qid)
    metric = metrics.NDCG(10, label="purchase", gain="linear")
    model = fit(client, data, ranker(backend, loss), eval_data=data, eval_metric=metric)
    alone = ranker(backend, loss).fit(TRAIN.X, named, TRAIN.qid)
    assert model.objective_.scale == alone.objective_.scale
    for ours, theirs in zip(model.objective_.loss.terms, alone.objective_.loss.terms, strict=True):
        assert ours[0] == theirs[0]
        assert ours[1].label == theirs[1].label
    queries = Queries.from_qid(named, TRAIN.qid)
    for label in named:
        score, expected, untrained = (
            metrics.NDCG(10, label=label, gain="linear").mean(f, queries)
            for f in (model.predict(TRAIN.X), alone.predict(TRAIN.X), np.zeros(TRAIN.n_documents))
        )
        assert score == pytest.approx(expected, abs=0.03)
        assert score > untrained + 0.05
    assert model.evals_result_["valid_0"]["ndcg@10:purchase"][-1] == pytest.approx(score, abs=1e-6)
    assert boostlist.load(model.save(tmp_path / "m.json")).objective_ == model.objective_
    frame = dd.from_pandas(TRAIN.to_frame().assign(bought=named["purchase"]), npartitions=2, sort=False)
    parts = gather_parts(client, frame, Columns(["label", "bought"]), "repartition")
    assert parts.labels == ["label", "bought"]
    assert parts.grades("bought") == (0.0, 0.5)
    assert parts.head.shape[1] == TRAIN.n_features
    with pytest.raises(ValueError, match=r"there is no label 'cart'; name its column too, label=\[\.\.\., 'cart'\]"):
        fit(client, frame, ranker(backend, ListMLE(label="cart")))


def test_label_set_reaches_every_loss():
    grades = (0.0, 1.0, 4.0)
    assert WeightedPL().with_grades(grades) == WeightedPL(grades=grades)
    assert WeightedPL(grades=(0, 4)).with_grades(grades) == WeightedPL(grades=(0, 4))
    total = (WeightedPL() + 0.5 * ListMLE()).with_grades(grades)
    assert total.terms[0] == (1.0, WeightedPL(grades=grades))


def test_split_queries_are_moved_or_refused(client):
    with pytest.raises(ValueError, match=r"query \d+ has rows in the partitions 0, 1, and \d other queries are split"):
        fit(client, arrays(), ranker("lightgbm"), split="refuse")
    parts = gather_parts(client, arrays(), Columns(), "repartition")
    got = [X for part in client.gather(parts.futures) for X in np.split(part.X, part.queries.start[1:-1])]
    # Every query, with all its rows in the order that they had.
    expected = np.split(TRAIN.X, TRAIN.queries.start[1:-1])
    for one, other in zip(sorted(got, key=np.max), sorted(expected, key=np.max), strict=True):
        np.testing.assert_array_equal(one, other)


def test_losses_use_the_threads_of_the_worker(client):
    assert client.submit(get_threads, pure=False).result() == 1
    set_threads(3)
    assert get_threads() == 3  # here, where no worker is
    set_threads(None)


def test_workers_get_like_shares(client):
    """What lies on one worker alone is spread over both."""
    X, y, _, qid = halves()
    first, second = client.nthreads()
    on_one = client.persist([X, y, qid], workers=[first], allow_other_workers=False)
    parts = gather_parts(client, tuple(on_one), Columns(), "refuse")
    assert sorted(where for (where,) in client.who_has(parts.futures).values()) == sorted((first, second))


def address_in_time(part):
    time.sleep(0.2)
    return get_worker().address


def test_parts_are_trained_on_where_they_are(client):
    """Dask alone would take some of them to the worker that is idle."""
    parts = gather_parts(client, arrays(rows=125), Columns(), "repartition")
    first, *_ = client.nthreads()
    on_one = client.map(copy.copy, parts.futures, workers=[first], allow_other_workers=False)
    parts = replace(parts, futures=on_one, homes=[first] * len(on_one))
    assert set(client.gather(parts.map_there(client, address_in_time))) == {first}


@pytest.mark.parametrize(
    ("documents", "holder", "threads", "wanted"),
    [
        ([5, 5, 5, 5], "aaab", {"a": 1, "b": 1}, "baab"),
        ([5, 5, 5, 5], "abab", {"a": 1, "b": 1}, "abab"),
        ([5, 5, 5], "aab", {"a": 1, "b": 1}, "aab"),  # there is nothing to gain
        ([100, 91], "aa", {"a": 1, "b": 10}, "bb"),
        ([50, 4, 46], "aab", {"a": 1, "b": 1}, "aab"),  # a move of 4 would gain less than a tenth
        ([9, 2], "aa", {"a": 1, "b": 1, "c": 1}, "ab"),
    ],
)
def test_shares(documents, holder, threads, wanted):
    assert "".join(shares(documents, holder, threads)) == wanted


def test_scattered_queries(client):
    order = np.random.default_rng(0).permutation(TRAIN.n_documents)
    shuffled = [da.from_array(a[order], chunks=(CHUNK, *[-1] * (a.ndim - 1))) for a in (TRAIN.X, TRAIN.y, TRAIN.qid)]
    parts = client.gather(gather_parts(client, tuple(shuffled), Columns(), "repartition").futures)
    assert sum(part.queries.n_queries for part in parts) == TRAIN.n_queries
    assert max(len(part.X) for part in parts) < 2 * CHUNK
    inside = [da.from_array(a[order], chunks=(-1,) * a.ndim) for a in (TRAIN.X, TRAIN.y, TRAIN.qid)]
    with pytest.raises(ValueError, match="in partition 0 the rows of a query are not adjacent"):
        gather_parts(client, tuple(inside), Columns(), "refuse")


def test_frames_from_parquet_with_categories_and_weights(client, tmp_path):
    frame = TRAIN.to_frame()
    frame["kind"] = pd.Categorical(np.where(TRAIN.y > 1, "good", "poor"))
    frame["weight"] = np.repeat(1.0 + np.arange(TRAIN.n_queries) % 2, TRAIN.queries.sizes)
    dd.from_pandas(frame, npartitions=3, sort=False).to_parquet(tmp_path / "data")
    data = dd.read_parquet(tmp_path / "data").categorize()
    model = fit(client, data, ranker("lightgbm"), weight="weight")
    assert model.feature_names_in_.tolist() == [*TRAIN.names, "kind"]
    assert model.score(frame.drop(columns=["label", "weight"]), TRAIN.y) > UNTRAINED + 0.25
    with pytest.raises(ValueError, match="XGBoost's Dask engine takes no weights"):
        fit(client, data, ranker("xgboost"), weight="weight")
    with pytest.raises(ValueError, match="the data has no column 'grade'"):
        fit(client, data, ranker("lightgbm"), label="grade")


def test_an_xgboost_without_a_working_dask_engine_is_refused(client, monkeypatch):
    monkeypatch.setattr("xgboost.__version__", "2.1.4")
    with pytest.raises(ImportError, match=r"xgboost>=3\.0"):
        fit(client, dd.from_pandas(TRAIN.to_frame(), npartitions=2, sort=False), ranker("xgboost"))


def test_categories_that_differ_are_refused(client):
    frames = [
        pd.DataFrame({"qid": [q, q], "label": [0.0, 1.0], "kind": pd.Categorical(list(kinds))})
        for q, kinds in ((1, "ab"), (2, "cd"))
    ]
    data = dd.from_delayed(
        [client.submit(pd.DataFrame, frame) for frame in frames], meta=frames[0].iloc[:0], verify_meta=False
    )
    with pytest.raises(ValueError, match=r"column 'kind' has other categories in partition 1 .* data.categorize\(\)"):
        fit(client, data, ranker("lightgbm"))


def test_letor_files(client, tmp_path):
    paths = [write_letor(TRAIN.select(np.arange(q, 90, 3)), tmp_path / f"{q}.txt.gz") for q in range(3)]
    data = distributed.read_letor([str(path) for path in paths], n_features=TRAIN.n_features)
    assert data.npartitions == 3
    model = fit(client, data, ranker("xgboost"))
    assert distributed.evaluate(client, model, data, "mrr") > 0.7


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_early_stopping_over_the_cluster(client, backend):
    model = fit(
        client, arrays(), ranker(backend, n_estimators=15, learning_rate=0.5), eval_data=arrays(),
        eval_metric=["ndcg@5", "mrr"], early_stopping_rounds=2,
    )  # fmt: skip
    values = model.evals_result_["valid_0"]["ndcg@5"]
    assert model.n_estimators_ == int(np.argmax(values)) + 1
    for metric in (metrics.NDCG(5), metrics.MRR()):
        expected = metric.mean(model.predict(TRAIN.X), TRAIN.queries)
        assert model.evals_result_["valid_0"][metric.name][model.n_estimators_ - 1] == pytest.approx(expected, abs=1e-6)


def test_rounds_to_keep():
    assert _rounds_to_keep(metrics.MRR(), [0.1, 0.3, 0.2, 0.2, 0.9], 2) == 2
    assert _rounds_to_keep(metrics.MRR(), [0.1, 0.3, 0.2, 0.2, 0.9], 3) == 5
    assert _rounds_to_keep(metrics.MRR(), [0.1, 0.2], 3) == 2


def test_wrong_data_is_named(client):
    with pytest.raises(TypeError, match=r"data must be a Dask DataFrame .* or a tuple"):
        fit(client, TRAIN.to_frame(), ranker("lightgbm"))
    with pytest.raises(ValueError, match='split must be "repartition" or "refuse"'):
        fit(client, arrays(), ranker("lightgbm"), split="maybe")
    with pytest.raises(ValueError, match="Unknown parameter: no_such"):
        fit(client, arrays(), ranker("lightgbm", no_such=1))


def two_scales():
    """Labels of which the second half has no grade above 1."""
    y = np.where(np.arange(TRAIN.n_documents) < TRAIN.queries.start[45], TRAIN.y, np.minimum(TRAIN.y, 1))
    X, _, _, qid = halves()
    assert y.max() > 2
    return X, da.from_array(y, chunks=X.chunks[:1]), qid


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_err_has_the_largest_grade_of_all_partitions(client, backend):
    data = two_scales()
    queries = Queries.from_qid(data[1].compute(), TRAIN.qid)
    model = fit(client, data, ranker(backend, "listnet"), eval_data=data, eval_metric="err@5")
    expected = metrics.ERR(5).mean(model.predict(TRAIN.X), queries)
    assert distributed.evaluate(client, model, data, "err@5") == pytest.approx(expected, abs=1e-12)
    assert model.evals_result_["valid_0"]["err@5"][-1] == pytest.approx(expected, abs=1e-6)


def test_what_can_be_known_is_refused_before_training(client, monkeypatch):
    monkeypatch.setattr(lightgbm_host, "train_distributed", lambda job: pytest.fail("was trained"))
    with pytest.raises(ValueError, match="there is no metric 'no_such'"):
        fit(client, arrays(), ranker("lightgbm"), eval_data=arrays(), eval_metric="no_such")
    with pytest.raises(ValueError, match="early_stopping_rounds needs eval_data"):
        fit(client, arrays(), ranker("lightgbm"), early_stopping_rounds=2)
    with pytest.raises(TypeError, match="data must be a Dask DataFrame"):
        fit(client, arrays(), ranker("lightgbm"), eval_data=[1, 2])
    with pytest.raises(ValueError, match="all weights are 0"):
        fit(client, (*arrays(), da.zeros(TRAIN.n_documents, chunks=CHUNK)), ranker("lightgbm"))


@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_query_ids_are_named(client, missing):
    qid = TRAIN.qid.astype(object if missing is None else float)
    qid[CHUNK + 3] = missing
    data = (*arrays()[:2], da.from_array(qid, chunks=CHUNK))
    with pytest.raises(ValueError, match="partition 1 has no query id in row 3"):
        fit(client, data, ranker("lightgbm"))


def test_other_rankers_and_no_dask(client, monkeypatch):
    with pytest.raises(TypeError, match="trains a TreeRanker, not a LinearRanker"):
        fit(client, arrays(), LinearRanker())

    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("boostlist.distributed.parts.import_module", missing)
    for call in (
        lambda: fit(client, arrays(), ranker("lightgbm")),
        lambda: distributed.evaluate(client, ranker("lightgbm"), arrays()),
        lambda: distributed.read_letor(["a"], n_features=2),
    ):
        with pytest.raises(ImportError, match=r"No module named 'dask.dataframe'\): pip install \"boostlist\[dask\]\""):
            call()


def test_samples_of_queries_and_extra_trees(client):
    model = fit(client, arrays(), ranker("lightgbm", subsample_queries=0.5, extra_trees=True, random_state=3))
    assert (model.objective_.subsample_queries, model.objective_.seed) == (0.5, 3)
    assert "[extra_trees: 1]" in model.booster_.model_to_string()
    assert model.score(TRAIN.X, TRAIN.y, TRAIN.qid) > UNTRAINED + 0.05
    sampled, whole = (fit(client, arrays(), ranker("xgboost", subsample_queries=share)) for share in (0.5, 1.0))
    assert not np.array_equal(sampled.predict(TRAIN.X), whole.predict(TRAIN.X))


def test_a_partition_without_weight(client):
    """Its queries take no part; those of the other one train as if they were alone."""
    X, y, _, qid = halves()
    weight = da.from_array((np.arange(TRAIN.n_documents) < TRAIN.queries.start[45]) * 1.0, chunks=X.chunks[:1])
    model = fit(client, (X, y, qid, weight), ranker("lightgbm"))
    first = TRAIN.select(np.arange(45))
    assert model.objective_ == ranker("lightgbm").fit(first.X, first.y, first.qid).objective_
    assert model.score(first.X, first.y, first.qid) > UNTRAINED + 0.1


def test_a_scale_by_hand_stays(client):
    model = fit(client, arrays(), ranker("lightgbm", Objective(loss=ListMLE(), scale=3.0), pointwise=0))
    assert model.objective_ == Objective(loss=ListMLE(), scale=3.0)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_a_killed_worker_is_an_error_and_no_hang(backend):
    def boosts():
        """Tell, on a worker, whether a thread of it adds a tree."""
        stacks = (traceback.walk_stack(frame) for frame in sys._current_frames().values())
        return any(frame.f_code.co_qualname == "Booster.update" for stack in stacks for frame, _ in stack)

    def kill_while_training(client, pid):
        # Not before all have met: XGBoost's tracker, in the scheduler's process, aborts when one is gone by then.
        while not all(client.run(boosts).values()):
            time.sleep(0.1)
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # on Windows either ends a process at once

    with two_workers() as client:
        pid = next(iter(client.run(os.getpid).values()))
        killer = threading.Thread(target=kill_while_training, args=(client, pid), daemon=True)
        killer.start()
        begin = time.monotonic()
        with pytest.raises(RuntimeError, match=r"the worker tcp://127.0.0.1:\d+ was lost; no model was made"):
            fit(client, arrays(), ranker(backend, n_estimators=100_000, learning_rate=1e-4))
        killer.join(timeout=10)
        assert time.monotonic() - begin < 110  # before the timeout would have ended it


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_another_client_may_be_the_current_one(client, backend):
    """XGBoost's engine waits by way of the current client: for ever, if that is not the one that it was given."""
    with Client(client.scheduler.address) as other:
        assert default_client() is other
        assert guarded(client, set(), default_client, None) is client
        model = fit(client, arrays(), ranker(backend))
        assert default_client() is other
    assert model.booster_ is not None


def positioned():
    """A frame of the training data with positions that decide on a part of the labels, and the arrays."""
    position = np.concatenate([np.random.default_rng(q).permutation(n) for q, n in enumerate(TRAIN.queries.sizes)]) // 3
    labels = np.where(position == 0, TRAIN.y + 1, TRAIN.y)
    slot = np.array([f"slot {p}" for p in position])
    frame = TRAIN.feature_frame().assign(qid=TRAIN.qid, label=labels, position=slot)
    return frame, labels, slot


def test_biases_of_positions_are_those_of_one_process(client):
    frame, labels, slot = positioned()
    model = fit(client, dd.from_pandas(frame, npartitions=3), ranker("xgboost"), position="position")
    alone = ranker("xgboost").fit(TRAIN.feature_frame(), labels, TRAIN.qid, position=slot)
    pd.testing.assert_series_equal(model.position_bias_, alone.position_bias_, rtol=1e-3)
    assert model.position_bias_["slot 0"] > 0.1 > model.position_bias_["slot 1"]
    features = TRAIN.feature_frame()
    assert np.corrcoef(model.predict(features), alone.predict(features))[0, 1] > 0.99
    assert not [name for name in model.booster_.attributes() if "bias" in name]
    stopped = fit(
        client,
        dd.from_pandas(frame, npartitions=2),
        ranker("xgboost"),
        position="position",
        eval_data=dd.from_pandas(frame.assign(label=10 - frame.label), npartitions=2),
        early_stopping_rounds=2,
    )
    assert stopped.n_estimators_ < 8
    short = ranker("xgboost", n_estimators=stopped.n_estimators_)
    short.fit(TRAIN.feature_frame(), labels, TRAIN.qid, position=slot)
    pd.testing.assert_series_equal(stopped.position_bias_, short.position_bias_, rtol=1e-3)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_trees_add_to_scores_on_the_cluster(client, backend):
    """Scores that order all lists leave little to add; rows of queries that are cut move with theirs."""
    frame = TRAIN.to_frame().assign(base=10 * TRAIN.y)
    data = dd.from_pandas(frame, npartitions=3)
    model = ranker(backend, "pairwise_logistic", n_estimators=3)
    found = fit(client, data, model, init_score="base", eval_data=data)
    plain = ranker(backend, "pairwise_logistic", n_estimators=3).fit(TRAIN.feature_frame(), TRAIN.y, TRAIN.qid)
    X = TRAIN.feature_frame()
    assert np.ptp(found.predict(X)) < 0.1 * np.ptp(plain.predict(X))
    best = metrics.NDCG(10).mean(TRAIN.y, TRAIN.queries)
    assert min(found.evals_result_["valid_0"]["ndcg@10"]) == pytest.approx(best)
    with pytest.raises(ValueError, match="init_score='base' names a column"):
        fit(client, arrays(), model, init_score="base")


def test_positions_refused(client):
    frame, _, _ = positioned()
    data = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="LightGBM's Dask engine takes no positions"):
        fit(client, data, ranker("lightgbm"), position="position")
    with pytest.raises(ValueError, match="rank:ndcg takes no positions"):
        fit(client, data, ranker("xgboost", "rank:ndcg"), position="position")
    with pytest.raises(ValueError, match="position='slot' names a column"):
        fit(client, arrays(), ranker("xgboost"), position="slot")
