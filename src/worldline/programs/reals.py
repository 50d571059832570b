"""The real functions that programs are kept from, as they were before anything stood in for them.

Our own code runs in the program's thread, so it uses these where it means the real thing.
"""

from __future__ import annotations

import os
import platform
import random
import select
import selectors
import signal
import socket
import threading
import time
from typing import Any

REAL: dict[str, Any] = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module, names in (
        (time, ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")),
        (
            os,
            ("urandom", "getpid", "close", "getcwd", "chdir", "uname", "stat", "lstat", "fstat", "listdir", "scandir"),
        ),
        (platform, ("uname",)),
        (select, ("select", "poll")),
        (selectors, ("DefaultSelector",)),
        (socket, ("socket", "socketpair", "getaddrinfo", "gethostname")),
        (signal, ("signal", "getsignal", "set_wakeup_fd")),
        (threading, ("main_thread", "current_thread", "Lock")),
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


def real_path(path: str) -> str:
    """Return where a path really leads; that looks at files, which programs are kept from."""
    computer, here.computer = here.computer, None
    try:
        return os.path.realpath(path)
    finally:
        here.computer = computer
