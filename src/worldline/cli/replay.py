"""`worldline replay`: play a recording, or run members of it again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from msgspec import Struct

from worldline.cli.console import PlainConsole, output_free_for, print_json, remark, warn
from worldline.cli.options import takes
from worldline.cli.runner import interruptible
from worldline.history.diff.steps import NOTES, named
from worldline.history.diff.values import payload_text
from worldline.history.observer import Observer
from worldline.history.telling import SeveralObservers
from worldline.model.errors import UsageError, shown
from worldline.model.reading import as_time
from worldline.model.text import printable
from worldline.model.time import FOREVER, SECOND, format_time
from worldline.recording import Recording
from worldline.recording.accounting import narrate, shortcoming

if TYPE_CHECKING:
    from worldline.cli.replay_live import LiveReport

# Plays a recording: a line for every message when it arrives, at the speed at which it is wanted.

_TIME_WIDTH = 14
_SLEEP_MAX_S = 1e6  # More than Python can sleep is asked for by very low speeds.


class Pace:
    """Lets simulated time pass no faster than so many seconds in a second; None: as fast as it can be told."""

    def __init__(self, speed: float | None, start: int = 0, end: int = FOREVER) -> None:
        self._speed = speed
        self._start = start
        self._end = end
        self._began = time.monotonic()

    def __call__(self, moment: int) -> None:
        if self._speed is None or not self._start <= moment < self._end:
            return
        due = self._began + (moment - self._start) / SECOND / self._speed
        left = due - time.monotonic()
        if left > 0:
            time.sleep(min(left, _SLEEP_MAX_S))


def speed_of(text: str) -> float | None:
    """Read a speed; None for the greatest."""
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise UsageError(f"{shown(text)} isn't a speed", advice="use 1 for real time, 0.1 or 20, or max")
    return speed


class ShownPart(NamedTuple):
    """Which part of a recording is shown: these topics, or all, from `start` until before `end`."""

    topics: Collection[str] = ()
    start: int = 0
    end: int = FOREVER


class _Place(NamedTuple):
    """What lines are sorted by."""

    at: int
    is_done: bool  # By a member; otherwise something arrives.
    who: str
    number: int
    receiver: str = ""
    copy: int = 0


class MessageLines(Observer):
    """Prints a line for whatever arrives, gets lost, reaches nobody or is noted, in the order of their times.

    At the same time, what arrives comes before what members do then, which it may have caused.
    """

    def __init__(self, part: ShownPart, say: Callable[[str], None]) -> None:
        self._part = part
        self._say = say
        self._messages: dict[tuple[str, int], tuple[str, bytes]] = {}
        self._expiries: list[tuple[int, str, int]] = []  # A heap: when each of them has reached everybody.
        self._ahead: list[tuple[_Place, str, bytes]] = []  # A heap.
        self._unheard: dict[tuple[str, int], _Place] = {}
        self._done = 0  # What members have done, so far.
        self.count = 0

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._messages[who, number] = topic, payload
        heappush(self._expiries, (until, who, number))
        self._unheard[who, number] = self._place(who, at)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self._unheard.pop((sender, number), None)
        place = _Place(at, False, sender, number, receiver, copy)
        self._expect(place, sender, number, receiver, "" if lost is None else f"lost, {lost}: ")

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if not self._part.topics or topic in self._part.topics:
            heappush(self._ahead, (self._place(who, at), f"{named(who)} {NOTES[topic]}", payload or b""))

    def passed(self, time: int) -> None:
        for (sender, number), place in self._unheard.items():
            self._expect(place, sender, number, "nobody", "")
        self._unheard.clear()
        while self._ahead and self._ahead[0][0].at < time:
            place, what, payload = heappop(self._ahead)
            self._print(place.at, what, payload)
        while self._expiries and self._expiries[0][0] < time:
            _, sender, number = heappop(self._expiries)
            del self._messages[sender, number]

    def _place(self, who: str, at: int) -> _Place:
        """Return where the next thing belongs that a member does."""
        self._done += 1
        return _Place(at, True, who, self._done)

    def _expect(self, place: _Place, sender: str, number: int, receiver: str, lost: str) -> None:
        topic, payload = self._messages[sender, number]
        if not self._part.topics or topic in self._part.topics:
            what = f"{named(sender)} → {printable(receiver)}  {lost}{printable(topic)}"
            heappush(self._ahead, (place, what, payload))

    def _print(self, at: int, what: str, payload: bytes) -> None:
        if self._part.start <= at < self._part.end:
            self.count += 1
            self._say(f"{format_time(at):>{_TIME_WIDTH}}  {what}  {payload_text(payload)}")


def show(
    recording: Recording,
    part: ShownPart,
    speed: float | None,
    played: PlayOptions,
    *,
    say: Callable[[str], None],
    quiet: bool,
) -> None:
    """Play a recording, and show it on LCM if that is wanted."""
    lines = MessageLines(part, (lambda _: None) if quiet else say)
    with ExitStack() as stack:
        observer: Observer = lines
        if played.lcm or played.lcm_serve is not None:
            from worldline.metasim.public import PublicLcm  # Here, since few want one.

            public = PublicLcm(played.lcm, serve=played.lcm_serve)
            stack.enter_context(public)
            if public.url is not None:
                say(f"public LCM on {public.url}")
            observer = SeveralObservers((lines, public))
        narrate(recording, observer, Pace(speed, part.start, part.end))


_DIFFERS = 1


class AgainOptions(Struct, frozen=True, kw_only=True):
    """Which members are run again, and how."""

    only: tuple[str, ...] = ()
    until_differs: bool = False
    target: str | None = None
    settings: tuple[str, ...] = ()
    debug: bool = False
    go_on: bool = False

    @property
    def is_wanted(self) -> bool:
        return bool(self.only) or self.until_differs


class PlayOptions(Struct, frozen=True, kw_only=True):
    """Which part of a recording is played, and where else it is shown."""

    topics: tuple[str, ...] = ()
    start: str | None = None
    until: str | None = None
    lcm: tuple[str, ...] = ()
    lcm_serve: str | None = None

    def part(self) -> ShownPart:
        return ShownPart(
            frozenset(self.topics),
            0 if self.start is None else as_time(self.start, "the start"),
            FOREVER if self.until is None else as_time(self.until, "the end"),
        )


@takes(
    """
    FILE  A recording.
    --speed RATE  Simulated seconds per real second, or max (default: 1, and max with --only or --until-differs).
    --lcm
    --lcm-serve
    as_json: --json  Print one JSON object, of what was compared.
    --quiet

    To run members again:
    --only NAME  Run this member's code, given what it was given, and compare what it does. May be repeated.
    --until-differs  Run everybody again, or those of --only, and show only what differs.
    --target TARGET  Where the code is, as for `worldline run` (default: the recording's own, here or next to it).
    settings: --set NAME=VALUE  A setting of the recorded run that chooses code: a recording alone doesn't. May be
        repeated.
    debug: --pdb  Stop in pdb: at the first line, and where it differs or fails.
    --go-on  Don't stop a participant where it first differs.

    To play it:
    topics: --topic NAME  Show this topic only. May be repeated.
    --start TIME  Show from here on.
    --until TIME  Show up to here (default: all).
    """
)
def replay(
    file: Path,
    *,
    speed: str | None = None,
    again: AgainOptions,
    played: PlayOptions,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Play a recording, or run members of it again on their own and compare what they do.

    With --only or --until-differs, the exit code is 0 if they do the same as in the recording, 1 if not.
    """
    recording = Recording(file)
    rate = (None if again.is_wanted else 1.0) if speed is None else speed_of(speed)
    if again.is_wanted:
        _refuse(
            {
                "--topic": played.topics,
                "--start": played.start,
                "--until": played.until,
                "--lcm": played.lcm,
                "--lcm-serve": played.lcm_serve,
            },
            "for playing a recording",
            "leave out --only and --until-differs",
        )
        _run_again(recording, again, None if rate is None else Pace(rate), as_json=as_json, quiet=quiet)
        return
    _refuse(
        {
            "--target": again.target,
            "--set": again.settings,
            "--pdb": again.debug,
            "--go-on": again.go_on,
            "--json": as_json,
        },
        "for running members again",
        "name them: --only NAME",
    )
    part = played.part()
    if missing := shortcoming(recording):
        warn(missing)
    if played.topics:
        next(recording.arrivals(topics=played.topics), None)  # Refuses a topic that isn't there.
    with interruptible():
        show(recording, part, rate, played, say=PlainConsole().print, quiet=quiet)


def _refuse(given: dict[str, object], what_for: str, advice: str) -> None:
    for option, value in given.items():
        if value:
            raise UsageError(f"{option} is {what_for}", advice=advice)


def _run_again(recording: Recording, again: AgainOptions, pace: Pace | None, *, as_json: bool, quiet: bool) -> None:
    from worldline.cli.replay_live import LiveOptions, run_again

    debugger = None
    if again.debug:
        if as_json:
            raise UsageError("--pdb and --json both need standard output")
        from worldline.cli.debugging import ReplayDebugger

        debugger = ReplayDebugger
    is_mute = (quiet or again.until_differs) and not again.debug
    with output_free_for(None, wanted=as_json), _muted() if is_mute else nullcontext(), interruptible():
        options = LiveOptions(
            go_on=again.go_on,
            debugger=None if debugger is None else debugger(PlainConsole().print),
            pace=pace,
            logged=lambda name, at, text: print(printable(f"{format_time(at)} {name}: {text}")),
            warn=warn,
            remark=remark,
        )
        report = run_again(recording, again.only, again.target, options, again.settings)
    if as_json:
        print_json(report.as_json())
    else:
        _say_report(report, is_brief=again.until_differs)
    if report.differences:
        raise typer.Exit(_DIFFERS)


def _say_report(report: LiveReport, *, is_brief: bool) -> None:
    console = PlainConsole()
    if not is_brief or not report.differences:
        for member in report.members:
            console.print(str(member))
    if report.differences:
        console.print("first difference:")
    for difference in report.differences[:1]:
        for line in difference.lines():
            console.print(f"  {line}")
    others = [each for each in report.differences[1:] if each.member != report.differences[0].member]
    for name in dict.fromkeys(each.member for each in others):
        first = next(each for each in others if each.member == name)
        console.print(f"{name} differs at {format_time(first.first.at)}: {first}")
    if report.summary:
        console.print(report.summary)


@contextmanager
def _muted() -> Iterator[None]:
    """Let members print into nothing."""
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing):
        yield
