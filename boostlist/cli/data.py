"""``boostlist data describe|convert|sample|split``: look at ranking data, change its format, draw from it, cut it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from boostlist.cli._io import FORMATS, add_reading_options, check_output, read_data, seed, write_data
from boostlist.cli._usage import UsageError, checking_arguments

if TYPE_CHECKING:
    from boostlist.datasets import RankingData

EXAMPLES = """\
examples:
  boostlist data describe                               the sample that comes with the package
  boostlist data describe MQ2008/Fold1/train.txt        one file
  boostlist data describe MQ2008                        a folder of folds
  boostlist data convert train.txt train.parquet        LETOR text to Parquet
  zcat train.txt.gz | boostlist data convert - - --to csv | head
  boostlist data convert raw.txt norm.txt --normalize query-minmax
  boostlist data sample train.txt --queries 100 -o small.txt
  boostlist data sample -o sample.txt                   the package's sample as one file
  boostlist data split all.txt parts --shares 0.6,0.2,0.2
  boostlist data split all.txt folds --folds 5
"""


def add_parser(commands: Any) -> None:
    """Declare the arguments."""
    parser = commands.add_parser(
        "data",
        help="describe, convert, sample and split ranking data",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    describe = actions.add_parser("describe", help="count documents, queries, grades and list lengths")
    describe.add_argument("data", nargs="?", help="a file, a folder of folds, or -; without it, the package's sample")
    describe.add_argument("--json", action="store_true", help="machine-readable output")
    describe.set_defaults(run=run_describe)

    convert = actions.add_parser("convert", help="change format, compression or normalisation")
    convert.add_argument("source", help="a file, or - for standard input")
    convert.add_argument("target", help="a file, or - for standard output; .gz, .bz2 and .zst compress LETOR text")
    convert.add_argument("--to", choices=FORMATS, help="format to write; by default the target's suffix tells")
    convert.add_argument("--normalize", metavar="METHOD", help="query-minmax, query-l2 or zscore")
    convert.set_defaults(run=run_convert)

    sample = actions.add_parser("sample", help="draw whole queries at random")
    sample.add_argument("data", nargs="?", help="a file, or -; without it, the package's sample")
    sample.add_argument("-n", "--queries", type=int, help="number of queries; by default all")
    sample.add_argument("--seed", type=seed, default=0, help="seed of the draw (0)")
    sample.add_argument("-o", "--out", default="-", help="file to write; by default standard output")
    sample.set_defaults(run=run_sample)

    split = actions.add_parser("split", help="cut into training, validation and test part, or into folds, by query")
    split.add_argument("data", help="a file, or -")
    split.add_argument("folder", help="folder to write to")
    how = split.add_mutually_exclusive_group()
    how.add_argument(
        "--shares",
        default="0.6,0.2,0.2",
        help="shares of train, vali and test; two shares leave vali out (0.6,0.2,0.2)",
    )
    how.add_argument("--folds", type=int, metavar="K", help="K folds in Fold1 to FoldK, rotated as LETOR does")
    split.add_argument("--seed", type=seed, default=0, help="seed of the assignment (0)")
    split.add_argument("--force", action="store_true", help="write over files that exist")
    split.set_defaults(run=run_split)

    for action in (describe, convert, sample, split):
        add_reading_options(action)


def run_describe(arguments: argparse.Namespace) -> int:
    """Print a summary of a file, or of every part of a folder."""
    path = arguments.data
    if path is not None and (path == "-" or not Path(path).is_dir()):
        parts = {path: read_data(path, arguments)}
    else:
        parts = _folder_parts(path)
    found = {name: data.describe() for name, data in parts.items()}
    if arguments.json:
        shown: Any = {name: dataclasses.asdict(about) for name, about in found.items()}
        print(json.dumps(shown if len(shown) > 1 else next(iter(shown.values())), indent=2))
    elif len(found) == 1:
        print(next(iter(found.values())))
    else:
        print("\n\n".join(f"{name}\n{about}" for name, about in found.items()))
    return 0


def _folder_parts(folder: str | None) -> dict[str, RankingData]:
    """Return the parts of a folder by name; of folds, the test parts, which together are the whole set."""
    from boostlist.datasets import RankingData, find_folds, sample_folder
    from boostlist.datasets.folds import ROLES

    with checking_arguments():
        folds = find_folds(sample_folder() if folder is None else folder)
    if folder is None:
        return {"the package's sample": RankingData.concat([fold.test for fold in folds])}
    if folds.layout == "single":
        return {f"{folder}, {role}": getattr(fold, role) for fold in folds for role in ROLES}
    return {f"{folder}, fold {fold.number}, test": fold.test for fold in folds}


def run_convert(arguments: argparse.Namespace) -> int:
    """Read, normalise if wanted, and write."""
    from boostlist.datasets.normalization import Method

    if arguments.normalize is not None and arguments.normalize not in get_args(Method):
        raise UsageError(f"--normalize must be {', '.join(get_args(Method))}; got {arguments.normalize!r}")
    check_output(arguments.target)
    data = read_data(arguments.source, arguments, comments=True)
    if arguments.normalize:
        data = data.normalize(arguments.normalize)
    write_data(data, arguments.target, arguments.to)
    return 0


def run_sample(arguments: argparse.Namespace) -> int:
    """Draw queries; they keep the order of the file."""
    import numpy as np

    check_output(arguments.out)
    if arguments.data is None:
        (data,) = _folder_parts(None).values()
    else:
        data = read_data(arguments.data, arguments, comments=True)
    if arguments.queries is not None:
        if not 1 <= arguments.queries <= data.n_queries:
            raise UsageError(f"--queries must be from 1 to {data.n_queries:,}, the number there is")
        rng = np.random.default_rng(arguments.seed)
        data = data.select(np.sort(rng.choice(data.n_queries, arguments.queries, replace=False)))
    write_data(data, arguments.out)
    return 0


def run_split(arguments: argparse.Namespace) -> int:
    """Write the parts, each file under its name only when complete."""
    folder = Path(arguments.folder)
    data = read_data(arguments.data, arguments, comments=True)
    if arguments.folds:
        if not 3 <= arguments.folds <= data.n_queries:
            raise UsageError(f"--folds must be from 3 to {data.n_queries:,}, the number of queries")
        files = _fold_files(data, arguments.folds, arguments.seed)
    else:
        files = _share_files(data, arguments.shares, arguments.seed)
    existing = [folder / name for name in files if (folder / name).exists()]
    if existing and not arguments.force:
        raise UsageError(f"{existing[0]} exists; choose another folder, or --force to write over it")
    for name, part in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_data(part, str(folder / name))
    return 0


def _share_files(data: RankingData, text: str, seed: int) -> dict[str, RankingData]:
    try:
        shares = [float(share) for share in text.split(",")]
    except ValueError:
        raise UsageError(f"--shares must be numbers with commas between them, got {text!r}") from None
    if len(shares) not in (2, 3) or abs(sum(shares) - 1) > 1e-9:
        raise UsageError(f"--shares must be two or three numbers that sum to 1, got {text!r}")
    roles = ("train", "vali", "test") if len(shares) == 3 else ("train", "test")
    return {f"{role}.txt": part for role, part in zip(roles, data.split(*shares, seed=seed), strict=True)}


def _fold_files(data: RankingData, k: int, seed: int) -> dict[str, RankingData]:
    from boostlist.datasets.folds import ROLES, rotation

    parts = data.split(*[1 / k] * k, seed=seed)
    folds = (rotation(number, parts) for number in range(1, k + 1))
    return {os.path.join(f"Fold{fold.number}", f"{role}.txt"): getattr(fold, role) for fold in folds for role in ROLES}
