"""How many mutants of a folder its tests kill: a random sample of mutmut's, and the survivors as diffs.

    python .ci/mutants.py boosters [--sample 70] [--seed 0] [--loops] [--retry]

Works on a copy of the project, ``mutants/boosters``. There mutmut, set up in pyproject.toml, writes every mutant of
every function beside the original; the environment chooses one, so that neither sources nor numba's caches change in
between. It forks a process with all modules imported for each mutant and runs the tests that reach the function. Of
tests that share a fixture it knows only the first one, and of calls at import nothing: what survives is tried again in
a process of its own, on all tests of the folder (``tests/boosters``).

Loops for numba are not mutated. Files that hold some are left out without `--loops`, as numba would compile them anew.

Results are kept as they come. A second call goes on where the first one ended, with the tests as they are now and the
code as it was; `--retry` tries survivors again. To begin anew, delete the copy.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mutmut import __main__ as mutmut
from mutmut.configuration import config

ALIVE = ("survived", "no tests")
LOOP = r"^@(compiled|vectorized|partial\(compiled)"
# Tests of other folders that are about one.
ALSO = {"boosters": ["tests/ensemble/test_merging.py"]}
# Seconds after which tests that a mutant keeps from ending are ended.
LIMIT = 900


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
    config().pytest_add_cli_args_test_selection += [f"tests/{folder}"]
    if not loops:
        files = Path("boostlist", folder).glob("*.py")
        config().do_not_mutate += [str(file) for file in files if re.search(LOOP, file.read_text(), re.MULTILINE)]


def write_mutants() -> None:
    """Write all mutants, as ``mutmut run`` does first."""
    mutmut.set_mutant_under_test("mutant_generation")
    # numba compiles a file anew whose time has changed; those that are not mutated keep theirs.
    shutil.copy = shutil.copy2
    mutmut.copy_src_dir()
    mutmut.create_mutants(1)


def results() -> dict[str, str]:
    """Return what became of each mutant."""
    mutants, _ = mutmut.collect_source_file_mutation_data(mutant_names=())
    return {name: mutmut.status_by_exit_code[code] for _, name, code in sorted(mutants, key=lambda each: each[1])}


def try_alone(name: str) -> None:
    """Run all tests with a mutant, in a process of their own, and keep the result."""
    selection = config().pytest_add_cli_args_test_selection + ALSO.get(Path.cwd().name, [])
    command = [sys.executable, "-m", "pytest", "-x", *config().pytest_add_cli_args, *selection]
    environment = os.environ | {"MUTANT_UNDER_TEST": name}
    try:
        run = subprocess.run(command, cwd="mutants", env=environment, capture_output=True, timeout=LIMIT)
        code = min(run.returncode, 1)
    except subprocess.TimeoutExpired:
        code = 36
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
    parser.add_argument("--sample", type=int, default=70, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loops", action="store_true", help="files with numba loops too: their Python functions")
    parser.add_argument("--retry", action="store_true", help="try survivors again")
    arguments = parser.parse_args()
    enter(arguments.folder, arguments.loops)
    # For processes that tests start, too.
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONPATH": str(Path("mutants").absolute())}
    write_mutants()
    before = results()
    chosen = random.Random(arguments.seed).sample(list(before), min(arguments.sample, len(before)))
    wanted = ("not checked", *ALIVE) if arguments.retry else ("not checked",)
    tried = [name for name in chosen if before[name] in wanted]
    if tried:
        mutmut._run(tried, 1)
    after = results()
    for name in tried:
        if after[name] in ALIVE:
            try_alone(name)
    report(chosen)


if __name__ == "__main__":
    main()
