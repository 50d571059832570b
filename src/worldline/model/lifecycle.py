"""What happens to one participant in simulated time: when it boots, what befalls it, and what outlives that.

It is fixed before the run, like all of this room, and travels to wherever the participant is. Only what follows from
the run itself, such as events that faults wait for, is found out there.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from worldline.model.faults import ParticipantFault, order_of
from worldline.model.latency import Latency
from worldline.model.links import Network
from worldline.model.time import format_time

ESTOP_LOG = "emergency stop"
"""How lines of a log begin that tell of one. A program may well begin its own like that: the kind of a line counts."""

FAULT_LOG = "fault: "
"""How those begin that tell of what has befallen the participant."""

FAULT_LINE, ESTOP_LINE = LOG_KINDS = ("fault", "estop")
"""The kinds of lines that tell of either. Those of programs have none."""


class Lifecycle(Struct, frozen=True, kw_only=True):
    """One participant's.

    `boot` is how long it takes to boot, drawn from the run's seed. `faults` are those that befall it, and `durable` are
    the topics whose messages wait for it while it is down. `estop` is the time within which it is told of an emergency
    stop; None: there is none. `network` is there if its links corrupt messages on their way to it.
    """

    boot: Latency | None = None
    faults: tuple[ParticipantFault, ...] = ()
    durable: tuple[str, ...] = ()
    estop: int | None = None
    network: Network | None = None


class EmergencyNote(Struct, frozen=True, order=True):
    """A line about an emergency stop: somebody called it, was told of it, or has done something about it."""

    at: int
    participant: str
    text: str

    def __str__(self) -> str:
        return f"{format_time(self.at)} {self.participant}: {self.text}"


class EmergencyNotice(Struct, frozen=True):
    """What a participant knows of an emergency stop: who called it, when and why."""

    by: str
    at: int
    reason: str


UNEVENTFUL = Lifecycle()
"""The life of a participant to which nothing happens."""


def lifecycle_of(name: str, network: Network, faults: tuple[ParticipantFault, ...]) -> Lifecycle:
    """Return what a run's plan has in store for a participant."""
    return Lifecycle(
        faults=tuple(sorted((each for each in faults if each.participant == name), key=order_of)),
        estop=network.estop,
        network=_corrupting(name, network),
    )


def _corrupting(name: str, network: Network) -> Network | None:
    """Return the links that lead to a participant, if any of them corrupts messages."""
    rules = tuple(rule for rule in network.rules if rule.receiver in (None, name))
    if not any(link.corruption for link in (network.default, *(rule.link for rule in rules))):
        return None
    return replace(Network(), default=network.default, rules=rules)
