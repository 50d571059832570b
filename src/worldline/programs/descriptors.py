"""What programs do with descriptors: pipes, and sockets that are read, written, copied and closed by number.

A descriptor of a computer's own is none of the process's, so the functions of `os` and `fcntl` are given it here;
others are for real files.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from worldline.programs.endpoints import pair
from worldline.programs.ports import failure
from worldline.programs.reals import for_programs, here, stands_in
from worldline.programs.sockets import Socket
from worldline.programs.stack import is_simulated


@contextmanager
def _borrowed(descriptor: int) -> Iterator[Socket]:
    """Lend a socket that stands for a descriptor."""
    made = _socket(descriptor)
    try:
        yield made
    finally:
        made.detach()


def _socket(descriptor: int) -> Socket:
    blocks = _endpoint(descriptor).blocks
    made = Socket(fileno=descriptor)  # With the default timeout of sockets, which pipes and files haven't.
    made.settimeout(None if blocks else 0.0)
    return made


def _endpoint(descriptor: int) -> Any:
    return here.computer.stack.endpoint(descriptor)


def _read(descriptor: int, size: int) -> bytes:
    with _borrowed(descriptor) as made:
        return made.recv(size)


def _write(descriptor: int, data: Any) -> int:
    with _borrowed(descriptor) as made:
        if made.gettimeout() == 0.0:
            return made.send(data)
        made.sendall(data)
        return memoryview(data).nbytes


def _close(descriptor: int) -> None:
    here.computer.stack.close(descriptor)


def _dup(descriptor: int) -> int:
    return int(here.computer.stack.claim(_endpoint(descriptor)))


def _dup2(descriptor: int, to: int, inheritable: bool = True) -> int:  # noqa: ARG001 - nothing inherits it
    stack = here.computer.stack
    endpoint = stack.endpoint(descriptor)
    if to < 0:
        raise failure(errno.EBADF)
    if descriptor != to:
        if stack.has(to):
            stack.close(to)
        stack.claim(endpoint, to)
    return to


def _readv(descriptor: int, buffers: Any) -> int:
    views = [memoryview(each).cast("B") for each in buffers]
    found = left = _read(descriptor, sum(map(len, views)))
    for view in views:
        part, left = left[: len(view)], left[len(view) :]
        view[: len(part)] = part
    return len(found)


def _writev(descriptor: int, buffers: Any) -> int:
    return _write(descriptor, b"".join(buffers))


def _no_place(*_: Any) -> Any:
    raise failure(errno.ESPIPE)


def _set_blocking(descriptor: int, blocking: bool) -> None:
    _endpoint(descriptor).blocks = bool(blocking)


def _fdopen(
    descriptor: int, mode: str = "r", buffering: int = -1, encoding: str | None = None, *rest: Any, **named: Any
) -> Any:
    errors, newline = (*rest, None, None)[:2]
    texts = {"errors": errors, "newline": newline, **named}
    made = _socket(descriptor if texts.pop("closefd", True) else _dup(descriptor))
    file = made.makefile(mode, None if buffering < 0 else buffering, encoding=encoding, **texts)
    made.close()  # The file has it.
    return file


def _fcntl(descriptor: int, command: int, argument: Any = 0) -> Any:
    endpoint = _endpoint(descriptor)
    if command in (fcntl.F_GETFD, fcntl.F_SETFD):  # No other process inherits it.
        return fcntl.FD_CLOEXEC if command == fcntl.F_GETFD else 0
    if command == fcntl.F_GETFL:
        return os.O_RDWR | (0 if endpoint.blocks else os.O_NONBLOCK)
    if command != fcntl.F_SETFL:
        raise failure(errno.EINVAL)
    endpoint.blocks = not argument & os.O_NONBLOCK
    return 0


def _ioctl(*_: Any) -> Any:
    raise failure(errno.ENOTTY)


def _of_own(real: Callable[..., Any], simulated: Callable[..., Any]) -> Any:
    """Have a function of a descriptor do something else if it is one of a computer's."""

    def call(fd: Any, *given: Any, **named: Any) -> Any:
        computer = here.computer
        if computer is not None:
            number = fd if isinstance(fd, int) else getattr(fd, "fileno", int)()
            if computer.stack.has(number):
                return simulated(number, *given, **named)
        if simulated is _close and (computer is None or computer.over is not None) and is_simulated(fd):
            return None  # Its computer is no more, and something had it still.
        return real(fd, *given, **named)

    return stands_in(call, real)


def _sendfile(real: Callable[..., int], computer: Any, out_fd: int, in_fd: int, offset: int | None, count: int) -> int:
    if not computer.stack.has(out_fd):
        return real(out_fd, in_fd, offset, count)
    if offset is not None:
        return _write(out_fd, os.pread(in_fd, count, offset))
    start = os.lseek(in_fd, 0, os.SEEK_CUR)
    sent = _write(out_fd, os.pread(in_fd, count, start))
    os.lseek(in_fd, start + sent, os.SEEK_SET)
    return sent


def _pipe(real: Callable[..., tuple[int, int]], computer: Any, *flags: int) -> tuple[int, int]:
    if "processes" in computer.workspace.allowed:  # It may lead to one.
        return real(*flags)
    reading, writing = pair(computer.stack)
    for end in (reading, writing):
        end.blocks = not any(flag & os.O_NONBLOCK for flag in flags)
    return reading.descriptor, writing.descriptor


def stand_ins() -> dict[Any, dict[str, Any]]:
    """Return what stands in for which names of which modules."""
    simulated: dict[Any, dict[str, Callable[..., Any]]] = {
        os: {
            "read": _read,
            "write": _write,
            "close": _close,
            "dup": _dup,
            "dup2": _dup2,
            "readv": _readv,
            "writev": _writev,
            **dict.fromkeys(("pread", "pwrite", "preadv", "pwritev", "lseek"), _no_place),
            "fdopen": _fdopen,
            "isatty": lambda _: False,
            "set_blocking": _set_blocking,
            "get_blocking": lambda descriptor: _endpoint(descriptor).blocks,
            "set_inheritable": lambda *_: None,
            "get_inheritable": lambda _: False,
        },
        socket: {"dup": _dup, "close": _close},
        fcntl: {"fcntl": _fcntl, "ioctl": _ioctl},
    }
    made = {
        module: {name: _of_own(getattr(module, name), simulates) for name, simulates in names.items()}
        for module, names in simulated.items()
    }
    made[os] |= {name: for_programs(getattr(os, name), partial(_pipe, getattr(os, name))) for name in ("pipe", "pipe2")}
    made[os]["sendfile"] = for_programs(os.sendfile, partial(_sendfile, os.sendfile))
    return made
