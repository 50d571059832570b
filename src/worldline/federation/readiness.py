"""Which sockets are ready: what `selectors` tells, by one call of the system where there is epoll.

`selectors` makes an object for each socket that is ready, in Python; a server asks a hundred thousand times a second.
"""

from __future__ import annotations

import select
import selectors
import socket
from collections.abc import Callable

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

_POLLED = {READ: 0x001, WRITE: 0x004, READ | WRITE: 0x005}  # EPOLLIN, EPOLLOUT: the same on every Linux.


class PolledSockets:
    """Sockets, each with what is to be done when it is ready."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._actions: dict[int, Callable[[], None]] = {}

    def register(self, which: socket.socket, events: int, action: Callable[[], None]) -> None:
        number = which.fileno()
        self._epoll.register(number, _POLLED[events])
        self._actions[number] = action

    def modify(self, which: socket.socket, events: int) -> None:
        self._epoll.modify(which.fileno(), _POLLED[events])

    def unregister(self, which: socket.socket) -> None:
        number = which.fileno()
        del self._actions[number]
        self._epoll.unregister(number)

    def ready(self, seconds: float) -> list[Callable[[], None]]:
        """Return what is to be done now; wait for something, for so long at the most."""
        polled = self._epoll.poll(seconds)
        return [self._actions[number] for number, _ in polled] if polled else []

    def close(self) -> None:
        self._epoll.close()


class SelectedSockets:
    """The same, as `selectors` has it."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, which: socket.socket, events: int, action: Callable[[], None]) -> None:
        self._selector.register(which, events, action)

    def modify(self, which: socket.socket, events: int) -> None:
        self._selector.modify(which, events, self._selector.get_key(which).data)

    def unregister(self, which: socket.socket) -> None:
        self._selector.unregister(which)

    def ready(self, seconds: float) -> list[Callable[[], None]]:
        return [key.data for key, _ in self._selector.select(seconds)]

    def close(self) -> None:
        self._selector.close()


SocketWatch = PolledSockets if hasattr(select, "epoll") else SelectedSockets
