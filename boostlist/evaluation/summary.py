"""From results to the comparison: settings chosen, folds pooled, intervals, tests against the baseline, breakdowns.

In each fold the setting with the best selection metric on the validation part is taken; its test values are the fold's.
Pooled figures are means over the test queries of all folds together. Where a run was interrupted, models are compared
on the folds that all of them have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from boostlist._typing import AnyArray, FloatArray, IntArray
from boostlist.evaluation.contenders import Contender
from boostlist.evaluation.experiment import Outcome
from boostlist.evaluation.plan import Plan
from boostlist.evaluation.significance import Interval, PairedComparison, compare, holm, mean_interval
from boostlist.evaluation.storage import Result
from boostlist.evaluation.training import mean
from boostlist.metrics import get as get_metric

DECIMALS = 5
"""Decimals of per-query values on the page."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A model in the comparison.

    Attributes
    ----------
    model
        The model.
    chosen
        Result of the chosen setting for each fold that counts, in order of the folds.
    interval
        Confidence interval of the pooled selection metric.
    against
        Paired comparison with the baseline in the selection metric; None for the baseline, or if no fold is shared.
    p
        p-value of Fisher's randomization test, after Holm's correction over all models.
    failures
        Why trainings failed, each reason once.
    repeated
        For each of the folds that count its query ids, where queries are tested several times; else None.
    """

    model: Contender
    chosen: tuple[Result, ...]
    interval: Interval
    against: PairedComparison | None
    p: float | None
    failures: tuple[str, ...]
    repeated: tuple[AnyArray, ...] | None = None

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    @property
    def folds(self) -> tuple[int, ...]:
        """The folds that count."""
        return tuple(result.fold for result in self.chosen)

    def pooled(self, metric: str) -> FloatArray:
        """Return the metric of every test query, fold after fold; of a query tested several times its mean."""
        return _pooled(self.chosen, metric, self.repeated)

    def mean(self, metric: str) -> float:
        """Return the pooled mean of a metric."""
        return mean(self.pooled(metric))

    def fold_mean(self, metric: str, fold: int) -> float:
        """Return the mean of a metric over one fold; NaN if it has none."""
        return next((mean(result.test[metric]) for result in self.chosen if result.fold == fold), float("nan"))

    @property
    def train_seconds(self) -> float:
        """Time of one training with a chosen setting, mean over folds."""
        return float(np.mean([result.train_seconds for result in self.chosen]))

    @property
    def rank_microseconds(self) -> float:
        """Time to score a document."""
        return 1e6 * sum(r.rank_seconds for r in self.chosen) / max(1, sum(r.documents for r in self.chosen))


@dataclass(frozen=True)
class Bin:
    """Queries that have something in common, by their positions among the pooled test queries."""

    label: str
    rows: AnyArray


@dataclass(frozen=True, eq=False)
class Summary:
    """The comparison.

    Attributes
    ----------
    outcome
        What the experiment gave.
    entries
        Models with results, the best by the selection metric first.
    missing
        Models without results, and why.
    folds
        The folds that count.
    """

    outcome: Outcome
    entries: tuple[Entry, ...]
    missing: dict[str, str]
    folds: tuple[int, ...]

    @property
    def plan(self) -> Plan:
        """What the experiment was to do."""
        return self.outcome.plan

    @cached_property
    def baseline(self) -> Entry | None:
        """The baseline; None if it has no results."""
        return next((entry for entry in self.entries if entry.model == self.plan.baseline), None)

    def complete(self) -> list[Entry]:
        """Return the entries that have all folds that count, so that their pooled queries are the same."""
        return [entry for entry in self.entries if entry.folds == self.folds]

    def fact(self, name: str) -> AnyArray:
        """Return a fact of each pooled test query, such as its length, in the order of `Entry.pooled`."""
        facts = [self.outcome.facts[fold] for fold in self.folds]
        values = np.concatenate([getattr(each, name) for each in facts])
        return values if self.plan.repeats == 1 else values[_queries([each.qid for each in facts])[0]]

    def by_length(self) -> list[Bin]:
        """Cut the queries into four bins of about equally many by list length."""
        return _quantile_bins(self.fact("length"), "documents")

    def by_relevant(self) -> list[Bin]:
        """Cut the queries into bins by the share of relevant documents in per cent."""
        share = np.rint(100 * self.fact("relevant") / self.fact("length")).astype(np.int64)
        return _quantile_bins(share, "% relevant")

    def by_grade(self) -> list[Bin]:
        """Cut the queries by their highest grade."""
        best = self.fact("best")
        grades = np.unique(best)
        if len(grades) > 8:
            return _quantile_bins(best, "highest label")
        return [Bin(f"highest grade {grade:g}", np.flatnonzero(best == grade)) for grade in grades]


def summarize(outcome: Outcome) -> Summary:
    """Choose settings, pool folds, and compare with the baseline."""
    plan = outcome.plan
    chosen = _chosen(outcome)
    failed = defaultdict(list)
    for failure in outcome.failures:
        failed[failure.task.model.name].append(failure.reason)
    folds = _common_folds([set(by_fold) for name, by_fold in chosen.items() if name not in failed])
    folds = folds or _common_folds([set(by_fold) for by_fold in chosen.values()])
    kept = {
        name: tuple(by_fold[fold] for fold in folds if fold in by_fold)
        for name, by_fold in chosen.items()
        if any(fold in by_fold for fold in folds)
    }
    entries = _entries(outcome, kept, failed)
    sign = -1 if get_metric(plan.select).higher_is_better else 1
    missing = {
        model.name: failed[model.name][0] if model.name in failed else "not run"
        for model in plan.models
        if model.name not in kept
    }
    return Summary(outcome, tuple(sorted(entries, key=lambda entry: sign * entry.mean(plan.select))), missing, folds)


def _entries(outcome: Outcome, kept: dict[str, tuple[Result, ...]], failed: dict[str, list[str]]) -> list[Entry]:
    plan = outcome.plan
    base = kept.get(plan.baseline.name, ())
    models = [model for model in plan.models if model.name in kept]
    against = [None if model == plan.baseline else _against(kept[model.name], base, outcome) for model in models]
    raw = [comparison.randomization for comparison in against if comparison is not None]
    corrected = iter(holm(raw) if raw else ())
    return [
        Entry(
            model=model,
            chosen=kept[model.name],
            interval=mean_interval(
                _pooled(kept[model.name], plan.select, _repeated(kept[model.name], outcome)), seed=plan.seed
            ),
            against=comparison,
            p=None if comparison is None else float(next(corrected)),
            failures=tuple(dict.fromkeys(failed.get(model.name, ()))),
            repeated=_repeated(kept[model.name], outcome),
        )
        for model, comparison in zip(models, against, strict=True)
    ]


def _chosen(outcome: Outcome) -> dict[str, dict[int, Result]]:
    """Return for each model and fold, where all settings have been tried, the result of the best one."""
    plan = outcome.plan
    metric = get_metric(plan.select)
    tried: dict[tuple[str, int], int] = defaultdict(int)
    for failure in outcome.failures:
        tried[failure.task.model.name, failure.task.fold] += 1
    found: dict[str, dict[int, Result]] = defaultdict(dict)
    grouped: dict[tuple[str, int], list[Result]] = defaultdict(list)
    for result in outcome.results:
        grouped[result.model, result.fold].append(result)
    for model in plan.models:
        order = plan.settings(model)
        for fold in plan.source.numbers:
            results = grouped[model.name, fold]
            if results and len(results) + tried[model.name, fold] >= len(order):
                if not plan.adaptive:  # Of equally good settings the first in the grid, whichever was finished first.
                    results.sort(key=lambda result: order.index(dict(result.setting)))
                better = max if metric.higher_is_better else min
                found[model.name][fold] = better(results, key=lambda result: result.vali[plan.select])
    return dict(found)


def _common_folds(sets: list[set[int]]) -> tuple[int, ...]:
    return tuple(sorted(set.intersection(*sets))) if sets else ()


def _against(results: Sequence[Result], base: Sequence[Result], outcome: Outcome) -> PairedComparison | None:
    """Compare with the baseline over the queries of the folds that both have."""
    shared = {result.fold for result in results} & {result.fold for result in base}
    if not shared:
        return None
    pair = [[result for result in each if result.fold in shared] for each in (results, base)]
    a, b = (_pooled(each, outcome.plan.select, _repeated(each, outcome)) for each in pair)
    return compare(a, b, seed=outcome.plan.seed)


def _repeated(results: Sequence[Result], outcome: Outcome) -> tuple[AnyArray, ...] | None:
    if outcome.plan.repeats == 1:
        return None
    return tuple(outcome.facts[result.fold].qid for result in results)


def _pooled(results: Sequence[Result], metric: str, repeated: Sequence[AnyArray] | None) -> FloatArray:
    """Return the metric of every query.

    What a query gives in several folds is no independent evidence: its mean counts, once.
    """
    values = np.concatenate([result.test[metric] for result in results])
    if repeated is None:
        return values
    rows, query = _queries(repeated)
    counted = ~np.isnan(values)
    total = np.bincount(query[counted], values[counted], len(rows))
    number = np.bincount(query[counted], minlength=len(rows))
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _queries(ids: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Return where each query appears first, in that order, and for each row which of these it is."""
    _, first, query = np.unique(np.concatenate(ids), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[query]


def wins_losses(a: FloatArray, b: FloatArray) -> tuple[int, int]:
    """Return in how many queries a is above b, and below; values are equal that agree to `DECIMALS`."""
    a, b = np.round(a, DECIMALS), np.round(b, DECIMALS)
    return int(np.sum(a > b)), int(np.sum(a < b))


def _quantile_bins(values: AnyArray, unit: str) -> list[Bin]:
    cuts = np.unique(np.quantile(values, [0, 0.25, 0.5, 0.75, 1], method="nearest"))
    if len(cuts) < 2:
        return [Bin(f"{cuts[0]:g} {unit}", np.arange(len(values)))]
    bins = []
    for i, (low, high) in enumerate(pairwise(cuts)):
        inside = (values >= low if i == 0 else values > low) & (values <= high)
        rows = np.flatnonzero(inside)
        if len(rows):
            first, last = values[rows].min(), values[rows].max()
            bins.append(Bin(f"{first:g}–{last:g} {unit}" if first < last else f"{first:g} {unit}", rows))
    return bins
