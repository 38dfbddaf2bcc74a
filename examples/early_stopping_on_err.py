"""Early stopping on expected reciprocal rank
==========================================

Stop by expected reciprocal rank, which is better when higher, whatever the host makes of its name.

Plain XGBoost would minimise a metric called err; TreeRanker goes in the metric's own direction in both hosts.
"""

import matplotlib.pyplot as plt

import boostlist

fold = boostlist.datasets.load_sample()
err = boostlist.metrics.get("err")
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")

for backend in ("lightgbm", "xgboost"):
    ranker = boostlist.TreeRanker("cs_rglist", backend=backend, n_estimators=500, learning_rate=0.1, random_state=0)
    ranker.fit(
        fold.train.X,
        fold.train.y,
        qid=fold.train.qid,
        eval_set=[(fold.vali.X, fold.vali.y, fold.vali.qid)],
        eval_metric=err,
        early_stopping_rounds=20,
    )
    value = err.mean(ranker.predict(fold.test.X), fold.test.queries)
    print(f"{backend}: {ranker.n_estimators_} trees kept, ERR {value:.4f} on the test part")
    (line,) = ax.plot(ranker.evals_result_["valid_0"]["err"], label=backend)
    ax.axvline(ranker.n_estimators_ - 1, color=line.get_color(), linestyle=":")
ax.set_xlabel("trees")
ax.set_ylabel("ERR on validation; dotted: where training is cut")
ax.legend()
plt.show()
