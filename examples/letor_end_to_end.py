"""From a folder of LETOR folds to a figure
========================================

From a folder of LETOR folds to a cross-validated figure.

    python letor_end_to_end.py [FOLDER]

FOLDER holds Fold1 to Fold5, or the parts S1 to S5; without it, the package's sample is taken. In each fold, the number
of leaves and of trees is chosen on the validation part, and the test part is looked at once.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import boostlist
from boostlist.datasets import load_folds, sample_folder

folder = sys.argv[1] if len(sys.argv) > 1 else sample_folder()
ndcg = boostlist.metrics.get("ndcg@10")
pooled = []
for fold in load_folds(folder):
    tried = []
    for num_leaves in (7, 15):
        ranker = boostlist.TreeRanker("cs_listmle", num_leaves=num_leaves, n_estimators=300, learning_rate=0.1)
        ranker.fit(
            fold.train.X,
            fold.train.y,
            qid=fold.train.qid,
            eval_set=[(fold.vali.X, fold.vali.y, fold.vali.qid)],
            eval_metric=ndcg,
            early_stopping_rounds=20,
        )
        tried.append((max(ranker.evals_result_["valid_0"][ndcg.name]), num_leaves, ranker))
    best, num_leaves, ranker = max(tried, key=lambda attempt: attempt[0])
    values = ndcg.per_query(ranker.predict(fold.test.X), fold.test.queries)
    pooled.append(values)
    trees = ranker.n_estimators_
    print(f"fold {fold.number}: {num_leaves} leaves, {trees} trees, NDCG@10 {best:.4f} vali, {values.mean():.4f} test")
values = np.concatenate(pooled)
print(
    f"{len(values)} queries: NDCG@10 {values.mean():.4f}, standard error {values.std(ddof=1) / len(values) ** 0.5:.4f}"
)

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.boxplot(pooled, showmeans=True)
ax.set_xlabel("fold")
ax.set_ylabel("NDCG@10 of each test query")
plt.show()
