"""What comes of a run through spacetime, whatever executed it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from worldline.history.journal import run_digest
from worldline.model.errors import UsageError, WorldlineError
from worldline.spacetime.build import Core, Vector
from worldline.spacetime.story import Record, records_of


@dataclass
class Part:
    """What one worker has to tell. `chains` are (name, lab time of its end in billionths, chain)."""

    events: int
    chains: list[tuple[str, int, bytes]]
    records: list[Record]


@dataclass(frozen=True)
class Result:
    """The digest of a run, how many events it had, how many agents, and its records if it was traced.

    `chains` are what the digest is made of: (name, lab time of its end in billionths, chain) for every agent.
    """

    digest: bytes
    events: int
    agents: int
    until: float
    chains: list[tuple[str, int, bytes]] = field(repr=False)
    kept: list[Record] | None = field(repr=False)

    @property
    def records(self) -> list[Record]:
        """What happened, in the order of lab time, agent and number."""
        if self.kept is None:
            raise UsageError("the run wasn't traced", advice="make it so: ForwardSimulation(..., trace=True)")
        return self.kept

    def __str__(self) -> str:
        return f"{self.events:,} event{'' if self.events == 1 else 's'}, digest {self.digest.hex()}"


class Broken(Exception):  # noqa: N818 - It never gets out: it takes what was recorded until then along.
    """A run has failed."""

    def __init__(self, error: WorldlineError, records: list[Record] | None) -> None:
        super().__init__(error, records)
        self.error = error
        self.records = records


def failed(error: WorldlineError, lab: float, result: Result) -> Broken:
    """Return that an agent has failed at this lab time. What others did later is left out: how far they got is luck."""
    return Broken(error, None if result.kept is None else [each for each in result.kept if each.at[0] <= lab])


def part_of(core: Core) -> Part:
    """Return what a core has to tell, at the end: its graves, of which there may be many, are cleared on the way."""
    chains = [_chain(body.name, body.point, body.chain, body.events) for body in core.bodies.values()]
    while core.graves:
        name, grave = core.graves.popitem()
        chains.append(_chain(name, *grave))
    return Part(core.events, chains, records_of(core.trace or ()))


def _chain(name: str, end: Vector, chain: int, events: int) -> tuple[str, int, bytes]:
    return name, round(end[0] * 1e9), b"%x %x" % (chain, events)


def combined(parts: Iterable[Part], until: float, *, is_traced: bool) -> Result:
    """Put together what the workers tell."""
    told = list(parts)
    chains = sorted(chain for part in told for chain in part.chains)
    records: list[Any] = sorted(
        (record for part in told for record in part.records),
        key=lambda record: (record.at[0], record.agent, record.number),
    )
    events = sum(part.events for part in told)
    return Result(run_digest(chains), events, len(chains), until, chains, records if is_traced else None)
