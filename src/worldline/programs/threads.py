"""Threads of a program, which take turns: one at a time, and each until it waits.

A program's threads are real ones, so that what belongs to a thread (its locals, its running event loop) is as ever; but
only the one that has the baton runs. The main one is the scheduler: where it has to wait, the others go on in the order
in which they were started, each up to where it waits itself; when none can, time passes. A thread that computes isn't
interrupted, so there are fewer interleavings than on a real machine, and the same ones in every run.

Locks and queues are simulated for the same reason: a thread that waits for a real one would have the baton for ever.
Those that a library makes while it is loaded are shared by all computers of a process, so each has its own state there.
"""

from __future__ import annotations

import _thread
import _threading_local
import concurrent.futures.thread
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

from worldline.federation.inprocess.strand import ThreadStrand
from worldline.federation.participant.sometimes import draw_for
from worldline.programs.computer import Computer, ProgramThread, ThreadEnding
from worldline.programs.reals import for_programs, here, really
from worldline.programs.standins import swaps

_real_lock = _thread.allocate_lock
_real_start = _thread.start_new_thread
_real_rlock = threading.RLock
_real_join = threading.Thread.join
_real_is_alive = threading.Thread.is_alive
_RealLocal = threading.local
_RealSimpleQueue = queue.SimpleQueue


class _LockKind(type):
    """Makes and knows real locks, too."""

    def __call__(cls) -> Any:
        return _real_lock() if here.computer is None else super().__call__()

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _thread.LockType) or super().__instancecheck__(instance)


class Lock(metaclass=_LockKind):
    """A lock for which the threads of a computer wait in simulated time; outside of one, a real lock."""

    __slots__ = ("__weakref__", "_holder", "_is_shared", "_locked", "_owner")

    def __init__(self) -> None:
        self._locked = False
        self._owner: Computer | None = None  # The computer whose program has it, while it is locked.
        self._holder: ProgramThread | None = None  # None: the main one, or none.
        self._is_shared = bool(here.computer.draws.importing)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._take(asker := here.thread):
            return True
        computer: Computer = here.computer
        if not blocking or computer is None:
            return False
        self._check_owner(computer)
        deadline = None if timeout is None or timeout < 0 else computer.stack.now + round(timeout * 1e9)
        return computer.wait(lambda: True if self._take(asker) else None, deadline, self._held) is not None

    def release(self) -> None:
        if self._is_shared:
            if here.computer is not None:
                here.computer.held.remove(self)
            return
        if not self._locked:
            raise RuntimeError("release unlocked lock")
        if self._owner is not (computer := here.computer) and computer is not None:
            self._check_owner(computer)
        self._locked = False

    def _check_owner(self, computer: Computer) -> None:
        """Refuse a lock that a library has handed from one program to another: neither would go on when it should."""
        owner = None if self._is_shared else self._owner
        if owner is not None and owner is not computer and owner.over is None:
            computer.refuse(
                f"it shares a lock with the program of {owner.name}, by a library that has one for all in a process",
                "run it as processes (--executor unix)",
            )

    def locked(self) -> bool:
        if self._is_shared:
            return here.computer is not None and self in here.computer.held
        return self._locked

    def _held(self) -> str:
        return "a lock" if self._is_shared else f"a lock that {_name_of(self._holder)} holds"

    def _take(self, asker: ProgramThread | None) -> bool:
        if self._is_shared:
            computer = here.computer
            if computer is None or self in computer.held:
                return computer is None
            computer.held.add(self)
            return True
        if self._locked:
            return False
        self._locked, self._holder, self._owner = True, asker, here.computer
        return True

    def _at_fork_reinit(self) -> None:
        self._locked = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} lock of a simulated computer>"


def _name_of(thread: ProgramThread | None) -> str:
    return "MainThread" if thread is None else thread.name


Lock.__module__, Lock.__name__, Lock.__qualname__ = "_thread", "lock", "lock"  # As real ones: some libraries look.


class _ThreadsLock(threading._PyRLock):  # type: ignore[misc, name-defined]
    """A lock that a thread can take again."""

    __module__ = "_thread"


def _lock() -> Any:
    return Lock()


def _rlock(*_: Any, **__: Any) -> Any:
    return _real_rlock() if here.computer is None else _ThreadsLock()


class _Local(_threading_local.local):
    """What each thread has for itself: in one process, the main threads of several computers are one real thread."""

    def __new__(cls, /, *given: Any, **named: Any) -> Any:
        return _RealLocal() if cls is _Local and here.computer is None else super().__new__(cls, *given, **named)


class _SimpleQueue(queue._PySimpleQueue):  # type: ignore[misc, name-defined]
    """A queue that waits in simulated time; where no program runs, a real one."""

    def __new__(cls) -> Any:
        return _RealSimpleQueue() if here.computer is None else super().__new__(cls)


_SimpleQueue.__module__, _SimpleQueue.__name__, _SimpleQueue.__qualname__ = "_queue", "SimpleQueue", "SimpleQueue"


# --- Starting ---


def _start(function: Callable[..., Any], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, /) -> int:
    computer = here.computer
    if computer is None:
        return _real_start(function, args) if kwargs is None else _real_start(function, args, kwargs)
    return _begin(computer, lambda: function(*args, **kwargs or {}), getattr(function, "__self__", None))


def _start_joinable(function: Callable[[], Any], handle: Any = None, daemon: bool = True) -> Any:
    """Stand in for what Python 3.13 starts threads with."""
    computer = here.computer
    if computer is None:
        return _thread_start_joinable(function, handle=handle, daemon=daemon)
    _begin(computer, function, getattr(function, "__self__", None))
    return handle


_thread_start_joinable: Any = getattr(_thread, "start_joinable_thread", None)


def _begin(computer: Computer, body: Callable[[], Any], thread: Any) -> int:
    """Have a thread that goes on when its turn comes."""

    def live() -> None:
        here.computer, here.thread = computer, made
        draw_for(computer)
        try:
            body()
        finally:
            if computer.over is not None:
                try:
                    sys.settrace(None)
                except ThreadEnding:
                    sys.settrace(None)
                _active.pop(computer.ident + made.number, None)
            here.computer = here.thread = None

    with really():
        strand = ThreadStrand(computer.name, live)
    made = ProgramThread(strand, thread, next(computer.draws.threads))
    computer.threads.append(made)
    if thread is not None:
        thread._worldline = made
        usual = thread._invoke_excepthook
        thread._invoke_excepthook = lambda each: usual(each) if computer.over is None else None
    return computer.ident + made.number


# --- Who is who ---


class MainThread(threading.Thread):
    """What a program takes for its main thread, whatever the thread is in which it runs."""

    def __init__(self, computer: Computer) -> None:
        super().__init__(name="MainThread", daemon=False)
        self._started.set()  # type: ignore[attr-defined]
        self._ident, self._native_id = computer.ident, computer.pid

    def is_alive(self) -> bool:
        return True

    def join(self, timeout: float | None = None) -> None:
        raise RuntimeError("cannot join current thread")


def appear(computer: Computer) -> None:
    """Let a program's main thread be known."""
    with really():
        _active[computer.ident] = MainThread(computer)


def disappear(computer: Computer) -> None:
    """Let it be forgotten."""
    _active.pop(computer.ident, None)


_active: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]


def _number() -> int:
    return 0 if here.thread is None else int(here.thread.number)


def _enumerate(computer: Computer) -> list[threading.Thread]:
    own = [each.thread for each in computer.threads if each.thread is not None and not each.strand.finished]
    return [_active[computer.ident], *own]


class _PoolCounter:
    """Counts pools of threads; an object, since a function would become a method."""

    def __init__(self, real: Callable[[], int]) -> None:
        self._real = real

    def __call__(self) -> int:
        return self._real() if here.computer is None else next(here.computer.draws.pools)


def _join(self: threading.Thread, timeout: float | None = None) -> None:
    made: ProgramThread | None = getattr(self, "_worldline", None)
    computer: Computer | None = here.computer
    if made is None:
        _real_join(self, timeout)
        return
    if computer is None:  # Its computer is no more.
        return
    if here.thread is made:
        raise RuntimeError("cannot join current thread")
    deadline = None if timeout is None else computer.stack.now + round(max(timeout, 0) * 1e9)
    computer.wait(lambda: True if made.strand.finished else None, deadline, lambda: f"{made.name} to end")


def _is_alive(self: threading.Thread) -> bool:
    made: ProgramThread | None = getattr(self, "_worldline", None)
    return _real_is_alive(self) if made is None else not made.strand.finished


def _hash(self: threading.Thread) -> int:
    found: int | None = vars(self).get("_worldline_hash")
    if found is None:
        found = object.__hash__(self) if here.computer is None else next(here.computer.draws.hashes)
        self._worldline_hash = found  # type: ignore[attr-defined]
    return found


def is_awaited(thread: ProgramThread) -> bool:
    """Whether a program that ends waits for this thread first: not if it is a daemon, or a pool's."""
    known = concurrent.futures.thread._threads_queues
    return thread.thread is not None and not thread.thread.daemon and thread.thread not in known


def install() -> None:
    """State what stands in for threads, locks and queues.

    How a thread is joined stays as it is here: at its own end, the process joins those that programs have left.
    """
    threading.Thread.join, threading.Thread.is_alive = _join, _is_alive  # type: ignore[method-assign]
    threading.Thread.__hash__ = _hash  # type: ignore[assignment, method-assign]
    replaced: dict[Any, dict[str, Any]] = {
        _thread: {"allocate_lock": _lock, "start_new_thread": _start},
        threading: {"local": _Local, "Lock": Lock, "_allocate_lock": _lock, "RLock": _rlock},
        queue: {"SimpleQueue": _SimpleQueue},
    }
    for name, stand_in in (("_start_new_thread", _start), ("_start_joinable_thread", _start_joinable)):
        if hasattr(threading, name):
            replaced[threading][name] = stand_in
    simulated: dict[str, Callable[..., Any]] = {
        "main_thread": lambda computer: _active[computer.ident],
        "get_ident": lambda computer: computer.ident + _number(),
        "get_native_id": lambda computer: computer.pid + _number(),
        "_counter": lambda computer: next(computer.draws.names),
        "enumerate": _enumerate,
        "active_count": lambda computer: len(_enumerate(computer)),
    }
    for name, simulates in simulated.items():
        replaced[threading][name] = for_programs(getattr(threading, name), simulates)
    pool: Any = concurrent.futures.ThreadPoolExecutor
    replaced[pool] = {"_counter": _PoolCounter(pool._counter)}
    for owner, names in replaced.items():
        for name, stand_in in names.items():
            swaps.state(owner, name, stand_in, everywhere=owner is queue)
