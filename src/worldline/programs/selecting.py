"""Waiting for several sockets at once: `select`, `poll` and the selectors that asyncio uses."""

from __future__ import annotations

import errno
import select as real
import selectors
from collections.abc import Callable
from functools import partial
from typing import Any

from worldline.programs.computer import Computer
from worldline.programs.deadlocks import ANY_TASK
from worldline.programs.endpoints import PipeEnd
from worldline.programs.ports import failure
from worldline.programs.reals import REAL, here
from worldline.programs.stack import Endpoint, Watches

_Base: Any = selectors._BaseSelectorImpl

Ready = list[tuple[selectors.SelectorKey, int]]


class _Registered:
    """What a descriptor stood for when it was registered: it may come to stand for something else."""

    def __init__(self, endpoint: Endpoint, watcher: Callable[[], None]) -> None:
        self.endpoint = endpoint
        self._watcher = watcher
        endpoint.watchers.append(watcher)

    def end(self) -> None:
        self.endpoint.watchers.remove(self._watcher)


class Selector(_Base):  # type: ignore[misc]
    """Waits for sockets of a computer; where no program runs, this makes the system's."""

    def __new__(cls) -> Any:
        return REAL["selectors.DefaultSelector"]() if here.computer is None else super().__new__(cls)

    def __init__(self) -> None:
        super().__init__()
        self._computer: Computer = here.computer
        self._watches = Watches(self._computer.stack)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key: selectors.SelectorKey = super().register(fileobj, events, data)
        try:
            self._watches.add(key)
        except OSError:
            super().unregister(fileobj)
            raise
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key: selectors.SelectorKey = super().unregister(fileobj)
        self._watches.remove(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._key_from_fd(self._fileobj_lookup(fileobj))
        if key is None:
            raise KeyError(f"{fileobj!r} is not registered")
        if (events, data) != (key.events, key.data):
            key = key._replace(events=events, data=data)
            self._fd_to_key[key.fd] = key
            self._watches.change(key)
        return key

    def close(self) -> None:
        for descriptor in self._fd_to_key:
            self._watches.remove(descriptor)
        super().close()

    def _key_from_fd(self, fd: int) -> selectors.SelectorKey | None:
        return self._fd_to_key.get(fd)  # type: ignore[no-any-return]

    def select(self, timeout: float | None = None) -> Ready:
        computer, ready = self._computer, self._watches.ready
        if timeout is not None and timeout <= 0:
            computer.glance()
            return ready() or []
        deadline = None if timeout is None else computer.stack.now + round(timeout * 1e9)
        return computer.wait(ready, deadline, self._inside) or []

    def _inside(self) -> str | None:
        """Say that only the program's own threads can end a wait: there are only pipes between them."""
        endpoints = self._computer.stack.endpoints
        for descriptor in reversed(self._fd_to_key):  # asyncio's own pipe comes first.
            if not isinstance(endpoints.get(descriptor), PipeEnd):
                return None
        return ANY_TASK


_IN, _OUT, _ERROR, _HANGUP, _ENDED = real.POLLIN, real.POLLOUT, real.POLLERR, real.POLLHUP, real.POLLRDHUP


def _events(endpoint: Endpoint, mask: int) -> int:
    """Return what `poll` and `epoll`, whose numbers are the same, say of an endpoint."""
    found = (_IN if endpoint.is_readable() else 0) | (_OUT if endpoint.is_writable() else 0)
    found |= _ENDED if endpoint.hears_no_more() else 0
    always = (_ERROR if endpoint.is_broken() else 0) | (_HANGUP if endpoint.is_hung_up() else 0)
    return found & mask | always


class Poll:
    """What `select.poll()` gives."""

    def __init__(self) -> None:
        self._computer: Computer = here.computer
        self._masks: dict[int, int] = {}

    def register(self, fd: Any, eventmask: int = _IN | _OUT | real.POLLPRI) -> None:
        self._masks[_descriptor(fd)] = eventmask

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
            if events := _events(self._computer.stack.endpoint(descriptor), mask):
                found.append((descriptor, events))
        return found or None


def poll() -> Any:
    """Return an object that waits for descriptors."""
    return REAL["select.poll"]() if here.computer is None else Poll()


class _Watch(Endpoint):
    """What the descriptor of an epoll object stands for: others may wait for it, too."""

    def __init__(self, stack: Any, ready: Callable[[], Any], watched: Callable[[], list[Endpoint]]) -> None:
        super().__init__(stack)
        self._ready = ready
        self._watched = watched

    def is_readable(self) -> bool:
        return bool(self._ready())

    def is_writable(self) -> bool:
        return False

    def waits_for(self, other: Endpoint) -> bool:
        """Whether it watches something, or what watches it."""
        return any(each is other or (isinstance(each, _Watch) and each.waits_for(other)) for each in self._watched())


class Epoll:
    """What `select.epoll()` gives."""

    def __init__(self, sizehint: int = -1, flags: int = 0) -> None:
        self._computer: Computer = here.computer
        self._masks: dict[int, int] = {}
        self._told: dict[int, int] = {}  # What was said of those that are told of changes alone.
        self._watched: dict[int, _Registered] = {}
        self._watch = _Watch(self._computer.stack, self._ready, self._endpoints)
        self.closed = False

    def fileno(self) -> int:
        self._check()
        return self._watch.descriptor

    def close(self) -> None:
        if not self.closed:
            for fd in list(self._masks):
                self._forget(fd)
            self.closed = True
            self._computer.stack.close(self._watch.descriptor)

    def __enter__(self) -> Epoll:
        self._check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def register(self, fd: Any, eventmask: int = _IN | _OUT | real.POLLPRI) -> None:
        descriptor = self._another(fd)
        endpoint = self._computer.stack.endpoint(descriptor)
        if isinstance(endpoint, _Watch) and endpoint.waits_for(self._watch):
            raise failure(errno.ELOOP)
        if self._endpoint(descriptor) is not None:
            raise failure(errno.EEXIST)
        self._masks[descriptor] = eventmask
        self._watched[descriptor] = _Registered(endpoint, partial(self._note, descriptor))
        self._note(descriptor)

    def modify(self, fd: Any, eventmask: int) -> None:
        descriptor = self._registered(fd)
        self._masks[descriptor] = eventmask
        self._note(descriptor)

    def unregister(self, fd: Any) -> None:
        self._forget(self._registered(fd))

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        self._check()
        if maxevents != -1 and maxevents <= 0:
            raise ValueError(f"maxevents must be greater than 0, got {maxevents}")
        computer = self._computer
        if timeout == 0:
            computer.glance()
            found = self._ready()
        else:
            forever = timeout is None or timeout < 0
            found = computer.wait(self._ready, None if forever else computer.stack.now + round((timeout or 0) * 1e9))
        found = (found or [])[: None if maxevents < 0 else maxevents]
        for descriptor, events in found:
            mask = self._masks.pop(descriptor)
            self._masks[descriptor] = 0 if mask & real.EPOLLONESHOT else mask  # Others are told of first the next time.
            if mask & real.EPOLLET:
                self._told[descriptor] = events
        return found

    def _ready(self) -> list[tuple[int, int]] | None:
        found = []
        for descriptor, mask in list(self._masks.items()):
            endpoint = self._endpoint(descriptor)
            if endpoint is None or not mask:
                continue
            if (events := _events(endpoint, mask)) and self._told.get(descriptor) != events:
                found.append((descriptor, events))
        return found or None

    def _endpoint(self, descriptor: int) -> Endpoint | None:
        """Return what is watched by a number, unless the number stands for something else by now."""
        watched = self._watched.get(descriptor)
        if watched is None or self._computer.stack.endpoints.get(descriptor) is watched.endpoint:
            return None if watched is None else watched.endpoint
        self._forget(descriptor)
        return None

    def _endpoints(self) -> list[Endpoint]:
        return [each for descriptor in list(self._masks) if (each := self._endpoint(descriptor)) is not None]

    def _note(self, descriptor: int) -> None:
        self._told.pop(descriptor, None)
        self._watch.changed()

    def _forget(self, descriptor: int) -> None:
        del self._masks[descriptor]
        self._watched.pop(descriptor).end()
        self._told.pop(descriptor, None)

    def _registered(self, fd: Any) -> int:
        descriptor = self._another(fd)
        if self._endpoint(descriptor) is None:
            raise failure(errno.ENOENT if self._computer.stack.has(descriptor) else errno.EBADF)
        return descriptor

    def _another(self, fd: Any) -> int:
        """Return the number of what may be watched: not its own."""
        self._check()
        descriptor = _descriptor(fd)
        if self._computer.stack.endpoints.get(descriptor) is self._watch:
            raise failure(errno.EINVAL)
        return descriptor

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed epoll object")


class EpollMaker:
    """What makes such an object where a program runs; elsewhere, a real one."""

    def __new__(cls, *given: Any, **named: Any) -> Any:
        return REAL["select.epoll"](*given, **named) if here.computer is None else Epoll(*given, **named)


def select(rlist: Any, wlist: Any, xlist: Any, timeout: float | None = None) -> tuple[list[Any], list[Any], list[Any]]:
    """Wait until some of these can be read from or written to."""
    computer: Computer | None = here.computer
    if computer is None:
        found: tuple[list[Any], list[Any], list[Any]] = REAL["select.select"](rlist, wlist, xlist, timeout)
        return found
    if timeout is not None and timeout < 0:
        raise ValueError("timeout must be non-negative")
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
    if not isinstance(given, int) and not hasattr(given, "fileno"):
        raise TypeError("argument must be an int, or have a fileno() method.")
    found = given if isinstance(given, int) else int(given.fileno())
    if found < 0:
        raise ValueError(f"file descriptor cannot be a negative integer ({found})")
    return found
