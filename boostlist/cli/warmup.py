"""``boostlist warmup``: compile losses, metrics, reader and products now, for containers and short-lived processes.

What is compiled is stored beside the package, or in the folder that NUMBA_CACHE_DIR names; processes that come after
find it there. Without this command a loss is compiled when it is first used.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from typing import Any

from boostlist.cli._io import jobs

EXAMPLES = """\
examples:
  boostlist warmup                     everything, on all cores
  boostlist warmup --jobs 1            one process, as in a build with little memory
"""


def add_parser(commands: Any) -> None:
    """Declare the arguments."""
    parser = commands.add_parser(
        "warmup",
        help="compile everything now, for container images",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--jobs", type=jobs, default=os.cpu_count() or 1, help="number of processes; default: all cores"
    )
    parser.set_defaults(run=run)


def parts() -> Iterator[tuple[str, Callable[[str], None], str]]:
    """Yield what there is to compile: a name to show, and a function with its argument."""
    from boostlist import metrics
    from boostlist.losses import registry

    for name in registry:
        yield f"loss {name}", compile_loss, name
    for name in metrics.registry:
        yield f"metric {name}", compile_metric, name
    yield "reader", compile_reader, ""
    yield "products of float32", compile_products, ""


def compile_loss(name: str) -> None:
    """Call whatever a loss offers, with a cut-off if it has one, on lists of all kinds; and its objective."""
    import numpy as np

    from boostlist import Queries
    from boostlist.losses import registry

    k = registry[name].__dataclass_fields__.get("k")
    cuts: list[dict[str, Any]] = [{}] if k is None or k.default is not None else [{"k": 10}, {}]
    lists = ([3, 50], 3), ([3, 1000, 3000], 3), ([3, 1000, 3000], 60)
    for cut, (sizes, grades) in product(cuts, lists):  # short and long, with few grades and with many
        f = 100.0 * (np.arange(sum(sizes)) % 2)  # some far apart
        bound = registry[name](**cut).bind(Queries.from_sizes(np.arange(f.size) % grades * (3 / grades), sizes))
        bound.value_gradient(f)
        if bound.loss.traits.hessp:
            bound.hessp(f)(f)
    curvature = bound.curvature(f)
    if curvature is not None:
        curvature(0, bound.queries.n_queries, np.ones((f.size, 2)))
    bound.loss.objective().hold(bound, None)(f)


def compile_metric(name: str) -> None:
    """Score two lists."""
    import numpy as np

    from boostlist import Queries, metrics

    metric = metrics.get(f"{name}@2" if "k" in metrics.registry[name].__dataclass_fields__ else name)
    metric.mean(np.zeros(5), Queries.from_sizes([2.0, 1.0, 0.0, 1.0, 0.0], [3, 2]))


def compile_reader(_: str) -> None:
    """Read the sample."""
    from boostlist.datasets import load_sample

    load_sample()


def compile_products(_: str) -> None:
    """Multiply features of single precision by vectors, as parametric rankers do."""
    import numpy as np

    from boostlist.solvers import MatrixDesign

    design = MatrixDesign(np.zeros((2, 3), np.float32))
    design.back(design.scores(np.zeros(3)))


def run(arguments: argparse.Namespace) -> int:
    """Compile all parts in processes of their own, and say what was done."""
    begin = time.monotonic()
    todo = list(parts())
    # Spawned: a forked process would share locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(arguments.jobs, len(todo)), mp_context=context) as pool:
        names = {pool.submit(function, argument): name for name, function, argument in todo}
        for done, future in enumerate(as_completed(names), 1):
            future.result()
            print(f"[{done:{len(str(len(todo)))}}/{len(todo)}] {names[future]}", file=sys.stderr, flush=True)
    print(f"{len(todo)} parts compiled in {time.monotonic() - begin:.0f} s")
    return 0
