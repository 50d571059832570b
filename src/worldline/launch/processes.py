"""The processes of a federation: started, listened to, and ended.

Every participant gets a process group of its own, so that whatever it starts ends with it, and a Ctrl-C in the
terminal reaches only the launcher, which then ends the run in good order.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from worldline.federation.environment import PREFIX, Surroundings
from worldline.launch.setup import Part
from worldline.launch.stamps import STAMPING, read_stamp
from worldline.model import UsageError

GRACE_S = 5.0
_TERM_S = 2.0
_LAST_WORDS = 5
_LINE_MAX = 8192

OUTPUT = "WORLDLINE_OUTPUT"
"""Where participants are to leave files for whoever started the run; by default where that one is."""

Hear = Callable[[str, int | None, str], None]
"""Told the name of a participant, its time if the line says so, and a line that it has printed."""


class Processes:
    """The participants' processes of one run."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._last_words: dict[str, deque[str]] = {}
        self._pipes = selectors.DefaultSelector()
        self._listener = threading.Thread(target=self._listen, name="worldline output", daemon=True)
        self._open = 0

    def start(self, part: Part, surroundings: Surroundings) -> None:
        """Start a participant's process."""
        command = part.command or (sys.executable, "-m", "worldline.launch.worker", part.entry or "")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        environment = {
            **inherited,
            "PYTHONUNBUFFERED": "1",  # What it prints is shown when it is printed.
            "PYTHONIOENCODING": "utf-8",
            STAMPING: "1",
            OUTPUT: str(Path(os.environ.get(OUTPUT, ".")).absolute()),
            **surroundings.variables(),
            **part.environment,
        }
        try:
            child = subprocess.Popen(
                command,
                cwd=part.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"{part.name} can't be started: {error}", advice=" ".join(command)) from error
        self._children[part.name] = child
        self._last_words[part.name] = deque(maxlen=_LAST_WORDS)
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        self._open += 1
        self._pipes.register(child.stdout, selectors.EVENT_READ, (part.name, bytearray()))

    def listen(self) -> None:
        """Begin to pass on what they print. After the last `start`."""
        self._listener.start()

    def failed(self) -> dict[str, str]:
        """Return who has ended otherwise than well, and how."""
        codes = {name: child.poll() for name, child in self._children.items()}
        return {name: describe_exit(code) for name, code in codes.items() if code}

    def exited(self) -> Iterable[str]:
        """Return who has ended."""
        return [name for name, child in self._children.items() if child.poll() is not None]

    def last_words(self, name: str) -> list[str]:
        """Return the last lines that a participant has printed."""
        return list(self._last_words.get(name, ()))

    def finish(self, grace_s: float = GRACE_S) -> None:
        """Wait for all to end by themselves; then ask them to; then end them."""
        self._wait(grace_s)
        for sign in (signal.SIGTERM, signal.SIGKILL):
            self.kill(sign)
            self._wait(_TERM_S)
        if self._listener.is_alive():
            self._listener.join(_TERM_S)
        if not self._open:
            self._pipes.close()

    def kill(self, sign: signal.Signals = signal.SIGKILL) -> None:
        """Send all a signal. A group outlives its first process if that has started others."""
        for child in list(self._children.values()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, sign)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for child in self._children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))

    # --- In the listener's thread ---

    def _listen(self) -> None:
        while self._open:
            for key, _ in self._pipes.select():
                name, rest = key.data
                pipe = key.fileobj
                assert not isinstance(pipe, int)
                self._take(name, rest, pipe)  # type: ignore[arg-type]

    def _take(self, name: str, rest: bytearray, pipe: IO[bytes]) -> None:
        try:
            data = os.read(pipe.fileno(), 2**16)
        except BlockingIOError:
            return
        rest += data
        *lines, tail = rest.split(b"\n")
        if (not data or len(tail) > _LINE_MAX) and tail:
            lines.append(tail)
            tail = bytearray()
        rest[:] = tail
        for line in lines:
            now, text = read_stamp(line.decode("utf-8", "replace").rstrip("\r"))
            self._last_words[name].append(text)
            self._hear(name, now, text)
        if not data:
            self._pipes.unregister(pipe)
            pipe.close()
            self._open -= 1


def describe_exit(code: int) -> str:
    """Say how a process has ended."""
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}"
