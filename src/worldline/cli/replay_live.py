"""Runs members of a recorded run again, and compares what they do with what they did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worldline.federation.participant.solo import reach_in, replay_alone, rules_alone
from worldline.history.replay.following import Following, RecordedParts
from worldline.history.replay.retelling import RetoldDifference
from worldline.lock.feeding import Feeding
from worldline.model.errors import NonDeterminism, UsageError
from worldline.model.lifecycle import lifecycle_of
from worldline.model.text import counted
from worldline.model.time import FOREVER, format_time
from worldline.recording import Recording
from worldline.recording.reader import intact, recorded_account, shortcoming
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


@dataclass(kw_only=True)
class LiveOptions:
    """How members are run again.

    The first difference stops them, unless they `go_on`. With a `debugger`, it has them. `pace` is called with their
    times, and `logged` with their names, times and lines. `warn` is told what can't be equal, `remark` what changed.
    """

    go_on: bool
    debugger: ReplayDebugger | None
    pace: Callable[[int], None] | None
    logged: Callable[[str, int, str], None]
    warn: Callable[[str], None]
    remark: Callable[[str], None]


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
    recording: Recording, names: Sequence[str], target: str | None, options: LiveOptions, settings: Sequence[str] = ()
) -> LiveReport:
    """Run these members again, or all; what can't be equal is said before. `settings` are those that choose code."""
    intact(recording)
    members = members_of(recording, names)
    ready = ready_as_recorded(recording, target, settings, names)
    _refuse(ready, recording, members, options)
    report = LiveReport(warnings=doubts(recording.header, ready))
    if missing := shortcoming(recording):
        report.warnings.insert(0, missing)
    changed = plan_changes(recording.header.plan(), ready.plan())
    if changed and not isinstance(ready, ReadyFederation):
        report.warnings.append(f"the plan isn't the recorded one: {'; '.join(changed)}")
    for text in report.warnings:
        options.warn(text)
    if files := code_changes(recording.header, ready):
        options.remark(f"changed since it was recorded: {', '.join(files)}")
    if isinstance(ready, ReadyFederation):
        _run_alone(recording, ready, members, options, report)
    else:
        _run_whole(recording, ready, members, options, report)
    report.differences.sort(key=lambda each: (each.first.at, each.member))
    return report


def _refuse(ready: Ready, recording: Recording, members: list[str], options: LiveOptions) -> None:
    """Refuse for a whole model what only a participant can do, and a model that is none of what was recorded."""
    if isinstance(ready, ReadyFederation):
        return
    for option, is_given in (("--speed", options.pace is not None), ("--go-on", options.go_on)):
        if is_given:
            raise UsageError(f"{option} is for participants, and {ready.name} is of the kind {ready.kind}")
    there = ready.plan().roster
    if there and not set(there) & set(members):
        raise UsageError(
            f"{ready.target} has none of the members of {recording.path}",
            advice="name what was recorded: --target TARGET",
        )


def _run_alone(
    recording: Recording, ready: ReadyFederation, members: list[str], options: LiveOptions, report: LiveReport
) -> None:
    """Run participants, each alone, fed from the recording."""
    programs = {name: program_of(ready, name) for name in members}  # What isn't there is refused before any is run.
    joins = joins_of(ready)
    plan = recording.header.plan()

    def differs(difference: RetoldDifference) -> bool:
        if options.debugger is not None:
            options.debugger.stop_at(difference)
        return not options.go_on

    for name, program in programs.items():

        def feed(take: Callable[[RetoldDifference], None], name: str = name) -> Feeding:
            return Feeding(
                name,
                RecordedParts(recorded_account(recording), take, [name]),
                plan,
                logged=lambda at, text: options.logged(name, at, text),
                paced=options.pace,
                reach=reach_in(ready.plan(), joins, name),
                rules_alone=rules_alone(joins, name),
            )

        called: dict[str, Any] = {} if options.debugger is None else {"call": options.debugger.call}
        life = lifecycle_of(name, plan.network, plan.faults)
        done = replay_alone(program, feed, differs=differs, payload_max=ready.payload_max, life=life, **called)
        report.differences += done.differences
        told = MemberReport(name, done.now, done.compared, len(done.differences), done.is_whole, failure=done.failure)
        report.members.append(told)


def _run_whole(
    recording: Recording, ready: Ready, members: list[str], options: LiveOptions, report: LiveReport
) -> None:
    """Run a model as a whole, and follow it. Whoever differs first ends it: others are given something else then."""

    def differs(difference: RetoldDifference) -> None:
        if options.debugger is not None:
            options.debugger.stop_at(difference)
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
