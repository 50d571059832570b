"""Ends a process together with the one that wants it, however that ends: killed, too, and whatever itself is doing.

Theory of operation
-------------------
Who is killed can't end what it has started: the system must, or what was started must notice. There are two ways, and
both kill with SIGKILL, which ends also a process that is stopped, or computes in C and looks at nothing.

A *lifeline* is a pipe. One process holds its writing end, a descendant its reading end (`hold_on`). Nothing is ever
written; when the holder is gone the system closes the writing end, and Linux sends the descendant the signal that it
has asked for, SIGKILL. That works across generations, and in whichever thread the descendant was started. Elsewhere a
thread waits for the end of the pipe: it ends what computes, but not what is stopped.

1. Every descendant has a lifeline of its own: Linux before 5.6 told the readers of a pipe when another reader left.
2. None but the holder has the writing end. A process that the holder forks, by `os.fork`, closes it at once; one
   that it executes never gets it.
3. A holder that was gone before the descendant held on is noticed: it looks once the signal is asked for.

A *parent-death signal* (`tie_to_parent`) needs no pipe, so it also ties what closes all that it inherits. But only
Linux has it, it only ties children, and it comes when the *thread* ends that has started the process: it is for what
must not outlive that thread either.

Nothing here runs between fork and exec, so it is safe in programs with threads.

Run as a file, ``python lifeline.py END COMMAND...``, it holds on and becomes any other program, on Linux; elsewhere
that program isn't tied to any.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_IS_LINUX = sys.platform == "linux"


class Lifeline:
    """What a process holds for one descendant: the descendant is killed once it is let go, or the process is gone.

    `end` is the descendant's: pass it on (no program that is executed inherits it otherwise), for `hold_on` there, and
    then `hand_over`. A process that forgets a lifeline without `let_go` holds it until the process ends.
    """

    def __init__(self) -> None:
        self.end, self._held = os.pipe()
        _held.append(self)

    def hand_over(self) -> None:
        """Close this process's copy of `end`, once the descendant has its own."""
        if self.end >= 0:
            os.close(self.end)
            self.end = -1

    def let_go(self) -> None:
        """Let the descendant go, which kills it, if it is still there."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
            _held.remove(self)

    def tied(self, command: Sequence[str]) -> list[str]:
        """Return a command that holds on and becomes this one; it must be passed `end`."""
        return [sys.executable, "-I", "-S", __file__, str(self.end), *command]


_held: list[Lifeline] = []


def _drop_inherited() -> None:
    for each in tuple(_held):
        with suppress(OSError):  # Another thread of the holder was just letting it go.
            each.let_go()


os.register_at_fork(after_in_child=_drop_inherited)


def hold_on(end: int) -> None:
    """End this process when the holder of the lifeline is gone; to be called once. `end` must stay open from here on.

    It lasts when another program is executed, if `end` is inheritable.
    """
    if _IS_LINUX:
        fcntl.fcntl(end, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(end, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(end, fcntl.F_SETFL, fcntl.fcntl(end, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([end], [], [], 0)[0]:
            _end_now()
    else:
        threading.Thread(target=_wait_for_end, args=(end,), name="worldline lifeline", daemon=True).start()


def tie_to_parent(parent: int) -> None:
    """End this process when the thread of its parent that has started it ends; on Linux only.

    `parent` is the parent's process id: if it is another by now, the parent was gone before.
    """
    if not _IS_LINUX:
        return
    import ctypes  # Here, since it takes a while, and isn't part of every Python.

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        _end_now()


def _wait_for_end(end: int) -> None:
    os.read(end, 1)
    _end_now()


def _end_now() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    hold_on(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
