"""Ctrl-C, a request to terminate, a closed terminal: the first ends a run in good order, the next at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from worldline.model import Interrupted

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While it lasts, signals call `first`, and then `again`; before there is anything to end, they end the command."""

    def __init__(self) -> None:
        self.first: Callable[[Interrupted], None] | None = None
        self.again: Callable[[], None] = lambda: None
        self._happened = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        numbers = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]  # As with nohup.
        self._before = {number: signal.signal(number, self._act) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _act(self, number: int, _: FrameType | None) -> None:
        error = Interrupted(f"interrupted by {signal.Signals(number).name}")
        if self.first is None:
            raise error
        if self._happened:
            self.again()
        else:
            self._happened = True
            self.first(error)


@contextmanager
def interrupted_by(interruption: Interruption, interrupt: Callable[[Interrupted], None]) -> Iterator[None]:
    """Let signals end what runs here, as long as it lasts; a `KeyboardInterrupt` by which it ends becomes ours."""
    interruption.first = interrupt
    try:
        yield
    except KeyboardInterrupt as interrupted:
        raise Interrupted(str(interrupted) or "interrupted") from None
    finally:
        interruption.first = lambda _: None  # It is over by itself.


@contextmanager
def interruptible() -> Iterator[None]:
    """Let signals end what runs here, wherever it is."""

    def interrupt(error: Interrupted) -> None:
        raise KeyboardInterrupt(error.problem)  # Nobody takes that for a failure of the model.

    with Interruption() as interruption, interrupted_by(interruption, interrupt):
        yield
