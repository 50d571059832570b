"""Chandy and Lamport's snapshot: a picture of a system that goes on moving.

The system is a bank. Every node has money, and now and then sends a random part of it to a random neighbor. How much is
there altogether? Asking all nodes at the same moment isn't possible, and asking one after the other counts money twice
that has moved in between, or misses it while it is under way.

One node begins: it records its own balance, sends a marker over each of its links, and from then on records what comes
in by each link, until a marker comes in by it. A node that gets a marker for the first time does the same; the link by
which the marker came has nothing more to record. A node that has a marker from every neighbor is done. No node stops
paying.

The marker on a link stands between what its sender paid before recording its balance and what it paid after. Links must
be FIFO, so the node that gets it has got all of the former and none of the latter, and has recorded its own balance by
then: no payment is in the picture at the receiver that isn't at the sender. What the sender paid before and the
receiver got after is just what the receiver records for the link. So the recorded balances and links together make a
state in which the system may never have been at any one time, but which it could have passed through, and no money is
missing.

Two markers go over every link, one each way, and the last node is done when the slowest of them has arrived. Nothing
may get lost, no node may crash, and every node must be within reach of the one that begins.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.model.reading import as_time
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_node
from worldline.nodes.node import Event, Node, Protocol, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end


class Payment(Struct, frozen=True):
    """Money on its way."""

    amount: int


class Marker(Struct, frozen=True):
    """What came before it belongs into the picture; what comes after it doesn't."""


class ChandyLamport(Node):
    """A snapshot while money moves: markers part what was sent before it from what was sent after."""

    def __init__(
        self,
        *given: Any,
        initiator: int = 0,
        at: str = "1s",
        money: int = 100,
        payments: int = 10,
        pause: str = "500ms",
    ) -> None:
        super().__init__(*given)
        self.initiator = demand_node(self, initiator, "begin")
        self.at = as_time(at)
        self.money = self.balance = money
        self.payments = payments
        self.pause = as_time(pause, "a pause")
        # The books: all amounts that went out and came in by each link. Only those who audit the node read them.
        self.paid: list[list[int]] = [[] for _ in range(self.num_neighbors)]
        self.got: list[list[int]] = [[] for _ in range(self.num_neighbors)]
        # The picture
        self.recorded: int | None = None
        self.on_links: list[list[int]] = [[] for _ in range(self.num_neighbors)]
        self.open: list[int] = []  # Links whose marker hasn't come.

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self._wait()
                if self.id == self.initiator:
                    self.set_timer(self.at, "snapshot")
            case Timer("pay"):
                self._pay()
                self._wait()
            case Timer("snapshot"):
                self.record()
            case Protocol(Payment(amount), link):
                self.balance += amount
                self.got[link].append(amount)
                if link in self.open:
                    self.on_links[link].append(amount)
            case Protocol(Marker(), link):
                self.mark(link)

    # -- The bank

    def _wait(self) -> None:
        if self.payments:
            self.set_timer(1 + self.random.randrange(1 + self.pause), "pay")

    def _pay(self) -> None:
        self.payments -= 1
        if self.balance and self.num_neighbors:
            link = self.random.randrange(self.num_neighbors)
            amount = 1 + self.random.randrange(self.balance)
            self.balance -= amount
            self.paid[link].append(amount)
            self.send(Payment(amount), link)

    # -- The snapshot

    def record(self) -> None:
        """Record the own balance; from now on, what comes in was under way."""
        self.recorded = self.balance
        self.open = list(self.links)
        self.log(f"has {self.balance}")
        self.broadcast(Marker())

    def mark(self, link: int) -> None:
        """Take note of a marker: nothing that comes behind it belongs into the picture."""
        if self.recorded is None:
            self.record()
        self.open.remove(link)
        if not self.open:
            self.log(f"is done; {self.recorded} were here, and under way {self.on_links}")


# -- What must hold. The cut is where each node was when it recorded its balance, link by link: how many payments it had
# made and got by then.

Cut = dict[int, tuple[list[int], list[int]]]


def note(run: Scheduler, cut: Cut) -> bool:
    """Look at the node that has acted; return whether it has just recorded. In that event, it neither pays nor gets."""
    if run.last is None or run.last in cut or run.node(run.last).recorded is None:
        return False
    node = run.node(run.last)
    cut[node.id] = [len(amounts) for amounts in node.paid], [len(amounts) for amounts in node.got]
    return True


def bounds(run: Scheduler, cut: Cut, sender: int, receiver: int) -> tuple[int, int]:
    """Return how many payments from one to another were received, and how many sent, before the cut."""
    neighbors = run.topology.neighbors
    return cut[receiver][1][neighbors[receiver].index(sender)], cut[sender][0][neighbors[sender].index(receiver)]


@always("no payment is received before the cut and sent after it")
def consistent(run: Scheduler, cut: Cut) -> bool:
    if note(run, cut) and run.last is not None:
        for other in run.topology.neighbors[run.last]:
            for sender, receiver in ((run.last, other), (other, run.last)) if other in cut else ():
                received, sent = bounds(run, cut, sender, receiver)
                assert received <= sent, f"{receiver} had got {received} payments of {sender}, which had made {sent}"
    return True


@always("what is recorded for a link is what crosses the cut on it")
def crossing(run: Scheduler, cut: Cut) -> bool:
    """Compare what was sent before the cut and received after it, as soon as a node is done with a link."""
    note(run, cut)
    for node in run.acted:
        for link, sender in enumerate(run.topology.neighbors[node.id]):
            if node.recorded is not None and link not in node.open:
                assert sender in cut, f"{node.id} takes all of {sender} for recorded, which hasn't begun"
                received, sent = bounds(run, cut, sender, node.id)
                made = run.node(sender).paid[run.topology.neighbors[sender].index(node.id)]
                assert node.on_links[link] == made[received:sent], (
                    f"from {sender} to {node.id} {made[received:sent]} were under way, not {node.on_links[link]}"
                )
    return True


@at_end("every node within reach has recorded itself and all of its links")
def complete(run: Scheduler) -> bool:
    initiator = run.node(0).initiator
    for node in map(run.node, run.topology.component(initiator)):
        assert node.recorded is not None, f"{node.id} has recorded nothing"
        assert not node.open, f"{node.id} goes on recording"
    return True


@at_end("no money is missing in the picture, nor too much")
def conserved(run: Scheduler) -> bool:
    pictured = [node for node in run.nodes if node.recorded is not None]
    there = sum(node.money for node in pictured)
    found = sum(node.recorded + sum(map(sum, node.on_links)) for node in pictured)
    assert found == there, f"there are {there}, and {found} in the picture"
    return True


@at_end("the bank isn't disturbed: every payment is made, and arrives once")
def undisturbed(run: Scheduler) -> bool:
    for node in run.nodes:
        assert not node.payments, f"{node.id} hasn't made {node.payments} of its payments"
        by_the_books = node.money - sum(map(sum, node.paid)) + sum(map(sum, node.got))
        assert node.balance == by_the_books, f"{node.id} has {node.balance}, and by its books {by_the_books}"
        for link, neighbor in enumerate(run.topology.neighbors[node.id]):
            got = run.node(neighbor).got[run.topology.neighbors[neighbor].index(node.id)]
            assert got == node.paid[link], f"{node.id} has paid {node.paid[link]} to {neighbor}, which got {got}"
    return True


model = Algorithm(
    name="chandy-lamport",
    node=ChandyLamport,
    topology="grid:2x3",
    properties=(consistent, crossing, complete, conserved, undisturbed),
    fifo=True,
    least={"nodes": 1, "initiator": 0, "money": 1, "payments": 1},
)
