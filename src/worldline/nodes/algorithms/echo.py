"""The echo algorithm: a wave that comes back.

The initiator sends a wave to all of its neighbors. A node that it reaches for the first time remembers the link as the
one to its parent, and sends the wave on over all other links. Every node then waits until something has come in by each
of these other links. That is either an echo, of a neighbor whose parent it is, or the wave itself, of one that was
reached by another node; each counts as that neighbor's answer. When it has all answers, it sends its own echo to its
parent. The initiator has no parent: when it has all answers, it decides.

Echoes add up: each says how many nodes there are below and including its sender, the wave says none. So what the
initiator decides is the number of nodes that it can reach.

Parents form a tree, since each was reached before its children were, and every node that can be reached is in it.
Echoes go from its leaves to its root. When the initiator decides, every node has been reached, has got all that it will
ever get, and has echoed: its decision is the last that happens. Over each of the m links goes one message in each
direction, which makes 2m. They may overtake each other; none may get lost, or the initiator waits for ever.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_messages, demand_node
from worldline.nodes.node import Event, Node, Protocol, Start
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end


class Wave(Struct, frozen=True):
    """Goes out from the initiator."""

    def __str__(self) -> str:
        return "[wave]"


class Echo(Struct, frozen=True):
    """Comes back to it."""

    size: int

    def __str__(self) -> str:
        return f"[echo = {self.size}]"


class EchoNode(Node):
    """Counting all nodes: a wave goes out from the initiator and comes back, and then it decides."""

    shows = ("parent", "size")

    def __init__(self, *given: Any, initiator: int = 0) -> None:
        super().__init__(*given)
        self.initiator = demand_node(self, initiator, "begin")
        self.parent: int | None = None  # A local link.
        self.size = 1  # Of the tree below, as far as is known, itself included.
        self.answers_missing = self.num_neighbors
        self.decisions: list[int] = []

    def execute(self, event: Event) -> None:
        match event:
            case Start() if self.id == self.initiator:
                self._send_wave()
                self._finish_if_all_have_answered()
            case Protocol(message, link):
                if self.id != self.initiator and self.parent is None:
                    self.parent = link
                    self.log(f"has its parent at link {link}")
                    self._send_wave()
                self._count_answer(message)
                self._finish_if_all_have_answered()

    def _send_wave(self) -> None:
        self.broadcast(Wave(), but=self.parent)

    def _count_answer(self, message: Wave | Echo) -> None:
        self.answers_missing -= 1  # The parent's wave counts too: it owes no other answer.
        if isinstance(message, Echo):
            self.size += message.size

    def _finish_if_all_have_answered(self) -> None:
        if self.answers_missing:
            return
        if self.parent is not None:
            self.send(Echo(self.size), self.parent)
        else:
            self.decisions.append(self.size)
            self.log(f"decides: there are {self.size} nodes")

    def route(self, root: int) -> tuple[int | None, int | None]:
        return self.parent, None


@always("the initiator decides last")
def decides_last(run: Scheduler, settled: dict[int, tuple[object, ...]]) -> bool:
    """Look whether only the initiator decides, when all nodes have been reached, and none does anything after that."""
    initiator = run.node(0).initiator
    for node in run.acted:
        assert node.id == initiator or not node.decisions, f"{node.id} has decided"
        assert settled.get(node.id, _doings(node)) == _doings(node), f"{node.id} goes on after the decision"
    if run.node(initiator).decisions and not settled:
        for member in run.topology.component(initiator):
            node = run.node(member)
            assert member == initiator or node.parent is not None, f"{member} wasn't reached before the decision"
            settled[member] = _doings(node)
    return True


def _doings(node: EchoNode) -> tuple[object, ...]:
    return node.parent, node.size, node.answers_missing, tuple(node.decisions)


@at_end("the initiator decides once, for the number of nodes that it can reach")
def right_count(run: Scheduler) -> bool:
    initiator = run.node(run.node(0).initiator)
    size = len(run.topology.component(initiator.id))
    assert initiator.decisions == [size], f"there are {size}, and it decides {initiator.decisions}"
    return True


@at_end("parents form a tree of all who can be reached, with the initiator as its root")
def spanning_tree(run: Scheduler) -> bool:
    root = run.node(0).initiator
    parents = {node.id: run.topology.neighbors[node.id][node.parent] for node in run.nodes if node.parent is not None}
    assert sorted((root, *parents)) == run.topology.component(root), f"these have parents: {sorted(parents)}"
    for node in parents:
        ancestor = node
        for _ in parents:
            ancestor = parents.get(ancestor, root)
        assert ancestor == root, f"the parents of {node} don't lead to {root}"
    return True


@at_end("there are 2m messages")
def messages(run: Scheduler) -> bool:
    expected = 2 * run.topology.edges_within(run.topology.component(run.node(0).initiator))
    return demand_messages(run, expected, expected)


model = Algorithm(
    name="echo",
    node=EchoNode,
    topology="random:12,degree=3",
    properties=(decides_last, right_count, spanning_tree, messages),
    least={"nodes": 1, "initiator": 0},
)
