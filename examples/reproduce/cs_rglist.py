"""He, Cost-Sensitive Learning for Listwise Ranking Functions (2016), tables 1 to 3.

    python cs_rglist.py FOLDER [--folds 1,2] [--tables 1,2] [--wide]

The folder is named after its data set (OHSUMED, MQ2008, ...). Paper: linear models on LETOR 3.0 and 4.0; C from 1e-4 to
1, then 0.6, 0.8, 1.2 and 1.4 times the best, chosen on the validation part by AvgNDCG, the mean of NDCG@1 to 10; one
order of the documents for tied grades, not said which; ListMLE without a penalty, by gradient descent that stops early.

Here: the same search for both, with ListMLE trained like cs-RgList, to the optimum with the same penalty, so that rows
differ by the loss and the rule for ties alone. Rules: file order, which a stable sort leaves, random order, Breslow's
and Efron's; --wide lets C go up to 1e3 at first. Queries without relevant documents score 0. Tables 2 and 3 are the
paper's TD2003 and NP2004, which are printed beside whatever set is given; table 3 is table 1 by rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from _tables import Cells, Method, parse_arguments, print_differences, print_methods, ranks, read_folds, wants

from boostlist import LinearRanker
from boostlist.datasets import RankingData
from boostlist.losses import CsRgList, ListMLE, Loss
from boostlist.losses.plackett_luce import Ties
from boostlist.metrics import NDCG, AvgNDCG

# Table 1: ListMLE, cs-RgList with pCf = 3.
PAPER = {
    "OHSUMED": (0.451, 0.473),
    "MQ2007": (0.335, 0.400),
    "MQ2008": (0.380, 0.438),
    "HP2003": (0.639, 0.756),
    "NP2003": (0.672, 0.692),
    "TD2003": (0.251, 0.298),
    "HP2004": (0.642, 0.656),
    "NP2004": (0.662, 0.700),
    "TD2004": (0.225, 0.261),
}
# Table 2, TD2003: AvgNDCG and NDCG@1, 3, 5, 7, 9 by pCf.
PENALTY = {
    1: (0.260, 0.180, 0.275, 0.273, 0.269, 0.267),
    2: (0.294, 0.260, 0.300, 0.304, 0.294, 0.290),
    3: (0.298, 0.280, 0.306, 0.303, 0.300, 0.292),
    4: (0.324, 0.360, 0.323, 0.322, 0.318, 0.315),
    5: (0.330, 0.360, 0.325, 0.333, 0.325, 0.316),
    6: (0.340, 0.380, 0.342, 0.341, 0.331, 0.326),
}
# Table 3, NP2004: NDCG@1 to 10.
BY_RANK = {
    "ListMLE": (0.493, 0.611, 0.648, 0.682, 0.690, 0.697, 0.697, 0.697, 0.701, 0.701),
    "cs-RgList": (0.573, 0.657, 0.681, 0.710, 0.717, 0.725, 0.730, 0.734, 0.738, 0.738),
}
SELECT = AvgNDCG(k=10)
LOSSES: dict[str, ListMLE | CsRgList] = {"ListMLE": ListMLE(), "cs-RgList": CsRgList(pcf=3)}
RULES: dict[str, Ties] = {"file order": "order", "random order": "random", "Breslow": "breslow", "Efron": "efron"}
STAGES = {"paper": (1e-4, 1e-3, 1e-2, 0.1, 1.0), "wide": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0)}


def method(name: str, loss: Loss, grid: Sequence[float], paper: Cells) -> Method:
    """Return a row: a linear model by the search in two stages."""

    def candidates(train: RankingData) -> Sequence[LinearRanker]:
        return [LinearRanker(loss, C=C) for C in grid]

    def refine(best: LinearRanker) -> Sequence[LinearRanker]:
        return [LinearRanker(loss, C=factor * best.C) for factor in (0.6, 0.8, 1.2, 1.4)]

    return Method(name, candidates, paper, refine)


def main() -> None:
    """Print the tables."""
    arguments = parse_arguments(__doc__ or "", ("1", "2", "3"), {"--wide": "let C go up to 1e3"})
    folds = read_folds(arguments)
    name = arguments.folder.resolve().name
    grid = STAGES["wide" if arguments.wide else "paper"]
    ndcg = {f"N@{k}": NDCG(k=k) for k in range(1, 11)}
    if wants(arguments, "1") or wants(arguments, "3"):
        printed = dict(zip(LOSSES, PAPER.get(name, ()), strict=False))
        methods = [
            method(
                f"{loss}, {rule}",
                replace(LOSSES[loss], ties=RULES[rule]),
                grid,
                {"AvgNDCG": printed[loss]} if loss in printed and rule == "file order" else {},
            )
            for rule in RULES
            for loss in LOSSES
        ]
        for loss, average in zip(LOSSES, PAPER["NP2004"], strict=True):
            methods.append(Method(f"{loss}, NP2004", None, {"AvgNDCG": average, **ranks("N", BY_RANK[loss])}))
        title = f"Tables 1 and 3: {name}; the paper's NP2004 below"
        ours = print_methods(title, methods, folds, SELECT, {"AvgNDCG": SELECT, **ndcg})
        pairs = [(f"cs-RgList, {rule}", f"ListMLE, {rule}") for rule in RULES]
        for loss in LOSSES:
            pairs += [(f"{loss}, Breslow", f"{loss}, {rule}") for rule in ("file order", "random order")]
            pairs += [(f"{loss}, Efron", f"{loss}, Breslow")]
        print_differences("Paired differences over all test queries", ours, pairs, "AvgNDCG")
    if wants(arguments, "2"):
        metrics = {"AvgNDCG": SELECT, **{rank: ndcg[rank] for rank in ("N@1", "N@3", "N@5", "N@7", "N@9")}}
        for rule in ("file order", "Breslow"):
            methods = [
                method(
                    f"pCf {pcf}", CsRgList(pcf=pcf, ties=RULES[rule]), grid, dict(zip(metrics, figures, strict=True))
                )
                for pcf, figures in PENALTY.items()
            ]
            print_methods(f"Table 2: the paper's TD2003 beside {name}, {rule}", methods, folds, SELECT, metrics)


if __name__ == "__main__":
    main()
