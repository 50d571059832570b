"""What comes of a run of the kernel, whatever executed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from worldline.history.journal import run_digest
from worldline.kernel.model import Part
from worldline.kernel.monitor import Monitor


@dataclass(frozen=True)
class Result:
    """The digest of a simulation so far, its time, and what was counted and recorded.

    `dropped` counts messages by (receiver, topic, reason); `monitors` are by (entity, name).
    """

    digest: bytes
    now: int
    events: int
    dropped: dict[tuple[str, str, str], int]
    monitors: dict[tuple[str, str], Monitor]

    def __str__(self) -> str:
        return f"{self.events:,} event{'' if self.events == 1 else 's'}, digest {self.digest.hex()}"


def combined(parts: Sequence[Part], until: int | None) -> Result:
    """Put together what the workers tell."""
    dropped: dict[tuple[str, str, str], int] = {}
    monitors: dict[tuple[str, str], Monitor] = {}
    for part in parts:
        for what, number in part.dropped.items():
            dropped[what] = dropped.get(what, 0) + number
        monitors.update(part.monitors)
    now = max(part.now for part in parts) if until is None else until
    for monitor in monitors.values():
        if monitor.end is None:
            monitor.end = now
    return Result(
        digest=run_digest(chain for part in parts for chain in part.chains),
        now=now,
        events=sum(part.events for part in parts),
        dropped=dict(sorted(dropped.items())),
        monitors=dict(sorted(monitors.items())),
    )
