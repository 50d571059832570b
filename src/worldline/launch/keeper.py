"""The keeper: a process that starts the participants' processes, and sees to it that nothing of them stays.

A launcher that is killed can't end what it has started. So it starts nothing but this program, which does no more than
this, and is told what to start over a socket. When the launcher is gone, however it went, the socket has an end; then
the keeper kills all that is left, and ends.

K1. Everything that a participant starts, and what that starts, is a descendant of the keeper as long as it lives: where
    the system knows *subreapers* (Linux), who loses its parent gets the keeper for one, also in a session of its own.
    Elsewhere it is what has stayed in the participant's process group.
K2. Only the keeper waits for its children, in its only thread. So no number of a child that it signals has been given
    to another process meanwhile.
K3. If the keeper itself is killed, the system kills those that it has started (a parent-death signal, on Linux).
K4. It has a session of its own: who kills the launcher's process group, or closes its terminal, doesn't kill it.

It needs nothing but the standard library, and is run as a file by an interpreter without site packages. A *warm* one
is run as a module instead, like the participants' own processes, and loads Worldline while the launcher is still busy:
participants that are Python entries are then forks of it (`worker.py`).

What is said on the socket: frames as in `model/frames.py`, of a JSON list each. To the keeper:

- ``["start", name, command, directory, environment]``, along with the file descriptor that takes the output, or with
  those of a terminal for input, output and errors. The answer is ``["started", pid]`` or ``["refused", reason]``.
- ``["fork", ...]``, the same, of a command that runs a worker: a warm keeper forks, if that makes no difference.
- ``["remove", folder]``, with the files in it, when all has ended. No answer.
- ``["signal", number]``: to all that is left. No answer.
- ``["left"]``: the answer is ``["left", [[pid, name, command], ...]]``, of all that is left.

And from it, at any time: ``["exited", name, code]``.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

try:
    import ctypes
except ImportError:  # It isn't part of every Python; then it is as on systems other than Linux.
    ctypes = None  # type: ignore[assignment]

_IS_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LENGTH = 4
_FILES_MAX = 3
_SHOWN_MAX = 80
_KILLING_S = 5.0
_PAUSE_S = 0.002
_HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class SystemProcess(NamedTuple):
    """A process as the system shows it."""

    pid: int
    parent: int
    group: int
    command: str


ForkedCommand = tuple[list[str], str, dict[str, str]]
"""What a fork is to be: its command, directory and environment."""


class Keeper:
    """The participants' processes of one run. `can_fork` says whether forks may be made for those of a directory."""

    def __init__(self, launcher: socket.socket, can_fork: Callable[[str], bool] = lambda _: False) -> None:
        self._launcher = launcher
        self._can_fork = can_fork
        self._names: dict[int, str] = {}  # Of those that haven't ended.
        self._groups: dict[int, str] = {}  # Of all that have been started.
        self._folders: list[str] = []
        self._forked: ForkedCommand | None = None
        self._mask: set[int] = set()  # Of signals, before a fork.

    def keep(self) -> ForkedCommand | None:
        """Do as the launcher says until it has no more to say; then end all that is left. In a fork, return at once."""
        woken, alarm = socket.socketpair()
        woken.setblocking(False)
        alarm.setblocking(False)
        signal.set_wakeup_fd(alarm.fileno(), warn_on_full_buffer=False)
        asked_to_end: list[int] = []
        usual = {number: signal.getsignal(number) for number in _HANDLED}
        for number in _HANDLED:
            signal.signal(number, lambda number, _: asked_to_end.append(number))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            while not asked_to_end:
                ready, _, _ = select.select([self._launcher, woken], [], [])
                if woken in ready:
                    woken.recv(4096)
                    self._reap()
                if self._launcher in ready and not self._obey():
                    break
        finally:
            if self._forked is None:
                self._end_all()
        if self._forked is not None:
            signal.set_wakeup_fd(-1)
            for end in (self._launcher, woken, alarm):
                end.close()
            for number, handler in usual.items():
                signal.signal(number, handler or signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        return self._forked

    # --- What the launcher says ---

    def _obey(self) -> bool:
        """Do what it asks for; return whether it is still there. A fork has no launcher."""
        received: list[int] = []
        try:
            length = self._receive(_LENGTH, received)
            request = json.loads(self._receive(int.from_bytes(length), received))
        except (OSError, EOFError):
            return False
        verb, *rest = request
        if verb in ("start", "fork"):
            answer = self._started(verb == "fork", received, *rest)
            for each in received:
                os.close(each)
            if self._forked is not None:
                return False
            self._say(answer)
        elif verb == "remove":
            self._folders += rest
        elif verb == "signal":
            self._signal(*rest)
        else:
            self._say(["left", [[left.pid, self._name_of(left), _described(left)] for left in self._left()]])
        return True

    def _receive(self, size: int, received: list[int]) -> bytes:
        data = b""
        while len(data) < size:
            part, descriptors, _, _ = socket.recv_fds(self._launcher, size - len(data), _FILES_MAX)
            received += descriptors
            if not part:
                raise EOFError
            data += part
        return data

    def _say(self, message: list[Any]) -> None:
        body = json.dumps(message).encode()
        with contextlib.suppress(OSError):  # It is gone; then it needn't know.
            self._launcher.sendall(len(body).to_bytes(_LENGTH) + body)

    def _started(
        self,
        may_fork: bool,
        files: list[int],
        name: str,
        command: list[str],
        directory: str,
        environment: dict[str, str],
    ) -> list[Any]:
        try:
            if may_fork and self._can_fork(directory):
                pid = self._fork(files[0], (command, directory, environment))
            else:
                pid = _start(files, command, directory, environment)
        except (OSError, ValueError) as error:
            return ["refused", str(error)]
        self._names[pid] = self._groups[pid] = name
        return ["started", pid]

    def _fork(self, output: int, forked: ForkedCommand) -> int:
        """Fork, into the directory; return the fork's number, and in the fork nothing that matters."""
        keeper = os.getpid()
        os.chdir(forked[1])
        # What is sent to the fork is for its own handlers.
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            return pid
        self._forked = forked
        os.setsid()
        _tie(keeper)
        os.dup2(output, 1)
        os.dup2(output, 2)
        return 0

    # --- Processes ---

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid in self._names:  # Or one that had lost its parent.
                self._say(["exited", self._names.pop(pid), os.waitstatus_to_exitcode(status)])

    def _left(self) -> list[SystemProcess]:
        """Return all that is left: descendants, and processes in a group of theirs."""
        running = _running()
        family = {os.getpid()}
        grown = 0
        while grown != len(family):
            grown = len(family)
            family.update(one.pid for one in running if one.parent in family)
        return [one for one in running if (one.pid in family or one.group in self._groups) and one.pid != os.getpid()]

    def _name_of(self, process: SystemProcess) -> str | None:
        """Return whose process it is: by its group, or else by what its environment says."""
        if process.group in self._groups:
            return self._groups[process.group]
        with contextlib.suppress(OSError):
            for variable in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                if variable.startswith(b"WORLDLINE_NAME="):
                    return variable.partition(b"=")[2].decode("utf-8", "replace")
        return None

    def _signal(self, number: int) -> None:
        for process in self._left():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)

    def _end_all(self) -> None:
        deadline = time.monotonic() + _KILLING_S
        while time.monotonic() < deadline and self._left():
            self._signal(signal.SIGKILL)
            time.sleep(_PAUSE_S)  # Until they are gone, and who has lost its parent is a child of ours.
            self._reap()
        self._reap()
        for folder in map(Path, self._folders):
            with contextlib.suppress(OSError):  # The launcher has removed it, or another folder is in it.
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()


def _start(files: list[int], command: list[str], directory: str, environment: dict[str, str]) -> int:
    import subprocess  # Here, since who only forks doesn't need it.

    keeper = os.getpid()
    terminal = files if len(files) == _FILES_MAX else None
    child = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL if terminal is None else terminal[0],
        stdout=files[0] if terminal is None else terminal[1],
        stderr=files[0] if terminal is None else terminal[2],
        start_new_session=True,
        preexec_fn=lambda: _tie(keeper),  # Nothing to fear: there are no threads here.
    )
    child.returncode = 0  # It isn't for this object to wait for it (K2).
    return child.pid


def _tie(keeper: int) -> None:
    """Have this process end with the keeper (K3)."""
    if _IS_LINUX:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os.kill(os.getpid(), signal.SIGKILL)


def _running() -> list[SystemProcess]:
    """Return all processes of this machine that haven't ended."""
    if not _IS_LINUX:
        import subprocess

        listed = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,pgid=,state=,command="], capture_output=True, text=True, check=False
        ).stdout
        rows = [line.split(None, 4) for line in listed.splitlines()]
        return [
            SystemProcess(int(row[0]), int(row[1]), int(row[2]), row[4])
            for row in rows
            if len(row) == 5 and not row[3].startswith("Z")
        ]
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # It has ended meanwhile.
                title, _, fields = (folder / "stat").read_text(errors="replace").rpartition(")")
                state, parent, group = fields.split()[:3]
                if state not in "ZX":
                    found.append(SystemProcess(int(folder.name), int(parent), int(group), title.partition("(")[2]))
    return found


def _described(process: SystemProcess) -> str:
    """Return the command of a process, as far as one wants to read it."""
    text = process.command
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().replace(b"\0", b" ")
        text = words.decode("utf-8", "replace").strip() or text
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."


def _prctl(option: int, value: int) -> None:
    if ctypes is not None:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _main() -> None:
    _, end, *warm = sys.argv
    if _IS_LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    launcher = socket.socket(fileno=int(end))
    if not warm:
        Keeper(launcher).keep()
    else:
        gc.disable()
        from worldline.launch.worker import become, is_ready_for

        gc.freeze()  # What is loaded by now stays: a fork needn't look through it, which would copy all of it.
        gc.enable()
        if forked := Keeper(launcher, is_ready_for).keep():
            become(*forked)
    os._exit(0)  # There is nothing to be tidied up, and the launcher waits.


if __name__ == "__main__":
    _main()
