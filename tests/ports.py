"""Ports for those who must be told theirs before they listen."""

from __future__ import annotations

import os
import socket
from itertools import count

_BEGIN, _END = 10_000, 32_000  # From 32,768 on, Linux hands them out: also to the tests that run meanwhile.
_candidates = count(64 * os.getpid())  # Other processes that run tests begin elsewhere.


def free_port() -> int:
    """Return a port of this machine on which nothing listens, and which isn't handed out to anything else."""
    while True:
        port = _BEGIN + next(_candidates) % (_END - _BEGIN)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
