"""``boostlist.compare``: models cross-validated on a data set, and what came of it as tables, figures and tests."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from boostlist.checks import warn
from boostlist.evaluation import tables
from boostlist.evaluation.contenders import Contender, Guest
from boostlist.evaluation.experiment import Outcome, run
from boostlist.evaluation.grids import read_grid
from boostlist.evaluation.guests import Run
from boostlist.evaluation.lineup import contenders, listed
from boostlist.evaluation.panel import Model, check_host_parameters, check_hosts, default_baseline
from boostlist.evaluation.plan import Plan
from boostlist.evaluation.progress import Progress
from boostlist.evaluation.search import check_search
from boostlist.evaluation.significance import PairedComparison
from boostlist.evaluation.significance import compare as compare_values
from boostlist.evaluation.sources import Source, in_memory, make_source
from boostlist.evaluation.storage import Store
from boostlist.evaluation.summary import Entry, Summary, summarize
from boostlist.metrics import get as get_metric

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from boostlist.evaluation.drawing import Drawing


def compare(
    data: Any = None,
    models: Any = "default",
    *,
    baseline: str | None = None,
    folds: Sequence[int] | None = None,
    repeats: int = 1,
    metrics: Sequence[str] = ("ndcg@10", "err", "map"),
    select: str | None = None,
    grid: str | Path | Mapping[str, Mapping[str, Any]] | None = None,
    tune: int | None = None,
    search: str = "random",
    out: str | Path | None = None,
    fresh: bool = False,
    keep_models: bool = False,
    jobs: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Comparison:
    """Cross-validate models on a data set: settings chosen on validation parts, values and tests from test parts.

    Parameters
    ----------
    data
        None for the sample of the package; a folder or file as `boostlist.datasets.find_folds` takes it, or a CSV or
        Parquet file; `RankingData`, or a data frame with the columns qid and label, cut by query into five folds; or
        folds of your own: a `boostlist.datasets.Fold`, or several.
    models
        Names, such as ``"lightgbm:cs_listmle"``, ``"catboost:YetiRank"``, ``"feature:bm25"`` or ``"run:FILE"``;
        estimators in the manner of scikit-learn, which need ``fit(X, y)`` and ``predict`` and are given the queries if
        ``fit`` has a parameter for them; functions from features to scores. One, several, or under names of your own:
        ``["default", {"mine": estimator}]``.
    baseline
        Name of the model that others are compared with; by default the first with a host's own objective, else the
        first.
    folds
        Numbers of the folds to use; None for all.
    repeats
        How many times queries are dealt out to five folds, where the folds are not given. Tests count a query once, by
        the mean of what it gives.
    metrics
        Names of the metrics to report.
    select
        Name of the metric that settings are chosen by, and trees stopped by; by default the first of them.
    grid
        ``"small"`` (the default), ``"full"``, a TOML or JSON file, or a mapping: by family or name of a model, the
        values of each parameter.
    tune
        Number of settings of each model that are tried of the grid, by default of ranges that the package has; None
        tries every setting of the grid.
    search
        How `tune` finds them: ``"random"`` draws them, the same for all models of a family; ``"optuna"`` (extra
        ``tune``) chooses each by what those before it gave on the validation part of the fold.
    out
        Folder to keep results in, which a later call goes on with; None keeps nothing.
    fresh
        Whether to delete first what the folder has.
    keep_models
        Whether to save the chosen models in the folder ``models`` of `out`.
    jobs
        Number of processes, of one thread each; None for as many as there are cores.
    seed
        Seed of models, folds and resampling.
    progress
        Whether to tell how far it is on the standard error output.

    Raises
    ------
    ValueError
        If an argument cannot be carried out; nothing has been written then.

    Examples
    --------
    >>> import boostlist
    >>> found = boostlist.compare(models=["linear:cs_listmle", "feature:1"], metrics=["ndcg@10"])  # doctest: +SKIP
    >>> found.best  # doctest: +SKIP
    'linear:cs_listmle'
    """
    plan = make_plan(
        data,
        models,
        baseline=baseline,
        folds=folds,
        repeats=repeats,
        metrics=metrics,
        select=select,
        grid=grid,
        tune=tune,
        search=search,
        keep_models=keep_models,
        seed=seed,
    )
    if keep_models and out is None:
        raise ValueError("keep_models needs a folder to keep them in: out=...")
    number = count_jobs(jobs)
    for note in plan.notes:
        warn(note)
    with tempfile.TemporaryDirectory(prefix="boostlist-") as temporary:
        store = Store(out or temporary, plan.identity, fresh)
        outcome = run_experiment(plan, store, number, sys.stderr if progress else None)
        if outcome.interrupted:
            raise KeyboardInterrupt
        if outcome.trouble is not None:
            raise OSError(outcome.trouble)
        return Comparison.of(outcome, store, number)


def make_plan(
    data: Any,
    models: Any,
    *,
    baseline: str | None,
    folds: Sequence[int] | None,
    repeats: int,
    metrics: Sequence[str],
    select: str | None,
    grid: Any,
    tune: int | None,
    search: str,
    keep_models: bool,
    seed: int,
) -> Plan:
    """Turn arguments into a plan; whatever is wrong with them is found here, before anything is trained."""
    names = tuple(get_metric(name).name for name in ([metrics] if isinstance(metrics, str) else metrics))
    if not names and not select:
        raise ValueError("no metrics given; name some, for example ndcg@10,err,map")
    chosen = get_metric(select).name if select else names[0]
    for what, value in (("repeats", repeats), ("tune", 1 if tune is None else tune)):
        if value < 1:
            raise ValueError(f"{what} must be at least 1, got {value}")
    check_search(search)
    asked = listed(models)
    panel = contenders(asked)
    reference = _baseline(panel, baseline)
    check_hosts(panel)
    guests = [model.name for model in panel if isinstance(model, Guest)]
    source = make_source(data, folds, repeats=repeats, seed=seed, comments=any(isinstance(m, Run) for m in panel))
    unfit = _without_categories(panel, source, [*asked, reference.name])
    plan = Plan(
        source=source,
        models=tuple(model for model in panel if model not in unfit),
        baseline=reference,
        grid=read_grid(grid or ("small" if tune is None else "ranges"), guests),
        metrics=tuple(dict.fromkeys((chosen, *names))),
        select=chosen,
        seed=seed,
        tune=tune,
        search=search,
        repeats=repeats,
        keep_models=keep_models,
        notes=_notes(source, unfit),
    )
    for model in plan.models:
        settings, _ = plan.settings(model), model.origin  # both refuse what cannot be carried out
        if isinstance(model, Model):
            check_host_parameters(model, settings[0])  # all settings of a model have the same names
    return plan


def _baseline(panel: list[Contender], name: str | None) -> Contender:
    """Return the baseline, which joins the panel if it is not in it."""
    if name is None:
        return default_baseline(panel)
    known = {model.name: model for model in panel}
    if name not in known:
        (known[name],) = contenders(name)[:1]
        panel.insert(0, known[name])
    return known[name]


def _without_categories(panel: list[Contender], source: Source, kept: Sequence[Any]) -> list[Contender]:
    """Return the models that would fail since the data has categories, but for those that were asked for by name."""
    if not any(part.categories for part in in_memory(source)):
        return []
    return [m for m in panel if isinstance(m, Model) and not m.takes_categories and m.name not in kept]


def _notes(source: Source, unfit: Sequence[Contender]) -> tuple[str, ...]:
    found = []
    if any(part.position is not None for part in in_memory(source)):
        found.append("labels are taken at face value: the positions of the data are not used; see docs/clicks.md")
    if unfit:
        found.append(f"left out, since they take no categories: {', '.join(model.name for model in unfit)}")
    return tuple(found)


def count_jobs(jobs: int | None) -> int:
    """Return the number of processes: as many as there are cores for us, unless it is given."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    return jobs


def run_experiment(plan: Plan, store: Store, jobs: int, stream: TextIO | None) -> Outcome:
    """Run what is not stored yet, telling on a stream how far it is."""
    live = stream is not None and stream.isatty()
    return run(plan, store, jobs, Progress(stream, plan.select, jobs, live=live))


class Comparison:
    """What a comparison found.

    Attributes
    ----------
    summary
        All of it: settings chosen, values of every query, tests.
    jobs
        Number of processes that trained at once.
    plot
        Its figures.
    """

    def __init__(self, summary: Summary, jobs: int = 1) -> None:
        self.summary = summary
        self.jobs = jobs
        self.plot = Plots(self)

    @classmethod
    def of(cls, outcome: Outcome, store: Store, jobs: int) -> Comparison:
        """Sum up an experiment; of the models that were saved the chosen ones are kept."""
        summary = summarize(outcome)
        if outcome.plan.keep_models and not outcome.interrupted:
            store.keep_models(result for entry in summary.entries for result in entry.chosen)
        return cls(summary, jobs)

    @property
    def best(self) -> str:
        """Name of the best model by the selection metric."""
        return self._entries()[0].name

    @property
    def models(self) -> list[str]:
        """Names of the models with results, the best first."""
        return [entry.name for entry in self.summary.entries]

    @property
    def failures(self) -> dict[str, str]:
        """Why models have no results, or not all of them."""
        return dict(tables.trouble(self.summary))

    def table(self) -> pd.DataFrame:
        """Return a row for each model, the best first: metrics, intervals, difference to the baseline, times.

        p-values are corrected by Holm's method for the number of models; the 95 % interval of a difference, from
        ``difference_low`` to ``difference_high``, is not.
        """
        return tables.frame(self.summary)

    def results(self) -> pd.DataFrame:
        """Return a row for each model, fold and setting that was trained, with a mark at the chosen ones."""
        return tables.result_frame(self.summary)

    def per_query(self) -> pd.DataFrame:
        """Return a row for each model and test query, with every metric that was measured."""
        return tables.query_frame(self.summary)

    def scores(self) -> pd.DataFrame:
        """Return a row for each test document, with a column for the scores of each model."""
        return tables.score_frame(self.summary)

    def to_markdown(self) -> str:
        """Return the table in Markdown, and below it what its figures are."""
        return tables.as_markdown(self.summary)

    def to_latex(self) -> str:
        """Return the table for LaTeX with the package booktabs."""
        return tables.as_latex(self.summary)

    def to_json(self) -> str:
        """Return the comparison as JSON."""
        return tables.as_json(self.summary)

    def significance(self, a: str, b: str, metric: str | None = None) -> PairedComparison:
        """Compare two of the models by all tests, without correction for their number.

        Parameters
        ----------
        a, b
            Names of the models.
        metric
            Name of a metric that was measured; by default the one that settings were chosen by.
        """
        first, second = self._entry(a), self._entry(b)
        if first.folds != second.folds:
            raise ValueError(f"{a} has results of the folds {first.folds}, {b} of {second.folds}")
        name = self._metric(metric)
        return compare_values(first.pooled(name), second.pooled(name), seed=self.summary.plan.seed)

    def report(self, folder: str | Path, *, command: str = "") -> Path:
        """Write the report, one page that needs nothing else, and its figures as files beside it; return the page."""
        from boostlist.evaluation.report import require_libraries, write_report

        self._entries()
        require_libraries()
        Path(folder).mkdir(parents=True, exist_ok=True)
        return write_report(self.summary, Path(folder), command=command, jobs=self.jobs)

    def __str__(self) -> str:
        return tables.as_text(self.summary, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return tables.as_html(self.summary)

    def _entries(self) -> tuple[Entry, ...]:
        if not self.summary.entries:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.failures.items())
            raise ValueError(f"no model has results; {reasons}")
        return self.summary.entries

    def _entry(self, name: str) -> Entry:
        for entry in self.summary.entries:
            if entry.name == name:
                return entry
        raise ValueError(f"there are no results of {name!r}; there are of {', '.join(self.models)}")

    def _metric(self, name: str | None) -> str:
        found = self.summary.plan.select if name is None else get_metric(name).name
        if found not in self.summary.plan.measured:
            raise ValueError(f"{found} was not measured; measured were {', '.join(self.summary.plan.measured)}")
        return found


class Plots:
    """The figures of a comparison: each is drawn on Matplotlib axes, by default new ones, which it returns."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def bars(self, ax: Axes | None = None) -> Axes:
        """Draw the selection metric of each model with its confidence interval."""
        return self._draw("bars", ax)

    def differences(self, ax: Axes | None = None) -> Axes:
        """Draw the difference of each model to the baseline with its 95 % interval, not corrected for many models."""
        return self._draw("differences", ax)

    def ndcg(self, ax: Axes | None = None) -> Axes:
        """Draw NDCG@1 to NDCG@10 of each model."""
        return self._draw("ndcg", ax)

    def ndcg_differences(self, ax: Axes | None = None) -> Axes:
        """Draw NDCG@1 to NDCG@10 of each model minus that of the baseline."""
        return self._draw("ndcg_differences", ax)

    def learning(self, ax: Axes | None = None) -> Axes:
        """Draw the selection metric on validation by number of trees."""
        return self._draw("learning", ax)

    def convergence(self, ax: Axes | None = None) -> Axes:
        """Draw the gradient norm of models trained by a solver after each iteration."""
        return self._draw("convergence", ax)

    def families(self, ax: Axes | None = None) -> Axes:
        """Draw the same loss in different families."""
        return self._draw("families", ax)

    def folds(self, *models: str, ax: Axes | None = None) -> Axes:
        """Draw the selection metric of models, by default all, in each fold."""
        entries = [self._comparison._entry(name) for name in models] or self._comparison.summary.complete()
        return self._draw("fold_values", ax, entries)

    def win_loss(self, a: str, b: str, ax: Axes | None = None) -> Axes:
        """Draw the sorted differences of two models by query."""
        return self._draw("win_loss", ax, self._comparison._entry(a), self._comparison._entry(b))

    def _draw(self, name: str, ax: Axes | None, *arguments: Any) -> Axes:
        from boostlist.evaluation import figures
        from boostlist.evaluation.palette import light

        self._comparison._entries()
        summary = self._comparison.summary
        drawing: Drawing | None = getattr(figures, name)(summary, *arguments)
        if drawing is None:
            raise ValueError(f"there is nothing to draw: no model of this comparison has what {name} shows")
        axes = drawing.on(ax, light(len(summary.plan.models)))
        if name in ("ndcg", "ndcg_differences", "learning", "convergence"):
            figures.add_legend(axes, summary)
        return axes
