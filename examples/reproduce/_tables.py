"""What the reproductions share: folds of a folder, the choice on the validation part, and tables side by side.

All go by one protocol unless they say otherwise: in each fold, every candidate setting of a method is trained on the
training part, the one that is best on the validation part is kept, and its test metrics are averaged over the folds.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from boostlist.datasets import Fold, RankingData, load_folds, sample_folder
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
    """

    name: str
    candidates: Callable[[RankingData], Sequence[Any]] | None
    paper: Cells = field(default_factory=dict)


def parse_arguments(description: str) -> argparse.Namespace:
    """Read the command line: the folder of folds, which of them, and whether only to try the script out."""
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
    return parser.parse_args()


def read_folds(arguments: argparse.Namespace) -> list[Fold]:
    """Load the folds asked for."""
    wanted = [int(number) for number in filter(None, arguments.folds.split(","))]
    folds = [fold for fold in load_folds(arguments.folder) if not wanted or fold.number in wanted]
    if not arguments.quick:
        return folds
    return [map_fold(folds[0], lambda data: data.select(np.arange(min(20, data.n_queries))))]


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


def choose(candidates: Sequence[Any], fold: Fold, select: Metric) -> Any:
    """Train all candidates and return the one that is best on the validation part."""
    fitted = [fit(candidate, fold.train) for candidate in candidates]
    if len(fitted) == 1:
        return fitted[0]
    return max(fitted, key=lambda model: select.mean(model.predict(fold.vali.X), fold.vali.queries))


def cross_validate(
    method: Method, folds: Sequence[Fold], select: Metric, metrics: Mapping[str, Metric]
) -> dict[str, float]:
    """Return the mean over folds of each test metric, by the protocol at the top of this module."""
    begin = time.perf_counter()
    assert method.candidates is not None
    values: dict[str, list[float]] = {name: [] for name in metrics}
    for fold in folds:
        model = choose(method.candidates(fold.train), fold, select)
        scores = model.predict(fold.test.X)
        for name, metric in metrics.items():
            values[name].append(metric.mean(scores, fold.test.queries))
    seconds = time.perf_counter() - begin
    print(f"  {method.name}: {len(folds)} folds in {seconds:.0f} s", file=sys.stderr, flush=True)
    return {name: float(np.mean(each)) for name, each in values.items()}


def print_methods(
    title: str, methods: Sequence[Method], folds: Sequence[Fold], select: Metric, metrics: Mapping[str, Metric]
) -> dict[str, dict[str, float]]:
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
            print(f"| {name} | boostlist | {_cells(ours[method.name], metrics)} |", flush=True)
    return ours


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
