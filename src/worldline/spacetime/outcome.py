"""What comes of a run through spacetime, whatever executed it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from worldline.history.journal import run_digest
from worldline.history.outcome import End, Outcome
from worldline.model.errors import UsageError, WorldlineError
from worldline.model.time import SECOND
from worldline.spacetime.core import Core
from worldline.spacetime.geometry import Vector
from worldline.spacetime.story import AgentRecord, in_order, records_of


@dataclass(frozen=True, kw_only=True)
class SpacetimeOutcome(Outcome):
    """What a run through spacetime has come to, and until which lab time it went; its records, if it was traced.

    Members are agents, also those that have died; they end at lab times in billionths.
    """

    until: float
    kept: list[AgentRecord] | None = field(default=None, repr=False)

    @property
    def agents(self) -> int:
        """How many there were."""
        return len(self.members)

    @property
    def records(self) -> list[AgentRecord]:
        """What happened, in the order of lab time, agent and number."""
        if self.kept is None:
            raise UsageError("the run wasn't traced", advice="make it so: ForwardSimulation(..., trace=True)")
        return self.kept


class Tally(NamedTuple):
    """What one worker has to tell of its agents: how many events they had, how they ended, their records."""

    events: int
    ends: list[tuple[str, End]]
    records: list[AgentRecord]


def tally_of(core: Core) -> Tally:
    """Return what a core has to tell, at the end: its graves, of which there may be many, are cleared on the way."""
    ends = [(body.name, _end(body.point, body.chain, body.events)) for body in core.bodies.values()]
    while core.graves:
        name, grave = core.graves.popitem()
        ends.append((name, _end(*grave)))
    return Tally(core.events, ends, records_of(core.trace or ()))


def _end(point: Vector, chain: int, events: int) -> End:
    return End(round(point[0] * SECOND), b"%x %x" % (chain, events))


def combined(tallies: Iterable[Tally], until: float, *, is_traced: bool) -> SpacetimeOutcome:
    """Put together what the workers tell."""
    told = list(tallies)
    members = dict(sorted(end for tally in told for end in tally.ends))
    return SpacetimeOutcome(
        digest=run_digest((name, *end) for name, end in members.items()),
        now=round(until * SECOND),
        events=sum(tally.events for tally in told),
        members=members,
        until=until,
        kept=in_order(record for tally in told for record in tally.records) if is_traced else None,
    )


def failed(outcome: SpacetimeOutcome, error: WorldlineError, lab: float) -> SpacetimeOutcome:
    """Return that an agent has failed at this lab time. What others did later is left out: how far they got is luck."""
    before = [record for record in outcome.kept or () if record.at[0] <= lab]
    return broken_off(outcome, error, before)


def broken_off(outcome: SpacetimeOutcome, error: WorldlineError, records: Sequence[AgentRecord]) -> SpacetimeOutcome:
    """Return that a run has got no further than these records."""
    until = max((record.at[0] for record in records), default=0.0)
    kept = None if outcome.kept is None else in_order(records)
    return replace(outcome, failure=error, until=until, now=round(until * SECOND), kept=kept)
