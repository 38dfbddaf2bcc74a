"""Trees against kernels
=====================

The same loss on trees, on a linear model and on a Gaussian kernel: what the model adds, the loss held fixed.
"""

import matplotlib.pyplot as plt
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

# %%
# What the functions look like: two features, and documents the better the nearer they are to a ring. Trees cut the
# plane into boxes, the kernel bends, and a linear function has nothing to offer.
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (3000, 2))
y = np.digitize(-np.abs(np.hypot(*X.T) - 0.6) + 0.05 * rng.normal(size=len(X)), [-0.25, -0.1, -0.04])
side = np.linspace(-1, 1, 120)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    score = model.fit(X, y, group=np.full(100, 30)).predict(plane).reshape(len(side), -1)
    ax.imshow(score, origin="lower", extent=(-1, 1, -1, 1))
    best = X[y == 3]
    ax.plot(*best.T, "w.", markersize=2)
    ax.set_title(name)
plt.show()
