"""The loop around solvers: its limits, the callback, interruptions."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from boostlist.solvers import Convergence, Iterate, Iteration, Limits, Reason, follow, following

W = [np.array([float(i)]) for i in range(6)]


def steps(reason=Reason.NO_STEP, closed=None, losses=(5.0, 4.0, 3.0, 2.0), error=None, **changes):
    """Yield iterates whose gradient norm is ten times the loss, and return a reason, or fail."""
    try:
        for w, loss in zip(W, losses, strict=False):
            yield Iterate(w, loss, 10 * loss, **changes)
        if error is not None:
            raise error
    finally:
        if closed is not None:
            closed.append(True)
    return reason


@pytest.mark.parametrize("reason", Reason)
def test_the_solver_says_why_it_ended(reason):
    solution = follow(steps(reason), Limits())
    assert solution.convergence.reason is reason
    assert solution.convergence.converged is reason.converged
    assert "{" not in solution.convergence.message
    assert solution.w is W[3]
    assert [(i.number, i.loss, i.gradient_norm) for i in solution.convergence.iterations] == [
        (i, loss, 10 * loss) for i, loss in enumerate((5.0, 4.0, 3.0, 2.0))
    ]


def test_seconds_are_counted_from_the_start(monkeypatch):
    clock = iter([100.0, 101.5, 104.0, 104.25, 108.0])
    monkeypatch.setattr(following, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    record = follow(steps(), Limits()).convergence
    assert [iteration.seconds for iteration in record.iterations] == [1.5, 4.0, 4.25, 8.0]
    assert record.to_frame()["seconds"].tolist() == [1.5, 4.0, 4.25, 8.0]


@pytest.mark.parametrize(
    ("limits", "options", "reason", "number"),
    [
        (Limits(tol=40.0), {}, Reason.SMALL_GRADIENT, 1),
        (Limits(tol=39.9), {}, Reason.SMALL_GRADIENT, 2),
        (Limits(max_iter=2), {}, Reason.ITERATIONS, 2),
        (Limits(max_iter=0), {}, Reason.ITERATIONS, 0),
        (Limits(tol=1.0), {"change": 1.0}, Reason.SMALL_CHANGE, 0),
        (Limits(tol=0.9), {"change": 1.0}, Reason.NO_STEP, 3),
        (Limits(tol=30.0, max_iter=2), {}, Reason.SMALL_GRADIENT, 2),
        (Limits(), {"losses": (1.0, np.nan, 0.5)}, Reason.NOT_FINITE, 1),
        (Limits(), {"losses": (1.0, np.inf)}, Reason.NOT_FINITE, 1),
    ],
)
def test_limits(limits, options, reason, number):
    closed = []
    solution = follow(steps(closed=closed, **options), limits)
    assert (solution.convergence.reason, solution.convergence.n_iter) == (reason, number)
    assert solution.w is W[number]
    assert closed == [True]


def test_the_callback_sees_every_iteration_and_ends_the_fit():
    seen = []
    record = follow(steps(), Limits(), callback=seen.append).convergence
    assert tuple(seen) == record.iterations
    stopped = follow(steps(), Limits(), callback=lambda iteration: iteration.loss < 5)
    assert (stopped.convergence.reason, stopped.convergence.n_iter) == (Reason.CALLBACK, 1)
    assert stopped.w is W[1]


def test_an_interruption_after_the_first_iterate_is_handed_on():
    solution = follow(steps(error=KeyboardInterrupt()), Limits())
    assert isinstance(solution.interruption, KeyboardInterrupt)
    assert solution.convergence.reason is Reason.INTERRUPTED
    assert solution.w is W[3]

    def interrupt(iteration):
        raise KeyboardInterrupt

    closed = []
    solution = follow(steps(closed=closed), Limits(), callback=interrupt)
    assert isinstance(solution.interruption, KeyboardInterrupt)
    assert solution.w is W[0]
    assert closed == [True]
    with pytest.raises(MemoryError):
        follow(steps(losses=(), error=MemoryError()), Limits())


def test_a_record_is_stored_as_plain_values():
    record = Convergence((Iteration(0, 1.0, 0.5, 0.1),), Reason.KINK)
    assert record.__getstate__()["reason"] == "KINK"
    again = pickle.loads(pickle.dumps(record))
    assert again == record
    assert again.reason is Reason.KINK


def test_progress(capsys):
    follow(steps(), Limits(), verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:5] for line in lines] == [[str(i), "loss", str(5 - i), "gradient", "norm"] for i in range(4)]
    follow(steps(), Limits())
    assert capsys.readouterr().out == ""
