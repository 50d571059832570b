"""Nodes that tests let loose on the simulator, and ways to run them. Workers load this, so it needs no test tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from worldline.model.errors import ConfigurationError
from worldline.nodes.faults import Fault, check_faults
from worldline.nodes.node import Event, NeighborAdded, Node, Protocol, Recover, Send, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.topology import Topology


class Listener(Node):
    """Tells everybody "hello" when it starts, and remembers what happens to it."""

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send) -> None:  # noqa: A002
        super().__init__(num_nodes, id, num_neighbors, send)
        self.seen: list[tuple[int, str]] = []

    def execute(self, event: Event) -> None:
        self.seen.append((self.now, f"{event.message} by {event.link}" if isinstance(event, Protocol) else str(event)))
        if isinstance(event, Start):
            self.broadcast("hello")


class Eager(Listener):
    """Speaks whenever anything happens that isn't a message."""

    def execute(self, event: Event) -> None:
        super().execute(event)
        if not isinstance(event, Protocol | Start):
            self.broadcast(f"{self.id} after {event}")


class Ticker(Listener):
    """Speaks every 100 ms, for ever."""

    def execute(self, event: Event) -> None:
        match event:
            case Start() | Recover():
                self.set_timer("100ms", "tick")
            case Timer():
                self.broadcast(f"tick {self.now // 10**8}")
                self.set_timer("100ms", "tick")
            case _:
                super().execute(event)


class Chatter(Node):
    """Does whatever comes into its mind, as often as its patience lasts."""

    stable = ("lives",)

    def __init__(
        self,
        num_nodes: int,
        id: int,  # noqa: A002
        num_neighbors: int,
        send: Send,
        *,
        patience: int = 8,
    ) -> None:
        super().__init__(num_nodes, id, num_neighbors, send)
        self.patience = patience
        self.lives = 1
        self.seen: list[str] = []

    def execute(self, event: Event) -> None:
        self.seen.append(str(event))
        if isinstance(event, Recover):
            self.lives += 1
        if isinstance(event, NeighborAdded):
            self.send(["new", event.link], event.link)
        if not self.patience:
            return
        self.patience -= 1
        draw = self.random
        for number in range(draw.randrange(3)):
            if self.links:
                self.send({"from": self.id, "number": number, "odds": draw.random()}, draw.choice(self.links))
        if draw.random() < 0.5:
            self.set_timer(draw.randrange(500_000_000), draw.choice(("a", "b", "")))
        if draw.random() < 0.2:
            self.cancel_timer("a")
        self.log(f"{self.patience} more")


class Plain:
    """A node that derives from nothing."""

    stable = ("total",)

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send, *, first: int = 1) -> None:  # noqa: A002
        self.id = id
        self.total = first
        self.links = range(num_neighbors)
        self.send = send

    def execute(self, event: Event) -> None:
        if isinstance(event, Start):
            for link in self.links:
                self.send(self.id, link)
        elif isinstance(event, Protocol):
            self.total += event.message + 1


def started(topology: Topology | str, node: Callable[..., Any], **options: Any) -> Scheduler:
    """Return a run that is about to begin."""
    run = Scheduler.over(topology, node, **options)
    run.start_all_nodes()
    return run


def pair(node: Callable[..., Any], **options: Any) -> Scheduler:
    """Return a run of two nodes with a link, a second long, that is about to begin."""
    return started("line:2", node, **{"link": "1s", **options})


def ran(topology: Any, node: Callable[..., Any], *, until: str | None = None, **options: Any) -> Scheduler:
    """Return a run that is over, or has come to a time."""
    run = started(topology, node, **options)
    run.run(until)
    return run


def ran_pair(node: Callable[..., Any], *, until: str | None = None, **options: Any) -> Scheduler:
    """Return a run of two nodes, as of `pair`, that is over, or has come to a time."""
    run = pair(node, **options)
    run.run(until)
    return run


def legal(faults: Iterable[Fault], topology: Topology) -> tuple[Fault, ...]:
    """Return those faults that can be done one after the other."""
    found: list[Fault] = []
    for each in sorted(faults):
        try:
            check_faults((*found, each), topology)
        except ConfigurationError:
            continue
        found.append(each)
    return tuple(found)


def chat(executor: str) -> tuple[str, list[Any]]:
    """Run chatters under all kinds of faults, and return the digest and what became of the nodes."""
    run = started(
        "ring:8",
        Chatter,
        seed=3,
        link="uniform(50ms, 1s)",
        parameters={"patience": 12},
        on_link_down="keep",
        faults=[
            *("500ms partition 0 1 2", "700ms down 0 1", "900ms add 0 4", "1s crash 1", "1200ms up 0 1"),
            *("1500ms repair", "2s recover 1", "3s remove 4 5"),
        ],
    )
    result = run.run(executor=executor)
    return result.digest.hex(), [(node.id, node.lives, node.patience, node.seen) for node in run.nodes]
