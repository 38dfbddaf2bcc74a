"""XGBoost in ten lines
====================

IntervalRank in XGBoost, whose own ranker refuses custom objectives; xgb.train takes this one as it is.
"""

import matplotlib.pyplot as plt
import xgboost as xgb

import boostlist

fold = boostlist.datasets.load_sample()
train, test = fold.train.xgb_dmatrix(), fold.test

params = {"max_depth": 4, "eta": 0.1, "base_score": 0}
booster = xgb.train(params, train, num_boost_round=100, obj=boostlist.objectives.interval_rank)

ndcg = boostlist.metrics.get("ndcg@10")
print(f"{ndcg.name} on the test part: {ndcg.mean(booster.predict(xgb.DMatrix(test.X)), test.queries):.4f}")

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
xgb.plot_importance(
    booster, ax=ax, importance_type="gain", max_num_features=10, height=0.7, show_values=False, grid=False
)
plt.show()
