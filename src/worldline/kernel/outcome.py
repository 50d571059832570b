"""What comes of a run of the kernel, whatever executed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from worldline.history.journal import run_digest
from worldline.history.outcome import End, Outcome
from worldline.kernel.model import WorkerReport
from worldline.kernel.monitor import Monitor


@dataclass(frozen=True, kw_only=True)
class KernelOutcome(Outcome):
    """What a simulation has come to so far, with the monitors of its entities, by (entity, name).

    Who hasn't ended is among the members with the time FOREVER.
    """

    monitors: dict[tuple[str, str], Monitor] = field(default_factory=dict)


def combined(parts: Sequence[WorkerReport], until: int | None) -> KernelOutcome:
    """Put together what the workers tell."""
    members: dict[str, End] = {}
    dropped: dict[tuple[str, str, str], int] = {}
    monitors: dict[tuple[str, str], Monitor] = {}
    for part in parts:
        members.update(part.members)
        for what, number in part.dropped.items():
            dropped[what] = dropped.get(what, 0) + number
        monitors.update(part.monitors)
    now = max(part.now for part in parts) if until is None else until
    for monitor in monitors.values():
        if monitor.end is None:
            monitor.end = now
    return KernelOutcome(
        digest=run_digest((name, at, chain) for name, (at, chain) in members.items()),
        now=now,
        events=sum(part.events for part in parts),
        members=members,
        dropped=dict(sorted(dropped.items())),
        monitors=dict(sorted(monitors.items())),
    )
