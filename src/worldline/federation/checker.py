"""The checker: does a federation give the same history whatever the order in which its frames reach the arbiter?

It runs the federation in one process under many schedules and compares what every participant received and sent.
Small federations are tried under *every* schedule; large ones under seeded samples. A schedule has a short name, so a
run that differs can be repeated.

Differences come from programs that look at something outside of their participant (a shared variable, the clock,
global randomness), or from a bug in Worldline. Either way the first divergent entry says where to look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from worldline.federation.inprocess import ArbiterFactory, InOrder, Outcome, Schedule, run
from worldline.federation.program import Federation
from worldline.lock import Arbiter, Received, Sent
from worldline.model import NonDeterminism, Stream, UsageError, format_time

SCHEDULES_MAX = 1_000


class Chosen:
    """A schedule given by its choices; past their end it takes the first. Every operation is told at once.

    It notes how many could have gone on at every point, from which the next schedule of an enumeration follows.
    """

    def __init__(self, choices: tuple[int, ...] = ()) -> None:
        self._choices = choices
        self.taken: list[tuple[int, int]] = []  # (choice, out of how many)

    def choose(self, names: list[str]) -> int:
        place = len(self.taken)
        choice = self._choices[place] if place < len(self._choices) else 0
        if choice >= len(names):
            raise UsageError(
                f"the schedule takes number {choice} of {len(names)} at its step {place}",
                advice="was it made for this federation?",
            )
        self.taken.append((choice, len(names)))
        return choice

    def flush_after_operation(self) -> bool:
        return True

    def __str__(self) -> str:
        return "choices:" + ".".join(str(choice) for choice, _ in self.taken)


class Sampled:
    """A schedule drawn from a seed: who goes on, and which operations are told at once."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._draws = Stream(number, "schedule")

    def choose(self, names: list[str]) -> int:
        return self._draws.randrange(len(names))

    def flush_after_operation(self) -> bool:
        return self._draws.random() < 0.5

    def __str__(self) -> str:
        return f"sample:{self._number}"


def parse_schedule(text: str) -> Schedule:
    """Read the name of a schedule: ``in-order``, ``sample:17`` or ``choices:0.2.1``."""
    kind, _, rest = text.partition(":")
    if kind == "in-order" and not rest:
        return InOrder()
    if kind == "sample" and rest.isdecimal():
        return Sampled(int(rest))
    if kind == "choices" and all(part.isdecimal() for part in rest.split(".") if rest):
        return Chosen(tuple(int(part) for part in rest.split(".") if rest))
    raise UsageError(f"{text!r} isn't a schedule", advice="write in-order, sample:17 or choices:0.2.1")


@dataclass(frozen=True)
class Divergence:
    """The earliest point at which a run differs from the one in order: what was there, and what is."""

    schedule: str
    participant: str
    place: int
    expected: Sent | Received | None
    found: Sent | Received | None

    def __str__(self) -> str:
        return (
            f"{self.participant}, entry {self.place} of its journal:\n"
            f"  in order:       {_describe(self.expected)}\n"
            f"  {self.schedule}: {_describe(self.found)}"
        )


@dataclass(frozen=True)
class Verdict:
    """What the checker found: how many schedules it tried, whether these were all, and the first difference, if any."""

    digest: bytes
    schedules: int
    complete: bool
    divergence: Divergence | None = None

    def demand_same(self) -> None:
        """Raise if a schedule made a difference."""
        if self.divergence is not None:
            name, at = self.divergence.participant, _time(self.divergence.expected or self.divergence.found)
            raise NonDeterminism(f"the schedule shows in the history: {self.divergence}", participant=name, at=at)


def check(
    federation: Federation,
    *,
    schedules: int = SCHEDULES_MAX,
    first_sample: int = 0,
    arbiter: ArbiterFactory = Arbiter,
) -> Verdict:
    """Try every schedule if there are at most `schedules`, otherwise half systematically and half by seeded samples."""
    expected = run(federation, arbiter=arbiter, keep_journals=True)
    tried = 0
    upcoming: Chosen | None = Chosen()
    while upcoming is not None and tried < (schedules + 1) // 2:
        upcoming, divergence = _try(federation, upcoming, expected, arbiter)
        tried += 1
        if divergence is not None:
            return Verdict(expected.digest, tried, complete=False, divergence=divergence)
    # The systematic half permutes the end of the run first; samples reach all of it.
    for sample in _samples(first_sample, schedules - tried) if upcoming is not None else ():
        tried += 1
        if divergence := compare(federation, sample, expected, arbiter):
            return Verdict(expected.digest, tried, complete=False, divergence=divergence)
    return Verdict(expected.digest, tried, complete=upcoming is None)


def check_every_schedule(
    federation: Federation, *, schedules_max: int = 100_000, arbiter: ArbiterFactory = Arbiter
) -> Verdict:
    """Try every schedule there is; refuse if there are more than `schedules_max`."""
    expected = run(federation, arbiter=arbiter, keep_journals=True)
    tried = 0
    upcoming: Chosen | None = Chosen()
    while upcoming is not None:
        if tried == schedules_max:
            raise UsageError(
                f"there are more than {schedules_max} schedules", advice="use check(), which takes samples"
            )
        upcoming, divergence = _try(federation, upcoming, expected, arbiter)
        tried += 1
        if divergence is not None:
            return Verdict(expected.digest, tried, complete=False, divergence=divergence)
    return Verdict(expected.digest, tried, complete=True)


def compare(
    federation: Federation, schedule: Schedule, expected: Outcome | None = None, arbiter: ArbiterFactory = Arbiter
) -> Divergence | None:
    """Run under one schedule and return the first difference from the run in order."""
    if expected is None:
        expected = run(federation, arbiter=arbiter, keep_journals=True)
    found = run(federation, schedule=schedule, arbiter=arbiter, keep_journals=True)
    if found.digest == expected.digest and found.journals == expected.journals and found.dropped == expected.dropped:
        return None
    return _first_difference(str(schedule), expected, found)


def _try(
    federation: Federation, schedule: Chosen, expected: Outcome, arbiter: ArbiterFactory
) -> tuple[Chosen | None, Divergence | None]:
    divergence = compare(federation, schedule, expected, arbiter)
    return _following(schedule), divergence


def _following(schedule: Chosen) -> Chosen | None:
    """Return the next schedule in depth-first order: the last choice that has an alternative takes it."""
    taken = list(schedule.taken)
    while taken:
        choice, of = taken.pop()
        if choice + 1 < of:
            return Chosen((*(earlier for earlier, _ in taken), choice + 1))
    return None


def _samples(first: int, count: int) -> Iterator[Sampled]:
    return (Sampled(number) for number in range(first, first + count))


def _first_difference(schedule: str, expected: Outcome, found: Outcome) -> Divergence:
    differences = []
    for name in sorted({**expected.journals, **found.journals}):
        before, after = expected.journals.get(name, []), found.journals.get(name, [])
        for place in range(max(len(before), len(after)) + 1):
            old = before[place] if place < len(before) else None
            new = after[place] if place < len(after) else None
            if old != new:
                differences.append((min(_time(old), _time(new)), name, place, old, new))
                break
    if not differences:  # The messages are the same, so it is a time of leaving or a count of losses.
        name = next(
            (n for n in sorted(expected.times) if expected.times[n] != found.times.get(n)), sorted(expected.times)[0]
        )
        return Divergence(schedule, name, len(expected.journals[name]), None, None)
    _, name, place, old, new = min(differences, key=lambda difference: difference[:3])
    return Divergence(schedule, name, place, old, new)


def _time(entry: Sent | Received | None) -> int:
    if entry is None:
        return 2**63
    return entry.at if isinstance(entry, Sent) else entry.now


def _describe(entry: Sent | Received | None) -> str:
    if entry is None:
        return "nothing more"
    if isinstance(entry, Sent):
        return f"at {format_time(entry.at)} it sends {entry.payload[:40]!r} on {entry.topic}"
    message = entry.message
    return (
        f"at {format_time(entry.now)} it receives {message.payload[:40]!r} on {message.topic} from {message.sender}, "
        f"sent {format_time(message.sent)}, arrived {format_time(message.arrival)}"
    )
