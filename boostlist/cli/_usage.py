"""What tells wrong arguments from work that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UsageError(ValueError):
    """The arguments cannot be carried out; found before anything was done, so that the exit code is 2."""


@contextmanager
def checking_arguments() -> Iterator[None]:
    """Turn a ValueError of code that looks at arguments only into a `UsageError`."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error
