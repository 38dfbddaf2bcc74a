"""Two labels, one ranker
======================

One ranker for clicks and purchases: the weight of a term decides how much of the one is given up for the other.

Clicks follow the grades of the sample here. Purchases are made up: of documents that are relevant at all, people buy
those with a high value of one feature. Each point is a ranker trained on the sum of two losses.
"""

import matplotlib.pyplot as plt
import numpy as np

import boostlist
from boostlist.objectives import CsListMLE

fold = boostlist.datasets.load_sample()
train, test = fold.train, fold.test


def labels(data):
    return {"click": data.y, "purchase": (data.y > 0) & (data.X[:, 12] > np.median(train.X[:, 12]))}


judged = boostlist.Queries.from_qid(labels(test), test.qid)
metrics = [boostlist.metrics.get(f"ndcg@10:{name}", empty="skip") for name in judged.named]
weights = [0.01, 0.1, 0.3, 1, 3, 30]
curve = []
for weight in weights:
    loss = CsListMLE(label="click") + weight * CsListMLE(label="purchase")
    ranker = boostlist.TreeRanker(loss, n_estimators=60, learning_rate=0.1, random_state=0)
    ranker.fit(train.X, labels(train), train.qid)
    scores = ranker.predict(test.X)
    curve.append([metric.mean(scores, judged) for metric in metrics])
    print(f"weight {weight:6g}  NDCG@10 of clicks {curve[-1][0]:.4f}, of purchases {curve[-1][1]:.4f}")

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.plot(*np.transpose(curve), marker="o")
for weight, point in zip(weights, curve, strict=True):
    ax.annotate(f"{weight:g}", point, xytext=(5, 5), textcoords="offset points")
ax.set_xlabel("NDCG@10 of clicks")
ax.set_ylabel("NDCG@10 of purchases")
ax.set_title("Test data, by the weight of purchases in the loss")
plt.show()
