"""What the reproductions share: folds of a folder, the choice on the validation part, and tables side by side.

All go by one protocol unless they say otherwise: in each fold, every candidate setting of a method is trained on the
training part, the one that is best on the validation part is kept, and its test metrics are averaged over the folds.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from boostlist.datasets import Fold, RankingData, load_folds, sample_folder
from boostlist.evaluation import significance
from boostlist.metrics import Metric

Cells = Mapping[str, float]
Truncation = Callable[[RankingData], RankingData]


@dataclass(frozen=True)
class Method:
    """A row of a table.

    Attributes
    ----------
    name
        What the table calls it.
    candidates
        Training data -> unfitted estimators to choose from; None for a method that only the paper has.
    paper
        The paper's figures by metric.
    refine
        The best of the candidates, fitted -> more of them, for a search in two stages; or None.
    """

    name: str
    candidates: Callable[[RankingData], Sequence[Any]] | None
    paper: Cells = field(default_factory=dict)
    refine: Callable[[Any], Sequence[Any]] | None = None


@dataclass(frozen=True)
class Measured:
    """Test figures of a method: for each metric an array for each fold, which has the value of each query."""

    values: Mapping[str, Sequence[Any]]

    def mean(self, metric: str) -> float:
        """Return the mean over folds of the mean over queries."""
        return float(np.mean([np.nanmean(fold) for fold in self.values[metric]]))

    def means(self) -> dict[str, float]:
        """Return the mean of every metric."""
        return {metric: self.mean(metric) for metric in self.values}

    def per_query(self, metric: str) -> Any:
        """Return the values of all test queries."""
        return np.concatenate(self.values[metric])


def parse_arguments(
    description: str, tables: Sequence[str] = (), switches: Mapping[str, str] | None = None
) -> argparse.Namespace:
    """Read the command line: the folder of folds, which of them and of the tables, and whether only to try it out.

    Switches are options without a value and their help.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=sample_folder(),
        help="Fold1.. or S1..S5; by default the package's sample",
    )
    parser.add_argument("--folds", default="", metavar="1,2", help="only these folds")
    parser.add_argument("--tables", default="", metavar="A,B", help="only these tables of the paper")
    parser.add_argument("--quick", action="store_true", help="one fold with 20 queries a part, to try the script out")
    for switch, meaning in (switches or {}).items():
        parser.add_argument(switch, action="store_true", help=meaning)
    arguments = parser.parse_args()
    unknown = set(filter(None, arguments.tables.split(","))) - set(tables)
    if tables and unknown:
        parser.error(f"--tables: there is no table {', '.join(sorted(unknown))}, only {', '.join(tables)}")
    return arguments


@contextmanager
def one_line() -> Iterator[None]:
    """End the script with one line where data cannot be read or used."""
    try:
        yield
    except (OSError, ValueError) as error:
        sys.exit(str(error).splitlines()[0])


def read_folds(arguments: argparse.Namespace) -> list[Fold]:
    """Load the folds asked for; what cannot be read ends the script with one line that says why."""
    wanted = set(filter(None, arguments.folds.split(",")))
    with one_line():
        folds = [fold for fold in load_folds(arguments.folder) if not wanted or str(fold.number) in wanted]
        for fold in folds:
            check(fold, arguments.folder)
    if not folds:
        sys.exit(f"{arguments.folder} has no fold {arguments.folds}")
    if not arguments.quick:
        return folds
    return [map_fold(folds[0], lambda data: data.select(np.arange(min(20, data.n_queries))))]


def check(fold: Fold, folder: Path) -> None:
    """Raise a ValueError that says what a fold lacks: features, queries, or an order to learn."""
    for part, data in {"training": fold.train, "validation": fold.vali, "test": fold.test}.items():
        where = f"{folder}, {part} part of fold {fold.number}"
        if (data.X[:1] == data.X).all():
            raise ValueError(f"{where}: there is no feature in which documents differ")
        if data.n_queries < 2:
            raise ValueError(f"{where}: there is one query, and a comparison needs two")
        if part == "training" and len(data.queries.levels.label) == data.n_queries:
            raise ValueError(f"{where}: no query has documents of different grades, so there is no order to learn")


def wants(arguments: argparse.Namespace, table: str) -> bool:
    """Return whether a table of the paper is asked for."""
    return not arguments.tables or table in arguments.tables.split(",")


def map_fold(fold: Fold, change: Truncation) -> Fold:
    """Return the fold with every part changed in the same way."""
    return Fold(fold.number, change(fold.train), change(fold.vali), change(fold.test))


def zscore(fold: Fold) -> Fold:
    """Return the fold with mean 0 and deviation 1 of each feature over the training part."""
    return map_fold(fold, lambda data: data.normalize("zscore", fit=fold.train))


def fit(estimator: Any, data: RankingData) -> Any:
    """Train an estimator; that it stops early is part of some papers' protocols and not worth a warning here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(data.X, data.y, qid=data.qid)


def choose(
    candidates: Sequence[Any], fold: Fold, select: Metric, refine: Callable[[Any], Sequence[Any]] | None = None
) -> Any:
    """Train all candidates, then those around the best, and return the one that is best on the validation part."""
    fitted = [fit(candidate, fold.train) for candidate in candidates]
    if len(fitted) == 1 and refine is None:
        return fitted[0]

    def quality(model: Any) -> float:
        return select.mean(model.predict(fold.vali.X), fold.vali.queries)

    best = max(fitted, key=quality)
    if refine is None:
        return best
    return max([best, *(fit(candidate, fold.train) for candidate in refine(best))], key=quality)


def cross_validate(method: Method, folds: Iterable[Fold], select: Metric, metrics: Mapping[str, Metric]) -> Measured:
    """Return the test figures, by the protocol at the top of this module."""
    assert method.candidates is not None
    values: dict[str, list[Any]] = {name: [] for name in metrics}
    for fold in folds:
        begin = time.perf_counter()
        model = choose(method.candidates(fold.train), fold, select, method.refine)
        scores = model.predict(fold.test.X)
        for name, metric in metrics.items():
            values[name].append(metric.per_query(scores, fold.test.queries))
        progress(f"{method.name}: fold {fold.number} in {time.perf_counter() - begin:.0f} s")
    return Measured(values)


def progress(line: str) -> None:
    """Say on the standard error what is done."""
    print(f"  {line}", file=sys.stderr, flush=True)


def print_methods(
    title: str, methods: Sequence[Method], folds: Sequence[Fold], select: Metric, metrics: Mapping[str, Metric]
) -> dict[str, Measured]:
    """Measure and print a Markdown table with a line of the paper's figures above each line of ours."""
    print(f"\n{title}\n")
    print(f"| | | {' | '.join(metrics)} |")
    print(f"|---|---|{'---|' * len(metrics)}")
    ours = {}
    for method in methods:
        if method.paper:
            print(f"| {method.name} | paper | {_cells(method.paper, metrics)} |", flush=True)
        if method.candidates is not None:
            ours[method.name] = cross_validate(method, folds, select, metrics)
            name = "" if method.paper else method.name
            print(f"| {name} | boostlist | {_cells(ours[method.name].means(), metrics)} |", flush=True)
    return ours


def print_differences(
    title: str, measured: Mapping[str, Measured], pairs: Sequence[tuple[str, str]], metric: str
) -> None:
    """Print a Markdown table of paired comparisons over all test queries; p-values are Holm-corrected."""
    found = [significance.compare(*(measured[name].per_query(metric) for name in pair)) for pair in pairs]
    tests = {
        "t-test": significance.holm([each.t_test for each in found]),
        "randomization": significance.holm([each.randomization for each in found]),
    }
    print(f"\n{title}\n")
    print(f"| | minus | {metric} | 95 % interval | {' | '.join(f'p, {test}' for test in tests)} |")
    print(f"|---|---|---|---|{'---|' * len(tests)}")
    for i, ((a, b), each) in enumerate(zip(pairs, found, strict=True)):
        p = " | ".join(f"{values[i]:.4f}" for values in tests.values())
        print(f"| {a} | {b} | {each.difference:+.4f} | {each.low:+.4f} to {each.high:+.4f} | {p} |", flush=True)


def print_grid(
    title: str, rows: Mapping[str, Sequence[Method]], columns: Sequence[str], measure: Callable[[Method], float]
) -> None:
    """Measure and print a Markdown table of one metric: cells are "paper / ours", a column a kind of loss."""
    print(f"\n{title}\n")
    print(f"| | {' | '.join(columns)} |")
    print(f"|---|{'---|' * len(columns)}")
    for name, methods in rows.items():
        cells = []
        for method in methods:
            printed = next(iter(method.paper.values()), None)
            left = "-" if printed is None else f"{printed:.4f}"
            right = "-" if method.candidates is None else f"{measure(method):.4f}"
            cells.append(f"{left} / {right}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _cells(values: Cells, metrics: Mapping[str, Metric]) -> str:
    return " | ".join(f"{values[name]:.4f}" if name in values else "" for name in metrics)


def ranks(prefix: str, values: Sequence[float]) -> dict[str, float]:
    """Return the figures of ranks 1, 2, ... by name: N@1, N@2, ..."""
    return {f"{prefix}@{k}": value for k, value in enumerate(values, 1)}
