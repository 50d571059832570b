"""Channels for radio stations: who can hear each other must not send on the same one.

Every station tells its neighbors its id, and waits for all neighbors with higher ids to choose. Then it takes a
channel at random that none of these has, and tells its neighbors. A station with d neighbors finds one among d + 1
channels, since at most d are taken. No station waits for ever, since none waits in a circle: a station that waits has
the lower id. Two neighbors don't take the same channel: the one with the lower id knows what the other has.

Who lacks something asks for it again, second by second. So messages may get lost and overtake each other, links may go
down, and stations may crash, if all is well again in the end. The channel is stable: a station that forgot it would
choose again, and could take what a lower neighbor has chosen in the meantime.

It is what docs/first-algorithm.md arrives at.
"""

from __future__ import annotations

from msgspec import Struct

from worldline.nodes import Event, Node, Protocol, Recover, Scheduler, Start, Timer, always, at_end
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.node import Send


class Here(Struct, frozen=True):
    """What a station tells its neighbors of itself."""

    id: int
    channel: int | None


class Ask(Struct, frozen=True):
    """Please tell me who you are, and your channel."""


class Station(Node):
    """Channels for radio stations: higher ids choose first, and none takes what a neighbor has."""

    stable = ("channel",)

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send) -> None:  # noqa: A002
        super().__init__(num_nodes, id, num_neighbors, send)
        self.heard: dict[int, Here] = {}  # By link, what the neighbor there has told of itself.
        self.channel: int | None = None

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.broadcast(self.here())
                self.set_timer("1s", "ask")
            case Recover() | Timer():
                self.ask()
            case Protocol(Ask(), link):
                self.send(self.here(), link)
            case Protocol(Here() as here, link):
                if here.channel is not None or link not in self.heard:  # It may be older than what is known.
                    self.heard[link] = here
        self.choose()

    def here(self) -> Here:
        return Here(self.id, self.channel)

    def ask(self) -> None:
        """Ask those whose answer is missing, again and again."""
        if self.channel is None:
            for link in self.links:
                if link not in self.heard or self.waits_for(self.heard[link]):
                    self.send(Ask(), link)
            self.set_timer("1s", "ask")

    def waits_for(self, here: Here) -> bool:
        return here.id > self.id and here.channel is None

    def choose(self) -> None:
        if self.channel is not None or len(self.heard) < self.num_neighbors:
            return
        if not any(map(self.waits_for, self.heard.values())):
            taken = [here.channel for here in self.heard.values() if here.id > self.id]
            free = [channel for channel in range(self.num_neighbors + 1) if channel not in taken]
            self.channel = self.random.choice(free)
            self.log(f"takes channel {self.channel}")
            self.broadcast(self.here())


@always("no two neighbors have the same channel")
def apart(run: Scheduler) -> bool:
    for node in run.nodes if run.last is None else [run.node(run.last)]:
        for neighbor in run.topology.neighbors[node.id]:
            same = node.channel is not None and node.channel == run.node(neighbor).channel
            assert not same, f"{node.id} and {neighbor} are on channel {node.channel}"
    return True


class NeverChanges:
    """Remembers what every station has chosen."""

    def __init__(self) -> None:
        self.chosen: dict[int, int] = {}

    def __call__(self, run: Scheduler) -> bool:
        for node in run.nodes if run.last is None else [run.node(run.last)]:
            if node.channel is not None:
                before = self.chosen.setdefault(node.id, node.channel)
                assert node.channel == before, f"{node.id} was on channel {before} and is on {node.channel}"
        return True


@at_end("every station has a channel")
def served(run: Scheduler) -> bool:
    without = [node.id for node in run.up if node.channel is None]
    assert not without, f"{without} have none"
    return True


model = Algorithm(
    name="channels",
    node=Station,
    topology="line:3",
    properties=(apart, always("no station changes its channel")(NeverChanges), served),
    faults="crash,partition,link,loss",
)
