# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False
"""The engine: takes events from the queue and lets entities act on them.

Theory of operation
-------------------
This is ordinary Python, and in Cython's pure-Python mode also C: what is marked `cython.` turns into C types when the
module is compiled and means nothing when it isn't. The two builds share every line but those that ask for
`cython.compiled`, the queue and the loop; uncompiled these are `buckets.py` and `plain.py`. It is one module, with
loops and branches written out, because calls are what its time goes into: those between compiled modules, and in the
uncompiled build all of them.

The order of events is the one order of arrivals: (arrival, sent, sender's rank, sender's order). Ranks are places in
the roster sorted by name, doubled. A sender that was created during the run has the odd rank between its neighbours by
name; where two such share a rank, their names decide. So keys compare as in `model.message`, on every worker, without
anybody having to number newcomers for all. An order is twice the sequence number; the odd one is the copy that a
link made.

Every entity has a chain, a hash of what it has sent and was given so far; digests are made of the chains. A link of
the chain is CPython's hash of a tuple of small ints: in plain Python that is one fast call; compiled it is written out
in `_chain.pxd`.

Invariants
----------
E1. Events are handed out in the order of their keys, as far as they are known; nothing is pushed before `now`.
E2. An event from another entity, or from outside, is at least 1 ns under way; what happens at 0 was decided before.
    So whatever arrives at one moment was sent before it, and entities of different workers can act at the same moment
    in any order.
E3. What isn't an entity's own (another's state, the queue, the clock of the machine) never enters a chain.
E4. Whoever is named by a waiting event keeps its number in the table: who has an even rank for ever, the others while
    `pins` counts an event.
E5. Nothing depends on whether somebody looks on: an observer is only told, by the functions of `account.py`. Nobody
    comes or goes while events are handled, so that the loop needn't ask each time.
"""

from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

try:
    import cython
except ImportError:
    from worldline.kernel import uncompiled as cython  # type: ignore[no-redef]

from worldline.kernel.account import tell_interruption, tell_note, tell_sending, tell_timer, tell_unheard, tell_waking
from worldline.kernel.parcel import Parcel, fingerprint, seal
from worldline.kernel.waiting import Inbox, Interrupt, Message, Receive, Signal, Wait, refuse
from worldline.model.errors import ModelError, Stuck, UsageError, WorldlineError, shown
from worldline.model.message import check_name
from worldline.model.reading import as_int, as_time
from worldline.model.time import TIME_MAX, format_time
from worldline.workers.interruptions import is_from_outside

if cython.compiled:
    from cython.cimports.cpython.list import PyList_GET_ITEM
    from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
    from cython.cimports.cpython.object import PyObject
    from cython.cimports.cpython.ref import Py_DECREF
    from cython.cimports.worldline.kernel._chain import hash_of_four
    from cython.cimports.worldline.kernel._python import PYGEN_RETURN, PyIter_Send
    from cython.cimports.worldline.kernel._queue import BARE, LADEN, OWN, Queue

    from worldline.kernel._draws import Draws
else:
    from worldline.kernel.buckets import Queue
    from worldline.kernel.draws import Draws

# Chains have 60 bits, so that none of the numbers that go into one is changed by Python's own hash of an int.
_CHAIN = cython.declare(cython.ulonglong, 2**60 - 1)
_SMALL = cython.declare(cython.longlong, 2**59)
_SMALLEST = cython.declare(cython.longlong, -(2**59))

_SPREAD = cython.declare(cython.ulonglong, 14029467366897019727)  # A prime of xxHash.

Text = str  # Under its own name, Cython takes `str` for exactly that class, and would refuse members of an enum.

# What an entity is to this engine.
_NEW = cython.declare(cython.int, 0)
_ALIVE = cython.declare(cython.int, 1)
_ENDED = cython.declare(cython.int, 2)
_ABSENT = cython.declare(cython.int, 3)  # Named by a sender, but not here (yet).
_REMOTE = cython.declare(cython.int, 4)

# Messages that only the engine sends: their topics are these objects.
_STARTS = cython.declare(object, object())
_INTERRUPTS = cython.declare(object, object())

NOTHING_TO_INTERRUPT = "had nothing to interrupt"
INTERRUPTION = "interrupt!"  # The topic of an interruption from another entity; no handler can have that name.

_LAST = cython.declare(cython.longlong, TIME_MAX)
_NEVER = cython.declare(cython.longlong, -1)  # No order is negative.
_PENDING = cython.declare(object, object())
_BURST_MAX = cython.declare(cython.longlong, 1_000_000)
_CANCELLED_MAX = cython.declare(cython.Py_ssize_t, 1_000)

# C variables: to look up a module's own names takes longer than a turn of the queue.
_Parcel = cython.declare(object, Parcel)
_Generator = cython.declare(object, GeneratorType)
_seal = cython.declare(object, seal)


@cython.final
@cython.cclass
class Handlers:
    """The handlers of a class of entities by topic. Remembers what it was asked for last: mostly that is asked next."""

    if cython.compiled:
        by_topic = cython.declare(dict, visibility="readonly")
    topic: object
    function: object

    def __init__(self, by_topic: dict[Any, Any]) -> None:
        self.by_topic = by_topic
        self.topic = None
        self.function = None

    @cython.cfunc
    def find(self, topic: object) -> cython.int:
        self.function = self.by_topic.get(topic)
        self.topic = topic
        return 0


def handlers_of(kind: type) -> Handlers:
    """Return the handlers of a class: `on_x` for the topic x, and `handle`, if there is one, for all others."""
    table = {name[3:]: getattr(kind, name) for name in dir(kind) if name.startswith("on_")}
    for name, topic in (("handle", None), ("start", _STARTS)):
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

    if cython.compiled:
        queue = cython.declare(Queue, visibility="readonly")
        roster = cython.declare(object, visibility="readonly")
        directory = cython.declare(dict, visibility="readonly")
        dropped = cython.declare(dict, visibility="readonly")
        outbox = cython.declare(list, visibility="public")
        latency = cython.declare(cython.longlong, visibility="readonly")
        least = cython.declare(cython.longlong, visibility="readonly")
        now = cython.declare(cython.longlong, visibility="public")
        events = cython.declare(cython.longlong, visibility="readonly")
        actor = cython.declare(object, visibility="readonly")
        failed = cython.declare(object, visibility="readonly")  # Who was acting when something went wrong.
        observer = cython.declare(object, visibility="public")  # Who looks on (E5); mostly nobody does.
    _entry: tuple  # The event at hand, uncompiled; compiled, the queue has it.
    _cancelled: cython.Py_ssize_t  # How many events in the queue are dead, about.
    _patience: cython.Py_ssize_t  # How many may be, until it is time to do something about it.
    _leaving: list
    _free_numbers: list
    # The topic that was sent last, its number, and its part in chains: mostly the next one is the same.
    _topic: object
    _text: object
    _number_of_topic: cython.int
    _chain_of_topic: cython.ulonglong
    _topics: list
    _numbers_of_topics: dict

    def __init__(self, roster: Any, *, latency: int, least: int) -> None:
        self.queue = Queue()
        self.roster = roster
        self.directory: dict[str, Any] = {}
        self.dropped: dict[tuple[str, str, str], int] = {}
        self.outbox: list[Any] = []
        self.latency = latency
        self.least = least
        self.now = self.events = 0
        self.actor = self.failed = self.observer = self._entry = self._topic = self._text = None
        self._number_of_topic = -1
        self._cancelled = self._chain_of_topic = 0
        self._patience = _CANCELLED_MAX
        self._leaving = []
        self._free_numbers = []
        self._topics = []
        self._numbers_of_topics = {}
        self._learn(_STARTS)

    @property
    def sender(self) -> Any:
        """Who sent the event that is being handled."""
        return self.queue.table[self.queue.event.sender] if cython.compiled else self._entry[5]

    @property
    def sent(self) -> int:
        """When the event was sent that is being handled, or was last."""
        return self.queue.event.sent if cython.compiled else self._entry[1]

    @property
    def order(self) -> int:
        """The order of the event that is being handled, or was last."""
        return self.queue.event.order if cython.compiled else self._entry[3]

    def enter(
        self, entity: Any, name: Text, rank: int, place: int, key: int, handlers: Handlers, *, since: int
    ) -> None:
        """Make an entity part of the simulation, now. `since` is when that was decided, for the order of starts."""
        core: Core = entity
        if core._wl_state != _NEW:
            raise UsageError(f"{core._wl_name} is part of a simulation already, and can't be {name} too")
        self._introduce(core, name, rank, place, key)
        core._wl_handlers = handlers
        core._wl_state = _ALIVE
        if cython.compiled:
            self._enter_table(core)
        self.directory[name] = core
        if _STARTS in handlers.by_topic:
            core._wl_order += 2
            self._push(self.now, since, core._wl_order, core, core, _STARTS, None)

    def stand_in(self, name: Text, rank: int, place: int, key: int, *, remote: bool) -> Any:
        """Return what stands for an entity that isn't here: it is at another worker, or perhaps nowhere."""
        core: Core = Core()
        self._introduce(core, name, rank, place, key)
        core._wl_state = _REMOTE if remote else _ABSENT
        core._wl_number = -1
        return core

    @cython.cfunc
    def _introduce(self, entity: object, name: object, rank: int, place: int, key: object) -> cython.int:
        core: Core = entity
        core._wl_engine = self
        core._wl_name = name
        # Uncompiled, what names decide is part of the rank: a pair that is made once is one thing less for each event.
        core._wl_rank = rank if cython.compiled else (rank, name if rank & 1 else "")
        core._wl_place = place
        core._wl_key = key
        return 0

    def accept(self, time: int, sent: int, sender: Any, order: int, target: Any, topic: Text, payload: Any) -> None:
        """Take in a message from another worker, or from outside."""
        self._push(time, sent, order, sender, target, topic, payload)

    def count_dropped(self, receiver: Text, topic: Text, reason: str) -> None:
        key = (receiver, topic, reason)
        self.dropped[key] = self.dropped.get(key, 0) + 1

    # -- Events

    @cython.cfunc
    def _push(
        self,
        time: cython.longlong,
        sent: cython.longlong,
        order: cython.longlong,
        sender: object,
        target: object,
        topic: object,
        payload: object,
    ) -> cython.int:
        """Let a message arrive at a time."""
        if cython.compiled:
            source: Core = cython.cast(Core, sender)
            goal: Core = cython.cast(Core, target)
            if topic is not self._topic:
                self._learn(topic)
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
                self._number_of_topic,
                BARE if payload is None else LADEN,
                payload,
            )
        else:
            self.queue.push((time, sent, sender._wl_rank, order, topic, sender, target, payload))
        return 0

    @cython.cfunc
    def _learn(self, topic: object) -> cython.int:
        """Make this the topic at hand; refuse what can't be one."""
        text = topic
        if type(topic) is not str and not _is_engines(topic):  # Members of enums become the text that they are.
            text = str.__str__(check_name(topic, "a topic"))
        number = self._numbers_of_topics.get(text)
        if number is None:
            chain = 0 if _is_engines(text) else fingerprint(b"topic " + check_name(text, "a topic").encode())
            number = self._numbers_of_topics[text] = len(self._topics)
            self._topics.append((text, chain))
        self._topic = topic
        self._text = text
        self._number_of_topic = number
        self._chain_of_topic = self._topics[number][1]
        return 0

    @cython.cfunc
    def _purge(self) -> cython.int:
        """Take the dead events out of the queue, if they are most of it: timers that are cancelled would pile up.

        Otherwise it looks again when twice as many are dead, since to count what is in the queue may take a while.
        """
        if 2 * self._cancelled > len(self.queue):
            self._cancelled = 0
            for number in self.queue.purge(_is_dead):
                core: Core = self.queue.table[number]
                if core._wl_rank & 1:
                    self._unpin(number)
        self._patience = max(_CANCELLED_MAX, 2 * self._cancelled)
        return 0

    # -- The table of those whom events name; uncompiled, events hold them themselves.

    @cython.cfunc
    def _enter_table(self, entity: object) -> cython.int:
        core: Core = entity
        if self._free_numbers:
            core._wl_number = self._free_numbers.pop()
            self.queue.table[core._wl_number] = core
        else:
            core._wl_number = len(self.queue.table)
            self.queue.table.append(core)
        return 0

    @cython.cfunc
    def _unpin(self, number: cython.int) -> cython.int:
        """Note that one event less names an entity that was created during the run."""
        core: Core = self.queue.table[number]
        core._wl_pins -= 1
        return self._leave_table(core)

    @cython.cfunc
    def _leave_table(self, entity: object) -> cython.int:
        """Take an entity out of the table if it isn't alive and no event names it any more."""
        core: Core = entity
        if core._wl_pins == 0 and core._wl_state != _ALIVE and core._wl_rank & 1 and core._wl_number >= 0:
            self.queue.table[core._wl_number] = None
            self._free_numbers.append(core._wl_number)
            core._wl_number = -1
        return 0

    @cython.cfunc
    def _let_go(self) -> cython.int:
        """Forget those who have ended during the last event."""
        for entity in self._leaving:
            self._leave_table(entity)
        self._leaving = []
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_engines(topic: object) -> cython.bint:
    return topic is _STARTS or topic is _INTERRUPTS


@cython.cclass
class Core:
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
        "_wl_state",
    )

    if cython.compiled:
        _wl_rank = cython.declare(cython.int, visibility="readonly")
        _wl_place = cython.declare(cython.int, visibility="readonly")
        _wl_extras = cython.declare(object, visibility="public")
    _wl_engine: Engine
    _wl_handlers: Handlers
    _wl_name: object
    _wl_state: cython.int
    _wl_number: cython.int  # Its place in the engine's table, if it has one.
    _wl_pins: cython.int  # How many waiting events name it, if it was created during the run.
    _wl_ahead: cython.int  # How many timers and sleeping processes of its own are in the queue, dead ones included.
    _wl_burst: cython.int
    _wl_burst_at: cython.longlong
    _wl_order: cython.longlong
    _wl_chain: cython.ulonglong
    _wl_key: cython.ulonglong
    _wl_inbox: object
    _wl_main: object
    _wl_others: list
    _wl_random: object

    if not cython.compiled:  # Compiled, all of these are 0 or None from the start.

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """Set up what an entity has before its own `__init__`, which then needn't call this one's."""
            core = object.__new__(cls)
            core._wl_state = core._wl_burst = core._wl_burst_at = core._wl_order = core._wl_chain = core._wl_key = 0
            core._wl_rank = core._wl_place = core._wl_number = core._wl_pins = core._wl_ahead = 0
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
        _refuse_to_set("name")

    @property
    def now(self) -> int:
        """The time, in nanoseconds."""
        return self._wl_engine.now if self._wl_engine is not None else 0

    @now.setter
    def now(self, _: object) -> None:
        _refuse_to_set("now")

    @property
    def sender(self) -> str:
        """Who sent the message that is being handled; the entity itself for its own timers."""
        engine: Engine = _acting(self)
        return engine.sender.name

    @sender.setter
    def sender(self, _: object) -> None:
        _refuse_to_set("sender")

    @property
    def sent_at(self) -> int:
        """When the message that is being handled was sent; 0 if that was before the beginning."""
        engine: Engine = _acting(self)
        return max(engine.sent, 0)

    @sent_at.setter
    def sent_at(self, _: object) -> None:
        _refuse_to_set("sent_at")

    @property
    def random(self) -> Draws:
        """The entity's own draws, fixed by the simulation's seed and the entity's name."""
        engine: Engine = _acting(self)
        if self._wl_random is None:
            self._wl_random = Draws(engine.roster.seed, self._wl_name)
        return self._wl_random

    @random.setter
    def random(self, _: object) -> None:
        _refuse_to_set("random")

    @property
    def has_ended(self) -> bool:
        return self._wl_state == _ENDED

    @has_ended.setter
    def has_ended(self, _: object) -> None:
        _refuse_to_set("has_ended")

    @property
    def _wl_observer(self) -> Any:
        """Who is told of what happens, for an entity that tells it itself; None if nobody looks."""
        return self._wl_engine.observer if self._wl_engine is not None else None

    @property
    def _wl_number_sent(self) -> int:
        """The number of what it has sent last, a timer included, for an entity that tells that itself."""
        return self._wl_order >> 1

    @property
    def _wl_number_given(self) -> int:
        """The number that the message at hand has; it is its sender's."""
        return _acting(self).order >> 1

    @property
    def _wl_is_here(self) -> bool:
        """Whether it is, or was, an entity of this worker, and not just a name."""
        return self._wl_state == _ALIVE or self._wl_state == _ENDED

    @property
    def _wl_roster(self) -> Any:
        """Who else is there."""
        return _acting(self).roster

    def send(self, to: Text, topic: Text, payload: Any = None, *, delay: int | str | None = None) -> None:
        """Send a message to an entity, by name.

        Without a delay it takes the link between the two: its latency, losses and all. With one it arrives exactly
        that much later, which can't be less than the link's minimum.
        """
        engine: Engine = self._wl_engine
        if engine is None or engine.actor is not self or self._wl_state != _ALIVE:
            _refuse_to_act(self)
        found = engine.directory.get(to)
        if found is None:
            found = engine.roster.locate(to)
        # Without a look at its class, which takes a while for users' classes.
        target: Core = cython.cast(Core, found) if cython.compiled else found
        latency: cython.longlong = 1
        if delay is not None:
            if not cython.compiled and type(delay) is int and 0 <= delay <= _LAST:
                latency = delay  # Without a call, which costs more.
            else:
                latency = _nanoseconds(delay)
        if target is self:
            self._wl_schedule(topic, payload, latency)
            return
        if topic is not engine._topic:
            engine._learn(topic)
        text = engine._text
        content: cython.ulonglong = target._wl_key ^ engine._chain_of_topic
        if payload is not None:
            word: cython.longlong = _LAST
            if type(payload) is int and (not cython.compiled or _is_word(payload)):
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
                _check_delay(self, target, latency)
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
            _refuse_arrival(target)
        order: cython.longlong = self._wl_order + 2
        self._wl_order = order
        if engine.observer is not None:
            tell_sending(engine, self, target, text, payload, order, arrival, arrival_of_copy, None)
        while True:
            if cython.compiled:
                self._wl_chain = hash_of_four(self._wl_chain, arrival, order, content)
            else:
                self._wl_chain = hash((self._wl_chain, arrival, order, content)) & _CHAIN
            if target._wl_state == _REMOTE:
                letter = (arrival, now, self._wl_name, order, target._wl_name, target._wl_place, text, payload)
                engine.outbox.append(letter)
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
        self, topic: Text, payload: Any = None, *, delay: int | str | None = None, at: int | str | None = None
    ) -> Any:
        """Let an event of the entity's own happen later; it is handled like a message. Returns a `Timer`, to cancel it.

        A delay of 0 is allowed: the event happens at the same moment, after all that has arrived.
        """
        engine: Engine = _acting(self)
        if (delay is None) == (at is None):
            raise UsageError("an event is scheduled after a delay or at a time", advice="give one of the two")
        if at is None:
            return self._wl_schedule(topic, payload, _nanoseconds(delay))
        return self._wl_schedule(topic, payload, _nanoseconds(at) - engine.now)

    @cython.cfunc
    def _wl_schedule(self, topic: object, payload: object, delay: cython.longlong) -> object:
        if topic is not self._wl_engine._topic:
            self._wl_engine._learn(topic)
        timer = Timer(self, self._wl_engine._text, payload, self._wl_engine.now + delay)
        self._wl_after(delay, timer)
        return timer

    @cython.cfunc
    def _wl_after(self, delay: cython.longlong, event: object) -> cython.longlong:
        """Let a process wake or a timer ring, and return the event's order."""
        engine: Engine = self._wl_engine
        now: cython.longlong = engine.now
        if delay <= 0:
            self._wl_check_burst(delay)
        elif delay > _LAST - now:
            raise ModelError(f"an event would happen after the last time, {format_time(TIME_MAX)}")
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
    def _wl_check_burst(self, delay: cython.longlong) -> cython.int:
        engine: Engine = self._wl_engine
        if delay < 0:
            raise ModelError(
                f"an event can't be scheduled for {format_time(engine.now + delay)}, which is past",
                advice="use a delay of at least 0",
            )
        if self._wl_burst_at != engine.now:
            self._wl_burst_at = engine.now
            self._wl_burst = 0
        self._wl_burst += 1
        if self._wl_burst > _BURST_MAX:
            raise Stuck(
                f"it has gone on {_BURST_MAX:,} times without a delay, and time doesn't pass",
                advice="does a process yield 0, or a signal that has fired, in a loop?",
            )
        return 0

    def cancel(self, timer: Any) -> bool:
        """Make sure that a scheduled event doesn't happen; return whether that was still possible."""
        engine: Engine = _acting(self)
        if not isinstance(timer, Timer):
            raise UsageError(f"{shown(timer)} isn't a timer", advice="cancel what schedule() has returned")
        own: Timer = timer
        if own._owner is not self:
            raise ModelError(f"the timer is {own._owner.name}'s", advice="entities cancel their own timers only")
        rings = own.is_live
        if rings:
            own.is_live = False
            engine._cancelled += 1
        return rings

    def interrupt(self, to: Text, cause: Any = None, *, delay: int | str | None = None) -> None:
        """Interrupt another entity's main process, by a message that only it can take: raises `Interrupt` there."""
        self.send(to, INTERRUPTION, cause, delay=delay)

    def process(self, generator: Any) -> Any:
        """Start a `Process` beside what the entity does already: ``charging = self.process(self.charge())``."""
        _acting(self)
        if type(generator) is not _Generator:
            raise UsageError(
                f"{shown(generator)} isn't a generator",
                advice="call a function with yield in it: self.process(self.f())",
            )
        process = _new_process(self, generator)
        _add_process(self, process)
        process._ticket = self._wl_after(0, process)
        return process

    def end(self) -> None:
        """Be no more: processes are closed, timers void; what is still under way to the entity vanishes."""
        engine: Engine = _acting(self)
        processes = [process for process in (self._wl_main, *(self._wl_others or ())) if process is not None]
        self._wl_main = self._wl_others = None
        for process in processes:
            _close(process)
        if self._wl_state == _ALIVE:  # What a process does when it is closed may have ended it already.
            self._wl_state = _ENDED
            self._wl_inbox = None
            engine.roster.ended(self)
            engine._cancelled += self._wl_ahead
            if cython.compiled:
                engine._leaving.append(self)

    def _wl_note(self, value: Any) -> None:
        """Make a value that the entity gives to the world outside part of its history."""
        engine: Engine = _acting(self)
        print_of_value: cython.ulonglong = seal(value)[0]
        if engine.observer is not None:
            tell_note(engine, self, value)
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
@cython.inline
def _acting(entity: Core) -> Engine:
    """Return the engine of an entity whose turn it is; nobody else may act."""
    engine: Engine = entity._wl_engine
    if engine is None or engine.actor is not entity or entity._wl_state != _ALIVE:
        _refuse_to_act(entity)
    return engine


def _refuse_to_set(what: str) -> None:
    advice = "call your own attribute something else"
    if what == "name":
        advice = f"add(name, entity) or create(entity, name) gives it one; {advice}"
    raise UsageError(f"an entity's {what} can't be set", advice=advice)


def _refuse_to_act(entity: Any) -> None:
    core: Core = entity
    engine: Engine = core._wl_engine
    if engine is None:
        raise UsageError("the entity isn't part of a simulation yet", advice="add it first, and act in start()")
    if engine.actor is None:
        raise UsageError(f"{core._wl_name} can't act while nothing happens", advice="use the simulation's own send()")
    if core._wl_state == _ENDED:
        raise ModelError("it has ended, and can't act any more", participant=core._wl_name, at=engine.now)
    raise ModelError(
        f"{engine.actor.name} acted for {core._wl_name}",
        participant=engine.actor.name,
        at=engine.now,
        advice="entities may be on different workers: they affect each other by messages only",
    )


@cython.cfunc
def _nanoseconds(value: object) -> cython.longlong:
    """Take a delay in nanoseconds, or as text."""
    if type(value) is int and _is_word(value):
        time: cython.longlong = value
        if -_LAST <= time <= _LAST:
            return time
    return as_time(value, "a delay")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_word(value: object) -> cython.bint:
    """Whether an int fits into 64 bits."""
    if cython.compiled:
        overflow: cython.int = 0
        PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
        return overflow == 0
    return -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF


@cython.cfunc
def _is_of_small(parts: tuple) -> cython.bint:
    """Whether these are whole numbers whose hash is made of all of their bits: as the tuple's is then, everywhere."""
    word: cython.longlong
    for part in parts:
        if type(part) is not int or not _is_word(part):
            return False
        word = part
        if not 0 <= word < _SMALL:
            return False
    return True


def _check_delay(sender: Any, receiver: Any, delay: int) -> None:
    """Refuse a delay that is shorter than the link between the two allows, or longer than time."""
    least = 1 if receiver._wl_place == sender._wl_place else sender._wl_roster.least(sender, receiver)
    if delay < least:
        raise ModelError(
            f"a message to {receiver.name} can't arrive after {format_time(delay)}: "
            f"the link between them takes at least {format_time(least)}",
            advice="send it with a longer delay, or declare a shorter minimum",
            receiver=receiver.name,
        )
    if delay > TIME_MAX:
        _refuse_arrival(receiver)


def _refuse_arrival(receiver: Any) -> None:
    raise ModelError(
        f"a message to {receiver.name} would arrive after the last time, {format_time(TIME_MAX)}",
        receiver=receiver.name,
    )


@cython.final
@cython.cclass
class Timer:
    """An event that an entity has scheduled for itself."""

    if cython.compiled:
        topic = cython.declare(object, visibility="readonly")
        payload = cython.declare(object, visibility="readonly")
        time = cython.declare(cython.longlong, visibility="readonly")
        is_live = cython.declare(cython.bint, visibility="public")
    _owner: Core

    def __init__(self, owner: Any, topic: Text, payload: Any, time: int) -> None:
        self._owner = owner
        self.topic = topic
        self.payload = payload
        self.time = time
        self.is_live = True


@cython.final
@cython.cclass
class Process:
    """A generator that an entity runs: what it yields is what it waits for."""

    _owner: Core
    _generator: object
    _ticket: cython.longlong  # The order of the event that wakes it; any other such event is stale.
    _waits_on: object
    _value: object
    _done: object

    @property
    def has_ended(self) -> bool:
        return self._generator is None

    @property
    def value(self) -> Any:
        """What the generator has returned; None before that."""
        return self._value if self._generator is None else None

    def interrupt(self, cause: Any = None) -> None:
        """Raise `Interrupt` in the process, at this moment, once the entity's present event has been handled."""
        owner: Core = self._owner
        engine: Engine = _acting(owner)
        if self._generator is None:
            raise ModelError("a process that has ended can't be interrupted", advice="look at has_ended first")
        if self._generator.gi_running:
            raise ModelError("a process can't interrupt itself", advice="raise an exception instead")
        if self._generator.gi_suspended:  # From now on nothing else can wake it; one that is new starts before.
            _stop_waiting(self)
        owner._wl_order += 2
        engine._push(engine.now, engine.now, owner._wl_order, owner, owner, _INTERRUPTS, (self, cause))

    def _give(self, value: Any) -> None:
        """Let the process go on with a value; what it waited for has happened."""
        owner: Core = self._owner
        engine: Engine = owner._wl_engine
        if (
            engine.actor is not None
        ):  # Otherwise somebody fires a signal from outside, or everything is being thrown away.
            _acting(owner)
        if owner._wl_state == _ALIVE and self._generator is not None:
            self._waits_on = None
            _stop_waiting(self)
            self._value = value
            self._ticket = owner._wl_after(0, self)


@cython.cfunc
def _close(process: Process) -> cython.int:
    """End a process where it waits. The one that is running ends when it waits next."""
    generator = process._generator
    if generator is not None and not generator.gi_running:
        process._generator = None
        _stop_waiting(process)
        generator.close()
    return 0


@cython.cfunc
def _new_process(owner: Core, generator: object) -> Process:
    process: Process = Process()
    process._owner = owner
    process._generator = generator
    process._ticket = _NEVER
    if not cython.compiled:
        process._waits_on = process._value = process._done = None
    return process


@cython.cfunc
def _add_process(owner: Core, process: Process) -> cython.int:
    if owner._wl_others is None:
        owner._wl_others = []
    owner._wl_others.append(process)
    return 0


@cython.cfunc
def _stop_waiting(process: Process) -> cython.int:
    if process._waits_on is not None:
        process._waits_on.forget(process)
        process._waits_on = None
    if process._ticket != _NEVER:
        process._ticket = _NEVER
        process._owner._wl_engine._cancelled += 1
    process._value = None
    return 0


@cython.cfunc
def _adopt(owner: Core, result: object, is_main: cython.bint) -> cython.int:
    """Take what a handler has returned: a generator is a process."""
    if type(result) is CoroutineType:
        result.close()
    if type(result) is CoroutineType or type(result) is AsyncGeneratorType:
        raise ModelError("a handler is asynchronous, which nothing here can wait for", advice="write yield, not await")
    if type(result) is not _Generator:
        return 0
    process: Process = _new_process(owner, result)
    if is_main:
        owner._wl_main = process
    else:
        _add_process(owner, process)
    return _resume(process, None, None)


@cython.cfunc
def _resume(process: Process, value: object, interrupt: object) -> cython.int:
    """Run a process until it waits again."""
    generator = process._generator
    owner: Core = process._owner
    while True:
        if cython.compiled and interrupt is None:  # A shorter way, on which the end isn't an exception.
            given: cython.pointer(PyObject) = cython.NULL
            if PyIter_Send(generator, value, cython.address(given)) == PYGEN_RETURN:
                return _finish(process, _owned(given))
            yielded = _owned(given)
        else:
            try:
                yielded = generator.send(value) if interrupt is None else generator.throw(interrupt)
            except StopIteration as stop:
                return _finish(process, stop.value)
            interrupt = None
        if owner._wl_state != _ALIVE:
            return _close(process)
        if type(yielded) is int and ((not cython.compiled and 0 < yielded <= _LAST) or _is_word(yielded)):
            process._ticket = owner._wl_after(yielded, process)
            return 0
        value = _wait(process, yielded)
        if value is _PENDING:
            return 0
        owner._wl_check_burst(0)


if cython.compiled:

    @cython.cfunc
    @cython.inline
    def _owned(given: cython.pointer(PyObject)) -> object:
        """Take over a reference that C code has given away."""
        taken = cython.cast(object, given)
        Py_DECREF(taken)
        return taken


@cython.cfunc
def _wait(process: Process, yielded: object) -> object:
    """Return what a process waits for if it is there already; otherwise see to it that it is told."""
    owner: Core = process._owner
    limit: cython.longlong = -1
    default = None
    if type(yielded) is Receive:
        if owner._wl_inbox is None:
            owner._wl_inbox = Inbox()
        message = owner._wl_inbox.take(yielded.topic)
        if message is not None:
            return message
        owner._wl_inbox.readers.append((yielded.topic, process))
        process._waits_on = owner._wl_inbox
        limit = yielded.limit
    else:
        what = yielded
        if type(yielded) is Wait:
            what = yielded.what
            limit = yielded.limit
            default = yielded.default
        if type(what) is Process:
            what = _end_of(what)
        if not isinstance(what, Signal):
            if what is not yielded or not (isinstance(what, str) or as_int(what) is not None):
                raise refuse(what)
            process._ticket = owner._wl_after(as_time(what, "a delay"), process)
            return _PENDING
        if what.fired:
            return what.value
        what.waiters.append(process)
        process._waits_on = what
    if limit >= 0:
        process._ticket = owner._wl_after(limit, process)
        process._value = default
    return _PENDING


@cython.cfunc
def _end_of(process: Process) -> object:
    """Return the signal that fires when a process ends."""
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
    if process._done is not None and owner._wl_state == _ALIVE:
        process._done.fire(value)
    if owner._wl_main is process:
        owner._wl_main = None
        if type(owner).ends_with_its_process and owner._wl_state == _ALIVE:
            owner.end()
    elif owner._wl_others is not None and process in owner._wl_others:
        owner._wl_others.remove(process)
    return 0


@cython.cfunc
def _wake(process: Process) -> cython.int:
    """Let a process go on whose time has come: with what it was given, or because the limit of its wait has passed."""
    process._ticket = _NEVER
    value = process._value
    if process._waits_on is not None:
        _stop_waiting(process)
    process._value = None
    return _resume(process, value, None)


@cython.cfunc
def _deliver(engine: Engine, target: Core, topic: object, payload: object) -> cython.int:
    """Give a message to an entity that has no handler of its own for the topic."""
    process: Process
    if topic is _INTERRUPTS:
        process = payload[0]
        if process._generator is None:
            return 0
        if engine.observer is not None:
            tell_interruption(engine, target, process._generator, payload[1])
        _stop_waiting(process)
        return _resume(process, None, Interrupt(payload[1]))
    if topic == INTERRUPTION:
        if target._wl_main is None:
            engine.count_dropped(target._wl_name, topic, NOTHING_TO_INTERRUPT)
            if engine.observer is not None:
                tell_unheard(engine, engine.sender, target, NOTHING_TO_INTERRUPT)
            return 0
        process = target._wl_main
        _stop_waiting(process)
        return _resume(process, None, Interrupt(payload))
    order = engine.order
    message = Message(engine.now, max(engine.sent, 0), engine.sender.name, order >> 1, order & 1, topic, payload)
    function = target._wl_handlers.by_topic.get(None)
    if function is not None:
        result = function(target, message)
        return _adopt(target, result, False) if result is not None else 0
    if target._wl_main is None and not target._wl_others:
        engine.roster.refuse_message(target, message)
    if target._wl_inbox is None:
        target._wl_inbox = Inbox()
    reader = target._wl_inbox.reader(topic)
    if reader is None:
        target._wl_inbox.messages.append(message)
        return 0
    process = reader
    process._waits_on = None
    _stop_waiting(process)
    return _resume(process, message, None)


def _is_dead(event: Any, order: int) -> bool:
    """Whether nothing will come of an event: a timer that was cancelled, a process that was woken by something else.

    The queue asks when it takes such events out, so this also counts them off.
    """
    owner: Core
    is_dead: cython.bint
    if type(event) is Process:
        process: Process = event
        owner = process._owner
        is_dead = process._ticket != order or owner._wl_state == _ENDED
    elif type(event) is Timer:
        timer: Timer = event
        owner = timer._owner
        is_dead = not timer.is_live or owner._wl_state == _ENDED
    else:
        return False
    if is_dead:
        owner._wl_ahead -= 1
    return is_dead


def _check_idle(engine: Engine) -> None:
    if engine.actor is not None:
        raise UsageError("the simulation is running already", advice="don't run it from inside a handler")


def _fail(engine: Engine, error: BaseException, target: Any, what: Any) -> None:
    """End the run because of what was raised while an event was handled."""
    engine.failed = target
    if is_from_outside(error):
        raise error
    cause = error.__cause__ if isinstance(error, WorldlineError) else error
    raise engine.roster.blame(error, target, what) from cause


if cython.compiled:  # Uncompiled, `plain.py` has a loop of its own.

    def advance(engine: Engine, end: cython.longlong, limit: cython.longlong) -> int:
        """Handle the events before `end`, at most `limit` of them, and return how many it were."""
        handled: cython.longlong = 0
        time: cython.longlong
        order: cython.longlong
        sender_key: cython.ulonglong
        target: Core = None
        process: Process
        timer: Timer
        handlers: Handlers
        rank: cython.int
        goal: cython.int
        is_live: cython.bint
        is_observed: cython.bint = engine.observer is not None
        queue: Queue = engine.queue
        _check_idle(engine)
        what = None
        try:
            while handled < limit and queue.pop(end):
                time = queue.time
                order = queue.event.order
                rank = queue.event.rank
                goal = queue.event.target
                what = queue.cell
                if type(what) is Process and goal < 0:
                    process = what
                    target = process._owner
                    target._wl_ahead -= 1
                    if process._ticket == order and target._wl_state == _ALIVE:
                        handled += 1
                        engine.now = time
                        engine.actor = target
                        target._wl_chain = hash_of_four(target._wl_chain, time, order, 0)
                        if is_observed:
                            tell_waking(engine, target, process._generator)
                        _wake(process)
                else:
                    if goal < 0:
                        timer = what
                        target = timer._owner
                        target._wl_ahead -= 1
                        what = timer.topic
                        payload = timer.payload
                        sender_key = target._wl_key
                        is_live = timer.is_live and target._wl_state == _ALIVE
                        timer.is_live = False
                        if is_observed and is_live:
                            engine.now = time
                            tell_timer(engine, target, what, payload)
                    else:
                        target = cython.cast(Core, PyList_GET_ITEM(queue.table, goal))
                        payload = what if queue.event.kind == LADEN else None
                        what = cython.cast(tuple, PyList_GET_ITEM(engine._topics, queue.event.topic))[0]
                        sender_key = queue.event.sender_key
                        is_live = True
                        if target._wl_state != _ALIVE:
                            engine.now = time
                            target = engine.roster.arrived(target, engine.sender, what, time)
                            is_live = target is not None
                    if is_live:
                        handled += 1
                        engine.now = time
                        engine.actor = target
                        target._wl_chain = hash_of_four(target._wl_chain, time, order, sender_key)
                        if type(payload) is _Parcel:
                            payload = payload.open()
                        handlers = target._wl_handlers
                        if what is not handlers.topic:
                            handlers.find(what)
                        if handlers.function is None:
                            _deliver(engine, target, what, payload)
                        else:
                            function = handlers.function
                            result = function(target) if what is _STARTS else function(target, payload)
                            if result is not None:
                                _adopt(target, result, what is _STARTS)
                queue.settle()
                if rank & 1:
                    engine._unpin(queue.event.sender)
                if goal >= 0:
                    target = cython.cast(Core, PyList_GET_ITEM(queue.table, goal))
                    if target._wl_rank & 1:
                        engine._unpin(goal)
                if engine._leaving:
                    engine._let_go()
                if engine._cancelled > engine._patience:
                    engine._purge()
        except BaseException as error:
            _fail(engine, error, target, what)
        finally:
            engine.events += handled
            engine.actor = None
            queue.settle()
        return handled
