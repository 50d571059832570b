"""The launcher's end of its keeper: what to start is told to it, and it tells who has ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worldline.federation.environment import VARIABLES
from worldline.launch.file.setup import ParticipantSetup
from worldline.model import LossError, UsageError
from worldline.model.frames import HEADER_SIZE, Cutter, frame

# Says whose processes may be forks of a warm keeper, and in which environment such a keeper lives: theirs.


def inherited() -> dict[str, str]:
    """Return what every participant's process has in its environment, besides what is its own."""
    passed_on = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {
        **passed_on,
        "PYTHONUNBUFFERED": "1",  # What it prints is shown when it is printed.
        "PYTHONIOENCODING": "utf-8",
    }


def may_fork(part: ParticipantSetup) -> bool:
    """Whether a fork may be as good as an interpreter for it; the keeper knows the rest (`newborn.py`)."""
    return part.entry is not None and not part.environment and _is_found_anywhere()


def _is_found_anywhere() -> bool:
    """Whether interpreters find Worldline, and the same modules, wherever they are started, but for what is there."""
    if sys.platform != "linux":
        return False
    search = os.environ.get("PYTHONPATH", "")
    is_absolute = not search or all(map(os.path.isabs, search.split(os.pathsep)))
    return is_absolute and str(Path(__file__).parents[2]) in sys.path[1:]


_START_S = 30.0
_LEFT_S = 5.0
_GOING_S = 10.0
_ROOM = " " * 160  # For the commands of forks, which `ps` shows in its place.


class LeftoverProcess(NamedTuple):
    """A process that is left: whose, as far as that is known, and its command."""

    pid: int
    name: str | None
    command: str


class KeeperClient:
    """A keeper, told and heard. One thread tells, another one, which calls `hear`, hears.

    A `warm` one forks participants' processes. It has loaded Worldline when it answers for the first time, so it is
    best made some time before. One that is dropped again without having been used ends.
    """

    def __init__(self, *, warm: bool = False) -> None:
        self._socket, theirs = socket.socketpair()
        self._frames = Cutter()
        self._over = threading.Event()
        self._answers: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
        if warm:
            how = ("-m", "worldline.launch.keeper", str(theirs.fileno()), _ROOM)
        else:  # As a file, without whatever the environment would add: it is to be there soon, and to fail at nothing.
            how = ("-I", "-S", str(Path(__file__).with_name("keeper.py")), str(theirs.fileno()))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *how],
                cwd="/",  # Where nobody's modules lie in its way.
                env=inherited(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )
        self._drop = weakref.finalize(self, _end, self._socket, self._process)

    def fileno(self) -> int:
        return self._socket.fileno()

    # --- In the thread that tells ---

    def start(
        self,
        name: str,
        command: Sequence[str],
        directory: Path,
        environment: dict[str, str],
        files: Sequence[int],
        *,
        may_fork: bool = False,
    ) -> int:
        """Have a process started, and return its number; raise if that can't be.

        `files` is where it writes to, or a terminal's standard input, output and error.
        """
        self._tell(["fork" if may_fork else "start", name, list(command), str(directory), environment], files)
        verb, what = self._answer(_START_S)
        if verb == "refused":
            raise UsageError(f"{name} can't be started: {what}", advice=" ".join(command))
        assert isinstance(what, int)
        return what

    def remove(self, folder: str) -> None:
        """Have a folder removed when all has ended, however it ends."""
        self._tell(["remove", folder])

    def signal(self, number: signal.Signals) -> None:
        """Have a signal sent to all that is left."""
        with contextlib.suppress(LossError):  # Then it has ended all of them.
            self._tell(["signal", int(number)])

    def left(self) -> list[LeftoverProcess]:
        """Return all that is left."""
        try:
            self._tell(["left"])
            _, left = self._answer(_LEFT_S)
        except LossError:
            return []
        return [LeftoverProcess(*one) for one in left]

    def end_all(self) -> None:
        """Have all that is left killed at once. May be called in the middle of anything, from a signal's handler."""
        with contextlib.suppress(OSError):  # It has gone by itself.
            self._socket.shutdown(socket.SHUT_WR)

    def wait(self) -> None:
        """Wait until the keeper has ended, and all with it."""
        self._resume()
        self._over.wait(_GOING_S)  # To wait for a process is to look again and again; this is quicker.
        _wait(self._process)

    def close(self) -> None:
        """Let go of it; it ends, if it hasn't."""
        self._drop()

    def _resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)  # Somebody may have stopped it.

    def _tell(self, message: list[Any], files: Sequence[int] = ()) -> None:
        framed = frame(json.dumps(message).encode())
        self._resume()
        try:
            if files:
                socket.send_fds(self._socket, [framed[:HEADER_SIZE]], list(files))
                framed = framed[HEADER_SIZE:]
            self._socket.sendall(framed)
        except OSError as error:
            raise _gone() from error

    def _answer(self, within_s: float) -> list[Any]:
        try:
            answer = self._answers.get(timeout=within_s)
        except queue.Empty:
            answer = None
        if answer is None:
            self._answers.put(None)  # For whoever asks next.
            raise _gone()
        return answer

    # --- In the thread that hears ---

    def hear(self) -> list[tuple[str, int]] | None:
        """Take what the keeper has said; return who has ended, and how. None: it has ended itself."""
        try:
            data = self._socket.recv(2**16)
        except OSError:
            data = b""
        if not data:
            self._answers.put(None)
            self._over.set()
            return None
        ended = []
        for body in self._frames.feed(data):
            message = json.loads(body)
            if message[0] == "exited":
                ended.append((message[1], message[2]))
            else:
                self._answers.put(message)
        return ended


def keeper_for(parts: Iterable[ParticipantSetup]) -> KeeperClient:
    """Return a keeper for these participants: a warm one, if that is of use to any of them."""
    return KeeperClient(warm=any(map(may_fork, parts)))


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_GOING_S)
    except subprocess.TimeoutExpired:
        process.kill()  # The system ends those that it has started.
        process.wait()


def _gone() -> LossError:
    return LossError("the process that looks after the participants' processes is gone")
