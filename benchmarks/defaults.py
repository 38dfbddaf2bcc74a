"""What the defaults of TreeRanker rest on: mean test NDCG@10 by Hessian, regularisation, ties, pointwise term and loss.

Five folds; learning rate 0.05, at most 400 rounds, early stopping after 50 on validation NDCG@10, and the mean over
num_leaves 7 and 15, which is steadier than the figure of the better one. NDCG has gain 2^y - 1, a query without
relevant documents scores 0, ties are in row order. Besides OHSUMED, MQ2008 and the sample there are two made sets:
"binary" has 400 queries, two grades and noise 1.5, "short" 1,500 queries of about 8 documents.

    python benchmarks/defaults.py [--sets sample binary short OHSUMED MQ2008] [--data ../shared/data] [--jobs 2]
                                  [--tables Ties Objective]
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np

import boostlist
from boostlist import Queries, TreeRanker, metrics
from boostlist.datasets import RankingData, load_folds, make_ranking, sample_folder
from boostlist.datasets.folds import Fold
from boostlist.losses import CsListMLE, ListMLE, Loss, Pointwise, SmoothNDCG
from boostlist.losses.base import BoundLoss, Traits

LEAVES, ROUNDS, PATIENCE = (7, 15), 400, 50
CRITERION = metrics.NDCG(10)
MADE = {
    "binary": {"n_queries": 400, "grades": 2, "noise": 1.5, "seed": 11},
    "short": {"n_queries": 1_500, "docs": 8, "seed": 12},
}


@dataclass(frozen=True, kw_only=True)
class OtherHessian(Loss):
    """A loss with its diagonal raised to a part of its mean, or made the same for all documents."""

    loss: Loss
    diag: float | Literal["constant"]

    @property
    def traits(self) -> Traits:
        """As of the loss, but for the diagonal."""
        own = self.loss.traits
        return Traits(diag="heuristic", convex=own.convex, shift_invariant=own.shift_invariant, cost=own.cost)

    def bind(self, queries: Queries) -> BoundLoss:
        """Bind the loss."""
        return BoundOtherHessian(self, queries)


class BoundOtherHessian(BoundLoss):
    """What an `OtherHessian` is when bound."""

    loss: OtherHessian

    def __init__(self, loss: OtherHessian, queries: Queries) -> None:
        super().__init__(loss, queries)
        self.inner = loss.loss.bind(queries)

    def evaluate(self, f: Any, need: int) -> tuple[Any, Any, Any]:
        value, gradient, diag = self.inner.evaluate(f, need)
        if self.loss.diag == "constant":
            return value, gradient, np.full_like(diag, diag.mean())
        return value, gradient, np.maximum(diag, self.loss.diag * diag.mean())


def lightgbm_own(objective: Any, **more: Any) -> dict[str, Any]:
    """Return a setting with LightGBM's own regularisation."""
    return {
        "objective": objective,
        "backend": "lightgbm",
        "min_child_weight": 1e-3,
        "reg_lambda": 0.0,
        "min_child_samples": 20,
        **more,
    }


def ours(objective: Any, **more: Any) -> dict[str, Any]:
    return {"objective": objective, **more}


SQUARED = Pointwise(targets="exp2", centred=True)
TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "Hessian (cs_listmle, LightGBM's regularisation, no pointwise term)": {
        "exact diagonal, floor at 1e-6 of its mean": lightgbm_own("cs_listmle", pointwise=0.0),
        "floor at 0.3 of its mean": lightgbm_own(OtherHessian(loss=CsListMLE(), diag=0.3), pointwise=0.0),
        "the same for every document": lightgbm_own(OtherHessian(loss=CsListMLE(), diag="constant"), pointwise=0.0),
    },
    "Regularisation (cs_listmle)": {
        "LightGBM, its defaults (20 documents, 1e-3, lambda 0)": lightgbm_own("cs_listmle"),
        "LightGBM, 5": ours("cs_listmle", min_child_weight=5.0),
        "**LightGBM, 20**": ours("cs_listmle"),
        "LightGBM, 60": ours("cs_listmle", min_child_weight=60.0),
        "**XGBoost, 20**": ours("cs_listmle", backend="xgboost"),
        "XGBoost, 1": ours("cs_listmle", backend="xgboost", min_child_weight=1.0),
    },
    "Ties (listmle)": {
        "**Breslow: tied documents share a stage**": ours(ListMLE()),
        "the order of the rows, as printed in the papers": ours(ListMLE(ties="order")),
    },
    "Pointwise term": {
        f"{name}, {share:g}": ours(name, pointwise=share)
        for name, shares in {
            "cs_listmle": (0.0, 0.3, 1.0),
            "listmle": (0.0, 0.3),
            "weighted_pl": (0.0, 0.3),
            "pairwise_logistic": (0.0, 0.3),
        }.items()
        for share in shares
    }
    | {"squared error alone": ours(SQUARED, pointwise=0.0)},
    "Objective": {
        **{name: ours(name) for name in ("cs_listmle", "listmle", "weighted_pl", "pairwise_logistic", "gbrank")},
        "cs_listmle, k = 10": ours(CsListMLE(k=10)),
        "LightGBM lambdarank": ours("lambdarank"),
        "LightGBM rank_xendcg": ours("rank_xendcg"),
    },
    "Learning rate of the smoothed metrics": {
        **{
            f"{name}, learning rate {rate:g}": ours(name, learning_rate=rate)
            for name in ("smooth_ndcg", "smooth_err", "smooth_mrr")
            for rate in (0.05, 0.2)
        },
        "smooth_ndcg with tau = 0.3, learning rate 0.2": ours(SmoothNDCG(tau=0.3), learning_rate=0.2),
    },
}


def folds(name: str, data: Path) -> list[Fold]:
    """Return the folds of a set."""
    if name in MADE:
        parts = make_ranking(**MADE[name]).split(*[0.2] * 5)  # type: ignore[arg-type]
        turned = [[parts[(k + i) % 5] for i in range(5)] for k in range(5)]
        return [Fold(k + 1, RankingData.concat(p[:3]), p[3], p[4]) for k, p in enumerate(turned)]
    return list(load_folds(sample_folder() if name == "sample" else data / name))


def mean_ndcg(name: str, data: Path, setting: dict[str, Any]) -> float:
    """Return the mean test NDCG@10 of a setting over queries and numbers of leaves."""
    boostlist.set_threads(1)
    values = []
    for fold in folds(name, data):
        for leaves in LEAVES:
            ranker = TreeRanker(**{"n_estimators": ROUNDS, "num_leaves": leaves, "n_jobs": 1} | setting)
            vali = [(fold.vali.X, fold.vali.y, fold.vali.qid)]
            ranker.fit(fold.train.X, fold.train.y, fold.train.qid, eval_set=vali, early_stopping_rounds=PATIENCE)
            values.append(CRITERION.per_query(ranker.predict(fold.test.X), fold.test.queries))
    return float(np.concatenate(values).mean())


def main() -> None:
    root = Path(__file__).parents[1]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["OHSUMED", "MQ2008", "sample", "binary", "short"])
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", nargs="+", help="words that titles of tables begin with; all by default")
    options = parser.parse_args()
    tables = {t: s for t, s in TABLES.items() if not options.tables or t.startswith(tuple(options.tables))}
    sets = [name for name in options.sets if name in (*MADE, "sample") or (options.data / name).is_dir()]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        running = {
            (title, label): [pool.submit(mean_ndcg, name, options.data, setting) for name in sets]
            for title, settings in tables.items()
            for label, setting in settings.items()
        }
        for title, settings in tables.items():
            print(f"\n## {title}\n\n| | {' | '.join(sets)} |\n|{' --- |' * (len(sets) + 1)}")
            for label in settings:
                figures = " | ".join(f"{future.result():.4f}".lstrip("0") for future in running[title, label])
                print(f"| {label} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
