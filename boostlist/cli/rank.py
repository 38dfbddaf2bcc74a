"""``boostlist rank MODEL DATA``: score or rank the documents of each query with a saved model."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boostlist.cli._io import add_reading_options, check_input, check_output, features, open_output, read_data
from boostlist.cli._usage import UsageError

if TYPE_CHECKING:
    from boostlist._typing import FloatArray
    from boostlist.datasets import RankingData

EXAMPLES = """\
examples:
  boostlist rank model.npz test.txt > scores.txt              a score a line, in the order of the data
  boostlist rank model.npz test.txt --as ranking -o top.tsv   qid, rank, row, score, comment; best first
  boostlist rank model.npz test.txt --as trec > run.txt       a run for trec_eval
  zcat test.txt.gz | boostlist rank model.npz - | head
"""


def add_parser(commands: Any) -> None:
    """Declare the arguments."""
    parser = commands.add_parser(
        "rank",
        help="score or rank documents with a saved model",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="a model that `boostlist train` or an estimator has saved")
    parser.add_argument("data", help="a file, or - for standard input; its labels are not looked at")
    parser.add_argument(
        "--as", dest="form", choices=("scores", "ranking", "trec"), default="scores", help="what to write"
    )
    parser.add_argument("--top", type=int, metavar="K", help="only the first K documents of each query")
    parser.add_argument("-o", "--out", default="-", help="file to write; by default standard output")
    add_reading_options(parser)
    parser.set_defaults(run=run)


def load_model(path: str) -> Any:
    """Load a model of any kind; ``-`` is standard input."""
    import boostlist

    check_input(path)
    if path != "-":
        return boostlist.load(path)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "standard input"
        copy.write_bytes(sys.stdin.buffer.read())
        return boostlist.load(copy)


def run(arguments: argparse.Namespace) -> int:
    """Write scores or rankings."""
    if arguments.model == arguments.data == "-":
        raise UsageError("model and data cannot both come from standard input; give one of them as a file")
    if arguments.top is not None and arguments.form == "scores":
        raise UsageError("--top needs --as ranking or --as trec; scores are those of all rows, in their order")
    if arguments.top is not None and arguments.top < 1:
        raise UsageError(f"--top must be at least 1, got {arguments.top}")
    check_output(arguments.out)
    model = load_model(arguments.model)
    data = read_data(
        arguments.data,
        arguments,
        comments=arguments.form != "scores",
        n_features=model.n_features_in_,
        labelled=False,
        by_row=arguments.form != "trec",
    )
    scores = model.predict(features(data, arguments.data, getattr(model, "feature_names_in_", None)))
    lines = {"scores": _scores, "ranking": _ranking, "trec": _trec}[arguments.form](data, scores, arguments.top)
    with open_output(arguments.out) as file:
        for line in lines:
            file.write(line.encode("utf-8", "surrogateescape"))
    return 0


def _scores(data: RankingData, scores: FloatArray, top: int | None) -> Iterator[str]:
    return (f"{score!r}\n" for score in scores.tolist())


def _ranking(data: RankingData, scores: FloatArray, top: int | None) -> Iterator[str]:
    yield "qid\trank\trow\tscore\tcomment\n"
    for rank, row in _ranks(data, scores, top):
        yield f"{data.qid[row]}\t{rank}\t{row}\t{float(scores[row])!r}\t{_comment(data, row)}\n"


def _trec(data: RankingData, scores: FloatArray, top: int | None) -> Iterator[str]:
    from boostlist.datasets.documents import document_ids

    ids = document_ids(data)
    for rank, row in _ranks(data, scores, top):
        yield f"{data.qid[row]} Q0 {ids[row]} {rank} {float(scores[row])!r} boostlist\n"


def _ranks(data: RankingData, scores: FloatArray, top: int | None) -> Iterator[tuple[int, int]]:
    """Yield rank and row, query by query; equal scores stand in the order of the rows."""
    import numpy as np

    from boostlist.queries import query_boundaries

    for a, b in pairwise(query_boundaries(data.qid).tolist()):
        order = np.argsort(-scores[a:b], kind="stable")[:top]
        yield from ((rank, a + int(i)) for rank, i in enumerate(order, 1))


def _comment(data: RankingData, row: int) -> str:
    return "" if data.comments is None else str(data.comments[row])
