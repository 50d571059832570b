"""A module that a fork server loads, and that is interrupted meanwhile."""

import os
import signal

if __name__ != "__main__":
    os.kill(os.getpid(), signal.SIGINT)

from worldline.workers import fork_server_side  # noqa: F401
