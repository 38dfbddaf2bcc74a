"""``boostlist evaluate DATA (--scores FILE | --model FILE)``: metrics of a ranking, in the conventions of any tool."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from boostlist.cli._io import add_reading_options, features, print_table, read_data, read_scores
from boostlist.cli._usage import UsageError, checking_arguments
from boostlist.cli.rank import load_model

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.datasets import RankingData
    from boostlist.metrics import Metric

EXAMPLES = """\
examples:
  boostlist evaluate test.txt --scores scores.txt
  boostlist evaluate test.txt --model model.npz --metrics ndcg@1,ndcg@10,map
  boostlist rank model.npz test.txt | boostlist evaluate test.txt --scores -
  boostlist evaluate test.txt --scores scores.txt --conventions letor4 --metrics ndcg@10,map
  boostlist evaluate test.txt --scores scores.txt --empty skip --ties worst
  boostlist evaluate test.txt --scores scores.txt --per-query > values.tsv

conventions: without --conventions, NDCG has gain 2^y - 1 and discount 1 / log2(1 + rank), equal scores stay in
the order of the rows, and a query without relevant documents scores 0. The options change each of these for the
metrics that have it.
"""


def _empty(text: str) -> int | str:
    return int(text) if text in ("0", "1") else text


CONVENTIONS: dict[str, tuple[Any, tuple[Any, ...] | None, str]] = {
    "empty": (_empty, (0, 1, "skip"), "value of a query without relevant documents; skip leaves it out of the mean"),
    "ties": (str, ("stable", "worst", "best", "average"), "order of documents with equal scores"),
    "gain": (str, ("exp2", "linear"), "2^y - 1, or y"),
    "discount": (str, ("log2", "letor"), "1 / log2(1 + rank), or LETOR's, which is 1 at ranks 1 and 2"),
    "short": (str, ("pad", "zero", "cut"), "a list shorter than the cut-off"),
    "threshold": (float, None, "smallest label that is relevant, for p, recall, map and mrr"),
    "divisor": (str, ("relevant", "reachable"), "what map divides by"),
}


def add_parser(commands: Any) -> None:
    """Declare the arguments."""
    parser = commands.add_parser(
        "evaluate",
        help="metrics of scores or of a model",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", help="labelled data: a file, or - for standard input")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--scores", metavar="FILE", help="one score a line, in the order of the data; - is stdin")
    source.add_argument("--model", metavar="FILE", help="a model that `boostlist train` or an estimator has saved")
    parser.add_argument("--metrics", default="ndcg@1,ndcg@5,ndcg@10,err,map", help="names with commas between them")
    parser.add_argument("--conventions", metavar="TOOL", help="lightgbm, xgboost, sklearn, letor3, letor4 or trec")
    group = parser.add_argument_group("conventions")
    for name, (kind, choices, what) in CONVENTIONS.items():
        group.add_argument(f"--{name}", type=kind, choices=choices, help=what)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="machine-readable output")
    form.add_argument("--per-query", action="store_true", help="the values of each query, separated by tabs")
    add_reading_options(parser)
    parser.set_defaults(run=run)


def get_metrics(names: str, tool: str | None, options: Mapping[str, Any]) -> list[Metric]:
    """Return metrics by name.

    Parameters
    ----------
    names
        Names with commas between them.
    tool
        Whose conventions to take, or None for those of boostlist.
    options
        Parameters that win over these, each for the metrics that have it.

    Raises
    ------
    ValueError
        If a name cannot be parsed, the tool does not have the metric, or no metric has the parameter.
    """
    from boostlist import metrics

    given = None if tool is None else metrics.conventions(tool)
    chosen, unused = [], set(options)
    for name in (name.strip() for name in names.split(",")):
        prefix = name.partition("@")[0]
        known = {field.name for field in dataclasses.fields(metrics.get(name))} - {"k"}
        if given is not None and prefix not in given:
            raise ValueError(f"{tool} has no {prefix}; it has {', '.join(given)}")
        own = {key: value for key, value in options.items() if key in known}
        unused -= set(own)
        chosen.append(metrics.get(name, **((given or {}).get(prefix, {}) | own)))
    if unused:
        raise ValueError(f"--{min(unused)} has no effect on {names}; drop it")
    return chosen


def run(arguments: argparse.Namespace) -> int:
    """Print the metrics."""
    if arguments.data == arguments.scores == "-":
        raise UsageError("data and scores cannot both come from standard input; give one of them as a file")
    options = {name: value for name in CONVENTIONS if (value := getattr(arguments, name)) is not None}
    with checking_arguments():
        metrics = get_metrics(arguments.metrics, arguments.conventions, options)
    if arguments.model is None:
        data = read_data(arguments.data, arguments, judged=True, by_row=True)
        scores = read_scores(arguments.scores, data.n_documents)
    else:
        model = load_model(arguments.model)
        data = read_data(arguments.data, arguments, n_features=model.n_features_in_, judged=True)
        scores = model.predict(features(data, arguments.data, getattr(model, "feature_names_in_", None)))
    values = {metric.name: metric.per_query(scores, data.queries) for metric in metrics}
    if arguments.per_query:
        _print_per_query(data, values)
    elif arguments.json:
        print(json.dumps({name: _summary(each) for name, each in values.items()}, indent=2))
    else:
        rows = [("metric", "mean", "std. error", "queries")]
        for name, each in values.items():
            about = _summary(each)
            error = "" if about["std_error"] is None else f"{about['std_error']:.4f}"
            rows.append((name, f"{about['mean']:.4f}", error, f"{about['queries']:,}"))
        print_table(rows)
    return 0


def _summary(values: FloatArray) -> dict[str, Any]:
    """Return the mean over the queries that count, its standard error, and their number."""
    import numpy as np

    counted = values[~np.isnan(values)]
    n = len(counted)
    if not n:
        raise ValueError("no query has a relevant document, so there is no mean; --empty 0 makes them count")
    error = float(np.std(counted, ddof=1) / np.sqrt(n)) if n > 1 else None
    return {"mean": float(np.mean(counted)), "std_error": error, "queries": n}


def _print_per_query(data: RankingData, values: Mapping[str, FloatArray]) -> None:
    print("\t".join(["qid", *values]))
    qid = data.qid[data.queries.start[:-1]]
    for q in range(data.n_queries):
        print("\t".join([str(qid[q]), *(repr(float(each[q])) for each in values.values())]))
