# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False
"""The engine: one queue of events, and the loop that hands them to entities.

Theory of operation
-------------------
This is ordinary Python, and in Cython's pure-Python mode also C: what is marked `cython.` turns into C types when the
module is compiled and means nothing when it isn't. The two builds share every line but those under
`if cython.compiled`: compiled, the queue is a heap of C structs with the events' objects beside it in a list, where
the garbage collector can see them; uncompiled it is a list of tuples and `heapq`, the fastest heap that plain Python has.

An event's key is (arrival, sent, sender's rank, sender's order), the one order of arrivals. Ranks are places in the
roster sorted by name, doubled. A sender that was created during the run has the odd rank between its neighbours by
name; where two such share a rank, their names decide. So keys compare as in `model.message`, on every worker, without
anybody having to number newcomers for all. An order is twice the sequence number; the odd one is the copy that a
link made.

Every entity has a chain, a 64-bit hash of what it sent and was given so far; run digests are made of the chains. An
event costs a handful of integer operations, the same in both builds.

Invariants
----------
E1. Events are handed out in the order of their keys, as far as they are known; nothing is pushed before `now`.
E2. An event from another entity is at least 1 ns under way. So whatever arrives at one moment was sent before it, and
    entities of different workers can act at the same moment in any order.
E3. What isn't an entity's own (another's state, the queue, the clock of the machine) never enters a chain.
E4. While an event is handled its place at the top of the heap is a hole. The first event that is pushed fills it, which
    saves half of the work in the usual case that one event causes one other.
"""

from heapq import heapify, heappop, heappush
from types import CoroutineType, GeneratorType
from typing import Any

try:
    import cython
except ImportError:
    from worldline.kernel import uncompiled as cython  # type: ignore[no-redef]

if cython.compiled:
    from worldline.kernel._draws import Draws
else:
    from worldline.kernel.draws import Draws
from worldline.kernel.parcel import Parcel, fingerprint, seal
from worldline.kernel.waiting import Inbox, Interrupt, Message, Receive, Signal, Wait, refuse
from worldline.model.errors import ModelError, Stuck, UsageError, WorldlineError, shown
from worldline.model.message import check_name
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, TIME_MAX, format_time

if cython.compiled:
    from cython.cimports.cpython.list import PyList_GET_ITEM
    from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
    from cython.cimports.libc.stdlib import free, realloc

# A place in the heap is small, so that the four children of a node lie side by side in the processor's cache; what
# only ties need is kept by slot.
Node = cython.struct(time=cython.longlong, slot=cython.Py_ssize_t)
Key = cython.struct(sent=cython.longlong, order=cython.longlong, rank=cython.longlong)

# Odd constants without structure (the golden ratio and successors of SplitMix64): they keep the parts of an event
# apart in a chain.
_TIMES = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_ORDERS = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
_PAYLOADS = cython.declare(cython.ulonglong, 0x94D049BB133111EB)
_RECEIVERS = cython.declare(cython.ulonglong, 0xE7037ED1A0B428DB)
_LINKS = cython.declare(cython.ulonglong, 0xD6E8FEB86659FD93)

_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

# What an entity is to this engine.
_NEW = cython.declare(cython.int, 0)
_ALIVE = cython.declare(cython.int, 1)
_ENDED = cython.declare(cython.int, 2)
_ABSENT = cython.declare(cython.int, 3)  # Named by a sender, but not here (yet).
_REMOTE = cython.declare(cython.int, 4)

# Messages that only the engine sends: their topics are these objects.
_STARTS = cython.declare(object, object())
_INTERRUPTS = cython.declare(object, object())

INTERRUPTION = "interrupt!"  # The topic of an interruption from another entity; no handler can have that name.

_LAST = cython.declare(cython.longlong, TIME_MAX)
_NEVER = cython.declare(cython.longlong, -1)  # No order is negative.
_PENDING = cython.declare(object, object())

# C variables, because looking up a module's own names costs as much as a whole event.
_Parcel = cython.declare(object, Parcel)
_Generator = cython.declare(object, GeneratorType)
_seal = cython.declare(object, seal)
_BURST_MAX = cython.declare(cython.longlong, 1_000_000)


@cython.cclass
class Handlers:
    """The handlers of a class of entities by topic. Remembers what it was asked for last: mostly that is asked next."""

    __slots__ = ("by_topic", "function", "topic")

    if cython.compiled:
        by_topic = cython.declare(dict, visibility="readonly")
    topic: object
    function: object

    def __init__(self, by_topic: dict[Any, Any]) -> None:
        self.by_topic = by_topic
        self.topic = None
        self.function = by_topic.get(None)

    @cython.cfunc
    def find(self, topic: object) -> cython.int:
        self.function = self.by_topic.get(topic)
        self.topic = topic
        return 0


@cython.cclass
class Slot:
    """Keeps the objects of an event that waits: a process, a timer, or a message with its topic. Compiled only."""

    __slots__ = ("payload", "sender", "target", "what")

    what: object
    sender: object
    target: object
    payload: object


@cython.cclass
class Engine:
    """The queue and the clock of one worker, and all that its entities need to find each other."""

    __slots__ = (
        "_cells",
        "_chain_of_topic",
        "_chains_of_topics",
        "_free",
        "_free_count",
        "_heap",
        "_hole",
        "_keys",
        "_queue",
        "_size",
        "_slots",
        "_topic",
        "actor",
        "cancelled",
        "directory",
        "dropped",
        "events",
        "latency",
        "least",
        "now",
        "order",
        "outbox",
        "registry",
        "sender",
        "sent",
    )

    if cython.compiled:
        now = cython.declare(cython.longlong, visibility="public")
        events = cython.declare(cython.longlong, visibility="readonly")
        latency = cython.declare(cython.longlong, visibility="public")
        least = cython.declare(cython.longlong, visibility="public")
        directory = cython.declare(dict, visibility="readonly")
        registry = cython.declare(object, visibility="public")
        outbox = cython.declare(list, visibility="public")
        dropped = cython.declare(dict, visibility="readonly")
        actor = cython.declare(object, visibility="readonly")
        sender = cython.declare(object, visibility="readonly")
        sent = cython.declare(cython.longlong, visibility="readonly")
        order = cython.declare(cython.longlong, visibility="readonly")
        cancelled = cython.declare(cython.Py_ssize_t, visibility="public")
    _topic: object  # The one that was sent last, and its part in chains: mostly it is sent next too.
    _chain_of_topic: cython.ulonglong
    _chains_of_topics: dict
    _heap: cython.pointer(Node)
    _size: cython.Py_ssize_t
    _slots: cython.Py_ssize_t
    _keys: cython.pointer(Key)
    _free: cython.pointer(cython.Py_ssize_t)
    _free_count: cython.Py_ssize_t
    _cells: list
    _hole: cython.bint
    _queue: list

    def __init__(self, registry: Any, *, latency: int, least: int) -> None:
        self.registry = registry
        self.latency = latency
        self.least = least
        self.now = 0
        self.events = 0
        self.directory = {}
        self.outbox = []
        self.dropped = {}
        self.actor = None
        self.sender = None
        self.sent = 0
        self.order = 0
        self.cancelled = 0
        self._topic = None
        self._chain_of_topic = 0
        self._chains_of_topics = {}
        self._queue = []
        self._cells = []
        self._size = 0
        self._slots = 0
        self._free_count = 0
        self._hole = False

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self._heap)
            free(self._keys)
            free(self._free)

    # -- The queue

    @cython.cfunc
    def _push(
        self,
        time: cython.longlong,
        rank: cython.int,
        order: cython.longlong,
        what: object,
        sender: object,
        target: object,
        payload: object,
    ) -> cython.int:
        """Let an event happen at a time. It is sent now; `what` is a process, a timer, or the topic of a message."""
        return self._push_sent(time, self.now, rank, order, what, sender, target, payload)

    @cython.cfunc
    def _push_sent(
        self,
        time: cython.longlong,
        sent: cython.longlong,
        rank: cython.int,
        order: cython.longlong,
        what: object,
        sender: object,
        target: object,
        payload: object,
    ) -> cython.int:
        if cython.compiled:
            if self._free_count == 0:
                self._grow()
            self._free_count -= 1
            node: Node
            node.time = time
            node.slot = self._free[self._free_count]
            self._keys[node.slot].sent = sent
            self._keys[node.slot].order = order
            self._keys[node.slot].rank = rank
            slot: Slot = cython.cast(Slot, PyList_GET_ITEM(self._cells, node.slot))
            slot.what = what
            if target is not None:
                slot.sender = sender
                slot.target = target
                slot.payload = payload
            if self._hole:
                self._hole = False
                self._sift_down(node)
            else:
                self._size += 1
                self._sift_up(node)
        else:
            tie = sender.name if rank & 1 else ""
            heappush(self._queue, (time, sent, rank, tie, order, what, sender, target, payload))
        return 0

    @cython.cfunc
    def _grow(self) -> cython.int:
        """Make room for twice as many events. Every slot has its place in all arrays, so they grow together."""
        slots: cython.Py_ssize_t = 2 * self._slots if self._slots else 64
        heap: cython.pointer(Node) = cython.cast(cython.pointer(Node), realloc(self._heap, slots * cython.sizeof(Node)))
        if heap == cython.NULL:
            raise MemoryError
        self._heap = heap
        keys: cython.pointer(Key) = cython.cast(cython.pointer(Key), realloc(self._keys, slots * cython.sizeof(Key)))
        if keys == cython.NULL:
            raise MemoryError
        self._keys = keys
        freed: cython.pointer(cython.Py_ssize_t) = cython.cast(
            cython.pointer(cython.Py_ssize_t), realloc(self._free, slots * cython.sizeof(cython.Py_ssize_t))
        )
        if freed == cython.NULL:
            raise MemoryError
        self._free = freed
        slot: cython.Py_ssize_t
        for slot in range(self._slots, slots):
            self._cells.append(Slot())
        for slot in range(slots - 1, self._slots - 1, -1):
            self._free[self._free_count] = slot
            self._free_count += 1
        self._slots = slots
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _precedes(self, a: cython.pointer(Node), b: cython.pointer(Node)) -> cython.bint:
        return a.time < b.time or (a.time == b.time and self._precedes_in_tie(a.slot, b.slot))

    @cython.cfunc
    @cython.exceptval(check=False)
    def _precedes_in_tie(self, first: cython.Py_ssize_t, second: cython.Py_ssize_t) -> cython.bint:
        a: cython.pointer(Key) = cython.address(self._keys[first])
        b: cython.pointer(Key) = cython.address(self._keys[second])
        if a.sent != b.sent:
            return a.sent < b.sent
        if a.rank != b.rank:
            return a.rank < b.rank
        if a.rank & 1:
            name, other = _sender_name(self._cells[first]), _sender_name(self._cells[second])
            if name != other:
                return name < other
        return a.order < b.order

    @cython.cfunc
    @cython.exceptval(check=False)
    def _sift_up(self, node: Node) -> cython.void:
        """Put a node into the heap, whose last place is free. Each node has four children: half the depth of two."""
        place: cython.Py_ssize_t = self._size - 1
        while place > 0:
            parent: cython.Py_ssize_t = (place - 1) >> 2
            if not self._precedes(cython.address(node), cython.address(self._heap[parent])):
                break
            self._heap[place] = self._heap[parent]
            place = parent
        self._heap[place] = node

    @cython.cfunc
    @cython.exceptval(check=False)
    def _sift_down(self, node: Node) -> cython.void:
        """Put a node into the heap, whose first place is free."""
        place: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t = self._size
        while True:
            child: cython.Py_ssize_t = 4 * place + 1
            if child >= size:
                break
            least: cython.Py_ssize_t = child
            last: cython.Py_ssize_t = child + 4 if child + 4 < size else size
            child += 1
            while child < last:
                if self._precedes(cython.address(self._heap[child]), cython.address(self._heap[least])):
                    least = child
                child += 1
            if not self._precedes(cython.address(self._heap[least]), cython.address(node)):
                break
            self._heap[place] = self._heap[least]
            place = least
        self._heap[place] = node

    @cython.cfunc
    def _close_hole(self) -> cython.int:
        """Let the last event take the place at the top, if nothing that was pushed has taken it."""
        if self._hole:
            self._hole = False
            self._size -= 1
            if self._size:
                self._sift_down(self._heap[self._size])
        return 0

    @property
    def sender_name(self) -> str:
        """Who sent the event that was handled last."""
        return self.sender.name if self.sender is not None else ""

    def next_time(self) -> int:
        """Return when the next event is due; FOREVER if there is none."""
        if cython.compiled:
            return self._heap[0].time if self._size else FOREVER
        return self._queue[0][0] if self._queue else FOREVER

    def pending(self) -> int:
        """Return how many events are waiting, dead ones included."""
        return self._size if cython.compiled else len(self._queue)

    @cython.cfunc
    def _purge(self) -> cython.int:
        """Take the dead events out of the queue: otherwise timers that are always cancelled would pile up."""
        if cython.compiled:
            kept: cython.Py_ssize_t = 0
            total: cython.Py_ssize_t = self._size
            place: cython.Py_ssize_t
            for place in range(total):
                number: cython.Py_ssize_t = self._heap[place].slot
                slot: Slot = self._cells[number]
                if _is_dead(slot.what, self._keys[number].order):
                    slot.what = None
                    self._free[self._free_count] = number
                    self._free_count += 1
                else:
                    self._heap[kept] = self._heap[place]
                    kept += 1
            self._size = 0
            for place in range(kept):  # Those that stay are before the place that they are read from.
                self._size += 1
                self._sift_up(self._heap[place])
        else:
            self._queue = [entry for entry in self._queue if not _is_dead(entry[5], entry[4])]
            heapify(self._queue)
        self.cancelled = 0
        return 0

    def count_dropped(self, receiver: str, topic: str, reason: str) -> None:
        key = (receiver, topic, reason)
        self.dropped[key] = self.dropped.get(key, 0) + 1

    # -- Who is there

    def enter(self, entity: Any, name: str, rank: int, place: int, key: int, handlers: Handlers) -> None:
        """Make an entity part of the simulation, now."""
        core: Core = entity
        if core._state != _NEW:
            raise UsageError(f"{core.name} is part of a simulation already, and can't be {name} too")
        core._engine = self
        core.name = name
        core.rank = rank
        core.place = place
        core._key = key
        core._handlers = handlers
        core._state = _ALIVE
        self.directory[name] = core
        if _STARTS in handlers.by_topic:
            core._order += 2
            self._push(self.now, rank, core._order, _STARTS, core, core, None)

    def stand_in(self, name: str, rank: int, place: int, key: int, *, remote: bool) -> Any:
        """Return what stands for an entity that isn't here: it is at another worker, or perhaps nowhere."""
        core = Core()
        core._engine = self
        core.name = name
        core.rank = rank
        core.place = place
        core._key = key
        core._state = _REMOTE if remote else _ABSENT
        return core

    def accept(
        self, time: int, sent: int, sender: Any, order: int, target: Any, topic: str, payload: Any
    ) -> None:
        """Take in a message from another worker, or from outside."""
        core: Core = sender
        self._push_sent(time, sent, core.rank, order, topic, sender, target, payload)

    @cython.cfunc
    def _learn(self, topic: object) -> cython.int:
        """Make this the topic at hand; look it up, or refuse it if it can't be one."""
        chain = self._chains_of_topics.get(topic)
        if chain is None:
            chain = fingerprint(check_name(topic, "a topic").encode())
            self._chains_of_topics[topic] = chain
        self._topic = topic
        self._chain_of_topic = chain
        return 0


@cython.cclass
class Core:
    """What every entity has: a name, a clock, a place in the order of arrivals, and the means to send and wait.

    Users derive from `Entity`, which adds the rest; this part is here because it is hot.
    """

    __slots__ = (
        "_burst",
        "_burst_at",
        "_chain",
        "_engine",
        "_handlers",
        "_inbox",
        "_key",
        "_main",
        "_order",
        "_others",
        "_random",
        "_state",
        "extras",
        "name",
        "place",
        "rank",
    )

    if cython.compiled:
        name = cython.declare(object, visibility="readonly")
        rank = cython.declare(cython.int, visibility="readonly")
        place = cython.declare(cython.int, visibility="readonly")
        extras = cython.declare(object, visibility="public")
    _engine: Engine
    _state: cython.int
    _burst: cython.int
    _burst_at: cython.longlong
    _order: cython.longlong
    _chain: cython.ulonglong
    _key: cython.ulonglong
    _handlers: Handlers
    _inbox: object
    _main: object
    _others: list
    _random: object

    if not cython.compiled:  # Compiled, all of these are 0 or None from the start.

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """Set up what an entity has before its own `__init__`, which then needn't call this one's."""
            core = object.__new__(cls)
            core._state = core._burst = core._burst_at = core._order = core._chain = core._key = 0
            core.rank = core.place = 0
            core._engine = core._handlers = core._inbox = core._main = core._others = core._random = None
            core.name = core.extras = None
            return core

    @property
    def now(self) -> int:
        """The time, in nanoseconds."""
        return self._engine.now if self._engine is not None else 0

    @property
    def sender(self) -> str:
        """Who sent the message that is being handled; the entity itself for its own timers."""
        return self._engine.sender.name

    @property
    def sent(self) -> int:
        """When the message that is being handled was sent."""
        return self._engine.sent

    @property
    def random(self) -> Draws:
        """The entity's own draws, fixed by the simulation's seed and the entity's name."""
        if self._random is None:
            self._random = Draws(_acting(self).registry.seed, self.name)
        return self._random

    @property
    def has_ended(self) -> bool:
        return self._state == _ENDED

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, an entity of this worker, and not just a name."""
        return self._state == _ALIVE or self._state == _ENDED

    @property
    def roster(self) -> Any:
        """Who else is there."""
        return _acting(self).registry

    def send(self, to: str, topic: str, payload: Any = None, *, delay: int | str | None = None) -> None:
        """Send a message to an entity, by name.

        Without a delay it takes the link between the two: its latency, losses and all. With one it arrives exactly
        that much later, which can't be less than the link's minimum.
        """
        engine: Engine = _acting(self)
        target: Core = engine.directory.get(to)
        if target is None:
            target = engine.registry.locate(to)
        if target is self:
            self._schedule(topic, payload, 1 if delay is None else _nanoseconds(delay))
            return
        print_of_payload: cython.ulonglong = 0
        if payload is not None:
            if type(payload) is int and _is_word(payload):
                print_of_payload = payload & _MASK
            else:
                print_of_payload, payload = _seal(payload)
        latency: cython.longlong
        if delay is not None:
            latency = _nanoseconds(delay)
            least: cython.longlong = 1 if target.place == self.place else engine.least
            if latency < least or not least:
                _check_delay(self, target, latency)
        elif target.place == self.place:
            latency = 1  # They stand at the same place: the smallest step.
        else:
            latency = engine.latency
        if latency:
            self._order += 2
            _hand_over(self, target, topic, payload, print_of_payload, engine.now + latency, self._order)
        else:
            _carry(self, target, topic, payload, print_of_payload)

    def schedule(
        self, topic: str, payload: Any = None, *, delay: int | str | None = None, at: int | str | None = None
    ) -> "Timer":
        """Let an event of the entity's own happen later; it is handled as a message of that topic. Cancel it if need be.

        A delay of 0 is allowed: the event happens at the same moment, after all that has arrived.
        """
        engine: Engine = _acting(self)
        if (delay is None) == (at is None):
            raise UsageError("an event is scheduled after a delay or at a time", advice="give one of the two")
        if at is None:
            return self._schedule(topic, payload, _nanoseconds(delay))
        return self._schedule(topic, payload, _nanoseconds(at) - engine.now)

    @cython.cfunc
    def _schedule(self, topic: object, payload: object, delay: cython.longlong) -> object:
        engine: Engine = self._engine
        if topic is not engine._topic:
            engine._learn(topic)
        timer = Timer(self, topic, payload, engine.now + delay)
        self._after(delay, timer)
        return timer

    @cython.cfunc
    def _after(self, delay: cython.longlong, event: object) -> cython.longlong:
        """Push an event of the entity's own, and return its order."""
        engine: Engine = self._engine
        if delay <= 0:
            self._check_burst(delay)
        elif engine.now + delay > _LAST:
            raise ModelError(f"an event would happen after the last time, {format_time(TIME_MAX)}")
        self._order += 2
        engine._push(engine.now + delay, self.rank, self._order, event, self, None, None)
        return self._order

    @cython.cfunc
    def _check_burst(self, delay: cython.longlong) -> cython.int:
        engine: Engine = self._engine
        if delay < 0:
            raise ModelError(
                f"an event can't be scheduled for {format_time(engine.now + delay)}, which is past",
                advice="use a delay of at least 0",
            )
        if self._burst_at != engine.now:
            self._burst_at = engine.now
            self._burst = 0
        self._burst += 1
        if self._burst > _BURST_MAX:
            raise Stuck(
                f"it has scheduled {_BURST_MAX:,} events without a delay, and time doesn't pass",
                advice="does a process yield 0 in a loop?",
            )
        return 0

    def cancel(self, timer: "Timer") -> bool:
        """Make sure that a scheduled event doesn't happen; return whether that was still possible."""
        engine: Engine = _acting(self)
        was_live = timer.is_live
        if was_live:
            timer.is_live = False
            engine.cancelled += 1
        return was_live

    def interrupt(self, to: str, cause: Any = None, *, delay: int | str | None = None) -> None:
        """Interrupt another entity's main process, by a message that only it can take: raises `Interrupt` there."""
        self.send(to, INTERRUPTION, cause, delay=delay)

    def process(self, generator: Any) -> "Process":
        """Start a process beside what the entity does already: ``charging = self.process(self.charge())``."""
        engine: Engine = _acting(self)
        if type(generator) is not GeneratorType:
            raise UsageError(
                f"{shown(generator)} isn't a generator", advice="call a function with yield in it: self.process(self.f())"
            )
        process = Process()
        process._owner = self
        process._generator = generator
        process._ticket = _NEVER
        if self._others is None:
            self._others = []
        self._others.append(process)
        process._ticket = self._after(0, process)
        return process

    def end(self) -> None:
        """Be no more: processes are closed, timers void; what is still under way to the entity vanishes."""
        engine: Engine = _acting(self)
        self._state = _ENDED
        engine.registry.ended(self)
        engine.cancelled += 1
        for process in [self._main, *(self._others or ())]:
            if process is not None:
                process.close()

    def note(self, value: Any) -> None:
        """Make a value that the entity gives to the world outside part of its history."""
        print_of_value = seal(value)[0]
        self._chain = (self._chain + _acting(self).now * _TIMES + print_of_value) * _LINKS & _MASK

    @property
    def chain(self) -> int:
        """The hash of what the entity has sent and was given so far, and how often it has sent."""
        return (self._chain + self._order * _ORDERS) & _MASK

    def absorb(self, chain: int) -> None:
        """Take over the history of an entity that stood here and has ended."""
        self._chain = (self._chain + chain * _TIMES) * _LINKS & _MASK


@cython.cfunc
@cython.inline
def _acting(entity: Core) -> Engine:
    """Return the engine of an entity whose turn it is; nobody else may act."""
    engine: Engine = entity._engine
    if engine is None or engine.actor is not entity or entity._state != _ALIVE:
        _refuse_to_act(entity)
    return engine


def _refuse_to_act(entity: Any) -> None:
    core: Core = entity
    if core._engine is None:
        raise UsageError("the entity isn't part of a simulation yet", advice="add it first, and act in start()")
    actor = core._engine.actor
    if core._state == _ENDED:
        raise ModelError("it has ended, and can't act any more", participant=core.name, at=core._engine.now)
    if actor is None:
        raise UsageError(f"{core.name} can't act while nothing happens", advice="use the simulation's own send()")
    raise ModelError(
        f"{actor.name} acted for {core.name}", participant=core.name, at=core._engine.now,
        advice="entities may be on different workers: they affect each other by messages only",
    )


@cython.cfunc
@cython.inline
def _nanoseconds(value: object) -> cython.longlong:
    if type(value) is int:
        if cython.compiled:
            overflow: cython.int = 0
            time: cython.longlong = PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
            if overflow == 0:
                return time
        elif -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
            return value
    return as_time(value, "a delay")


@cython.cfunc
@cython.inline
def _is_word(value: object) -> cython.bint:
    """Whether an int fits into 64 bits."""
    if cython.compiled:
        overflow: cython.int = 0
        PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
        return overflow == 0
    return -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF


@cython.cfunc
def _hand_over(
    sender: Core,
    receiver: Core,
    topic: object,
    payload: object,
    print_of_payload: cython.ulonglong,
    arrival: cython.longlong,
    order: cython.longlong,
) -> cython.int:
    """Note that a message was sent, and put it on its way."""
    engine: Engine = sender._engine
    if arrival > _LAST:
        raise ModelError(f"a message to {receiver.name} would arrive after the last time, {format_time(TIME_MAX)}")
    if topic is not engine._topic:
        engine._learn(topic)
    chain: cython.ulonglong = (
        (
            sender._chain
            + arrival * _TIMES
            + order * _ORDERS
            + receiver._key * _RECEIVERS
            + print_of_payload * _PAYLOADS
            + engine._chain_of_topic
        )
        * _LINKS
    ) & _MASK
    sender._chain = chain ^ (chain >> 29)
    if receiver._state == _REMOTE:
        engine.outbox.append((arrival, engine.now, sender.name, order, receiver.name, receiver.place, topic, payload))
    else:
        engine._push(arrival, sender.rank, order, topic, sender, receiver, payload)
    return 0


@cython.cfunc
def _check_delay(sender: Core, receiver: Core, delay: cython.longlong) -> cython.int:
    """Refuse a delay that is shorter than the link between the two allows."""
    engine: Engine = sender._engine
    least: cython.longlong = 1 if receiver.place == sender.place else engine.registry.least(sender, receiver)
    if delay < least:
        raise ModelError(
            f"a message to {receiver.name} can't arrive after {format_time(delay)}: "
            f"the link between them takes at least {format_time(least)}",
            advice="send it with a longer delay, or declare a shorter minimum",
            receiver=receiver.name,
        )
    return 0


@cython.cfunc
def _carry(
    sender: Core, receiver: Core, topic: object, payload: object, print_of_payload: cython.ulonglong
) -> cython.int:
    """Let the network decide when a message arrives, and whether."""
    engine: Engine = sender._engine
    sender._order += 2
    arrivals, lost = engine.registry.carry(sender, receiver, topic, payload)
    if lost is not None:
        engine.count_dropped(receiver.name, topic, lost)
        sender._chain = ((sender._chain + sender._order * _ORDERS) * _LINKS) & _MASK
        return 0
    copy: cython.longlong = 0
    for arrival in arrivals:
        _hand_over(sender, receiver, topic, payload, print_of_payload, arrival, sender._order + copy)
        copy += 1
    return 0


@cython.cclass
class Timer:
    """An event that an entity has scheduled for itself."""

    __slots__ = ("_owner", "is_live", "payload", "time", "topic")

    _owner: Core
    if cython.compiled:
        topic = cython.declare(object, visibility="readonly")
        payload = cython.declare(object, visibility="readonly")
        time = cython.declare(cython.longlong, visibility="readonly")
        is_live = cython.declare(cython.bint, visibility="public")

    def __init__(self, owner: Any, topic: str, payload: Any, time: int) -> None:
        self._owner = owner
        self.topic = topic
        self.payload = payload
        self.time = time
        self.is_live = True


@cython.cclass
class Process:
    """A generator that an entity runs: what it yields is what it waits for."""

    __slots__ = ("_done", "_generator", "_is_limited", "_owner", "_ticket", "_value", "_waits_on")

    _owner: Core
    _generator: object
    _ticket: cython.longlong  # The order of the event that wakes it; any other such event is stale.
    _waits_on: object
    _is_limited: cython.bint
    _value: object
    _done: object

    def __init__(self) -> None:
        self._owner = self._generator = self._waits_on = self._value = self._done = None
        self._ticket = _NEVER
        self._is_limited = False

    @property
    def has_ended(self) -> bool:
        return self._generator is None

    @property
    def value(self) -> Any:
        """What the generator returned; None before that."""
        return self._value if self._generator is None else None

    def interrupt(self, cause: Any = None) -> None:
        """Raise `Interrupt` in the process, at this moment, once the entity's present event has been handled."""
        _acting(self._owner)
        if self._generator is None:
            raise ModelError("a process that has ended can't be interrupted", advice="look at has_ended first")
        owner: Core = self._owner
        owner._order += 2
        owner._engine._push(owner.now, owner.rank, owner._order, _INTERRUPTS, owner, owner, (self, cause))

    def wake(self, value: Any) -> None:
        """Let the process go on with a value; what it waited for has happened."""
        _acting(self._owner)
        self._stop_waiting()
        self._value = value
        self._ticket = self._owner._after(0, self)

    def close(self) -> None:
        """End the process where it waits. The one that is running ends when it waits next."""
        generator = self._generator
        if generator is not None and not generator.gi_running:
            self._generator = None
            self._stop_waiting()
            generator.close()

    @cython.cfunc
    def _stop_waiting(self) -> cython.int:
        if self._waits_on is not None:
            self._waits_on.forget(self)
            self._waits_on = None
        if self._is_limited:
            self._is_limited = False
            self._owner._engine.cancelled += 1
        self._ticket = _NEVER
        return 0


@cython.cfunc
def _resume(process: Process, value: object, interrupt: object) -> cython.int:
    """Run a process until it waits again."""
    generator = process._generator
    owner: Core = process._owner
    while True:
        try:
            if interrupt is not None:
                yielded = generator.throw(interrupt)
                interrupt = None
            elif value is None:
                yielded = next(generator)
            else:
                yielded = generator.send(value)
        except StopIteration as stop:
            _finish(process, stop.value)
            return 0
        if owner._state != _ALIVE:
            process.close()
            return 0
        if type(yielded) is int and _is_word(yielded):
            process._ticket = owner._after(yielded, process)
            return 0
        value = _wait(process, yielded)
        if value is _PENDING:
            return 0


@cython.cfunc
def _wait(process: Process, yielded: object) -> object:
    """Return what a process waits for if it is there already; otherwise see to it that it is told."""
    owner: Core = process._owner
    limit: cython.longlong = -1
    if type(yielded) is Receive:
        if owner._inbox is None:
            owner._inbox = Inbox()
        message = owner._inbox.take(yielded.topic)
        if message is not None:
            return message
        owner._inbox.readers.append((yielded.topic, process))
        process._waits_on = owner._inbox
        limit = yielded.limit
    elif isinstance(yielded, str):
        process._ticket = owner._after(as_time(yielded, "a delay"), process)
        return _PENDING
    else:
        what = yielded
        if type(yielded) is Wait:
            what = yielded.what
            limit = yielded.limit
        if isinstance(what, Process):
            what = _done_signal(what)
        if not isinstance(what, Signal):
            raise refuse(yielded)
        if what.fired:
            return what.value
        what.waiters.append(process)
        process._waits_on = what
    if limit >= 0:
        process._is_limited = True
        process._ticket = owner._after(limit, process)
    return _PENDING


@cython.cfunc
def _done_signal(process: Process) -> object:
    if process._done is None:
        process._done = Signal()
        if process._generator is None:
            process._done.fire(process._value)
    return process._done


@cython.cfunc
def _finish(process: Process, value: object) -> cython.int:
    owner: Core = process._owner
    process._generator = None
    process._value = value
    if process._done is not None and owner._state == _ALIVE:
        process._done.fire(value)
    if owner._main is process:
        owner._main = None
        if type(owner).ends_with_its_process and owner._state == _ALIVE:
            owner.end()
    elif owner._others is not None:
        owner._others.remove(process)
    return 0


@cython.cfunc
def _adopt(owner: Core, result: object, is_main: cython.bint) -> cython.int:
    """Take what a handler returned: a generator is a process."""
    if type(result) is CoroutineType:
        result.close()
        raise ModelError("a handler is a coroutine, which nothing here can wait for", advice="write yield, not await")
    if type(result) is not _Generator:
        return 0
    process = Process()
    process._owner = owner
    process._generator = result
    if is_main:
        owner._main = process
    else:
        if owner._others is None:
            owner._others = []
        owner._others.append(process)
    return _resume(process, None, None)


@cython.cfunc
def _is_dead(event: object, order: cython.longlong) -> cython.bint:
    """Whether nothing will come of an event: a timer that was cancelled, a process that was woken by something else."""
    if type(event) is Process:
        process: Process = event
        return process._ticket != order or process._owner._state == _ENDED
    if type(event) is Timer:
        timer: Timer = event
        return not timer.is_live or timer._owner._state == _ENDED
    return False


@cython.cfunc
def _sender_name(slot: Slot) -> object:
    if type(slot.what) is Process:
        process: Process = slot.what
        return process._owner.name
    if type(slot.what) is Timer:
        timer: Timer = slot.what
        return timer._owner.name
    sender: Core = slot.sender
    return sender.name


@cython.cfunc
def _deliver(engine: Engine, target: Core, topic: object, payload: object) -> cython.int:
    """Give a message to an entity that has no handler of its own for the topic."""
    if topic is _INTERRUPTS:
        return _interrupt(payload)
    if topic == INTERRUPTION:
        if target._main is not None:
            process: Process = target._main
            process._stop_waiting()
            return _resume(process, None, Interrupt(payload))
        return 0
    sequence = engine.order >> 1
    sender: Core = engine.sender
    message = Message(engine.now, engine.sent, sender.name, sequence, engine.order & 1, topic, payload)
    function = target._handlers.by_topic.get(None)
    if function is not None:
        result = function(target, message)
        return _adopt(target, result, False) if result is not None else 0
    if target._main is None and not target._others:
        engine.registry.refuse_message(target, message)
    if target._inbox is None:
        target._inbox = Inbox()
    reader = target._inbox.reader(topic)
    if reader is None:
        target._inbox.messages.append(message)
        return 0
    process = reader
    process._waits_on = None
    process._stop_waiting()
    return _resume(process, message, None)


@cython.cfunc
def _wake(process: Process) -> cython.int:
    """Let a process go on whose time has come: with what it was given, or because the limit of its wait has passed."""
    process._ticket = _NEVER
    if process._is_limited:
        process._is_limited = False
        process._stop_waiting()
        return _resume(process, None, None)
    value = process._value
    process._value = None
    return _resume(process, value, None)


def handlers_of(kind: type) -> Handlers:
    """Return the handlers of a class of entities by topic: `on_x` for x; `handle`, if there is one, for all others."""
    table = {name[3:]: getattr(kind, name) for name in dir(kind) if name.startswith("on_")}
    for name, topic in (("handle", None), ("start", _STARTS)):
        if hasattr(kind, name):
            table[topic] = getattr(kind, name)
    return Handlers(table)


def advance(engine: Engine, end: cython.longlong, limit: cython.longlong) -> int:
    """Handle the events before `end`, at most `limit` of them, and return how many it were."""
    handled: cython.longlong = 0
    time: cython.longlong
    sent: cython.longlong
    order: cython.longlong
    chain: cython.ulonglong
    target: Core
    sender: Core
    process: Process
    timer: Timer
    is_live: cython.bint
    number: cython.Py_ssize_t
    handlers: Handlers
    if engine.actor is not None:
        raise UsageError("the simulation is running already", advice="don't run it from inside a handler")
    try:
        while handled < limit:
            if cython.compiled:
                if engine._size == 0 or engine._heap[0].time >= end:
                    break
                engine._hole = True
                number = engine._heap[0].slot
                time = engine._heap[0].time
                sent = engine._keys[number].sent
                order = engine._keys[number].order
                slot: Slot = cython.cast(Slot, PyList_GET_ITEM(engine._cells, number))
                what = slot.what
                slot.what = None
                engine._free[engine._free_count] = number
                engine._free_count += 1
            else:
                queue = engine._queue
                if not queue or queue[0][0] >= end:
                    break
                time, sent, _, _, order, what, sender, target, payload = heappop(queue)
            handled += 1
            engine.now = time
            engine.sent = sent
            engine.order = order
            if type(what) is Process:
                process = what
                target = process._owner
                if process._ticket == order and target._state == _ALIVE:
                    engine.actor = engine.sender = target
                    chain = ((target._chain + time * _TIMES + order * _ORDERS) * _LINKS) & _MASK
                    target._chain = chain ^ (chain >> 29)
                    _wake(process)
            else:
                if type(what) is Timer:
                    timer = what
                    sender = target = timer._owner
                    what = timer.topic
                    payload = timer.payload
                    is_live = timer.is_live and target._state == _ALIVE
                    timer.is_live = False
                else:
                    if cython.compiled:
                        sender = cython.cast(Core, slot.sender)
                        target = cython.cast(Core, slot.target)
                        payload = slot.payload
                        slot.sender = slot.target = slot.payload = None
                    is_live = True
                    engine.sender = sender
                    if target._state != _ALIVE:
                        target = engine.registry.arrived(target, sender, what, time)
                        is_live = target is not None
                if is_live:
                    engine.sender = sender
                    engine.actor = target
                    chain = ((target._chain + time * _TIMES + order * _ORDERS + sender._key) * _LINKS) & _MASK
                    target._chain = chain ^ (chain >> 29)
                    if type(payload) is _Parcel:
                        payload = payload.open()
                    handlers = target._handlers
                    if what is not handlers.topic:
                        handlers.find(what)
                    function = handlers.function
                    if function is None:
                        _deliver(engine, target, what, payload)
                    else:
                        result = function(target) if what is _STARTS else function(target, payload)
                        if result is not None:
                            _adopt(target, result, what is _STARTS)
            if cython.compiled:
                engine._close_hole()
            if engine.cancelled > 1000 and 2 * engine.cancelled > engine.pending():
                engine._purge()
    except Exception as error:
        raise engine.registry.blame(error, target, what) from (None if isinstance(error, WorldlineError) else error)
    finally:
        engine.events += handled
        engine.actor = None
        if cython.compiled:
            engine._close_hole()
    return handled


@cython.cfunc
def _interrupt(payload: object) -> cython.int:
    process: Process = payload[0]
    if process._generator is None:
        return 0
    process._stop_waiting()
    return _resume(process, None, Interrupt(payload[1]))
