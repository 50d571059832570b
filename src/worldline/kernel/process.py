# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False
# cython: annotation_typing=True
# cython: embedsignature=True, embedsignature.format=clinic
"""What entities do: the loop that hands them their events, and their processes, which are generators that wait.

In Cython's pure-Python mode, as `engine.py`, on which it stands: what is marked `cython.` means nothing uncompiled.
"""

from __future__ import annotations

from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from worldline.kernel.account import PROCESS, TIMER, tell_own, tell_unheard
from worldline.kernel.engine import INTERRUPTION, Engine, EntityBase, Handlers, ScheduledEvent
from worldline.kernel.packing import PackedCopy
from worldline.kernel.trouble import check_idle, fail
from worldline.kernel.waiting import (
    EntityInbox,
    EntityMessage,
    Interrupt,
    Receive,
    Signal,
    Wait,
    refuse,
    refuse_combination,
)
from worldline.model.errors import ModelError, UsageError, shown
from worldline.model.reading import as_time, resembles_time
from worldline.model.time import TIME_MAX

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # What isn't a class is imported by `process.pxd`.
    from worldline.kernel.engine import ALIVE, ENDED, INTERRUPTS, STARTS, acting, is_word

NOTHING_TO_INTERRUPT = "had nothing to interrupt"

_LAST = cython.declare(cython.longlong, TIME_MAX)
_NEVER = cython.declare(cython.longlong, -1)  # No order is negative.
_PENDING = cython.declare(object, object())
_CANCELED_MAX = cython.declare(cython.Py_ssize_t, 1_000)
_CHAIN = cython.declare(cython.ulonglong, 2**60 - 1)
_Parcel = cython.declare(object, PackedCopy)
_Generator = cython.declare(object, GeneratorType)


@cython.final
@cython.cclass
class Process:
    """A generator that an entity runs: what it yields is what it waits for."""

    if not cython.compiled:
        _owner: EntityBase
        _generator: Any
        _ticket: int  # The order of the event that wakes it; any other such event is stale.
        _waits_on: Any
        _value: Any
        _done: Signal | None

    @property
    def has_ended(self) -> bool:
        return self._generator is None

    @property
    def value(self) -> Any:
        """What the generator has returned; None before that."""
        return self._value if self._generator is None else None

    def interrupt(self, cause: Any = None) -> None:
        """Raise `Interrupt` in the process, at this moment, once the entity's present event has been handled."""
        owner: EntityBase = self._owner
        engine: Engine = acting(owner)
        if self._generator is None:
            raise ModelError("a process that has ended can't be interrupted", advice="look at has_ended first")
        if self._generator.gi_running:
            raise ModelError("a process can't interrupt itself", advice="raise an exception instead")
        if self._generator.gi_suspended:  # From now on nothing else can wake it; one that is new starts before.
            _stop_waiting(self)
        owner._wl_order += 2
        engine._push(engine.now, engine.now, owner._wl_order, owner, owner, INTERRUPTS, (self, cause))

    def __repr__(self) -> str:
        name = "that has ended" if self._generator is None else self._generator.__qualname__
        return f"<process {name}, of {self._owner.name}>"

    def __or__(self, other: object) -> Any:
        refuse_combination()

    def __ror__(self, other: object) -> Any:
        refuse_combination()

    def __and__(self, other: object) -> Any:
        refuse_combination()

    def __rand__(self, other: object) -> Any:
        refuse_combination()

    def _give(self, value: Any) -> None:
        """Let the process go on with a value; what it waited for has happened."""
        owner: EntityBase = self._owner
        engine: Engine = owner._wl_engine
        if engine.actor is not None:  # Otherwise a signal is fired from outside, or everything is being thrown away.
            acting(owner)
        if owner._wl_state == ALIVE and self._generator is not None:
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
def _new_process(owner: EntityBase, generator: object) -> Process:
    process: Process = Process()
    process._owner = owner
    process._generator = generator
    process._ticket = _NEVER
    if not cython.compiled:
        process._waits_on = process._value = process._done = None
    return process


@cython.cfunc
def _add_process(owner: EntityBase, process: Process) -> cython.int:
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
        process._owner._wl_engine._canceled += 1
    process._value = None
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def adopt(owner: EntityBase, result: object, is_main: cython.bint) -> cython.int:
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
    owner: EntityBase = process._owner
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
        if owner._wl_state != ALIVE:
            return _close(process)
        if type(yielded) is int and ((not cython.compiled and 0 < yielded <= _LAST) or is_word(yielded)):
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
def _wait(process: Process, yielded: Any) -> Any:
    """Return what a process waits for if it is there already; otherwise see to it that it is told."""
    owner: EntityBase = process._owner
    limit: cython.longlong = -1
    default = None
    if type(yielded) is Receive:
        if owner._wl_inbox is None:
            owner._wl_inbox = EntityInbox()
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
            if what is not yielded or not resembles_time(what):
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
    owner: EntityBase = process._owner
    process._generator = None
    process._value = value
    if process._done is not None and owner._wl_state == ALIVE:
        process._done.fire(value)
    if owner._wl_main is process:
        owner._wl_main = None
        kind: Any = type(owner)
        if kind.ends_with_its_process and owner._wl_state == ALIVE:
            end_entity(owner)
    elif owner._wl_others is not None and process in owner._wl_others:
        owner._wl_others.remove(process)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def wake(process: Process) -> cython.int:
    """Let a process go on whose time has come: with what it was given, or because the limit of its wait has passed."""
    process._ticket = _NEVER
    value = process._value
    if process._waits_on is not None:
        _stop_waiting(process)
    process._value = None
    return _resume(process, value, None)


@cython.cfunc
@cython.exceptval(-1, check=False)
def deliver(engine: Engine, target: EntityBase, topic: Any, payload: Any) -> cython.int:
    """Give a message to an entity that has no handler of its own for the topic."""
    process: Process
    if topic is INTERRUPTS:
        process = payload[0]
        if process._generator is None:
            return 0
        if engine.observer is not None:
            told = {"process": process._generator.__qualname__, "interrupt": payload[1]}
            tell_own(engine, target, PROCESS, told)  # What others do is a message.
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
    message = EntityMessage(engine.now, max(engine.sent, 0), engine.sender.name, order >> 1, order & 1, topic, payload)
    function = target._wl_handlers.by_topic.get(None)
    if function is not None:
        result = function(target, message)
        return adopt(target, result, False) if result is not None else 0
    if target._wl_main is None and not target._wl_others:
        engine.roster.refuse_message(target, message)
    if target._wl_inbox is None:
        target._wl_inbox = EntityInbox()
    reader = target._wl_inbox.reader(topic)
    if reader is None:
        target._wl_inbox.messages.append(message)
        return 0
    process = reader
    process._waits_on = None
    _stop_waiting(process)
    return _resume(process, message, None)


def begin_process(entity: Any, generator: Any) -> Process:
    """Start a `Process` beside what the entity does already: ``charging = self.process(self.charge())``."""
    owner: EntityBase = entity
    acting(owner)
    if type(generator) is not _Generator:
        raise UsageError(
            f"{shown(generator)} isn't a generator",
            advice="call a function with yield in it: self.process(self.f())",
        )
    process: Process = _new_process(owner, generator)
    _add_process(owner, process)
    process._ticket = owner._wl_after(0, process)
    return process


def refused_generator(entity: Any) -> Any:
    """Return the generator of the process that waits for nothing, if there is one: what it has yielded was refused."""
    if entity is None:
        return None
    owner: EntityBase = entity
    process: Process
    for each in (owner._wl_main, *(owner._wl_others or ())):
        if each is not None:
            process = each
            if process._ticket == _NEVER and process._waits_on is None:
                return process._generator
    return None


def end_entity(entity: Any) -> None:
    """Be no more: processes are closed, timers void; what is still under way to the entity vanishes."""
    core: EntityBase = entity
    engine: Engine = acting(core)
    processes = [process for process in (core._wl_main, *(core._wl_others or ())) if process is not None]
    core._wl_main = core._wl_others = None
    for process in processes:
        _close(process)
    if core._wl_state == ALIVE:  # What a process does when it is closed may have ended it already.
        core._wl_state = ENDED
        core._wl_inbox = None
        engine.roster.ended(core)
        engine._canceled += core._wl_ahead
        if cython.compiled:
            engine._leaving.append(core)


@cython.cfunc
@cython.exceptval(-1, check=False)
def purge(engine: Engine) -> cython.int:
    """Take the dead events out of the queue, if they are most of it: timers that are canceled would pile up.

    Otherwise it looks again when twice as many are dead, since to count what is in the queue may take a while.
    """
    if 2 * engine._canceled > len(engine.queue):
        engine._canceled = 0
        owners = engine.queue.purge(_is_dead)
        if cython.compiled:
            for number in owners:
                core: EntityBase = engine.queue.table[number]
                if core._wl_rank & 1:
                    engine._unpin(number)
    engine._patience = max(_CANCELED_MAX, 2 * engine._canceled)
    return 0


def _is_dead(event: Any, order: int) -> bool:
    """Whether nothing will come of an event: a timer that was canceled, a process that was woken by something else.

    The queue asks when it takes such events out, so this also counts them off.
    """
    owner: EntityBase
    is_dead: cython.bint
    if type(event) is Process:
        process: Process = event
        owner = process._owner
        is_dead = process._ticket != order or owner._wl_state == ENDED
    elif type(event) is ScheduledEvent:
        timer: ScheduledEvent = event
        owner = timer._owner
        is_dead = not timer.is_live or owner._wl_state == ENDED
    else:
        return False
    if is_dead:
        owner._wl_ahead -= 1
    return is_dead


def advance(engine: Engine, end: cython.longlong, limit: cython.longlong) -> int:
    """Handle the events before `end`, at most `limit` of them, and return how many it were.

    Compiled, the queue has the event at hand, and its entities by number; uncompiled it hands out whole events, since
    there the time goes into calls and attributes.
    """
    handled: cython.longlong = 0
    time: cython.longlong
    order: cython.longlong
    sender_key: cython.ulonglong
    rank: cython.int
    goal: cython.int
    is_own: cython.bint
    is_live: cython.bint
    is_observed: cython.bint = engine.observer is not None
    target: EntityBase | None = None
    process: Process
    timer: ScheduledEvent
    handlers: Handlers
    check_idle(engine)
    what = payload = None
    if cython.compiled:
        queue: Queue = engine.queue
    else:
        events = engine.queue.until(end)
    try:
        while handled < limit:
            if cython.compiled:
                if not queue.pop(end):
                    break
                time = queue.time
                order = queue.event.order
                rank = queue.event.rank
                goal = queue.event.target
                what = queue.cell
                is_own = goal < 0
            else:
                engine._entry = next(events, None)
                if engine._entry is None:
                    break
                time, _, _, order, what, sender, target, payload = engine._entry
                is_own = target is None
            if is_own and type(what) is Process:
                process = what
                target = process._owner
                target._wl_ahead -= 1
                if process._ticket == order and target._wl_state == ALIVE:
                    handled += 1
                    engine.now = time
                    engine.actor = target
                    if cython.compiled:
                        target._wl_chain = hash_of_four(target._wl_chain, time, order, 0)
                    else:
                        target._wl_chain = hash((target._wl_chain, time, order, 0)) & _CHAIN
                    if is_observed:
                        tell_own(engine, target, PROCESS, {"process": process._generator.__qualname__})
                    wake(process)
            else:
                if is_own:
                    timer = what
                    target = timer._owner
                    target._wl_ahead -= 1
                    what = timer.topic
                    payload = timer.payload
                    if cython.compiled:
                        sender_key = target._wl_key
                    is_live = timer.is_live and target._wl_state == ALIVE
                    timer.is_live = False
                    if is_observed and is_live:
                        engine.now = time
                        tell_own(engine, target, TIMER, {"topic": what, "payload": payload})
                else:
                    if cython.compiled:
                        target = cython.cast(EntityBase, PyList_GET_ITEM(queue.table, goal))
                        payload = what if queue.event.kind == LADEN else None
                        what = cython.cast(tuple, PyList_GET_ITEM(engine._topics, queue.event.topic))[0]
                        sender_key = queue.event.sender_key
                    is_live = True
                    if target._wl_state != ALIVE:
                        engine.now = time
                        target = engine.roster.arrived(target, engine.sender, what, time)
                        is_live = target is not None
                if is_live:
                    handled += 1
                    engine.now = time
                    engine.actor = target
                    if cython.compiled:
                        target._wl_chain = hash_of_four(target._wl_chain, time, order, sender_key)
                    else:
                        target._wl_chain = hash((target._wl_chain, time, order, sender._wl_key)) & _CHAIN
                    if type(payload) is _Parcel:
                        payload = payload.open()
                    handlers = target._wl_handlers
                    if what is not handlers.topic:
                        handlers.find(what)
                    if handlers.function is None:
                        deliver(engine, target, what, payload)
                    else:
                        function = handlers.function
                        result = function(target) if what is STARTS else function(target, payload)
                        if result is not None:
                            adopt(target, result, what is STARTS)
            if cython.compiled:
                queue.settle()
                if rank & 1:
                    engine._unpin(queue.event.sender)
                if goal >= 0:
                    target = cython.cast(EntityBase, PyList_GET_ITEM(queue.table, goal))
                    if target._wl_rank & 1:
                        engine._unpin(goal)
                if engine._leaving:
                    engine._let_go()
            if engine._canceled > engine._patience:
                purge(engine)
    except BaseException as error:
        fail(engine, error, target, what)
    finally:
        engine.events += handled
        engine.actor = None
        if cython.compiled:
            queue.settle()
    return handled
