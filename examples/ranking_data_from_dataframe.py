"""Ranking data from a data frame
==============================

Ranking data from a data frame: columns by name, documents of a query wherever they stand, NaN where unknown.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import boostlist
from boostlist.datasets import RankingData

rng = np.random.default_rng(0)
n = 4000
shop = pd.DataFrame(
    {
        "search": rng.choice([f"s{i}" for i in range(150)], n),
        "price": rng.lognormal(3, 1, n),
        "stars": rng.choice([1.0, 2.0, 3.0, 4.0, 5.0, np.nan], n),
        "title_match": rng.random(n),
    }
)
appeal = 2 * shop["title_match"] + 0.4 * shop["stars"].fillna(3) - 0.3 * np.log(shop["price"]) + rng.normal(0, 0.4, n)
shop["bought"] = np.digitize(appeal, appeal.quantile([0.7, 0.9]))

data = RankingData.from_frame(shop, qid="search", label="bought", sort=True)  # searches together
print(data.describe())
train, test = data.split(0.8, seed=0)
ranker = boostlist.TreeRanker("cs_listmle", n_estimators=80, learning_rate=0.1).fit(train.X, train.y, qid=train.qid)
print(f"NDCG@10 on searches not seen: {ranker.score(test.X, test.y, qid=test.qid):.4f}")

contributions = ranker.predict(test.X, pred_contrib=True)[:, :-1]
figure, axes = plt.subplots(1, len(data.names), figsize=(10, 3.5), sharey=True, layout="constrained")
for ax, name, values, effect in zip(axes, data.names, np.asarray(test.X).T, contributions.T, strict=True):
    ax.plot(values, effect, ".", markersize=2)
    ax.set_xlabel(name)
axes[0].set_ylabel("what the feature adds to the score (SHAP)")
axes[list(data.names).index("price")].set_xscale("log")
plt.show()
