"""What else a descriptor may stand for besides a connection of TCP: UDP's sockets; and pipes, pairs and Unix sockets.

The last three connect a computer's programs with each other, at once.
"""

from __future__ import annotations

import errno

from worldline.model.segments import DATAGRAM_MAX, Datagram
from worldline.programs.ports import ANY, Address, failure
from worldline.programs.stack import Endpoint, Stack
from worldline.programs.tcp import WINDOW

_DATAGRAMS_MAX = 256 * 1024  # Bytes that wait for a program; Linux has about as many, and loses what comes then.


class DatagramSocket(Endpoint):
    """A UDP socket."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self.local: Address | None = None
        self.peer: Address | None = None
        self.queue: list[tuple[bytes, Address]] = []
        self.size = 0
        self.error = 0
        self.is_shut = False
        self.is_mute = False  # Whether its program sends no more.

    def is_readable(self) -> bool:
        return bool(self.queue or self.error or self.is_shut)

    def is_writable(self) -> bool:
        return True

    def is_broken(self) -> bool:
        return bool(self.error)

    def take_error(self) -> int:
        error, self.error = self.error, 0
        return error

    def bind(self, address: Address) -> None:
        if self.local is not None:
            raise failure(errno.EINVAL)
        self.local = self.stack.ports_of(self).bind(self, address)

    def connect(self, address: Address | None) -> None:
        self._bind_anywhere()
        self.peer = None if address is None else self.stack.resolved(address)

    def send(self, data: bytes, to: Address | None = None) -> int:
        if error := self.take_error():
            raise failure(error)
        target = self.peer if to is None else to
        if target is None:
            raise failure(errno.EDESTADDRREQ)
        if not target[1]:
            raise failure(errno.EINVAL)
        if self.is_mute:
            raise failure(errno.EPIPE)
        if len(data) > DATAGRAM_MAX:
            raise failure(errno.EMSGSIZE)
        self._bind_anywhere()
        assert self.local is not None
        self.stack.send_datagram(self, Datagram(self.local[1], target[1], data), target[0])
        return len(data)

    def receive(self, peek: bool = False) -> tuple[bytes, Address]:
        if error := self.take_error():
            raise failure(error)
        if not self.queue:
            if self.is_shut:
                return b"", ("", 0)
            raise failure(errno.EAGAIN)
        if peek:
            return self.queue[0]
        taken = self.queue.pop(0)
        self.size -= len(taken[0])
        return taken

    def hear(self, datagram: Datagram, source: Address) -> None:
        """Take in what has arrived for its port."""
        if self.peer is not None and self.peer != source:
            return
        if datagram.is_unreachable:
            if self.peer is None:  # As on Linux, only a socket that is connected is told.
                return
            self.error = errno.ECONNREFUSED
        elif self.size + len(datagram.data) > _DATAGRAMS_MAX:
            return
        else:
            self.queue.append((datagram.data, source))
            self.size += len(datagram.data)
        self.changed()

    def shut_down(self, reading: bool, writing: bool) -> None:
        if self.peer is None:
            raise failure(errno.ENOTCONN)
        self.is_shut = self.is_shut or reading
        self.is_mute = self.is_mute or writing
        self.changed()

    def close(self) -> None:
        if self.local is not None:
            self.stack.ports_of(self).release(self, self.local)
            self.local = None
        super().close()

    def _bind_anywhere(self) -> None:
        if self.local is None:
            self.bind((ANY, 0))


class PipeEnd(Endpoint):
    """One of two sockets of one computer that are connected with each other, at once."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self.data = bytearray()
        self.other: PipeEnd | None = None
        self.is_ended = False  # Whether the other end writes no more.
        self.is_closed = False

    def is_readable(self) -> bool:
        return bool(self.data) or self.is_ended

    def is_writable(self) -> bool:
        return self.other is None or len(self.other.data) < WINDOW

    def is_hung_up(self) -> bool:
        return self.other is not None and self.other.is_closed

    def hears_no_more(self) -> bool:
        return self.is_ended

    def send(self, data: bytes | memoryview) -> int:
        other = self.other
        if other is None or other.is_closed or other.is_ended:
            raise failure(errno.EPIPE)
        room = WINDOW - len(other.data)
        if room <= 0:
            raise failure(errno.EAGAIN)
        other.data += data[:room]
        other.changed()
        return min(len(data), room)

    def receive(self, size: int, peek: bool = False) -> bytes:
        if not self.data:
            if self.is_ended:
                return b""
            raise failure(errno.EAGAIN)
        taken = bytes(self.data[:size])
        if not peek:
            del self.data[:size]
            if self.other is not None:
                self.other.changed()
        return taken

    def shut_down(self, reading: bool, writing: bool) -> None:
        if reading:
            self.is_ended = True
            self.changed()
        if writing and self.other is not None:
            self.other.is_ended = True
            self.other.changed()

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.shut_down(True, True)
            super().close()


class LocalSocket(PipeEnd):
    """A Unix socket: new, listening at a path, or connected at once with another of the same computer."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self.path = ""
        self.peer_path = ""
        self._place = ""
        self.accepted: list[LocalSocket] | None = None

    def is_readable(self) -> bool:
        return bool(self.accepted) if self.accepted is not None else super().is_readable()

    def bind(self, path: str, place: str) -> None:
        """Have what connects to a path: `place` is where that leads."""
        if self.path or not path:
            raise failure(errno.EINVAL)
        if place in self.stack.paths:
            raise failure(errno.EADDRINUSE)
        self.stack.paths[place] = self
        self.path, self._place = path, place

    def listen(self, _backlog: int) -> None:
        if not self.path or self.other is not None:
            raise failure(errno.EINVAL)
        self.accepted = [] if self.accepted is None else self.accepted

    def connect(self, path: str, place: str) -> None:
        if self.other is not None:
            raise failure(errno.EISCONN)
        listener = self.stack.paths.get(place)
        if listener is None or listener.accepted is None:
            raise failure(errno.ENOENT if listener is None else errno.ECONNREFUSED)
        other = LocalSocket(self.stack)
        other.other, self.other = self, other
        other.path, other.peer_path, self.peer_path = path, self.path, path
        listener.accepted.append(other)
        listener.changed()

    def accept(self) -> LocalSocket:
        if self.accepted is None:
            raise failure(errno.EINVAL)
        if not self.accepted:
            raise failure(errno.EAGAIN)
        return self.accepted.pop(0)

    def close(self) -> None:
        for each in self.accepted or ():
            each.close()
        if self.stack.paths.get(self._place) is self:
            del self.stack.paths[self._place]
        super().close()


def pair(stack: Stack) -> tuple[PipeEnd, PipeEnd]:
    """Return two ends that are connected."""
    one, other = PipeEnd(stack), PipeEnd(stack)
    one.other, other.other = other, one
    return one, other
