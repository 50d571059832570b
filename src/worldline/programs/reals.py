"""The real functions that programs are kept from, as they were before anything stood in for them.

Our own code runs in the program's thread, so it uses these where it means the real thing.
"""

from __future__ import annotations

import os
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
        (os, ("urandom", "getpid", "close", "getcwd", "chdir")),
        (select, ("select", "poll")),
        (selectors, ("DefaultSelector",)),
        (socket, ("socket", "socketpair", "getaddrinfo", "gethostname")),
        (signal, ("signal", "getsignal", "set_wakeup_fd")),
        (threading, ("main_thread", "current_thread", "Lock")),
        (random, ("Random",)),
    )
    for name in names
}


class Here(threading.local):
    """Which computer's program runs in a thread, and which of the program's threads it is; None: its main one."""

    computer: Any = None
    thread: Any = None


here = Here()
