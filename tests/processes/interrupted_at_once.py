"""A module that a fork server loads, and that is interrupted meanwhile."""

import os
import signal

if __name__ != "__main__":
    os.kill(os.getpid(), signal.SIGINT)
