"""``boostlist compare [DATA]``: train models on every fold of a data set, compare them, and write a report."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boostlist.cli._io import add_reading_options, format_of, jobs, names, read_data, seed
from boostlist.cli._usage import UsageError, checking_arguments

if TYPE_CHECKING:
    from boostlist.evaluation.plan import Plan

EPILOG = """\
models:
  lightgbm:LOSS, xgboost:LOSS        trees on a loss of `boostlist losses`, or on the host's own objective
                                     (lightgbm:lambdarank, lightgbm:rank_xendcg, xgboost:rank:ndcg)
  linear:LOSS, kernel:LOSS, quadratic:LOSS, ranksvm, rankcosine
  ensemble                           a sum of trees on several losses; ensemble?n_bags=5&weights=fitted
  catboost:LOSS                      CatBoost with a loss of its own (catboost:YetiRank, catboost:QueryRMSE)
  feature:NAME                       one feature as the score, by name or number
  column:NAME                        scores in a column of a CSV or Parquet file, which is then no feature
  run:FILE                           scores of another system, as trec_eval reads them
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
        help="folder with Fold1, Fold2, ... or S1 to S5 or train, vali and test; or one LETOR, CSV or Parquet file, "
        "which is cut into five folds; without it, the sample that comes with the package",
    )
    parser.add_argument("--models", default="default", metavar="NAMES", help="models, with commas (default: default)")
    parser.add_argument(
        "--baseline", metavar="NAME", help="compare with this model (default: the host's own objective)"
    )
    parser.add_argument("--folds", metavar="LIST", help="folds to use, such as 1,2 or 1-3 (default: all)")
    parser.add_argument("--metrics", default="ndcg@10,err,map", help="metrics to report (default: ndcg@10,err,map)")
    parser.add_argument("--select", metavar="METRIC", help="metric to choose settings by (default: the first of them)")
    parser.add_argument("--repeats", type=int, default=1, metavar="R", help="cut one file into folds this many times")
    parser.add_argument("--grid", metavar="small|full|FILE", help="settings to try; TOML or JSON (default: small)")
    parser.add_argument("--tune", type=int, metavar="N", help="try N settings of each model from ranges instead")
    parser.add_argument(
        "--search",
        default="random",
        metavar="random|optuna",
        help="how --tune finds them: at random, or by Optuna, each by what those before it gave (default: random)",
    )
    parser.add_argument("--jobs", type=jobs, metavar="N", help="processes, of one thread each (default: cores)")
    parser.add_argument("--out", metavar="DIR", help="output folder (default: compare-DATA)")
    parser.add_argument("--keep-models", action="store_true", help="save the chosen models in the folder models")
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="seed of models and resampling (default: 0)")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="go on with what the output folder has (the default)")
    again.add_argument("--fresh", action="store_true", help="delete what the output folder has and begin again")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON instead of a table")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_reading_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment, print the table and write the report."""
    from boostlist.evaluation.comparison import Comparison, count_jobs, run_experiment
    from boostlist.evaluation.interrupts import postponed
    from boostlist.evaluation.report import require_libraries
    from boostlist.evaluation.storage import Store

    require_libraries()
    data = _data(arguments)
    with checking_arguments():
        processes = count_jobs(arguments.jobs)
        plan = plan_of(arguments, data)
        store = Store(arguments.out or f"compare-{plan.source.name}", plan.identity, arguments.fresh)
    for note in plan.notes:
        print(f"boostlist: {note}", file=sys.stderr)
    outcome = run_experiment(plan, store, processes, None if arguments.quiet else sys.stderr)
    complaint = outcome.trouble
    with postponed(_report_first) as ctrl_c:
        comparison = Comparison.of(outcome, store, processes)
        print(comparison.to_json() if arguments.json else comparison)
        if comparison.models:
            try:
                report = comparison.report(store.folder, command=shlex.join(["boostlist", *sys.argv[1:]]))
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


def plan_of(arguments: argparse.Namespace, data: Any) -> Plan:
    """Turn the arguments into a plan; whatever is wrong with them is found here, before anything is trained."""
    from boostlist.evaluation.comparison import make_plan

    return make_plan(
        data,
        names(arguments.models),
        baseline=arguments.baseline,
        folds=_fold_numbers(arguments.folds),
        repeats=arguments.repeats,
        metrics=names(arguments.metrics),
        select=arguments.select,
        grid=arguments.grid,
        tune=arguments.tune,
        search=arguments.search,
        keep_models=arguments.keep_models,
        seed=arguments.seed,
    )


def _data(arguments: argparse.Namespace) -> Any:
    """Return the path of the data, or the data itself where it is one file that has to be read by the options."""
    from boostlist.evaluation.sources import Named

    path = arguments.data
    asked = [name for name in ("format", "drop", "categorical", "zero_based", "sort") if getattr(arguments, name)]
    if path is None or Path(path).is_dir() or not Path(path).exists():
        if asked:
            raise UsageError(f"--{asked[0].replace('_', '-')} is for one file, not for the folds of a folder")
        return path
    if asked or format_of(path) != "letor":
        data = read_data(path, arguments, comments="run:" in arguments.models, judged=True)
        return Named(data, Path(path).name.split(".")[0])
    return path


def _fold_numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    numbers: list[int] = []
    for part in names(text):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if found is None:
            raise ValueError(f"--folds takes numbers and ranges, such as 1,2 or 1-3; got {part!r}")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    if not numbers:
        raise ValueError(f"--folds {text!r} names no fold")
    return numbers
