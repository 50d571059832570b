"""What happens to one participant in simulated time: when it boots, its faults, and what outlives them.

It is fixed before the run, like all of this room, and travels to wherever the participant is. Only what follows from
the run itself, such as events that faults wait for, is found out there.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from worldline.model.draws.distributions import BitPlace, Chance
from worldline.model.draws.names import CORRUPTED_BIT, CORRUPTED_BIT_OF_COPY, CORRUPTION, CORRUPTION_OF_COPY
from worldline.model.draws.table import DrawSource, DrawTable
from worldline.model.faults import ParticipantFault, order_of
from worldline.model.latency import Latency
from worldline.model.links import Network
from worldline.model.message import Message
from worldline.model.path import Paths
from worldline.model.randomness import draw_bits, key_of
from worldline.model.time import format_time

# Corrupted payloads: of some messages, one bit arrives flipped.
#
# It is drawn per receiver and message, and done at the receiver's end: what was sent is the same for all others. A
# receiver knows a message by its place among all that its sender has sent, on whichever topics, so draws are numbered
# by that.

_PURPOSES = (CORRUPTION, CORRUPTED_BIT, CORRUPTION_OF_COPY, CORRUPTED_BIT_OF_COPY)  # In the order of their numbers.


class Corruption:
    """What the links of a network do to the payloads of messages to one receiver."""

    def __init__(self, network: Network, seed: int, receiver: str, table: DrawTable | None = None) -> None:
        self._paths = Paths(network, seed)
        self._seed = seed
        self._receiver = receiver
        self._table = table
        self._shares: dict[tuple[str, str], tuple[float, int]] = {}

    def bit_of(self, message: Message, at: int) -> int | None:
        """Return which bit is flipped of a message that is given at this time; None if it is as it was sent."""
        way = (message.topic, message.sender)
        if way not in self._shares:
            link = self._paths.link(*way, self._receiver)
            self._shares[way] = link.corruption, key_of(self._seed, "corruption", *way, self._receiver)
        share, key = self._shares[way]
        if not share or not message.payload or not self._draw(Chance(share), key, message, 0, at):
            return None
        return self._draw(BitPlace(8 * len(message.payload)), key, message, 1, at)

    def _draw(self, distribution: Chance | BitPlace, key: int, message: Message, which: int, at: int) -> int:
        number = 2 * message.copy + which
        if self._table is None:
            return distribution.draw(draw_bits(key, message.sequence, number))
        path = (message.topic, message.sender, self._receiver)
        name = (_PURPOSES[number], *path, str(message.sequence))
        source = DrawSource(name, distribution, ("corruption", *path), message.sequence, number)
        return int(self._table.draw(source, at))


def flipped(message: Message, bit: int) -> Message:
    """Return a message with one bit of its payload flipped, counted from the first byte's highest."""
    payload = bytearray(message.payload)
    payload[bit // 8] ^= 0x80 >> bit % 8
    return message._replace(payload=bytes(payload))


ESTOP_LOG = "emergency stop"
"""How lines of a log begin that tell of one. A program may well begin its own like that: the kind of a line counts."""

FAULT_LOG = "fault: "
"""How log lines about a participant's faults begin."""

FAULT_LINE, DOWN_LINE, UP_LINE, ESTOP_LINE, MEASURE_LINE = LOG_KINDS = ("fault", "down", "up", "estop", "measure")
"""The kinds of lines that tell of either, or of a number that a program measures. Its other lines have none.

By `down` and `up` faults take a member away and give it back.
"""

FAULT_KINDS = (FAULT_LINE, DOWN_LINE, UP_LINE, ESTOP_LINE)
"""The kinds of notes that tell what went wrong, or that it is over."""


class Lifecycle(Struct, frozen=True, kw_only=True):
    """One participant's.

    `boot` is how long it takes to boot, drawn from the run's seed. `faults` are its own, and `durable` are
    the topics whose messages wait for it while it is down. `estop` is the time within which it is told of an emergency
    stop; None: there is none. `network` is there if its links corrupt messages on their way to it.
    """

    boot: Latency | None = None
    faults: tuple[ParticipantFault, ...] = ()
    durable: tuple[str, ...] = ()
    estop: int | None = None
    network: Network | None = None


class EmergencyNote(Struct, frozen=True, order=True):
    """A line about an emergency stop: who called it, was told of it, or has done something about it."""

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
