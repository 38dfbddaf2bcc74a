"""The same loss on trees, on a linear model and on a Gaussian kernel: what the model adds, the loss held fixed."""

import numpy as np

import boostlist

fold = boostlist.datasets.load_sample()
train, test = fold.train.normalize("zscore"), fold.test.normalize("zscore", fit=fold.train)
loss = boostlist.objectives.CsListMLE()

models = {
    "trees": boostlist.TreeRanker(loss, n_estimators=150, learning_rate=0.1, random_state=0),
    "linear": boostlist.LinearRanker(loss, C=100),
    "gaussian kernel": boostlist.KernelRanker(loss, C=100, n_landmarks=300, random_state=0),
}
ndcg = boostlist.metrics.get("ndcg@10")
per_query = {}
for name, model in models.items():
    model.fit(train.X, train.y, qid=train.qid)
    per_query[name] = ndcg.per_query(model.predict(test.X), test.queries)
    print(f"{name:16} NDCG@10 {per_query[name].mean():.4f}")

wins = np.sum(per_query["trees"] > per_query["gaussian kernel"])
losses = np.sum(per_query["trees"] < per_query["gaussian kernel"])
print(f"trees beat the kernel in {wins} queries and lose in {losses}")
