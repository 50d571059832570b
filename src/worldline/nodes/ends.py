"""The ends of links: how long what goes in here is under way, and whether it is carried at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from worldline.kernel.build import Draws
from worldline.kernel.packing import size_of
from worldline.model.latency import Latency, Uniform
from worldline.model.links import Link
from worldline.model.path import Path
from worldline.nodes.script import LINK_DOWN, PARTITIONED, Deliveries
from worldline.nodes.telling import Incoming

TOPIC = "message"
"""Of all messages of nodes, in the kernel."""

LOST = "lost"


def name_of(node: int, num_nodes: int) -> str:
    """Return the name of a node's host: with zeros in front, so that names have the order of numbers."""
    return f"{node:0{len(str(num_nodes - 1))}d}"


class LinkEnd:
    """One end of a link: what its node sends goes in here."""

    __slots__ = (
        "delay",
        "fifo",
        "given",
        "held",
        "is_cut",
        "is_gone",
        "is_pristine",
        "is_up",
        "last",
        "link",
        "name",
        "neighbor",
        "node",
        "number",
        "opened",
        "path",
        "weight",
        "went_down",
        "went_down_before",
    )

    def __init__(self, setting: tuple[int, int], node: int, neighbor: int, link: int, over: Link, weight: int) -> None:
        """`setting` is the number of nodes and the seed."""
        num_nodes, seed = setting
        self.given = (setting, node, neighbor, link, over, weight)
        self.node = node
        self.neighbor = neighbor
        self.link = link
        self.weight = weight
        self.name = name_of(neighbor, num_nodes)
        self.is_up = True
        self.is_pristine = True  # It has been there from the start, and has never been down.
        self.is_cut = self.is_gone = False
        self.went_down = self.went_down_before = -1
        self.held: list[Incoming] = []  # Messages that wait until it is up.
        self.opened = 0
        self.number = -1  # Of the last message that was sent.
        self.fifo = over.fifo
        self.last = 0  # When that arrives, as far as a script decides it.
        own = name_of(node, num_nodes)
        # A link that only delays takes one compiled draw a message; losses, order and the like take the whole path.
        self.path = None if over == Link(latency=over.latency) else Path(over, seed, TOPIC, own, self.name)
        self.delay = _drawing(over.latency, Draws(seed, "latency", own, self.name))

    def follow(self, earlier: LinkEnd) -> None:
        """Go on counting and drawing where an earlier end of a link to the same neighbor has stopped."""
        self.number, self.last, self.path, self.delay = earlier.number, earlier.last, earlier.path, earlier.delay

    def carry(self, message: Any, now: int, script: Deliveries | None) -> tuple[tuple[int, ...], str]:
        """Return how long the next message is under way, and its copy; or why it isn't."""
        self.number += 1
        if not self.is_up:
            return (), LINK_DOWN
        if self.is_cut:
            return (), PARTITIONED
        if script is not None:
            delays = script.delays((self.node, self.neighbor, self.number))
            if self.fifo:
                delays = tuple(self._in_order(now, delay) for delay in delays)
            return delays, "" if delays else LOST
        if self.path is None:
            return (self.delay(),), ""
        arrivals, lost = self.path.carry(now, self.number, size_of(message) if self.path.queues else 0)
        return (() if lost else tuple(arrival - now for arrival in arrivals)), lost or ""

    def _in_order(self, now: int, delay: int) -> int:
        self.last = max(self.last, now + delay)
        return self.last - now

    def go_down(self, now: int) -> None:
        self.is_up = self.is_pristine = False
        self.went_down, self.went_down_before = now, self.went_down

    def open(self, now: int) -> None:
        """Be there from now on only."""
        self.opened = now
        self.is_pristine = False

    def close(self) -> None:
        self.is_gone = True
        self.is_pristine = False

    def come_up(self, now: int) -> None:
        self.is_up = True
        if self.went_down == now:  # It was down for no time at all: as if it hadn't been.
            self.went_down = self.went_down_before

    def __reduce__(self) -> tuple[Any, ...]:
        return LinkEnd, self.given  # Hosts are sent to workers before anything has happened.


def _drawing(latency: Latency, draws: Draws) -> Callable[[], int]:
    """Return what draws the next latency."""
    if isinstance(latency, Uniform):
        return partial(draws.spread, latency.minimum, latency.maximum - latency.minimum + 1)
    return lambda: latency.draw(draws.getrandbits(64))
