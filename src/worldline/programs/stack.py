"""A computer's network as its programs see it: sockets and connections, with nothing of Python's `socket` in it.

The stack neither reads a clock nor sends. Its owner sets `now`, hands over what arrives (`hear`), lets time pass
(`pass_time`) up to `due`, and takes what is to be sent (`take_outgoing`). Calls of programs never wait: what would have
to wait raises `BlockingIOError`, as a socket that doesn't block does. Errors are those that Linux gives, by number.

This module is compiled, since every segment of a connection goes through it; `endpoints` and `ports` aren't.

S1. Everything written at one moment goes out when `take_outgoing` is called, in the order in which connections had
    something to say.
S2. What happens depends on calls and their times alone. Ports and connections are numbered in the order in which they
    are asked for, from a place that the incarnation shifts.
"""

from __future__ import annotations

import errno
from collections import Counter, deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from worldline.model.segments import OPENER, RST, SYN, Datagram, Segment, read_datagram, read_segment
from worldline.programs.ports import ANY, BROADCAST, LOOPBACK, Address, Directory, Ports, failure
from worldline.programs.tcp import SEGMENT_MAX, WINDOW, Connection, ConnectionState

LOOPBACK_NS = 10_000
"""How long what a computer sends to itself takes."""

_OPENING, _ANSWERING, _OPEN, _WAITING, _CLOSED = ConnectionState
_NEVER = 2**62
_READ, _WRITE = 1, 2  # What is waited for, as `selectors` numbers it.
_FIRST_DESCRIPTOR = 100_000  # Where no real one is.


def is_simulated(descriptor: int) -> bool:
    """Whether a descriptor is one that a stack has given."""
    return descriptor >= _FIRST_DESCRIPTOR


class Endpoint:
    """What a descriptor stands for. `watchers` are told when it may have become ready."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.holders = 0  # How many descriptors stand for it.
        self.descriptor = stack.claim(self)
        self.watchers: list[Callable[[], None]] = []
        self.options: dict[tuple[int, int], Any] = {}
        self.may_reuse = False
        self.shares = False  # Whether others may listen at its port, too.
        self.blocks = True  # For those that use it by its descriptor.

    def changed(self) -> None:
        """Tell those that watch it."""
        for watcher in self.watchers:
            watcher()

    def is_readable(self) -> bool:
        raise NotImplementedError

    def is_writable(self) -> bool:
        raise NotImplementedError

    def is_broken(self) -> bool:
        """Whether something went wrong of which the program wasn't told."""
        return False

    def is_hung_up(self) -> bool:
        """Whether nothing can be said or heard any more."""
        return False

    def hears_no_more(self) -> bool:
        """Whether nothing is added to what can be read."""
        return False

    def listens(self) -> bool:
        """Whether connections can be opened to it."""
        return False

    def take_error(self) -> int:
        """Return what went wrong since the last call; 0: nothing."""
        return 0

    def close(self) -> None:
        self.stack.release(self)


class Watch:
    """One endpoint that is waited for, by the descriptor that stood for it: that may come to stand for another."""

    def __init__(self, watches: Watches, endpoint: Endpoint, key: Any) -> None:
        self.endpoint = endpoint
        self.key = key
        self.events: int = key.events
        self._watches = watches

    def __call__(self) -> None:
        """Have it looked at."""
        self._watches.candidates[self] = None


class Watches:
    """What a selector waits for, by descriptor: what its user has said of each (a key), and for what it is to be ready.

    Only endpoints that may have become ready since the last look are looked at, and those that were ready then. They
    are given in the order in which they became so.
    """

    def __init__(self, stack: Stack) -> None:
        self.candidates: dict[Watch, None] = {}
        self._stack = stack
        self._all: dict[int, Watch] = {}

    def add(self, key: Any) -> None:
        endpoint = self._stack.endpoint(key.fd)
        self._all[key.fd] = watch = Watch(self, endpoint, key)
        endpoint.watchers.append(watch)
        watch()

    def change(self, key: Any) -> None:
        watch = self._all[key.fd]
        watch.key, watch.events = key, key.events
        watch()

    def remove(self, descriptor: int) -> None:
        watch = self._all.pop(descriptor)
        self.candidates.pop(watch, None)
        watch.endpoint.watchers.remove(watch)

    def ready(self) -> list[tuple[Any, int]] | None:
        """Return the keys of those that are ready, and for what."""
        if not self.candidates:
            return None
        found = []
        for watch in tuple(self.candidates):
            endpoint, events = watch.endpoint, 0
            if self._stack.endpoints.get(watch.key.fd) is endpoint:
                if watch.events & _READ and endpoint.is_readable():
                    events = _READ
                if watch.events & _WRITE and endpoint.is_writable():
                    events |= _WRITE
            if events:
                found.append((watch.key, events))
            else:
                del self.candidates[watch]
        return found or None


class StreamSocket(Endpoint):
    """A TCP socket: new, listening, or one end of a connection."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self.local: Address | None = None
        self.peer: Address | None = None
        self.connection: Connection | None = None
        self.accepted: list[StreamSocket] | None = None  # Of one that listens: connections to be accepted.
        self.backlog = 0
        self.is_shut = False  # Whether its program reads no more.
        self.has_told = False  # Whether its program knows that it is connected.
        self.aborts = False  # Whether closing breaks the connection off (SO_LINGER of 0).

    # --- Readiness ---

    def is_readable(self) -> bool:
        if self.accepted is not None:
            return bool(self.accepted)
        made = self.connection
        if made is None:
            return True  # As Linux says: to read from it fails at once.
        return bool(made.incoming.data or made.incoming.is_ended or made.error or self.is_shut) or (
            made.state is _CLOSED
        )

    def is_writable(self) -> bool:
        made = self.connection
        if made is None:
            return self.accepted is None
        if made.state in (_OPENING, _ANSWERING):
            return False
        return made.state is not _OPEN or made.out.is_ended or len(made.out.data) < WINDOW - SEGMENT_MAX

    def is_broken(self) -> bool:
        return self.connection is not None and bool(self.connection.error)

    def is_hung_up(self) -> bool:
        made = self.connection
        if made is None:
            return self.accepted is None
        return made.state is _CLOSED or (made.incoming.is_ended and made.out.is_ended)

    def hears_no_more(self) -> bool:
        made = self.connection
        return made is not None and (self.is_shut or made.incoming.is_ended or made.state is _CLOSED)

    def listens(self) -> bool:
        return self.accepted is not None

    def take_error(self) -> int:
        made = self.connection
        if made is None:
            return 0
        error, made.error = made.error, 0
        return error

    # --- Opening ---

    def bind(self, address: Address) -> None:
        if self.local is not None:
            raise failure(errno.EINVAL)
        self.local = self.stack.ports_of(self).bind(self, address)

    def listen(self, backlog: int) -> None:
        if self.connection is not None:
            raise failure(errno.EINVAL)
        if self.local is None:
            self.bind((ANY, 0))
        self.backlog = max(backlog, 0)
        if self.accepted is None:
            assert self.local is not None
            self.stack.ports_of(self).listen(self, self.local)
            self.accepted = []

    def connect(self, address: Address) -> None:
        """Begin to connect; raise what has become of it if that has begun before."""
        made = self.connection
        if self.accepted is not None:
            raise failure(errno.EISCONN)
        if made is None:
            if self.local is None:
                self.local = self.stack.ports_of(self).bind(self, (ANY, 0))
            self.peer = address
            self.connection = self.stack.open(self, address)
            raise failure(errno.EINPROGRESS)
        if made.state is _OPENING:
            raise failure(errno.EALREADY)
        if self.has_told:
            raise failure(errno.EISCONN)
        if made.state is _CLOSED:  # A connection that couldn't be made leaves the socket as it was.
            error = self.take_error() or errno.ECONNABORTED
            self.connection = self.peer = None
            raise failure(error)
        self.has_told = True

    def accept(self) -> StreamSocket:
        if self.accepted is None:
            raise failure(errno.EINVAL)
        if not self.accepted:
            raise failure(errno.EAGAIN)
        return self.accepted.pop(0)

    # --- Reading and writing ---

    def send(self, data: bytes | memoryview) -> int:
        made = self.connection
        if made is None:
            raise failure(errno.EPIPE)
        if made.state is _OPENING:
            raise failure(errno.EAGAIN)
        if error := self.take_error():
            raise failure(error)
        if made.state is not _OPEN or made.out.is_ended:
            raise failure(errno.EPIPE)
        taken = made.write(data)
        if not taken and len(data):
            raise failure(errno.EAGAIN)
        self.stack.has_to_say(made)
        return taken

    def receive(self, size: int, peek: bool = False) -> bytes:
        made = self.connection
        if made is None:
            raise failure(errno.ENOTCONN)
        if made.incoming.data and size:
            if peek:
                return bytes(made.incoming.data[:size])
            taken = made.read(size)
            if made.incoming.acks_now:
                self.stack.has_to_say(made)
            return taken
        if made.incoming.is_ended:
            return b""
        if error := self.take_error():
            raise failure(error)
        if self.is_shut or made.state is _CLOSED:
            return b""
        if not size and made.state is _OPEN:
            return b""
        raise failure(errno.EAGAIN)

    # --- Ending ---

    def shut_down(self, reading: bool, writing: bool) -> None:
        if self.accepted is not None:
            if reading:
                self._stop_listening()
            return
        made = self.connection
        if made is None or made.state in (_OPENING, _CLOSED, _WAITING):
            raise failure(errno.ENOTCONN)
        if reading:
            self.is_shut = made.is_deaf = True
        if writing:
            made.end_writing()
            self.stack.has_to_say(made)
        self.changed()

    def _stop_listening(self) -> None:
        assert self.accepted is not None
        assert self.local is not None
        accepted, self.accepted = self.accepted, None
        self.stack.ports_of(self).stop_listening(self, self.local)
        for each in accepted:
            assert each.connection is not None
            each.connection.reset()
            each.close()
        self.changed()

    def close(self) -> None:
        stack = self.stack
        if self.accepted is not None:
            self._stop_listening()
        if self.connection is not None:
            if self.aborts:
                self.connection.reset()
            self.connection.release()
            stack.has_to_say(self.connection)
        if self.local is not None:
            stack.ports_of(self).release(self, self.local)
        super().close()


class Stack:
    """The network of one computer, from its start until its power fails."""

    def __init__(self, name: str, directory: Directory, incarnation: int = 0, payload_max: int = 1 << 20) -> None:
        self.now = 0
        self.directory = directory
        self.address = directory.address(name) or LOOPBACK
        self.hostname = name
        self.endpoints: dict[int, Endpoint] = {}
        self._next_descriptor = _FIRST_DESCRIPTOR
        own = (self.address, LOOPBACK)
        self._tcp, self._udp = Ports(own, incarnation), Ports(own, incarnation)
        self._connections = Connections(self, incarnation, min(SEGMENT_MAX, payload_max - 64))
        self.paths: dict[str, Any] = {}  # Where Unix sockets are bound.
        self._outgoing: list[tuple[str, str, bytes]] = []
        self._looped: list[tuple[int, int, str, Segment | Datagram]] = []
        self._loops = 0

    def __repr__(self) -> str:
        return f"<stack of {self.hostname}, {self.address}>"

    # --- Sockets ---

    def endpoint(self, descriptor: int) -> Endpoint:
        """Return what a descriptor stands for."""
        try:
            return self.endpoints[descriptor]
        except KeyError:
            raise failure(errno.EBADF) from None

    def has(self, descriptor: int) -> bool:
        return descriptor in self.endpoints

    def claim(self, endpoint: Endpoint, descriptor: int | None = None) -> int:
        """Return a descriptor that stands for an endpoint, alone or besides others: a new one, or this."""
        if descriptor is None:
            while self._next_descriptor in self.endpoints:  # A program has chosen it.
                self._next_descriptor += 1
            descriptor = self._next_descriptor
            self._next_descriptor += 1
        self.endpoints[descriptor] = endpoint
        endpoint.holders += 1
        return descriptor

    def close(self, descriptor: int) -> None:
        """Give a descriptor back; the last one closes what it stands for."""
        endpoint = self.endpoint(descriptor)
        endpoint.holders -= 1
        if endpoint.holders:
            del self.endpoints[descriptor]
        else:
            endpoint.descriptor = descriptor
            endpoint.close()

    def release(self, endpoint: Endpoint) -> None:
        self.endpoints.pop(endpoint.descriptor, None)
        endpoint.changed()

    def close_all(self) -> None:
        """Close what a program has left open when it ended."""
        for endpoint in dict.fromkeys(self.endpoints.values()):
            endpoint.close()
        self.endpoints.clear()

    def ports_of(self, owner: Endpoint) -> Ports:
        return self._tcp if isinstance(owner, StreamSocket) else self._udp

    def is_lingering(self, owner: Endpoint, port: int) -> bool:
        """Whether a connection of this port hasn't quite ended."""
        return isinstance(owner, StreamSocket) and self._connections.has_port(port)

    def local_address(self, endpoint: Any) -> Address:
        """Return the address that a socket shows: one that is connected has a certain one."""
        if endpoint.local is None:
            return ANY, 0
        host, port = endpoint.local
        if host == ANY and endpoint.peer is not None:
            host = LOOPBACK if endpoint.peer[0].startswith("127.") else self.address
        return host, port

    # --- What goes out ---

    def open(self, owner: StreamSocket, address: Address) -> Connection:
        assert owner.local is not None
        return self._connections.open(owner, owner.local[1], self.resolved(address))

    def has_to_say(self, connection: Connection) -> None:
        self._connections.speaking[connection] = None

    def send_segment(self, segment: Segment, to: str) -> None:
        if self._is_own(to):
            self._loop(to, segment)
        elif (name := self.directory.name(to)) is not None:
            self._outgoing.append(("tcp", name, segment.encoded()))

    def send_datagram(self, sender: Endpoint | None, datagram: Datagram, to: str) -> None:
        if to == BROADCAST:
            self._outgoing += [
                ("udp", name, datagram.encoded()) for name in self.directory.names() if name != self.hostname
            ]
        elif self._is_own(own := self.resolved((to, 0))[0]):
            self._loop(own, datagram)
        elif (name := self.directory.name(to)) is not None:
            self._outgoing.append(("udp", name, datagram.encoded()))
        elif sender is not None:
            raise failure(errno.ENETUNREACH)

    def take_outgoing(self) -> list[tuple[str, str, bytes]]:
        """Return what is to be sent now: protocol, receiver and payload (S1)."""
        self._connections.put_out(self.now)
        taken, self._outgoing = self._outgoing, []
        return taken

    def _is_own(self, address: str) -> bool:
        return address == self.address or address.startswith("127.")

    def resolved(self, address: Address) -> Address:
        """Return where an address leads: that of no computer in particular, to this one."""
        return (LOOPBACK, address[1]) if address[0] in (ANY, "") else address

    def _loop(self, to: str, what: Segment | Datagram) -> None:
        self._loops += 1
        heappush(self._looped, (self.now + LOOPBACK_NS, self._loops, to, what))

    # --- What comes in ---

    @property
    def due(self) -> int:
        """When something happens here without anything arriving."""
        return min(self._looped[0][0] if self._looped else _NEVER, self._connections.due())

    def pass_time(self) -> None:
        """Do what is due by now."""
        while self._looped and self._looped[0][0] <= self.now:
            _, _, to, what = heappop(self._looped)
            source = LOOPBACK if to.startswith("127.") else self.address
            if isinstance(what, Segment):
                self._connections.hear(what, source, to)
            else:
                self._hear_datagram(what, source, to)
        self._connections.pass_time(self.now)

    def hear(self, protocol: str, sender: str, payload: bytes) -> None:
        """Take in a message that has arrived; damaged ones are dropped, as their checksum says."""
        source = self.directory.address(sender)
        if source is None:
            return
        if protocol == "tcp":
            if (segment := read_segment(payload)) is not None:
                self._connections.hear(segment, source, self.address)
        elif (datagram := read_datagram(payload)) is not None:
            self._hear_datagram(datagram, source, self.address)

    def listener(self, host: str, port: int) -> StreamSocket | None:
        found = self._tcp.listener(host, port)
        assert found is None or isinstance(found, StreamSocket)
        return found

    def _hear_datagram(self, datagram: Datagram, source: str, to: str) -> None:
        found: Any = self._udp.bound(to, datagram.target)
        if found is not None:
            found.hear(datagram, (source, datagram.source))
        elif not datagram.is_unreachable:
            answer = Datagram(datagram.target, datagram.source, is_unreachable=True)
            self.send_datagram(None, answer, source)


class Connections:
    """All connections of a computer: those of its programs, and those that have yet to end without one."""

    def __init__(self, stack: Stack, incarnation: int, segment_max: int) -> None:
        self._stack = stack
        self._all: dict[tuple[str, int, bool], Connection] = {}
        self._owners: dict[Connection, StreamSocket] = {}
        self._listeners: dict[Connection, StreamSocket] = {}  # Of connections that aren't there yet.
        self._opened = incarnation << 20
        self._segment_max = segment_max
        self._ports: Counter[int] = Counter()
        self._lingering: deque[Connection] = deque()
        # The timers of connections, by time. One that was put off is found to be so when its time has come.
        self._timers: list[tuple[int, int, Connection]] = []
        self._scheduled: dict[Connection, int] = {}
        self._timings = 0
        self.speaking: dict[Connection, None] = {}

    def due(self) -> int:
        """Return when the first timer runs out."""
        while self._timers:
            at, _, connection = self._timers[0]
            if connection.due() == at:
                return at
            heappop(self._timers)
            if self._scheduled.get(connection) == at:  # Otherwise an earlier one is there, too.
                del self._scheduled[connection]
                self._touched(connection)
        return _NEVER

    def has_port(self, port: int) -> bool:
        self._forget_expired()
        return self._ports[port] > 0

    def _forget_expired(self) -> None:
        while self._lingering and self._lingering[0].expires <= self._stack.now:
            self._forget(self._lingering.popleft())

    def open(self, owner: StreamSocket, port: int, to: Address) -> Connection:
        self._opened += 1
        made = self._made((to[0], self._opened, True), (port, to[1]))
        self._owners[made] = owner
        made.open()
        return made

    def put_out(self, now: int) -> None:
        """Let those speak that have something to say; that may give others something to say."""
        while self.speaking:
            speaking, self.speaking = self.speaking, {}
            for each in speaking:
                each.put_out(now)
                self._touched(each)

    def pass_time(self, now: int) -> None:
        while self.due() <= now:
            _, _, each = heappop(self._timers)
            self._scheduled.pop(each, None)
            each.pass_time(now)
            self.speaking[each] = None
            self._touched(each)

    def hear(self, segment: Segment, source: str, to: str) -> None:
        self._forget_expired()
        made = self._all.get((source, segment.connection, not segment.flags & OPENER))
        if made is not None:
            made.take(segment, self._stack.now)
            self.speaking[made] = None  # Then its timers are seen to; none that was set just now runs out before.
            if made.state is _CLOSED:
                self._forget(made)
        elif segment.flags & RST:
            return
        elif segment.flags & SYN and segment.flags & OPENER:
            self._answer(segment, source, to)
        else:
            self._refuse(segment, source)

    def _answer(self, segment: Segment, source: str, to: str) -> None:
        listener = self._stack.listener(to, segment.target)
        if listener is None or listener.accepted is None:
            self._refuse(segment, source)
            return
        waiting = len(listener.accepted) + sum(each is listener for each in self._listeners.values())
        if waiting > listener.backlog:
            return  # As Linux does: the other end tries again.
        made = self._made((source, segment.connection, False), (segment.target, segment.source))
        self._listeners[made] = listener
        made.answer()

    def _refuse(self, segment: Segment, source: str) -> None:
        flags = RST | (0 if segment.flags & OPENER else OPENER)
        answer = Segment(flags, segment.target, segment.source, segment.connection, 0, segment.sequence, 0)
        self._stack.send_segment(answer, source)

    def _made(self, identity: tuple[str, int, bool], ports: tuple[int, int]) -> Connection:
        made = Connection(identity, ports, self._emit, self._changed, self._segment_max)
        self._all[identity] = made
        self._ports[ports[0]] += 1
        self.speaking[made] = None
        return made

    def _emit(self, connection: Connection, segment: Segment) -> None:
        self._stack.send_segment(segment, connection.identity[0])

    def _changed(self, connection: Connection) -> None:
        listener = self._listeners.get(connection)
        if listener is not None and connection.state is _OPEN:
            del self._listeners[connection]
            self._accept(connection, listener)
        owner = self._owners.get(connection)
        if owner is not None:
            owner.changed()

    def _accept(self, connection: Connection, listener: StreamSocket) -> None:
        if listener.accepted is None or not self._stack.has(listener.descriptor):
            connection.reset()
            return
        made = StreamSocket(self._stack)
        made.connection = connection
        made.local = (LOOPBACK if connection.identity[0] == LOOPBACK else self._stack.address, connection.ports[0])
        made.peer = (connection.identity[0], connection.ports[1])
        made.has_told = True
        self._owners[connection] = made
        listener.accepted.append(made)
        listener.changed()

    def _touched(self, connection: Connection) -> None:
        """Something has happened to a connection: see to its timers, or forget it if it is over."""
        due = connection.due()
        if due < self._scheduled.get(connection, _NEVER):
            self._timings += 1
            self._scheduled[connection] = due
            heappush(self._timers, (due, self._timings, connection))
        if connection.expires < _NEVER and connection not in self._lingering:
            self._lingering.append(connection)
        if connection.state is _CLOSED:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        if self._all.pop(connection.identity, None) is not None:
            self._ports[connection.ports[0]] -= 1
            self._owners.pop(connection, None)
            self._listeners.pop(connection, None)
            self._scheduled.pop(connection, None)
