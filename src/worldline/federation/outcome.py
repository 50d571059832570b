"""What comes of a federation's run, wherever it has taken place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from worldline.history.journal import Entry
from worldline.history.monitor import Monitors
from worldline.history.outcome import End, Outcome
from worldline.lock import Arbiter
from worldline.lock.remarks import Standstill, UnheardTopic, UnmetFault, said_of_unheard
from worldline.model.faults import ENDED_BY, ParticipantFault
from worldline.model.lifecycle import EmergencyNote
from worldline.model.time import format_time


class LateFault(Struct, frozen=True):
    """A fault at a time at which its participant had left, and nothing that it sent was under way."""

    fault: ParticipantFault
    left: int

    def __str__(self) -> str:
        return f"{self.fault} never happened: {self.fault.participant} left at {format_time(self.left)}"


@dataclass(frozen=True, kw_only=True)
class FederationOutcome(Outcome):
    """What came of a federation.

    `standstill` is there if the run ended because all participants waited for each other; `unheard` are topics with
    subscribers on which none published. Both are legal, and often a mistake. `emergency` says who called an
    emergency stop, who was told of it when, and what each has done about it. `unmet` are faults that waited for an
    event, and `late` those at a time, that never happened. `journals` are there if they were asked for, in one process.
    `failure` is a property that the run doesn't have: one that breaks off raises.
    """

    journals: dict[str, list[Entry]] = field(default_factory=dict)
    standstill: Standstill | None = None
    unheard: tuple[UnheardTopic, ...] = ()
    emergency: tuple[EmergencyNote, ...] = ()
    unmet: tuple[UnmetFault, ...] = ()
    late: tuple[LateFault, ...] = ()

    @property
    def is_whole(self) -> bool:
        return True

    def remarks(self) -> list[str]:
        ended = [] if self.standstill is None else [str(self.standstill)]
        in_vain = [*map(str, self.late), *map(str, self.unmet)]
        return [*map(str, self.emergency), *ended, *said_of_unheard(self.unheard), *in_vain]


def outcome_of(arbiter: Arbiter, digest: bytes, journals: dict[str, list[Entry]] | None = None) -> FederationOutcome:
    """Return what came of the run that an arbiter has seen to its end."""
    arbiter.check_draws()
    members = {name: End(now, arbiter.members[name].digest) for name, (_, now) in arbiter.participants().items()}
    monitors = Monitors(sorted(arbiter.remarks.monitors.items()))
    for (name, _), monitor in monitors.items():
        monitor.end = members[name].at if name in members else None
    return FederationOutcome(
        digest=digest,
        now=max((end.at for end in members.values()), default=0),
        events=arbiter.events,
        members=members,
        dropped=arbiter.dropped(),
        monitors=monitors,
        journals=journals or {},
        standstill=arbiter.standstill(),
        unheard=arbiter.remarks.unheard(),
        emergency=arbiter.remarks.emergency(),
        unmet=arbiter.remarks.unmet(),
        late=_late_faults(arbiter, {name: end.at for name, end in members.items()}),
    )


def _late_faults(arbiter: Arbiter, left: Mapping[str, int]) -> tuple[LateFault, ...]:
    """Return the faults that came too late. A drop-out loses what was published ahead of its time, too."""
    found = []
    for fault in arbiter.plan.faults:
        gone = left.get(fault.participant)
        if gone is None or fault.after is not None or fault.verb not in ENDED_BY:
            continue
        if fault.at > (max(gone, arbiter.router.latest) if fault.verb in ("dropout", "partition") else gone):
            found.append(LateFault(fault, gone))
    return tuple(found)
