"""Moon, Smola, Chang and Zheng, IntervalRank (WSDM 2010), table 1 and figure 3.

    python interval_rank.py FOLDER [--folds 1,2] [--tables 1,lam1,3] [--pictures]

Paper: OHSUMED with 25 features (LETOR 2.0's), 125 trees by functional gradient descent (algorithm 1); the number of
nodes, the step length and the two slack weights were tuned on the validation part, the criterion is not stated. Here:
125 trees of LightGBM with unit Hessian, 4 or 16 leaves, two step lengths, lam1 from 1 to 10^4 and two lam2, by the
mean of NDCG@1 to 5 on the validation part; LETOR 3.0's metrics; features with mean 0 and deviation 1. The text defines
P@k and MAP by the highest grade, but the figures that it quotes for other methods are LETOR's, where grade 1 counts
too. RankSVM is the hinge at its optimum, ListNet boostlist's linear model, C chosen in the same way; RankBoost has weak
learners of 0 and 1.

1: table 1, and the other losses of section 4.3 on trees. GBRank weighs all pairs alike, as printed, and tied pairs by
lam1; the pointwise term of the rows "Reg" is that of eq. 11, uncentred, with a tenth or the whole of the curvature of
the loss it stands beside; IntervalRank without it and with the same prices has a row too. Step lengths are in units of
the mean curvature at scores of 0, so that a loss that sums over all pairs steps as far as the others. lam1:
IntervalRank by lam1, everything else chosen, and its hard margin. 3: the curves of figure 3, NDCG@1 and @5 of the test
parts by the number of trees, the loss chosen on the validation part; --pictures writes them to the working folder. (The
paper's set is a search engine's, with at most two documents of a host in a list, which `NDCG(k, per_host=2)` measures
where hosts are known.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from _baselines import RankBoost
from _tables import Method, choose, parse_arguments, print_methods, progress, ranks, read_folds, wants, zscore

from boostlist import LinearRanker, RankSVM, TreeRanker
from boostlist.boosters.objective import automatic_scale
from boostlist.datasets import Fold, RankingData
from boostlist.losses import GBRank, IntervalRank, ListMLE, ListNet, Loss, Pointwise
from boostlist.losses.base import Hessian
from boostlist.metrics import AvgNDCG, conventions, get

LETOR = conventions("letor3")
METRICS = {
    **{f"N@{k}": get(f"ndcg@{k}", **LETOR["ndcg"]) for k in range(1, 6)},
    **{f"P@{k}": get(f"p@{k}", **LETOR["p"]) for k in range(1, 6)},
    "MAP": get("map", **LETOR["map"]),
}
SELECT = AvgNDCG(k=5)
LAM1 = (1.0, 10.0, 100.0, 1e3, 1e4)
LAM2 = (1.0, 10.0)
PRICES_REG = (100.0, 1e4), (1.0,)
SHARES = (0.1, 1.0)
ROUNDS = {"table": 125, "figure": 600}

_trained: dict[tuple[str, int], Any] = {}


class Once(TreeRanker):
    """A `TreeRanker` that is trained once for each set of parameters and data: rows share their candidates."""

    def fit(self, X: Any, y: Any, qid: Any) -> Any:
        """Train, or return what was trained."""
        key = repr(self.get_params()), id(X)
        if key not in _trained:
            _trained[key] = super().fit(X, y, qid)
        return _trained[key]


def trees(losses: Sequence[Loss], hessian: Hessian = "unit") -> list[TreeRanker]:
    """Return the candidates: every loss, number of leaves and step length."""
    fixed: dict[str, Any] = {"n_estimators": ROUNDS["table"], "extra_trees": False, "pointwise": 0, "n_jobs": 1}
    return [
        Once(loss.objective(hessian=hessian), num_leaves=leaves, learning_rate=nu, **fixed)
        for loss, leaves, nu in product(losses, (4, 16), (0.03, 0.1))
    ]


def intervals(lam1: Sequence[float] = LAM1, lam2: Sequence[float] = LAM2, lam3: Sequence[float] = (0.0,)) -> list[Loss]:
    """Return IntervalRank for each price; its curvature is about 1, so that lam3 is the share of the pointwise term."""
    return [IntervalRank(lam1=a, lam2=b, lam3=c) for a, b, c in product(lam1, lam2, lam3)]


def gbranks() -> list[Loss]:
    """Return GBRank as printed."""
    return [GBRank(weights="uniform", normalize=None, lam1=lam1) for lam1 in (0.01, 0.1)]


def with_pointwise(losses: Sequence[Loss], train: RankingData) -> list[Loss]:
    """Return each loss with a pointwise term of some share of its curvature."""
    scaled = [(loss, automatic_scale(loss.bind(train.queries))) for loss in losses]
    return [loss + share / scale * Pointwise() for (loss, scale), share in product(scaled, SHARES)]


LOSSES: dict[str, Callable[[RankingData], list[Loss]]] = {
    "GBDT": lambda train: [Pointwise()],
    "GBRank": lambda train: gbranks(),
    "GBRank_Reg": lambda train: with_pointwise(gbranks(), train),
    "ListMLE_Reg": lambda train: with_pointwise([ListMLE(ties="order")], train),
    "ListMLE_Reg, Breslow's ties": lambda train: with_pointwise([ListMLE()], train),
    "IntervalRank": lambda train: intervals(),
    "IntervalRank_Reg": lambda train: intervals(*PRICES_REG, SHARES),
}


def on_trees(name: str, figures: Mapping[str, float] | None = None) -> Method:
    """Return the method of a loss of section 4.3."""
    return Method(name, lambda train: trees(LOSSES[name](train)), figures or {})


def published(*figures: float) -> dict[str, float]:
    """Return a row of the printed table by metric."""
    return {**ranks("N", figures[:5]), **ranks("P", figures[5:10]), "MAP": figures[10]}


METHODS = [
    Method(
        "RankBoost",
        lambda train: [RankBoost(rounds=rounds) for rounds in (30, 100, 300)],
        published(0.4632, 0.4504, 0.4555, 0.4543, 0.4494, 0.5576, 0.5481, 0.5609, 0.5580, 0.5447, 0.4411),
    ),
    Method(
        "RankSVM",
        lambda train: [RankSVM(loss="hinge", C=C) for C in (1e-4, 1e-3, 0.01, 0.1)],
        published(0.4958, 0.4331, 0.4207, 0.4240, 0.4164, 0.5974, 0.5494, 0.5427, 0.5443, 0.5319, 0.4334),
    ),
    Method(
        "FRank", None, published(0.5300, 0.5008, 0.4812, 0.4694, 0.4588, 0.6429, 0.6195, 0.5925, 0.5840, 0.5638, 0.4439)
    ),
    Method(
        "ListNet",
        lambda train: [LinearRanker(ListNet(), C=C) for C in (0.1, 1.0, 10.0)],
        published(0.5326, 0.4810, 0.4732, 0.4561, 0.4432, 0.6524, 0.6093, 0.6016, 0.5745, 0.5502, 0.4457),
    ),
    Method(
        "AdaRank.MAP",
        None,
        published(0.5388, 0.4789, 0.4682, 0.4721, 0.4613, 0.6338, 0.5959, 0.5895, 0.5887, 0.5674, 0.4487),
    ),
    Method(
        "AdaRank.NDCG",
        None,
        published(0.5330, 0.4922, 0.4790, 0.4688, 0.4673, 0.6719, 0.6236, 0.5984, 0.5838, 0.5767, 0.4498),
    ),
    on_trees(
        "IntervalRank",
        published(0.5628, 0.5448, 0.4900, 0.4703, 0.4609, 0.6892, 0.6522, 0.5768, 0.5556, 0.5488, 0.4466),
    ),
    *(on_trees(name) for name in LOSSES if name != "IntervalRank"),
    Method("IntervalRank, prices of _Reg", lambda train: trees(intervals(*PRICES_REG))),
    Method("IntervalRank, Newton steps", lambda train: trees(intervals((1.0, 100.0, 1e4), (1.0,)), "loss")),
]
BY_LAM1 = [
    Method(f"IntervalRank, lam1={lam1:g}", lambda train, lam1=lam1: trees(intervals([lam1])))
    for lam1 in (*LAM1, np.inf)
]


def curves(name: str, fold: Fold) -> Any:
    """Return NDCG@1 and @5 of the test part after each tree, of the loss that is best on the validation part."""
    chosen = choose(trees(LOSSES[name](fold.train)), fold, SELECT)
    model = TreeRanker(**(chosen.get_params() | {"n_estimators": ROUNDS["figure"]}))
    test = (fold.test.X, fold.test.y, fold.test.qid)
    model.fit(fold.train.X, fold.train.y, fold.train.qid, eval_set=[test], eval_metric=[METRICS["N@1"], METRICS["N@5"]])
    progress(f"figure 3, {name}: fold {fold.number}")
    return np.array([model.evals_result_["valid_0"][metric] for metric in ("ndcg@1", "ndcg@5")])


def print_curves(folds: Sequence[Fold], pictures: bool) -> None:
    """Print figure 3 at some numbers of trees, and draw it."""
    shown = [n for n in (25, 50, 100, 200, 400, 600) if n <= ROUNDS["figure"]]
    print("\nFigure 3: test NDCG@1 and NDCG@5 by the number of trees\n")
    print(f"| | {' | '.join(str(n) for n in shown)} |\n|---|{'---|' * len(shown)}")
    found = {}
    for name in LOSSES:
        found[name] = np.mean([curves(name, fold) for fold in folds], axis=0)
        cells = (", ".join(f"{value:.4f}" for value in found[name][:, n - 1]) for n in shown)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    if pictures:
        draw(found)


def draw(found: Mapping[str, Any]) -> None:
    """Write figure 3."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for panel, k, axes in zip((0, 1), (1, 5), panels, strict=True):
        for name, values in found.items():
            axes.plot(np.arange(1, ROUNDS["figure"] + 1), values[panel], linewidth=1, label=name)
        axes.set_xlabel("trees")
        axes.set_ylabel(f"NDCG@{k}")
    panels[1].legend(fontsize=7)
    figure.savefig("interval_rank_figure_3.png", dpi=120)
    plt.close(figure)
    progress("figure 3 is in interval_rank_figure_3.png")


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments(
        __doc__ or "", ("1", "lam1", "3"), {"--pictures": "write figure 3 to the working folder"}
    )
    folds = [zscore(fold) for fold in read_folds(arguments)]
    if arguments.quick:
        ROUNDS.update(table=10, figure=100)
    if wants(arguments, "1"):
        title = "Table 1, and below it the other losses of section 4.3 on trees"
        print_methods(title, METHODS, folds, SELECT, METRICS)
    if wants(arguments, "lam1"):
        print_methods("Table 1 by lam1", BY_LAM1, folds, SELECT, METRICS)
    if wants(arguments, "3"):
        print_curves(folds, arguments.pictures)


if __name__ == "__main__":
    main()
