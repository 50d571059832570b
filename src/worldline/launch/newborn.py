"""A participant's process as a fork of the keeper: an interpreter that has loaded Worldline already.

It costs milliseconds, where a fresh interpreter takes a tenth of a second to load the same. Nothing else may differ:
whatever a program can see is as in ``python -m worldline.launch.worker ENTRY``. The keeper has loaded nothing of the
user's, so no two participants share anything that they could change; and where a fork could tell, there is none:

N1. The keeper has one thread, is neither traced nor profiled, and runs on Linux: elsewhere libraries don't expect
    forks.
N2. The keeper's environment is the participant's, apart from what says whom it is to be: what an interpreter or the
    system's loader reads at the start was the same.
N3. The participant's directory has no module of a name that is loaded already: a fresh interpreter would find that one.

What a fork has that a fresh process hasn't: the seed of string hashes is the keeper's, where PYTHONHASHSEED doesn't say
which, and so the same for all participants of a run; and ``/proc/PID/environ`` shows the keeper's environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import NoReturn

from worldline.launch import worker

_ARG_START, _ARG_END = 45, 46  # In /proc/self/stat, behind the command's name.


def is_ready_for(directory: str) -> bool:
    """Whether a fork for a participant of this directory would be as good as a fresh interpreter (N1, N3)."""
    if len(os.listdir("/proc/self/task")) > 1 or sys.gettrace() or sys.getprofile():  # noqa: PTH208 - for speed
        return False
    loaded = {name.partition(".")[0] for name in sys.modules}
    with os.scandir(directory) as entries:
        return not any(_module(entry.name) in loaded for entry in entries)


def _module(file: str) -> str:
    """Return the name of the module that a file or folder would be."""
    return next((file.removesuffix(end) for end in all_suffixes() if file.endswith(end)), file)


def live(command: Sequence[str], directory: str, environment: Mapping[str, str]) -> NoReturn:
    """Be the process that this command, to run a worker, would have started."""
    os.environ.clear()
    os.environ.update(environment)
    if not sys.flags.safe_path:
        sys.path[0] = directory
    sys.orig_argv = list(command)
    sys.argv = [worker.__file__, *command[3:]]
    sys.modules["__main__"] = sys.modules.pop(worker.__name__)
    worker.__name__ = "__main__"
    with contextlib.suppress(OSError, ValueError, IndexError):
        _show(command)
    worker.main()


def _show(command: Sequence[str]) -> None:
    """Let `ps` and others show this command: they read it from where the system has put the keeper's own."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    text = b"".join(os.fsencode(word) + b"\0" for word in command)
    room = end - start
    ctypes.memmove(start, text[: room - 1].ljust(room, b"\0"), room)
