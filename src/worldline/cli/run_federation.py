"""Runs a federation, in processes or in this one: its participants are heard, and it is shown on a screen.

On a terminal, one line at the bottom is kept up to date: how it is going. Elsewhere, a plain line is written now and
then, to standard error: what is on standard output is what participants print, and what came of the run.
"""

from __future__ import annotations

import io
import os
import select
import shlex
import signal
import socket
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from math import inf
from tempfile import SpooledTemporaryFile
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from rich.live import Live
from rich.text import Text

from worldline.cli.console import PlainConsole, colored, reached, uncolored, warn
from worldline.cli.options import PATIENCE_S
from worldline.cli.runner import conclusion, recording_of, run_to_end
from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import Federation
from worldline.history.observer import Observer
from worldline.history.outcome import ALL_OTHERS, THE_RUN, Status, WaitReason, Watch
from worldline.model import Interrupted, ModelError, WorldlineError, format_time
from worldline.model.blame import trace_of
from worldline.model.text import LineSplitter, printable
from worldline.processes.standard_output import unwritable
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.federation.address import Address
    from worldline.launch.file.setup import Setup
    from worldline.recording import RunRecording, Shelf
    from worldline.search.properties import Property
    from worldline.watch.live import LiveRun


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
            with suppress(BlockingIOError):  # Another process that shares it may have asked it not to wait.
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


# Tells apart what participants print that run in one process, each with context variables of its own.

Say = Callable[[str, int, str], None]
"""Told the name of a participant, its time, and a line that it has printed."""

_SPEAKER: ContextVar[tuple[Participant, dict[str, LineSplitter]] | None] = ContextVar("speaker", default=None)


class ParticipantOutput(io.RawIOBase):
    """What is under standard output, or standard error, meanwhile: a participant is heard by `say`, with name and time.

    The stream itself is an ordinary text file, with all that belongs to one. What bypasses Python, and what threads
    print that a program has started, goes to where it would have gone.
    """

    def __init__(self, say: Say, elsewhere: io.TextIOBase | TextIO, stream: str = "stdout") -> None:
        self._say = say
        self._elsewhere = elsewhere
        self._stream = stream
        self._usual: TextIO = getattr(sys, stream)
        self.name = f"<{stream}>"

    def of(self, federation: Federation) -> Federation:
        """Return the federation with programs whose output is known to be theirs."""
        return replace(
            federation,
            programs={
                name: replace(program, run=self._heard(program.run)) for name, program in federation.programs.items()
            },
        )

    def _heard(self, run: Callable[[Participant], object]) -> Callable[[Participant], object]:
        def speak(participant: Participant) -> object:
            lines = {"stdout": LineSplitter(), "stderr": LineSplitter()}
            speaking = _SPEAKER.set((participant, lines))
            try:
                return run(participant)
            finally:
                _SPEAKER.reset(speaking)
                for each in lines.values():
                    self._hear(participant, each.finish())

        return speak

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        speaking = _SPEAKER.get()
        if speaking is None:
            self._elsewhere.write(taken.decode("utf-8", "replace"))
        else:
            participant, lines = speaking
            self._hear(participant, lines[self._stream].feed(taken))
        return len(taken)

    def _hear(self, participant: Participant, lines: list[str]) -> None:
        for line in lines:
            self._say(participant.name, participant.now, line)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._usual.fileno()

    def close(self) -> None:
        """Do nothing: what is behind it isn't ours to close."""

    def __enter__(self) -> ParticipantOutput:
        self._usual = getattr(sys, self._stream)
        # With nothing kept back between the two: what is printed has to be told by whom. What can't be encoded raises
        # where it would in a process of its own.
        errors = "backslashreplace" if self._stream == "stderr" else self._usual.errors
        text = io.TextIOWrapper(self, encoding="utf-8", errors=errors, newline="\n", write_through=True)
        setattr(sys, self._stream, text)
        return self

    def __exit__(self, *_: object) -> None:
        setattr(sys, self._stream, self._usual)


# Where a run is shown on LCM, and to whom.


@contextmanager
def shown_on_lcm(
    ready: ReadyFederation, observer: Observer | None, say: Callable[[str], None]
) -> Iterator[Observer | None]:
    """Have a run shown to LCM programs, if that is wanted; say where, and in the end what they were shown."""
    if not ready.lcm and ready.lcm_serve is None:
        yield observer
        return
    from worldline.history.telling import SeveralObservers
    from worldline.metasim.public import PublicLcm  # Here, since few runs have one.

    public = PublicLcm(ready.lcm, serve=ready.lcm_serve)
    public.check(*ready.declared_topics())
    with public:
        if public.url is not None:
            say(f"public LCM on {public.url}")
        yield public if observer is None else SeveralObservers((observer, public))
    tell = warn if public.lost else say  # What is lost is told to those, too, who want to see the outcome alone.
    for line in public.report():
        tell(line)


# Lends the terminal to a participant that is debugged, and takes it back.
#
# While it is lent, nothing of ours is shown: all of it waits. What a person types is the participant's, and so are
# Ctrl-C and Ctrl-Z. The system sends those to our processes, not to the participant's, which has a session of its own;
# so we pass them on. A debugger that is killed at its prompt leaves the terminal without echo: we put it back as it
# was.
#
# Where there is no terminal, the participant gets our standard input, output and error as they are.

_INPUT = 0


class LentTerminal:
    """The terminal of this process, for a group of other processes, with `files` as their standard files."""

    def __init__(self, screen: Screen, files: Sequence[int]) -> None:
        self._files = files
        self._screen = screen
        self._is_terminal = os.isatty(_INPUT)
        self._modes = termios.tcgetattr(_INPUT) if self._is_terminal else None
        self._usual: dict[int, Any] = {}
        self._group: int | None = None
        self._is_back = False

    def make_way(self) -> Sequence[int]:
        self._screen.hold()
        return self._files

    def lend(self, group: int) -> None:
        self._group = group

    def give_back(self) -> None:
        if not self._is_back:
            self._is_back, self._group = True, None
            if self._modes is not None:
                with suppress(termios.error):  # It is gone.
                    termios.tcsetattr(_INPUT, termios.TCSADRAIN, self._modes)
            self._screen.show_held()

    @contextmanager
    def passing_signals_on(self) -> Iterator[None]:
        """Pass on what the system tells us because of what a person types."""
        if self._is_terminal:
            for number in (signal.SIGINT, signal.SIGTSTP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._usual[number] = signal.signal(number, self._act)
        try:
            yield
        finally:
            for each, handler in self._usual.items():
                signal.signal(each, handler)

    def _act(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._stop()
        elif self._group is None:
            self._usual[number](number, frame)
        else:
            self._signal(number)

    def _stop(self) -> None:
        """Stop, with the participant: a shell that is back must be the only one who reads what is typed."""
        modes = termios.tcgetattr(_INPUT)
        self._signal(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        if self._group is not None:
            termios.tcsetattr(_INPUT, termios.TCSADRAIN, modes)
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)


@contextmanager
def lent_terminal(screen: Screen) -> Iterator[LentTerminal]:
    """Have the terminal ready for a participant, and back in the end."""
    with ExitStack() as stack:
        terminal = LentTerminal(screen, _standard_files(stack))
        stack.callback(terminal.give_back)
        stack.enter_context(terminal.passing_signals_on())
        yield terminal


def _standard_files(stack: ExitStack) -> tuple[int, int, int]:
    """Return the terminal three times, if we have one; what we print may go elsewhere, and a debugger's prompt not."""
    try:
        found = os.open(os.ttyname(_INPUT), os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return 0, 1, 2
    stack.callback(os.close, found)
    return found, found, found


# What a person does in a run in which not all participants are started like the rest: start one, or debug it.


@contextmanager
def served_to_people(ready: ReadyFederation, screen: Screen) -> Iterator[None]:
    """Have a person told which participants to start, and have the terminal lent to the one that is debugged."""
    roles, setup = ready.roles, ready.setup
    if roles is not None and setup is not None and roles.awaited:
        ready.launching.opened = lambda address, awaited: _say_whom_to_start(awaited, setup, address, ready, screen)
    if roles is None or roles.debugged is None:
        yield
        return
    with lent_terminal(screen) as terminal:
        ready.launching.terminal = terminal
        yield


def _say_whom_to_start(
    awaited: Sequence[str], setup: Setup, address: Address, ready: ReadyFederation, screen: Screen
) -> None:
    where = str(address)
    if address.place in _ANYWHERE:
        where = str(replace(address, place=socket.gethostname()))
    settings = [word for setting in ready.options.settings for word in ("--set", setting)]
    for name in awaited:
        part = setup.parts[name]
        if part.entry is None and part.command is None:
            screen.conclude(f"waiting for {name}, which connects to {where}")
        else:
            command = ["worldline", "join", str(setup.file), name, "--address", where, *settings]
            screen.conclude(f"waiting for {name}; start it with: {shlex.join(command)}")


_ANYWHERE = ("0.0.0.0", "::")


def run_federation(
    ready: ReadyFederation, shelf: Shelf | None, *, quiet: bool, as_json: bool = False, page: LiveRun | None = None
) -> FederationOutcome:
    """Run a federation to its end, in processes or in this one."""
    for warning in () if ready.setup is None else ready.setup.warnings:
        warn(warning)
    screen = screen_for(ready, shelf, quiet=quiet)
    if ready.federation is None:
        ready.launching.hear, ready.launching.say = screen.say, screen.note
    screen.time_of, screen.remarks = ready.time_of, ready.remarks

    def run(observer: Observer | None, watch: Watch) -> FederationOutcome:
        say_drawn(ready, screen)
        if ready.federation is not None:
            return _run_in_one_process(ready, ready.federation, screen, observer, watch)
        return ready.run(observer, watch)

    return run_on_screen(
        run,
        ready,
        screen,
        recording_of(ready.recorder, shelf, None if as_json else screen.note),
        interrupt=ready.interrupt,
        notices=ready.notices if ready.waits_for_people else None,
        showing=lambda: served_to_people(ready, screen),
        page=page,
    )


def run_on_screen(
    run: Callable[[Observer | None, Watch], FederationOutcome],
    ready: ReadyFederation,
    screen: Screen,
    recording: RunRecording | None,
    *,
    interrupt: Callable[[Interrupted], None],
    notices: Callable[[], list[str]] | None,
    showing: Callable[[], AbstractContextManager[None]] = nullcontext,
    page: LiveRun | None = None,
) -> FederationOutcome:
    """Run a federation to its end, shown on a screen and on LCM, and say what has come of it.

    If people start its participants, `notices` says what they have to know, and time counts from when all are there.
    """
    properties = ready.properties()  # Before anything is started: one may not be there.
    is_debugged = ready.roles is not None and ready.roles.debugged is not None  # That may take long.
    asked = ready.options.federation.patience
    tell_holder = partial(screen.tell, is_wanted=asked is not None)
    name_holder = holder_notice(tell_holder, inf if is_debugged else asked or PATIENCE_S)
    began = time.monotonic()

    def watch(status: Status) -> None:
        nonlocal began
        if notices is not None and any(wait.who == THE_RUN for wait in status.waits):
            began = time.monotonic()  # Waiting for people is no part of the run.
        tell_notices()
        name_holder(status)
        screen.refresh(status)

    def tell_notices() -> None:
        for notice in () if notices is None else notices():
            screen.tell(notice)

    def run_observed(observer: Observer | None, page_watch: Watch | None) -> FederationOutcome:
        def watch_all(status: Status) -> None:
            watch(status)
            if page_watch is not None:
                page_watch(status)

        with shown_on_lcm(ready, observer, screen.note) as shown:
            outcome = _judged(properties, ready, shown, lambda told: run(told, watch_all))
        tell_notices()
        return outcome

    def hurry() -> None:
        """Wait for no process any more, nor for a reader of what is shown."""
        ready.hurry()
        screen.give_up()

    with screen:
        outcome = run_to_end(run_observed, recording, showing=showing, interrupt=interrupt, hurry=hurry, page=page)
        for each in properties if outcome.failure is None else ():
            screen.conclude(f"holds {each}")
        for line in conclusion(ready, outcome, time.monotonic() - began):
            screen.conclude(line)
        ready.verify(outcome)
    return outcome


def _judged(
    properties: tuple[Property, ...],
    ready: ReadyFederation,
    observer: Observer | None,
    run: Callable[[Observer | None], FederationOutcome],
) -> FederationOutcome:
    if not properties:
        return run(observer)
    from worldline.targets.judging import judged  # Here, since few runs are.

    return judged(properties, ready.plan().end, observer, run)


def say_drawn(ready: ReadyFederation, screen: Screen) -> None:
    """Say which faults the seed has drawn: before the run, since they may be why it fails."""
    for remark in ready.fault_remarks:
        screen.conclude(remark)


def screen_for(ready: ReadyFederation, shelf: Shelf | None, *, quiet: bool) -> Screen:
    """Return where the run is shown: not where it is recorded."""
    file = sys.stderr if shelf is not None and shelf.is_standard_output else sys.stdout
    return Screen(ready.name, list(ready.names), quiet=quiet, file=file)


def _run_in_one_process(
    ready: ReadyFederation, federation: Federation, screen: Screen, observer: Observer | None, watch: Watch
) -> FederationOutcome:
    output = ParticipantOutput(screen.say, screen.output)
    with output, ParticipantOutput(screen.say, sys.stderr, "stderr"), debugging(screen):
        try:
            return replace(ready, federation=output.of(federation)).run(observer, watch)
        except ModelError as error:
            cause = error.__cause__
            if type(cause).__name__ == "BdbQuit":
                raise Interrupted("the debugger was quit", participant=error.participant, at=error.at) from None
            if cause is not None and not isinstance(cause, WorldlineError):
                for line in _last_words(cause):
                    screen.say(error.participant or "", error.at, line)
            raise


def _last_words(error: BaseException) -> list[str]:
    """Return what Python would say of an error at the end of a process: its author sees all of it, as if it had one."""
    if not isinstance(error, SystemExit):
        return trace_of(error).split("\n")
    return [] if isinstance(error.code, int) else str(error.code).split("\n")


@contextmanager
def debugging(screen: Screen) -> Iterator[None]:
    """Let `breakpoint()` in a participant's program have the terminal."""
    usual, output = sys.breakpointhook, sys.__stdout__

    def stop(*arguments: object, **keywords: object) -> object:
        if os.environ.get("PYTHONBREAKPOINT") not in (None, "", "pdb.set_trace"):
            screen.make_way()
            return usual(*arguments, **keywords)
        from worldline.cli.debugging import Debugger  # Here, since it takes long to load.

        Debugger(screen.make_way, output).set_trace(sys._getframe(1))
        return None

    sys.breakpointhook = stop
    try:
        yield
    finally:
        sys.breakpointhook = usual
