"""Says how the process at the other end of a connection within this machine is, as far as the system tells.

Linux only; elsewhere, and where the system doesn't say (another user's process, another container), it isn't known.
"""

from __future__ import annotations

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
_USER = 64  # And, after it, the socket's inode.
_ANSWER_S = 1.0
_USER_FIELD, _INODE_FIELD = 7, 9  # In a row of the tables of proc_net(5).
_MAPPED = bytes(10) + b"\xff\xff"  # Before an IPv4 address that is written as one of IPv6.
_CONDITIONS = {"R": "running", "S": "sleeping", "D": "blocked", "T": "stopped", "t": "stopped"}


def process_of(connection: socket.socket) -> int | None:
    """Return the process at the other end."""
    if sys.platform != "linux":
        return None
    try:
        if connection.family == socket.AF_UNIX:
            found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", found)[0]) or None
        if connection.getsockname()[0] != connection.getpeername()[0]:
            return None  # Another machine.
        row = _row_of_other_end(connection)
    except OSError:  # It has gone.
        return None
    return None if row is None else _owner(row[_INODE_FIELD])


def is_another_users(connection: socket.socket) -> bool:
    """Whether the other end of a TCP connection within this machine is a process of another user.

    Root may do what it likes anyway. A Unix socket is for those who may open its file. If Linux doesn't say whose it is
    (no file is left to ask with, or the other end has closed its socket already), it counts as another's: or else
    taking all files, or being quick, would be a way in.
    """
    if sys.platform != "linux" or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    for told in (_user_of, _user_in_table):
        with suppress(OSError):
            if (user := told(connection)) is not None:
                return user not in (0, os.getuid())
    return True


def _user_of(connection: socket.socket) -> int | None:
    """Return the user who has opened the other end, by a question about this one socket (sock_diag(7)).

    The table in /proc takes milliseconds to read where there are many connections.
    """
    (theirs, port), (ours, our_port) = _ends_of(connection)
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
    user, inode = struct.unpack_from("=II", answer, _NETLINK_HEADER + _USER)
    return int(user) if inode else None  # Of a socket that is closed, root would be told.


def _user_in_table(connection: socket.socket) -> int | None:
    """Return the user who has opened the other end, where sockets can't be asked about one by one."""
    row = _row_of_other_end(connection)
    return None if row is None or row[_INODE_FIELD] == "0" else int(row[_USER_FIELD])


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


def _ends_of(connection: socket.socket) -> list[tuple[bytes, int]]:
    """Return address and port of the other end and of this one."""
    return [
        (socket.inet_pton(connection.family, place[0].partition("%")[0]), place[1])
        for place in (connection.getpeername(), connection.getsockname())
    ]


def _row_of_other_end(connection: socket.socket) -> list[str] | None:
    """Return what the system's tables say of the socket at the other end."""
    ends = [(packed.removeprefix(_MAPPED), port) for packed, port in _ends_of(connection)]
    ports = [f":{port:04X}" for _, port in ends]
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                is_near = fields[1].endswith(ports[0]) and fields[2].endswith(ports[1])
                if is_near and [_end_in_table(field) for field in fields[1:3]] == ends:
                    return fields
    return None


def _end_in_table(field: str) -> tuple[bytes, int]:
    """Read an address and port of the tables: the address is in words of the machine's own byte order."""
    words, _, port = field.partition(":")
    packed = b"".join(int(words[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(words), 8))
    return packed.removeprefix(_MAPPED), int(port, 16)  # The two ends may write it differently.


def _owner(inode: str) -> int | None:
    wanted = f"socket:[{inode}]"
    for process in sorted(int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()):
        with suppress(OSError):  # Another user's, or it has just ended.
            for file in (_PROC / str(process) / "fd").iterdir():
                with suppress(OSError):
                    if str(file.readlink()) == wanted:
                        return process
    return None
