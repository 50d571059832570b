"""The host: the kernel's entity that a node lives in. It has the links, and does to the node what faults ask for.

All that it knows is its own: two hosts meet only in messages, so they can be on different workers. What goes wrong is
told to every host that it concerns, from outside, for the same moment.

Invariants
----------
H1. A node that is down executes nothing: messages to it are dropped, its timers are gone.
H2. What a link that is down should have carried is dropped, or kept until it is up, as configured; that is judged
    where it arrives, from when it was sent. What is sent into a link that is down, or over a partition, is lost.
H3. `_is_calm` says that nothing has gone wrong yet and there is no observer. Once there is a node, `_is_plain` says the
    same, and messages take the short way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import iscoroutinefunction, isgeneratorfunction
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn

from worldline.history.observer import LOG, META, OUTSIDE, STATE, Observer
from worldline.history.plain import encoded, plain
from worldline.kernel.draws import Draws
from worldline.kernel.entity import Entity
from worldline.kernel.packing import size_of
from worldline.model.blame import located, models, said_of
from worldline.model.errors import ConfigurationError, ModelError, ObserverFailure, WorldlineError, shown
from worldline.model.latency import Latency, Uniform
from worldline.model.lifecycle import DOWN_LINE, FAULT_LINE, UP_LINE
from worldline.model.links import Link
from worldline.model.path import Path
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, TimeLike
from worldline.nodes.node import (
    Event,
    Executes,
    LinkDown,
    LinkUp,
    Meta,
    NeighborAdded,
    NeighborRemoved,
    Node,
    NoHost,
    Protocol,
    Recover,
    Start,
    Timer,
)
from worldline.nodes.trace import LINK_DOWN, PARTITIONED, Deliveries, Kind, NodeRecord, said
from worldline.processes.failures import is_from_outside

DOWN = "the node is down"
UNDERWAY = "the link went down on the way"
REMOVED = "the link is gone"


class HostSetting(NamedTuple):
    """What all hosts of a run have in common."""

    num_nodes: int
    seed: int
    make: Callable[..., Executes]
    parameters: Mapping[str, Any]
    over: Link  # All links that aren't among the others.
    others: Mapping[tuple[int, int], Link]  # Those of single edges.
    keeps: bool  # What is under way on a link that goes down, until it is up again.
    script: Deliveries | None
    executed: Callable[[int], None] | None  # Is called with the id of a node after each of its events.

    def end(self, node: int, neighbor: int, link: int, weight: int) -> LinkEnd:
        """Make an end of a link, at a node: what goes to its neighbor goes in there."""
        over = self.others.get((min(node, neighbor), max(node, neighbor)), self.over)
        carrier = Carrier(self.num_nodes, self.seed, node, neighbor, over)
        return LinkEnd(carrier, name_of(neighbor, self.num_nodes), link, weight)


class NodeHost(Entity):
    """A node's surroundings."""

    _wl_tells_itself: ClassVar[bool] = True
    __slots__ = (
        "_by_name",
        "_ends",
        "_execute",
        "_groups",
        "_is_calm",
        "_is_plain",
        "_keeps_time",
        "_setting",
        "_state_told",
        "_timers",
        "_unsent",
        "acted_at",
        "id",
        "is_up",
        "node",
    )

    def __init__(self, setting: HostSetting, node: int, ends: list[LinkEnd]) -> None:
        self.id = node
        self.is_up = True
        self.node: Executes | None = None
        self._setting = setting
        self._ends = dict(enumerate(ends))  # Those that there are, by their local ids.
        self._by_name = {end.name: end for end in ends}
        self._groups: list[tuple[int, ...]] = []  # Who is cut off from all others, until the repair.
        self._state_told = b""
        self._timers = _Timers()
        self._unsent = 0  # How many messages haven't even set out.
        self._is_calm = (
            setting.executed is None and setting.script is None and all(end.carrier.only_delays for end in ends)
        )
        self._is_plain = False
        self._keeps_time = False
        self.acted_at = 0  # When a message has reached it last, or a timer has rung; by the short way only `keep_time`.
        self._execute: Callable[[Event], None] | None = None

    def __reduce__(self) -> Any:
        return NoHost, (self.id,)  # For what a node that comes back from a worker has of it.

    # -- The node

    def create_node(self) -> Executes:
        """Return the node, which is made when it is needed first: in the worker, if there are workers."""
        if self.node is None:
            self._take(self._made())
            self._is_plain = self._is_calm and self._wl_observer is None  # Perhaps another rank's.
        assert self.node is not None
        return self.node

    def forget_node(self) -> None:
        """Let the node be made anew where the host is taken to."""
        self.node = self._execute = None
        self._is_plain = self._keeps_time = False

    def keep_time(self) -> None:
        """Note when messages are executed that take the short way, too."""
        self._keeps_time = True
        if self.node is not None:
            self._take(self.node)

    def _take(self, node: Executes) -> None:
        self.node = node
        self._execute = self._timed if self._keeps_time else node.execute

    def _timed(self, event: Event) -> None:
        if type(event) is Protocol:
            self.acted_at = self.now
        self.node.execute(event)  # type: ignore[union-attr]

    def _made(self) -> Executes:
        setting = self._setting
        try:
            node = setting.make(setting.num_nodes, self.id, self._num_links, self.transmit, **setting.parameters)
            _check_executes(node)
        except BaseException as error:
            if is_from_outside(error):
                raise
            blame(error, self.id, self.now, None)
        if isinstance(node, Node):
            node._host = self
        return node

    def disturb(self) -> None:
        """Take the long way from now on: something goes wrong, or there is an observer."""
        self._is_calm = self._is_plain = False

    def _act(self, event: Meta) -> None:
        """Let the node execute what the simulator does to it."""
        tell_text(self, "received", event, type(event).__name__)
        self._let_execute(event)
        self._has_executed()

    def _has_executed(self) -> None:
        if self._wl_observer is not None and self.is_up:
            self._tell_state(self._wl_observer)
        if self._setting.executed is not None:
            self._setting.executed(self.id)

    def _tell_state(self, observer: Observer) -> None:
        """Tell what the node shows of itself, if that has changed."""
        names = getattr(self.node, "shows", ())
        if not names:
            return
        state = encoded({name: getattr(self.node, name, None) for name in names})
        if state != self._state_told:
            self._state_told = state
            observer.noted(self.name, STATE, self.now, state)

    def _let_execute(self, event: Event) -> None:
        self.create_node()
        try:
            self._execute(event)  # type: ignore[misc]
        except BaseException as error:
            if is_from_outside(error):
                raise
            blame(error, self.id, self.now, event)

    # -- What the node does

    def transmit(self, message: Any, link: int) -> None:
        """Send a message over a local link. This is the node's `send`."""
        end = self._ends.get(link) if type(link) is int else None
        if end is None:
            raise self._no_link(link)
        if self._is_plain:
            self.send(end.name, TOPIC, message, delay=end.carrier.delay())
        else:
            self._transmit(message, end)

    def _transmit(self, message: Any, end: LinkEnd) -> None:
        if self.node is None:
            raise ModelError("a node can't send while it is being created", advice="send from its Start on")
        delays, reason = end.carry(message, self.now, self._setting.script)
        for delay in delays:
            self.send(end.name, TOPIC, message, delay=delay)
        tell_sent(self, end, message, delays, reason)

    def number_unsent(self) -> int:
        """Return the number of a message that doesn't set out."""
        self._unsent += 1
        return -self._unsent

    def _no_link(self, link: object) -> ModelError:
        there = ", ".join(map(str, self._ends))
        advice = f"its links have the numbers {there}" if there else "it has no links"
        return ModelError(f"it has no link with the number {shown(link)}", advice=advice)

    def log(self, text: object) -> None:
        tell_text(self, "logged", text)

    def set_timer(self, delay: TimeLike, name: str = "") -> None:
        if not isinstance(name, str):
            raise ModelError(f"{shown(name)} isn't a name for a timer", advice='use text, such as "retry"')
        try:
            time = as_time(delay, "a delay")
        except ConfigurationError as error:  # The mistake is the node's, not that of its user.
            raise ModelError(error.problem, advice=error.advice) from error
        self.cancel_timer(name)
        self._timers[name] = self.schedule("timer", name, delay=time)

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

    @property
    def _num_links(self) -> int:
        """How many links there have been: one that is removed keeps its number."""
        return 1 + max((end.link for end in self._by_name.values()), default=-1)

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
            except BaseException as error:
                if is_from_outside(error):
                    raise
                blame(error, self.id, self.now, event)
        elif end.is_pristine and self.is_up and self._wl_observer is None:  # As `_receive`, without an object for it.
            self.acted_at = self.now
            self._let_execute(Protocol(message, end.link))
            self._has_executed()
        else:
            self._receive(end, Incoming(message, self.sent_at, self._wl_number_given, self.now))

    def _receive(self, end: LinkEnd, incoming: Incoming) -> None:
        self.acted_at = self.now
        if not self.is_up:
            tell_reached(self, end, incoming, DOWN)
        elif end.state == "gone" or incoming.sent < end.opened:
            tell_reached(self, end, incoming, REMOVED)
        elif not self._setting.keeps and incoming.sent <= end.went_down[-1]:
            tell_reached(self, end, incoming, UNDERWAY)
        elif end.state == "down":
            end.held.append(incoming._replace(was_held=True))
            tell_held(self, end, incoming)
        else:
            tell_reached(self, end, incoming, "")
            self._let_execute(Protocol(incoming.message, end.link))
            self._has_executed()

    def on_timer(self, name: str) -> None:
        del self._timers[name]
        self.acted_at = self.now
        self._act(Timer(name))

    def on_crash(self, _: None) -> None:
        if not self.is_up:
            return
        self.disturb()
        self.is_up = False
        for timer in self._timers.values():
            self.cancel(timer)
        self._timers.clear()
        tell_text(self, "received", "Crash", "Crash")
        self._has_executed()

    def on_recover(self, _: None) -> None:
        """Make the node anew. It thinks that all of its links are up, so it is told of those that aren't."""
        if self.is_up:
            return
        self.is_up = True
        lost, self.node = self.node, None
        recovered = self._made()
        if lost is not None:
            self._restore(recovered, lost)
        self._take(recovered)
        self._act(Recover())
        for end in list(self._ends.values()):
            if end.state == "down":
                self._act(LinkDown(end.link))

    def _restore(self, recovered: Executes, lost: Executes) -> None:
        """Give a node what has survived its crash."""
        names = getattr(recovered, "stable", ())
        missing = [name for name in names if not hasattr(lost, name)]
        if isinstance(names, str) or missing:
            raise ModelError(
                f"{type(recovered).__name__}.stable is {shown(names)}, and it has no {missing[0]!r}"
                if missing
                else f"{type(recovered).__name__}.stable is a text",
                participant=f"node {self.id}",
                at=self.now,
                advice='name the attributes that survive a crash: stable = ("term", "log")',
            )
        for name in names:
            setattr(recovered, name, getattr(lost, name))

    def on_down(self, neighbor: int) -> None:
        end = self._end(neighbor)
        if end is not None and end.state == "up":
            end.go_down(self.now)
            self._tell(LinkDown(end.link))

    def on_up(self, neighbor: int) -> None:
        end = self._end(neighbor)
        if end is None or end.state == "up":
            return
        end.come_up(self.now)
        self._tell(LinkUp(end.link))
        held, end.held = end.held, []
        for incoming in held:
            self._receive(end, incoming)

    def on_add(self, added: tuple[int, int]) -> None:
        """Take a new link; one to a neighbor that was removed before gets a new number too."""
        self.disturb()
        neighbor, weight = added
        end = self._setting.end(self.id, neighbor, self._num_links, weight)
        end.open(self.now)
        end.is_cut = any(self._is_cut(end, group) for group in self._groups)
        earlier = self._by_name.get(end.name)
        if earlier is not None:
            end.carrier = earlier.carrier
        self._ends[end.link] = end
        self._by_name[end.name] = end
        if isinstance(self.node, Node):
            self.node.num_neighbors = end.link + 1
        self._tell(NeighborAdded(end.link))

    def on_remove(self, neighbor: int) -> None:
        end = self._end(neighbor)
        if end is None:
            return
        end.close()
        del self._ends[end.link]
        for incoming in end.held:
            tell_reached(self, end, incoming, REMOVED)
        self._tell(NeighborRemoved(end.link))

    def on_partition(self, group: tuple[int, ...]) -> None:
        """Cut the links to the other side; no node is told."""
        self.disturb()
        self._groups.append(group)
        for end in self._ends.values():
            end.is_cut = end.is_cut or self._is_cut(end, group)
        tell_text(self, "happened", f"Partition {' '.join(map(str, group))}", "Partition")

    def on_repair(self, _: None) -> None:
        self._groups.clear()
        for end in self._ends.values():
            end.is_cut = False
        tell_text(self, "happened", "Repair", "Repair")

    def _is_cut(self, end: LinkEnd, group: tuple[int, ...]) -> bool:
        return (end.neighbor in group) != (self.id in group)

    def _tell(self, event: Meta) -> None:
        if self.is_up:
            self._act(event)

    def _end(self, neighbor: int) -> LinkEnd | None:
        """Return the end of a link that something happens to, if it is there."""
        self.disturb()
        end = self._by_name.get(name_of(neighbor, self._setting.num_nodes))
        return None if end is None or end.state == "gone" else end


def _check_executes(node: object) -> None:
    execute = getattr(node, "execute", None)
    if not callable(execute) or getattr(type(node), "execute", None) is Node.execute:
        raise ModelError(f"{type(node).__name__} has no execute", advice="write def execute(self, event)")
    if isgeneratorfunction(execute) or iscoroutinefunction(execute):
        raise ModelError("its execute has yield or async in it, and nothing here waits", advice="use set_timer")


class _Timers(dict[str, Any]):
    """The timers of a node by name; they stay in the process in which they would ring."""

    def __reduce__(self) -> Any:
        return _Timers, ()


# Says what a node did wrong: which one, when, on what event, and in which line of its author's own code.


def blame(error: BaseException, node: int, now: int, event: Event | None) -> NoReturn:
    """Raise the error that ends the run; no event means that the node was being created."""
    blamed = _blamed(error, node, now, event)
    if blamed is error:  # An error can't be its own cause.
        raise blamed
    raise blamed from error


def _blamed(error: BaseException, node: int, now: int, event: Event | None) -> WorldlineError:
    participant = f"node {node}"
    if isinstance(error, ObserverFailure):
        return error
    if isinstance(error, WorldlineError) and event is None:
        return error.concerning(participant, now)  # The author's own, about a topology that doesn't fit.
    if isinstance(error, WorldlineError) and type(models(error)) is not ModelError:
        return error.concerning(participant, now)  # A deadline, or again the author's own.
    doing = "while it was created"
    if event is not None:
        doing = f"on the message {shown(event.message)}" if isinstance(event, Protocol) else f"on {event}"
    if isinstance(error, WorldlineError):
        problem, advice = f"{doing}: {located(error).problem}", error.advice
    else:
        problem, advice = f"{doing} it raised {said_of(error)}", None
    return ModelError(problem, participant=participant, at=now, advice=advice)


# What hosts tell an observer, in the words of history; the record of the trace goes along with each.
#
# A message has the kernel's number of its first copy; further copies have the next ones (`HostObserver` knows whose).
# One that doesn't even set out has none: these count down from -1.

HELD = "the link is down, and keeps it"


class Incoming(NamedTuple):
    """A message that has reached a host: when it was sent, the kernel's number of it, and when it arrived.

    It may have been held there since, by a link that was down.
    """

    message: Any
    sent: int
    number: int
    arrived: int
    was_held: bool = False


def tell_sent(host: NodeHost, end: LinkEnd, message: Any, delays: tuple[int, ...], reason: str) -> None:
    """Tell of a message that was sent just now, and when it and its copies arrive, or why they don't."""
    if not delays:
        _count(host, end.name, message, reason)
    observer = host._wl_observer
    if observer is None:
        return
    at, data = host.now, plain(message)
    arrivals = tuple(at + delay for delay in delays)
    record = NodeRecord(
        at=at,
        kind="sent",
        node=host.id,
        peer=end.neighbor,
        link=end.link,
        text=said(message),
        what=type(message).__name__,
        arrivals=arrivals,
        reason=reason,
        data=data,
    )
    number = host._wl_number_sent - len(arrivals) + 1 if arrivals else host.number_unsent()
    observer.sent(host.name, number, record.what, at, encoded(data), max(arrivals, default=at + 1), record)
    for copy, arrival in enumerate(arrivals):
        observer.arrives(host.name, number, end.name, arrival, copy, None)
    if not arrivals:
        observer.arrives(host.name, number, end.name, at + 1, 0, reason)


def tell_reached(host: NodeHost, end: LinkEnd, incoming: Incoming, reason: str) -> None:
    """Tell that a node gets a message now, or that it has arrived in vain, for a reason.

    That it arrives was told when it was sent, unless it was held.
    """
    if reason:
        _count(host, host.name, incoming.message, reason)
    if incoming.was_held:
        _count(host, host.name, incoming.message, HELD, -1)
    observer = host._wl_observer
    if observer is None:
        return
    if reason or incoming.was_held:
        observer.arrives(end.name, incoming.number, host.name, incoming.arrived, 0, reason or None)
    if incoming.was_held:
        observer.lasts(end.name, incoming.number, host.now)
    record = NodeRecord(
        at=host.now,
        kind="dropped" if reason else "received",
        node=host.id,
        peer=end.neighbor,
        link=end.link,
        text=said(incoming.message),
        what=type(incoming.message).__name__,
        sent=incoming.sent,
        reason=reason,
    )
    observer.noted(host.name, record.what, record.at, None, record)


def tell_held(host: NodeHost, end: LinkEnd, incoming: Incoming) -> None:
    """Tell that a message waits where it has arrived, for an unknown time: until then, it is lost."""
    _count(host, host.name, incoming.message, HELD)
    observer = host._wl_observer
    if observer is not None:
        observer.lasts(end.name, incoming.number, FOREVER)
        observer.arrives(end.name, incoming.number, host.name, incoming.arrived, 0, HELD)


def _count(host: NodeHost, receiver: str, message: Any, reason: str, number: int = 1) -> None:
    """Count a message that doesn't reach its node; for an outcome, whether the run is observed or not."""
    dropped, key = host._wl_roster.engine.dropped, (receiver, type(message).__name__, reason)
    dropped[key] = dropped.get(key, 0) + number
    if not dropped[key]:
        del dropped[key]


def tell_text(host: NodeHost, kind: Kind, text: object, what: str = "") -> None:
    """Tell what is done to a node, whether it notices or not; a line that it writes; or what happens to the network.

    The last is told to all hosts at once, so one of them tells it, as if from outside.
    """
    is_outside = kind == "happened"
    if host._wl_observer is None or (is_outside and host.id):
        return
    record = NodeRecord(at=host.now, kind=kind, node=None if is_outside else host.id, text=str(text), what=what)
    topic = LOG if kind == "logged" else META
    who = OUTSIDE if is_outside else host.name
    told = {"text": record.text}
    if record.is_fault:
        told["kind"] = _FAULTS.get(record.what, FAULT_LINE)
    host._wl_observer.noted(who, topic, record.at, encoded(told), record)


_FAULTS = {"Crash": DOWN_LINE, "Recover": UP_LINE}


# The ends of links: how long what goes in here is under way, and whether it is carried at all.

TOPIC = "message"
"""Of all messages of nodes, in the kernel."""

LOST = "lost"


def name_of(node: int, num_nodes: int) -> str:
    """Return the name of a node's host: with zeros in front, so that names have the order of numbers."""
    return f"{node:0{len(str(num_nodes - 1))}d}"


class Carrier:
    """Carries what one node sends to another: counts the messages, and draws how long each is under way.

    A link that comes after another between the same nodes goes on with its carrier.
    """

    __slots__ = ("_last", "_made_of", "_number", "_over", "_path", "delay", "neighbor", "node")

    def __init__(self, num_nodes: int, seed: int, node: int, neighbor: int, over: Link) -> None:
        self._made_of = num_nodes, seed, node, neighbor, over
        self.node = node
        self.neighbor = neighbor
        self._over = over
        self._number = -1  # Of the last message that was sent.
        self._last = 0  # When that arrives, as far as a script decides it.
        ends = name_of(node, num_nodes), name_of(neighbor, num_nodes)
        # A link that only delays takes one compiled draw a message; losses, order and the like take the whole path.
        self._path = None if over == Link(latency=over.latency) else Path(over, seed, (TOPIC, *ends))
        self.delay = _drawing(over.latency, Draws(seed, "latency", *ends))

    @property
    def only_delays(self) -> bool:
        return self._path is None

    def skip(self) -> None:
        """Count a message that isn't carried."""
        self._number += 1

    def carry(self, message: Any, now: int, script: Deliveries | None) -> tuple[tuple[int, ...], str]:
        """Return how long the next message is under way, and its copy; or why it isn't."""
        self._number += 1
        if script is not None:
            delays = script((self.node, self.neighbor, self._number))
            if self._over.fifo:
                delays = tuple(self._in_order(now, delay) for delay in delays)
            return delays, "" if delays else LOST
        if self._path is None:
            return (self.delay(),), ""
        arrivals, lost = self._path.carry(now, self._number, size_of(message) if self._path.queues else 0)
        return (() if lost else tuple(arrival - now for arrival in arrivals)), lost or ""

    def _in_order(self, now: int, delay: int) -> int:
        self._last = max(self._last, now + delay)
        return self._last - now

    def __reduce__(self) -> tuple[Any, ...]:
        return Carrier, self._made_of  # Hosts are sent to workers before anything has happened.


class LinkEnd:
    """One end of a link, which its node knows under a local number: what it sends goes in here."""

    __slots__ = (
        "carrier",
        "held",
        "is_cut",
        "is_pristine",
        "link",
        "name",
        "neighbor",
        "opened",
        "state",
        "weight",
        "went_down",
    )

    def __init__(self, carrier: Carrier, name: str, link: int, weight: int) -> None:
        self.carrier = carrier
        self.name = name  # The neighbor's host.
        self.neighbor = carrier.neighbor
        self.link = link
        self.weight = weight
        self.state: Literal["up", "down", "gone"] = "up"
        self.is_pristine = True  # It has been there from the start, and has never been down.
        self.is_cut = False  # A partition is between its ends.
        self.went_down = [-1]  # When it did so, lastly.
        self.held: list[Incoming] = []  # Messages that wait until it is up.
        self.opened = 0

    def carry(self, message: Any, now: int, script: Deliveries | None) -> tuple[tuple[int, ...], str]:
        """Return how long the next message is under way, and its copy; or why it isn't."""
        if self.state == "up" and not self.is_cut:
            return self.carrier.carry(message, now, script)
        self.carrier.skip()
        return (), LINK_DOWN if self.state != "up" else PARTITIONED

    def go_down(self, now: int) -> None:
        self.state = "down"
        self.is_pristine = False
        self.went_down.append(now)

    def open(self, now: int) -> None:
        """Be there from now on only."""
        self.opened = now
        self.is_pristine = False

    def close(self) -> None:
        self.state = "gone"
        self.is_pristine = False

    def come_up(self, now: int) -> None:
        self.state = "up"
        if self.went_down[-1] == now:  # It was down for no time at all: as if it hadn't been.
            self.went_down.pop()

    def __reduce__(self) -> tuple[Any, ...]:
        return LinkEnd, (self.carrier, self.name, self.link, self.weight)  # As above.


def _drawing(latency: Latency, draws: Draws) -> Callable[[], int]:
    """Return what draws the next latency."""
    if isinstance(latency, Uniform):
        return partial(draws.spread, latency.minimum, latency.maximum - latency.minimum + 1)
    return lambda: latency.draw(draws.getrandbits(64))
