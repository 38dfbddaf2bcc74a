"""Training on a Dask cluster
==========================

Train on a Dask cluster from LETOR files, evaluate there, and use the model at home.

A cluster of two local processes stands in for a real one: ``Client("tcp://scheduler:8786")`` is all that changes.

    python examples/dask_cluster.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from distributed import Client, LocalCluster

import boostlist
from boostlist import TreeRanker, distributed
from boostlist.datasets import load_sample, sample_folder


def main() -> None:
    # Files that every worker can open; a file is a partition.
    parts = sorted(sample_folder().glob("S*.txt.gz"))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        train, vali, test = (
            distributed.read_letor([str(path) for path in paths], n_features=25)
            for paths in (parts[:3], parts[3:4], parts[4:])
        )
        ranker = distributed.fit(
            client,
            train,
            TreeRanker("cs_listmle", backend="xgboost", n_estimators=80, learning_rate=0.1),
            eval_data=vali,
            early_stopping_rounds=20,
        )
        print(f"{ranker.n_estimators_} trees, test NDCG@10 {distributed.evaluate(client, ranker, test):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        ranker = boostlist.load(ranker.save(Path(folder) / "model.ubj"))
    data = load_sample().test.select([0])
    # Without names: the partitions were data frames, and so is what the ranker expects.
    print("best documents of the first test query:", ranker.rank(data.to_frame().drop(columns="label"))[:5])


if __name__ == "__main__":
    main()
