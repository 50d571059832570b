"""Waiting for several sockets at once: `select`, `poll` and the selectors that asyncio uses."""

from __future__ import annotations

import select as real
import selectors
from typing import Any

from worldline.programs.computer import Computer
from worldline.programs.reals import REAL, here

_Base: Any = selectors._BaseSelectorImpl
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

Ready = list[tuple[selectors.SelectorKey, int]]


class Selector(_Base):  # type: ignore[misc]
    """Waits for sockets of a computer.

    Only sockets that may have become ready since the last look are looked at, and those that were ready then. They are
    given in the order in which they became so.
    """

    def __init__(self) -> None:
        super().__init__()
        self._computer: Computer = here.computer
        self._candidates: dict[int, None] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key: selectors.SelectorKey = super().register(fileobj, events, data)
        try:
            self._computer.stack.endpoint(key.fd).watchers.append(self._note)
        except OSError:
            super().unregister(fileobj)
            raise
        self._note(key.fd)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key: selectors.SelectorKey = super().unregister(fileobj)
        self._candidates.pop(key.fd, None)
        stack = self._computer.stack
        if stack.has(key.fd):
            stack.endpoint(key.fd).watchers.remove(self._note)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._key_from_fd(self._fileobj_lookup(fileobj))
        if key is None:
            raise KeyError(f"{fileobj!r} is not registered")
        if (events, data) != (key.events, key.data):
            key = key._replace(events=events, data=data)
            self._fd_to_key[key.fd] = key
            self._note(key.fd)
        return key

    def _key_from_fd(self, fd: int) -> selectors.SelectorKey | None:
        return self._fd_to_key.get(fd)  # type: ignore[no-any-return]

    def select(self, timeout: float | None = None) -> Ready:
        computer = self._computer
        if timeout is not None and timeout <= 0:
            computer.glance()
            return self._ready() or []
        deadline = None if timeout is None else computer.stack.now + round(timeout * 1e9)
        return computer.wait(self._ready, deadline) or []

    def _note(self, descriptor: int) -> None:
        self._candidates[descriptor] = None

    def _ready(self) -> Ready | None:
        if not self._candidates:
            return None
        found: Ready = []
        endpoints, keys = self._computer.stack.endpoints, self._fd_to_key
        for descriptor in tuple(self._candidates):
            key, endpoint = keys.get(descriptor), endpoints.get(descriptor)
            events = 0
            if key is not None and endpoint is not None:
                wanted = key.events
                if wanted & _READ and endpoint.is_readable():
                    events |= _READ
                if wanted & _WRITE and endpoint.is_writable():
                    events |= _WRITE
            if events:
                found.append((key, events))
            else:
                del self._candidates[descriptor]
        return found or None


class DefaultSelector:
    """The selector for where a program runs: of its computer, or the real one."""

    def __new__(cls) -> Any:
        return REAL["selectors.DefaultSelector"]() if here.computer is None else Selector()


_IN, _OUT, _ERROR, _HANGUP = real.POLLIN, real.POLLOUT, real.POLLERR, real.POLLHUP


class Poll:
    """What `select.poll()` gives."""

    def __init__(self) -> None:
        self._computer: Computer = here.computer
        self._masks: dict[int, int] = {}

    def register(self, fd: Any, eventmask: int = _IN | _OUT | real.POLLPRI) -> None:
        descriptor = _descriptor(fd)
        self._computer.stack.endpoint(descriptor)
        self._masks[descriptor] = eventmask

    def modify(self, fd: Any, eventmask: int) -> None:
        descriptor = _descriptor(fd)
        if descriptor not in self._masks:
            raise FileNotFoundError(2, "No such file or directory")
        self._masks[descriptor] = eventmask

    def unregister(self, fd: Any) -> None:
        del self._masks[_descriptor(fd)]

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        computer = self._computer
        if timeout is not None and timeout == 0:
            computer.glance()
            return self._ready() or []
        forever = timeout is None or timeout < 0
        deadline = None if forever else computer.stack.now + round((timeout or 0) * 1e6)
        return computer.wait(self._ready, deadline) or []

    def _ready(self) -> list[tuple[int, int]] | None:
        found = []
        for descriptor, mask in self._masks.items():
            if not self._computer.stack.has(descriptor):
                found.append((descriptor, real.POLLNVAL))
                continue
            endpoint = self._computer.stack.endpoint(descriptor)
            events = (_IN if endpoint.is_readable() else 0) | (_OUT if endpoint.is_writable() else 0)
            if events & mask:
                found.append((descriptor, events & mask))
        return found or None


def poll() -> Any:
    """Return an object that waits for descriptors."""
    return REAL["select.poll"]() if here.computer is None else Poll()


def select(rlist: Any, wlist: Any, xlist: Any, timeout: float | None = None) -> tuple[list[Any], list[Any], list[Any]]:
    """Wait until some of these can be read from or written to."""
    computer: Computer | None = here.computer
    if computer is None:
        found: tuple[list[Any], list[Any], list[Any]] = REAL["select.select"](rlist, wlist, xlist, timeout)
        return found
    reading, writing = list(rlist), list(wlist)
    endpoint = computer.stack.endpoint

    def ready() -> tuple[list[Any], list[Any], list[Any]] | None:
        readable = [each for each in reading if endpoint(_descriptor(each)).is_readable()]
        writable = [each for each in writing if endpoint(_descriptor(each)).is_writable()]
        return (readable, writable, []) if readable or writable else None

    if timeout is not None and timeout <= 0:
        computer.glance()
        return ready() or ([], [], [])
    deadline = None if timeout is None else computer.stack.now + round(timeout * 1e9)
    return computer.wait(ready, deadline) or ([], [], [])


def _descriptor(given: Any) -> int:
    return given if isinstance(given, int) else int(given.fileno())
