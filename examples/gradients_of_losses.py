"""What each loss asks for on one list
===================================

One list, twelve documents, and the step that every loss asks of each: minus the gradient over the Hessian diagonal that
a booster would divide by. Documents are in the order of the scores, best first; the colour is their grade. Two mistakes
were put in: a perfect document in place 9 and a useless one in place 2.

Pairwise losses and WUB move both, and everything between. The Plackett-Luce losses lift the perfect document much more
than they press the useless one down; reverse Plackett-Luce does the opposite.
"""

import matplotlib.pyplot as plt
import numpy as np

from boostlist import Queries
from boostlist.losses import registry

grades = np.array([3, 0, 2, 2, 1, 1, 0, 1, 4, 0, 0, 0])
scores = np.linspace(2, -2, len(grades))
queries = Queries.from_sizes(grades, [len(grades)])

columns = 5
figure, axes = plt.subplots(-(-len(registry) // columns), columns, figsize=(11, 10), sharex=True, layout="constrained")
colours = plt.get_cmap("viridis")(grades / grades.max())
for ax, (name, loss) in zip(axes.flat, registry.items(), strict=False):
    gradient, diag = loss().bind(queries).gradient_hessian(scores)
    step = -gradient / np.maximum(diag, 1e-6 * diag.mean())
    ax.bar(np.arange(1, len(grades) + 1), step / np.abs(step).max(), color=colours)
    ax.axhline(0, color="grey", linewidth=0.5)
    ax.set_title(name, fontsize=10)
    ax.set_yticks([])
    strongest = ", ".join(str(place + 1) for place in np.argsort(-np.abs(step))[:3])
    print(f"{name:24} moves most the documents in places {strongest}")
for ax in axes.flat[len(registry) :]:
    ax.axis("off")
for ax in axes[-1]:
    ax.set(xlabel="place in the list", xticks=(1, 3, 6, 9, 12))
figure.suptitle("Step that each loss asks of each document, relative to its largest")
plt.show()
