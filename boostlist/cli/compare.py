"""``boostlist compare [DATA]``: train models on every fold of a data set, compare them, and write a report."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

from boostlist.cli._usage import checking_arguments

if TYPE_CHECKING:
    from boostlist.evaluation.experiment import Plan

EPILOG = """\
models:
  lightgbm:LOSS, xgboost:LOSS        trees on a loss of `boostlist losses`, or on the host's own objective
                                     (lightgbm:lambdarank, lightgbm:rank_xendcg, xgboost:rank:ndcg)
  linear:LOSS, kernel:LOSS, quadratic:LOSS, ranksvm, rankcosine
  ensemble                           a sum of trees on several losses; ensemble?n_bags=5&weights=fitted
  LOSS may be `all`; `default` is the default panel, `all` is everything.
  Parameters follow a question mark: 'kernel:cs_listmle?kernel=gaussian&C=10'. They are fixed; the grid varies the rest.

examples:
  boostlist compare                                    the default panel on the sample that comes with the package
  boostlist compare MQ2008 --metrics ndcg@10,err,map --select ndcg@10
  boostlist compare MQ2008 --models default,xgboost:cs_listmle --baseline lightgbm:lambdarank
  boostlist compare OHSUMED --models linear:cs_rglist,ranksvm --grid full --folds 1-3 --out out/ohsumed
"""


def add_parser(commands: Any) -> None:
    """Declare the arguments."""
    parser = commands.add_parser(
        "compare",
        help="compare models by cross-validation and write a report",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "data",
        nargs="?",
        metavar="DATA",
        help="folder with Fold1, Fold2, ... or S1 to S5 or train, vali and test; or one LETOR file, which is cut into "
        "five folds; without it, the sample that comes with the package",
    )
    parser.add_argument("--models", default="default", metavar="NAMES", help="models, with commas (default: default)")
    parser.add_argument(
        "--baseline", metavar="NAME", help="compare with this model (default: the host's own objective)"
    )
    parser.add_argument("--folds", metavar="LIST", help="folds to use, such as 1,2 or 1-3 (default: all)")
    parser.add_argument("--metrics", default="ndcg@10,err,map", help="metrics to report (default: ndcg@10,err,map)")
    parser.add_argument("--select", metavar="METRIC", help="metric to choose settings by (default: the first of them)")
    parser.add_argument("--grid", default="small", metavar="small|full|FILE", help="settings to try; TOML or JSON")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes, of one thread each (default: cores)")
    parser.add_argument("--out", metavar="DIR", help="output folder (default: compare-DATA)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of models and resampling (default: 0)")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="go on with what the output folder has (the default)")
    again.add_argument("--fresh", action="store_true", help="delete what the output folder has and begin again")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON instead of a table")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment, print the table and write the report."""
    from boostlist.evaluation.experiment import run as run_experiment
    from boostlist.evaluation.interrupts import postponed
    from boostlist.evaluation.progress import Progress
    from boostlist.evaluation.report import require_libraries, write_report
    from boostlist.evaluation.storage import Store
    from boostlist.evaluation.summary import summarize
    from boostlist.evaluation.tables import as_json, as_text

    require_libraries()
    with checking_arguments():
        jobs = _jobs(arguments.jobs)
        plan = make_plan(arguments)
        store = Store(arguments.out or f"compare-{plan.source.name}", plan.identity, arguments.fresh)
    stream = None if arguments.quiet else sys.stderr
    progress = Progress(stream, plan.select, jobs, live=stream is not None and stream.isatty())
    outcome = run_experiment(plan, store, jobs, progress)
    complaint = outcome.trouble
    with postponed(_report_first) as ctrl_c:
        summary = summarize(outcome)
        print(as_json(summary) if arguments.json else as_text(summary))
        if summary.entries:
            command = shlex.join(["boostlist", *sys.argv[1:]])
            try:
                report = write_report(summary, store.folder, command=command, jobs=jobs)
                print(f"\nreport: {report}", file=sys.stderr if arguments.json else sys.stdout)
            except OSError as error:
                complaint = complaint or f"cannot write the report to {store.folder}: {error.strerror or error}"
    if outcome.interrupted or ctrl_c.pressed:
        print("boostlist: interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    if complaint is not None:
        raise OSError(complaint)
    return 1 if outcome.failures else 0


def _report_first() -> None:
    print("boostlist: writing the report first; Ctrl-C again ends without it", file=sys.stderr)


def make_plan(arguments: argparse.Namespace) -> Plan:
    """Turn the arguments into a plan; whatever is wrong with them is found here, before anything is trained."""
    from boostlist.evaluation.experiment import Plan
    from boostlist.evaluation.folds import find_source
    from boostlist.evaluation.grids import read_grid, settings
    from boostlist.evaluation.panel import check_host_parameters, check_hosts, default_baseline, panel, parse
    from boostlist.metrics import get as get_metric

    metrics = tuple(get_metric(name).name for name in _names(arguments.metrics))
    if not metrics and not arguments.select:
        raise ValueError("no metrics given; write for example --metrics ndcg@10,err,map")
    select = get_metric(arguments.select).name if arguments.select else metrics[0]
    models = panel(_names(arguments.models))
    baseline = default_baseline(models)
    if arguments.baseline:
        baseline = parse(arguments.baseline)[0]
        if baseline not in models:
            models.insert(0, baseline)
    check_hosts(models)
    grid = read_grid(arguments.grid)
    for model in models:
        check_host_parameters(model, settings(model, grid)[0])  # all settings of a model have the same names
    return Plan(
        source=find_source(arguments.data, _fold_numbers(arguments.folds), arguments.seed),
        models=tuple(models),
        baseline=baseline,
        grid=grid,
        metrics=tuple(dict.fromkeys((select, *metrics))),
        select=select,
        seed=arguments.seed,
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _fold_numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    numbers: list[int] = []
    for part in _names(text):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if found is None:
            raise ValueError(f"--folds takes numbers and ranges, such as 1,2 or 1-3; got {part!r}")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    if not numbers:
        raise ValueError(f"--folds {text!r} names no fold")
    return numbers


def _jobs(number: int | None) -> int:
    if number is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if number < 1:
        raise ValueError(f"--jobs must be at least 1, got {number}")
    return number
