"""`worldline replay`: play a recording, or run members of it again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from msgspec import Struct

from worldline.cli.console import PlainConsole, output_free_for, print_json, remark, tell_lost, warn
from worldline.cli.options import takes
from worldline.cli.runner import interruptible
from worldline.federation.participant.solo import reach_in, replay_alone, rules_alone
from worldline.history.account import NOTES, named
from worldline.history.fields import payload_text
from worldline.history.observer import UNDER_WAY, Observer
from worldline.history.replay import Following, RecordedParts, RetoldDifference
from worldline.history.telling import SeveralObservers
from worldline.lock.feeding import Feeding
from worldline.model.errors import NonDeterminism, UsageError, WorldlineError, shown
from worldline.model.lifecycle import lifecycle_of
from worldline.model.path import Paths
from worldline.model.plan import network_of
from worldline.model.reading import as_time
from worldline.model.text import counted, printable
from worldline.model.time import FOREVER, SECOND, format_time
from worldline.recording import Recording
from worldline.recording.reader import intact, members_told, narrate, recorded_account, shortcoming
from worldline.targets import Ready
from worldline.targets.federation import ReadyFederation
from worldline.targets.recorded import (
    code_changes,
    doubts,
    joins_of,
    members_of,
    plan_changes,
    program_of,
    ready_as_recorded,
)

if TYPE_CHECKING:
    from worldline.cli.debugging import ReplayDebugger
    from worldline.metasim.public import PublicLcm

# Plays a recording: a line for every message when it arrives, at the speed at which it is wanted.

_TIME_WIDTH = 14
_SLEEP_MAX_S = 1e6  # More than Python can sleep is asked for by very low speeds.


Pace = Callable[[int], None]
"""Waits until a simulated time may be shown."""


def pace_of(speed: float | None, start: int = 0, end: int = FOREVER) -> Pace:
    """Let simulated time pass no faster than so many seconds in a second; None: as fast as it can be told."""
    began = time.monotonic()

    def wait(moment: int) -> None:
        if speed is None or not start <= moment < end:
            return
        left = began + (moment - start) / SECOND / speed - time.monotonic()
        if left > 0:
            time.sleep(min(left, _SLEEP_MAX_S))

    return wait


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


_Place = tuple[int, bool, str, int, str, int]
"""What lines are sorted by: time, whether a member does it (or it arrives), who, number, receiver, copy."""


_NO_PARTICIPANT = "no participant"

Missed = Callable[[str, str, int, int], list[tuple[str, str]]]
"""Says of a message that reached no participant, by sender, topic, time and size, whom it would have, and why not."""


def missed_in(recording: Recording) -> Missed:
    """Return what tells messages that the end of the run overtook from those that had no receiver.

    A recording doesn't say whose they would have been: who had earlier ones on the topic, and stayed until the end.
    """
    listeners = recording.listeners()
    outcome = recording.outcome
    left = {} if outcome is None else {name: each.left for name, each in outcome.participants.items()}
    end = max((at for at in left.values() if at is not None), default=FOREVER)
    plan = recording.header.plan()
    paths = Paths(network_of(plan), plan.seed)

    def missed(sender: str, topic: str, at: int, size: int) -> list[tuple[str, str]]:
        others = [name for name in listeners.get(topic, ()) if name != sender]
        late = [name for name in others if left.get(name) in (None, end)]
        if late or others:
            return [(name, f"{UNDER_WAY}: ") for name in late] or [(_NO_PARTICIPANT, "")]
        is_late = paths.lifetime(topic, sender, 0).expiry(at, size) >= end
        return [(f"{_NO_PARTICIPANT} before the end" if is_late else _NO_PARTICIPANT, "")]

    return missed


class MessageLines(Observer):
    """Prints a line for what arrives, gets lost, reaches no member or is noted, in the order of their times.

    At the same time, what arrives comes before what members do then, which it may have caused.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        topics: Collection[str] = (),
        start: int = 0,
        end: int = FOREVER,
        missed: Missed = lambda *_: [(_NO_PARTICIPANT, "")],
    ) -> None:
        self._say = say
        self._missed = missed
        self._topics = topics  # These alone, if there are any.
        self._span = start, end
        self._messages: dict[tuple[str, int], tuple[str, bytes]] = {}
        self._expiries: list[tuple[int, str, int]] = []  # A heap: when each has reached all its receivers.
        self._ahead: list[tuple[_Place, str, bytes]] = []  # A heap.
        self._unheard: dict[tuple[str, int], _Place] = {}
        self._done = 0  # What members have done, so far.

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._messages[who, number] = topic, payload
        heappush(self._expiries, (until, who, number))
        self._unheard[who, number] = self._place(who, at)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self._unheard.pop((sender, number), None)
        place = at, False, sender, number, receiver, copy
        self._expect(place, sender, number, receiver, "" if lost is None else f"lost, {lost}: ")

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if not self._topics or topic in self._topics:
            heappush(self._ahead, (self._place(who, at), f"{named(who)} {NOTES[topic]}", payload or b""))

    def passed(self, time: int) -> None:
        for (sender, number), place in self._unheard.items():
            topic, payload = self._messages[sender, number]
            for receiver, why in self._missed(sender, topic, place[0], len(payload)):
                self._expect(place, sender, number, receiver, why)
        self._unheard.clear()
        while self._ahead and self._ahead[0][0][0] < time:
            place, what, payload = heappop(self._ahead)
            self._print(place[0], what, payload)
        while self._expiries and self._expiries[0][0] < time:
            _, sender, number = heappop(self._expiries)
            del self._messages[sender, number]

    def _place(self, who: str, at: int) -> _Place:
        """Return where the next thing belongs that a member does."""
        self._done += 1
        return at, True, who, self._done, "", 0

    def _expect(self, place: _Place, sender: str, number: int, receiver: str, lost: str) -> None:
        topic, payload = self._messages[sender, number]
        if not self._topics or topic in self._topics:
            what = f"{named(sender)} → {printable(receiver)}  {lost}{printable(topic)}"
            heappush(self._ahead, (place, what, payload))

    def _print(self, at: int, what: str, payload: bytes) -> None:
        if self._span[0] <= at < self._span[1]:
            self._say(f"{format_time(at):>{_TIME_WIDTH}}  {what}  {payload_text(payload)}")


def show(
    recording: Recording,
    speed: float | None,
    played: PlayOptions,
    *,
    say: Callable[[str], None],
    quiet: bool,
) -> None:
    """Play a recording, and show it on LCM if that is wanted."""
    start, end = played.span()
    say_lines = (lambda _: None) if quiet else say
    lines = MessageLines(say_lines, frozenset(played.topics), start, end, missed_in(recording))
    public: PublicLcm | None = None
    with ExitStack() as stack:
        observer: Observer = lines
        if played.lcm or played.lcm_serve is not None:
            from worldline.metasim.public import PublicLcm  # Here, since few want one.

            public = PublicLcm(played.lcm, serve=played.lcm_serve)
            public.check(
                dict.fromkeys(members_told(recording), ()), {}
            )  # Before a log is written in the place of another.
            stack.enter_context(public)
            if public.url is not None:
                say(f"public LCM on {public.url}")
            observer = SeveralObservers((lines, public))
        narrate(recording, observer, pace_of(speed, start, end))
    if public is not None:
        tell_lost(public)


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

    def span(self) -> tuple[int, int]:
        """Return the time from which on it is shown, and until before which."""
        return (
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
    --until-differs  Run all members again, or those of --only, and show only what differs.
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
        _run_again(recording, again, None if rate is None else pace_of(rate), as_json=as_json, quiet=quiet)
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
    played.span()  # Refuses what isn't a time.
    if missing := shortcoming(recording):
        warn(missing)
    if played.topics:
        next(recording.arrivals(topics=played.topics), None)  # Refuses a topic that isn't there.
    with interruptible():
        show(recording, rate, played, say=PlainConsole().print, quiet=quiet)


def _refuse(given: dict[str, object], what_for: str, advice: str) -> None:
    for option, value in given.items():
        if value:
            raise UsageError(f"{option} is {what_for}", advice=advice)


def _run_again(recording: Recording, again: AgainOptions, pace: Pace | None, *, as_json: bool, quiet: bool) -> None:
    debugger = None
    if again.debug:
        if as_json:
            raise UsageError("--pdb and --json both need standard output")
        from worldline.cli.debugging import ReplayDebugger  # Here, since it takes long to load.

        debugger = ReplayDebugger(PlainConsole().print)
    is_mute = (quiet or again.until_differs) and not again.debug
    with output_free_for(None, wanted=as_json), _muted() if is_mute else nullcontext(), interruptible():
        report = run_again(recording, again, pace, debugger)
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


# Runs members of a recorded run again, and compares what they do with what they did.


@dataclass
class MemberReport:
    """How far a member came that was run again, and what of it could be compared.

    `other` differed first and ended it for all. `failure` is what it raised where the recording ends.
    """

    name: str
    until: int
    compared: int
    differences: int
    is_whole: bool
    other: str = ""
    failure: str = ""

    def __str__(self) -> str:
        messages = counted(self.compared, "message")
        if self.differences:
            more = f", then {counted(self.differences, 'difference')}" if self.differences > 1 else ", then it differs"
            return f"{self.name}: compared up to {format_time(self.until)}, {messages}{more}"
        if self.other:
            return f"{self.name}: the same until {self.other} differs at {format_time(self.until)}, {messages}"
        end = "its end" if self.is_whole else "where the recording ends"
        fails = f", and raises {self.failure}" if self.failure else ""
        return f"{self.name}: the same up to {end} at {format_time(self.until)}, {messages}{fails}"


@dataclass
class LiveReport:
    """What came of running members again, the earliest difference first."""

    members: list[MemberReport] = field(default_factory=list)
    summary: str = ""
    differences: list[RetoldDifference] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "same": not self.differences,
            "members": [vars(each) for each in self.members],
            "differences": [each.as_json() for each in self.differences],
            "warnings": self.warnings,
        }


def run_again(
    recording: Recording, again: AgainOptions, pace: Pace | None, debugger: ReplayDebugger | None
) -> LiveReport:
    """Run members again, and compare what they do with what they did; what can't be equal is said before."""
    intact(recording)
    members = members_of(recording, again.only)
    ready = ready_as_recorded(recording, again.target, again.settings, again.only)
    _refuse_for_models(ready, recording, members, {"--speed": pace is not None, "--go-on": again.go_on})
    report = LiveReport(warnings=doubts(recording.header, ready))
    if missing := shortcoming(recording):
        report.warnings.insert(0, missing)
    changed = plan_changes(recording.header.plan(), ready.plan())
    if changed and not isinstance(ready, ReadyFederation):
        report.warnings.append(f"the plan isn't the recorded one: {'; '.join(changed)}")
    for text in report.warnings:
        warn(text)
    if files := code_changes(recording.header, ready):
        remark(f"changed since it was recorded: {', '.join(files)}")
    if isinstance(ready, ReadyFederation):
        _run_alone(recording, ready, members, report, again, pace, debugger)
    else:
        _run_whole(recording, ready, members, report, debugger)
    report.differences.sort(key=lambda each: (each.first.at, each.member))
    return report


def _refuse_for_models(ready: Ready, recording: Recording, members: list[str], given: dict[str, bool]) -> None:
    """Refuse for a whole model what only a participant can do, and a model that is none of what was recorded."""
    if isinstance(ready, ReadyFederation):
        return
    for option, is_given in given.items():
        if is_given:
            raise UsageError(f"{option} is for participants, and {ready.name} is of the kind {ready.kind}")
    there = ready.plan().roster
    if there and not set(there) & set(members):
        raise UsageError(
            f"{ready.target} has none of the members of {recording.path}",
            advice="name what was recorded: --target TARGET",
        )


def _run_alone(
    recording: Recording,
    ready: ReadyFederation,
    members: list[str],
    report: LiveReport,
    again: AgainOptions,
    pace: Pace | None,
    debugger: ReplayDebugger | None,
) -> None:
    """Run participants, each alone, fed from the recording."""
    programs = {name: program_of(ready, name) for name in members}  # What isn't there is refused before any is run.
    joins = joins_of(ready)
    plan = recording.header.plan()

    def differs(difference: RetoldDifference) -> bool:
        if debugger is not None:
            debugger.stop_at(difference)
        return not again.go_on

    for name, program in programs.items():

        def feed(take: Callable[[RetoldDifference], None], name: str = name) -> Feeding:
            return Feeding(
                name,
                RecordedParts(recorded_account(recording), take, [name]),
                plan,
                logged=lambda at, text: print(printable(f"{format_time(at)} {name}: {text}")),
                paced=pace,
                reach=reach_in(ready.plan(), joins, name),
                rules_alone=rules_alone(joins, name),
            )

        called: dict[str, Any] = {} if debugger is None else {"call": debugger.call}
        life = lifecycle_of(name, plan.network, plan.faults)
        done = replay_alone(program, feed, differs=differs, payload_max=ready.payload_max, life=life, **called)
        report.differences += done.differences
        told = MemberReport(name, done.now, done.compared, len(done.differences), done.is_whole, failure=done.failure)
        report.members.append(told)


def _failed_so(recording: Recording, error: WorldlineError) -> bool:
    """Whether this is what the recorded run has failed for."""
    then = recording.outcome
    now = (printable(error.problem), error.participant or "", error.at)
    return then is not None and (printable(then.cause), then.participant, then.at) == now


def _run_whole(
    recording: Recording, ready: Ready, members: list[str], report: LiveReport, debugger: ReplayDebugger | None
) -> None:
    """Run a model as a whole, and follow it. The first that differs ends it: others are given something else then."""

    def differs(difference: RetoldDifference) -> None:
        if debugger is not None:
            debugger.stop_at(difference)
        report.differences.append(difference)
        raise difference.error()

    parts = RecordedParts(recorded_account(recording), differs)
    following = Following(parts)
    try:
        outcome = ready.run(following)
        if outcome.failure is not None:
            raise outcome.failure
    except NonDeterminism:
        if not report.differences:
            raise
    except WorldlineError as error:
        if not _failed_so(recording, error):
            raise
        report.summary = f"then the run fails, as it did: {error}"
    for name in members:
        part = parts.of(name)
        if report.differences:  # The first one has ended it.
            difference = report.differences[0]
            is_own = difference.member == name
            other = "" if is_own else difference.member
            told = MemberReport(name, difference.first.at, part.sent, int(is_own), is_whole=False, other=other)
        else:
            ended = part.stay.ended if part.stay is not None and part.is_known else None
            known = [time for time in (ended, recording.header.end) if time is not None and time < FOREVER]
            until = known[0] if known and part.is_known else following.now
            told = MemberReport(name, until, part.sent, 0, is_whole=part.is_known)
        report.members.append(told)
    others = [each for each in report.differences if each.member not in members]
    if others:
        report.summary = f"{others[0].member} differs first: from there on, others aren't given what they were given"
