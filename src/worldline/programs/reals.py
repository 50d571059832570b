"""The real functions that programs are kept from, as they were before anything stood in for them.

Our own code runs in the program's thread, so it uses these where it means the real thing.
"""

from __future__ import annotations

import ctypes.util
import gc
import os
import platform
import random
import select
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any

REAL: dict[str, Any] = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module, names in (
        (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")),
        (
            os,
            (
                *("urandom", "getpid", "close", "getcwd", "chdir", "uname", "sysconf", "fsync", "fdatasync"),
                *("stat", "lstat", "fstat", "listdir", "scandir", "readlink"),
            ),
        ),
        (gc, ("collect",)),
        (platform, ("uname",)),
        (ctypes.util, ("find_library",)),
        (select, ("select", "poll", "epoll")),
        (selectors, ("DefaultSelector",)),
        (socket, ("socket", "socketpair", "getaddrinfo")),
        (signal, ("signal", "getsignal", "set_wakeup_fd")),
        (threading, ("Lock",)),
        (random, ("Random",)),
    )
    for name in names
}

EPOCH_NS = 1_767_225_600 * 1_000_000_000
"""What a computer's clock shows at the start of a run: 2026-01-01 in UTC."""


class Here(threading.local):
    """Which computer's program runs in a thread, and which of the program's threads it is; None: its main one."""

    computer: Any = None
    thread: Any = None


here = Here()


class StandIn(staticmethod):  # type: ignore[type-arg]
    """A function that stands in for one of C, and so becomes no method where a class has it by a name of its own."""

    def __reduce__(self) -> str:
        return self.__name__


def stands_in(function: Callable[..., Any], real: Any) -> Any:
    """Return a function as what stands in for another, by whose name it goes."""
    if not isinstance(function, FunctionType):
        return function
    named = update_wrapper(function, real) if hasattr(real, "__name__") else function
    return named if isinstance(real, FunctionType) else StandIn(named)


def for_programs(real: Callable[..., Any], simulates: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function do something else where a program calls it: what the other does with its computer."""

    def call(*given: Any, **named: Any) -> Any:
        computer = here.computer
        return real(*given, **named) if computer is None else simulates(computer, *given, **named)

    made: Callable[..., Any] = stands_in(call, real)
    return made


class really:  # noqa: N801 - it reads as a word, and a generator would cost twice as much
    """Within it, everything is real: our own code does something that programs are kept from."""

    def __enter__(self) -> None:
        self._computer, here.computer = here.computer, None

    def __exit__(self, *_: object) -> None:
        here.computer = self._computer


def real_path(path: str) -> str:
    """Return where a path really leads."""
    with really():
        return os.path.realpath(path)


def in_folder(path: Any, folder: int) -> Any:
    """Return a path that begins in a folder, given by its descriptor, without that; -1: it begins where others do."""
    if folder < 0:
        return path
    with really():
        os.fstat(folder)  # Whose number isn't a folder's, Python says.
    return os.path.join(real_path(f"/proc/self/fd/{folder}"), os.fsdecode(path))  # noqa: PTH118 - as all paths here
