"""The one way in which commands print: whatever is in a text, it does nothing but stand there.

What a text quotes of others (failures, names, files) is made printable before it is laid out, so that columns fit, and
again when it is rendered, in case that it came in another way. A text is one line, since a line break in it may be
quoted, and what follows would look like a line of ours; what has several is passed as `own_lines`.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import json
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from worldline.history.outcome import ALL_OTHERS, Status, Watch
from worldline.model.errors import LossError
from worldline.model.text import counted, printable, printable_colors, printable_json, printable_lines
from worldline.model.time import FOREVER, format_time

if TYPE_CHECKING:
    from rich.progress import Progress

    from worldline.metasim.public import PublicLcm
    from worldline.recording import Shelf

_COLOR = re.compile(r"\x1b\[[0-9;:]*m")


class PlainConsole(Console):
    """A console without markup or guesses, for which nothing in a text means anything."""

    def __init__(self, file: TextIO | None = None, *, wraps: bool = False) -> None:
        file = sys.stdout if file is None else file
        super().__init__(file=file, highlight=False, markup=False, emoji=False, soft_wrap=not wraps)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts on one line each; as they are, what was laid out already."""
        super().print(*(printable(each) if isinstance(each, str) else each for each in objects), **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable_lines(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def warn(text: str) -> None:
    """Tell the user what is probably not meant, beside what the command prints."""
    PlainConsole(sys.stderr).print(f"warning: {text}", style="yellow")


def remark(text: str) -> None:
    """Tell the user something that the command wasn't asked for, beside what the command prints."""
    PlainConsole(sys.stderr).print(text)


def tell_lost(public: PublicLcm) -> None:
    """Tell what of a recording didn't get onto an LCM; if a log isn't whole, the command has failed."""
    if public.lost:
        for line in public.report():
            warn(line)
    if public.trouble:
        raise LossError(f"the LCM log can't be written: {public.trouble}", advice="it has what there was room for")


def own_lines(text: str) -> Text:
    """Return a text with several lines, of which each is ours."""
    return Text(printable_lines(text))


def print_json(value: object) -> None:
    """Print a value as one line of JSON, for programs."""
    print(printable_json(json.encode(value).decode()))


def cell(text: str) -> str:
    """Return a text for a cell of a table, where a line break would look like another row."""
    return printable(text)


def uncolored(text: str) -> str:
    """Return a line that a program has printed, for a place that has no colors."""
    shown = printable_colors(text)
    return _COLOR.sub("", shown) if "\x1b" in shown else shown


def colored(text: str) -> Text:
    """Return a line that a program has printed, in its colors, which end with it."""
    shown = printable_colors(text)
    return Text.from_ansi(shown, end="") if "\x1b" in shown else Text(shown, end="")


# Keeps standard output free for the one thing that is to be there: an object, or a recording.


@contextmanager
def output_free_for(shelf: Shelf | None, *, wanted: bool = False) -> Iterator[None]:
    """Send all that is printed to standard error meanwhile: models and workers too, whichever way they print.

    That is so if it is `wanted`, and if the recording goes to standard output, which is still open for it then.
    """
    recorded = shelf if shelf is not None and shelf.is_standard_output else None
    if not wanted and recorded is None:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    if recorded is not None:
        recorded.target = Path(f"/dev/fd/{kept}")
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


# Progress bars for commands that take a while, shown on a terminal.

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
def counting(doing: str, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many are done, whether or not there is a terminal: elsewhere, a line says so now and then.

    That takes a thread of its own, since one may take minutes. The longer it takes, the rarer are the lines.
    """
    with bar(what, total) as shown:
        if shown is not None:
            yield shown
            return
        done, over = 0, threading.Event()

        def count(now_done: int) -> None:
            nonlocal done
            done = now_done

        def tell() -> None:
            began, pause_s = time.monotonic(), _TOLD_EVERY_S
            while not over.wait(pause_s):
                took_s = time.monotonic() - began
                remark(f"{doing}: {done:,} of {total:,} {what}, after {took_s:,.0f} s")
                pause_s = max(_TOLD_EVERY_S, took_s / 10)

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield count
        finally:
            over.set()
            thread.join()


@contextmanager
def progress(event: str = "event") -> Iterator[Watch]:
    """Show how far a run is, once it has taken a while. What it yields is the run's `watch`; `event` is what it counts.

    Where there is no terminal, a line says so now and then.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        is_time = _now_and_then()

        def tell(status: Status) -> None:
            if is_time():
                remark(f"still running: {reached(status)} simulated, {counted(status.events, event)}{_hint(status)}")

        yield tell
        return
    began = time.monotonic()
    shown: list[Progress] = []

    def show(status: Status) -> None:
        took = time.monotonic() - began
        if took < _SHOWN_AFTER_S:
            return
        if not shown:
            shown.append(_opened_bar(console, status.end))
        text = f"{format_time(status.time - status.time % 1_000)}  {status.events / took:,.0f} events/s"
        shown[0].update(shown[0].task_ids[0], completed=min(status.time, status.end), description=text)

    try:
        yield show
    finally:
        for each in shown:
            each.stop()


def _opened_bar(console: Console, end: int) -> Progress:
    """Open the bar of a run; without an end, it only shows that something happens."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    has_end = end < FOREVER
    columns = (BarColumn(), TimeRemainingColumn()) if has_end else (SpinnerColumn(),)
    opened = Progress(
        *columns,
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # What members print stays above the bar, or where it is piped to.
    )
    opened.add_task("", total=end if has_end else None)
    opened.start()
    return opened


def _now_and_then() -> Callable[[], bool]:
    """Return what says whether it is time to tell something again."""
    told = time.monotonic()

    def is_time() -> bool:
        nonlocal told
        clock = time.monotonic()
        if clock - told < _TOLD_EVERY_S:
            return False
        told = clock
        return True

    return is_time


def reached(status: Status) -> str:
    """Say how far a run is, and of how much."""
    return format_time(status.time) + (f" of {format_time(status.end)}" if status.end < FOREVER else "")


def _hint(status: Status) -> str:
    return "" if status.end < FOREVER else ", and no end is set (--until TIME ends it)"


def check_notes() -> tuple[Callable[[int], None], Watch]:
    """Return what tells the status of a check now and then: by the schedules tried, and by the run that goes on.

    On a terminal, a bar counts the schedules: there, the watch alone is told, of a run that takes long by itself.
    """
    is_time, schedules = _now_and_then(), 0

    def progress(tried: int) -> None:
        nonlocal schedules
        schedules = tried
        if is_time():
            remark(f"still checking: {counted(tried, 'schedule')} tried")

    def watch(status: Status) -> None:
        if is_time():
            busy = "".join(f": {wait.why}" for wait in status.waits if wait.who == ALL_OTHERS)
            done = f"{counted(schedules, 'schedule')} tried, a run is at {reached(status)}"
            remark(f"still checking: {done}{busy or _hint(status)}")

    return progress, watch
