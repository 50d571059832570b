"""Shrinking a federation's failure: from a seed to the few draws and faults that it takes.

All that the seed has drawn for links is written down: how long each message took, and which got lost or came twice.
What is written down is taken out again as far as the failure stays; a message of which nothing is written takes the
usual time. What the programs draw themselves stays as the seed has it. Nothing gets worse on the way, as for nodes: no
message gets lost that didn't, latencies stay within their bounds, and the run ends when it did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from worldline.federation.trial import FederationTrial
from worldline.model.distributions import DrawnValue
from worldline.model.errors import UsageError, WorldlineError
from worldline.search.calm import DrawsSeen, WrittenDraws, rounded, usual
from worldline.search.deadline import SECONDS_MAX
from worldline.search.shrinking import RUNS_MAX, CountedRuns, reduced
from worldline.search.story import Happening

_ROUND = 5  # A round time is a whole number of fifths of the usual one.

Written = tuple[str, DrawnValue]


@dataclass(frozen=True, kw_only=True)
class ShrunkFederation:
    """A failing trial with little left to remove, and its story. `drawn` is what the seed had decided before."""

    trial: FederationTrial
    failure: WorldlineError
    happenings: list[Happening]
    happenings_before: int
    drawn: int
    runs: int

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
    if trial.draws is not None and not isinstance(trial.draws, WrittenDraws):
        raise UsageError("draws that a function makes can't be shrunk")
    seen = DrawsSeen(trial.draws)
    outcome, before = replace(trial, draws=seen).told()
    if outcome.failure is None:
        raise UsageError("this trial doesn't fail, so there is nothing to shrink")
    runs = CountedRuns(outcome.failure, runs_max, seconds_max, progress)

    def with_draws(written: Sequence[Written]) -> FederationTrial:
        return replace(trial, draws=WrittenDraws(dict(written)))

    drawn = len(seen.restless)
    if runs.fails(with_draws(list(seen.restless.items()))):
        trial = with_draws(reduced(list(seen.restless.items()), lambda rest: runs.fails(with_draws(rest))))
        trial = _with_round_latencies(trial, seen, runs)
    outcome, happenings = trial.told()
    assert outcome.failure is not None
    return ShrunkFederation(
        trial=trial,
        failure=outcome.failure,
        happenings=happenings,
        happenings_before=len(before),
        drawn=drawn,
        runs=runs.done,
    )


def _with_round_latencies(trial: FederationTrial, seen: DrawsSeen, runs: CountedRuns) -> FederationTrial:
    assert isinstance(trial.draws, WrittenDraws)
    for name in trial.draws.written:
        latency = seen.latencies.get(name)
        if latency is None:
            continue
        near = rounded(latency, int(trial.draws.written[name]), max(1, usual(latency) // _ROUND))
        changed = replace(trial, draws=WrittenDraws({**trial.draws.written, name: near}))
        if runs.fails(changed):
            trial = changed
            assert isinstance(trial.draws, WrittenDraws)
    return trial
