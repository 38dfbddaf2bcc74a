"""Training on a Dask cluster
==========================

Train on a Dask cluster from LETOR files, evaluate there, and use the model at home.

A cluster of two local processes stands in for a real one: ``Client("tcp://scheduler:8786")`` is all that changes. The
picture sets the validation metric, a mean over all queries of the cluster, against a training on the same data at home:
the two differ as trainings with slightly other bins do.

    python examples/dask_cluster.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
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
        estimator = TreeRanker("cs_listmle", backend="xgboost", n_estimators=80, learning_rate=0.1)
        ranker = distributed.fit(client, train, estimator, eval_data=vali, early_stopping_rounds=20)
        print(f"{ranker.n_estimators_} trees, test NDCG@10 {distributed.evaluate(client, ranker, test):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        ranker = boostlist.load(ranker.save(Path(folder) / "model.ubj"))
    fold = load_sample()
    # Without names: the partitions were data frames, and so is what the ranker expects.
    first = fold.test.select([0]).to_frame().drop(columns="label")
    print("best documents of the first test query:", ranker.rank(first)[:5])
    estimator.fit(fold.train.X, fold.train.y, fold.train.qid, eval_set=[(fold.vali.X, fold.vali.y, fold.vali.qid)])
    draw({"cluster of two workers": ranker, "one process": estimator})


def draw(rankers: dict[str, TreeRanker]) -> None:
    """Show the metric after each round."""
    _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for (name, ranker), style in zip(rankers.items(), ("-", "--"), strict=True):
        curve = ranker.evals_result_["valid_0"]["ndcg@10"]
        ax.plot(range(1, len(curve) + 1), curve, style, label=name)
    ax.axvline(rankers["cluster of two workers"].n_estimators_, color="grey", lw=0.8, label="trees kept")
    ax.set(xlabel="trees", ylabel="NDCG@10 on validation")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main()
