"""Corrupted payloads: of some messages, one bit arrives flipped.

It is drawn per receiver and message, and done at the receiver's end: what was sent is the same for everybody else.
"""

from __future__ import annotations

from worldline.model.links import Network
from worldline.model.message import Message
from worldline.model.path import Paths
from worldline.model.randomness import draw_bits, key_of, unit


class Corruption:
    """What the links of a network do to the payloads of messages to one receiver."""

    def __init__(self, network: Network, seed: int, receiver: str) -> None:
        self._paths = Paths(network, seed)
        self._seed = seed
        self._receiver = receiver
        self._shares: dict[tuple[str, str], tuple[float, int]] = {}

    def bit_of(self, message: Message) -> int | None:
        """Return which bit of a message is flipped; None if it arrives as it was sent."""
        way = (message.topic, message.sender)
        if way not in self._shares:
            link = self._paths.link(*way, self._receiver)
            self._shares[way] = link.corruption, key_of(self._seed, "corruption", *way, self._receiver)
        share, key = self._shares[way]
        number = 2 * message.copy
        if not message.payload or unit(draw_bits(key, message.sequence, number)) >= share:
            return None
        return draw_bits(key, message.sequence, number + 1) * 8 * len(message.payload) >> 64


def flipped(message: Message, bit: int) -> Message:
    """Return a message with one bit of its payload flipped, counted from the first byte's highest."""
    payload = bytearray(message.payload)
    payload[bit // 8] ^= 0x80 >> bit % 8
    return message._replace(payload=bytes(payload))
