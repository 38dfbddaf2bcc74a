"""Test NDCG of tree ensembles, boostlist's objectives beside those built into the hosts, with one protocol for all.

Five folds; each model is chosen on validation NDCG@10 from num_leaves 7, 15, 31 at learning rate 0.05, at most 400
rounds, early stopping after 50; all other parameters are the defaults of `TreeRanker`, for host objectives the host's.
A family ("built in", "boostlist") is the model of it with the best validation NDCG@10, fold by fold. NDCG has gain
2^y - 1, a query without relevant documents scores 0, ties are in row order. Intervals hold 95 % of 2,000 bootstrap
samples of the test queries; those of differences are paired.

    python benchmarks/quality.py [--sets sample OHSUMED MQ2008] [--data ../shared/data] [--all]

With --all, boostlist's other losses stand beside the families.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np

import boostlist
from boostlist import TreeRanker, metrics
from boostlist.datasets import load_folds, sample_folder
from boostlist.losses import registry

LEAVES, ROUNDS, PATIENCE, RATE = (7, 15, 31), 400, 50, 0.05
CUTS = (1, 3, 5, 10)
FAMILIES = {
    "built in": [("lightgbm", "lambdarank"), ("lightgbm", "rank_xendcg"), ("xgboost", "rank:ndcg")],
    "boostlist": [
        ("lightgbm", "cs_listmle"),
        ("lightgbm", "listmle"),
        ("lightgbm", "weighted_pl"),
        ("lightgbm", "pairwise_logistic"),
        ("xgboost", "cs_listmle"),
    ],
}
BESIDE = {"CatBoost": ["YetiRank", "QueryRMSE"]}
CRITERION = metrics.NDCG(10)


def tree_candidates(fold: Any, backend: str, objective: str) -> list[tuple[float, Any]]:
    """Return validation NDCG@10 and test scores for each number of leaves."""
    results = []
    for leaves in LEAVES:
        ranker = TreeRanker(
            objective, backend=backend, n_estimators=ROUNDS, learning_rate=RATE, num_leaves=leaves, n_jobs=1
        )
        ranker.fit(
            fold.train.X,
            fold.train.y,
            fold.train.qid,
            eval_set=[(fold.vali.X, fold.vali.y, fold.vali.qid)],
            early_stopping_rounds=PATIENCE,
        )
        results.append((max(ranker.evals_result_["valid_0"]["ndcg@10"]), ranker.predict(fold.test.X)))
    return results


def catboost_candidates(fold: Any, loss: str) -> list[tuple[float, Any]]:
    import catboost

    train, vali = (catboost.Pool(d.X, d.y, group_id=d.qid) for d in (fold.train, fold.vali))
    results = []
    for leaves in LEAVES:
        model = catboost.CatBoost(
            {
                "loss_function": loss,
                "eval_metric": "NDCG:top=10;type=Exp",
                "iterations": ROUNDS,
                "learning_rate": RATE,
                "grow_policy": "Lossguide",
                "max_leaves": leaves,
                "early_stopping_rounds": PATIENCE,
                "thread_count": 1,
                "random_seed": 0,
                "verbose": False,
                "allow_writing_files": False,
            }
        )
        model.fit(train, eval_set=vali)
        results.append((CRITERION.mean(model.predict(fold.vali.X), fold.vali.queries), model.predict(fold.test.X)))
    return results


def per_query(scores: Any, data: Any) -> Any:
    """Return NDCG at each cut-off for each query."""
    return np.column_stack([metrics.NDCG(k).per_query(scores, data.queries) for k in CUTS])


def interval(values: Any) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (2_000, len(values)))].mean(axis=1)
    return tuple(np.quantile(means, [0.025, 0.975]))


def run(name: str, folder: Path, others: list[str]) -> tuple[Any, Any]:
    """Print the table of a set and return NDCG@10 by query of both families."""
    print(f"\n## {name}\n\n| model | N@1 | N@3 | N@5 | N@10 | 95 % interval of N@10 | seconds |\n|{' --- |' * 7}")
    chosen: dict[str, list[tuple[float, Any]]] = {}
    folds = list(load_folds(folder))

    def row(model: str, values: Any, seconds: float | None) -> None:
        low, high = interval(values[:, -1])
        cells = " | ".join(f"{v:.4f}" for v in values.mean(axis=0))
        print(
            f"| {model} | {cells} | {low:.3f} to {high:.3f} | {'' if seconds is None else f'{seconds:.0f}'} |",
            flush=True,
        )

    def evaluate(model: str, family: str | None, candidates: Any) -> None:
        begin, parts = time.perf_counter(), []
        for i, fold in enumerate(folds):
            vali, scores = max(candidates(fold), key=lambda pair: pair[0])
            parts.append(per_query(scores, fold.test))
            if family is not None:
                best = chosen.setdefault(family, [(-1.0, None)] * len(folds))
                if vali > best[i][0]:
                    best[i] = (vali, parts[-1])
        row(model, np.concatenate(parts), time.perf_counter() - begin)

    for family, members in FAMILIES.items():
        for backend, objective in members:
            evaluate(
                f"{backend} {objective}",
                family,
                lambda fold, backend=backend, objective=objective: tree_candidates(fold, backend, objective),
            )
    for objective in others:
        evaluate(
            f"lightgbm {objective}",
            None,
            lambda fold, objective=objective: tree_candidates(fold, "lightgbm", objective),
        )
    if importlib.util.find_spec("catboost"):
        for loss in BESIDE["CatBoost"]:
            evaluate(f"CatBoost {loss}", None, lambda fold, loss=loss: catboost_candidates(fold, loss))
    values = {family: np.concatenate([part for _, part in best]) for family, best in chosen.items()}
    for family, v in values.items():
        row(f"**{family}, chosen on validation**", v, None)
    built_in, ours = values["built in"][:, -1], values["boostlist"][:, -1]
    low, high = interval(ours - built_in)
    print(f"\nboostlist - built in, N@10: {(ours - built_in).mean():+.4f} (95 % interval {low:+.4f} to {high:+.4f})")
    return built_in, ours


def main() -> None:
    root = Path(__file__).parents[1]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["OHSUMED", "MQ2008", "sample"])
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    boostlist.set_threads(1)
    headline = {objective for _, objective in FAMILIES["boostlist"]}
    others = [loss for loss in registry if loss not in headline] if options.all else []
    results = {}
    for name in options.sets:
        folder = sample_folder() if name == "sample" else options.data / name
        if not folder.is_dir():
            print(f"\n{name}: not here, left out")
            continue
        results[name] = run(name, folder, others)
    real = [name for name in results if name != "sample"]
    if real:
        means = np.array([[part.mean() for part in results[name]] for name in real])
        print(f"\nMean over {', '.join(real)}: built in {means[:, 0].mean():.4f}, boostlist {means[:, 1].mean():.4f}")


if __name__ == "__main__":
    main()
