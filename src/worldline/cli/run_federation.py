"""Runs a federation, in processes or in this one: its participants are heard, and it is shown on a screen."""

from __future__ import annotations

import io
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TextIO

from worldline.cli.console import warn
from worldline.cli.options import PATIENCE_S
from worldline.cli.runner import conclusion, recording_of, run_to_end
from worldline.cli.screen import Screen, holder_notice
from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import Federation
from worldline.history.observer import Observer
from worldline.history.outcome import THE_RUN, Status, Watch
from worldline.model import Interrupted, ModelError, WorldlineError
from worldline.model.blame import trace_of
from worldline.model.text import LineSplitter
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.federation.address import Address
    from worldline.launch.file.setup import Setup
    from worldline.recording import RunRecording, Shelf
    from worldline.search.properties import Property
    from worldline.watch.live import LiveRun


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
    from worldline.cli.debugging import lent_terminal

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
                # Its author sees all of it, as if it had a process of its own.
                for line in trace_of(cause).split("\n"):
                    screen.say(error.participant or "", error.at, line)
            raise


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
