"""What stands in for Python's clocks, sleep, randomness, signals and loggers where a computer's program runs.

Each of them asks whose program runs in this thread. Where none does, the real thing is used: a process may have a
server, a test or a debugger beside its programs. They are in place while any program runs in the process, also in
modules that have the real ones by name (``from time import time``); when none does, everything is as it was.
"""

from __future__ import annotations

import atexit
import ctypes
import datetime
import gc
import logging
import os
import random
import select
import selectors
import signal
import socket
import sys
import time
import uuid
import weakref
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple

from worldline.programs import descriptors, selecting, sockets, surroundings
from worldline.programs.computer import ProgramKilled
from worldline.programs.reals import REAL, for_programs, here, stands_in

# --- Time ---


def _sleep(seconds: float, /) -> None:
    """Let simulated time pass."""
    computer = here.computer
    if computer is None:
        REAL["time.sleep"](seconds)
        return
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    computer.sleep(seconds)


def _of_now(real: Callable[..., Any], place: int, now: Callable[[float], Any]) -> Callable[..., Any]:
    """Have a function take simulated time where it would take what it is now: as the argument at a certain place."""

    @wraps(real)
    def shown(*given: Any) -> Any:
        if here.computer is not None and (len(given) <= place or given[place] is None):
            given = (*given[:place], now(here.computer.time_ns() / 1e9))
        return real(*given)

    return shown


def _tzset(computer: Any) -> None:
    computer.workspace.belongings.change_zone(os.environ.get("TZ", "UTC"))


# Of the class itself: it has to stay the one that C code makes, and that types are compared with by identity.
_moments = {name: datetime.datetime.__dict__[name] for name in ("now", "utcnow")}


def _now(cls: Any, tz: datetime.tzinfo | None = None) -> Any:
    if (computer := here.computer) is None:
        return _moments["now"].__get__(None, cls)(tz)
    return cls.fromtimestamp(computer.time_ns() // 1_000 / 1e6, tz)


def _utcnow(cls: Any) -> Any:
    if here.computer is None:
        return _moments["utcnow"].__get__(None, cls)()
    return _now(cls, datetime.UTC).replace(tzinfo=None)


def _set(owner: Any, name: str, value: Any) -> None:
    """Let a name of a module or a class stand for something, also if the class is written in C."""
    if owner is not datetime.datetime:
        setattr(owner, name, value)
        return
    gc.get_referents(owner.__dict__)[0][name] = value  # What its `__dict__` only shows.
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


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


def _set_default_timeout(computer: Any, seconds: float | None) -> None:
    if seconds is not None and seconds < 0:
        raise ValueError("Timeout value out of range")
    computer.workspace.socket_timeout = seconds


def _signal(number: Any, handler: Any, /) -> Any:
    computer = here.computer
    if computer is None:
        return REAL["signal.signal"](number, handler)
    if here.thread is not None:
        raise ValueError("signal only works in main thread of the main interpreter")
    if not 0 < number < signal.NSIG:
        raise ValueError("signal number out of range")
    if not callable(handler) and handler not in (signal.SIG_IGN, signal.SIG_DFL):
        raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
    if number in (signal.SIGKILL, signal.SIGSTOP):
        raise OSError(22, "Invalid argument")
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
        _send(computer, number)


def _send(computer: Any, number: int) -> None:
    """Send the program a signal, from itself."""
    computer.signals.come(number)
    if here.thread is None and computer.signals.pending:
        computer.deliver_signal()


def _pthread_sigmask(computer: Any, how: int, mask: Any) -> set[Any]:
    signals, thread = computer.signals, here.thread
    wanted = {*mask} - {signal.SIGKILL, signal.SIGSTOP}
    before = {*signals.blocked_by(thread)}
    if how == signal.SIG_BLOCK:
        after = before | wanted
    elif how == signal.SIG_UNBLOCK:
        after = before - wanted
    elif how == signal.SIG_SETMASK:
        after = wanted
    else:
        raise OSError(22, "Invalid argument")
    signals.block(thread, sorted(after))
    if thread is None and signals.pending:
        computer.deliver_signal()
    return _named(before)


def _named(numbers: Iterable[int]) -> set[Any]:
    """Return signals by name; those for real time are numbers."""
    return {signal.Signals(number) if number in _SIGNALS else number for number in numbers}


_SIGNALS = dict.fromkeys(map(int, signal.Signals))


def _exit(computer: Any, code: int) -> None:
    """End the program without a word to its other threads, and without what it has registered for its end."""
    computer.end(SystemExit(code) if code else ProgramKilled("os._exit"))


def _putenv(computer: Any, name: Any, value: Any) -> None:
    """Export a variable: `os.environ` calls this, too."""
    computer.workspace.belongings.export(os.fsencode(name), None if value is None else os.fsencode(value))


_real_register = atexit.register


def _register(function: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
    computer = here.computer
    # What a library does at the end, it does for all that share it; and so does Python for all finalizers.
    if computer is None or computer.draws.importing or getattr(function, "__self__", None) is weakref.finalize:
        return _real_register(function, *given, **named)
    computer.workspace.at_exit.append((function, given, named))
    return function


def _unregister(computer: Any, function: Callable[..., Any]) -> None:
    registered = computer.workspace.at_exit
    registered[:] = [each for each in registered if each[0] != function]


# --- Loggers ---

# What a program says of a logger, its level, handlers and filters, holds on its own computer. A logger is one object in
# a process, since libraries keep theirs from when they are loaded. So each computer has its own state of it. The root's
# begins as in a new process, and others' as their libraries have left them.

LoggerState = dict[str, Any]
"""What a computer has of a logger, by attribute."""


def _logger_state(logger: Any, given: LoggerState) -> LoggerState:
    """Return where what is said of a logger is kept now; `given` is what holds if nothing was said."""
    computer = here.computer
    if computer is None or computer.draws.importing:
        shared: LoggerState = vars(logger)
        return shared
    states: dict[Any, LoggerState] = computer.workspace.loggers
    if (found := states.get(logger)) is None:
        there = given if logger is logging.root else given | vars(logger)
        found = states[logger] = {name: _copied(there[name]) for name in given}
        found["_cache"] = {}  # What the process's root lets through, the program's may not.
        if logger is logging.root:
            found["level"] = logging.WARNING
    return found


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict) else value


class _Given:
    """An attribute that a logger has from the first time it is asked for it: a program may have made the logger."""

    def __init__(self, name: str, given: Any) -> None:
        self._name = name
        self._given = given

    def __get__(self, logger: Any, owner: Any = None) -> Any:
        if logger is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self._name!r}")
        return vars(logger).setdefault(self._name, _copied(self._given))


class _Own:
    """An attribute of loggers of which each computer has its own."""

    def __init__(self, name: str, given: LoggerState) -> None:
        self._name = name
        self._given = given

    def __get__(self, logger: Any, owner: Any = None) -> Any:
        if logger is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self._name!r}")
        state = _logger_state(logger, self._given)
        try:
            return state[self._name]
        except KeyError:  # A program has made it, and now something outside of one uses it.
            return state.setdefault(self._name, _copied(self._given[self._name]))

    def __set__(self, logger: Any, value: Any) -> None:
        _logger_state(logger, self._given)[self._name] = value


_OF_LOGGERS: dict[Any, LoggerState] = {
    logging.Logger: {
        "level": logging.NOTSET,
        "propagate": True,
        "disabled": False,
        "handlers": [],
        "filters": [],
        "_cache": {},
    },
    logging.Manager: {"_disable": 0},
}


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
        real = vars(owner)[name]
        swap = Swap(owner, name, real, stands_in(stand_in, real))
        self._swaps.append(swap)
        if everywhere:
            self._pairs.setdefault(id(swap.stand_in), swap)
            self._pairs[id(real)] = swap

    def put_in_place(self) -> None:
        """Count one program more, and let the first one find the stand-ins."""
        with self._lock:
            self._programs += 1
            if self._programs == 1:
                self._look_for_names()
                for owner, name, _, stand_in in self._swaps:
                    _set(owner, name, stand_in)

    def take_away(self) -> None:
        """Count one program less; when the last one has gone, all names stand for what they did before."""
        with self._lock:
            self._programs -= 1
            if self._programs == 0:
                self._look_for_names()
                for owner, name, real, stand_in in self._swaps:
                    if vars(owner).get(name) is stand_in and (owner, name) != _STAYS:
                        _set(owner, name, real)

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


# What a library has of a program's for good, it closes when the process ends.
_STAYS = (os, "close")

# What these have by name stays real: a process, if allowed, is, and so is what Python itself imports by.
_REAL_MODULES = ("worldline", "subprocess", "posix")

swaps = Swaps()


def install() -> None:
    """State all stand-ins. Those that can stay, because only programs notice them, are put in place."""
    import asyncio  # Loaded before: what it has by name is replaced, too.
    import ssl

    for module, names in (*_stand_ins().items(), *surroundings.stand_ins().items(), *descriptors.stand_ins().items()):
        for name, stand_in in names.items():
            swaps.state(module, name, stand_in)
    _RealRandom.seed = _seed
    random._inst.__class__ = CallersRandom
    for owner, given in _OF_LOGGERS.items():
        for name, value in given.items():
            setattr(owner, name, _Given(name, value))
            swaps.state(owner, name, _Own(name, given), everywhere=False)
    for name in _DRAWS:
        swaps.state(random, name, getattr(random._inst, name))
    assert asyncio is not None
    assert ssl is not None


def _stand_ins() -> dict[Any, dict[str, Any]]:
    clocks = {
        name: for_programs(REAL[f"time.{name}"], simulated)
        for name, simulated in {
            "time": lambda computer: computer.time_ns() / 1e9,
            "time_ns": lambda computer: computer.time_ns(),
            "monotonic": lambda computer: computer.monotonic_ns() / 1e9,
            "monotonic_ns": lambda computer: computer.monotonic_ns(),
            "perf_counter": lambda computer: computer.monotonic_ns() / 1e9,
            "perf_counter_ns": lambda computer: computer.monotonic_ns(),
        }.items()
    }
    shown = {name: _of_now(getattr(time, name), 0, float) for name in ("gmtime", "localtime", "ctime")}
    shown["asctime"] = _of_now(time.asctime, 0, time.localtime)
    shown["strftime"] = _of_now(time.strftime, 1, time.localtime)
    return {
        time: {**clocks, **shown, "sleep": _sleep, "tzset": for_programs(time.tzset, _tzset)},
        datetime.datetime: {"now": classmethod(_now), "utcnow": classmethod(_utcnow)},
        os: {
            "urandom": _urandom,
            "getpid": for_programs(REAL["os.getpid"], lambda computer: computer.pid),
            "kill": _kill,
            "killpg": for_programs(os.killpg, lambda _, group, number: _kill(group, number)),
            "_exit": for_programs(os._exit, _exit),
            "abort": for_programs(os.abort, lambda computer: computer.end(ProgramKilled("SIGABRT"))),
            "putenv": for_programs(os.putenv, _putenv),
            "unsetenv": for_programs(os.unsetenv, lambda computer, name: _putenv(computer, name, None)),
        },
        atexit: {"register": _register, "unregister": for_programs(atexit.unregister, _unregister)},
        random: {"_urandom": _urandom},
        uuid: {"uuid1": _uuid1, "getnode": _getnode},
        signal: {
            "signal": _signal,
            "getsignal": _getsignal,
            "set_wakeup_fd": _set_wakeup_fd,
            "siginterrupt": _siginterrupt,
            "raise_signal": for_programs(signal.raise_signal, _send),
            "pthread_kill": for_programs(signal.pthread_kill, lambda computer, _, number: _send(computer, number)),
            "pthread_sigmask": for_programs(signal.pthread_sigmask, _pthread_sigmask),
            "sigpending": for_programs(signal.sigpending, lambda computer: _named(computer.signals.held)),
        },
        select: {"select": selecting.select, "poll": selecting.poll, "epoll": selecting.EpollMaker},
        selectors: dict.fromkeys(
            ("DefaultSelector", "EpollSelector", "PollSelector", "SelectSelector"), selecting.Selector
        ),
        socket: {
            "socket": sockets.Socket,
            "socketpair": sockets.socketpair,
            "getaddrinfo": sockets.getaddrinfo,
            "gethostname": for_programs(socket.gethostname, lambda computer: computer.name),
            **{
                name: for_programs(getattr(socket, name), getattr(sockets, name))
                for name in ("gethostbyname", "gethostbyaddr", "getnameinfo")
            },
            "getdefaulttimeout": for_programs(
                socket.getdefaulttimeout, lambda computer: computer.workspace.socket_timeout
            ),
            "setdefaulttimeout": for_programs(socket.setdefaulttimeout, _set_default_timeout),
        },
    }


__all__ = ["install", "swaps"]
