"""What comes of a federation's run, wherever it has taken place."""

from __future__ import annotations

from dataclasses import dataclass, field

from worldline.history.journal import Entry
from worldline.history.outcome import End, Outcome
from worldline.lock import Arbiter
from worldline.lock.aftermath import Standstill, UnheardTopic, UnmetFault, said_of_unheard
from worldline.model.lifecycle import EmergencyNote


@dataclass(frozen=True, kw_only=True)
class FederationOutcome(Outcome):
    """What came of a federation.

    `standstill` is there if the run ended because everybody waited for somebody else; `unheard` are topics that
    somebody subscribed to and nobody published on. Both are legal, and often a mistake. `emergency` says who called an
    emergency stop, who was told of it when, and what each has done about it. `unmet` are faults that waited for an
    event, and never happened. `journals` are there if they were asked for, in one process.
    """

    journals: dict[str, list[Entry]] = field(default_factory=dict)
    standstill: Standstill | None = None
    unheard: tuple[UnheardTopic, ...] = ()
    emergency: tuple[EmergencyNote, ...] = ()
    unmet: tuple[UnmetFault, ...] = ()

    def remarks(self) -> list[str]:
        ended = [] if self.standstill is None else [str(self.standstill)]
        return [*map(str, self.emergency), *ended, *said_of_unheard(self.unheard), *map(str, self.unmet)]


def outcome_of(arbiter: Arbiter, digest: bytes, journals: dict[str, list[Entry]] | None = None) -> FederationOutcome:
    """Return what came of the run that an arbiter has seen to its end."""
    arbiter.check_draws()
    members = {name: End(now, arbiter.members[name].digest) for name, (_, now) in arbiter.participants().items()}
    return FederationOutcome(
        digest=digest,
        now=max((end.at for end in members.values()), default=0),
        events=arbiter.events,
        members=members,
        dropped=arbiter.dropped(),
        journals=journals or {},
        standstill=arbiter.standstill(),
        unheard=arbiter.unheard(),
        emergency=arbiter.emergency(),
        unmet=arbiter.unmet(),
    )
