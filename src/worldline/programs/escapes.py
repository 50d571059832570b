"""Refuses what would get out of the simulation: real sockets, processes, files that others see.

Python tells its audit hooks of most of that before it happens, so it is refused at the line that does it, also where a
library has the real function by name.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

from worldline.programs.reals import here, in_folder

_REASONS = {
    "processes": (
        "it starts a process, and a simulated computer has one program",
        'make the other program a participant of its own, leave it out, or allow = ["processes"]',
    ),
    "sockets": (
        "it makes a real socket",
        "import socket before the library that keeps the real one, or use a library that is written in Python",
    ),
}
_WRITES = 'give its participant a folder, which is its disk: what it writes there stays its own; or allow = ["files"]'

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SYNCED = os.O_SYNC | os.O_DSYNC
_HARMLESS = ("/dev/null", "/dev/tty")
_RANDOM = ("/dev/random", "/dev/urandom")
_OF_HOST = ("/proc/", "/sys/")


def _open(path: Any, _mode: Any, flags: int) -> None:
    if not isinstance(path, str | bytes):
        return
    if (file := os.fsdecode(path)) in _RANDOM:
        here.computer.refuse(f"it opens {file}, whose bytes are others in every run", "use os.urandom or secrets")
    if flags & _WRITING:
        _change(path)
        here.computer.workspace.note_write(path, here.computer.stack.now, is_synced=bool(flags & _SYNCED))
    else:
        check_read(path)


def check_read(path: Any, *_: Any) -> None:
    """Say that there is nothing of what the real system tells of itself: it would be something else in every run.

    Many libraries can do without, since other systems have no such files.
    """
    computer = here.computer
    if not isinstance(path, str | bytes | os.PathLike) or "files" in computer.workspace.allowed:
        return
    whole = os.path.join(computer.workspace.belongings.folder.path, os.fsdecode(path))  # noqa: PTH118 - it is asked for each file
    if f"{os.path.normpath(whole)}/".startswith(_OF_HOST):
        raise FileNotFoundError(errno.ENOENT, "A simulated computer has no /proc and no /sys", path)


# Libraries whose sockets aren't Python's, and what to use instead.
_WITH_OWN_SOCKETS = {
    "aiodns": "asyncio's own look-up",
    "confluent_kafka": "aiokafka or kafka-python",
    **dict.fromkeys(("eventlet", "gevent"), "asyncio or threads"),
    **dict.fromkeys(("granian", "robyn", "socketify"), "uvicorn or hypercorn"),
    "grpc": "grpclib",
    "lcm": "a participant with an LcmBridge",
    "MySQLdb": "PyMySQL or aiomysql",
    **dict.fromkeys(("psycopg", "psycopg2"), "asyncpg or pg8000"),
    "pulsar": "another broker's client",
    "pycares": "socket.getaddrinfo",
    **dict.fromkeys(("curl_cffi", "primp", "pycurl"), "httpx or urllib3"),
    "pymssql": "python-tds",
    "pyodbc": "a driver in Python",
    **dict.fromkeys(("cyclonedds", "pynng", "rclpy", "zenoh", "zmq"), "a socket"),
}


def is_refused(module: str) -> bool:
    """Whether a module is of a library that would make real sockets unseen."""
    return module.partition(".")[0] in _WITH_OWN_SOCKETS


def check_library(name: str) -> None:
    """Refuse to load a library that would make real sockets unseen, as if it weren't installed: some can do without."""
    if name in _WITH_OWN_SOCKETS:
        instead = _WITH_OWN_SOCKETS[name]
        raise ImportError(
            f"{name} has sockets of its own, in C, which aren't simulated: use {instead} instead", name=name
        )


def _change(path: Any) -> None:
    """Refuse to change a file that isn't the program's own; what Python compiles for itself is no matter."""
    file = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    if not file or file in _HARMLESS or "__pycache__" in file:
        return
    if not may_change(file):
        refuse_to_write(file)


def may_change(file: str) -> bool:
    """Whether the program that runs may change a file."""
    workspace = here.computer.workspace
    return "files" in workspace.allowed or workspace.may_write(file)


def refuse_to_write(what: str) -> None:
    here.computer.refuse(f"it writes to {what}, which isn't on its disk", _WRITES)


def _change_existing(path: Any) -> None:
    """Refuse to change a file that is there; where none is, Python says so itself."""
    if isinstance(path, str | bytes | os.PathLike) and os.path.lexists(path):
        _change(path)


def _set_mode(path: Any, _: int, folder: int = -1) -> None:
    _change_existing(in_folder(path, folder))


def _set_times(path: Any, times: Any, ns: Any, folder: int = -1) -> None:
    path, computer = in_folder(path, folder), here.computer
    _change_existing(path)
    if isinstance(path, int):
        return
    if ns or times:
        computer.workspace.note_time(path, ns[1] if ns else round(times[1] * 1e9))
    else:
        computer.workspace.note_write(path, computer.stack.now)


def _truncate(path: Any, *_: Any) -> None:
    _change_existing(path)
    if isinstance(path, str | bytes | os.PathLike):  # A file that is open was noted then.
        here.computer.workspace.note_write(path, here.computer.stack.now)


def _remove(path: Any, folder: int = -1) -> None:
    path = in_folder(path, folder)
    _change_existing(path)
    here.computer.workspace.note_removal(path)


def _rename(one: Any, other: Any, folder: int = -1, to: int = -1) -> None:
    one, other = in_folder(one, folder), in_folder(other, to)
    _change_both(one, other)
    here.computer.workspace.note_rename(one, other)


def _link(one: Any, other: Any, folder: int = -1, to: int = -1) -> None:
    one, other = in_folder(one, folder), in_folder(other, to)
    _change_both(one, other)
    here.computer.workspace.note_link(one, other)


def _link_symbolically(one: Any, other: Any, folder: int = -1) -> None:
    other = in_folder(other, folder)
    _change_both(one, other)
    here.computer.workspace.note_making(other)


def _make_folder(path: Any, _: int, folder: int = -1) -> None:
    path = in_folder(path, folder)
    _change(path)
    here.computer.workspace.note_making(path)


def _change_both(one: Any, other: Any) -> None:
    _change(one)
    _change(other)


def _open_database(database: Any) -> None:
    """Refuse to make a database elsewhere; one that is there may be read (see `databases`)."""
    file = database_file(database)
    if file is not None and not os.path.lexists(file):
        _change(file)
    if file is not None:
        here.computer.workspace.note_database(file)


def database_file(database: Any) -> str | None:
    """Return the file of a database; None if it is in memory, or as good as that."""
    text = os.fsdecode(database)
    if text.startswith("file:"):
        parts = urlsplit(text)
        text = "" if "mode=memory" in parts.query else unquote(parts.path)
    return None if text in ("", ":memory:") else text


def _refused(what: str) -> Callable[..., None]:
    def refuse(*_: Any) -> None:
        if what not in here.computer.workspace.allowed:
            here.computer.refuse(*_REASONS[what])

    return refuse


_READING = ("os.listdir", "os.scandir")
_EVENTS: dict[str, Callable[..., None]] = {
    "open": _open,
    **dict.fromkeys(_READING, check_read),
    "os.mkdir": _make_folder,
    **dict.fromkeys(("os.remove", "os.rmdir"), _remove),
    "os.chmod": _set_mode,
    "os.truncate": _truncate,
    "os.utime": _set_times,
    "os.rename": _rename,
    "sqlite3.connect": _open_database,
    "os.link": _link,
    "os.symlink": _link_symbolically,
    **dict.fromkeys(
        ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system"),
        _refused("processes"),
    ),
    **dict.fromkeys(("socket.__new__", "socket.connect", "socket.bind"), _refused("sockets")),
}


def audit(event: str, given: tuple[Any, ...]) -> None:
    """Look at what a program is about to do, as Python tells it."""
    computer = here.computer
    if computer is None or event not in _EVENTS:
        return
    if computer.over is None:
        _EVENTS[event](*given)
    elif not _is_harmless(event, given):  # What a program that was killed does on its way out never happened.
        computer.over.raise_again()


def _is_harmless(event: str, given: tuple[Any, ...]) -> bool:
    """Whether this changes nothing that outlives the program."""
    if event in _READING or (event == "open" and not given[2] & _WRITING):
        return True
    return bool(given) and isinstance(given[0], str) and (given[0] in _HARMLESS or "__pycache__" in given[0])


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

    sys.addaudithook(audit)
    _refusing(_posixsubprocess, "fork_exec", "processes")
    _refusing(subprocess.Popen, "__init__", "processes")  # Before it makes pipes, which lead nowhere.
    subprocess._fork_exec = _posixsubprocess.fork_exec  # type: ignore[attr-defined]
