"""What comes of a run of the kernel, whatever executed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from worldline.history.journal import run_digest
from worldline.history.outcome import End, Outcome
from worldline.kernel.model import WorkerReport
from worldline.kernel.monitor import Monitor
from worldline.model.errors import UsageError, nearest, shown

_NAMED_MAX = 8


class Monitors(dict[tuple[str, str], Monitor]):
    """The monitors of a run, by (entity, name)."""

    def __missing__(self, key: object) -> Monitor:
        raise UsageError(f"there is no monitor {shown(key)}", advice=self._advice(key))

    def _advice(self, key: object) -> str:
        entity, what = key if isinstance(key, tuple) and len(key) == 2 else (key, "")
        names = sorted({name for name, _ in self})
        own = sorted(each for name, each in self if name == entity)
        if own:
            return nearest(what, own) or f"{entity} has recorded {', '.join(own[:_NAMED_MAX])}"
        return nearest(entity, names) or 'write monitors["entity", "name"], of what was recorded'


@dataclass(frozen=True, kw_only=True)
class KernelOutcome(Outcome):
    """What a simulation has come to so far, with the monitors of its entities, by (entity, name).

    Who hasn't ended is among the members with the time FOREVER.
    """

    monitors: Monitors = field(default_factory=Monitors)


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
        monitors=Monitors(sorted(monitors.items())),
    )
