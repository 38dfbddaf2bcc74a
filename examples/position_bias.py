"""Clicks without their position bias
===================================

A log of clicks on lists that a poor ranker made, in one of three in random order, is simulated from graded data; trees
are trained on it at face value, with a bias for each position, and by inverse propensity, and judged by the true
grades.

The biases are learned from clicks alone. What they should be, up to a constant and a factor that depends on the loss,
is the logarithm of the attention that a position gets; here that is 1 / position.
"""

import matplotlib.pyplot as plt
import numpy as np

import boostlist
from boostlist.boosters import plot_position_bias
from boostlist.datasets import estimate_propensities, load_sample, simulate_clicks

fold = load_sample()
poor = fold.train.X[:, -1]
log = simulate_clicks(fold.train, poor, sessions=2000, eta=1.0, top=10, random_share=0.33, seed=0)
clicks = log.data

propensities = estimate_propensities(clicks.y, clicks.position, log.document)
means = {
    "face value": {},
    "position": {"position": clicks.position},
    "propensity": {"propensity": propensities.loc[clicks.position].to_numpy(), "propensity_clip": 0.1},
}
rankers = {}
for name, options in means.items():
    ranker = boostlist.TreeRanker(n_estimators=40, learning_rate=0.1, random_state=0, n_jobs=1)
    rankers[name] = ranker.fit(clicks.X, clicks.y, clicks.qid, **options)
    print(f"{name:12} NDCG@10 by true grades {ranker.score(fold.test.X, fold.test.y, fold.test.qid):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
plot_position_bias(rankers["position"], left, label="learned bias")
attention = -np.log(np.arange(1, 11))
scale = np.ptp(rankers["position"].position_bias_) / np.ptp(attention)
left.plot(scale * (attention - attention.mean()), "--", label="log attention, scaled")
left.legend()
right.plot(propensities, marker="o", label="estimated from random lists")
right.plot(propensities.index, 1 / propensities.index, "--", label="true")
right.set_xlabel("position")
right.set_ylabel("propensity")
right.legend()
plt.show()
