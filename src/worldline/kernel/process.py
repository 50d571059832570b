# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False
# cython: annotation_typing=True
# cython: embedsignature=True, embedsignature.format=clinic
"""What entities do: the loop that hands them their events, and runs their processes from one wait to the next.

In Cython's pure-Python mode, as `engine.py`, on which it stands: what is marked `cython.` means nothing uncompiled.
"""

from __future__ import annotations

from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from worldline.kernel.account import PROCESS, TIMER, tell_own, tell_unheard, told_of_timer
from worldline.kernel.engine import INTERRUPTION, Engine, EntityBase, Handlers, ScheduledEvent
from worldline.kernel.packing import PackedCopy
from worldline.kernel.trouble import LITERAL_MAX, check_idle, check_literal, fail, is_suspect, refuse_wait
from worldline.kernel.waiting import Awaited, EntityInbox, EntityMessage, Interrupt, Part, Process, Receive, Wait
from worldline.model.errors import ModelError, UsageError, WorldlineError, shown
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
    from worldline.kernel.engine import ALIVE, ENDED, INTERRUPTS, LAPSES, STARTS, acting, is_word
    from worldline.kernel.queue import BucketQueue as Queue
    from worldline.kernel.waiting import FAILED, FIRED, PENDING, inbox_of, stop_waiting

NOTHING_TO_INTERRUPT = "had nothing to interrupt"

_LAST = cython.declare(cython.longlong, TIME_MAX)
_NEVER = cython.declare(cython.longlong, -1)  # No order is negative.
_CANCELED_MAX = cython.declare(cython.Py_ssize_t, 1_000)
_GAPS_MAX = cython.declare(cython.Py_ssize_t, 8)
_CHAIN = cython.declare(cython.ulonglong, 2**60 - 1)
_Parcel = cython.declare(object, PackedCopy)
_Generator = cython.declare(object, GeneratorType)


_LITERAL_MAX = cython.declare(cython.longlong, LITERAL_MAX)
_looked_at = cython.declare(object, None)  # The code that was looked at last: mostly the next is the same.
_was_suspect = cython.declare(cython.bint, False)


@cython.cclass
class EntityWithProcesses(EntityBase):
    """The hot part of `Entity` that has to do with processes."""

    __slots__ = ()

    def process(self, generator: Any) -> Process:
        """Start a `Process` alongside what the entity does already: ``charging = self.process(self.charge())``."""
        acting(self)
        if type(generator) is not _Generator:
            raise UsageError(
                f"{shown(generator)} isn't a generator",
                advice="call a function with yield in it: self.process(self.f())",
            )
        process: Process = _new_process(self, generator)
        _add_process(self, process)
        process._ticket = self._wl_after(0, process)
        return process

    def end(self) -> None:
        """Leave the simulation: processes are closed, timers canceled; messages under way to the entity vanish."""
        _end(self)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _end(core: EntityBase) -> cython.int:
    engine: Engine = acting(core)
    processes = [process for process in (core._wl_main, *(core._wl_others or ())) if process is not None]
    core._wl_main = core._wl_others = None
    core._wl_running = 0
    for process in processes:
        _close(process)
    if core._wl_state == ALIVE:  # What a process does when it is closed may have ended it already.
        core._wl_state = ENDED
        core._wl_inbox = None
        engine.roster.ended(core)
        engine.queue.dead += core._wl_ahead
        if cython.compiled:
            engine._leaving.append(core)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _close(process: Process) -> cython.int:
    """End a process where it waits. The one that is running ends when it waits next."""
    generator = process._generator
    if generator is not None and not generator.gi_running:
        process._generator = None
        stop_waiting(process)
        generator.close()
    return 0


@cython.cfunc
def _new_process(owner: EntityBase, generator: object) -> Process:
    process: Process = Process.__new__(Process)
    process._owner = owner
    process._generator = generator
    process._ticket = _NEVER
    return process


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check_small(process: Process, yielded: Any) -> cython.int:
    """Refuse a small number if it is written out where it is yielded: its unit is missing."""
    global _looked_at, _was_suspect
    if not process._is_looked_at:
        process._is_looked_at = True
        code = process._generator.gi_code
        if code is not _looked_at:
            _was_suspect = is_suspect(code)
            _looked_at = code
        process._is_suspect = _was_suspect
    if process._is_suspect:
        check_literal(process._generator, yielded)
    return 0


# An entity's processes besides the main one are in a list, in the order in which they were started, which is the one in
# which they are closed. Each knows its place there, so that to end takes no search; what has ended leaves a gap.


@cython.cfunc
@cython.exceptval(-1, check=False)
def _add_process(owner: EntityBase, process: Process) -> cython.int:
    others = owner._wl_others
    if others is None:
        others = owner._wl_others = []
    elif owner._wl_running == 0 and others:  # All are gaps.
        process._place = 0
        others[0] = process
        owner._wl_running = 1
        return 0
    elif len(others) > 2 * owner._wl_running + _GAPS_MAX:
        owner._wl_others = others = [each for each in others if each is not None]
        moved: Process
        place: cython.Py_ssize_t
        for place in range(len(others)):
            moved = others[place]
            moved._place = place
    process._place = len(others)
    others.append(process)
    owner._wl_running += 1
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _remove_process(owner: EntityBase, process: Process) -> cython.int:
    others = owner._wl_others
    if others is not None and process._place < len(others) and others[process._place] is process:
        owner._wl_running -= 1
        others[process._place] = None
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
@cython.exceptval(-1, check=False)
def _resume(process: Process, value: object, error: object) -> cython.int:
    """Run a process until it waits again."""
    generator = process._generator
    owner: EntityBase = process._owner
    while True:
        if cython.compiled and error is None:  # A shorter way, on which neither the end nor the rest is an exception.
            given: cython.pointer(PyObject) = cython.NULL
            sent: PySendResult = PyIter_Send(generator, value, cython.address(given))
            if sent == PYGEN_RETURN:
                return _finish(process, FIRED, _owned(given))
            if sent == PYGEN_ERROR:
                return _fail_pending(process)
            yielded = _owned(given)
        else:
            try:
                yielded = generator.send(value) if error is None else generator.throw(error)
            except StopIteration as stop:
                return _finish(process, FIRED, stop.value)
            except Exception as raised:
                return _fail(process, raised)
        if owner._wl_state != ALIVE:
            return _close(process)
        if type(yielded) is int and ((not cython.compiled and 0 < yielded <= _LAST) or is_word(yielded)):
            delay: cython.longlong = yielded
            if 0 < delay < _LITERAL_MAX:
                _check_small(process, yielded)
            process._ticket = owner._wl_after(delay, process)
            return 0
        if _wait(process, yielded) == PENDING:
            return 0
        value = process._value
        error = None
        if process._throws:
            error = value
            value = None
            process._throws = False
        process._value = None
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
    @cython.exceptval(-1, check=False)
    def _fail_pending(process: Process) -> cython.int:
        """End a process with the exception that C code has left behind."""
        try:
            raise_pending()
        except Exception as raised:
            return _fail(process, raised)
        return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _fail(process: Process, error: object) -> cython.int:
    """End a process with an exception: whatever waits for it gets that. If nothing does, it ends the run.

    What the kernel refuses always does, since it is about the model, and not something that happens in it.
    """
    if process._waiters is None or process._owner._wl_state != ALIVE or isinstance(error, WorldlineError):
        raise error  # type: ignore[misc]
    return _finish(process, FAILED, error)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _wait(process: Process, yielded: Any) -> cython.int:
    """See to it that a process is told when it can go on; if that is now, leave what it is given in the process."""
    owner: EntityBase = process._owner
    what: Awaited
    inbox: EntityInbox
    limit: cython.longlong = -1
    default = None
    if type(yielded) is Process or isinstance(yielded, Awaited):
        what = cython.cast(Awaited, yielded)
    elif type(yielded) is Receive:
        inbox = inbox_of(owner)
        process._value = inbox.take(yielded.topic)
        if process._value is not None:
            return FIRED
        inbox.readers.append((yielded.topic, process))
        process._waits_on = inbox
        if yielded.limit >= 0:
            process._ticket = owner._wl_after(yielded.limit, process)
        return PENDING
    elif type(yielded) is Wait and isinstance(yielded.what, Awaited):
        what = yielded.what
        limit = yielded.limit
        default = yielded.default
    else:
        if type(yielded) is Wait:
            refuse_wait(yielded.what, True)
        if not resembles_time(yielded):
            refuse_wait(yielded)
        process._ticket = owner._wl_after(as_time(yielded, "a delay"), process)
        return PENDING
    if what._begin(process, process):
        process._value = what._value
        process._throws = what._state == FAILED
        return what._state
    process._waits_on = what
    if limit >= 0:
        process._ticket = owner._wl_after(limit, process)
        process._value = default
    return PENDING


@cython.cfunc
@cython.exceptval(-1, check=False)
def _finish(process: Process, state: cython.int, value: object) -> cython.int:
    owner: EntityBase = process._owner
    process._generator = None
    if owner._wl_state == ALIVE:
        process._happen(state, value)
    if owner._wl_main is process:
        owner._wl_main = None
        kind: Any = type(owner)
        if kind.ends_with_its_process and owner._wl_state == ALIVE:
            _end(owner)
    else:
        _remove_process(owner, process)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def wake(process: Process) -> cython.int:
    """Let a process go on whose time has come: with what it was given, or because the limit of its wait has passed."""
    process._ticket = _NEVER
    value = process._value
    if process._throws:
        stop_waiting(process)
        return _resume(process, None, value)
    if process._waits_on is not None:
        stop_waiting(process)
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
        stop_waiting(process)
        return _resume(process, None, Interrupt(payload[1]))
    if topic is LAPSES:
        part: Part = payload
        return part._end(None)
    if topic == INTERRUPTION:
        if target._wl_main is None:
            engine.count_dropped(target._wl_name, topic, NOTHING_TO_INTERRUPT)
            if engine.observer is not None:
                tell_unheard(engine, engine.sender, target, NOTHING_TO_INTERRUPT)
            return 0
        process = target._wl_main
        stop_waiting(process)
        return _resume(process, None, Interrupt(payload))
    order = engine.order
    message = EntityMessage(engine.now, max(engine.sent, 0), engine.sender.name, order >> 1, order & 1, topic, payload)
    function = target._wl_handlers.by_topic.get(None)
    if function is not None:
        result = function(target, message)
        return adopt(target, result, False) if result is not None else 0
    if target._wl_main is None and not target._wl_running:
        engine.roster.refuse_message(target, message)
    inbox: EntityInbox = inbox_of(target)
    reader = inbox.reader(topic)
    if reader is None:
        inbox.messages.append(message)
        return 0
    if type(reader) is not Process:
        part = reader
        return part._end(message)
    process = reader
    process._waits_on = None
    stop_waiting(process)
    return _resume(process, message, None)


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


@cython.cfunc
@cython.exceptval(-1, check=False)
def purge(engine: Engine) -> cython.int:
    """Take the dead events out of the queue, if they are most of it: timers that are canceled would pile up.

    Otherwise it looks again when twice as many are dead, since to count what is in the queue may take a while.
    """
    queue: Queue = engine.queue
    if 2 * queue.dead > len(queue):
        queue.dead = 0
        owners = queue.purge(_is_dead)
        if cython.compiled:
            for number in owners:
                core: EntityBase = queue.table[number]
                if core._wl_rank & 1:
                    engine._unpin(number)
    engine._patience = max(_CANCELED_MAX, 2 * queue.dead)
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


def advance(engine: Engine, end: cython.longlong, limit: cython.longlong, stop: Any) -> int:
    """Handle the events before `end`, at most `limit` of them, and return how many it were.

    With something to `stop` at, the event during which that happens is the last.
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
    last: Awaited | None = stop
    check_idle(engine)
    what = payload = None
    queue: Queue = engine.queue
    if not cython.compiled:
        events = queue.until(end)
    try:
        while handled < limit:
            if last is not None and last._state != PENDING:
                break
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
                event = queue.event = next(events, None)
                if event is None:
                    break
                time, _, _, order, what, sender, target, payload = event
                is_own = target is None
            if is_own and type(what) is Process:
                process = cython.cast(Process, what)
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
                        tell_own(engine, target, TIMER, told_of_timer(what, payload))
                else:
                    if cython.compiled:
                        target = cython.cast(EntityBase, PyList_GET_ITEM(queue.table, goal))
                        payload = what if queue.event.kind == LADEN else None
                        what = cython.cast(tuple, PyList_GET_ITEM(engine.topics.numbered, queue.event.topic))[0]
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
            if queue.dead > engine._patience:
                purge(engine)
    except BaseException as error:
        fail(engine, error, target, what)
    finally:
        engine.events += handled
        engine.actor = None
        if cython.compiled:
            queue.settle()
    return handled
