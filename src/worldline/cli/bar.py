"""Progress bars for commands that take a while, shown if somebody looks at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from worldline.cli.console import remark
from worldline.history.outcome import EVERYBODY_ELSE, Status, Watch
from worldline.model.text import counted
from worldline.model.time import FOREVER, format_time

if TYPE_CHECKING:
    from rich.progress import Progress

_SHOWN_AFTER_S = 1.0
_TOLD_EVERY_S = 10.0


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show how many of something are done."""
    console = Console(file=sys.stderr)  # As it is now: what programs print to it meanwhile may be redirected.
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def progress(event: str = "event") -> Iterator[Watch]:
    """Show how far a run is, once it has taken a while. What it yields is the run's `watch`; `event` is what it counts.

    Where there is no terminal, a line says so now and then.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _RunNote(event)
        return
    shown = _RunBar(console)
    try:
        yield shown
    finally:
        shown.close()


class _RunNote:
    """Tells whoever waits for a long run its status now and then, and how to end one that has no end."""

    def __init__(self, event: str) -> None:
        self._told = time.monotonic()
        self._event = event

    def __call__(self, status: Status) -> None:
        clock = time.monotonic()
        if clock - self._told < _TOLD_EVERY_S:
            return
        self._told = clock
        done = f"{_reached(status)} simulated, {counted(status.events, self._event)}"
        remark(f"still running: {done}{_hint(status)}")


def _reached(status: Status) -> str:
    return format_time(status.time) + (f" of {format_time(status.end)}" if status.end < FOREVER else "")


def _hint(status: Status) -> str:
    return "" if status.end < FOREVER else ", and no end is set (--until TIME ends it)"


class CheckNote:
    """Tells whoever waits for a check its status now and then, and who keeps everybody else waiting.

    On a terminal, a bar counts the schedules: there, the `watch` alone is told, of a run that takes long by itself.
    """

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._tried = 0

    def progress(self, tried: int) -> None:
        self._tried = tried
        if self._is_time():
            remark(f"still checking: {counted(tried, 'schedule')} tried")

    def watch(self, status: Status) -> None:
        if self._is_time():
            busy = "".join(f": {wait.why}" for wait in status.waits if wait.who == EVERYBODY_ELSE)
            done = f"{counted(self._tried, 'schedule')} tried, a run is at {_reached(status)}"
            remark(f"still checking: {done}{busy or _hint(status)}")

    def _is_time(self) -> bool:
        clock = time.monotonic()
        if clock - self._told < _TOLD_EVERY_S:
            return False
        self._told = clock
        return True


class _RunBar:
    """A bar that opens when a run has taken a while; without an end, it only shows that something happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._bar: Progress | None = None

    def __call__(self, status: Status) -> None:
        took = time.monotonic() - self._began
        if took < _SHOWN_AFTER_S:
            return
        if self._bar is None:
            self._bar = self._opened(status.end)
        text = f"{format_time(status.time - status.time % 1_000)}  {status.events / took:,.0f} events/s"
        self._bar.update(self._bar.task_ids[0], completed=min(status.time, status.end), description=text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _opened(self, end: int) -> Progress:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

        has_end = end < FOREVER
        columns = (BarColumn(), TimeRemainingColumn()) if has_end else (SpinnerColumn(),)
        opened = Progress(
            *columns,
            TextColumn("{task.description}"),
            console=self._console,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # What members print stays above the bar, or where it is piped to.
        )
        opened.add_task("", total=end if has_end else None)
        opened.start()
        return opened
