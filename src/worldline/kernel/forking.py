"""The server that worker processes are forked from.

Forking the program itself isn't safe, since it may have threads; a fresh interpreter for each worker takes long.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext

_SAFE_PATH = "PYTHONSAFEPATH"


def fork_server(preload: str) -> ForkServerContext:
    """Return what makes processes, with its server running; the module is loaded there, if it has just been started.

    The server is an interpreter of its own, and would look for Python's own modules in the current folder first: a
    user's queue.py there would be the end of it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload])
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
    return context
