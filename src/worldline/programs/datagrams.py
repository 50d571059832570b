"""Sockets of UDP."""

from __future__ import annotations

import errno

from worldline.model.segments import DATAGRAM_MAX, Datagram
from worldline.programs.ports import ANY, Address, failure
from worldline.programs.stack import Endpoint, Stack

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
