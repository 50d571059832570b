"""What happens in the fork server when it has just been started, and in each worker when it has just been forked.

Importing it does that, since importing modules is all that a fork server can be asked for; anywhere else it does
nothing.
"""

from __future__ import annotations

import os
import signal
from importlib import import_module

from worldline.lifeline import tie_to_parent

PROGRAM = "WORLDLINE_FORK_SERVER_OF"
"""The process that the server belongs to; 0, if the server mustn't be tied to it."""


def _tie_workers(server: int) -> None:
    """See to it that processes that the server forks end with it."""
    is_worker = False

    def tie() -> None:
        nonlocal is_worker
        if not is_worker:  # What a worker itself forks isn't ours.
            is_worker = True
            tie_to_parent(server)

    os.register_at_fork(after_in_child=tie)


_program = os.environ.pop(PROGRAM, None)
if _program is not None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The program is interrupted too, and ends all of them.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if os.getppid() == int(_program):
        tie_to_parent(int(_program))
    import_module("ctypes")  # Tying needs it, and loading it in each worker would take longer than all the rest.
    _tie_workers(os.getpid())
