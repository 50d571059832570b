"""The host: the kernel's entity that a node lives in. It has the links, and does to the node what faults ask for.

All that it knows is its own: two hosts meet only in messages, so they can be on different workers. What goes wrong is
told to every host that it concerns, from outside, for the same moment.

Invariants
----------
H1. A node that is down executes nothing: messages to it are dropped, its timers are gone.
H2. What a link that is down should have carried is dropped, or kept until it is up, as configured; that is judged
    where it arrives, from when it was sent. What is sent into a link that is down, or over a partition, is lost.
H3. `_is_calm` says that nothing has gone wrong yet and nobody watches. Once there is a node, `_is_plain` says the same,
    and messages take the short way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from traceback import extract_tb
from typing import Any, NamedTuple
from typing import Protocol as Interface

from worldline.kernel.build import Draws
from worldline.kernel.entity import Entity
from worldline.kernel.roster import described
from worldline.model.errors import ModelError, WorldlineError, shown
from worldline.model.latency import Latency, Uniform
from worldline.model.links import Link
from worldline.model.path import Path
from worldline.model.reading import as_time
from worldline.model.time import TimeLike
from worldline.nodes.events import (
    Event,
    LinkDown,
    LinkUp,
    NeighbourAdded,
    NeighbourRemoved,
    Protocol,
    Recover,
    Start,
    Timer,
)
from worldline.nodes.node import Executes, Node
from worldline.nodes.script import Script
from worldline.nodes.trace import Record, plain

DOWN = "the node is down"
LINK_DOWN = "the link is down"
PARTITIONED = "sent into a partition"
UNDERWAY = "the link went down on the way"
REMOVED = "the link is gone"
LOST = "lost"

_MESSAGE = "message"


class Watch(Interface):
    """Sees what happens at all hosts, in the one order."""

    traces: bool

    def record(self, record: Record, /) -> None: ...
    def executed(self, node: int, /) -> None: ...


class Setting(NamedTuple):
    """What all hosts of a run have in common."""

    num_nodes: int
    seed: int
    make: Callable[..., Executes]
    parameters: Mapping[str, Any]
    over: Link  # What links are that nobody has said anything else about.
    keeps: bool  # What is under way on a link that goes down, until it is up again.
    script: Script | None
    watch: Watch | None


def name_of(node: int, num_nodes: int) -> str:
    """Return the name of a node's host: with zeros in front, so that names have the order of numbers."""
    return f"{node:0{len(str(num_nodes - 1))}d}"


class End:
    """One end of a link: what its node sends goes in here."""

    __slots__ = (
        "delay",
        "fifo",
        "given",
        "held",
        "is_cut",
        "is_gone",
        "is_up",
        "last",
        "link",
        "name",
        "neighbour",
        "number",
        "opened",
        "path",
        "weight",
        "went_down",
    )

    def __init__(self, setting: tuple[int, int], node: int, neighbour: int, link: int, over: Link, weight: int) -> None:
        """`setting` is the number of nodes and the seed."""
        num_nodes, seed = setting
        self.given = (setting, node, neighbour, link, over, weight)
        self.neighbour = neighbour
        self.link = link
        self.weight = weight
        self.name = name_of(neighbour, num_nodes)
        self.is_up = True
        self.is_cut = self.is_gone = False
        self.fifo = over.fifo
        self.last = 0  # Arrival of the last message, as far as a script decides it.
        self.number = -1
        self.opened = 0
        self.went_down = -1
        self.held: list[tuple[Any, int]] = []
        own = name_of(node, num_nodes)
        # A link that only delays takes one compiled draw a message; losses, order and the like take the whole path.
        self.path = None if over == Link(latency=over.latency) else Path(over, seed, _MESSAGE, own, self.name)
        self.delay = _drawing(over.latency, Draws(seed, "latency", own, self.name))

    def __reduce__(self) -> tuple[Any, ...]:
        return End, self.given  # Hosts are sent to workers before anything has happened.


def _drawing(latency: Latency, draws: Draws) -> Callable[[], int]:
    """Return what draws the next latency."""
    if isinstance(latency, Uniform):
        return partial(draws.spread, latency.minimum, latency.maximum - latency.minimum + 1)
    return lambda: latency.draw(draws.getrandbits(64))


class Host(Entity):
    """A node's surroundings."""

    __slots__ = (
        "_by_name",
        "_ends",
        "_execute",
        "_is_calm",
        "_is_plain",
        "_numbered",
        "_setting",
        "_timers",
        "id",
        "is_up",
        "node",
    )

    def __init__(self, setting: Setting, node: int, ends: list[End]) -> None:
        self.id = node
        self.is_up = True
        self.node: Executes | None = None
        self._setting = setting
        self._ends = dict(enumerate(ends))  # Those that there are, by their local ids.
        self._numbered = len(ends)
        self._by_name = {end.name: end for end in ends}
        self._timers: dict[str, Any] = {}
        self._is_calm = setting.watch is None and setting.script is None and not any(end.path for end in ends)
        self._is_plain = False
        self._execute: Callable[[Event], None] | None = None

    # -- The node

    def create_node(self) -> Executes:
        """Return the node, which is made when it is needed first: in the worker, if there are workers."""
        if self.node is None:
            self.node = self._made()
            self._execute = self.node.execute
            self._is_plain = self._is_calm
        return self.node

    def forget_node(self) -> None:
        """Let the node be made anew where the host is taken to."""
        self.node = self._execute = None

    def _made(self) -> Executes:
        setting = self._setting
        node = setting.make(setting.num_nodes, self.id, self._numbered, self.transmit, **setting.parameters)
        if not callable(getattr(node, "execute", None)):
            raise ModelError(f"{type(node).__name__} has no execute(event)", advice="derive it from Node")
        if isinstance(node, Node):
            node._surroundings = self
        return node

    def _act(self, event: Event, record: Record | None = None) -> None:
        """Let the node execute an event."""
        watch = self._setting.watch
        if watch is None:
            self._let_execute(event)
            return
        if watch.traces:
            watch.record(
                record or Record(at=self.now, kind="received", node=self.id, text=str(event), what=_kind(event))
            )
        self._let_execute(event)
        watch.executed(self.id)

    def _let_execute(self, event: Event) -> None:
        try:
            self.create_node()
            self._execute(event)  # type: ignore[misc]
        except Exception as error:
            raise self._blamed(error, event) from error

    def _blamed(self, error: Exception, event: Event) -> WorldlineError:
        if isinstance(error, WorldlineError):
            return error.concerning(f"node {self.id}", self.now)
        place = next((frame for frame in reversed(extract_tb(error.__traceback__)) if frame.filename != __file__), None)
        where = f", in line {place.lineno} of {place.filename}" if place is not None else ""
        doing = f"on {shown(event.message)}" if isinstance(event, Protocol) else f"on {event}"
        return ModelError(f"{doing} it raised {described(error)}{where}", participant=f"node {self.id}", at=self.now)

    # -- What the node does

    def transmit(self, message: Any, link: int) -> None:
        """Send a message over a local link. This is the node's `send`."""
        try:
            end = self._ends[link]
        except (KeyError, TypeError):
            raise self._no_link(link) from None
        if self._is_plain:
            self.send(end.name, _MESSAGE, message, delay=end.delay())
        else:
            self._transmit(message, end)

    def _transmit(self, message: Any, end: End) -> None:
        end.number += 1
        delays, reason = self._delays(message, end)
        for delay in delays:
            self.send(end.name, _MESSAGE, message, delay=delay)
        watch = self._setting.watch
        if watch is not None and watch.traces:
            arrivals = tuple(self.now + delay for delay in delays)
            watch.record(
                Record(
                    at=self.now,
                    kind="sent",
                    node=self.id,
                    peer=end.neighbour,
                    link=end.link,
                    text=str(message),
                    what=type(message).__name__,
                    arrivals=arrivals,
                    reason=reason,
                    data=plain(message),
                )
            )

    def _delays(self, message: Any, end: End) -> tuple[tuple[int, ...], str]:
        """Return how long a message is under way, and its copy; or why it isn't."""
        if not end.is_up:
            return (), LINK_DOWN
        if end.is_cut:
            return (), PARTITIONED
        script = self._setting.script
        if script is not None:
            delays = script.delays((self.id, end.neighbour, end.number))
            if end.fifo and delays:
                end.last = max(end.last, self.now + delays[0])
                delays = (end.last - self.now, *delays[1:])
            return delays, "" if delays else LOST
        if end.path is None:
            return (end.delay(),), ""
        size = len(str(message).encode()) if end.path.queues else 0
        arrivals, lost = end.path.carry(self.now, end.number, size)
        return (() if lost else tuple(arrival - self.now for arrival in arrivals)), lost or ""

    def _no_link(self, link: object) -> ModelError:
        there = ", ".join(map(str, self._ends))
        advice = f"it has the links {there}" if there else "it has no links"
        return ModelError(f"it has no link {shown(link)}", advice=advice)

    def log(self, text: object) -> None:
        watch = self._setting.watch
        if watch is not None and watch.traces:
            watch.record(Record(at=self.now, kind="logged", node=self.id, text=str(text)))

    def set_timer(self, delay: TimeLike, name: str = "") -> None:
        if not isinstance(name, str):
            raise ModelError(f"{shown(name)} isn't a name for a timer", advice="name it by a text")
        self.cancel_timer(name)
        self._timers[name] = self.schedule("timer", name, delay=as_time(delay, "a delay"))

    def cancel_timer(self, name: str = "") -> bool:
        timer = self._timers.pop(name, None)
        return timer is not None and self.cancel(timer)

    def weight(self, link: int) -> int:
        if link not in self._ends:
            raise self._no_link(link)
        return self._ends[link].weight

    @property
    def links(self) -> list[int]:
        return list(self._ends)

    # -- What happens to it; these are the handlers of the kernel's messages

    def on_begin(self, _: None) -> None:
        if self.is_up:
            self._act(Start())

    def on_message(self, message: Any) -> None:
        end = self._by_name[self.sender]
        if self._is_plain:
            event = Protocol(message, end.link)
            try:
                self._execute(event)  # type: ignore[misc]
            except Exception as error:
                raise self._blamed(error, event) from error
        else:
            self._receive(end, message, self.sent_at)

    def _receive(self, end: End, message: Any, sent: int) -> None:
        reason = ""
        if not self.is_up:
            reason = DOWN
        elif end.is_gone or sent < end.opened:
            reason = REMOVED
        elif not self._setting.keeps and sent <= end.went_down:
            reason = UNDERWAY
        elif not end.is_up:
            end.held.append((message, sent))
            return
        watch = self._setting.watch
        record = None
        if watch is not None and watch.traces:
            record = Record(
                at=self.now,
                kind="dropped" if reason else "received",
                node=self.id,
                peer=end.neighbour,
                link=end.link,
                text=str(message),
                what=type(message).__name__,
                sent=sent,
                reason=reason,
            )
            if reason:
                watch.record(record)
        if not reason:
            self._act(Protocol(message, end.link), record)

    def on_timer(self, name: str) -> None:
        del self._timers[name]
        self._act(Timer(name))

    def on_crash(self, _: None) -> None:
        if not self.is_up:
            return
        self._is_calm = self._is_plain = False
        self.is_up = False
        for timer in self._timers.values():
            self.cancel(timer)
        self._timers.clear()
        watch = self._setting.watch
        if watch is not None and watch.traces:
            watch.record(Record(at=self.now, kind="received", node=self.id, text="Crash", what="Crash"))

    def on_recover(self, _: None) -> None:
        if self.is_up:
            return
        self.is_up = True
        lost = self.node
        self.node = self._made()
        self._execute = self.node.execute
        for name in getattr(self.node, "stable", ()):
            if lost is not None:
                setattr(self.node, name, getattr(lost, name))
        self._act(Recover())

    def on_down(self, neighbour: int) -> None:
        end = self._end(neighbour)
        if end is None or not end.is_up:
            return
        end.is_up = False
        end.went_down = self.now
        self._tell(LinkDown(end.link))

    def on_up(self, neighbour: int) -> None:
        end = self._end(neighbour)
        if end is None or end.is_up:
            return
        end.is_up = True
        self._tell(LinkUp(end.link))
        held, end.held = end.held, []
        for message, sent in held:
            self._receive(end, message, sent)

    def on_add(self, added: tuple[int, int]) -> None:
        """Take a new link; one to a neighbour that was removed before gets a new number too."""
        neighbour, weight = added
        setting = self._setting
        key = (setting.num_nodes, setting.seed)
        end = End(key, self.id, neighbour, self._numbered, setting.over, weight)
        end.opened = self.now
        self._ends[end.link] = end
        self._numbered += 1
        self._by_name[end.name] = end
        if isinstance(self.node, Node):
            self.node.num_neighbors = self._numbered
        self._tell(NeighbourAdded(end.link))

    def on_remove(self, neighbour: int) -> None:
        end = self._end(neighbour)
        if end is None:
            return
        end.is_gone = True
        del self._ends[end.link]
        self._tell(NeighbourRemoved(end.link))

    def on_partition(self, group: tuple[int, ...]) -> None:
        """Cut the links to the other side; nobody is told."""
        self._is_calm = self._is_plain = False
        for end in self._ends.values():
            end.is_cut = end.is_cut or (end.neighbour in group) != (self.id in group)
        self._note_for_all(f"Partition {' '.join(map(str, group))}")

    def on_repair(self, _: None) -> None:
        for end in self._ends.values():
            end.is_cut = False
        self._note_for_all("Repair")

    def _tell(self, event: Event) -> None:
        self._is_calm = self._is_plain = False
        if self.is_up:
            self._act(event)

    def _end(self, neighbour: int) -> End | None:
        self._is_calm = self._is_plain = False
        end = self._by_name.get(name_of(neighbour, self._setting.num_nodes))
        return None if end is None or end.is_gone else end

    def _note_for_all(self, text: str) -> None:
        """Write down what all hosts are told at once; one of them does it."""
        watch = self._setting.watch
        if self.id == 0 and watch is not None and watch.traces:
            watch.record(Record(at=self.now, kind="happened", text=text, what=text.partition(" ")[0]))


def _kind(event: Event) -> str:
    return type(event).__name__
