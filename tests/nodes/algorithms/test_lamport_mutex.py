"""Lamport's mutual exclusion, and that its properties notice when it is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tests.nodes.trying import tried
from worldline.nodes import Violation
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.lamport_mutex import LamportMutex, Release, Reply, Request, model


@pytest.mark.parametrize(
    ("topology", "seeds"), [("clique:1", 1), ("clique:2", 10), ("clique:4", 25), ("clique:6,shuffled", 3)]
)
def test_one_at_a_time_and_everybody_in_its_turn(topology: str, seeds: int) -> None:
    for seed in range(seeds):
        run = tried(model, seed, topology)
        assert [node.entries for node in run.nodes] == [3] * run.num_nodes


def test_clocks() -> None:
    """By hand: of two nodes, with latencies so short that one is through before the other wants anything."""
    quick = structs.replace(model, latency="1ns")
    for seed in range(5):
        run = tried(quick, seed, "clique:2", parameters={"rounds": 1, "stay": "1ns"})
        # Asked at 1, heard at 2; replied at 2, heard at 3; released at 4, heard at 5; the other's turn goes on from 6.
        assert sorted(node.clock for node in run.nodes) == [9, 10]


# -- Properties can fail


def broken(node: type[LamportMutex], **changes: Any) -> Algorithm:
    return structs.replace(model, node=node, **changes)


class Hasty(LamportMutex):
    """Goes inside as soon as its request is the smallest that it knows of."""

    def _heard_from_all(self) -> bool:
        return True


class Proud(LamportMutex):
    """Takes its own request for the smallest."""

    def _enter_if_first(self) -> None:
        if self.request is not None and not self.inside and self._heard_from_all():
            self.enter()


class Forgetful(LamportMutex):
    """Doesn't take requests out of the queue."""

    def hear(self, message: Any, link: int) -> None:
        super().hear(message, link)
        if isinstance(message, Release):
            self.queue[message.sender] = 0


class Chatty(LamportMutex):
    """Replies twice."""

    def hear(self, message: Any, link: int) -> None:
        super().hear(message, link)
        if isinstance(message, Request):
            self.send(Reply(self.clock, self.id), link)


class ByAge(LamportMutex):
    """Lets the largest request in first: at most one is inside, in the wrong order."""

    def _enter_if_first(self) -> None:
        if self.request is None or self.inside or not self._heard_from_all():
            return
        if max((timestamp, node) for node, timestamp in self.queue.items()) == self.request:
            self.enter()


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Hasty, "property failed: at most one node is inside: "),
        (Proud, "at most one node is inside"),
        (ByAge, "property failed: requests are granted in their order: "),
        (Forgetful, "property failed: every node was inside as often as it wanted: "),
        (Chatty, r"property failed: each entry takes 3 \(n - 1\) messages: 12 entries took 144 messages"),
    ],
)
def test_properties_notice(node: type[LamportMutex], text: str) -> None:
    with pytest.raises(Violation, match=text):
        tried(broken(node), 0)
