"""What comes of a run, wherever it has taken place."""

from __future__ import annotations

from dataclasses import dataclass, field

from worldline.lock import Received, Sent


@dataclass(frozen=True)
class Outcome:
    """The digest of a run, when everybody left, and what was lost.

    `dropped` counts messages by (receiver, topic, reason). `journals` are there if they were asked for, in one process.
    """

    digest: bytes
    times: dict[str, int]
    dropped: dict[tuple[str, str, str], int]
    events: int
    journals: dict[str, list[Sent | Received]] = field(default_factory=dict)
