"""Learning curves of several losses
==================================

The same trees, the same data, another loss: NDCG@10 on the validation part after each round, and where early stopping
would keep the model. TreeRanker measures every loss, LightGBM's own included, by the same metric.
"""

import matplotlib.pyplot as plt

import boostlist

fold = boostlist.datasets.load_sample()
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for objective in ("lambdarank", "cs_listmle", "wub", "listmle", "pairwise_logistic"):
    ranker = boostlist.TreeRanker(objective, n_estimators=150, learning_rate=0.1, num_leaves=7, random_state=0)
    ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid, eval_set=[(fold.vali.X, fold.vali.y, fold.vali.qid)])
    curve = ranker.evals_result_["valid_0"]["ndcg@10"]
    best = max(range(len(curve)), key=curve.__getitem__)
    (line,) = ax.plot(range(1, len(curve) + 1), curve, label=objective)
    ax.plot(best + 1, curve[best], "o", color=line.get_color())
    print(f"{objective:18} best after {best + 1:3} trees: NDCG@10 {curve[best]:.4f}")
ax.set_xlabel("trees")
ax.set_ylabel("NDCG@10 on validation")
ax.legend()
plt.show()
