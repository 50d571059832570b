"""Corrupted payloads: of some messages, one bit arrives flipped.

It is drawn per receiver and message, and done at the receiver's end: what was sent is the same for everybody else. A
receiver knows a message by its place among all that its sender has sent, on whichever topics, so draws are numbered by
that.
"""

from __future__ import annotations

from worldline.model.distributions import BitPlace, Chance
from worldline.model.draw_names import CORRUPTED_BIT, CORRUPTED_BIT_OF_COPY, CORRUPTION, CORRUPTION_OF_COPY
from worldline.model.draws import DrawSource, DrawTable
from worldline.model.links import Network
from worldline.model.message import Message
from worldline.model.path import Paths
from worldline.model.randomness import draw_bits, key_of

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
