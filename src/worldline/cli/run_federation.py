"""Runs a federation, in processes or in this one: its participants are heard, it is shown, and it is recorded."""

from __future__ import annotations

import contextlib
import io
import os
import pdb
import shlex
import signal
import socket
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from math import inf
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from worldline.cli.console import warn
from worldline.cli.holder_notice import PATIENCE_S, HolderNotice
from worldline.cli.interruption import Interruption, interrupted_by
from worldline.cli.public_lcm import shown_on_lcm
from worldline.cli.recorded import NotRecorded, losses_in_words, recording_of
from worldline.cli.screen import Screen
from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import Federation
from worldline.history.observer import Observer
from worldline.history.outcome import THE_RUN, Status, Watch
from worldline.lock.arbiter import DROPPED_BY_BUFFER
from worldline.model import Interrupted, ModelError, WorldlineError
from worldline.model.blame import trace_of
from worldline.model.text import LineSplitter, counted
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.federation.address import Address
    from worldline.launch.file.setup import Setup
    from worldline.recording import RunRecording, Shelf


# Tells apart what participants print that run in one process, each with context variables of its own.

Say = Callable[[str, int, str], None]
"""Told the name of a participant, its time, and a line that it has printed."""

_SPEAKER: ContextVar[tuple[Participant, LineSplitter] | None] = ContextVar("speaker", default=None)


class ParticipantOutput(io.RawIOBase):
    """What is under standard output meanwhile: a participant is heard by `say`, with its name and time.

    Standard output itself is an ordinary text file, with all that belongs to one. What bypasses Python, and what
    threads print that a program has started, goes to where it would have gone.
    """

    def __init__(self, say: Say, aside: io.TextIOBase) -> None:
        self._say = say
        self._aside = aside
        self._usual: TextIO = sys.stdout
        self.name = "<stdout>"

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
            lines = LineSplitter()
            speaking = _SPEAKER.set((participant, lines))
            try:
                return run(participant)
            finally:
                _SPEAKER.reset(speaking)
                self._hear(participant, lines.finish())

        return speak

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        speaking = _SPEAKER.get()
        if speaking is None:
            self._aside.write(taken.decode("utf-8", "replace"))
        else:
            participant, lines = speaking
            self._hear(participant, lines.feed(taken))
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
        self._usual = sys.stdout
        # With nothing kept back between the two: what is printed has to be told by whom.
        sys.stdout = io.TextIOWrapper(self, encoding="utf-8", newline="\n", write_through=True)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._usual


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
    """Have the terminal ready for somebody, and back in the end."""
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


# What a person has to do with a run in which somebody isn't started like the rest: start it, or debug it.


@contextmanager
def unusually_run(ready: ReadyFederation, screen: Screen) -> Iterator[ReadyFederation]:
    """Have a person told whom to start, and have the terminal lent to whom it is for."""
    unusual, setup = ready.unusual, ready.setup
    if unusual is None or setup is None:
        yield ready
        return
    if unusual.awaited:
        ready = replace(
            ready, opened=lambda address, awaited: _say_whom_to_start(awaited, setup, address, ready, screen)
        )
    if unusual.debugged is None:
        yield ready
        return
    from worldline.cli.run_federation import lent_terminal

    with lent_terminal(screen) as terminal:
        yield replace(ready, terminal=terminal)


def _say_whom_to_start(
    awaited: Sequence[str], setup: Setup, address: Address, ready: ReadyFederation, screen: Screen
) -> None:
    where = str(address)
    if address.place in _ANYWHERE:
        where = str(replace(address, place=socket.gethostname()))
    settings = [word for setting in ready.settings for word in ("--set", setting)]
    for name in awaited:
        part = setup.parts[name]
        if part.entry is None and part.command is None:
            screen.conclude(f"waiting for {name}, which connects to {where}")
        else:
            command = ["worldline", "join", str(setup.file), name, "--address", where, *settings]
            screen.conclude(f"waiting for {name}; start it with: {shlex.join(command)}")


_ANYWHERE = ("0.0.0.0", "::")


# The debugger for participants that run in this process: `breakpoint()` leads here.
#
# It talks with the user, so it needs the terminal for itself as long as it does, and standard output as it is.


class Debugger(pdb.Pdb):
    """Python's own, which has `make_way` called before it says anything."""

    def __init__(self, make_way: Callable[[], None], output: Any) -> None:
        super().__init__(nosigint=True)
        self._make_way = make_way
        self._output = output
        self.stdout = output

    def interaction(self, frame: FrameType | None, *what: Any) -> None:
        self._make_way()
        usual, sys.stdout = sys.stdout, self._output
        try:
            super().interaction(frame, *what)
        finally:
            sys.stdout = usual

    def do_EOF(self, arg: str) -> bool | None:  # noqa: N802 - Python's name.
        self.message("there is no input to take commands from, so the debugger quits (run it in a terminal)")
        return super().do_EOF(arg)


def run_federation(
    ready: ReadyFederation,
    shelf: Shelf | None,
    screen: Screen,
    *,
    as_json: bool = False,
    patience_s: float = PATIENCE_S,
) -> FederationOutcome:
    """Run a federation to its end, with a recording."""
    is_debugged = ready.unusual is not None and ready.unusual.debugged is not None  # That may take long.
    watch = watch_on(screen, inf if is_debugged else patience_s)
    began = time.monotonic()
    ready = replace(ready, hear=screen.say, say=screen.note)
    say = None if as_json else screen.note

    def look(status: Status) -> None:
        nonlocal began
        if ready.waits_for_people:
            if any(wait.who == THE_RUN for wait in status.waits):
                began = time.monotonic()  # Waiting for people is no part of the run.
            say_notices()
        watch(status)

    def say_notices() -> None:
        for notice in ready.notices():
            screen.tell(notice)

    with screen, Interruption() as interruption, unusually_run(ready, screen) as ready:
        screen.time_of, screen.remarks = ready.time_of, ready.remarks
        say_drawn(ready, screen)
        with (
            recording_of(ready, shelf, say) as recording,
            shown_on_lcm(ready, recording.observer, ready.lcm, ready.lcm_serve, screen.note) as observer,
        ):
            interruption.again = partial(hurry, screen, recording, ready)
            with interrupted_by(interruption, ready.interrupt):
                if ready.federation is not None:
                    outcome = _in_one_process(ready, ready.federation, screen, observer, watch)
                else:
                    outcome = ready.run(observer, look)
                    if ready.waits_for_people:
                        say_notices()
            recording.conclude(outcome)
        conclude(ready, screen, outcome, time.monotonic() - began)
        ready.told(outcome)
    return outcome


def watch_on(screen: Screen, patience_s: float) -> Watch:
    """Return what shows the status of a run, and names whoever holds it for long."""
    notice = HolderNotice(screen.tell, patience_s)

    def watch(status: Status) -> None:
        notice(status)
        screen.refresh(status)

    return watch


def warn_of(ready: ReadyFederation) -> None:
    """Tell of what can be run as its file has it, and was hardly meant so."""
    for warning in () if ready.setup is None else ready.setup.warnings:
        warn(warning)


def say_drawn(ready: ReadyFederation, screen: Screen) -> None:
    """Say which faults the seed has drawn: before the run, since they may be why it fails."""
    for remark in ready.fault_remarks:
        screen.conclude(remark)


def hurry(screen: Screen, recording: RunRecording | NotRecorded, ready: ReadyFederation) -> None:
    """Wait for nobody any more: not for processes, nor for whoever reads what is shown or recorded."""
    ready.hurry()
    screen.give_up()
    recording.give_up()


def screen_for(ready: ReadyFederation, shelf: Shelf | None, *, quiet: bool) -> Screen:
    """Return where the run is shown: not where it is recorded."""
    file = sys.stderr if shelf is not None and shelf.is_standard_output else sys.stdout
    return Screen(ready.name, list(ready.names), quiet=quiet, file=file)


def _in_one_process(
    ready: ReadyFederation, federation: Federation, screen: Screen, observer: Observer | None, watch: Watch
) -> FederationOutcome:
    output = ParticipantOutput(screen.say, screen.output)
    with output, debugging(screen):
        try:
            return replace(ready, federation=output.of(federation)).run(observer, watch)
        except ModelError as error:
            cause = error.__cause__
            if type(cause).__name__ == "BdbQuit":
                raise Interrupted("the debugger was quit", participant=error.participant, at=error.at) from None
            if cause is not None and not isinstance(cause, WorldlineError):
                # Its author sees all of it, as if it had a process of its own.
                for line in trace_of(cause).split("\n"):
                    screen.say(error.participant or "", error.at, line)
            raise


@contextlib.contextmanager
def debugging(screen: Screen) -> Iterator[None]:
    """Let `breakpoint()` in a participant's program have the terminal."""
    usual, output = sys.breakpointhook, sys.__stdout__

    def stop(*arguments: object, **keywords: object) -> object:
        if os.environ.get("PYTHONBREAKPOINT") not in (None, "", "pdb.set_trace"):
            screen.make_way()
            return usual(*arguments, **keywords)
        from worldline.cli.run_federation import Debugger  # Here, since it takes long to load.

        Debugger(screen.make_way, output).set_trace(sys._getframe(1))
        return None

    sys.breakpointhook = stop
    try:
        yield
    finally:
        sys.breakpointhook = usual


def conclude(ready: ReadyFederation, screen: Screen, outcome: FederationOutcome, elapsed_s: float) -> None:
    """Say what came of it."""
    screen.conclude(
        f"{counted(len(outcome.times), 'participant')}, {ready.extent(outcome)} simulated in {elapsed_s:.2f} s, "
        f"{losses_in_words(outcome.dropped, DROPPED_BY_BUFFER)}"
    )
    for remark in outcome.remarks():
        screen.conclude(remark)
    screen.conclude(f"digest {outcome.digest.hex()}")
