"""What comes of a run, wherever it has taken place."""

from __future__ import annotations

from dataclasses import dataclass, field

from worldline.lock import Arbiter, Received, Sent
from worldline.lock.aftermath import Standstill, Unheard, said_of_unheard


@dataclass(frozen=True)
class Outcome:
    """The digest of a run, when everybody left, and what was lost.

    `standstill` is there if the run ended because everybody waited for somebody else; `unheard` are topics that
    somebody subscribed to and nobody published on. Both are legal, and often a mistake.

    `dropped` counts messages by (receiver, topic, reason). `journals` are there if they were asked for, in one process.
    """

    digest: bytes
    times: dict[str, int]
    dropped: dict[tuple[str, str, str], int]
    events: int
    journals: dict[str, list[Sent | Received]] = field(default_factory=dict)
    standstill: Standstill | None = None
    unheard: tuple[Unheard, ...] = ()

    def remarks(self) -> list[str]:
        """Say what whoever ran it should know, though nothing went wrong."""
        ended = [] if self.standstill is None else [str(self.standstill)]
        return ended + said_of_unheard(self.unheard)


def outcome_of(arbiter: Arbiter, digest: bytes, journals: dict[str, list[Sent | Received]] | None = None) -> Outcome:
    """Return what came of the run that an arbiter has seen to its end."""
    return Outcome(
        digest=digest,
        times={name: now for name, (_, now) in arbiter.participants().items()},
        dropped=arbiter.dropped(),
        events=arbiter.events,
        journals=journals or {},
        standstill=arbiter.standstill(),
        unheard=arbiter.unheard(),
    )
