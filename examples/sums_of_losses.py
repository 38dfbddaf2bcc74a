"""A sum of losses is a loss
=========================

A weighted sum of losses is a loss: a listwise loss with a little squared error beside it, in either host.

IntervalRank's authors found such a pointwise term to help every listwise loss they tried. TreeRanker adds one of its
own by default, so it is switched off here (pointwise=0) to see the difference.
"""

import matplotlib.pyplot as plt

import boostlist
from boostlist.objectives import CsListMLE, ListMLE, Pointwise

fold = boostlist.datasets.load_sample()
losses = {
    "CS-ListMLE": CsListMLE(),
    "CS-ListMLE + 0.3 squared error": CsListMLE() + 0.3 * Pointwise(centred=True),
    "CS-ListMLE + 0.1 ListMLE": CsListMLE() + 0.1 * ListMLE(),
}
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for name, loss in losses.items():
    ranker = boostlist.TreeRanker(loss, n_estimators=100, learning_rate=0.1, pointwise=0, random_state=0)
    ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid, eval_set=[(fold.test.X, fold.test.y, fold.test.qid)])
    print(f"{name:32} NDCG@10 {ranker.score(fold.test.X, fold.test.y, qid=fold.test.qid):.4f}")
    ax.plot(ranker.evals_result_["valid_0"]["ndcg@10"], label=name)
ax.set_xlabel("trees")
ax.set_ylabel("NDCG@10 on the test part")
ax.legend()
plt.show()
