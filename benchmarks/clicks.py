"""When does debiasing clicks help? Test NDCG@10 by true grades of models that were trained on simulated clicks.

The training part of each fold is turned into a log of sessions, `boostlist.datasets.simulate_clicks`: position-based
clicks, the ten best documents shown, attention k^-eta. The lists were ranked by one of

    random    nobody: in random order
    weak      a linear model fitted to the true grades of a fiftieth of the training queries, at least three
    good      trees fitted to the true grades of the validation part
    good 20%  the same, and a fifth of the sessions in random order

Models see clicks only. All have 60 trees at a learning rate of 0.1 with 15 leaves; the other parameters are the
hosts' for their own objectives, and `TreeRanker`'s for boostlist's. Beside training at face value stand: position= of
LightGBM's lambdarank; lambdarank_unbiased of XGBoost, which takes the order of rows for positions; position= of
`TreeRanker`; "checked", which is position= unless that warns, and then face value; "ranker", position= on top of the
scores of the ranker that made the log (init_score=, in units of their deviation); propensity=, with the true ones; and
"grades": no clicks, but the true grades of the documents shown.

    python benchmarks/clicks.py --results FOLDER [--data FOLDER] [--sets MQ2007 OHSUMED sample] [--folds 1 2 3 4 5]
                                [--etas 0.5 1 2] [--sessions 2000]

`--data` (or the variable BOOSTLIST_DATA) is the folder that holds the real sets. Every training is stored under
`--results` when it ends; the same command goes on from there, and prints a table for what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from study import Study

import boostlist
from boostlist import LinearRanker, TreeRanker, metrics
from boostlist.datasets import ClickLog, Fold, simulate_clicks
from boostlist.files import write

ROUNDS, RATE, LEAVES, SHOWN = 60, 0.1, 15, 10
NDCG = metrics.NDCG(10)
LOGS = ("random", "weak", "good", "good 20%")
LOSSES = ("pairwise_logistic", "cs_listmle")
LOGGER = "the ranker that made the log, on the training part"

Scores = Callable[[Any], Any]


def logging_scores(fold: Fold, kind: str) -> Scores | None:
    """Return who ranked the training documents, None for random order."""
    train, vali = fold.train, fold.vali
    if kind == "random":
        return None
    if kind == "weak":
        some = np.random.default_rng(5).permutation(train.n_queries)[: max(3, train.n_queries // 50)]
        part = train.select(np.sort(some))
        return LinearRanker("cs_rglist").fit(part.X, part.y, part.qid).predict
    return TreeRanker(n_estimators=ROUNDS, n_jobs=1).fit(vali.X, vali.y, vali.qid).predict


def make_log(fold: Fold, ranker: Scores | None, kind: str, eta: float, sessions: int, seed: int) -> ClickLog:
    share = 0.2 if kind.endswith("20%") else 0.0
    scores = None if ranker is None else ranker(fold.train.X)
    return simulate_clicks(fold.train, scores, sessions=sessions, eta=eta, top=SHOWN, random_share=share, seed=seed)


def lambdarank(log: ClickLog, debiased: bool) -> Scores:
    data = log.data
    params = {"objective": "lambdarank", "learning_rate": RATE, "num_leaves": LEAVES, "num_threads": 1, "verbose": -1}
    train = data.lgb_dataset() if debiased else data.lgb_dataset(position=None)
    booster: Any = lgb.train(params, train, ROUNDS)
    return lambda X: booster.predict(X)


def rank_ndcg(log: ClickLog, debiased: bool) -> Scores:
    params = {"objective": "rank:ndcg", "eta": RATE, "max_leaves": LEAVES, "max_depth": 0, "grow_policy": "lossguide"}
    booster = xgb.train(params | {"nthread": 1, "lambdarank_unbiased": debiased}, log.data.xgb_dmatrix(), ROUNDS)
    return lambda X: booster.inplace_predict(X)


def tree_ranker(log: ClickLog, loss: str, y: Any = None, **extra: Any) -> tuple[Scores, bool]:
    """Return scores, and whether there was a warning that the log was better."""
    data = log.data
    model = TreeRanker(loss, n_estimators=ROUNDS, learning_rate=RATE, num_leaves=LEAVES, n_jobs=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data.X, data.y if y is None else y, data.qid, **extra)
    return model.predict, any("the ranker that made this log was as good" in str(w.message) for w in caught)


def trained(name: str, log: ClickLog, fold: Fold, ranker: Scores | None) -> dict[str, Any]:
    """Return the scores of the test documents under a model, and whether it warned."""
    X = fold.test.X
    objective, _, means = name.partition(" + ")
    if objective == "lambdarank":
        return {"scores": lambdarank(log, means == "position")(X)}
    if objective == "rank:ndcg":
        return {"scores": rank_ndcg(log, means == "unbiased")(X)}
    position, start = log.data.position, 0.0
    by_means: dict[str, dict[str, Any]] = {
        "position": {"position": position},
        "propensity": {"propensity": log.propensity},
        "grades": {"y": fold.train.y[log.document]},
        "ranker": {"position": position},
    }
    extra = by_means.get(means, {})
    if means == "ranker" and ranker is not None:
        unit = ranker(fold.train.X).std()
        extra["init_score"], start = ranker(log.data.X) / unit, ranker(X) / unit
    scores, warned = tree_ranker(log, objective, **extra)
    return {"scores": scores(X) + start, "warned": warned}


MODELS = (
    *("lambdarank", "lambdarank + position", "rank:ndcg", "rank:ndcg + unbiased"),
    *(f"{loss}{means}" for loss in LOSSES for means in ("", " + position", " + propensity")),
    *(f"{LOSSES[0]}{means}" for means in (" + ranker", " + grades")),
)


def measure(results: Path, study: Study, name: str, k: int, kind: str, eta: float, sessions: int) -> dict[str, Any]:
    """Return for each model test NDCG@10 by query and whether it warned; what is stored is not trained again."""
    path = results / f"{name}-fold{k}-{kind.replace(' ', '')}-eta{eta:g}-{sessions}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    missing = [model for model in MODELS if model not in found]
    if missing:
        fold = study.folds(name)[k - 1]
        ranker = logging_scores(fold, kind)
        log = make_log(fold, ranker, kind, eta, sessions, seed=k)
        for model in missing:
            made = trained(model, log, fold, ranker)
            per_query = NDCG.per_query(np.asarray(made["scores"], np.float64), fold.test.queries)
            found[model] = {"ndcg": per_query.tolist(), "warned": made.get("warned", False)}
            write(path, json.dumps(found).encode())
    if LOGGER not in found:
        train = study.folds(name)[k - 1].train
        ranker = logging_scores(study.folds(name)[k - 1], kind)
        scores = np.random.default_rng(k).random(len(train)) if ranker is None else ranker(train.X)
        found[LOGGER] = {"ndcg": NDCG.per_query(scores, train.queries).tolist()}
        write(path, json.dumps(found).encode())
    for loss in LOSSES:
        base, debiased = found[loss], found[f"{loss} + position"]
        found[f"{loss} + checked"] = {"ndcg": (base if debiased["warned"] else debiased)["ndcg"]}
    return found


def table(rows: dict[tuple[str, str], list[dict[str, Any]]], eta: float) -> None:
    """Print mean test NDCG@10 over the queries of all folds, a line a model and a column a set and log."""
    models = [LOGGER, *MODELS[:4]]
    for loss in LOSSES:
        models += [f"{loss}{means}" for means in ("", " + position", " + checked", " + propensity")]
    models += [f"{LOSSES[0]} + ranker", f"{LOSSES[0]} + grades"]
    print(f"\neta = {eta:g}\n\n| | {' | '.join(f'{name}, {kind}' for name, kind in rows)} |")
    print(f"|{' --- |' * (len(rows) + 1)}")
    for model in models:
        means = [np.concatenate([fold[model]["ndcg"] for fold in folds]).mean() for folds in rows.values()]
        print(f"| {model} | {' | '.join(f'{mean:.3f}'.removeprefix('0') for mean in means)} |")
    warned = [np.mean([fold[f"{LOSSES[0]} + position"]["warned"] for fold in folds]) for folds in rows.values()]
    print(f"| folds with a warning, {LOSSES[0]} | {' | '.join(f'{share:.0%}' for share in warned)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=os.environ.get("BOOSTLIST_DATA"))
    parser.add_argument("--sets", nargs="+", default=["MQ2007", "OHSUMED", "sample"])
    parser.add_argument("--folds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--etas", nargs="+", type=float, default=[1.0, 2.0, 0.5])
    parser.add_argument("--logs", nargs="+", default=list(LOGS))
    parser.add_argument("--sessions", type=int, default=2000)
    options = parser.parse_args()
    boostlist.set_threads(1)
    options.results.mkdir(parents=True, exist_ok=True)
    study = Study(options.results, None if options.data is None else Path(options.data))
    for eta in options.etas:
        rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for name in filter(study.has, options.sets):
            for k in options.folds:
                for kind in options.logs:
                    found = measure(options.results, study, name, k, kind, eta, options.sessions)
                    rows.setdefault((name, kind), []).append(found)
        table(rows, eta)


if __name__ == "__main__":
    main()
