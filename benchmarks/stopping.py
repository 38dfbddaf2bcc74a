"""When should boosting stop? Rules compared on the same trainings, which go on for 100 rounds after the best one.

pairwise_logistic, 15 leaves, and 7 leaves with random thresholds; sets, rate and folds as in benchmarks/defaults.py, at
most 600 rounds. Scores are kept every fifth round. The first rule is the default; the last column is the difference to
it: the mean over the sets (without OHSUMED25) and its standard error over queries, paired.

    python benchmarks/stopping.py --results FOLDER [--data FOLDER] [--sets OHSUMED MQ2008 web]

Trainings are stored under `--results` as they come; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
from defaults import POOLED, SETS, difference
from study import CRITERION, RATE, Study

import boostlist
from boostlist import TreeRanker, metrics
from boostlist.datasets import Fold
from boostlist.files import write

ROUNDS, LONGEST, EVERY = 600, 100, 5
SHAPES = ({"num_leaves": 15, "extra_trees": False}, {"num_leaves": 7, "extra_trees": True})


class Course(NamedTuple):
    """A training: validation NDCG@10 after each round; scores of both parts after every fifth one."""

    curve: Any
    vali: Any
    test: Any


class Stopped(NamedTuple):
    """A training as a rule sees it: its course, and the validation part."""

    course: Course
    fold: Fold


Rule = Callable[[Stopped], Any]
"""Scores of the test part."""


def best(values: Any, patience: int) -> int:
    """Return the best of the values before the first that come `patience` after the best so far."""
    top = 0
    for i, value in enumerate(values):
        if value > values[top]:
            top = i
        if i - top >= patience:
            break
    return top


def at(course: Course, round_: int) -> int:
    """Return which of the scores kept are those of a round, or of one of the next four."""
    return min(round_ // EVERY, len(course.test) - 1)


def after(patience: int) -> Rule:
    return lambda t: t.course.test[at(t.course, best(t.course.curve, patience))]


def smoothed(width: int, patience: int) -> Rule:
    def scores(t: Stopped) -> Any:
        curve = t.course.curve
        means = [curve[max(0, i - width + 1) : i + 1].mean() for i in range(len(curve))]
        return t.course.test[at(t.course, max(best(means, patience) - width // 2, 0))]

    return scores


def whole_list(patience: int) -> Rule:
    def scores(t: Stopped) -> Any:
        values = [metrics.NDCG().mean(s, t.fold.vali.queries) for s in t.course.vali]
        return t.course.test[best(values, patience // EVERY)]

    return scores


def mean_around(width: int, patience: int) -> Rule:
    def scores(t: Stopped) -> Any:
        middle, reach = at(t.course, best(t.course.curve, patience)), width // EVERY
        return t.course.test[max(0, middle - reach) : middle + reach + 1].mean(axis=0)

    return scores


RULES: dict[str, Rule] = {
    "50 rounds without a gain": after(50),
    "20": after(20),
    "100": after(100),
    "50, the curve smoothed over 20 rounds": smoothed(20, 50),
    "50, NDCG of the whole list": whole_list(50),
    "50, the mean of the models of 20 rounds before and after": mean_around(20, 50),
}


def course(study: Study, name: str, shape: dict[str, Any], fold: int) -> Course:
    """Return a training, from its file if there is one."""
    path = study.results / "stopping" / name / f"{shape['num_leaves']}-fold{fold + 1}.npz"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        np.savez(content, **train(study.folds(name)[fold], shape)._asdict())
        write(path, content.getvalue())
    with np.load(path) as stored:
        return Course(*(stored[field] for field in Course._fields))


def train(fold: Fold, shape: dict[str, Any]) -> Course:
    curve: list[float] = []

    def stop(env: Any) -> None:
        curve.append(env.evaluation_result_list[0][2])
        if len(curve) - 1 - int(np.argmax(curve)) >= LONGEST:
            raise lgb.callback.EarlyStopException(env.iteration, env.evaluation_result_list)

    ranker = TreeRanker(n_estimators=ROUNDS, learning_rate=RATE, random_state=0, n_jobs=1, **shape)
    valid = [(fold.vali.X, fold.vali.y, fold.vali.qid)]
    ranker.fit(fold.train.X, fold.train.y, fold.train.qid, eval_set=valid, eval_metric=CRITERION, callbacks=[stop])

    def scores(X: Any) -> Any:
        steps = [
            ranker.booster_.predict(X, raw_score=True, start_iteration=a, num_iteration=min(EVERY, len(curve) - a))
            for a in range(0, len(curve), EVERY)
        ]
        return np.cumsum(steps, axis=0).astype(np.float32)

    return Course(np.array(curve), scores(fold.vali.X), scores(fold.test.X))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=os.environ.get("BOOSTLIST_DATA"))
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    options = parser.parse_args()
    boostlist.set_threads(1)
    study = Study(options.results, None if options.data is None else Path(options.data))
    sets = [name for name in options.sets if study.has(name)]

    def by_query(name: str, rule: Rule) -> Any:
        def scores(shape: dict[str, Any], k: int) -> Any:
            return rule(Stopped(course(study, name, shape, k), study.folds(name)[k]))

        return np.mean([study.per_query(name, partial(scores, shape)) for shape in SHAPES], axis=0)

    by_set = {name: [by_query(name, rule) for rule in RULES.values()] for name in sets}
    print(f"| stop after | {' | '.join(sets)} | difference |\n|{' --- |' * (len(sets) + 2)}")
    for i, label in enumerate(RULES):
        cells = " | ".join(f"{by_set[name][i].mean():.4f}".lstrip("0") for name in sets)
        last = difference(*([by_set[name][j] for name in sets if name in POOLED] for j in (i, 0)))
        print(f"| {label} | {cells} | {last} |", flush=True)


if __name__ == "__main__":
    main()
