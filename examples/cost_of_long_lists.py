"""What a long list costs
======================

Time of one call, gradient and Hessian, for each document of a list, by the length of the list; the shortest of several
calls. Losses of cost n are about flat: a document costs as much among ten as among ten thousand.
"""

import timeit

import matplotlib.pyplot as plt
import numpy as np

from boostlist import Queries
from boostlist.losses import registry

LENGTHS = (10, 100, 1_000, 10_000)
DOCUMENTS = 20_000
rng = np.random.default_rng(0)

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for name in ("cs_listmle", "listmle", "interval_rank", "pairwise_hinge", "pairwise_logistic", "wub", "smooth_ndcg"):
    nanoseconds = []
    for length in LENGTHS:
        queries = Queries.from_sizes(rng.integers(0, 5, DOCUMENTS), np.full(DOCUMENTS // length, length))
        bound, scores = registry[name]().bind(queries), rng.normal(size=DOCUMENTS)
        bound.gradient_hessian(scores)  # compiles
        seconds = timeit.repeat(lambda: bound.gradient_hessian(scores), number=1, repeat=10)  # noqa: B023
        nanoseconds.append(1e9 * min(seconds) / DOCUMENTS)
    ax.loglog(LENGTHS, nanoseconds, ".-", label=f"{name}, {registry[name]().traits.cost}")
    print(f"{name:18}", " ".join(f"{each:8.0f}" for each in nanoseconds), "ns a document")
ax.set_xlabel("documents in a list")
ax.set_ylabel("ns a document")
figure.legend(loc="outside right upper")
plt.show()
