# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False
# cython: annotation_typing=True
# cython: embedsignature=True, embedsignature.format=clinic
"""The engine: the clock of one worker, and what its entities need to send each other messages.

Theory of operation
-------------------
This is ordinary Python, and in Cython's pure-Python mode also C: what is marked `cython.` turns into C types when the
module is compiled and means nothing when it isn't. Its C types are in `engine.pxd`. `process.py` stands on it, and has
the loop. The builds share all of it but the queue, which is `heap.pyx` compiled and `queue.py` uncompiled, and the
lines that ask for `cython.compiled`. Loops and branches are written out, because calls are what its time goes into;
what is rare is in plain modules, `trouble.py` and `account.py`.

The order of events is the one order of arrivals: (arrival, sent, sender's rank, sender's order). Ranks are places in
the roster sorted by name, doubled. A sender that was created during the run has the odd rank between its neighbors by
name; where two such share a rank, their names decide. So keys compare as in `model.message`, on every worker, without
numbering newcomers for all. An order is twice the sequence number; the odd one is the copy that a
link made.

Every entity has a chain, a hash of what it has sent and was given so far; digests are made of the chains. A link of
the chain is CPython's hash of a tuple of small ints: in plain Python that is one fast call; compiled it is written out
in `_native.pxd`.

Invariants
----------
E1. Events are handed out in the order of their keys, as far as they are known; nothing is pushed before `now`.
E2. An event from another entity, or from outside, is at least 1 ns under way; what happens at 0 was decided before.
    So whatever arrives at one moment was sent before it, and entities of different workers can act at the same moment
    in any order.
E3. What isn't an entity's own (another's state, the queue, the clock of the machine) never enters a chain.
E4. An entity that a waiting event names keeps its number in the table: one of even rank for ever, the others while
    `pins` counts an event.
E5. Nothing depends on whether there is an observer: it is only told, by the functions of `account.py`. None
    comes or goes while events are handled, so that the loop needn't ask each time.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

from worldline.kernel.account import RECORD, tell_own, tell_sending
from worldline.kernel.draws import Draws
from worldline.kernel.packing import fingerprint, seal
from worldline.kernel.trouble import (
    check_delay,
    refuse_arrival,
    refuse_burst,
    refuse_late_event,
    refuse_past,
    refuse_to_act,
    refuse_to_set,
)
from worldline.model.errors import ModelError, UsageError, shown
from worldline.model.message import check_name
from worldline.model.reading import as_time
from worldline.model.time import TIME_MAX, TimeLike, format_time

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # What isn't a class is imported by `engine.pxd`.
    from worldline.kernel.queue import BucketQueue as Queue

    # What an entity is to an engine. ABSENT: named by a sender, but not here (yet).
    NEW, ALIVE, ENDED, ABSENT, REMOTE = range(5)

    def is_word(value: int) -> bool:
        """Whether an int fits into 64 bits."""
        return -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF


# Chains have 60 bits, so that none of the numbers that go into one is changed by Python's own hash of an int.
_CHAIN = cython.declare(cython.ulonglong, 2**60 - 1)
_SMALL = cython.declare(cython.longlong, 2**59)
_SMALLEST = cython.declare(cython.longlong, -(2**59))

_SPREAD = cython.declare(cython.ulonglong, 14029467366897019727)  # A prime of xxHash.

Text = str  # Under its own name, Cython takes `str` for exactly that class, and would refuse members of an enum.

# Messages that only the engine sends: their topics are these objects.
STARTS = object()
INTERRUPTS = object()
LAPSES = object()  # Of a timer, when a time has passed that is part of a combination.

INTERRUPTION = "interrupt!"  # The topic of an interruption from another entity; no handler can have that name.

_LAST = cython.declare(cython.longlong, TIME_MAX)
_BURST_MAX = cython.declare(cython.longlong, 1_000_000)
_CANCELED_MAX = cython.declare(cython.Py_ssize_t, 1_000)

# C variables: to look up a module's own names takes longer than a turn of the queue.
_seal = cython.declare(object, seal)


@cython.final
@cython.cclass
class Handlers:
    """The handlers of a class of entities by topic. Remembers what it was asked for last: mostly that is asked next."""

    def __init__(self, by_topic: dict[Any, Any]) -> None:
        self.by_topic = by_topic
        self.topic: Any = None
        self.function: Any = None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def find(self, topic: Any) -> cython.int:
        self.function = self.by_topic.get(topic)
        self.topic = topic
        return 0


@cython.final
@cython.cclass
class Topics:
    """The topics that were sent so far, by number, each with its part in chains; and what is known of the last one.

    Mostly the next message has the same one. Then it is the same object, which is all that is looked at.
    """

    def __init__(self) -> None:
        self.numbered: list[tuple[Any, int]] = []
        self._numbers: dict[Any, int] = {}
        self.given: Any = None
        self.text: Any = None
        self.number = -1
        self.chain = 0
        self.learn(STARTS)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def learn(self, topic: Any) -> cython.int:
        """Make this the last topic; refuse what can't be one."""
        text = topic
        if type(topic) is not str and not _is_engines(topic):  # Members of enums become the text that they are.
            text = str.__str__(check_name(topic, "a topic"))
        number = self._numbers.get(text)
        if number is None:
            chain = 0 if _is_engines(text) else fingerprint(b"topic " + check_name(text, "a topic").encode())
            number = self._numbers[text] = len(self.numbered)
            self.numbered.append((text, chain))
        self.given = topic
        self.text = text
        self.number = number
        self.chain = self.numbered[number][1]
        return 0


LETTER = Struct("@qqqiiii")
"""A message to another worker: its arrival, the time sent, its order, and numbers of sender, receiver, topic, payload.

Entities have their places as numbers, those that were created during the run -1 - their number among the names that
come along. Topics have the sending engine's numbers. A payload has its number among those that come along; -1: none.
"""


@cython.final
@cython.cclass
class Outbox:
    """What is for the entities of one other worker: numbers, so that neither end makes objects of them."""

    def __init__(self) -> None:
        self.posted = 0
        self._letters = bytearray()
        self._size = 0
        self._topics_known = 0
        self._names: list[str] = []
        self._payloads: list[Any] = []

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _number_of(self, entity: Any) -> cython.int:
        core: EntityBase = entity
        rank: cython.int = core._wl_rank if cython.compiled else core._wl_rank[0]
        if not rank & 1:
            return core._wl_place
        self._names.append(core._wl_name)
        return -len(self._names)

    def take(self, topics: Sequence[tuple[Any, int]]) -> bytes:
        """Return the letters since the last time, and what comes along with them.

        `topics` are all that the engine has numbered, of which the other worker may not know the last.
        """
        letters = bytes(self._letters[: self._size])
        fresh = [text if type(text) is str else "" for text, _ in topics[self._topics_known :]] if letters else []
        if fresh or self._names or self._payloads:
            letters += pickle.dumps((fresh, self._names, self._payloads), protocol=5)
            self._topics_known += len(fresh)
            self._names = []
            self._payloads = []
        self._size = 0
        if not cython.compiled:
            self._letters.clear()
        return letters


@cython.final
@cython.cclass
class Mail:
    """What goes to the entities of other workers, and comes from them: letters.

    `names` are those of all places, and `workers` says on which worker each is; none: all are here.
    """

    def __init__(self, names: Sequence[str], workers: Sequence[int]) -> None:
        self._names = names
        self._workers = workers
        self.outboxes = [Outbox() for _ in range(max(workers, default=-1) + 1)]  # By the numbers of workers.

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def post(
        self,
        engine: Engine,
        arrival: cython.longlong,
        order: cython.longlong,
        sender: Any,
        target: Any,
        topic: Any,
        payload: Any,
    ) -> cython.int:
        """Put a message to an entity of another worker into the outbox."""
        goal: EntityBase = cython.cast(EntityBase, target)
        outbox: Outbox = self.outboxes[self._workers[goal._wl_place]]
        if topic is not engine.topics.given:
            engine.topics.learn(topic)
        here: cython.int = outbox._number_of(sender)
        there: cython.int = outbox._number_of(target)
        number_of_payload: cython.int = -1
        if payload is not None:
            number_of_payload = len(outbox._payloads)
            outbox._payloads.append(payload)
        outbox.posted += 1
        if cython.compiled:
            size: cython.Py_ssize_t = outbox._size + cython.sizeof(Letter)
            if size > len(outbox._letters):
                PyByteArray_Resize(outbox._letters, 2 * size)
            letter: cython.pointer(Letter) = cython.cast(
                cython.pointer(Letter), PyByteArray_AS_STRING(outbox._letters) + outbox._size
            )
            letter.arrival = arrival
            letter.sent = engine.now
            letter.order = order
            letter.sender = here
            letter.receiver = there
            letter.topic = engine.topics.number
            letter.payload = number_of_payload
            outbox._size = size
        else:
            outbox._letters += LETTER.pack(
                arrival, engine.now, order, here, there, engine.topics.number, number_of_payload
            )
            outbox._size += LETTER.size
        return 0

    def take_in(
        self,
        engine: Engine,
        frame: bytes,
        start: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        topics: list[str],
        past: cython.longlong,
    ) -> None:
        """Take in so many letters of a frame, of which none arrives before `past`.

        `topics` are those that were learned from the same worker before; it grows.
        """
        end: cython.Py_ssize_t = start + count * LETTER.size
        names: list[str] = []
        payloads: list[Any] = []
        if end < len(frame):
            fresh, names, payloads = pickle.loads(memoryview(frame)[end:])
            topics += fresh
        arrival: cython.longlong
        sent: cython.longlong
        order: cython.longlong
        here: cython.int
        there: cython.int
        topic: cython.int
        number_of_payload: cython.int
        number: cython.Py_ssize_t
        if cython.compiled:
            letters: cython.pointer(Letter) = cython.cast(cython.pointer(Letter), PyBytes_AS_STRING(frame) + start)
        else:
            unpacked = LETTER.iter_unpack(memoryview(frame)[start:end])
        for number in range(count):
            if cython.compiled:
                letter: Letter = letters[number]
                arrival, sent, order = letter.arrival, letter.sent, letter.order
                here, there = letter.sender, letter.receiver
                topic, number_of_payload = letter.topic, letter.payload
            else:
                arrival, sent, order, here, there, topic, number_of_payload = next(unpacked)
            sender = engine._find(self._names[here] if here >= 0 else names[-1 - here])
            target = engine._find(self._names[there] if there >= 0 else names[-1 - there])
            if arrival < past:
                engine.roster.refuse_early(sender, sent, target, arrival, past)
            payload = None if number_of_payload < 0 else payloads[number_of_payload]
            engine._push(arrival, sent, order, sender, target, topics[topic], payload)


def handlers_of(kind: type) -> Handlers:
    """Return the handlers of a class: `on_x` for the topic x, and `handle`, if there is one, for all others."""
    table: dict[Any, Any] = {name[3:]: getattr(kind, name) for name in dir(kind) if name.startswith("on_")}
    for name, topic in (("handle", None), ("start", STARTS)):
        if hasattr(kind, name):
            table[topic] = getattr(kind, name)
    return Handlers(table)


@cython.final
@cython.cclass
class Engine:
    """The clock of one worker, and what its entities need to find each other.

    `least` is the shortest latency between any two places, and `latency` the one that messages take; 0 where that isn't
    the same for all, and the roster has to be asked.
    """

    def __init__(
        self, roster: Any, *, latency: int, least: int, names: Sequence[str] = (), workers: Sequence[int] = ()
    ) -> None:
        """`names` and `workers` are those of the `Mail`."""
        self.queue = Queue()
        self.roster = roster
        self.topics = Topics()
        self.mail = Mail(names, workers)
        self.directory: dict[str, Any] = {}
        self.dropped: dict[tuple[str, str, str], int] = {}
        self.latency = latency
        self.least = least
        self.now = self.events = 0
        self.actor: Any = None
        self.failed: Any = None
        self.observer: Any = None
        self._patience = _CANCELED_MAX
        self._leaving: list[EntityBase] = []

    @property
    def sender(self) -> Any:
        """Who sent the event that is being handled."""
        event = self.queue.event
        return self.queue.table[event.sender] if cython.compiled else event[5]  # type: ignore[attr-defined]

    @property
    def sent(self) -> int:
        """When the event was sent that is being handled, or was last."""
        return int(self.queue.event.sent if cython.compiled else self.queue.event[1])

    @property
    def order(self) -> int:
        """The order of the event that is being handled, or was last."""
        return int(self.queue.event.order if cython.compiled else self.queue.event[3])

    def enter(
        self, entity: Any, name: Text, rank: int, place: int, key: int, handlers: Handlers, *, since: int
    ) -> None:
        """Make an entity part of the simulation, now. `since` is when that was decided, for the order of starts."""
        core: EntityBase = entity
        if core._wl_state != NEW:
            raise UsageError(f"{core._wl_name} is part of a simulation already, and can't be {name} too")
        self._introduce(core, name, rank, place, key)
        core._wl_handlers = handlers
        core._wl_state = ALIVE
        if cython.compiled:
            self._enter_table(core)
        self.directory[name] = core
        if STARTS in handlers.by_topic:
            core._wl_order += 2
            self._push(self.now, since, core._wl_order, core, core, STARTS, None)

    def stand_in(self, name: Text, rank: int, place: int, key: int, *, remote: bool) -> Any:
        """Return what stands for an entity that isn't here: it is at another worker, or perhaps nowhere."""
        core: EntityBase = EntityBase()
        self._introduce(core, name, rank, place, key)
        core._wl_state = REMOTE if remote else ABSENT
        core._wl_number = -1
        return core

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _introduce(self, entity: Any, name: Any, rank: Any, place: Any, key: Any) -> cython.int:
        core: EntityBase = entity
        core._wl_engine = self
        core._wl_name = name
        # Uncompiled, what names decide is part of the rank: a pair that is made once is one thing less for each event.
        core._wl_rank = rank if cython.compiled else (rank, name if rank & 1 else "")
        core._wl_place = place
        core._wl_key = key
        return 0

    def accept(self, time: int, sent: int, sender: Any, order: int, target: Any, topic: Text, payload: Any) -> None:
        """Take in a message from outside."""
        self._push(time, sent, order, sender, target, topic, payload)

    @cython.cfunc
    def _find(self, name: Any) -> object:
        """Return an entity by its name, or what stands for it."""
        found = self.directory.get(name)
        return found if found is not None else self.roster.locate(name)

    def count_dropped(self, receiver: Text, topic: Text, reason: str) -> None:
        key = (receiver, topic, reason)
        self.dropped[key] = self.dropped.get(key, 0) + 1

    # -- Events

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _push(
        self,
        time: cython.longlong,
        sent: cython.longlong,
        order: cython.longlong,
        sender: Any,
        target: Any,
        topic: Any,
        payload: Any,
    ) -> cython.int:
        """Let a message arrive at a time."""
        if cython.compiled:
            source: EntityBase = cython.cast(EntityBase, sender)
            goal: EntityBase = cython.cast(EntityBase, target)
            if topic is not self.topics.given:
                self.topics.learn(topic)
            if source._wl_number < 0:
                self._enter_table(source)
            if goal._wl_number < 0:
                self._enter_table(goal)
            source._wl_pins += source._wl_rank & 1
            goal._wl_pins += goal._wl_rank & 1
            self.queue.push(
                time,
                sent,
                source._wl_rank,
                order,
                source._wl_key,
                source._wl_number,
                goal._wl_number,
                self.topics.number,
                BARE if payload is None else LADEN,
                payload,
            )
        else:
            self.queue.push((time, sent, sender._wl_rank, order, topic, sender, target, payload))
        return 0

    # -- The table of the entities that events name; uncompiled, events hold them themselves.

    if cython.compiled:

        @cython.cfunc
        @cython.exceptval(-1, check=False)
        def _enter_table(self, entity: Any) -> cython.int:
            core: EntityBase = entity
            if self.queue.vacant:
                core._wl_number = self.queue.vacant.pop()
                self.queue.table[core._wl_number] = core
            else:
                core._wl_number = len(self.queue.table)
                self.queue.table.append(core)
            return 0

        @cython.cfunc
        @cython.exceptval(-1, check=False)
        def _unpin(self, number: cython.int) -> cython.int:
            """Note that one event less names an entity that was created during the run."""
            core: EntityBase = self.queue.table[number]
            core._wl_pins -= 1
            return self._leave_table(core)

        @cython.cfunc
        @cython.exceptval(-1, check=False)
        def _leave_table(self, entity: Any) -> cython.int:
            """Take an entity out of the table if it isn't alive and no event names it any more."""
            core: EntityBase = entity
            if core._wl_pins == 0 and core._wl_state != ALIVE and core._wl_rank & 1 and core._wl_number >= 0:
                self.queue.table[core._wl_number] = None
                self.queue.vacant.append(core._wl_number)
                core._wl_number = -1
            return 0

        @cython.cfunc
        @cython.exceptval(-1, check=False)
        def _let_go(self) -> cython.int:
            """Forget those who have ended during the last event."""
            for entity in self._leaving:
                self._leave_table(entity)
            self._leaving = []
            return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_engines(topic: Any) -> cython.bint:
    return topic is STARTS or topic is INTERRUPTS


@cython.cclass
class EntityBase:
    """What every entity has: a name, a clock, a place in the order of events, and the means to send and to wait.

    Users derive from `Entity`, which adds the rest; this part is here because it is hot.
    """

    # Slots keep these apart from what users give their entities, which is what travels between processes; the prefix
    # keeps users' names free.
    __slots__ = (
        "_wl_ahead",
        "_wl_burst",
        "_wl_burst_at",
        "_wl_chain",
        "_wl_engine",
        "_wl_extras",
        "_wl_handlers",
        "_wl_inbox",
        "_wl_key",
        "_wl_main",
        "_wl_name",
        "_wl_number",
        "_wl_order",
        "_wl_others",
        "_wl_pins",
        "_wl_place",
        "_wl_random",
        "_wl_rank",
        "_wl_running",
        "_wl_state",
    )

    if not cython.compiled:  # Compiled, all of these are 0 or None from the start.
        _wl_ahead: int
        _wl_burst: int
        _wl_burst_at: int
        _wl_chain: int
        _wl_engine: Engine
        _wl_extras: Any
        _wl_handlers: Handlers
        _wl_inbox: Any
        _wl_key: int
        _wl_main: Any
        _wl_name: str
        _wl_number: int
        _wl_order: int
        _wl_others: list[Any] | None
        _wl_pins: int
        _wl_place: int
        _wl_random: Any
        _wl_rank: Any
        _wl_running: int
        _wl_state: int

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """Set up what an entity has before its own `__init__`, which then needn't call this one's."""
            core: Any = object.__new__(cls)
            core._wl_state = core._wl_burst = core._wl_burst_at = core._wl_order = core._wl_chain = core._wl_key = 0
            core._wl_rank = core._wl_place = core._wl_number = core._wl_pins = core._wl_ahead = core._wl_running = 0
            core._wl_engine = core._wl_handlers = core._wl_inbox = core._wl_main = core._wl_others = core._wl_random = (
                None
            )
            core._wl_name = core._wl_extras = None
            return core

    @property
    def name(self) -> str:
        """What others know it by; None before it has been added to a simulation."""
        return self._wl_name

    @name.setter
    def name(self, _: object) -> None:
        refuse_to_set("name")

    @property
    def now(self) -> int:
        """The time, in nanoseconds."""
        return self._wl_engine.now if self._wl_engine is not None else 0

    @now.setter
    def now(self, _: object) -> None:
        refuse_to_set("now")

    @property
    def sender(self) -> str:
        """Who sent the message that is being handled; the entity itself for its own timers."""
        engine: Engine = acting(self)
        return str(engine.sender.name)

    @sender.setter
    def sender(self, _: object) -> None:
        refuse_to_set("sender")

    @property
    def sent_at(self) -> int:
        """When the message that is being handled was sent; 0 if that was before the beginning."""
        engine: Engine = acting(self)
        return max(engine.sent, 0)

    @sent_at.setter
    def sent_at(self, _: object) -> None:
        refuse_to_set("sent_at")

    @property
    def random(self) -> Draws:
        """The entity's own draws, fixed by the simulation's seed and the entity's name."""
        engine: Engine = acting(self)
        if self._wl_random is None:
            self._wl_random = Draws(engine.roster.seed, self._wl_name)
        return self._wl_random  # type: ignore[no-any-return] # A variable of that class would be looked at each time.

    @random.setter
    def random(self, _: object) -> None:
        refuse_to_set("random")

    @property
    def has_ended(self) -> bool:
        return self._wl_state == ENDED

    @has_ended.setter
    def has_ended(self, _: object) -> None:
        refuse_to_set("has_ended")

    @property
    def _wl_observer(self) -> Any:
        """Who is told of what happens, for an entity that tells it itself; None without an observer."""
        return self._wl_engine.observer if self._wl_engine is not None else None

    @property
    def _wl_number_sent(self) -> int:
        """The number of what it has sent last, a timer included, for an entity that tells that itself."""
        return self._wl_order >> 1

    @property
    def _wl_number_given(self) -> int:
        """The number that the message at hand has; it is its sender's."""
        return acting(self).order >> 1

    @property
    def _wl_is_here(self) -> bool:
        """Whether it is, or was, an entity of this worker, and not just a name."""
        return self._wl_state == ALIVE or self._wl_state == ENDED

    @property
    def _wl_roster(self) -> Any:
        """Who else is there."""
        return acting(self).roster

    def send(self, to: Text, topic: Text, payload: Any = None, *, delay: TimeLike | None = None) -> None:
        """Send a message to an entity, by name.

        Without a delay it takes the link between the two: its latency, losses and all. With one it arrives exactly
        that much later, which can't be less than the link's minimum.
        """
        engine: Engine = self._wl_engine
        if engine is None or engine.actor is not self or self._wl_state != ALIVE:
            refuse_to_act(self, engine)
        found = engine.directory.get(to)
        if found is None:
            found = engine.roster.locate(to)
        # Without a look at its class, which takes a while for users' classes.
        target: EntityBase
        if cython.compiled:  # noqa: SIM108 - mypy reads what isn't C.
            target = cython.cast(EntityBase, found)
        else:
            target = found
        latency: cython.longlong = 1
        if delay is not None:
            if not cython.compiled and type(delay) is int and 0 <= delay <= _LAST:
                latency = delay  # Without a call, which costs more.
            else:
                latency = _nanoseconds(delay)
        if target is self:
            self._wl_schedule(topic, payload, latency)
            return
        if topic is not engine.topics.given:
            engine.topics.learn(topic)
        text = engine.topics.text
        content: cython.ulonglong = target._wl_key ^ engine.topics.chain
        if payload is not None:
            word: cython.longlong = _LAST
            if type(payload) is int and (not cython.compiled or is_word(payload)):
                word = payload
            if _SMALLEST <= word < _SMALL:
                content ^= (word * _SPREAD + 1) & _CHAIN
            elif type(payload) is tuple and _is_of_small(payload):
                content ^= hash(payload) & _CHAIN
            else:
                print_of_payload, payload = _seal(payload)
                content ^= print_of_payload
        now: cython.longlong = engine.now
        arrival: cython.longlong
        arrival_of_copy: cython.longlong = 0
        if delay is not None:
            if latency < engine.least or latency > _LAST or not engine.least:
                check_delay(self, target, latency)
            arrival = now + latency
        elif target._wl_place == self._wl_place:
            arrival = now + 1  # They stand at the same place: the smallest step.
        elif engine.latency:
            arrival = now + engine.latency
        else:
            arrivals, lost = engine.roster.carry(self, target, text, payload)
            if lost is not None:
                self._wl_order += 2
                engine.count_dropped(target._wl_name, text, lost)
                if engine.observer is not None:
                    tell_sending(engine, self, target, text, payload, self._wl_order, arrivals[0], 0, lost)
                return
            arrival = arrivals[0]
            if len(arrivals) > 1:
                arrival_of_copy = arrivals[1]
        if arrival > _LAST or arrival_of_copy > _LAST:
            refuse_arrival(target)
        order: cython.longlong = self._wl_order + 2
        self._wl_order = order
        if engine.observer is not None:
            tell_sending(engine, self, target, text, payload, order, arrival, arrival_of_copy, None)
        while True:
            if cython.compiled:
                self._wl_chain = hash_of_four(self._wl_chain, arrival, order, content)
            else:
                self._wl_chain = hash((self._wl_chain, arrival, order, content)) & _CHAIN
            if target._wl_state == REMOTE:
                engine.mail.post(engine, arrival, order, self, target, text, payload)
            elif cython.compiled:
                engine._push(arrival, now, order, self, target, text, payload)
            else:
                engine.queue.push((arrival, now, self._wl_rank, order, text, self, target, payload))
            if not arrival_of_copy:
                break
            arrival = arrival_of_copy
            arrival_of_copy = 0
            order += 1

    def schedule(
        self, topic: Text, payload: Any = None, *, delay: TimeLike | None = None, at: TimeLike | None = None
    ) -> Any:
        """Let an event of the entity's own happen later, handled like a message; return it, so that it can be canceled.

        A delay of 0 is allowed: the event happens at the same moment, after all that has arrived.
        """
        engine: Engine = acting(self)
        if (delay is None) == (at is None):
            raise UsageError("an event is scheduled after a delay or at a time", advice="give one of the two")
        if at is None:
            return self._wl_schedule(topic, payload, _nanoseconds(delay))
        return self._wl_schedule(topic, payload, _nanoseconds(at) - engine.now)

    @cython.cfunc
    def _wl_schedule(self, topic: Any, payload: Any, delay: cython.longlong) -> object:
        engine: Engine = self._wl_engine
        if topic is not engine.topics.given:
            engine.topics.learn(topic)
        timer = new_timer(self, engine.topics.text, payload, engine.now + delay)
        self._wl_after(delay, timer)
        return timer

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_after(self, delay: cython.longlong, event: object) -> cython.longlong:
        """Let a process wake or a timer ring, and return the event's order."""
        engine: Engine = self._wl_engine
        now: cython.longlong = engine.now
        if delay <= 0:
            self._wl_check_burst(delay)
        elif delay > _LAST - now:
            refuse_late_event()
        order: cython.longlong = self._wl_order + 2
        self._wl_order = order
        self._wl_ahead += 1
        if cython.compiled:
            self._wl_pins += self._wl_rank & 1
            engine.queue.push(now + delay, now, self._wl_rank, order, self._wl_key, self._wl_number, -1, -1, OWN, event)
        else:
            engine.queue.push((now + delay, now, self._wl_rank, order, event, self, None, None))
        return order

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_check_burst(self, delay: cython.longlong) -> cython.int:
        engine: Engine = self._wl_engine
        if delay < 0:
            refuse_past(engine.now + delay)
        if self._wl_burst_at != engine.now:
            self._wl_burst_at = engine.now
            self._wl_burst = 0
        self._wl_burst += 1
        if self._wl_burst > _BURST_MAX:
            refuse_burst(_BURST_MAX)
        return 0

    def cancel(self, timer: Any) -> bool:
        """Make sure that a scheduled event doesn't happen; return whether that was still possible."""
        engine: Engine = acting(self)
        if not isinstance(timer, ScheduledEvent):
            raise UsageError(f"{shown(timer)} isn't a timer", advice="cancel what schedule() has returned")
        own: ScheduledEvent = timer
        if own._owner is not self:
            raise ModelError(f"the timer is {own._owner.name}'s", advice="entities cancel their own timers only")
        rings = own.is_live
        if rings:
            own.is_live = False
            engine.queue.dead += 1
        return rings

    def interrupt(self, to: Text, cause: Any = None, *, delay: TimeLike | None = None) -> None:
        """Interrupt another entity's main process, by a message that only it can take: raises `Interrupt` there."""
        self.send(to, INTERRUPTION, cause, delay=delay)

    def _wl_note(self, what: Text, value: Any) -> None:
        """Make a value that the entity gives to the world outside part of its history."""
        engine: Engine = acting(self)
        try:
            print_of_value: cython.ulonglong = seal((what, value))[0]
        except ModelError as error:
            raise ModelError(
                f"{what} can't be {shown(value)}",
                advice="record numbers, text, bytes, and tuples, lists, dicts, dataclasses or msgspec Structs of these",
            ) from error
        if engine.observer is not None:
            tell_own(engine, self, RECORD, (what, value))
        if cython.compiled:
            self._wl_chain = hash_of_four(self._wl_chain, engine.now, 0, print_of_value)
        else:
            self._wl_chain = hash((self._wl_chain, engine.now, 0, print_of_value)) & _CHAIN

    def _wl_absorb(self, name: Text, history: bytes) -> None:
        """Take over the history of an entity that stood here and has ended."""
        self._wl_chain = fingerprint(b"%x %s %s" % (self._wl_chain, history, name.encode()))

    @property
    def _wl_history(self) -> bytes:
        """The hash of what the entity has sent and was given so far, and how many events it has caused."""
        return b"%x %x" % (self._wl_chain, self._wl_order >> 1)

    def _wl_call(self, name: Text) -> None:
        """Give a name to an entity that has come back from another process, and only to look at."""
        self._wl_name = name


@cython.cfunc
def acting(entity: EntityBase) -> Engine:
    """Return the engine of an entity whose turn it is; no other may act."""
    engine: Engine = entity._wl_engine
    if engine is None or engine.actor is not entity or entity._wl_state != ALIVE:
        refuse_to_act(entity, engine)
    return engine


@cython.cfunc
def _nanoseconds(value: Any) -> cython.longlong:
    """Take a delay in nanoseconds, or as text."""
    if type(value) is int and is_word(value):
        time: cython.longlong = value
        if -_LAST <= time <= _LAST:
            return time
    return as_time(value, "a delay")


@cython.cfunc
def _is_of_small(parts: tuple[Any, ...]) -> cython.bint:
    """Whether these are whole numbers whose hash is made of all of their bits: as the tuple's is then, everywhere."""
    word: cython.longlong
    for part in parts:
        if type(part) is not int or not is_word(part):
            return False
        word = part
        if not 0 <= word < _SMALL:
            return False
    return True


@cython.final
@cython.cclass
class ScheduledEvent:
    """An event that an entity has scheduled for itself."""

    if not cython.compiled:
        topic: Any
        payload: Any
        time: int
        is_live: bool
        _owner: EntityBase

    def __repr__(self) -> str:
        return f"<event {self.topic} of {self._owner.name}, at {format_time(self.time)}>"

    def __reduce__(self) -> Any:
        raise TypeError("a scheduled event can't be copied or sent: it belongs to its entity")


@cython.cfunc
def new_timer(owner: EntityBase, topic: Any, payload: Any, time: cython.longlong) -> ScheduledEvent:
    timer: ScheduledEvent = ScheduledEvent.__new__(ScheduledEvent)
    timer._owner = owner
    timer.topic = topic
    timer.payload = payload
    timer.time = time
    timer.is_live = True
    return timer
