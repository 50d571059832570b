"""Scripted deliveries: how long each message is under way, written down instead of drawn.

A run whose every delivery is written down is the same run. That is what shrinking works on: entries are taken out, and
what isn't written down takes the usual time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from worldline.nodes.trace import NodeRecord

LINK_DOWN = "the link is down"
PARTITIONED = "sent into a partition"
SWALLOWED = (LINK_DOWN, PARTITIONED)
"""Why a message isn't sent at all."""

MessageId = tuple[int, int, int]
"""Sender, receiver, and which of the sender's messages to this receiver it is, from 0."""

Delays = tuple[int, ...]
"""How long it is under way; a second one is that of its copy; none: it gets lost."""


class Deliveries(Protocol):
    """What decides how long messages are under way, in place of what the seed draws for their links."""

    def delays(self, message: MessageId) -> Delays: ...


class Script:
    """How long messages are under way: the usual time, but for those that are named."""

    def __init__(self, usual: int, exceptions: Mapping[MessageId, Delays]) -> None:
        self.usual = (usual,)
        self.exceptions = dict(exceptions)

    def changed(self, message: MessageId, delays: Delays) -> Script:
        """Return the same script, but for one message."""
        return Script(self.usual[0], {**self.exceptions, message: delays})

    def delays(self, message: MessageId) -> Delays:
        return self.exceptions.get(message, self.usual)


def script_of(records: Iterable[NodeRecord], usual: int) -> Script:
    """Write down the deliveries of a run that was traced; what a fault has swallowed is left to that fault."""
    exceptions: dict[MessageId, Delays] = {}
    numbers: dict[tuple[int, int], int] = {}
    for record in records:
        if record.kind == "sent":
            assert record.node is not None
            assert record.peer is not None
            way = (record.node, record.peer)
            number = numbers[way] = numbers.get(way, -1) + 1
            if record.reason not in SWALLOWED:
                exceptions[*way, number] = tuple(arrival - record.at for arrival in record.arrivals)
    return Script(usual, exceptions)
