"""Shrinking a federation's failure: from a seed to the few draws and faults that it takes.

All that the seed has drawn for links is written down: how long each message took, and which got lost or came twice; and
so are the faults. What is written down is taken out again as far as the failure stays; a message of which nothing is
written takes the usual time. Faults that can't be taken out are shortened, and slowness is lessened. What the programs
draw themselves stays as the seed has it. Nothing gets worse on the way, as for nodes: no message gets lost that didn't,
latencies stay within their bounds, faults happen only when they did, and the run ends when it did.

It ends when no single step helps any more, or after so many runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from worldline.federation.trial import FederationTrial
from worldline.model.distributions import DrawnValue
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError
from worldline.model.faults import ENDED_BY, ParticipantFault, are_milder, as_faults, spans_of
from worldline.model.time import FOREVER, MS, SECOND
from worldline.search.calm import DrawsSeen, WrittenDraws, rounded, usual
from worldline.search.deadline import SECONDS_MAX
from worldline.search.shrinking import RUNS_MAX, CountedRuns, lessened, reduced
from worldline.search.story import Happening

_UNITS = (SECOND // 10, SECOND // 100, MS)  # What times of faults are rounded to, the coarsest that still fails.
_ROUND = 5  # A round time is a whole number of fifths of the usual one.

Written = tuple[str, DrawnValue]


@dataclass(frozen=True, kw_only=True)
class ShrunkFederation:
    """A failing trial with little left to remove, and its story. Before, the seed had made so many draws and faults."""

    trial: FederationTrial
    failure: WorldlineError
    happenings: list[Happening]
    happenings_before: int
    draws_before: int
    faults_before: int
    runs: int

    @property
    def faults(self) -> tuple[ParticipantFault, ...]:
        """The faults that it takes."""
        return self.trial.faults or ()

    @property
    def draws(self) -> dict[str, DrawnValue] | None:
        """The draws that it takes, besides calm circumstances; None if it fails only as the seed has it."""
        return self.trial.draws.written if isinstance(self.trial.draws, WrittenDraws) else None


def shrink_federation(
    trial: FederationTrial,
    *,
    runs_max: int = RUNS_MAX,
    seconds_max: float | None = SECONDS_MAX,
    progress: Callable[[int], None] | None = None,
) -> ShrunkFederation:
    """Return the calmest trial found that fails in the same way."""
    written = trial.draws
    if written is not None and not isinstance(written, WrittenDraws):
        raise UsageError("draws that a function makes can't be shrunk")
    federation = trial.federation()
    trial = replace(trial, faults=_written_out(as_faults(federation.faults), federation.plan().end), kinds={})
    seen = DrawsSeen(written)
    outcome, before = replace(trial, draws=seen).told()
    if outcome.failure is None:
        raise UsageError("this trial doesn't fail, so there is nothing to shrink")
    runs = CountedRuns(outcome.failure, runs_max, seconds_max, progress)

    faults_before = len(trial.faults or ())
    trial = _Shrinking(trial, seen, runs).finish()
    outcome, happenings = trial.told()
    assert outcome.failure is not None
    return ShrunkFederation(
        trial=trial,
        failure=outcome.failure,
        happenings=happenings,
        happenings_before=len(before),
        draws_before=len(seen.restless),
        faults_before=faults_before,
        runs=runs.done,
    )


def _written_out(faults: Sequence[ParticipantFault], end: int | None) -> tuple[ParticipantFault, ...]:
    """Let each fault say itself how long it lasts, so that it can be taken out or shortened by itself.

    Who crashes for good stays as it is: if it recovered, more would happen.
    """
    found = [each for each in faults if each.after is not None]
    for name, verb in dict.fromkeys((each.participant, each.verb) for each in faults if each.verb in ENDED_BY):
        for start, over, begun in spans_of(faults, name, verb):
            ends = over if verb == "crash" or end is None else min(over, max(end, start + 1))
            lasts = None if ends == FOREVER else max(1, ends - start)
            found.append(structs.replace(begun, lasts=lasts))
    return as_faults(found)


class _Shrinking:
    """A trial that fails, made calmer step by step. A step that it doesn't fail after is taken back."""

    def __init__(self, trial: FederationTrial, seen: DrawsSeen, runs: CountedRuns) -> None:
        self._trial = trial
        self._seen = seen
        self._runs = runs
        self._faults = self._harshest = trial.faults or ()
        self._draws: dict[str, DrawnValue] | None = None
        self._answers: dict[Hashable, bool] = {}

    def finish(self) -> FederationTrial:
        """Take steps until none helps any more: without some draws, a fault may turn out to be needless, too."""
        left: object = None
        while left != (self._faults, self._draws):
            left = self._faults, self._draws
            reduced(self._faults, lambda rest: self._stands(faults=tuple(rest)))
            self._leave_out_draws()
            for name in self._draws or ():
                self._round_latency(name)
            for place in range(len(self._faults)):
                self._soften(place)
        return replace(self._trial, faults=as_faults(self._faults))

    def _stands(self, **changes: Any) -> bool:
        """Whether it fails as before with other `faults` or `draws`; if so, it has them from now on."""
        faults = changes.get("faults", self._faults)
        draws = changes.get("draws", self._draws)
        changed = replace(self._trial, faults=faults, draws=self._trial.draws if draws is None else WrittenDraws(draws))
        asked = faults, None if draws is None else frozenset(draws.items())
        if asked not in self._answers:  # The last round asks much that the one before has asked.
            milder = are_milder(faults, self._harshest) and _can_be(changed)
            self._answers[asked] = milder and self._runs.fails(changed)
        if self._answers[asked]:
            self._trial, self._faults, self._draws = changed, faults, draws
        return self._answers[asked]

    def _leave_out_draws(self) -> None:
        if self._draws is None:
            if self._trial.draws is None:  # Without a fault, there may be messages that the seed draws something for.
                self._seen = DrawsSeen(None)
                replace(self._trial, draws=self._seen).run()
            if not self._stands(draws=dict(self._seen.restless)):
                return
        reduced(list((self._draws or {}).items()), lambda rest: self._stands(draws=dict(rest)))

    def _round_latency(self, name: str) -> None:
        assert self._draws is not None
        latency, time = self._seen.latencies.get(name), self._draws[name]
        if latency is None:
            return
        unit = max(1, usual(latency) // _ROUND)
        near = rounded(latency, int(time), unit)
        if near != time:
            beyond = rounded(latency, near + unit if near >= usual(latency) else near - unit, 1)
            for other in (near, beyond):
                if self._stands(draws={**self._draws, name: other}):
                    break

    def _soften(self, place: int) -> None:
        """Let a fault be over earlier, begin later, or slow less; and let it begin at a round time."""
        fault = self._faults[place]
        if fault.delay:
            lessened(fault.delay, lambda delay: self._replaces(place, delay=delay))
        if fault.lasts is not None:
            lasts = lessened(fault.lasts, lambda lasts: self._replaces(place, lasts=lasts))
            if fault.after is None:
                over = fault.at + lasts
                lessened(lasts, lambda lasts: self._replaces(place, at=over - lasts, lasts=lasts))
        at = self._faults[place].at
        for unit in _UNITS:
            later = -(-at // unit) * unit
            if later == at or self._replaces(place, at=later):
                break

    def _replaces(self, place: int, **changes: Any) -> bool:
        fault = structs.replace(self._faults[place], **changes)
        return self._stands(faults=(*self._faults[:place], fault, *self._faults[place + 1 :]))


def _can_be(trial: FederationTrial) -> bool:
    """Whether its faults go together: without some of them, or at other times, they may not."""
    try:
        trial.federation().plan()
    except ConfigurationError:
        return False
    return True
