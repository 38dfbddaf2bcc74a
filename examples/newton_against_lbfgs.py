"""Newton against L-BFGS
======================

A linear ranker is the optimum of a convex function, so solvers can be compared by how fast they reach it. Newton's
method needs a Hessian; for the Plackett-Luce losses it is two matrix products, and a handful of steps suffice.
"""

import matplotlib.pyplot as plt

import boostlist

train = boostlist.datasets.load_sample().train.normalize("zscore")
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for solver in ("newton", "newton-cg", "lbfgs"):
    # Once for the compiler, once to measure.
    for _ in range(2):
        ranker = boostlist.LinearRanker("cs_rglist", C=100, solver=solver, tol=1e-6).fit(train.X, train.y, train.qid)
    course = ranker.convergence_.to_frame()
    norms = course["gradient_norm"]
    axes[0].semilogy(course["number"], norms, ".-", label=solver)
    axes[1].semilogy(1000 * course["seconds"], norms, ".-", label=solver)
    print(f"{solver:10} {ranker.n_iter_:4} iterations, gradient norm {norms.iloc[-1]:.1e}")
axes[0].set_xlabel("iteration")
axes[1].set_xlabel("milliseconds")
axes[0].set_ylabel("norm of the gradient")
axes[0].legend()
plt.show()
