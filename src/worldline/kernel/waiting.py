# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False
# cython: annotation_typing=True
# cython: embedsignature=True, embedsignature.format=clinic
"""What processes wait for: signals, other processes, messages, times, and any or all of several.

In Cython's pure-Python mode, as `engine.py`, on which it stands; its C types are in `waiting.pxd`.

Theory of operation
-------------------
There is one mechanism. Whatever can be waited for is an `Awaited`, which happens once: it fires with a value, or it
fails with an error. To wait is to `_begin`: if it has happened already, that says so, and nothing is noted; otherwise
the waiter is noted, and `_told` when it happens. A waiter that goes on for another reason, such as a limit or an
interrupt, `_leaves`. Waiters are processes and combinations, which are themselves awaited: so combinations nest, and
what isn't needed any more is left from the outside in.

What a `Process` is told doesn't run it. It gets an event of its own at the present moment, so that the one that fires a
signal is through with what it does before any other goes on. Where a process needn't wait, it goes on at once.

Invariants
----------
W1. The waiters of one thing are told in the order in which they came. Each process gets the entity's next number, so
    that they go on in that order, after what the entity had planned for this moment before.
W2. A process waits for one thing at a time, `_waits_on`. What tells it anything else comes too late, and is ignored.
W3. A combination is noted at its parts while, and only while, a process waits for it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from worldline.kernel.engine import Engine, EntityBase, ScheduledEvent
from worldline.kernel.trouble import refuse_combination, refuse_sharing, refuse_wait
from worldline.model.errors import ModelError, UsageError, shown
from worldline.model.reading import as_time, resembles_time
from worldline.model.time import TIME_MAX, TimeLike

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # What isn't a class is imported by `waiting.pxd`.
    from worldline.kernel.engine import ALIVE, INTERRUPTS, LAPSES, acting, new_timer

    PENDING, FIRED, FAILED = range(3)

NO_LIMIT = -1
_NEVER = cython.declare(cython.longlong, -1)  # No order is negative.


class EntityMessage(NamedTuple):
    """What an entity gets: as a participant's `model.Message`, but its payload can be any value, not just bytes."""

    arrival: int
    sent: int
    sender: str
    sequence: int
    copy: int
    topic: str
    payload: Any


class Interrupt(Exception):  # noqa: N818 - It isn't an error.
    """Raised in a process that was interrupted, where it waits."""

    def __init__(self, cause: Any = None) -> None:
        super().__init__(cause)
        self.cause = cause


@cython.freelist(64)  # For signals, too, which have the same size.
@cython.cclass
class Awaited:
    """What a process can wait for: ``value = yield signal``. It happens once; combine several by ``|`` and ``&``."""

    if not cython.compiled:  # Compiled, these are 0 and None from the start.
        _state: int = PENDING
        _value: Any = None  # Of a failure, its error.
        _waiters: Any = None  # None, or one, or a list of them.

    @property
    def fired(self) -> bool:
        """Whether it has happened, well or not."""
        return self._state != PENDING

    @property
    def value(self) -> Any:
        """What it has fired with; None before that."""
        return self._value if self._state == FIRED else None

    @property
    def error(self) -> Any:
        """What it has failed with; None if it hasn't."""
        return self._value if self._state == FAILED else None

    def __or__(self, other: Any) -> Any:
        return _combined(self, other, False)

    def __ror__(self, other: Any) -> Any:
        return _combined(other, self, False)

    def __and__(self, other: Any) -> Any:
        return _combined(self, other, True)

    def __rand__(self, other: Any) -> Any:
        return _combined(other, self, True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {_standing(self)}>"

    def __reduce__(self) -> Any:
        if self._waiters is not None:
            raise TypeError(f"a {type(self).__name__} that a process waits for can't be copied or sent")
        return type(self), (), (self._state, self._value)

    def __setstate__(self, state: Any) -> None:
        self._state, self._value = state

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, waiter: Awaited, process: Process) -> cython.int:
        """Note a waiter, on behalf of a process; return whether it needn't wait, because this has happened."""
        if self._state != PENDING:
            return 1
        self._note(waiter)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _note(self, waiter: Awaited) -> cython.int:
        if self._waiters is None:
            self._waiters = waiter
        elif type(self._waiters) is list:
            self._waiters.append(waiter)
        else:
            self._waiters = [self._waiters, waiter]
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leave(self, waiter: Awaited) -> cython.int:
        """Forget a waiter, which goes on for another reason."""
        if self._waiters is waiter:
            self._waiters = None
        elif type(self._waiters) is list and waiter in self._waiters:
            self._waiters.remove(waiter)
            if not self._waiters:
                self._waiters = None
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _happen(self, state: cython.int, value: object) -> cython.int:
        """Have this happened, and tell those who wait for it (W1)."""
        self._state = state
        self._value = value
        waiters = self._waiters
        if waiters is None:
            return 0
        self._waiters = None
        waiter: Awaited
        if type(waiters) is list:
            for each in waiters:
                waiter = each
                waiter._told(self)
        else:
            waiter = cython.cast(Awaited, waiters)
            waiter._told(self)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _told(self, what: Awaited) -> cython.int:
        """Hear that something has happened that this waits for; for what waits itself."""
        return 0


@cython.cfunc
def _standing(what: Awaited) -> object:
    if what._state != PENDING:
        return "failed" if what._state == FAILED else "fired"
    count = len(what._waiters) if type(what._waiters) is list else int(what._waiters is not None)
    return f"{count} waiting"


@cython.cclass
class Signal(Awaited):
    """Something that happens once inside an entity, and that its processes can wait for: ``value = yield signal``."""

    def fire(self, value: Any = None) -> None:
        """Let all processes that wait go on, in the order in which they came; one that comes later doesn't wait."""
        if self._state != PENDING:
            _refuse_again("fired")
        self._happen(FIRED, value)

    def fail(self, error: Any) -> None:
        """Raise an error in all processes that wait, where they wait, and in those that come later."""
        if not isinstance(error, Exception):
            raise ModelError(
                f"a signal can't fail with {shown(error)}", advice='give it an exception: fail(ValueError("..."))'
            )
        if self._state != PENDING:
            _refuse_again("failed")
        self._happen(FAILED, error)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _refuse_again(what: object) -> cython.int:
    raise ModelError(
        "a signal was fired twice" if what == "fired" else "a signal can't fail after it has fired",
        advice="make a new one for the next time",
    )


# -- Processes, as what waits and as what is waited for


@cython.final
@cython.cclass
class Process(Awaited):
    """A generator that an entity runs: what it yields is what it waits for. It happens when it ends."""

    if not cython.compiled:
        _owner: EntityBase
        _generator: Any
        _ticket: int = _NEVER  # The order of the event that wakes it; any other such event is stale.
        _place: int = 0  # Among the entity's processes.
        _waits_on: Awaited | None = None
        _throws: bool = False  # Whether what it is to be given is an error.
        _is_looked_at: bool = False  # Whether it is known
        _is_suspect: bool = False  # that it may yield a number that was written without a unit.

    @property
    def has_ended(self) -> bool:
        return self._generator is None

    def interrupt(self, cause: Any = None) -> None:
        """Raise `Interrupt` in the process, at this moment, once the entity's present event has been handled."""
        owner: EntityBase = self._owner
        engine: Engine = acting(owner)
        if self._generator is None:
            raise ModelError("a process that has ended can't be interrupted", advice="look at has_ended first")
        if self._generator.gi_running:
            raise ModelError("a process can't interrupt itself", advice="raise an exception instead")
        if self._generator.gi_suspended:  # From now on nothing else can wake it; one that is new starts before.
            stop_waiting(self)
        owner._wl_order += 2
        engine._push(engine.now, engine.now, owner._wl_order, owner, owner, INTERRUPTS, (self, cause))

    def __repr__(self) -> str:
        name = "that has ended" if self._generator is None else self._generator.__qualname__
        return f"<process {name}, of {self._owner.name}>"

    def __reduce__(self) -> Any:
        raise TypeError("a process can't be copied or sent: it belongs to its entity")

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, waiter: Awaited, process: Process) -> cython.int:
        if process._owner is not self._owner:
            refuse_sharing("a process", process._owner.name, self._owner.name)
        if self._state != PENDING:
            return 1
        self._note(waiter)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _told(self, what: Awaited) -> cython.int:
        """Let the process go on with what it waited for, once the present event has been handled."""
        owner: EntityBase = self._owner
        engine: Engine = owner._wl_engine
        if self._waits_on is not what:  # W2
            return 0
        # Without an actor, a signal is fired from outside, or everything is being thrown away.
        if engine.actor is not owner and engine.actor is not None:
            refuse_sharing(f"a {type(what).__name__}", engine.actor.name, owner.name)
        if owner._wl_state == ALIVE and self._generator is not None:
            self._waits_on = None
            if self._ticket != _NEVER:  # The limit of its wait.
                engine.queue.dead += 1
            self._value = what._value
            self._throws = what._state == FAILED
            self._ticket = owner._wl_after(0, self)
        return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def stop_waiting(process: Process) -> cython.int:
    """Let a process wait for nothing, and be given nothing."""
    if process._waits_on is not None:
        what: Awaited = process._waits_on
        process._waits_on = None
        what._leave(process)
    if process._ticket != _NEVER:
        process._ticket = _NEVER
        process._owner._wl_engine.queue.dead += 1
    process._value = None
    process._throws = False
    return 0


# -- Messages


class Receive:
    """The wish for a message; see `receive`. It may be yielded again and again, by any number of processes."""

    __slots__ = ("limit", "topic")

    def __init__(self, topic: str | None, limit: int) -> None:
        self.topic = topic
        self.limit = limit

    def __or__(self, other: Any) -> Any:
        return _combined(self, other, False)

    def __ror__(self, other: Any) -> Any:
        return _combined(other, self, False)

    def __and__(self, other: Any) -> Any:
        return _combined(self, other, True)

    def __rand__(self, other: Any) -> Any:
        return _combined(other, self, True)


class Wait:
    """The wish for something with a limit; see `wait`."""

    __slots__ = ("default", "limit", "what")

    def __init__(self, what: Any, limit: int, default: Any) -> None:
        self.what = what
        self.limit = limit
        self.default = default

    def __or__(self, other: Any) -> Any:
        refuse_combination()

    __ror__ = __and__ = __rand__ = __or__


def receive(topic: str | None = None, *, limit: TimeLike | None = None) -> Receive:
    """Wait for a message: ``message = yield receive()``.

    With a topic, others stay in the inbox. With a limit, the process is given None once it has passed.
    """
    return Receive(topic, NO_LIMIT if limit is None else as_time(limit, "a limit"))


def wait(what: Any, *, limit: TimeLike | None = None, default: Any = None) -> Wait:
    """Wait for a signal or a process's end: ``value = yield wait(signal, limit="5ms")``; if it takes longer, `default`.

    Where None may be what the signal is fired with, or what the process returns, another default tells the two apart.
    """
    if limit is None and default is not None:
        raise UsageError("a wait without a limit has no use for a default", advice='give it one: limit="1s"')
    return Wait(what, NO_LIMIT if limit is None else as_time(limit, "a limit"), default)


@cython.final
@cython.cclass
class EntityInbox(Awaited):
    """The messages that no handler takes, and those who wait for one: processes, and parts of combinations."""

    def __init__(self) -> None:
        self.messages: deque[EntityMessage] = deque()
        self.readers: list[tuple[str | None, Any]] = []

    def take(self, topic: str | None) -> EntityMessage | None:
        """Return the first message of the topic that has come already."""
        messages = self.messages
        if topic is None:
            return messages.popleft() if messages else None
        for place, message in enumerate(messages):
            if message.topic == topic:
                del messages[place]
                return message
        return None

    def reader(self, topic: str) -> Any:
        """Return what has waited longest for such a message, and let it go; None if there is none."""
        for place, (wanted, reader) in enumerate(self.readers):
            if wanted is None or wanted == topic:
                del self.readers[place]
                return reader
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leave(self, waiter: Awaited) -> cython.int:
        self.readers = [reader for reader in self.readers if reader[1] is not waiter]
        return 0


# -- Several at once


@cython.final
@cython.cclass
class Part(Awaited):
    """What a combination makes of a time or of `receive()`: happens when that has passed, or a message has come."""

    if not cython.compiled:
        _source: Any = None  # The timer or the inbox.

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leave(self, waiter: Awaited) -> cython.int:
        source = self._source
        self._source = None
        if type(source) is ScheduledEvent:
            timer: ScheduledEvent = source
            timer.is_live = False
            timer._owner._wl_engine.queue.dead += 1
        elif source is not None:
            inbox: EntityInbox = source
            inbox._leave(self)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _end(self, value: object) -> cython.int:
        self._source = None  # A timer knows its part: a cycle would wait for the garbage collector.
        return self._happen(FIRED, value)


@cython.final
@cython.cclass
class Combination(Awaited):
    """Any or all of several; happens with a dict of those that have happened, each with its value."""

    if not cython.compiled:
        _things: list[Any]  # As they were written.
        _parts: list[Any] | None = None  # What is awaited of each, in that order, while a process waits.
        _is_all: bool
        _missing: int = 0  # How many have to happen yet.

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, waiter: Awaited, process: Process) -> cython.int:
        if self._state != PENDING:
            return 1
        if self._parts is None and self._begin_parts(process):
            return 1
        self._note(waiter)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin_parts(self, process: Process) -> cython.int:
        """Wait for the parts; return whether that isn't needed, because enough of them have happened.

        Once one of any has happened, the rest isn't begun: a message would be taken from the inbox for nothing.
        """
        part: Awaited
        self._parts = []
        self._missing = len(self._things) if self._is_all else 1
        for thing in self._things:
            part = _part_of(thing, process)
            self._parts.append(part)
            if part._begin(self, process):
                if part._state == FAILED:
                    return self._settle(FAILED, part._value)
                self._missing -= 1
                if self._missing == 0:
                    break
        return self._settle(FIRED, self._happened()) if self._missing == 0 else 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _told(self, what: Awaited) -> cython.int:
        if self._state != PENDING or self._parts is None:
            return 0
        if what._state == FAILED:
            self._settle(FAILED, what._value)
        else:
            self._missing -= 1
            if self._missing == 0:
                self._settle(FIRED, self._happened())
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leave(self, waiter: Awaited) -> cython.int:
        Awaited._leave(self, waiter)
        if self._waiters is None:
            self._let_go()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _settle(self, state: cython.int, value: object) -> cython.int:
        self._let_go()
        self._happen(state, value)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _let_go(self) -> cython.int:
        """Leave the parts that haven't happened (W3)."""
        part: Awaited
        parts = self._parts
        self._parts = None
        if parts is not None:
            for each in parts:
                part = each
                if part._state == PENDING:
                    part._leave(self)
        return 0

    @cython.cfunc
    def _happened(self) -> Any:
        """Return what has happened, by what was written; times aren't in it, since they have no value."""
        happened: dict[Any, Any] = {}
        part: Awaited
        begun: Any = self._parts
        place: cython.Py_ssize_t
        for place in range(len(self._things)):
            thing = self._things[place]
            if place < len(begun):
                part = begun[place]
            elif isinstance(thing, Awaited):  # Of any, what comes after the first that had happened wasn't begun.
                part = thing
            else:
                continue
            if type(part) is Combination:
                inner: Combination = part
                happened.update(inner._value if inner._state == FIRED else inner._happened_so_far())
            elif part._state == FIRED and type(thing) is not int:
                happened[thing] = part._value
        return happened

    @cython.cfunc
    def _happened_so_far(self) -> Any:
        return {} if self._parts is None else self._happened()

    def __repr__(self) -> str:
        return f"<{'all' if self._is_all else 'any'} of {len(self._things)}, {_standing(self)}>"

    def __reduce__(self) -> Any:
        raise TypeError("a combination can't be copied or sent")


@cython.cfunc
def _part_of(thing: object, process: Process) -> Awaited:
    """Return what is awaited of what was written: itself, or the passing of a time, or a message."""
    if isinstance(thing, Awaited):
        return thing
    owner: EntityBase = process._owner
    part: Part = Part.__new__(Part)
    if type(thing) is int:
        timer: ScheduledEvent = new_timer(owner, LAPSES, part, owner._wl_engine.now + thing)
        owner._wl_after(thing, timer)
        part._source = timer
        return part
    inbox: EntityInbox = inbox_of(owner)
    part._source = inbox
    message = inbox.take(thing.topic)  # type: ignore[attr-defined]
    if message is not None:
        part._end(message)
    else:
        inbox.readers.append((thing.topic, part))  # type: ignore[attr-defined]
    return part


@cython.cfunc
def inbox_of(owner: EntityBase) -> EntityInbox:
    if owner._wl_inbox is None:
        owner._wl_inbox = EntityInbox()
    inbox: EntityInbox = owner._wl_inbox
    return inbox


@cython.cfunc
def _combined(first: object, second: object, is_all: cython.bint) -> object:
    """Return the combination that ``a | b`` or ``a & b`` is; ``a | b | c`` is one combination of three."""
    things: list[Any] = []
    _collect(things, first, is_all)
    _collect(things, second, is_all)
    return _combination(things, is_all)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _collect(things: list[Any], thing: object, is_all: cython.bint) -> cython.int:
    if type(thing) is Combination:
        combination: Combination = thing
        if combination._is_all == is_all and combination._state == PENDING and combination._parts is None:
            things.extend(combination._things)
            return 0
    things.append(_checked(thing))
    return 0


@cython.cfunc
def _combination(things: list[Any], is_all: cython.bint) -> Combination:
    combination: Combination = Combination.__new__(Combination)
    combination._things = things
    combination._is_all = is_all
    return combination


@cython.cfunc
def _checked(thing: object) -> object:
    """Return a part of a combination, times as numbers; refuse what can't be one."""
    if type(thing) is int:
        if 0 <= thing <= TIME_MAX:
            return thing
    elif isinstance(thing, Awaited) or (type(thing) is Receive and thing.limit == NO_LIMIT):
        return thing
    if type(thing) is Receive or type(thing) is Wait:
        refuse_combination()
    if not resembles_time(thing):
        refuse_wait(thing)
    return as_time(thing, "a delay")  # type: ignore[arg-type]


def any_of(*things: Any) -> Combination:
    """Wait for the first of several, as ``a | b | c`` does: ``happened = yield any_of(*signals)``."""
    if not things:
        raise ModelError("any of nothing never happens", advice="give any_of at least one thing to wait for")
    return _combination([_checked(thing) for thing in things], False)


def all_of(*things: Any) -> Combination:
    """Wait for all of several, as ``a & b & c`` does: ``happened = yield all_of(*processes)``."""
    return _combination([_checked(thing) for thing in things], True)
