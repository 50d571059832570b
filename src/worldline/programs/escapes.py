"""Refuses what would get out of the simulation: real sockets, processes, files that others see, encryption.

Python tells its audit hooks of most of that before it happens, so it is refused at the line that does it, also where a
library has the real function by name.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable
from typing import Any

from worldline.programs.reals import here

_REASONS = {
    "processes": (
        "it starts a process, and a simulated computer has one program",
        'make the other program a participant of its own, leave it out, or allow = ["processes"]',
    ),
    "sockets": (
        "it makes a real socket",
        "import socket before the library that keeps the real one, or use a library that is written in Python",
    ),
    "tls": (
        "it encrypts, and OpenSSL's random numbers would make every run different",
        'connect without TLS (http:// instead of https://), or allow = ["tls"]',
    ),
    "tls on a blocking socket": (
        "it encrypts on a blocking socket, which isn't simulated",
        "connect without TLS (http:// instead of https://); asyncio's TLS can be allowed",
    ),
}
_WRITES = 'give its participant a folder, which is its disk: what it writes there stays its own; or allow = ["files"]'

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_HARMLESS = ("/dev/null", "/dev/tty")
_RANDOM = ("/dev/random", "/dev/urandom")


def _open(path: Any, _mode: Any, flags: int) -> None:
    if path in _RANDOM:
        here.computer.refuse(f"it opens {path}, whose bytes are others in every run", "use os.urandom or secrets")
    if isinstance(path, str | bytes) and flags & _WRITING:
        _change(path)
        here.computer.workspace.note_write(path, here.computer.stack.now)


def _change(path: Any, *_: Any) -> None:
    """Refuse to change a file that isn't the program's own; what Python compiles for itself is no matter."""
    file = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    if not file or file in _HARMLESS or "__pycache__" in file:
        return
    computer = here.computer
    if "files" not in computer.workspace.allowed and not computer.workspace.may_write(file):
        computer.refuse(f"it writes to {file}, which isn't on its disk", _WRITES)


def _change_existing(path: Any, *_: Any) -> None:
    """Refuse to change a file that is there; where none is, Python says so itself."""
    if isinstance(path, str | bytes | os.PathLike) and os.path.lexists(path):
        _change(path)


def _set_times(path: Any, times: Any, ns: Any, *_: Any) -> None:
    _change_existing(path)
    computer = here.computer
    if isinstance(path, int):
        return
    if ns or times:
        computer.workspace.note_time(path, ns[1] if ns else round(times[1] * 1e9))
    else:
        computer.workspace.note_write(path, computer.stack.now)


def _rename(one: Any, other: Any, *_: Any) -> None:
    _change_both(one, other)
    here.computer.workspace.note_rename(one, other)


def _change_both(one: Any, other: Any, *_: Any) -> None:
    _change(one)
    _change(other)


def _refused(what: str) -> Callable[..., None]:
    def refuse(*_: Any) -> None:
        if what not in here.computer.workspace.allowed:
            here.computer.refuse(*_REASONS[what])

    return refuse


_EVENTS: dict[str, Callable[..., None]] = {
    "open": _open,
    "os.mkdir": _change,
    **dict.fromkeys(("os.remove", "os.rmdir", "os.truncate", "os.chmod"), _change_existing),
    "os.utime": _set_times,
    "os.rename": _rename,
    **dict.fromkeys(("os.link", "os.symlink"), _change_both),
    **dict.fromkeys(
        ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system"),
        _refused("processes"),
    ),
    **dict.fromkeys(("socket.__new__", "socket.connect", "socket.bind"), _refused("sockets")),
}


def _audit(event: str, given: tuple[Any, ...]) -> None:
    if event in _EVENTS and here.computer is not None and here.computer.over is None:
        _EVENTS[event](*given)


def _refusing(owner: Any, name: str, what: str) -> None:
    real, refuse = getattr(owner, name), _refused(what)

    def call(*given: Any, **named: Any) -> Any:
        if here.computer is not None:
            refuse()
        return real(*given, **named)

    setattr(owner, name, call)


def install() -> None:
    """Look at what programs do, from here on."""
    import _posixsubprocess
    import subprocess

    sys.addaudithook(_audit)
    _refusing(ssl.SSLContext, "wrap_bio", "tls")
    _refusing(ssl.SSLContext, "wrap_socket", "tls on a blocking socket")
    _refusing(_posixsubprocess, "fork_exec", "processes")
    subprocess._fork_exec = _posixsubprocess.fork_exec  # type: ignore[attr-defined]
