"""Shrinking a federation's failure: from a seed to the few draws and faults that it takes.

All that the seed has drawn for links is written down: how long each message took, and which got lost or came twice; and
so are the faults. What is written down is taken out again as far as the failure stays; a message of which nothing is
written takes the usual time. What the programs draw themselves stays as the seed has it. Nothing gets worse on the way,
as for nodes: no message gets lost that didn't, latencies stay within their bounds, faults don't last longer, and the
run ends when it did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from worldline.federation.trial import FederationTrial
from worldline.model.distributions import DrawnValue
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError
from worldline.model.faults import ParticipantFault, are_milder, as_faults
from worldline.model.time import MS, SECOND
from worldline.search.calm import DrawsSeen, WrittenDraws, rounded, usual
from worldline.search.deadline import SECONDS_MAX
from worldline.search.shrinking import RUNS_MAX, CountedRuns, reduced
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
    trial = replace(trial, faults=as_faults(trial.federation().faults), kinds={})
    seen = DrawsSeen(written)
    outcome, before = replace(trial, draws=seen).told()
    if outcome.failure is None:
        raise UsageError("this trial doesn't fail, so there is nothing to shrink")
    runs = CountedRuns(outcome.failure, runs_max, seconds_max, progress)

    faults_before = len(trial.faults or ())
    trial = _taken_out(trial, seen, runs)
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


def _taken_out(trial: FederationTrial, seen: DrawsSeen, runs: CountedRuns) -> FederationTrial:
    harshest = trial.faults or ()

    def with_faults(faults: Sequence[ParticipantFault]) -> FederationTrial:
        return replace(trial, faults=tuple(faults))

    def fails_with(faults: Sequence[ParticipantFault]) -> bool:
        trial = with_faults(faults)
        return are_milder(faults, harshest) and _can_be(trial) and runs.fails(trial)

    def with_draws(written: Sequence[Written]) -> FederationTrial:
        return replace(trial, draws=WrittenDraws(dict(written)))

    written = list(seen.restless.items())
    for _ in range(2):  # Without some of the draws, faults may turn out to be needless too.
        trial = with_faults(reduced(trial.faults or (), fails_with))
        if trial.draws is None:  # Without a fault, there may be messages that the seed draws something else for.
            seen = DrawsSeen(None)
            replace(trial, draws=seen).run()
            written = list(seen.restless.items())
        if runs.fails(with_draws(written)):
            written = reduced(written, lambda rest: runs.fails(with_draws(rest)))
            trial = with_draws(written)
    if isinstance(trial.draws, WrittenDraws):
        trial = _with_round_latencies(trial, seen, runs)
    return _with_round_faults(trial, runs)


def _with_round_faults(trial: FederationTrial, runs: CountedRuns) -> FederationTrial:
    """Let what goes wrong begin a bit later, if it has a time, and last less: never the other way round."""
    for fault in trial.faults or ():
        for unit in _UNITS:
            at = -(-fault.at // unit) * unit
            lasts = None if fault.lasts is None else (fault.at + fault.lasts - at) // unit * unit
            if lasts is not None and lasts <= 0:
                continue
            rounded_fault = structs.replace(fault, at=at, lasts=lasts)
            faults = tuple(rounded_fault if each is fault else each for each in trial.faults or ())
            changed = replace(trial, faults=as_faults(faults))
            if are_milder(faults, trial.faults or ()) and _can_be(changed) and runs.fails(changed):
                trial = changed
                break
    return trial


def _can_be(trial: FederationTrial) -> bool:
    """Whether its faults go together: without some of them, or at other times, they may not."""
    try:
        trial.federation().plan()
    except ConfigurationError:
        return False
    return True


def _with_round_latencies(trial: FederationTrial, seen: DrawsSeen, runs: CountedRuns) -> FederationTrial:
    assert isinstance(trial.draws, WrittenDraws)
    for name in trial.draws.written:
        latency = seen.latencies.get(name)
        if latency is None:
            continue
        unit = max(1, usual(latency) // _ROUND)
        near = rounded(latency, int(trial.draws.written[name]), unit)
        beyond = rounded(latency, near + unit if near >= usual(latency) else near - unit, 1)
        for time in (near, beyond):
            changed = replace(trial, draws=WrittenDraws({**trial.draws.written, name: time}))
            if runs.fails(changed):
                trial = changed
                break
        assert isinstance(trial.draws, WrittenDraws)
    return trial
