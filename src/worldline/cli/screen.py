"""What a running federation shows: participants' lines, and how it is going.

On a terminal, one line at the bottom is kept up to date. Elsewhere, a plain line is written now and then, to standard
error: what is on standard output is what participants print, and what came of the run.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Self, TextIO, cast

from rich.live import Live
from rich.text import Text

from worldline.cli.console import PlainConsole, colored, reached, uncolored
from worldline.history.outcome import ALL_OTHERS, THE_RUN, Status, WaitReason, Watch
from worldline.model import format_time
from worldline.model.text import printable
from worldline.processes.standard_output import unwritable

# Writes what is shown in a thread of its own, so that no run waits for its reader.
#
# A reader may be slow (a pager, a terminal that is scrolled back), may go before its time (`head`), or be a full disk.
# A run goes on meanwhile; only its end waits until all is written. What can't be written is no secret: `failure` says
# why.
#
# While a debugger has the terminal, all is held, in a file if it is much: no participant that prints waits for that.

KEPT_MAX = 2**26
"""How many bytes are kept for a slow reader before a participant that prints has to wait for it."""

_WRITE_MAX = 2**16
_HELD_IN_MEMORY = 2**22
_LOOK_S = 0.05


class ScreenOutput(io.TextIOBase):
    """A text file that takes everything at once, and writes it to another one."""

    def __init__(self, file: TextIO | None) -> None:
        self.failure: OSError | None = None  # Why nothing more can be written.
        self._file = file  # None: standard output was closed before we came.
        self._pending: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._given_up = False
        self._held: SpooledTemporaryFile[bytes] | None = None
        self._held_size = 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._file, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return self._file is not None and self._file.isatty()

    def fileno(self) -> int:
        if self._file is None:
            raise io.UnsupportedOperation("fileno")
        return self._file.fileno()

    def write(self, text: str) -> int:
        data = text.encode(self.encoding, "backslashreplace")
        with self._changed:
            if self._held is not None:
                self._held.seek(self._held_size)
                self._held_size += self._held.write(data)
            else:
                self._queue(data)
        return len(text)

    def _queue(self, data: bytes) -> None:
        if self.failure is None and self._file is not None and data:
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name="worldline screen", daemon=True)
                self._thread.start()
            self._pending.append(data)
            self._size += len(data)
            self._changed.notify_all()

    def hold(self) -> None:
        """Write nothing from now on, until `show_held`; keep it instead."""
        with self._changed:
            self._held = SpooledTemporaryFile(_HELD_IN_MEMORY)  # noqa: SIM115 - `show_held` closes it

    def show_held(self) -> None:
        """Write what was kept, and then whatever comes."""
        shown = 0
        while self._held is not None:
            with self._changed:
                shown += self._show_from(shown)
            self.wait_for_room()

    def _show_from(self, place: int) -> int:
        """Write the next part of what was kept, or be done with it; return how much that was."""
        assert self._held is not None
        self._held.seek(place)
        part = self._held.read(_WRITE_MAX)
        if part:
            self._queue(part)
        else:
            self._held.close()
            self._held, self._held_size = None, 0
        return len(part)

    def wait_for_room(self) -> None:
        """Wait as long as more is kept than is reasonable. For a program that may print for ever."""
        self._wait_until(KEPT_MAX)

    def wait_written(self) -> None:
        """Wait until all is written, or can't be."""
        self._wait_until(0)

    def give_up(self) -> None:
        """Wait for no reader from here on. May be called from a signal's handler."""
        self._given_up = True

    def finish(self) -> None:
        """Wait until all is written, or can't be, and end."""
        self.show_held()
        self.wait_written()
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None and not self._given_up:
            thread.join()

    def _wait_until(self, size: int) -> None:
        with self._changed:
            self._changed_to(size)

    def _changed_to(self, size: int) -> None:
        """Wait, apart from the lock: a signal's handler that raised at the loop's jump back would leave it locked."""
        while self._size > size and self.failure is None and not self._given_up:
            self._changed.wait(_LOOK_S)

    # --- In its thread ---

    def _live(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._ending)
                if not self._pending:
                    return
                batch = [self._pending.popleft()]
                size = len(batch[0])
                while self._pending and size < _WRITE_MAX:
                    size += len(self._pending[0])
                    batch.append(self._pending.popleft())
            try:
                self._put(b"".join(batch))
            except OSError as error:
                with self._changed:
                    self.failure = error
                    self._pending.clear()
            with self._changed:
                self._size -= size
                self._changed.notify_all()

    def _put(self, data: bytes) -> None:
        """Write all of it. Past the file's own buffer: it would be locked as long as the reader doesn't read."""
        assert self._file is not None
        try:
            descriptor = self._file.fileno()
        except io.UnsupportedOperation:  # It is in memory.
            self._file.write(data.decode(self.encoding))
            return
        left = memoryview(data)
        while left:
            with contextlib.suppress(BlockingIOError):  # Another process that shares it may have asked it not to wait.
                left = left[os.write(descriptor, left) :]
                continue
            select.select([], [descriptor], [])


_FRESH_S = 0.25
_PLAIN_S = 5.0
_COLORS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_yellow")


class Screen:
    """Where a run is shown.

    `time_of` says how far a participant has come whose lines don't, and `remarks` what else there is to be said of how
    it goes.
    """

    def __init__(
        self,
        title: str,
        names: list[str],
        *,
        quiet: bool = False,
        file: TextIO | None = None,
        status_file: TextIO | None = None,
    ) -> None:
        self.output = ScreenOutput(sys.stdout if file is None else file)
        self._console = PlainConsole(cast("TextIO", self.output))
        self._status_output, self._status_console = self.output, self._console
        if not self._console.is_terminal:
            self._status_output = ScreenOutput(sys.stderr if status_file is None else status_file)
            self._status_console = PlainConsole(cast("TextIO", self._status_output))
        self._title = title
        self._quiet = quiet
        self._width = max(map(len, names), default=0)
        self._colors = {name: _COLORS[place % len(_COLORS)] for place, name in enumerate(names)}
        self._live: Live | None = None
        if self._is_live:
            self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._prompting = False
        self._holding = False
        self.time_of: Callable[[str], int] = lambda _: 0
        self.remarks: Callable[[], list[str]] = list
        self._shown = time.monotonic()
        self._before: tuple[float, int, int] | None = None  # When how far it is was shown last, and how far.

    @property
    def _is_live(self) -> bool:
        return self._console.is_terminal and not self._quiet

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._live is not None:
                self._live.stop()
        finally:
            self._status_output.finish()
            self.output.finish()  # All participants may have gone by now: a slow reader holds up none of them.
        if error is None:
            self._check_reader()

    def _check_reader(self) -> None:
        """Raise if nothing can be shown any more: then how it ends can't be either."""
        if self.output.failure is not None:
            raise unwritable(self.output.failure)

    def make_way(self) -> None:
        """Leave the terminal to who talks with the user. From here on, nothing is shown later than it is said."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._prompting = True
        self._status_output.wait_written()
        self.output.wait_written()

    def hold(self) -> None:
        """Show nothing, and keep all that is said: a debugger has the terminal."""
        self.make_way()
        self._prompting, self._holding = False, True
        for output in self._outputs():
            output.hold()

    def show_held(self) -> None:
        """Show what was kept, and whatever comes."""
        self._holding = False
        for output in self._outputs():
            output.show_held()

    def give_up(self) -> None:
        """Wait for no reader from here on. May be called from a signal's handler."""
        for output in self._outputs():
            output.give_up()

    def _outputs(self) -> dict[ScreenOutput, None]:
        return dict.fromkeys((self.output, self._status_output))

    def say(self, name: str, now: int | None, text: str) -> None:
        """Show a line that a participant has printed, with its simulated time as far as it is known."""
        if self._quiet:
            return
        about = now is None  # It is known how far the participant has said that it has come, no more.
        if now is None:
            now = self.time_of(name)
        begin, who = f"{'~' * about + format_time(now):>14}  ", name.ljust(self._width)
        if self._console.is_terminal:
            line = Text(begin)
            line.append(who, style=self._colors.get(name, ""))
            line.append("  ")
            line.append_text(colored(text))
            self._console.print(line)
        else:  # There may be a million of these, and there is nothing to lay out.
            self.output.write(f"{begin}{printable(who)}  {uncolored(text)}\n")
        if self._prompting:
            self.output.wait_written()
        else:
            self.output.wait_for_room()

    def refresh(self, status: Status) -> None:
        """Show how the run is going, if it hasn't been shown just now. Raise if it can't be seen any more."""
        self._check_reader()
        now = time.monotonic()
        if self._quiet or self._holding or now - self._shown < (_FRESH_S if self._live else _PLAIN_S):
            return
        self._shown = now
        said = ", ".join([status_text(status, self._before, now), *self.remarks()])
        if not any(wait.who == THE_RUN for wait in status.waits):
            self._before = now, status.time, status.events
        if self._live is not None:
            self._live.update(Text(f"{self._title}  {said}", style="bold", overflow="ellipsis"), refresh=True)
        else:
            self._status_console.print(f"... {self._title}: {said}")

    def tell(self, text: str, *, is_wanted: bool = False) -> None:
        """Say something of how the run is going, which is no part of what comes of it; if quiet, if `is_wanted`."""
        if is_wanted or not self._quiet:
            self._status_console.print(text)

    def note(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text)

    def conclude(self, text: str) -> None:
        """Say what comes of the run: after all that was told of how it goes, also where both go to one pipe."""
        if self._status_output is not self.output:
            self._status_output.wait_written()
        self._console.print(text)


def status_text(status: Status, before: tuple[float, int, int] | None, wall: float) -> str:
    """Say where a run is, how fast, and which participant keeps it back.

    `before` is when its status was shown last, its time and its events then; `wall` is when it is shown now.
    """
    waits = status.waits
    if missing := [wait.holder or "" for wait in waits if wait.who == THE_RUN]:
        return f"waiting for {', '.join(missing)}"
    text = reached(status)
    if before is not None:
        elapsed = wall - before[0]
        text += f", {(status.time - before[1]) / elapsed / 1e9:.3g}× real time"
        text += f", {(status.events - before[2]) / elapsed:,.0f} events/s"
    if waits and waits[0].who == ALL_OTHERS:
        text += f", {waits[0].why}"
    elif waits and waits[0].holder is not None:
        text += f", {waits[0].holder} holds {waits[0].who}"
    return text


# Names the participant that keeps a run from going on for long. It only looks, so nothing of the result changes.


def holder_notice(say: Callable[[str], None], patience_s: float, clock: Callable[[], float] = time.monotonic) -> Watch:
    """Return what is told the status now and then, and says when time has stood still for long; then ever less often.

    What isn't a participant's doing isn't said: that one hasn't joined is shown anyway, and an operator who holds the
    run knows.
    """
    stands, since, next_s = -1, clock(), patience_s

    def look(status: Status) -> None:
        nonlocal stands, since, next_s
        now = clock()
        if status.time != stands:
            stands, since, next_s = status.time, now, patience_s
            return
        held_s = now - since
        if held_s < next_s:
            return
        reason = root_of(status.waits)
        if reason is None or reason.holder is None:
            since = now  # No participant holds it, but the operator, the wall clock, or one that isn't there.
            return
        next_s = 2 * held_s
        lasted = f"{held_s:.1f}" if held_s < 1 else f"{held_s:.0f}"
        say(f"{reason.holder} has held the run at {format_time(status.time)} for {lasted} s: {reason.why}")

    return look


def root_of(waits: tuple[WaitReason, ...]) -> WaitReason | None:
    """Return why the one that is held back most waits for one that doesn't wait itself; None if none is held so."""
    reasons = {wait.who: wait for wait in waits if wait.who != THE_RUN}
    if not reasons:
        return None
    if ALL_OTHERS in reasons:
        return reasons[ALL_OTHERS]
    reason = next(iter(reasons.values()))
    met = {reason.who}
    while reason.holder in reasons and reason.holder not in met:
        reason = reasons[reason.holder]
        met.add(reason.who)
    return reason
