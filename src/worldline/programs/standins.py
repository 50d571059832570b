"""What stands in for Python's clocks, sleep, randomness, signals and output where a computer's program runs.

Each of them asks whose program runs in this thread. Where none does, the real thing is used: a process may have a
server, a test or a debugger beside its programs. They are in place while any program runs in the process, also in
modules that have the real ones by name (``from time import time``); when none does, everything is as it was.
"""

from __future__ import annotations

import copyreg
import datetime
import os
import random
import select
import selectors
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from worldline.programs import selecting, sockets, surroundings
from worldline.programs.reals import REAL, here

# --- Time ---


def _clock(real: Callable[[], Any], simulated: Callable[[Any], Any]) -> Callable[[], Any]:
    @wraps(real)
    def read() -> Any:
        computer = here.computer
        return real() if computer is None else simulated(computer)

    return read


def _sleep(seconds: float, /) -> None:
    """Let simulated time pass."""
    computer = here.computer
    if computer is None:
        REAL["time.sleep"](seconds)
        return
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    computer.sleep(seconds)


def _of_now(real: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function of a time, by default now, take simulated time."""

    @wraps(real)
    def shown(seconds: float | None = None, /) -> Any:
        if seconds is None and here.computer is not None:
            seconds = here.computer.time_ns() / 1e9
        return real() if seconds is None else real(seconds)

    return shown


_strftime = time.strftime
_gmtime = time.gmtime


def _formatted(form: str, when: Any = None, /) -> str:
    if when is None and here.computer is not None:
        when = time.gmtime()
    return _strftime(form) if when is None else _strftime(form, when)


_RealDatetime = datetime.datetime


class _DatetimeKind(type):
    """Takes real ones for instances: most are made by C code, which doesn't know of the stand-in."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _RealDatetime)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _RealDatetime)


class _Datetime(_RealDatetime, metaclass=_DatetimeKind):
    """A datetime whose `now` is simulated time; local time is UTC."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        computer = here.computer
        if computer is None:
            return _RealDatetime.now(tz)
        microseconds = computer.time_ns() // 1_000
        found = _RealDatetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=microseconds)
        return found.replace(tzinfo=None) if tz is None else found.astimezone(tz)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now() if here.computer is not None else _RealDatetime.utcnow()

    @classmethod
    def today(cls) -> Any:
        return cls.now()


_Datetime.__name__ = _Datetime.__qualname__ = "datetime"
_Datetime.__module__ = "datetime"


def _as_pickled(moment: Any) -> tuple[Any, ...]:
    """Have a datetime pickled by a name that is the same whether the stand-in is in place or not."""
    return _datetime_of, _RealDatetime.__reduce_ex__(moment, 4)[1]


def _datetime_of(*parts: Any) -> Any:
    return _RealDatetime(*parts)


# --- Randomness ---

_RealRandom: Any = REAL["random.Random"]
_real_seed = _RealRandom.seed


def _seed(self: Any, a: Any = None, version: int = 2) -> None:
    """Seed a generator; one without a seed takes it from its computer."""
    computer = here.computer
    if a is None and computer is not None:
        if computer.draws.importing and type(self) is _RealRandom:
            self.__class__ = CallersRandom  # It belongs to a module that several computers share.
        a = computer.draws.entropy().getrandbits(256)
    _real_seed(self, a, version)


class CallersRandom(random.Random):
    """A generator that several computers share: each has its own in it."""


def _of_caller(name: str) -> Callable[..., Any]:
    real = getattr(_RealRandom, name)

    @wraps(real)
    def draw(self: Any, *given: Any, **named: Any) -> Any:
        computer = here.computer
        if computer is None:
            return real(self, *given, **named)
        return getattr(computer.draws.entropy(), name)(*given, **named)

    return draw


_DRAWS = [name for name in random.__all__ if hasattr(random.Random, name)]
for _name in _DRAWS:
    setattr(CallersRandom, _name, _of_caller(_name))


def _urandom(size: int, /) -> bytes:
    """Return bytes that look random."""
    computer = here.computer
    return bytes(REAL["os.urandom"](size) if computer is None else computer.draws.entropy().randbytes(size))


_real_uuid1 = uuid.uuid1


def _uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    computer = here.computer
    if computer is None:
        return _real_uuid1(node, clock_seq)
    ticks = computer.time_ns() // 100 + 0x01B21DD213814000
    sequence = computer.draws.entropy().getrandbits(14) if clock_seq is None else clock_seq
    low, middle, high = ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF
    fields = (low, middle, high, sequence >> 8 & 0x3F, sequence & 0xFF, _getnode() if node is None else node)
    return uuid.UUID(fields=fields, version=1)


_real_getnode = uuid.getnode


def _getnode() -> int:
    computer = here.computer
    if computer is None:
        return _real_getnode()
    return 0x020000000000 | int(computer.stack.address.rpartition(".")[2])


# --- Signals and the process ---


def _signal(number: Any, handler: Any, /) -> Any:
    computer = here.computer
    if computer is None:
        return REAL["signal.signal"](number, handler)
    before = computer.signals.handlers.get(int(number), signal.SIG_DFL)
    computer.signals.handlers[int(number)] = handler
    return before


def _getsignal(number: Any, /) -> Any:
    computer = here.computer
    if computer is None:
        return REAL["signal.getsignal"](number)
    return computer.signals.handlers.get(int(number), signal.SIG_DFL)


def _set_wakeup_fd(fd: int, /, *, warn_on_full_buffer: bool = True) -> int:
    computer = here.computer
    if computer is None:
        return int(REAL["signal.set_wakeup_fd"](fd, warn_on_full_buffer=warn_on_full_buffer))
    before, computer.signals.descriptor = computer.signals.descriptor, fd
    computer.signals.wake = None if fd < 0 else lambda number: computer.stack.endpoint(fd).send(bytes([number]))
    return int(before)


_real_siginterrupt = signal.siginterrupt


def _siginterrupt(number: int, flag: bool, /) -> None:
    if here.computer is None:
        _real_siginterrupt(number, flag)


_real_kill = os.kill


def _kill(pid: int, number: int, /) -> None:
    computer = here.computer
    if computer is None or (pid != computer.pid and "processes" in computer.workspace.allowed):
        _real_kill(pid, number)
    elif pid != computer.pid:
        raise ProcessLookupError(3, "No such process")
    elif number:
        computer.signals.pending.append(int(number))
        if here.thread is None:
            computer.deliver_signal()


def _raise_signal(number: int, /) -> None:
    computer = here.computer
    if computer is None:
        _real_raise_signal(number)
    else:
        computer.signals.pending.append(int(number))
        computer.deliver_signal()


_real_raise_signal = signal.raise_signal


def _main_thread() -> Any:
    """Return the thread that a program takes for its main one: where it runs."""
    computer = here.computer
    return REAL["threading.main_thread"]() if computer is None else REAL["threading.current_thread"]()


# --- Names in `socket` that only exist for a computer ---


def _for_computer(name: str, simulated: Callable[..., Any]) -> Callable[..., Any]:
    real = getattr(socket, name)

    @wraps(real)
    def call(*given: Any, **named: Any) -> Any:
        return (real if here.computer is None else simulated)(*given, **named)

    return call


# --- Putting them in place, and taking them away ---


class Swap(NamedTuple):
    """A name of a module or class, what it really stands for, and what stands in for that."""

    owner: Any
    name: str
    real: Any
    stand_in: Any


class Swaps:
    """All names that programs find stand-ins under; they are swapped while there is a program."""

    def __init__(self) -> None:
        self._swaps: list[Swap] = []
        self._pairs: dict[int, Swap] = {}  # By the identities of both: the swaps that were stated.
        self._looked_at: set[str] = set()  # Modules.
        self._programs = 0
        self._lock = REAL["threading.Lock"]()

    def state(self, owner: Any, name: str, stand_in: Any, *, everywhere: bool = True) -> None:
        """Say what stands in for a name, and `everywhere` for what other modules have of it by name."""
        swap = Swap(owner, name, getattr(owner, name), stand_in)
        self._swaps.append(swap)
        if everywhere:
            self._pairs.setdefault(id(stand_in), swap)
            self._pairs[id(swap.real)] = swap

    def put_in_place(self) -> None:
        """Count one program more, and let the first one find the stand-ins."""
        with self._lock:
            self._programs += 1
            if self._programs == 1:
                self._look_for_names()
                for owner, name, _, stand_in in self._swaps:
                    setattr(owner, name, stand_in)

    def take_away(self) -> None:
        """Count one program less; when the last one has gone, all names stand for what they did before."""
        with self._lock:
            self._programs -= 1
            if self._programs == 0:
                self._look_for_names()
                for owner, name, real, stand_in in self._swaps:
                    if getattr(owner, name, None) is stand_in:
                        setattr(owner, name, real)

    def _look_for_names(self) -> None:
        """Find what modules have by name that were loaded in the meantime, before a program or by one."""
        for name, module in list(sys.modules.items()):
            if name in self._looked_at or name.partition(".")[0] in _REAL_MODULES or module is None:
                continue
            self._looked_at.add(name)
            for key, value in list(getattr(module, "__dict__", {}).items()):
                pair = self._pairs.get(id(value))
                if pair is not None and (value is pair.real or value is pair.stand_in):
                    self._swaps.append(Swap(module, key, pair.real, pair.stand_in))


# What these have by name stays real: a process, if allowed, is, and so is what Python itself imports by.
_REAL_MODULES = ("worldline", "subprocess", "posix")

swaps = Swaps()


def install() -> None:
    """State all stand-ins. Those that can stay, because only programs notice them, are put in place."""
    import asyncio  # Loaded before: what it has by name is replaced, too.
    import ssl

    for module, names in (*_stand_ins().items(), *surroundings.stand_ins().items()):
        for name, stand_in in names.items():
            swaps.state(module, name, stand_in)
    _RealRandom.seed = _seed
    random._inst.__class__ = CallersRandom
    for name in _DRAWS:
        swaps.state(random, name, getattr(random._inst, name))
    copyreg.pickle(_RealDatetime, _as_pickled)
    assert asyncio is not None
    assert ssl is not None


def _stand_ins() -> dict[Any, dict[str, Any]]:
    clocks = {
        name: _clock(REAL[f"time.{name}"], simulated)
        for name, simulated in {
            "time": lambda computer: computer.time_ns() / 1e9,
            "time_ns": lambda computer: computer.time_ns(),
            "monotonic": lambda computer: computer.monotonic_ns() / 1e9,
            "monotonic_ns": lambda computer: computer.monotonic_ns(),
            "perf_counter": lambda computer: computer.monotonic_ns() / 1e9,
            "perf_counter_ns": lambda computer: computer.monotonic_ns(),
        }.items()
    }
    shown = {name: _of_now(getattr(time, name)) for name in ("gmtime", "ctime")}
    return {
        time: {**clocks, **shown, "localtime": _local_time(), "sleep": _sleep, "strftime": _formatted},
        datetime: {"datetime": _Datetime},
        os: {
            "urandom": _urandom,
            "getpid": _clock(REAL["os.getpid"], lambda computer: computer.pid),
            "kill": _kill,
            "close": _close,
        },
        random: {"_urandom": _urandom},
        uuid: {"uuid1": _uuid1, "getnode": _getnode},
        signal: {
            "signal": _signal,
            "getsignal": _getsignal,
            "set_wakeup_fd": _set_wakeup_fd,
            "siginterrupt": _siginterrupt,
            "raise_signal": _raise_signal,
        },
        threading: {"main_thread": _main_thread},
        select: {"select": selecting.select, "poll": selecting.poll},
        selectors: dict.fromkeys(
            ("DefaultSelector", "EpollSelector", "PollSelector", "SelectSelector"), selecting.DefaultSelector
        ),
        socket: {
            "socket": sockets.Socket,
            "socketpair": sockets.socketpair,
            "getaddrinfo": sockets.getaddrinfo,
            "gethostname": sockets.gethostname,
            **{
                name: _for_computer(name, getattr(sockets, name))
                for name in ("gethostbyname", "gethostbyaddr", "getnameinfo")
            },
        },
    }


def _local_time() -> Callable[..., Any]:
    """Return what stands in for `localtime`: a computer's local time is UTC."""
    real = time.localtime

    @wraps(real)
    def local_time(seconds: float | None = None, /) -> Any:
        if here.computer is None:
            return real() if seconds is None else real(seconds)
        return _gmtime(here.computer.time_ns() / 1e9 if seconds is None else seconds)

    return local_time


def _close(fd: int, /) -> None:
    """Close a descriptor: a socket's, if it is one of a computer's."""
    computer = here.computer
    if computer is not None and computer.stack.has(fd):
        computer.stack.endpoint(fd).close()
    else:
        REAL["os.close"](fd)


__all__ = ["install", "swaps"]
