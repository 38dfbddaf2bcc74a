"""Ensembles on two worker processes."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from boostlist import EnsembleRanker, LinearRanker, distributed, metrics
from boostlist.ensemble.weights import fitted_weights
from boostlist.losses import registry
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


def test_what_a_cluster_does_not_train_is_refused(client):
    with pytest.raises(ValueError, match="member 'line' is no TreeRanker but a LinearRanker"):
        distributed.fit_ensemble(client, arrays(TRAIN), EnsembleRanker([("line", LinearRanker())]))
    with pytest.raises(ValueError, match="on a cluster it must be 1"):
        distributed.fit_ensemble(client, arrays(TRAIN), EnsembleRanker([tree()], n_bags=2))
    with pytest.raises(ValueError, match="early_stopping_rounds needs eval_data"):
        distributed.fit_ensemble(client, arrays(TRAIN), early_stopping_rounds=3)
    with pytest.raises(RuntimeError, match="member 'bad' failed: Unknown parameter"):
        distributed.fit_ensemble(client, arrays(TRAIN), EnsembleRanker(MEMBERS[1:2]), timeout=120)
