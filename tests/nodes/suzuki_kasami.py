"""Suzuki and Kasami's mutual exclusion by a token, and two that are wrong: they need a very slow message to fail.

Who wants to be inside asks everybody else for the token, with the number of its request. The token knows the number of
the last request of each that was granted. Who has the token gives it to a node whose request is the one after that: an
older request, which has come late, was granted already.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.lamport_mutex import Contender, all_served, one_inside


class Request(Struct, frozen=True):
    sender: int
    number: int


class Token(Struct, frozen=True):
    granted: tuple[int, ...]
    queue: tuple[int, ...] = ()


class SuzukiKasami(Contender):
    """Mutual exclusion: who has the token may go inside."""

    def set_up(self) -> None:
        self.asked = [0] * self.num_nodes
        self.token = Token((0,) * self.num_nodes) if self.id == 0 else None

    def ask(self) -> None:
        self.asked[self.id] += 1
        if self.token is None:
            self.broadcast(Request(self.id, self.asked[self.id]))
        else:
            self.enter()

    def release(self) -> None:
        assert self.token is not None
        granted = tuple(self.asked[self.id] if node == self.id else it for node, it in enumerate(self.token.granted))
        others = (node for node in range(self.num_nodes) if node != self.id and node not in self.token.queue)
        queue = (*self.token.queue, *(node for node in others if self.asked[node] == granted[node] + 1))
        self.token = Token(granted, queue)
        if queue:
            self.pass_on(queue[0], queue[1:])

    def hear(self, message: Any, link: int) -> None:
        match message:
            case Request(sender, number):
                self.note(sender, number)
                if self.token is not None and not self.inside and self.is_due(sender):
                    self.pass_on(sender, self.token.queue)
            case Token():
                self.token = message
                self.enter()

    def note(self, sender: int, number: int) -> None:
        self.asked[sender] = max(self.asked[sender], number)

    def is_due(self, sender: int) -> bool:
        assert self.token is not None
        return self.asked[sender] == self.token.granted[sender] + 1

    def pass_on(self, node: int, queue: tuple[int, ...]) -> None:
        assert self.token is not None
        token, self.token = Token(self.token.granted, queue), None
        self.send(token, node if node < self.id else node - 1)


class Undiscerning(SuzukiKasami):
    """Gives the token to a node whose request was granted already."""

    def is_due(self, sender: int) -> bool:
        return True


class Forgetful(SuzukiKasami):
    """Takes the request that has come last for the newest."""

    def note(self, sender: int, number: int) -> None:
        self.asked[sender] = number


def algorithm(node: type[SuzukiKasami]) -> Algorithm:
    return Algorithm(
        name="suzuki-kasami",
        node=node,
        topology="clique:4",
        properties=(one_inside, all_served),
        least={"nodes": 2, "rounds": 1},
    )
