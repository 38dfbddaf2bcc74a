"""What benchmarks/quality.py and benchmarks/defaults.py share: sets, trainings that are stored, choice, and bags.

A training is a set, a model, a setting, a seed and a fold; what it gives, scores of the validation and test documents
and the time, is stored in a file of its own as it comes. Whatever is asked for again is read from there, so a study
that was stopped goes on where it was. Models are named as in `boostlist compare`; ``catboost:LOSS`` is CatBoost.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boostlist import metrics
from boostlist.datasets import Fold, RankingData, load_folds, make_ranking, sample_folder
from boostlist.ensemble.weights import fitted_weights
from boostlist.evaluation.panel import parse
from boostlist.evaluation.training import features
from boostlist.files import write

ROUNDS, PATIENCE, RATE = 500, 50, 0.05
CRITERION = metrics.NDCG(10)

Setting = Mapping[str, Any]


class Trained(NamedTuple):
    """Scores of the documents of a fold's validation and test parts, and the seconds that training took."""

    vali: Any
    test: Any
    seconds: float


@dataclass
class Study:
    """Trainings on some sets, stored under a folder.

    Attributes
    ----------
    results
        Where trainings are stored.
    data
        Folder that holds the real sets, each as a folder of its own; None without any.
    """

    results: Path
    data: Path | None = None
    _folds: dict[str, list[Fold]] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        return name == "sample" or name in MADE or (self.data is not None and (self.data / name).is_dir())

    def folds(self, name: str) -> list[Fold]:
        """Return the five folds of a set."""
        if name not in self._folds:
            self._folds = {name: list(_folds(name, self.data))}  # one set in memory at a time
        return self._folds[name]

    def trained(self, name: str, model: str, setting: Setting, seed: int, fold: int) -> Trained:
        """Return what a training gave; fold counts from 0."""
        seed = seed if _draws(model, setting) else 0
        path = self.results / name / _slug(model) / f"{_slug(_text(setting))}-seed{seed}-fold{fold + 1}.npz"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            content = io.BytesIO()
            np.savez(content, **_train(model, setting, seed, self.folds(name)[fold])._asdict())
            write(path, content.getvalue())
        with np.load(path) as stored:
            return Trained(stored["vali"], stored["test"], float(stored["seconds"]))

    def chosen(self, name: str, model: str, grid: Iterable[Setting], seed: int = 0) -> list[Setting]:
        """Return for each fold the setting with the best validation NDCG@10 under one seed; the first if equal."""

        def vali(fold: int, setting: Setting) -> float:
            scores = self.trained(name, model, setting, seed, fold).vali
            return CRITERION.mean(scores, self.folds(name)[fold].vali.queries)

        return [max(grid, key=partial(vali, k)) for k in range(len(self.folds(name)))]

    def per_query(self, name: str, test: Callable[[int], Any]) -> Any:
        """Return test NDCG@10 for every query of a set, fold after fold, given the scores of a fold's test part."""
        parts = [CRITERION.per_query(test(k), fold.test.queries) for k, fold in enumerate(self.folds(name))]
        return np.concatenate(parts)

    def single(self, name: str, model: str, grid: Iterable[Setting], seeds: Iterable[int]) -> Any:
        """Return test NDCG@10 by query, the mean over seeds, of a model whose setting the first seed chose."""
        settings = self.chosen(name, model, grid)

        def test(seed: int, fold: int) -> Any:
            return self.trained(name, model, settings[fold], seed, fold).test

        return np.mean([self.per_query(name, partial(test, seed)) for seed in seeds], axis=0)

    def sum(self, name: str, members: Iterable[tuple[str, Setting, int]], *, fitted: bool = False) -> Any:
        """Return test NDCG@10 by query of a sum of members, each in units of its spread on the validation part.

        Weights are uniform, or fitted to the validation part as `EnsembleRanker` does.
        """

        def added(k: int) -> Any:
            queries = self.folds(name)[k].vali.queries
            each = [self.trained(name, *member, k) for member in members]
            units = [(t, unit) for t in each if (unit := _spread(t.vali, queries)) > 0]
            vali, test = (np.column_stack([getattr(t, part) / unit for t, unit in units]) for part in ("vali", "test"))
            return test @ fitted_weights(vali, queries) if fitted else test.sum(axis=1)

        members = list(members)
        return self.per_query(name, added)

    def seconds(self, name: str, model: str, settings: Iterable[Setting], seeds: Iterable[int]) -> float:
        """Return the mean time of a training over some settings, seeds and all folds."""
        folds = range(len(self.folds(name)))
        times = [self.trained(name, model, s, seed, k).seconds for s in settings for seed in seeds for k in folds]
        return float(np.mean(times))


def _web() -> RankingData:
    """Make as few queries, as long lists and as many features as a small sample of web search has."""
    return make_ranking(180, docs=105, n_features=136, seed=21)


def _answers() -> RankingData:
    """Make lists with one right answer each: the first of the most relevant documents of finely graded lists."""
    data = make_ranking(600, docs=30, n_features=40, grades=12, seed=22)
    first = data.queries.start[:-1]
    best = [int(a + np.argmax(data.y[a:b])) for a, b in zip(first, data.queries.start[1:], strict=True)]
    y = np.zeros(len(data))
    y[best] = 1
    return replace(data, y=y)


MADE = {"web": _web, "answers": _answers}


def _folds(name: str, data: Path | None) -> Iterable[Fold]:
    if name in MADE:
        parts = MADE[name]().split(*[0.2] * 5)
        turned = [[parts[(k + i) % 5] for i in range(5)] for k in range(5)]
        return [Fold(k + 1, RankingData.concat(p[:3]), p[3], p[4]) for k, p in enumerate(turned)]
    if name == "sample":
        return load_folds(sample_folder())
    if data is None:
        raise FileNotFoundError(f"{name} is none of the made sets: give --data the folder that holds it")
    return load_folds(data / name)


def _train(model: str, setting: Setting, seed: int, fold: Fold) -> Trained:
    train, vali, test = features(fold, setting)
    begin = time.perf_counter()
    scores = (_catboost if model.startswith("catboost:") else _ranker)(model, setting, seed, train, vali)
    seconds = time.perf_counter() - begin
    return Trained(scores(vali), scores(test), seconds)


def _ranker(name: str, setting: Setting, seed: int, train: RankingData, vali: RankingData) -> Any:
    (model,) = parse(name)
    fixed = {"tree": {"n_estimators": ROUNDS, "learning_rate": RATE}}.get(model.kind, {})
    stopping = {"early_stopping_rounds": PATIENCE} if model.stops else {}
    axes = fixed | stopping | model.estimator_options() | dict(setting)
    return model.fit(axes, train, vali, CRITERION, seed).scores


def _catboost(name: str, setting: Setting, seed: int, train: RankingData, vali: RankingData) -> Any:
    """Train with CatBoost's own early stopping; `boostlist compare` grows all trees, which takes far longer."""
    import catboost

    parameters = {
        "loss_function": name.removeprefix("catboost:"),
        "eval_metric": "NDCG:top=10;type=Exp",
        "iterations": ROUNDS,
        "learning_rate": RATE,
        "early_stopping_rounds": PATIENCE,
        "random_seed": seed,
        "thread_count": 1,
        "verbose": False,
        "allow_writing_files": False,
    }
    pools = [catboost.Pool(data.X, data.y, group_id=data.qid) for data in (train, vali)]
    fitted = catboost.CatBoost(parameters | dict(setting)).fit(pools[0], eval_set=pools[1])
    return lambda data: fitted.predict(data.X)


def _spread(scores: Any, queries: Any) -> float:
    """Return the deviation of scores within queries."""
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    means = np.bincount(query, scores) / queries.sizes
    return float(np.sqrt(np.mean((scores - means[query]) ** 2)))


def _draws(model: str, setting: Setting) -> bool:
    """Whether a model is another one under another seed."""
    random_loss = model.startswith("catboost:") or model == "lightgbm:rank_xendcg"
    return random_loss or setting.get("extra_trees", False) or setting.get("colsample_bynode", 1.0) < 1


def _text(setting: Setting) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(setting.items())) or "default"


def _slug(text: str) -> str:
    return re.sub(r"[^\w=,.+-]+", "_", text)
