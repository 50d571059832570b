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
import concurrent.futures.thread
import queue
import threading
from collections.abc import Callable
from typing import Any

from worldline.federation.inprocess.strand import ThreadStrand
from worldline.federation.participant.sometimes import draw_for
from worldline.programs.computer import Computer, ProgramThread
from worldline.programs.reals import here
from worldline.programs.standins import swaps

_real_lock = _thread.allocate_lock
_real_start = _thread.start_new_thread
_real_rlock = threading.RLock
_real_join = threading.Thread.join
_real_is_alive = threading.Thread.is_alive
_RealSimpleQueue = queue.SimpleQueue


class Lock:
    """A lock for which the threads of a computer wait in simulated time."""

    __slots__ = ("__weakref__", "_is_shared", "_locked")

    def __init__(self) -> None:
        self._locked = False
        self._is_shared = bool(here.computer.draws.importing)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._take():
            return True
        computer: Computer = here.computer
        if not blocking or computer is None:
            return False
        deadline = None if timeout is None or timeout < 0 else computer.stack.now + round(timeout * 1e9)
        return computer.wait(lambda: True if self._take() else None, deadline) is not None

    def release(self) -> None:
        if self._is_shared:
            if here.computer is not None:
                here.computer.held.remove(self)
            return
        if not self._locked:
            raise RuntimeError("release unlocked lock")
        self._locked = False

    def locked(self) -> bool:
        if self._is_shared:
            return here.computer is not None and self in here.computer.held
        return self._locked

    def _take(self) -> bool:
        if self._is_shared:
            computer = here.computer
            if computer is None or self in computer.held:
                return computer is None
            computer.held.add(self)
            return True
        if self._locked:
            return False
        self._locked = True
        return True

    def _at_fork_reinit(self) -> None:
        self._locked = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} lock of a simulated computer>"


def _lock() -> Any:
    return _real_lock() if here.computer is None else Lock()


def _rlock() -> Any:
    return _real_rlock() if here.computer is None else threading._PyRLock()  # type: ignore[attr-defined]


class _SimpleQueue:
    def __new__(cls) -> Any:
        return _RealSimpleQueue() if here.computer is None else queue._PySimpleQueue()  # type: ignore[attr-defined]


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
        known, number = threading._active, threading.get_ident()  # type: ignore[attr-defined]
        ours = known.get(number)  # The program's own thread takes the place of the one that it lives on.
        try:
            body()
        finally:
            known[number] = ours
            here.computer = here.thread = None

    was = here.computer
    here.computer = None  # What it is made of is real.
    try:
        strand = ThreadStrand(computer.name, live)
    finally:
        here.computer = was
    made = ProgramThread(strand, thread)
    computer.threads.append(made)
    if thread is not None:
        thread._worldline = made
    return len(computer.threads)


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
    computer.wait(lambda: True if made.strand.finished else None, deadline)


def _is_alive(self: threading.Thread) -> bool:
    made: ProgramThread | None = getattr(self, "_worldline", None)
    return _real_is_alive(self) if made is None else not made.strand.finished


def is_awaited(thread: ProgramThread) -> bool:
    """Whether a program that ends waits for this thread first: not if it is a daemon, or a pool's."""
    known = concurrent.futures.thread._threads_queues
    return thread.thread is not None and not thread.thread.daemon and thread.thread not in known


def install() -> None:
    """State what stands in for threads, locks and queues.

    How a thread is joined stays as it is here: at its own end, the process joins those that programs have left.
    """
    threading.Thread.join, threading.Thread.is_alive = _join, _is_alive  # type: ignore[method-assign]
    replaced: dict[Any, dict[str, Any]] = {
        _thread: {"allocate_lock": _lock, "start_new_thread": _start},
        threading: {"Lock": _lock, "_allocate_lock": _lock, "RLock": _rlock},
        queue: {"SimpleQueue": _SimpleQueue},
    }
    for name, stand_in in (("_start_new_thread", _start), ("_start_joinable_thread", _start_joinable)):
        if hasattr(threading, name):
            replaced[threading][name] = stand_in
    for owner, names in replaced.items():
        for name, stand_in in names.items():
            swaps.state(owner, name, stand_in, everywhere=owner is queue)
