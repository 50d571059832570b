"""The checker: does a federation give the same history whatever the order in which its frames reach the arbiter?

It runs the federation in one process under many schedules and compares what every participant received and sent.
Small federations are tried under *every* schedule; large ones under seeded samples. A schedule has a short name, so a
run that differs can be repeated.

Differences come from programs that look at something outside of their participant (a shared variable, the clock,
global randomness), or from a bug in Worldline. Either way the first cause of the difference, found as in any two
histories, says where to look.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from math import inf

from worldline.federation.inprocess.run import IN_ORDER, ArbiterFactory, Schedule, run
from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.program import Federation
from worldline.history.difference import Difference
from worldline.history.outcome import ALL_OTHERS, Status, Watch
from worldline.history.parting import explain, part
from worldline.history.replay import account_of
from worldline.lock import Arbiter
from worldline.model import NonDeterminism, Stream, Stuck, UsageError, WorldlineError
from worldline.model.draws.table import DrawsGiven
from worldline.model.time import format_time

SCHEDULES_MAX = 1_000

FederationLike = Federation | Callable[[], Federation]
"""A federation, or a function that makes one anew for every run: needed where programs keep state in objects."""


class BadSchedule(UsageError):  # noqa: N818 - named for what it is, like the other errors.
    """The schedule chooses a participant that isn't there."""


class CheckExpired(Stuck):
    """The time for a check is over in the middle of a run. Fact: `reached`, where that run is, and who keeps it."""


class ChosenSchedule(Schedule):
    """A schedule given by its choices; past their end it takes the first.

    With `split`, every operation is a frame of its own; otherwise it travels with the next request, as it would over a
    socket. The schedule notes how many could have gone on at every point, from which the next one of an enumeration
    follows.
    """

    def __init__(self, choices: tuple[int, ...] = (), *, split: bool = True) -> None:
        self._choices = choices
        self._split = split
        self.taken: list[tuple[int, int]] = []  # (choice, out of how many)

    def choose(self, names: list[str]) -> int:
        place = len(self.taken)
        choice = self._choices[place] if place < len(self._choices) else 0
        if choice >= len(names):
            raise BadSchedule(
                f"the schedule takes number {choice} of {len(names)} at its step {place}",
                advice="was it made for this federation?",
            )
        self.taken.append((choice, len(names)))
        return choice

    def choose_joining(self, names: list[str]) -> int:
        return 0  # Always by name: permuting it too would multiply the schedules for little. Samples do permute it.

    def flush_after_operation(self) -> bool:
        return self._split

    def following(self) -> ChosenSchedule | None:
        """Return the next schedule in depth-first order: the last choice that has an alternative takes it."""
        taken = list(self.taken)
        while taken:
            choice, of = taken.pop()
            if choice + 1 < of:
                return ChosenSchedule((*(earlier for earlier, _ in taken), choice + 1), split=self._split)
        return None

    def __str__(self) -> str:
        return ("choices:" if self._split else "frames:") + ".".join(str(choice) for choice, _ in self.taken)


class SampledSchedule(Schedule):
    """A schedule drawn from a seed: who goes on, and which operations are told at once."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._draws = Stream(number, "schedule")

    def choose(self, names: list[str]) -> int:
        return self._draws.randrange(len(names))

    choose_joining = choose

    def flush_after_operation(self) -> bool:
        return self._draws.random() < 0.5

    def __str__(self) -> str:
        return f"sample:{self._number}"


def parse_schedule(text: str) -> Schedule:
    """Read the name of a schedule: ``in-order``, ``sample:17``, ``choices:0.2.1`` or ``frames:0.2.1``."""
    kind, _, rest = text.partition(":")
    if kind == IN_ORDER and not rest:
        return Schedule()
    if kind == "sample" and rest.isdecimal():
        return SampledSchedule(int(rest))
    parts = rest.split(".") if rest else []
    if kind in ("choices", "frames") and all(part.isdecimal() for part in parts):
        return ChosenSchedule(tuple(int(part) for part in parts), split=kind == "choices")
    raise UsageError(f"{text!r} isn't a schedule", advice="write in-order, sample:17, choices:0.2.1 or frames:0.2.1")


@dataclass(frozen=True)
class Divergence:
    """How a run differs from the one in order: it ends in an error, or not the same has happened."""

    schedule: str
    difference: Difference | None = None
    error: str | None = None

    @property
    def reason(self) -> str:
        """What must be looked for: two runs of one schedule differ for other reasons than two schedules do."""
        if self.schedule == IN_ORDER:
            return "two runs under one schedule differ (a clock, global randomness, or state kept between runs)"
        return "the history depends on the schedule"

    @property
    def participant(self) -> str | None:
        """Whose difference follows from no other, if that is known."""
        cause = None if self.difference is None else self.difference.cause
        return None if cause is None else cause.parting.member

    def lines(self) -> list[str]:
        """Say all of it: A is the run in order."""
        if self.difference is None or self.difference.partings.is_same:
            return [str(self)]
        return self.difference.lines()

    def __str__(self) -> str:
        if self.error is not None:
            return f"run in order, all goes well, but under this schedule: {self.error}"
        if self.difference is None or self.difference.partings.is_same:
            return "all participants receive and send the same, but different messages are lost or dropped"
        return "\n".join(self.difference.cause_lines() or self.difference.lines())


@dataclass(frozen=True)
class CheckReport:
    """What the checker found: how many schedules it tried, whether those were all, and the first difference, if any.

    `unfinished` says which run was broken off when time was over, and where it was.
    """

    digest: bytes
    schedules: int
    complete: bool
    divergence: Divergence | None = None
    unfinished: str = ""

    def demand_same(self) -> None:
        """Raise if any schedule made a difference."""
        if self.divergence is not None:
            raise NonDeterminism(f"{self.divergence.reason}: {self.divergence}", schedule=self.divergence.schedule)


def check(
    federation: FederationLike,
    *,
    schedules: int = SCHEDULES_MAX,
    first_sample: int = 0,
    seconds_max: float | None = None,
    arbiter: ArbiterFactory = Arbiter,
    progress: Callable[[int], None] | None = None,
    watch: Watch | None = None,
    draws: DrawsGiven = None,
) -> CheckReport:
    """Try every schedule if there are few enough, alternating with seeded samples; at most `schedules` in all.

    Systematic order permutes the end of the run first and may never reach its beginning; samples reach all of it. After
    `seconds_max` seconds of real time no new schedule starts, and a long run is broken off; if nothing has been
    compared by then, that is `Stuck`. `progress` is told how many have been tried, and `watch` the status of each run
    that takes long. `draws` replaces some of the random draws of all runs. What programs print isn't shown.
    """
    trial = _Trial(federation, arbiter, seconds_max=seconds_max, watch=watch, draws=draws)
    systematic: ChosenSchedule | None = ChosenSchedule()
    while systematic is not None and trial.tried < schedules and not (trial.tried and trial.is_over()):
        try:
            divergence = trial.attempt(systematic) or trial.attempt(SampledSchedule(first_sample + trial.tried // 2))
        except CheckExpired as expired:
            if not trial.tried:
                raise
            return trial.report(unfinished=expired.facts["reached"])
        if divergence is not None:
            return trial.report(divergence)
        systematic = systematic.following()
        if progress is not None:
            progress(trial.tried)
    if systematic is None:
        trial.tried //= 2  # The samples were among them.
    return trial.report(complete=systematic is None)


def check_every_schedule(
    federation: FederationLike, *, split: bool = True, schedules_max: int = 100_000, arbiter: ArbiterFactory = Arbiter
) -> CheckReport:
    """Try every schedule there is; refuse if there are more than `schedules_max`. See `ChosenSchedule` for `split`."""
    trial = _Trial(federation, arbiter)
    schedule: ChosenSchedule | None = ChosenSchedule(split=split)
    while schedule is not None:
        if trial.tried == schedules_max:
            raise UsageError(
                f"there are more than {schedules_max} schedules", advice="use check(), which takes samples"
            )
        if divergence := trial.attempt(schedule):
            return trial.report(divergence)
        schedule = schedule.following()
    return trial.report(complete=True)


def compare(
    federation: FederationLike,
    schedule: Schedule,
    arbiter: ArbiterFactory = Arbiter,
    *,
    seconds_max: float | None = None,
    watch: Watch | None = None,
    draws: DrawsGiven = None,
) -> Divergence | None:
    """Run under one schedule and return the first difference from the run in order."""
    return _Trial(federation, arbiter, seconds_max=seconds_max, watch=watch, draws=draws).compare(schedule)


class _Trial:
    """One federation under many schedules, each compared with the run in order.

    The run in which the time for a check is over is ended. A short one ends by itself: it isn't even watched.
    """

    def __init__(
        self,
        federation: FederationLike,
        arbiter: ArbiterFactory,
        *,
        seconds_max: float | None = None,
        watch: Watch | None = None,
        draws: DrawsGiven = None,
    ) -> None:
        self._federation = federation
        self._arbiter = arbiter
        self._seconds = inf if seconds_max is None else seconds_max
        self._until = time.monotonic() + self._seconds
        self._watch = watch
        self._draws = draws
        self._expected = self._run(Schedule())
        self.tried = 0

    def is_over(self) -> bool:
        """Whether the time for the check is over."""
        return time.monotonic() >= self._until

    def attempt(self, schedule: Schedule) -> Divergence | None:
        """Compare, for the checker's own schedules; if they differ, find out whether the schedule is to blame."""
        try:
            divergence = self.compare(schedule)
        except BadSchedule as error:  # It was made for this federation: so the federation has changed.
            divergence = Divergence(str(schedule), error=str(error))
        self.tried += 1
        if divergence is None:
            return None
        with suppress(CheckExpired):  # What has been found is worth more than knowing whose fault it is.
            return self.compare(Schedule()) or divergence
        return divergence

    def compare(self, schedule: Schedule) -> Divergence | None:
        expected = self._expected
        try:
            found = self._run(schedule)
        except (BadSchedule, CheckExpired):
            raise
        except WorldlineError as error:
            return Divergence(str(schedule), error=str(error))
        same = (found.digest, found.journals, found.dropped) == (expected.digest, expected.journals, expected.dropped)
        return None if same else Divergence(str(schedule), _difference(str(schedule), expected, found))

    def report(
        self, divergence: Divergence | None = None, *, complete: bool = False, unfinished: str = ""
    ) -> CheckReport:
        return CheckReport(self._expected.digest, self.tried, complete, divergence, unfinished)

    def _run(self, schedule: Schedule) -> FederationOutcome:
        with redirect_stdout(io.StringIO()):  # What programs print, a thousand times over, is in the way.
            return run(
                self._federation() if callable(self._federation) else self._federation,
                schedule=schedule,
                arbiter=self._arbiter,
                watch=lambda status: self._look(schedule, status),
                keep_journals=True,
                draws=self._draws,
            )

    def _look(self, schedule: Schedule, status: Status) -> None:
        if self._watch is not None:
            self._watch(status)
        if self.is_over():
            which = "the run in order" if type(schedule) is Schedule else "a run under another schedule"
            busy = [wait.why for wait in status.waits if wait.who == ALL_OTHERS]
            reached = ": ".join([f"{which} is at {format_time(status.time)}", *busy])
            raise CheckExpired(
                f"{self._seconds:g} seconds are over, and nothing has been compared: {reached}",
                advice="is there an endless loop? If it needs longer, raise --seconds-max, or seconds_max; to end"
                " runs earlier, set --until",
                reached=reached,
            )


def _difference(schedule: str, expected: FederationOutcome, found: FederationOutcome) -> Difference:
    partings = part(*(account_of(each.journals, each.members) for each in (expected, found)))
    return Difference(partings, explain(partings), names=(IN_ORDER, schedule))
