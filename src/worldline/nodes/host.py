"""The host: the kernel's entity that a node lives in. It has the links, and does to the node what faults ask for.

All that it knows is its own: two hosts meet only in messages, so they can be on different workers. What goes wrong is
told to every host that it concerns, from outside, for the same moment.

Invariants
----------
H1. A node that is down executes nothing: messages to it are dropped, its timers are gone.
H2. What a link that is down should have carried is dropped, or kept until it is up, as configured; that is judged
    where it arrives, from when it was sent. What is sent into a link that is down, or over a partition, is lost.
H3. `_is_calm` says that nothing has gone wrong yet and nobody looks on. Once there is a node, `_is_plain` says the
    same, and messages take the short way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction, isgeneratorfunction
from typing import Any, ClassVar, NamedTuple, NoReturn

from worldline.kernel.entity import Entity
from worldline.model.errors import ConfigurationError, ModelError, UsageError, shown
from worldline.model.links import Link
from worldline.model.reading import as_time
from worldline.model.time import TimeLike
from worldline.nodes.blame import blame
from worldline.nodes.ends import TOPIC, LinkEnd, name_of
from worldline.nodes.events import (
    Event,
    LinkDown,
    LinkUp,
    Meta,
    NeighborAdded,
    NeighborRemoved,
    Protocol,
    Recover,
    Start,
    Timer,
)
from worldline.nodes.node import Executes, Node
from worldline.nodes.script import Deliveries
from worldline.nodes.telling import (
    Incoming,
    tell_done,
    tell_dropped,
    tell_event,
    tell_happened,
    tell_held,
    tell_logged,
    tell_received,
    tell_sent,
)
from worldline.workers.interruptions import is_from_outside

DOWN = "the node is down"
UNDERWAY = "the link went down on the way"
REMOVED = "the link is gone"


class HostSetting(NamedTuple):
    """What all hosts of a run have in common."""

    num_nodes: int
    seed: int
    make: Callable[..., Executes]
    parameters: Mapping[str, Any]
    over: Link  # What links are that nobody has said anything else about.
    others: Mapping[tuple[int, int], Link]  # Those of single edges.
    keeps: bool  # What is under way on a link that goes down, until it is up again.
    script: Deliveries | None
    executed: Callable[[int], None] | None  # Is called with the id of a node after each of its events.

    def end(self, node: int, neighbor: int, link: int, weight: int) -> LinkEnd:
        """Make an end of a link, at a node: what goes to its neighbor goes in there."""
        over = self.others.get((min(node, neighbor), max(node, neighbor)), self.over)
        return LinkEnd((self.num_nodes, self.seed), node, neighbor, link, over, weight)


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
        "_numbered",
        "_setting",
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
        self._numbered = len(ends)
        self._by_name = {end.name: end for end in ends}
        self._groups: list[tuple[int, ...]] = []  # Who is cut off from all others, until the repair.
        self._timers = _Timers()
        self._unsent = 0  # How many messages haven't even set out.
        self._is_calm = setting.executed is None and setting.script is None and not any(end.path for end in ends)
        self._is_plain = False
        self._keeps_time = False
        self.acted_at = 0  # When a message has reached it last, or a timer has rung; by the short way only `keep_time`.
        self._execute: Callable[[Event], None] | None = None

    def __reduce__(self) -> Any:
        return DetachedContext, (self.id,)  # For what a node that comes back from a worker has of it.

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
            node = setting.make(setting.num_nodes, self.id, self._numbered, self.transmit, **setting.parameters)
            _check_executes(node)
        except BaseException as error:
            if is_from_outside(error):
                raise
            blame(error, self.id, self.now, None)
        if isinstance(node, Node):
            node._surroundings = self
        return node

    def disturb(self) -> None:
        """Take the long way from now on: something goes wrong, or somebody looks on."""
        self._is_calm = self._is_plain = False

    def _act(self, event: Meta) -> None:
        """Let the node execute what the simulator does to it."""
        tell_event(self, event)
        self._let_execute(event)
        self._has_executed()

    def _has_executed(self) -> None:
        if self._setting.executed is not None:
            self._setting.executed(self.id)

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
            self.send(end.name, TOPIC, message, delay=end.delay())
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
        tell_logged(self, text)

    def set_timer(self, delay: TimeLike, name: str = "") -> None:
        if not isinstance(name, str):
            raise ModelError(f"{shown(name)} isn't a name for a timer", advice='use text, such as "retry"')
        try:
            time = as_time(delay, "a delay")
        except ConfigurationError as error:  # The mistake is the node's, not that of whoever runs it.
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
            tell_dropped(self, end, incoming, DOWN)
        elif end.is_gone or incoming.sent < end.opened:
            tell_dropped(self, end, incoming, REMOVED)
        elif not self._setting.keeps and incoming.sent <= end.went_down:
            tell_dropped(self, end, incoming, UNDERWAY)
        elif not end.is_up:
            end.held.append(incoming._replace(was_held=True))
            tell_held(self, end, incoming)
        else:
            tell_received(self, end, incoming)
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
        tell_done(self, "Crash", "Crash")
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
            if not end.is_up:
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
        if end is not None and end.is_up:
            end.go_down(self.now)
            self._tell(LinkDown(end.link))

    def on_up(self, neighbor: int) -> None:
        end = self._end(neighbor)
        if end is None or end.is_up:
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
        end = self._setting.end(self.id, neighbor, self._numbered, weight)
        end.open(self.now)
        end.is_cut = any(self._is_cut(end, group) for group in self._groups)
        earlier = self._by_name.get(end.name)
        if earlier is not None:
            end.follow(earlier)
        self._ends[end.link] = end
        self._numbered += 1
        self._by_name[end.name] = end
        if isinstance(self.node, Node):
            self.node.num_neighbors = self._numbered
        self._tell(NeighborAdded(end.link))

    def on_remove(self, neighbor: int) -> None:
        end = self._end(neighbor)
        if end is None:
            return
        end.close()
        del self._ends[end.link]
        for incoming in end.held:
            tell_dropped(self, end, incoming, REMOVED)
        self._tell(NeighborRemoved(end.link))

    def on_partition(self, group: tuple[int, ...]) -> None:
        """Cut the links to the other side; nobody is told."""
        self.disturb()
        self._groups.append(group)
        for end in self._ends.values():
            end.is_cut = end.is_cut or self._is_cut(end, group)
        tell_happened(self, f"Partition {' '.join(map(str, group))}")

    def on_repair(self, _: None) -> None:
        self._groups.clear()
        for end in self._ends.values():
            end.is_cut = False
        tell_happened(self, "Repair")

    def _is_cut(self, end: LinkEnd, group: tuple[int, ...]) -> bool:
        return (end.neighbor in group) != (self.id in group)

    def _tell(self, event: Meta) -> None:
        if self.is_up:
            self._act(event)

    def _end(self, neighbor: int) -> LinkEnd | None:
        """Return the end of a link that something happens to, if it is there."""
        self.disturb()
        end = self._by_name.get(name_of(neighbor, self._setting.num_nodes))
        return None if end is None or end.is_gone else end


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


class DetachedContext:
    """What a node has for surroundings when it has come back from a worker: it can be looked at, not more."""

    def __init__(self, node: int) -> None:
        self._node = node

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UsageError(f"node {self._node} can't act any more", advice="its run is over, in another process")

    def transmit(self, message: Any, link: int) -> NoReturn:
        self.__getattr__("send")
