"""An ensemble over losses
=======================

Trees on four losses, added in units of their spread: better than most of its members without knowing which of them is
best, and in the end one plain LightGBM model.
"""

import tempfile
from pathlib import Path

import lightgbm as lgb
import matplotlib.pyplot as plt
import numpy as np

import boostlist

fold = boostlist.datasets.load_sample()
train, vali, test = fold.train, fold.vali, fold.test

ensemble = boostlist.EnsembleRanker(random_state=0)
ensemble.fit(train.X, train.y, train.qid, eval_set=[(vali.X, vali.y, vali.qid)])

scores = {part.name: part.estimator.score(test.X, test.y, test.qid) for part in ensemble.parts_}
for part in ensemble.parts_:
    print(f"{part.name:26} {part.estimator.n_estimators_:4} trees  NDCG@10 {scores[part.name]:.4f}")
scores["ensemble"] = ensemble.score(test.X, test.y, test.qid)
print(f"{'ensemble':37}  NDCG@10 {scores['ensemble']:.4f}")

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.plot(list(scores.values()), list(scores), "o")
ax.axvline(scores["ensemble"], linestyle=":")
ax.set_xlabel("NDCG@10 on the test part")
plt.show()

# %%
# All members are trees of one host: one booster has them all, and needs no boostlist to serve.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.txt"
    ensemble.merged().save_model(path)
    served = lgb.Booster(model_file=path).predict(test.X)
print("merged and ensemble differ by", f"{np.abs(served - ensemble.predict(test.X)).max():.0e}")

# %%
# Without validation data, bags of queries take its place: what a bag leaves out stops its members, and fits weights.
members = [
    ("trees", boostlist.TreeRanker("cs_listmle", n_estimators=100, learning_rate=0.1)),
    ("small trees", boostlist.TreeRanker("wub", num_leaves=7, n_estimators=100, learning_rate=0.1)),
    ("line", boostlist.LinearRanker("cs_rglist", C=10)),
]
bagged = boostlist.EnsembleRanker(members, n_bags=3, weights="fitted", random_state=0)
bagged.fit(train.X, train.y, train.qid)
print({name: round(weight, 2) for name, weight in bagged.weights_.items()})
print(f"{'bagged, weights fitted':37}  NDCG@10 {bagged.score(test.X, test.y, test.qid):.4f}")
