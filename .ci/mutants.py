"""How many mutants of a folder its tests kill: a random sample of mutmut's, and the survivors as diffs.

    python .ci/mutants.py boosters [--sample 40] [--seed 0] [--seconds 60] [--loops] [--retry]

Works on a copy of the project, ``mutants/boosters``. There mutmut, set up in pyproject.toml, writes every mutant of
every function beside the original; the environment chooses one, so that neither sources nor numba's caches change in
between. All tests of the folder (``tests/boosters``) run once and must pass; mutmut notes how long each one takes and
which functions it reaches. Then each mutant gets a process of its own and there the tests that reach the function, the
quickest first, until one fails; after them the others of their files, since of tests that share a fixture only the
first one reaches what it calls. A mutant that lives through `--seconds` of tests, as noted, is a survivor.

Loops for numba are not mutated. Files that hold some are left out without `--loops`, as numba would compile them anew.

Results are kept as they come. A second call goes on where the first one ended, with the tests as they are now and the
code as it was; `--retry` tries survivors again, unless the code has changed since. To begin anew, delete the copy.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import random
import re
import resource
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from mutmut import __main__ as mutmut
from mutmut.configuration import config
from mutmut.state import state
from mutmut.workers.isolation import run_in_fork

ALIVE = ("survived", "no tests")
LOOP = r"^@(compiled|inner|vectorized|intrinsic|partial\((compiled|inner))"
# Tests outside of a folder's own that are about it.
ALSO = {
    "boosters": ["tests/ensemble/test_merging.py", "tests/test_propensities.py", "tests/test_several_labels.py"],
    "datasets": ["tests/test_propensities.py"],
    "losses": ["tests/boosters/test_sampling.py", "tests/test_gains.py", "tests/test_several_labels.py"],
    "metrics": ["tests/test_gains.py"],
}
# Loaded once, before processes are forked for mutants; boostlist and the tests are not, as calls at import count.
LIBRARIES = ("hypothesis", "lightgbm", "numba", "pandas", "scipy.stats", "sklearn.pipeline", "xgboost")
# mutmut's code for "timeout".
LATE = 36


def enter(folder: str, loops: bool) -> None:
    """Go to the copy of the project, with the tests as they are now, and tell mutmut what to mutate there."""
    copy = Path("mutants") / folder
    if not copy.exists():
        shutil.copytree("boostlist", copy / "boostlist")
    for path in map(Path, ("tests", "pyproject.toml", "README.md", "datasets", "docs", "examples")):
        if path.is_dir():
            shutil.copytree(path, copy / path, dirs_exist_ok=True)
        else:
            shutil.copy2(path, copy / path)
    os.chdir(copy)
    config().only_mutate = [f"boostlist/{folder}/*"]
    config().pytest_add_cli_args_test_selection += [f"tests/{folder}", *ALSO.get(folder, [])]
    if not loops:
        files = Path("boostlist", folder).glob("*.py")
        config().do_not_mutate += [str(file) for file in files if re.search(LOOP, file.read_text(), re.MULTILINE)]


def refuse_old_code(folder: str) -> None:
    """End if a copy has other code than the project now: tests that are to kill its survivors may be about that."""
    copy = Path("mutants") / folder
    for path in Path("boostlist").rglob("*.py"):
        if copy.exists() and not ((copy / path).exists() and (copy / path).read_bytes() == path.read_bytes()):
            raise SystemExit(f"{path} has changed since {copy} was made; delete it to begin anew")


def prepare() -> None:
    """Write all mutants and find out which tests reach what, as ``mutmut run`` does first."""
    mutmut.set_mutant_under_test("mutant_generation")
    # numba compiles a file anew whose time has changed; those that are not mutated keep theirs.
    shutil.copy = shutil.copy2
    with mutmut.CatchOutput(spinner_title="Writing mutants"):
        mutmut.copy_src_dir()
        mutmut.copy_also_copy_files()
        mutmut.setup_source_paths()
        mutmut.create_mutants(1)
    mutmut.collect_or_load_stats(mutmut.get_mutant_runner(1))


def results() -> dict[str, str]:
    """Return what became of each mutant."""
    mutants, _ = mutmut.collect_source_file_mutation_data(mutant_names=())
    return {name: mutmut.status_by_exit_code[code] for _, name, code in sorted(mutants, key=lambda each: each[1])}


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def reaching(name: str) -> set[str]:
    """Return the tests that are known to reach a mutant."""
    return state().tests_by_mangled_function_name.get(mutmut.mangled_name_from_mutant_name(name), set())


def in_turn(first: set[str], seconds: float) -> list[str]:
    """Return some tests and then the others of their files, quick ones first; of all files, if there are none."""
    took = state().duration_by_test
    files = {file_of(test) for test in first or took}
    chosen: list[str] = []
    for test in sorted(took, key=lambda test: (test not in first, took[test])):
        if file_of(test) in files:
            seconds -= took[test]
            if chosen and seconds < 0:
                break
            chosen.append(test)
    return chosen


class Chosen:
    """Plugin for pytest: some tests only, in an order."""

    def __init__(self, tests: Iterable[str]) -> None:
        self.place = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out and sort."""
        items[:] = sorted((item for item in items if item.nodeid in self.place), key=lambda i: self.place[i.nodeid])


def outcome(name: str, tests: list[str], seconds: float) -> int:
    """Run tests with a mutant, in a process of their own, and return mutmut's code: 0 if all of them pass."""

    def run() -> int:
        mutmut.set_mutant_under_test(name)
        os.chdir("mutants")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        limit = int(60 + 5 * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        signal.alarm(4 * limit)
        files = sorted({file_of(test) for test in tests})
        return pytest.main(["-x", "--rootdir=.", *config().pytest_add_cli_args, *files], plugins=[Chosen(tests)])

    code = run_in_fork(run)
    if code in (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL):
        return LATE
    return 0 if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else 1


def keep(name: str, code: int) -> None:
    """Keep what became of a mutant."""
    data = mutmut.find_mutant(name)
    data.exit_code_by_key[name] = code
    data.save()


def interval(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of n."""
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def report(chosen: list[str]) -> None:
    """Print the score and the survivors."""
    after = results()
    left = [name for name in chosen if after[name] in ALIVE]
    share = 1 - len(left) / len(chosen)
    low, high = interval(share, len(chosen))
    late = sum(after[name] == "timeout" for name in chosen)
    for name in left:
        print(f"{name}: {after[name]}\n{mutmut.get_diff_for_mutant(name)}\n")
    print(
        f"{len(chosen) - len(left)} of {len(chosen)} killed, {share:.0%} ({low:.0%} to {high:.0%}), {late} of them by "
        f"time; {len(after):,} mutants in all"
    )


def main() -> None:
    """Read the command line, try a sample and print what survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--sample", type=int, default=40, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60, help="tests for a mutant, by the time they took")
    parser.add_argument("--loops", action="store_true", help="files with numba loops too: their Python functions")
    parser.add_argument("--retry", action="store_true", help="try survivors again")
    arguments = parser.parse_args()
    if arguments.retry:
        refuse_old_code(arguments.folder)
    enter(arguments.folder, arguments.loops)
    # For processes that tests start, too; the examples of hypothesis are the same for every mutant.
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "CI": "1"}
    os.environ["PYTHONPATH"] = str(Path("mutants").absolute())
    prepare()
    before = results()
    chosen = random.Random(arguments.seed).sample(list(before), min(arguments.sample, len(before)))
    wanted = ("not checked", *ALIVE) if arguments.retry else ("not checked",)
    for library in LIBRARIES:
        importlib.import_module(library)
    if outcome("", in_turn(set(), arguments.seconds), arguments.seconds) != 0:
        raise SystemExit("tests fail in the copy, without a mutant")
    for number, name in enumerate(chosen, 1):
        if before[name] not in wanted:
            continue
        tests, begin = in_turn(reaching(name), arguments.seconds), time.perf_counter()
        keep(name, outcome(name, tests, arguments.seconds))
        took = time.perf_counter() - begin
        print(f"[{number}/{len(chosen)}] {results()[name]}, {took:.0f} s, up to {len(tests)} tests: {name}", flush=True)
    report(chosen)


if __name__ == "__main__":
    main()
