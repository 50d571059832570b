# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, nonecheck=True
# cython: annotation_typing=True, embedsignature=True, embedsignature.format=clinic
"""Environments, events, processes and conditions with the semantics of SimPy 4.1, in Cython's pure-Python mode.

An event passes through three states: it may be triggered, then it is in the queue, then its callbacks are called. What
is in the queue happens in the order (time, priority, number); a number is taken whenever something is put there.

S1. Whatever a model can see is as in SimPy: times and their types, the order of events, every attribute that SimPy's
    own classes use, also those with an underscore, and the text of errors.
S2. Nothing is made before it is seen. An event that one process or one condition waits for has no list of callbacks:
    `_wl_waiter` is that process or condition, until the attribute `callbacks` is read. The event that starts a process,
    and that of a release at the end of a `with` block, are objects only for those who look at the queue.
S3. What is out of the ordinary is done as SimPy does it: times that aren't plain ints or floats, that lie in the past,
    or that no double can hold; unusual priorities; a `_queue` that is looked at. Then the queue becomes SimPy's, a list
    of (time, priority, number, event) ordered by `heapq`, for the rest of the run. Uncompiled it always is.
S4. A method that a model has replaced is called: `step` and `schedule` of an Environment, in its class or in the
    object; those of resources likewise.
S5. A class of a model's own may forget to call `super().__init__()`. Then what its objects lack is None, so `nonecheck`
    is on: to use that raises an AttributeError, as in SimPy. What C functions are given, it doesn't look at; those that
    get an event's environment do.

The chain is a hash of every event that happened: its time, priority, number and, as far as it is a number or a text,
its value. Both builds have the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from heapq import heappop, heappush
from struct import Struct
from types import FrameType, GeneratorType, MethodType
from typing import TYPE_CHECKING, Any, NewType
from zlib import crc32

from worldline.kernel.draws import Draws
from worldline.simpy.exceptions import Interrupt

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython
    if not cython.compiled:  # Cython's own stand-ins do more than nothing, and are called very often here.
        import worldline.uncompiled as cython

if not cython.compiled:  # Compiled, these are C's, in `engine.pxd`.
    TRIGGERED, OK_KNOWN, OK, DEFUSED, PROCESSED, LEADS, IS_CONDITION = 1, 2, 4, 8, 16, 32, 64
    SUCCEEDED, FAILED = TRIGGERED | OK_KNOWN | OK, TRIGGERED | OK_KNOWN
    URGENT_, NORMAL_ = 0, 1

PENDING: object = object()
"""The value of an event that hasn't been triggered."""

EventPriority = NewType("EventPriority", int)
URGENT: EventPriority = EventPriority(0)
NORMAL: EventPriority = EventPriority(1)

Infinity: float = float("inf")
SimTime = Any
"""Any number: times stay what the model makes of them."""

INVALID_YIELD = "Invalid yield value"
"""How the text begins that says that a process has yielded what isn't an event."""

ProcessGenerator = Generator[Any, Any, Any]

_Generator = cython.declare(object, GeneratorType)
_pending = cython.declare(object, PENDING)
_Interrupt = cython.declare(object, Interrupt)
_EXACT = cython.declare(cython.longlong, 2**53)  # Below it, every int is a double.
_CHAIN = cython.declare(cython.ulonglong, 2**60 - 1)
_HALF = cython.declare(cython.ulonglong, 2**32 - 1)
_VALUE = cython.declare(cython.ulonglong, 2**60)  # More than any number and priority.
_ANY, _ALL = cython.declare(cython.int, 1), cython.declare(cython.int, 2)
_halves = Struct("<II").unpack
_bytes_of = Struct("<d").pack

# Where in their objects these keep the dict of attributes that a model has set, if it has.
_event_dict = cython.declare(cython.Py_ssize_t, 0)
_environment_dict = cython.declare(cython.Py_ssize_t, 0)

_host: Any = None


def set_host(host: Any) -> None:
    """Have an object look after all environments that are made from now on: it is told of each, and runs them."""
    global _host
    _host = host


class EmptySchedule(Exception):
    """There is nothing left to happen."""


class StopSimulation(Exception):
    """Ends `Environment.run`, which returns its argument."""

    @classmethod
    def callback(cls, event: Event) -> None:
        """Stop when the event happens: `run` then returns its value, or raises it."""
        if event.ok:
            raise cls(event.value)
        raise event._value


class BoundClass:
    """A class as a method: what it is looked up in is the first argument."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def __class_getitem__(cls, _: Any) -> type:
        return cls

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.cls if instance is None else MethodType(self.cls, instance)

    @staticmethod
    def bind_early(instance: object) -> None:
        """Put what the class of an object binds into the object itself."""
        for name, value in type(instance).__dict__.items():
            if type(value) is BoundClass:
                setattr(instance, name, getattr(instance, name))


# -- Environments


class _Numbers:
    """SimPy's `env._eid`: taking the next takes a number that no event will have."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def __iter__(self) -> _Numbers:
        return self

    def __next__(self) -> int:
        env: Environment = self._env
        env._wl_number += 1
        return env._wl_number - 1


class _Streams:
    """The random numbers of an Environment: those of each name, as its seed decides."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._begun: dict[tuple[str, ...], Draws] = {}

    def named(self, *names: object) -> Draws:
        key = tuple([str(name) for name in names])
        found = self._begun.get(key)
        if found is None:
            found = self._begun[key] = Draws(self.seed, "simpy", *key)
        return found


@cython.cclass
class Environment:
    """Runs events in the order of their times. `seed` decides what `rng` and `stream` draw.

    In recordings, and on links to other simulations, a `unit` of time is that long: a second, unless said otherwise.
    """

    if not cython.compiled:
        _active_proc: Any
        unit: Any
        _wl_queue: Any
        _wl_now: Any
        _wl_schedules: bool
        _wl_steps: bool
        _wl_number: int
        _wl_events: int
        _wl_chain: int
        _wl_processes: int
        _wl_host: Any
        _wl_teller: Any
        _wl_failed: Any
        _wl_streams: _Streams

    def __cinit__(self) -> None:
        if cython.compiled:
            empty(self, _environment_dict)

    def __init__(self, initial_time: SimTime = 0, *, seed: Any = None, unit: Any = None) -> None:
        self._active_proc = None
        self.unit = "1s" if unit is None else unit
        self._wl_number = self._wl_events = self._wl_processes = 0
        self._wl_chain = 0
        self._wl_streams = _Streams(0 if seed is None else seed)
        self._wl_now = initial_time
        self._wl_queue = []
        self._wl_schedules = type(self).schedule is not _schedule_of_ours
        self._wl_steps = type(self).step is not _step_of_ours
        if cython.compiled:
            self._wl_agenda = Agenda()
            _take_up_agenda(self, initial_time)
        self._wl_host = _host
        self._wl_teller = self._wl_failed = None
        if _host is not None:
            _host.adopt(self, seed, unit)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "step":
            self._wl_steps = True
        elif name == "schedule":
            self._wl_schedules = True
        if cython.compiled:
            PyObject_GenericSetAttr(self, name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if cython.compiled:
            PyObject_GenericDelAttr(self, name, cython.NULL)
        else:
            object.__delattr__(self, name)

    def __reduce__(self) -> Any:
        raise TypeError("an Environment can't be copied or sent: its processes are generators")

    @cython.cfunc
    def _wl_time(self) -> Any:
        """Return the time as an object, which is made when it is asked for."""
        if cython.compiled and self._wl_now is None:
            if self._wl_agenda.is_whole:
                self._wl_now = cython.cast(cython.longlong, self._wl_agenda.now)
            else:
                self._wl_now = self._wl_agenda.now
        return self._wl_now

    @property
    def now(self) -> SimTime:
        return self._wl_time()

    @property
    def _now(self) -> SimTime:
        return self._wl_time()

    @_now.setter
    def _now(self, time: SimTime) -> None:
        _fall_back(self)
        self._wl_now = time

    @property
    def active_process(self) -> Any:
        """The process that runs; None if none does."""
        return self._active_proc

    @property
    def _queue(self) -> Any:
        _fall_back(self)
        return self._wl_queue

    @property
    def _eid(self) -> Iterator[int]:
        return _Numbers(self)

    def process(self, generator: ProcessGenerator) -> Process:
        """Start a process: a generator that yields the events that it waits for."""
        process: Process = Process.__new__(Process)
        _begin(process, self, generator)
        return process

    def timeout(self, delay: SimTime, value: Any = None) -> Timeout:
        """Return an event that happens after a delay."""
        event: Timeout = Timeout.__new__(Timeout)
        _set_out(event, self, delay, value)
        return event

    def event(self) -> Event:
        """Return an event that happens once it is triggered."""
        event: Event = Event.__new__(Event)
        event.env = self
        return event

    def all_of(self, events: Iterable[Event]) -> AllOf:
        """Return an event that happens when all of these have."""
        condition: AllOf = AllOf.__new__(AllOf)
        _condition(condition, self, _all_events, tuple(events))
        return condition

    def any_of(self, events: Iterable[Event]) -> AnyOf:
        """Return an event that happens when one of these has."""
        condition: AnyOf = AnyOf.__new__(AnyOf)
        _condition(condition, self, _any_events, tuple(events))
        return condition

    def schedule(self, event: Event, priority: Any = NORMAL, delay: SimTime = 0) -> None:
        """Put an event into the queue."""
        if cython.compiled and self._wl_queue is None and type(priority) is int and -8 <= priority < 8:
            _push(self, event, priority, delay, 0)
        else:
            _fall_back(self)
            heappush(self._wl_queue, (self._wl_now + delay, priority, self._wl_number, event))
            self._wl_number += 1

    def peek(self) -> SimTime:
        """Return when the next event happens; `Infinity` if there is none."""
        if cython.compiled and self._wl_queue is None:
            if self._wl_agenda.is_empty():
                return Infinity
            node: Node = self._wl_agenda.front()
            if node.key & WHOLE:
                return cython.cast(cython.longlong, node.time)
            return node.time
        return self._wl_queue[0][0] if self._wl_queue else Infinity

    def step(self) -> None:
        """Let the next event happen; `EmptySchedule` is raised if there is none."""
        _step(self)

    def run(self, until: SimTime | Event | None = None) -> Any:
        """Run until a time or an event, whose value is returned; or as long as there are events."""
        if until is not None:
            if not isinstance(until, Event):
                at = until if isinstance(until, int) else float(until)
                if at <= self._wl_time():
                    raise ValueError(f"until ({at}) must be greater than the current simulation time")
                until = Event(self)
                until._ok = True
                until._value = None
                self.schedule(until, URGENT, at - self._wl_time())
            elif until.callbacks is None:
                return until.value
            until.callbacks.append(StopSimulation.callback)
        try:
            if self._wl_host is None:
                _run(self, -1)
            else:
                self._wl_host.run(self)
        except StopSimulation as stop:
            return stop.args[0]
        except EmptySchedule:
            if until is not None:
                assert not until.triggered
                raise RuntimeError(f'No scheduled events left but "until" event was not triggered: {until}') from None
        return None

    # -- What SimPy doesn't have

    def measure(self, what: Any, value: Any) -> None:
        """Measure a number, as of now: for sweeps, outcomes and recordings of the commands. It is in no digest."""
        from worldline.history.monitor import checked_measure  # Here, since few models measure.

        what, value = checked_measure(what, value)
        if self._wl_host is not None:
            self._wl_host.measured(self, what, value)

    @property
    def seed(self) -> int:
        """What decides its random numbers."""
        return self._wl_streams.seed

    @property
    def rng(self) -> Draws:
        """Random numbers that the seed decides, with the methods of `random.Random`."""
        return self.stream()

    def stream(self, *names: object) -> Draws:
        """Return random numbers of their own: what is drawn from one stream changes nothing in the others."""
        return self._wl_streams.named(*names)

    @property
    def digest(self) -> bytes:
        """The digest of all that has happened so far."""
        from worldline.simpy.border import digest_of  # Here, since few ask for it.

        return digest_of(self)

    @property
    def chain(self) -> int:
        """The hash of all that has happened so far, of which the digest is made."""
        return self._wl_chain

    @property
    def events_processed(self) -> int:
        """How many events have happened."""
        return self._wl_events

    @property
    def processes_started(self) -> int:
        return self._wl_processes


# -- For what looks after environments


def failed_in(env: Environment) -> Any:
    """Return the process that has ended the run, or whatever event did; None if it can't be known."""
    return env._wl_failed if env._wl_failed is not None else env._active_proc


def host_of(env: Environment) -> Any:
    return env._wl_host


def look_after(env: Environment, runs: Any, tells: Any) -> None:
    """Have an object run the environment, and another be told what processes do."""
    env._wl_host = runs
    env._wl_teller = tells


def settle(env: Environment, seed: int, unit: Any) -> None:
    """Decide what an environment draws, and how long a unit of its time is."""
    env._wl_streams = _Streams(seed)
    env.unit = unit


def run_events(env: Environment, limit: int) -> int:
    """Let at most so many events happen, and return how many did; what ends a run is raised."""
    return _run(env, limit)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _run(env: Environment, limit: cython.longlong) -> cython.longlong:
    done: cython.longlong = 0
    while done != limit:
        if env._wl_steps or (not cython.compiled and "step" in env.__dict__):
            env.step()
        else:
            _step(env)
        done += 1
    return done


if cython.compiled:

    @cython.cfunc
    def _take_up_agenda(env: Environment, time: object) -> cython.int:
        """Begin with the quick queue, if the time allows it."""
        overflow: cython.int = 0
        whole: cython.longlong
        if type(time) is int:
            whole = PyLong_AsLongLongAndOverflow(time, cython.address(overflow))
            if overflow or not -_EXACT < whole < _EXACT:
                return 0
            env._wl_agenda.is_whole = True
            env._wl_agenda.now = whole
        elif type(time) is float and time == time and str(time) != "-0.0":
            env._wl_agenda.is_whole = False
            env._wl_agenda.now = time
        else:
            return 0
        env._wl_queue = None
        return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _fall_back(env: Environment) -> cython.int:
    """Go over to SimPy's own queue (S3)."""
    if cython.compiled and env._wl_queue is None:
        now = env._wl_time()
        queue = []
        key: cython.ulonglong
        for time, code, kept in env._wl_agenda.drained():
            key = code
            event = kept
            if key & STANDS_FOR:
                event = kept._wl_shown()
            priority = cython.cast(cython.int, key >> PRIORITY) - 8
            number = (key & ((cython.cast(cython.ulonglong, 1) << PRIORITY) - 1)) >> FLAGS
            queue.append((int(time) if key & WHOLE else time, priority, number, event))
        env._wl_queue = queue  # In order, so it is a heap.
        env._wl_now = now
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _push(env: Environment, event: object, priority: cython.int, delay: object, flags: cython.int) -> cython.int:
    """Put something into the queue after a delay."""
    if cython.compiled and env._wl_queue is None:
        agenda: Agenda = env._wl_agenda
        now: cython.double = agenda.now
        time: cython.double = -1.0
        is_plain: cython.bint = False
        whole: cython.longlong
        overflow: cython.int = 0
        if type(delay) is float:
            time = now + cython.cast(cython.double, delay)
            is_plain = time >= now
        elif type(delay) is int:
            whole = PyLong_AsLongLongAndOverflow(delay, cython.address(overflow))
            if not overflow and 0 <= whole <= _EXACT:
                time = now + whole
                if agenda.is_whole:
                    flags |= WHOLE
                    is_plain = -_EXACT < time < _EXACT
                else:
                    is_plain = time >= now
        if is_plain:
            key: cython.ulonglong = cython.cast(cython.ulonglong, priority + 8) << PRIORITY
            key |= (cython.cast(cython.ulonglong, env._wl_number) << FLAGS) | flags
            env._wl_number += 1
            if time == now and 0 <= priority <= 1:
                return agenda.push_now(priority == 0, key, event)
            return agenda.push(time, key, event)
        _fall_back(env)
    heappush(env._wl_queue, (env._wl_now + delay, priority, env._wl_number, event))
    env._wl_number += 1
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def enqueue(env: Environment, event: Event, priority: cython.int, delay: object) -> cython.int:
    """Put an event into the queue by the Environment's method, if a model has one of its own."""
    if env is None:
        raise _unknown("env", event)
    if env._wl_schedules or (not cython.compiled and "schedule" in env.__dict__):
        env.schedule(event, priority, delay)
        return 0
    return _push(env, event, priority, delay, 0)


@cython.cfunc
@cython.exceptval(-1, check=False)
def enqueue_now(env: Environment, event: Event) -> cython.int:
    if env is None:
        raise _unknown("env", event)
    if cython.compiled and env._wl_queue is None and not env._wl_schedules:
        key: cython.ulonglong = cython.cast(cython.ulonglong, NORMAL_ + 8) << PRIORITY
        key |= (cython.cast(cython.ulonglong, env._wl_number) << FLAGS) | env._wl_agenda.is_whole
        env._wl_number += 1
        return env._wl_agenda.push_now(False, key, event)
    if env._wl_schedules or (not cython.compiled and "schedule" in env.__dict__):
        env.schedule(event)
        return 0
    return _push(env, event, NORMAL_, 0, 0)


@cython.cfunc
@cython.exceptval(-1, check=False)
def stand_in(env: Environment, kept: object, priority: cython.int) -> cython.int:
    """Put something into the queue that stands for an event of its own; returns 0 if that can't be done here (S2)."""
    if env is None:
        raise _unknown("env", kept)
    if cython.compiled and env._wl_queue is None and not env._wl_schedules:
        key: cython.ulonglong = cython.cast(cython.ulonglong, priority + 8) << PRIORITY
        key |= (cython.cast(cython.ulonglong, env._wl_number) << FLAGS) | env._wl_agenda.is_whole | STANDS_FOR
        env._wl_number += 1
        env._wl_agenda.push_now(priority == 0, key, kept)
        return 1
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _step(env: Environment) -> cython.int:
    event: Event
    if cython.compiled and env._wl_queue is None:
        agenda: Agenda = env._wl_agenda
        if agenda.is_empty():
            raise EmptySchedule
        before: cython.double = agenda.now
        kept = agenda.pop()
        key: cython.ulonglong = agenda.key
        whole: cython.bint = key & WHOLE
        if agenda.now != before or agenda.is_whole != whole:
            env._wl_now = None
            agenda.is_whole = whole
        env._wl_events += 1
        env._wl_chain = linked(env._wl_chain, agenda.now, ((key >> FLAGS) << 6 >> 2) | (key >> PRIORITY))
        if key & STANDS_FOR:
            return cython.cast(Event, kept)._wl_stand()
        event = cython.cast(Event, kept)
    else:
        if not env._wl_queue:
            raise EmptySchedule
        env._wl_now, priority, number, event = heappop(env._wl_queue)
        env._wl_events += 1
        _link(env, env._wl_now, priority, number)
    return _happen(env, event)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _link(env: Environment, time: Any, priority: Any, number: Any) -> cython.int:
    """Add an event to the chain, as SimPy's queue has it."""
    try:
        high_and_low = _halves(_bytes_of(time))
    except Exception:  # The model's own kind of number.
        high_and_low = (crc32(str(time).encode()), 0)
    code = number << 4 | (int(priority) + 8) & 15
    env._wl_chain = hash((int(env._wl_chain), high_and_low[1], high_and_low[0], code)) & _CHAIN
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _happen(env: Environment, event: Event) -> cython.int:
    """Call an event's callbacks, and raise its failure unless that was dealt with."""
    state: cython.int = event._wl_state
    if state & PROCESSED:
        raise TypeError("'NoneType' object is not iterable")  # As SimPy says it of an event that is in the queue twice.
    waiter = event._wl_waiter
    event._wl_waiter = None
    event._wl_state = (state | PROCESSED) & ~LEADS
    if event._wl_value is not None:
        _link_value(env, event._wl_value)
    if state & LEADS:
        event._wl_lead()
    if waiter is not None:
        if type(waiter) is Process:
            _resume(cython.cast(Process, waiter), event)
        elif type(waiter) is not list and isinstance(waiter, Condition):
            _check(cython.cast(Condition, waiter), event)
        else:
            _call_back(env, event, waiter)
    if event._wl_state & (OK | DEFUSED) == 0:
        env._wl_failed = event
        raise _failure_of(event)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _call_back(env: Environment, event: Event, callbacks: Any) -> cython.int:
    try:
        for callback in callbacks:
            callback(event)
    except StopSimulation:  # The rest is for when the simulation goes on.
        event.callbacks = callbacks[callbacks.index(callback) + 1 :]
        env.schedule(event, EventPriority(-1))
        raise
    return 0


@cython.cfunc
def _copy_of(failure: Any) -> Any:
    """Return a failure for one of those that are told of it: each has a traceback of its own."""
    if type(failure) is _Interrupt:
        copy = _Interrupt.__new__(_Interrupt, *failure.args)
    else:
        copy = type(failure)(*failure.args)
    if cython.compiled:
        set_cause(copy, failure)
    else:
        copy.__cause__ = failure
    return copy


@cython.cfunc
def _failure_of(event: Event) -> Any:
    if not event._wl_state & OK_KNOWN:
        raise _unknown("_ok", event)
    return _copy_of(event._wl_value)


@cython.cfunc
def _unknown(name: str, event: object) -> Any:
    return AttributeError(f"{type(event).__name__!r} object has no attribute {name!r}")


# -- What is in the chain of values: numbers and texts, and tuples of them; of other objects, the name of their class.

_class_codes: dict[type, int] = {}
_NAN = 2**64 - 1  # What no hash is.


@cython.cfunc
@cython.exceptval(-1, check=False)
def _link_value(env: Environment, value: object) -> cython.int:
    content: cython.ulonglong
    if cython.compiled and (type(value) is int or type(value) is float) and value == value:
        content = cython.cast(cython.ulonglong, hash(value))
    else:
        content = _content(value, 0)
    if cython.compiled:
        env._wl_chain = hash_of_four(env._wl_chain, content >> 32, content & _HALF, _VALUE)
    else:
        env._wl_chain = hash((env._wl_chain, content >> 32, content & _HALF, _VALUE)) & _CHAIN
    return 0


def _content(value: Any, depth: int) -> int:
    kind = type(value)
    if kind is int or kind is float or kind is bool:
        return hash(value) & 0xFFFFFFFFFFFFFFFF if value == value else _NAN  # Python hashes that by its address.
    if kind is str:
        return crc32(value.encode("utf-8", "surrogatepass"))
    if kind is bytes:
        return crc32(value)
    if isinstance(value, tuple) and depth < 4:
        return hash(tuple([_content(part, depth + 1) for part in value])) & 0xFFFFFFFFFFFFFFFF
    code = _class_codes.get(kind)
    if code is None:
        code = _class_codes[kind] = crc32(kind.__qualname__.encode("utf-8", "surrogatepass"))
    return code


# -- Events


@cython.freelist(256)
@cython.cclass
class Event:
    """Something that may happen: it is triggered at most once, and calls its callbacks when its time has come."""

    if not cython.compiled:
        env: Environment
        _wl_value: Any = None
        _wl_waiter: Any = None
        _wl_about: Any = None
        _wl_state: int = 0

    def __cinit__(self) -> None:
        if cython.compiled:
            empty(self, _event_dict)

    def __init__(self, env: Environment) -> None:
        self.env = env

    def __class_getitem__(cls, _: Any) -> type:
        return cls

    def __repr__(self) -> str:
        return f"<{self._desc()} object at {id(self):#x}>"

    def _desc(self) -> str:
        return f"{type(self).__name__}()"

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_lead(self) -> cython.int:
        """Call the first callback, if that is the event's own."""
        return 0

    @cython.cfunc
    def _wl_leader(self) -> object:
        """Return the first callback, if that is the event's own."""
        return None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_stand(self) -> cython.int:
        """Do what the event does for which this one stands in the queue."""
        return 0

    @cython.cfunc
    def _wl_list(self) -> list:  # type: ignore[type-arg]
        """Return the list of callbacks, which is made when it is asked for (S2)."""
        waiter = self._wl_waiter
        if waiter is not None and not isinstance(waiter, Event):
            return waiter  # type: ignore[no-any-return]
        callbacks: list[Any] = []
        if self._wl_state & LEADS:
            self._wl_state &= ~LEADS
            callbacks.append(self._wl_leader())
        if waiter is not None:
            callbacks.append(waiter._resume if isinstance(waiter, Process) else waiter._check)  # type: ignore[attr-defined]
        self._wl_waiter = callbacks
        return callbacks

    @property
    def callbacks(self) -> Any:
        """Functions that are called with the event when it happens; None once it has."""
        return None if self._wl_state & PROCESSED else self._wl_list()

    @callbacks.setter
    def callbacks(self, callbacks: Any) -> None:
        self._wl_state &= ~(LEADS | PROCESSED)
        self._wl_waiter = callbacks
        if callbacks is None:
            self._wl_state |= PROCESSED

    @property
    def triggered(self) -> bool:
        return self._wl_state & TRIGGERED != 0

    @property
    def processed(self) -> bool:
        return self._wl_state & PROCESSED != 0

    @property
    def ok(self) -> bool:
        return self._ok

    @property
    def _ok(self) -> bool:
        if not self._wl_state & OK_KNOWN:
            raise _unknown("_ok", self)
        return self._wl_state & OK != 0

    @_ok.setter
    def _ok(self, ok: object) -> None:
        self._wl_state = (self._wl_state | OK_KNOWN | OK) if ok else ((self._wl_state | OK_KNOWN) & ~OK)

    @property
    def defused(self) -> bool:
        return self._wl_state & DEFUSED != 0

    @defused.setter
    def defused(self, _: object) -> None:
        self._wl_state |= DEFUSED

    @property
    def _defused(self) -> bool:
        if not self._wl_state & DEFUSED:
            raise _unknown("_defused", self)
        return True

    @_defused.setter
    def _defused(self, _: object) -> None:
        self._wl_state |= DEFUSED

    @property
    def value(self) -> Any:
        if not self._wl_state & TRIGGERED:
            raise AttributeError(f"Value of {self} is not yet available")
        return self._wl_value

    @property
    def _value(self) -> Any:
        return self._wl_value if self._wl_state & TRIGGERED else _pending

    @_value.setter
    def _value(self, value: Any) -> None:
        if value is _pending:
            self._wl_state &= ~TRIGGERED
            self._wl_value = None
        else:
            self._wl_state |= TRIGGERED
            self._wl_value = value

    def trigger(self, event: Event) -> None:
        """Trigger the event as another one was: fit for a callback."""
        self._ok = event._ok
        self._value = event._value
        enqueue_now(self.env, self)

    def succeed(self, value: Any = None) -> Event:
        """Trigger the event with a value, and return it."""
        fulfil(self, value)
        return self

    def fail(self, exception: Any) -> Event:
        """Trigger the event with an exception, and return it: processes that wait for it are thrown that."""
        _fail(self, exception)
        return self

    def __and__(self, other: Any) -> Condition:
        condition: Condition = Condition.__new__(Condition)
        _condition(condition, self.env, _all_events, (self, other))
        return condition

    def __or__(self, other: Any) -> Condition:
        condition: Condition = Condition.__new__(Condition)
        _condition(condition, self.env, _any_events, (self, other))
        return condition


@cython.cfunc
@cython.exceptval(-1, check=False)
def fulfil(event: Event, value: object) -> cython.int:
    if event._wl_state & TRIGGERED:
        raise RuntimeError(f"{event} has already been triggered")
    event._wl_state |= SUCCEEDED
    event._wl_value = value
    return enqueue_now(event.env, event)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _fail(event: Event, exception: object) -> cython.int:
    if event._wl_state & TRIGGERED:
        raise RuntimeError(f"{event} has already been triggered")
    if not isinstance(exception, BaseException):
        raise TypeError(f"{exception} is not an exception.")
    event._wl_state = (event._wl_state | FAILED) & ~OK
    event._wl_value = exception
    return enqueue_now(event.env, event)


@cython.cclass
class Timeout(Event):
    """An event that happens after a delay."""

    def __init__(self, env: Environment, delay: SimTime, value: Any = None) -> None:
        _set_out(self, env, delay, value)

    @property
    def _delay(self) -> SimTime:
        return self._wl_about

    def _desc(self) -> str:
        value = "" if self._wl_value is None else f", value={self._wl_value}"
        return f"{type(self).__name__}({self._wl_about}{value})"


@cython.cfunc
@cython.exceptval(-1, check=False)
def _set_out(event: Timeout, env: Environment, delay: object, value: object) -> cython.int:
    if cython.compiled and type(delay) is float:
        if cython.cast(cython.double, delay) < 0:
            raise ValueError(f"Negative delay {delay}")
    elif delay < 0:  # type: ignore[operator] # What is no number, Python refuses.
        raise ValueError(f"Negative delay {delay}")
    event.env = env
    event._wl_about = delay
    event._wl_value = value
    event._wl_state |= SUCCEEDED
    if env._wl_schedules or (not cython.compiled and "schedule" in env.__dict__):
        env.schedule(event, NORMAL, delay)
        return 0
    return _push(env, event, NORMAL_, delay, 0)


# -- Processes


@cython.cclass
class Initialize(Event):
    """Starts a process."""

    def __init__(self, env: Environment, process: Process) -> None:
        _initialize(self, env, process)
        enqueue(env, self, URGENT_, 0)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _initialize(event: Initialize, env: Environment, process: Process) -> cython.int:
    event.env = env
    event._wl_waiter = process if type(process) is Process else [process._resume]
    event._wl_state |= SUCCEEDED
    return 0


@cython.cclass
class Interruption(Event):
    """Throws an `Interrupt` into a process."""

    def __init__(self, process: Process, cause: Any) -> None:
        self.env = process.env
        self._wl_state |= FAILED | DEFUSED | LEADS
        self._wl_value = _Interrupt.__new__(_Interrupt, cause)
        if process._wl_state & TRIGGERED:
            raise RuntimeError(f"{process} has terminated and cannot be interrupted.")
        if process is self.env._active_proc:
            raise RuntimeError("A process is not allowed to interrupt itself.")
        self._wl_about = process
        enqueue(self.env, self, URGENT_, 0)

    @property
    def process(self) -> Process:
        return self._wl_about  # type: ignore[no-any-return]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_lead(self) -> cython.int:
        process: Process = self._wl_about
        if process._wl_state & TRIGGERED:  # An earlier interrupt has ended it.
            return 0
        if type(process) is not Process:
            process.target.callbacks.remove(process._resume)
            process._resume(self)
            return 0
        target = process._wl_target
        if isinstance(target, Event) and cython.cast(Event, target)._wl_waiter is process:
            cython.cast(Event, target)._wl_waiter = None
        else:
            process.target.callbacks.remove(process._resume)
        return _resume(process, self)

    @cython.cfunc
    def _wl_leader(self) -> object:
        return self._interrupt

    def _interrupt(self, _: Event) -> None:
        self._wl_lead()


@cython.cclass
class Process(Event):
    """A generator that yields the events that it waits for, and an event itself: it happens when the generator ends."""

    if not cython.compiled:
        _wl_target: Any = None

    def __init__(self, env: Environment, generator: ProcessGenerator) -> None:
        _begin(self, env, generator)

    def _desc(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def target(self) -> Any:
        """The event that the process waits for; None if it has ended or is being interrupted."""
        if cython.compiled and self._wl_target is None and not self._wl_state & TRIGGERED:
            self._wl_shown()
        return self._wl_target

    @property
    def _target(self) -> Any:
        return self.target

    @_target.setter
    def _target(self, target: Any) -> None:
        self._wl_target = target

    @property
    def _generator(self) -> Any:
        return self._wl_about

    @_generator.setter
    def _generator(self, generator: Any) -> None:
        self._wl_about = generator

    @property
    def name(self) -> str:
        """The name of the function that the process runs."""
        return self._wl_about.__name__  # type: ignore[no-any-return]

    @property
    def is_alive(self) -> bool:
        return not self._wl_state & TRIGGERED

    def interrupt(self, cause: Any = None) -> None:
        """Throw an `Interrupt` into the process, at this moment."""
        Interruption(self, cause)

    def _resume(self, event: Event) -> None:
        _resume(self, event)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_stand(self) -> cython.int:
        return _resume(self, None) if self._wl_target is None else _happen(self.env, self._wl_target)

    def _wl_shown(self) -> Initialize:
        """Return the event that starts the process, which is made when it is asked for (S2)."""
        if self._wl_target is None:
            start: Initialize = Initialize.__new__(Initialize)
            _initialize(start, self.env, self)
            if self.env._active_proc is self:  # It is being started, and that is over.
                start._wl_state |= PROCESSED
                start._wl_waiter = None
            self._wl_target = start
        return self._wl_target  # type: ignore[no-any-return]


@cython.cfunc
@cython.exceptval(-1, check=False)
def _begin(process: Process, env: Environment, generator: object) -> cython.int:
    if type(generator) is not _Generator and not hasattr(generator, "throw"):
        raise ValueError(f"{generator} is not a generator.")
    process.env = env
    process._wl_about = generator
    env._wl_processes += 1
    if env._wl_teller is not None:
        env._wl_teller.began(process)
    if type(process) is not Process or not stand_in(env, process, URGENT_):
        process._wl_target = Initialize(env, process)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _resume(process: Process, event: Event | None) -> cython.int:
    """Let a process go on with what it has waited for (None: with its start) until it waits again."""
    env: Environment = process.env
    env._active_proc = process
    if env._wl_teller is not None:
        env._wl_teller.resumed(process, event)
    generator = process._wl_about
    value = None
    while True:
        if event is None or event._wl_state & OK:
            value = None if event is None else event._wl_value
            if cython.compiled and type(generator) is _Generator:
                given: cython.pointer(PyObject) = cython.NULL
                sent: PySendResult = PyIter_Send(generator, value, cython.address(given))
                if sent == PYGEN_RETURN:
                    return _end(process, owned(given))
                if sent == PYGEN_ERROR:
                    try:
                        wl_pending()
                    except BaseException as error:
                        return _break(process, error)
                yielded = owned(given)
            else:
                try:
                    yielded = generator.send(value)
                except StopIteration as stop:
                    return _end(process, stop.args[0] if stop.args else None)
                except BaseException as error:
                    return _break(process, error)
        else:
            event._wl_state |= DEFUSED
            try:
                yielded = generator.throw(_failure_of(event))
            except StopIteration as stop:
                return _end(process, stop.args[0] if stop.args else None)
            except BaseException as error:
                return _break(process, error)
        if type(yielded) is Timeout or isinstance(yielded, Event):
            event = cython.cast(Event, yielded)
            if event._wl_state & PROCESSED:
                continue
            if event._wl_waiter is None and type(process) is Process:
                event._wl_waiter = process
            else:
                event._wl_list().append(process._resume)
        else:
            _wait_for_foreign(process, yielded)
        process._wl_target = yielded
        env._active_proc = None
        return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _end(process: Process, value: object) -> cython.int:
    """The generator has returned."""
    process._wl_target = None
    process._wl_state |= SUCCEEDED
    process._wl_value = value
    if process.env._wl_teller is not None:
        process.env._wl_teller.ended(process, None)
    enqueue_now(process.env, process)
    process.env._active_proc = None
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _break(process: Process, error: object) -> cython.int:
    """The generator has raised something: those who wait for the process are thrown it, or the run is."""
    trace = error.__traceback__  # type: ignore[attr-defined]
    if trace is not None:
        error.__traceback__ = trace.tb_next  # type: ignore[attr-defined] # Without the frame that has caught it.
    process._wl_target = None
    process._wl_state = (process._wl_state | FAILED) & ~OK
    process._wl_value = error
    if process.env._wl_teller is not None:
        process.env._wl_teller.ended(process, error)
    enqueue_now(process.env, process)
    process.env._active_proc = None
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _wait_for_foreign(process: Process, yielded: object) -> cython.int:
    """Wait for what isn't an event of ours, but has callbacks; refuse anything else."""
    callbacks = getattr(yielded, "callbacks", None)
    if callbacks is None:
        process._wl_target = process.target  # That it has started would be forgotten with the run.
        place = _described(process._wl_about.gi_frame)
        raise RuntimeError(f'\n{place}{INVALID_YIELD} "{yielded}"')
    callbacks.append(process._resume)
    return 0


def _described(frame: FrameType) -> str:
    """Say which line a generator has come to."""
    from linecache import getline  # Here, since most runs need none.

    code, line = frame.f_code, frame.f_lineno
    text = getline(code.co_filename, line).strip()
    return f'  File "{code.co_filename}", line {line}, in {code.co_name}\n' + (f"    {text}\n" if text else "")


# -- Conditions


@cython.cclass
class ConditionValue:
    """What has come of a condition: the events that have happened, in the order in which it names them."""

    if not cython.compiled:
        events: list[Event]

    def __init__(self) -> None:
        self.events = []

    def __getitem__(self, key: Any) -> Any:
        if key not in self.events:
            raise KeyError(str(key))
        return key._value

    def __contains__(self, key: object) -> bool:
        return key in self.events

    def __eq__(self, other: object) -> Any:
        if isinstance(other, ConditionValue):
            return self.events == other.events
        if isinstance(other, dict):
            return self.todict() == other
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ConditionValue {self.todict()}>"

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def keys(self) -> Iterator[Event]:
        return iter(self.events)

    def values(self) -> Iterator[Any]:
        return iter([event._value for event in self.events])

    def items(self) -> Iterator[tuple[Event, Any]]:
        return iter([(event, event._value) for event in self.events])

    def todict(self) -> dict[Event, Any]:
        return {event: event._value for event in self.events}


@cython.cclass
class Condition(Event):
    """An event that happens once `evaluate(events, how many of them have happened)` says so, or one of them fails."""

    if not cython.compiled:
        _evaluate: Any
        _events: tuple[Event, ...]
        _count: int
        _wl_kind: int

    def __init__(
        self, env: Environment, evaluate: Callable[[tuple[Event, ...], int], bool], events: Iterable[Event]
    ) -> None:
        _condition(self, env, evaluate, tuple(events))

    def _desc(self) -> str:
        return f"{type(self).__name__}({self._evaluate.__name__}, {self._events})"

    @staticmethod
    def all_events(events: Any, count: Any) -> Any:
        """Whether all have happened."""
        return len(events) == count

    @staticmethod
    def any_events(events: Any, count: Any) -> Any:
        """Whether one has happened, or there is none."""
        return count > 0 or len(events) == 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_lead(self) -> cython.int:
        _stop_checking(self)
        if self._wl_state & OK:
            value: ConditionValue = ConditionValue.__new__(ConditionValue)
            value.events = []
            _collect(self, value.events)
            self._wl_value = value
        return 0

    @cython.cfunc
    def _wl_leader(self) -> object:
        return self._build_value

    def _build_value(self, _: Event) -> None:
        self._wl_lead()

    def _check(self, event: Event) -> None:
        _check(self, event)

    def _populate_value(self, value: ConditionValue) -> None:
        _collect(self, value.events)

    def _remove_check_callbacks(self) -> None:
        _stop_checking(self)


_all_events = cython.declare(object, Condition.all_events)
_any_events = cython.declare(object, Condition.any_events)


@cython.cclass
class AllOf(Condition):
    """An event that happens once all of its events have, or one fails."""

    def __init__(self, env: Environment, events: Iterable[Event]) -> None:
        _condition(self, env, _all_events, tuple(events))


@cython.cclass
class AnyOf(Condition):
    """An event that happens once one of its events has, or fails."""

    def __init__(self, env: Environment, events: Iterable[Event]) -> None:
        _condition(self, env, _any_events, tuple(events))


@cython.cfunc
@cython.exceptval(-1, check=False)
def _condition(condition: Condition, env: Environment, evaluate: object, events: tuple) -> cython.int:  # type: ignore[type-arg]
    event: Event
    condition.env = env
    condition._evaluate = evaluate
    condition._events = events
    condition._count = 0
    condition._wl_kind = _ALL if evaluate is _all_events else _ANY if evaluate is _any_events else 0
    condition._wl_state |= IS_CONDITION
    if not events:
        return fulfil(condition, ConditionValue())
    for each in events:
        if (not isinstance(each, Event) or cython.cast(Event, each).env is not env) and each.env != env:
            raise ValueError("It is not allowed to mix events from different environments")
        if not isinstance(each, Event):
            raise TypeError(f"{each} is not an event")
    is_ours: cython.bint = type(condition) is Condition or type(condition) is AnyOf or type(condition) is AllOf
    for each in events:
        event = cython.cast(Event, each)
        if event._wl_state & PROCESSED:
            condition._check(event)
        elif is_ours and event._wl_waiter is None:
            event._wl_waiter = condition
        else:
            event._wl_list().append(condition._check)
    if condition._wl_waiter is None and is_ours:
        condition._wl_state |= LEADS
    else:
        condition._wl_list().append(condition._build_value)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check(condition: Condition, event: Event) -> cython.int:
    """One of the events has happened: trigger the condition if that was what it needed."""
    is_met: cython.bint
    if condition._wl_state & TRIGGERED:
        return 0
    condition._count += 1
    if not event._wl_state & OK:
        event._wl_state |= DEFUSED
        return _fail(condition, event._wl_value)
    if condition._wl_kind == _ANY:
        is_met = True
    elif condition._wl_kind == _ALL:
        is_met = condition._count == len(condition._events)
    else:
        is_met = condition._evaluate(condition._events, condition._count)
    return fulfil(condition, None) if is_met else 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _collect(condition: Condition, found: list) -> cython.int:  # type: ignore[type-arg]
    for each in condition._events:
        event: Event = cython.cast(Event, each)
        if event._wl_state & IS_CONDITION:
            _collect(cython.cast(Condition, event), found)
        elif event._wl_state & PROCESSED:
            found.append(event)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _stop_checking(condition: Condition) -> cython.int:
    """Let events that haven't happened forget a condition that has."""
    for each in condition._events:
        event: Event = cython.cast(Event, each)
        waiter = event._wl_waiter
        if waiter is condition:
            event._wl_waiter = None
        elif waiter is not None and not isinstance(waiter, Event) and condition._check in waiter:
            waiter.remove(condition._check)
        if event._wl_state & IS_CONDITION:
            _stop_checking(cython.cast(Condition, event))
    return 0


_schedule_of_ours = Environment.schedule
_step_of_ours = Environment.step

if not cython.compiled:  # Here an object's dict tells what was replaced, and every attribute would have to pass by.
    del Environment.__setattr__, Environment.__delattr__

if cython.compiled:

    @cython.cfunc
    def _find_dicts() -> cython.int:
        """Find out where events and environments keep attributes that models set, and let Python know."""
        global _event_dict, _environment_dict
        marker = object()
        event: Event = Event.__new__(Event)
        event._wl_dict = marker
        _event_dict = place_of(event, marker)
        event._wl_dict = None
        empty(event, _event_dict)
        for kind in (Event, Timeout, Initialize, Interruption, Process, Condition, AllOf, AnyOf):
            wl_give_dict(kind, _event_dict)
        environment: Environment = Environment.__new__(Environment)
        environment._wl_dict = marker
        _environment_dict = place_of(environment, marker)
        environment._wl_dict = None
        empty(environment, _environment_dict)
        wl_give_dict(Environment, _environment_dict)
        return 0

    _find_dicts()
