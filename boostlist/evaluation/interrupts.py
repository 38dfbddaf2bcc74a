"""Ctrl-C: who hears it, and when."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass
class Postponed:
    """Whether Ctrl-C was pressed while it was postponed."""

    pressed: bool = False


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Let a process that is started here ignore Ctrl-C: it reaches all processes of a terminal, only we act on it."""
    with _handled_by(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def postponed(say: Callable[[], None] = lambda: None) -> Iterator[Postponed]:
    """Finish the block in spite of Ctrl-C; pressed again, it interrupts as usual.

    Parameters
    ----------
    say
        Called when it is pressed for the first time.

    Yields
    ------
    Postponed
        Whether it was pressed.
    """
    state = Postponed()

    def note(number: int, frame: FrameType | None) -> None:
        if state.pressed:
            raise KeyboardInterrupt
        state.pressed = True
        say()

    # Who started us so that Ctrl-C is ignored, such as nohup, is not to be interrupted at all.
    with contextlib.nullcontext() if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else _handled_by(note):
        yield state


@contextlib.contextmanager
def _handled_by(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
