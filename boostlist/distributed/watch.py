"""A training on a cluster under watch: when a worker is lost, or time is up, it is given up with an error."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future as LocalFuture
from concurrent.futures import wait
from threading import Thread
from time import monotonic
from typing import Any

_POLL_SECONDS = 0.5
_REMEDY = "Fit again on the workers that are left"


class GivenUpError(RuntimeError):
    """A training that nobody waits for any more; workers may still be at it, and do nothing else meanwhile."""


def guarded(client: Any, holders: set[str], train: Callable[[], Any], timeout: float | None) -> Any:
    """Run a training, and give up when one of its workers is gone.

    A task that the engines tie to a worker waits for that worker's return, for ever if it never returns, and so would
    whoever waits for the task: hence the thread, and the look at the cluster while it works. The client is the current
    one in that thread: XGBoost's engine waits by way of the current client, and would wait for ever by way of another.
    """
    known = set(client.futures)
    result: LocalFuture[Any] = LocalFuture()

    def run() -> None:
        try:
            with client.as_current():
                result.set_result(train())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, name="boostlist-distributed-fit", daemon=True).start()
    begin = monotonic()
    while not wait([result], timeout=_POLL_SECONDS).done:
        lost = holders - set(client.ncores())
        late = timeout is not None and monotonic() - begin > timeout
        if not lost and not late:
            continue
        _cancel(client, set(client.futures) - known)
        reason = f"the worker {min(lost)} was lost" if lost else f"it took more than {timeout:g} seconds"
        raise GivenUpError(f"training was given up: {reason}; no model was made. {_REMEDY}")
    error = result.exception()
    if error is not None and holders - set(client.ncores()):
        lost_worker = min(holders - set(client.ncores()))
        raise RuntimeError(
            f"training failed: the worker {lost_worker} was lost; no model was made. {_REMEDY}"
        ) from error
    return result.result()


def _cancel(client: Any, keys: set[Any]) -> None:
    """Let go of the tasks that LightGBM ties to a worker; XGBoost's end by themselves when a worker is gone."""
    from distributed import Future

    client.cancel([Future(key, client) for key in keys if str(key).startswith("_train_part")])
