"""LightGBM in ten lines
=====================

CS-ListMLE in LightGBM: one line more than the built-in LambdaMART, and the metric stated.
"""

import lightgbm as lgb
import matplotlib.pyplot as plt

import boostlist

fold = boostlist.datasets.load_sample()
train, test = fold.train.lgb_dataset(), fold.test

params = {"objective": boostlist.objectives.cs_listmle, "num_leaves": 15, "learning_rate": 0.1, "verbose": -1}
booster = lgb.train(params, train, num_boost_round=100)

ndcg = boostlist.metrics.get("ndcg@10")
print(f"{ndcg.name} on the test part: {ndcg.mean(booster.predict(test.X), test.queries):.4f}")

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
lgb.plot_importance(booster, ax=ax, importance_type="gain", max_num_features=10, height=0.7, precision=0, grid=False)
plt.show()
