"""Starts other programs on this machine, and sees to it that they end with this process, however that ends.

Three kinds of processes are started in ways of their own: workers, which are forked from a server (`forking.py`);
participants, which a keeper starts (`launch/keeper.py`), so that also what they have started is ended; and ranks, which
`mpiexec` starts. Everything else is a `TiedProcess`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from worldline.processes.lifeline import Lifeline


class TiedProcess(subprocess.Popen[bytes]):
    """A program without input, which is killed when it is let go, or when this process is gone."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._line = Lifeline()
        try:
            super().__init__(self._line.tied(command), stdin=subprocess.DEVNULL, pass_fds=[self._line.end], **options)
        except BaseException:
            self._line.let_go()
            raise
        finally:
            self._line.hand_over()

    def end(self, grace_s: float) -> None:
        """Wait so long for it to end by itself; then kill it."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(max(0.0, grace_s))
        self._line.let_go()
        self.wait()


def module_command(name: str) -> tuple[str, ...]:
    """Return the command that runs a module of Worldline; a user's random.py in the current folder is no part of it."""
    return sys.executable, "-P", "-m", name


def describe_exit(code: int) -> str:
    """Say how a process has ended."""
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}"
