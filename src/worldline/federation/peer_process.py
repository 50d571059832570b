"""Says how the process at the other end of a connection within this machine is, as far as the system tells.

Linux only; elsewhere, and where the system doesn't say (another user's process, another container), it isn't known.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_BIRTH = 19  # Where the time at which a process began stands, among what follows its name.
# Of netlink(7) and sock_diag(7): how a question is asked, and where its answer has the user.
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, _NETLINK_HEADER = 4, 20, 1, 16
_ANY_COOKIE = (0xFFFFFFFF, 0xFFFFFFFF)
_USER = 64
_ANSWER_S = 1.0
_CONDITIONS = {"R": "running", "S": "sleeping", "D": "blocked", "T": "stopped", "t": "stopped"}


def process_of(connection: socket.socket) -> int | None:
    """Return the process at the other end."""
    if sys.platform != "linux":
        return None
    try:
        if connection.family == socket.AF_UNIX:
            found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", found)[0]) or None
        ours, theirs = connection.getsockname(), connection.getpeername()
    except OSError:  # It has gone.
        return None
    if ours[0] != theirs[0]:
        return None  # Another machine.
    inode = _socket_between(theirs[1], ours[1])
    return None if inode is None else _owner(inode)


def is_another_users(connection: socket.socket) -> bool:
    """Whether the other end of a TCP connection within this machine is known to be a process of another user.

    Root may do what it likes anyway. A Unix socket is for those who may open its file. If there is no file left to ask
    with, it counts as another's: or else taking all files would be a way in.
    """
    if sys.platform != "linux" or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        return _user_of(connection) not in (None, 0, os.getuid())
    except OSError as error:  # It has gone, or the system doesn't say.
        return error.errno in (errno.EMFILE, errno.ENFILE)


def _user_of(connection: socket.socket) -> int | None:
    """Return the user who has opened the other end, by a question about this one socket (sock_diag(7)).

    The table in /proc takes milliseconds to read where there are many connections.
    """
    packed = [
        (socket.inet_pton(connection.family, place[0].partition("%")[0]), place[1])
        for place in (connection.getpeername(), connection.getsockname())
    ]
    (theirs, port), (ours, our_port) = packed
    wanted = struct.pack(
        "=BBBxI2s2s16s16sIII",
        connection.family,
        socket.IPPROTO_TCP,
        0,
        0xFFFFFFFF,
        port.to_bytes(2),
        our_port.to_bytes(2),
        theirs,
        ours,
        0,
        *_ANY_COOKIE,
    )
    question = struct.pack("=IHHII", _NETLINK_HEADER + len(wanted), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + wanted
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as asked:
        asked.settimeout(_ANSWER_S)
        asked.send(question)
        answer = asked.recv(4096)
    (kind,) = struct.unpack_from("=H", answer, 4)
    if kind != _SOCK_DIAG_BY_FAMILY:
        return None  # There is no such socket, or the question isn't known.
    return int(struct.unpack_from("=I", answer, _NETLINK_HEADER + _USER)[0])


def is_stopped(process: int | None) -> bool | None:
    """Return whether a process has been stopped, by a signal or a debugger; None, if that can't be told."""
    letter = _state_of(process)
    return None if letter is None else letter in "Tt"


def condition_of(process: int | None) -> str:
    """Say what the system does with a process: running, sleeping, blocked or stopped; empty, if that can't be told."""
    return _CONDITIONS.get(_state_of(process) or "", "")


def birth_of(process: int) -> str:
    """Return what tells a process from others that have had the same number; empty, if there is none."""
    if fields := _fields_of(process):
        return "" if fields[0] in "ZX" else fields[_BIRTH]
    if sys.platform == "linux":
        return ""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"  # All that can be told here.


def _state_of(process: int | None) -> str | None:
    """Return the system's letter for what a process does."""
    fields = None if process is None else _fields_of(process)
    return fields[0] if fields else None


def _fields_of(process: int) -> list[str] | None:
    """Return what the system says of a process, from its state on."""
    try:
        stat = (_PROC / str(process) / "stat").read_text()
    except OSError:
        return None
    return stat[stat.rindex(")") + 2 :].split()


def _socket_between(port: int, other_port: int) -> str | None:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                ports = [int(field.rpartition(":")[2], 16) for field in fields[1:3]]
                if ports == [port, other_port]:
                    return fields[9]
    return None


def _owner(inode: str) -> int | None:
    wanted = f"socket:[{inode}]"
    for process in sorted(int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()):
        with suppress(OSError):  # Another user's, or it has just ended.
            for file in (_PROC / str(process) / "fd").iterdir():
                with suppress(OSError):
                    if str(file.readlink()) == wanted:
                        return process
    return None
