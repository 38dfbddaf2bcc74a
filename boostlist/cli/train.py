"""``boostlist train DATA --model NAME -o FILE``: train one model and save it.

A model is named as in `boostlist compare`: ``lightgbm:cs_listmle``, ``linear:cs_rglist?pcf=3&C=10``, ``ranksvm``. What
follows the question mark are parameters of the loss and of the estimator.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boostlist.cli._io import add_reading_options, check_output, features, jobs, read_data, seed
from boostlist.cli._usage import checking_arguments

if TYPE_CHECKING:
    from boostlist.datasets import RankingData
    from boostlist.evaluation.panel import Model

EXAMPLES = """\
examples:
  boostlist train train.txt --model lightgbm:cs_listmle -o model.txt
  boostlist train train.txt --model 'lightgbm:cs_listmle?k=10&num_leaves=31&n_estimators=1000' \\
      --vali vali.txt --early-stopping 50 --metric err -o model.txt
  boostlist train train.txt --model xgboost:interval_rank -o model.json
  boostlist train train.txt --model 'linear:cs_rglist?pcf=3&C=10' -o model.npz
  boostlist train train.txt --model 'kernel:cs_listmle?kernel=gaussian&n_landmarks=500' -o model.npz
  boostlist train train.txt --model 'ensemble?n_bags=3&weights=fitted' -o model.npz
  boostlist train log.parquet --label-column click,purchase --model 'lightgbm:listmle?label=purchase' -o model.txt
  boostlist losses                                    the losses there are
"""

# What `boostlist compare` varies around a model, and what to do here: for models other than trees, and for trees.
_INSTEAD = (
    "normalise training and later data alike with `boostlist data convert --normalize`",
    "stop early by --early-stopping N --vali FILE",
)


def add_parser(commands: Any) -> None:
    """Declare the arguments."""
    parser = commands.add_parser(
        "train",
        help="train a model and save it",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", help="training data: a file, or - for standard input")
    parser.add_argument(
        "-m", "--model", default="lightgbm:pairwise_logistic", help="FAMILY:LOSS?NAME=VALUE&... (%(default)s)"
    )
    parser.add_argument("-o", "--out", required=True, help="file to save the model in, or - for standard output")
    parser.add_argument(
        "--vali",
        metavar="FILE",
        help="validation data: its metric is shown; ensembles stop and weigh their members by it",
    )
    parser.add_argument("--metric", default="ndcg@10", help="metric on the validation data (%(default)s)")
    parser.add_argument("--early-stopping", type=int, metavar="N", help="boosting: stop after N rounds without a gain")
    parser.add_argument("--seed", type=seed, default=0, help="seed (%(default)s)")
    parser.add_argument(
        "--jobs", type=jobs, default=None, metavar="N", help="threads of trees and losses; by default all cores"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary on standard error")
    add_reading_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train and save."""
    from boostlist import metrics
    from boostlist.parallel import at_most

    with checking_arguments():
        model = _model(arguments)
        metric = metrics.get(arguments.metric)
    _check_target(arguments.out, model.family)
    setting = model.estimator_options()
    train = read_data(arguments.data, arguments, judged=True)
    vali = None
    if arguments.vali is not None:
        vali = read_data(arguments.vali, arguments, n_features=train.n_features, judged=True)
        seen = features(vali, arguments.vali, train.feature_names)
    if model.stops:
        setting.setdefault("n_jobs", arguments.jobs)
    estimator = model.make(setting, arguments.seed)
    begin = time.perf_counter()
    fit: dict[str, Any] = {}
    if model.stops and vali is not None:
        weight = () if vali.query_weight is None else (vali.query_weight,)
        fit = {"eval_set": [(seen, vali.targets, vali.qid, *weight)], "eval_metric": metric}
        if arguments.early_stopping is not None:
            fit["early_stopping_rounds"] = arguments.early_stopping
    if train.position is not None:
        fit["position"] = train.position
    with at_most(arguments.jobs), nullcontext() if arguments.quiet else _telling_compilation():
        estimator.fit(
            features(train, arguments.data, train.feature_names),
            train.targets,
            qid=train.qid,
            sample_weight=train.query_weight,
            **fit,
        )
    seconds = time.perf_counter() - begin
    _save(estimator, arguments.out)
    if not arguments.quiet:
        print(_summary(model.name, estimator, train, seconds), file=sys.stderr)
        if vali is not None:
            value = metric.mean(estimator.predict(seen), vali.queries)
            print(f"{metric.name} on {arguments.vali}: {value:.4f}", file=sys.stderr)
    return 0


def _telling_compilation() -> Any:
    from numba.core import event

    from boostlist.evaluation.progress import COMPILING
    from boostlist.evaluation.workers import FirstCompilation

    return event.install_listener("numba:compile", FirstCompilation(lambda: print(COMPILING, file=sys.stderr)))


def _model(arguments: argparse.Namespace) -> Model:
    from boostlist.evaluation.panel import check_host_parameters, parse

    models = parse(arguments.model)
    if len(models) > 1:
        raise ValueError(f"{arguments.model} stands for {len(models)} models; name one, or use `boostlist compare`")
    (model,) = models
    for name in model.training_names:
        if name in model.estimator_options():
            raise ValueError(f"{name} is no part of a saved model; {_INSTEAD[model.stops]}")
    if arguments.early_stopping is not None and (not model.stops or arguments.vali is None):
        raise ValueError("--early-stopping needs a lightgbm:, xgboost: or ensemble model and --vali")
    check_host_parameters(model, model.estimator_options())
    return model


def _check_target(out: str, family: str) -> None:
    """Refuse a target that cannot be written before hours are spent on training."""
    from boostlist.boosters.model_file import check_suffix

    check_output(out)
    if out != "-":
        with checking_arguments():
            check_suffix(family, out)


def _save(estimator: Any, out: str) -> None:
    if out != "-":
        estimator.save(out)
        return
    with tempfile.TemporaryDirectory() as folder, estimator.save(Path(folder) / "model.json").open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)


def _summary(name: str, estimator: Any, train: RankingData, seconds: float) -> str:
    rounds = getattr(estimator, "n_estimators_", None)
    size = f", {rounds:,} trees" if rounds is not None else ""
    documents = f"{train.n_documents:,} documents, {train.n_queries:,} queries"
    debiased = "" if train.position is None else "; positions allowed for, --drop position takes clicks at face value"
    return f"{name}: {documents}{size}, trained in {seconds:.1f} s{debiased}"
