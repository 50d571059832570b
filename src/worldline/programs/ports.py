"""Addresses, ports and names of computers, and which socket has which."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any, Protocol

Address = tuple[str, int]

ANY, LOOPBACK = "0.0.0.0", "127.0.0.1"
BROADCAST = "255.255.255.255"

_EPHEMERAL, _EPHEMERAL_END = 49_152, 65_536
_EPHEMERAL_SHIFT = 997  # By incarnation, so that a new one doesn't meet what the other ends remember of the last one.


def failure(number: int) -> OSError:
    """Return the error that Linux would give."""
    return OSError(number, os.strerror(number))


class Directory:
    """The names of a network's computers, and their addresses: 10.0.0.1 for the first in alphabetical order."""

    def __init__(self, names: Sequence[str]) -> None:
        self._addresses = {name: _address(place) for place, name in enumerate(sorted(names), 1)}
        self._names = {address: name for name, address in self._addresses.items()}

    def address(self, name: str) -> str | None:
        """Return the address of a computer."""
        found = self._addresses.get(name)
        return self._addresses.get(name.rstrip(".").lower()) if found is None else found

    def name(self, address: str) -> str | None:
        """Return which computer has an address."""
        return self._names.get(address)

    def names(self) -> list[str]:
        return list(self._addresses)


def _address(place: int) -> str:
    return f"10.{place >> 16}.{place >> 8 & 255}.{place & 255}"


def is_address(text: str) -> bool:
    """Whether a text is an IPv4 address, and not a name."""
    parts = text.split(".")
    return len(parts) == 4 and all(part.isdecimal() and int(part) < 256 for part in parts)


class Owner(Protocol):
    """What may have a port: a socket."""

    stack: Any
    may_reuse: bool
    shares: bool

    def listens(self) -> bool:
        """Whether connections can be opened to it."""


class Ports:
    """The ports of one protocol: which socket has which."""

    def __init__(self, own: Sequence[str], incarnation: int) -> None:
        self._own = own
        self._bound: dict[int, list[tuple[str, Owner]]] = {}
        self._listening: dict[int, list[tuple[str, Owner]]] = {}
        self._next = _EPHEMERAL + incarnation * _EPHEMERAL_SHIFT % (_EPHEMERAL_END - _EPHEMERAL)

    def bind(self, owner: Owner, address: Address) -> Address:
        """Give a socket a port, any that is free if it is 0; return its address."""
        host, port = address
        if host != ANY and host not in self._own and not host.startswith("127."):
            raise failure(errno.EADDRNOTAVAIL)
        if not port:
            port = self._free(owner)
        elif self._is_taken(owner, host, port):
            raise failure(errno.EADDRINUSE)
        self._bound.setdefault(port, []).append((host, owner))
        return host, port

    def _is_taken(self, owner: Owner, host: str, port: int) -> bool:
        if not owner.may_reuse and owner.stack.is_lingering(owner, port):
            return True
        return any(_clash(host, owner, *each) for each in self._bound.get(port, ()))

    def listen(self, owner: Owner, address: Address) -> None:
        """Let a bound socket have the connections that are opened to its port."""
        host, port = address
        there = self._listening.get(port, ())
        if any(_overlap(host, other) and not (owner.shares and each.shares) for other, each in there):
            raise failure(errno.EADDRINUSE)
        self._listening.setdefault(port, []).append((host, owner))

    def stop_listening(self, owner: Owner, address: Address) -> None:
        _take_out(self._listening, owner, address[1])

    def release(self, owner: Owner, address: Address) -> None:
        _take_out(self._bound, owner, address[1])
        _take_out(self._listening, owner, address[1])

    def bound(self, host: str, port: int) -> Owner | None:
        return _found(self._bound, host, port)

    def listener(self, host: str, port: int) -> Owner | None:
        return _found(self._listening, host, port)

    def _free(self, owner: Owner) -> int:
        for _ in range(_EPHEMERAL, _EPHEMERAL_END):
            port = self._next
            self._next = port + 1 if port + 1 < _EPHEMERAL_END else _EPHEMERAL
            if port not in self._bound and not owner.stack.is_lingering(owner, port):
                return port
        raise failure(errno.EADDRINUSE)


def _take_out(table: dict[int, list[tuple[str, Owner]]], owner: Owner, port: int) -> None:
    left = [each for each in table.get(port, ()) if each[1] is not owner]
    if left:
        table[port] = left
    else:
        table.pop(port, None)


def _overlap(one: str, other: str) -> bool:
    return one == other or ANY in (one, other)


def _clash(host: str, owner: Owner, other_host: str, other: Owner) -> bool:
    """Whether two sockets can't have one port: as on Linux, two that may be reused can, unless one listens."""
    if not _overlap(host, other_host):
        return False
    if owner.shares and other.shares:
        return False
    return other.listens() or not (owner.may_reuse and other.may_reuse)


def _found(table: dict[int, list[tuple[str, Owner]]], host: str, port: int) -> Owner | None:
    exact = None
    for bound, owner in table.get(port, ()):
        if bound == host:
            return owner
        if bound == ANY:
            exact = owner
    return exact
