"""What tells wrong arguments from work that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UsageError(ValueError):
    """The arguments cannot be carried out; found before anything was done, so that the exit code is 2."""


@contextmanager
def checking_arguments() -> Iterator[None]:
    """Turn what code that looks at arguments only finds wrong, or not there, into a `UsageError`."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        raise UsageError(str(error)) from error
