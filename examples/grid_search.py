"""scikit-learn's grid search over whole queries
=============================================

scikit-learn's grid search over whole queries: a column qid of the data frame goes wherever the rows go.

QueryKFold keeps the documents of a query in one fold, and the metric is a scorer that knows the queries. The column is
never a feature.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV

import boostlist
from boostlist.model_selection import QueryKFold

fold = boostlist.datasets.load_sample()
X = fold.train.to_frame().drop(columns="label")

search = GridSearchCV(
    boostlist.TreeRanker(n_estimators=40, learning_rate=0.1, random_state=0),
    {"objective": ["cs_listmle", "cs_rglist"], "num_leaves": [7, 15]},
    cv=QueryKFold(3),
    scoring=boostlist.metrics.get("ndcg@10").scorer(),
)
search.fit(X, fold.train.y)
print(f"best: {search.best_params_}, NDCG@10 {search.best_score_:.4f} in cross-validation")

test = fold.test.to_frame()
print(f"NDCG@10 on the test part: {search.score(test.drop(columns='label'), test['label']):.4f}")

results = search.cv_results_
labels = [", ".join(str(value) for value in setting.values()) for setting in results["params"]]
figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.errorbar(results["mean_test_score"], labels, xerr=results["std_test_score"], fmt="o", capsize=3)
ax.set_xlabel("NDCG@10 in cross-validation, and its deviation over the folds")
plt.show()
