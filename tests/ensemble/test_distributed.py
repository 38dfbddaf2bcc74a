"""Ensembles on two worker processes."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

from boostlist import EnsembleRanker, LinearRanker, distributed, metrics
from boostlist.distributed import ensembles
from boostlist.distributed.watch import GivenUpError
from boostlist.ensemble.weights import fitted_weights
from boostlist.losses import ListMLE, registry
from tests.ensemble.data import TEST, TRAIN, VALI, deviation_within, tree

pytestmark = [
    pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
MEMBERS = [
    ("small", tree(n_jobs=1)),
    ("bad", tree(no_such_parameter=1)),
    ("large", tree("wub", num_leaves=15, n_jobs=1)),
]


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        Client(cluster, timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


def arrays(data, rows=250):
    X, y, qid = np.asarray(data.X), data.y, data.qid
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows), da.from_array(qid, chunks=rows)


def halves():
    """Two partitions of whole queries, in order."""
    cut = int(TRAIN.queries.start[40])
    chunks = (cut, TRAIN.n_documents - cut)
    columns = [da.from_array(column, chunks=(chunks,)) for column in (TRAIN.y, TRAIN.qid)]
    return da.from_array(np.asarray(TRAIN.X), chunks=(chunks, -1)), *columns


def test_members_are_trained_on_the_cluster_and_added(client):
    with pytest.warns(UserWarning, match="member 'bad' failed and is left out"):
        model = distributed.fit_ensemble(
            client, arrays(TRAIN), EnsembleRanker(MEMBERS, on_error="drop", weights="fitted"),
            eval_data=arrays(VALI, 100), early_stopping_rounds=3, timeout=120,
        )  # fmt: skip
    assert [part.name for part in model.parts_] == ["small", "large"]
    untrained = metrics.NDCG(10).mean(np.zeros(TEST.n_documents), TEST.queries)
    for part, (_, member) in zip(model.parts_, MEMBERS[::2], strict=True):
        assert isinstance(part.estimator.objective_.loss.terms[0][1], registry[member.objective])
        assert part.estimator.score(TEST.X, TEST.y, TEST.qid) > untrained + 0.1
        assert len(part.estimator.evals_result_["valid_0"]["ndcg@10"]) >= part.estimator.n_estimators_
        assert part.spread == pytest.approx(deviation_within(part.estimator.predict(VALI.X), VALI), rel=1e-9)
    Z = np.column_stack([part.estimator.predict(VALI.X) / part.spread for part in model.parts_])
    # Moving queries together changes the order of rows only.
    np.testing.assert_allclose(list(model.weights_.values()), fitted_weights(Z, VALI.queries), rtol=1e-6)
    value = distributed.evaluate(client, model, arrays(TEST))
    assert value == pytest.approx(metrics.NDCG(10).mean(model.predict(TEST.X), TEST.queries))
    assert model.merged().num_trees() == sum(part.estimator.n_estimators_ for part in model.parts_)


def test_bags_are_drawn_on_the_cluster(client):
    ensemble = EnsembleRanker(MEMBERS[::2], n_bags=3, weights="fitted", random_state=1)
    model = distributed.fit_ensemble(client, halves(), ensemble, early_stopping_rounds=3, timeout=120)
    assert [part[:2] for part in model.parts_] == [(name, bag) for bag in range(3) for name in ("small", "large")]
    seeds = np.random.RandomState(1).randint(2**31 - 1, size=3)
    drawn = [np.random.RandomState(seed).multinomial(80, np.full(80, 1 / 80)) for seed in seeds]
    columns, seen = np.zeros((2, TRAIN.n_documents)), np.sum([times == 0 for times in drawn], axis=0)
    for part in model.parts_:
        # In one process bins are others, and so are the trees a little; those of another bag differ more.
        alone = [clone(part.estimator).set_params(n_estimators=part.estimator.n_estimators_) for _ in drawn]
        each = [
            m.fit(TRAIN.X, TRAIN.y, TRAIN.qid, sample_weight=n.astype(float)) for m, n in zip(alone, drawn, strict=True)
        ]
        scores, times = part.estimator.predict(TRAIN.X), drawn[part.bag]
        likeness = [np.corrcoef(scores, single.predict(TRAIN.X))[0, 1] for single in each]
        assert np.argmax(likeness) == part.bag
        assert part.spread == pytest.approx(deviation_within(scores, TRAIN, times == 0), rel=1e-9)
        columns[int(part.name == "large")] += scores / part.spread * np.repeat(times == 0, TRAIN.queries.sizes)
    Z = (columns / np.repeat(np.maximum(seen, 1), TRAIN.queries.sizes)).T
    expected = fitted_weights(Z, TRAIN.queries.with_weight((seen > 0).astype(float)))
    np.testing.assert_allclose(list(model.weights_.values()), expected, rtol=1e-6)


def test_a_training_that_is_given_up_is_not_dropped(client, monkeypatch):
    """Its workers may be at it still, and the next member would wait for them."""

    def endless(*args):
        raise GivenUpError("it took more than 1 seconds")

    monkeypatch.setattr(ensembles, "train", endless)
    with pytest.raises(RuntimeError, match="member 'small' failed: it took more than 1 seconds"):
        distributed.fit_ensemble(client, arrays(TRAIN), EnsembleRanker(MEMBERS, on_error="drop"))


def test_what_a_cluster_does_not_train_is_refused(client):
    with pytest.raises(ValueError, match="member 'line' is no TreeRanker but a LinearRanker"):
        distributed.fit_ensemble(client, arrays(TRAIN), EnsembleRanker([("line", LinearRanker())]))
    with pytest.raises(
        RuntimeError, match=r"member 'listmle \(bag 0\)' failed: XGBoost's Dask engine takes no weights"
    ):
        distributed.fit_ensemble(client, arrays(TRAIN), EnsembleRanker([tree(backend="xgboost")], n_bags=2))
    with pytest.raises(ValueError, match="early_stopping_rounds needs eval_data"):
        distributed.fit_ensemble(client, arrays(TRAIN), early_stopping_rounds=3)
    with pytest.raises(RuntimeError, match="member 'bad' failed: Unknown parameter"):
        distributed.fit_ensemble(client, arrays(TRAIN), EnsembleRanker(MEMBERS[1:2]), timeout=120)


def test_several_labels_and_positions_reach_the_members(client):
    """On a cluster as in one process, where a second label of half the grades is looked at by one member."""
    import dask.dataframe as dd
    import pandas as pd

    frame = pd.DataFrame(np.asarray(TRAIN.X)).add_prefix("f")
    frame = frame.assign(
        click=TRAIN.y > 0, half=TRAIN.y // 2, qid=TRAIN.qid, shown=np.tile(["a", "b"], len(TRAIN) // 2)
    )
    members = [tree(loss, backend="xgboost", n_estimators=3, n_jobs=1) for loss in (ListMLE(), ListMLE(label="half"))]
    ensemble = EnsembleRanker([("first", members[0]), ("second", members[1])])
    model = distributed.fit_ensemble(
        client, dd.from_pandas(frame, npartitions=2), ensemble, label=["click", "half"], position="shown", timeout=120
    )
    X = frame.filter(regex="^f")
    labels = {"click": frame.click.to_numpy(float), "half": frame.half.to_numpy(float)}
    alone = clone(ensemble).fit(X, labels, TRAIN.qid, position=frame.shown)
    np.testing.assert_allclose(model.position_bias_, alone.position_bias_, rtol=1e-3)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-3)
    lightgbm, data = (
        EnsembleRanker([("first", tree(n_jobs=1))]),
        dd.from_pandas(frame.drop(columns="half"), npartitions=2),
    )
    with pytest.raises(RuntimeError, match="member 'first' failed: LightGBM's Dask engine takes no positions"):
        distributed.fit_ensemble(client, data, lightgbm, label="click", position="shown")
