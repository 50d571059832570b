"""Programs with processes of their own, for real; and a way to know when all of these are gone, without looking.

All inherit the program's stderr, which is a pipe here: it has an end once nobody has it any more.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.federation.transports import PATIENCE_S

ROOT = Path(__file__).parent.parent


class Family:
    """A program and all that it starts."""

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        self.program = program
        self._said = b""

    def await_line(self, start: str = "") -> str:
        """Wait until somebody prints a line that begins so; return the rest of it."""
        assert self.program.stdout is not None
        while True:
            line = self.program.stdout.readline().decode()
            assert line, f"nobody said {start!r}, but: {self._said.decode()}{self._stderr_so_far()}"
            if line.startswith(start):
                return line.removeprefix(start).strip()

    def are_gone(self, within_s: float = PATIENCE_S) -> bool:
        """Wait until all are gone."""
        assert self.program.stderr is not None
        until = time.monotonic() + within_s
        while select.select([self.program.stderr], [], [], max(0.0, until - time.monotonic()))[0]:
            said = os.read(self.program.stderr.fileno(), 2**16)
            if not said:
                self.program.wait(within_s)
                return True
            self._said += said
        return False

    def stderr(self) -> str:
        """Return what was said there until all were gone."""
        assert self.are_gone(), f"somebody is left; said was {self._said.decode()}"
        return self._said.decode()

    def _stderr_so_far(self) -> str:
        assert self.program.stderr is not None
        is_more = select.select([self.program.stderr], [], [], 1)[0]
        return os.read(self.program.stderr.fileno(), 2**16).decode() if is_more else ""


@contextmanager
def family(code: str, *arguments: str, wrapper: Sequence[str] = ()) -> Iterator[Family]:
    """Run a program of Python, with a session of its own, and see to it that nothing of it stays."""
    command = [*wrapper, sys.executable, "-u", "-c", code, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as program:
        try:
            yield Family(program)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
