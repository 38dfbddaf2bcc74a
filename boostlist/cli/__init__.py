"""The command line: ``boostlist COMMAND ...``, a module of this folder per command.

A command module has ``add_parser(commands)``, which declares its arguments and sets ``run``, a function from the parsed
arguments to an exit code. Modules import what they need when they run, so that ``boostlist --help`` is quick.

Exit codes: 0 success, 1 the command could not do what was asked, 2 wrong usage, 130 interrupted. A command raises a
`UsageError` for arguments that it refuses before it does anything; every other error ends with 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from boostlist._version import __version__
from boostlist.cli import compare, data, evaluate, losses, rank, train, warmup
from boostlist.cli._usage import UsageError

COMMANDS = (compare, train, rank, evaluate, losses, data, warmup)

EXAMPLES = """\
examples:
  boostlist compare                  models compared on the sample, with a report
  boostlist train train.txt --model lightgbm:cs_listmle -o model.txt
  boostlist evaluate test.txt --model model.txt --metrics ndcg@10,err,map
  boostlist data describe            the data that comes with the package
  boostlist losses                   the losses as a table
  boostlist losses cs_listmle        one loss with formula and parameters
  boostlist warmup                   compile everything now, for container images
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose help is plain text, though docstrings that it shows mark code by backticks."""

    def format_help(self) -> str:
        return super().format_help().replace("`", "")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="boostlist",
        description="Listwise ranking objectives for LightGBM and XGBoost, compared with linear and kernel rankers.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"boostlist {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors go to stderr in one line, with ``--debug`` as a traceback."""
    arguments = make_parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has gone. Python would complain again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("boostlist: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if arguments.debug:
            raise
        print(f"boostlist: {_in_one_line(error)}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return code


def _in_one_line(error: Exception) -> str:
    """Return what an error says; one that is not meant for users, of its kind and how to find out more."""
    text = " ".join(str(error).partition("Stack trace:")[0].split())  # XGBoost's errors have one
    if isinstance(error, ValueError | OSError | ImportError | NotImplementedError):
        return text
    return f"{type(error).__name__}: {text} (boostlist --debug ... shows where)"
