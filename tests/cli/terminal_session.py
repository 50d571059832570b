"""A command on a terminal of its own, as a person has it: what is typed reaches it, Ctrl-C and Ctrl-Z too."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.federation.transports import PATIENCE_S

_INSIST_S = 1.0
CTRL_C, CTRL_Z = "\x03", "\x1a"


class TerminalSession:
    """One command on a terminal. `shown` is all that has come from it."""

    def __init__(self, terminal: int, child: subprocess.Popen[bytes]) -> None:
        self._terminal = terminal
        self.child = child
        self.shown = ""
        self._seen = 0

    def wait_for(self, text: str) -> str:
        """Wait until something has been shown, after what was waited for before; return all that came with it."""
        begun = self._seen
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.shown.find(text, begun)) < 0:
            assert time.monotonic() < deadline, self.shown
            assert self._read(deadline - time.monotonic()), f"{text!r} never came: {self.shown}"
        self._seen = found + len(text)
        return self.shown[begun : self._seen]

    def insist(self, typed: str, text: str) -> None:
        """Type something until it shows: Python's prompt may miss an interruption that comes with it."""
        begun = self._seen
        deadline = time.monotonic() + PATIENCE_S
        while self.shown.find(text, begun) < 0:
            assert time.monotonic() < deadline, self.shown
            self.type(typed)
            self._read(_INSIST_S)
        self.wait_for(text)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def finish(self) -> int:
        """Read on until nobody has the terminal any more; return the exit code."""
        while self._read(PATIENCE_S):
            pass
        return self.child.wait(PATIENCE_S)

    def wait_stopped(self) -> None:
        """Wait until the command is stopped."""
        _, status = os.waitpid(self.child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def has_echo(self) -> bool:
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ECHO)

    def _read(self, within_s: float) -> bool:
        if not select.select([self._terminal], [], [], within_s)[0]:
            return False
        with contextlib.suppress(OSError):  # So the end of a terminal shows.
            data = os.read(self._terminal, 4096)
            self.shown += data.decode()
            return bool(data)
        return False


@contextlib.contextmanager
def terminal_session(folder: Path, *arguments: str, **options: Any) -> Iterator[TerminalSession]:
    """Start `worldline` on a terminal of its own; whatever happens, nothing of it stays."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "30", "NO_COLOR": "1"}
    files: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs, **options}
    child = subprocess.Popen(
        [sys.executable, "-m", "worldline", *arguments],
        cwd=folder,
        env=environment,
        preexec_fn=lambda: os.login_tty(os.dup(theirs)) if not options else _own(theirs),
        **files,
    )
    os.close(theirs)
    try:
        yield TerminalSession(ours, child)
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGCONT)
            child.kill()
            child.wait(PATIENCE_S)
        os.close(ours)


def _own(terminal: int) -> None:
    """Make it the terminal of this process, and leave the standard files alone."""
    kept = [os.dup(file) for file in range(3)]
    os.login_tty(os.dup(terminal))
    for place, file in enumerate(kept):
        os.dup2(file, place)
        os.close(file)
