"""The server's end of one connection: a non-blocking socket, encrypted or not, and the session that it belongs to.

A connection ends in good order: what is still to be said is sent, then the other end is told that nothing more comes,
and what it still says is read and forgotten until it goes. Closing with something unread would take back from it what
it was told last: why.
"""

from __future__ import annotations

import errno
import select
import socket
import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from worldline.federation.participant.connection import Eagerness, MonotonicClock
from worldline.federation.peer_process import is_another_users, is_stopped, process_of
from worldline.federation.server.host import EVENTS_AT_ONCE, Host
from worldline.federation.server.limits import files_left, no_file_left
from worldline.federation.server.operating import OperatorDesk
from worldline.federation.server.session import OtherEnd, Session
from worldline.federation.server.trunk import Trunk
from worldline.federation.sockets import (
    READ,
    READ_LEAST,
    WRITE,
    breakage,
    configure,
    is_unreachable,
    next_read,
)
from worldline.lock import Phase

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Otherwise `connection.pxd` imports the compiled ones.
    from worldline.federation.sockets import SocketCalls

    Watch = object

# Which sockets are ready. `selectors` would make an object in Python for each; a server asks a hundred thousand times a
# second.

_HAS_EPOLL = hasattr(select, "epoll")
_UNIT = 1 if _HAS_EPOLL else 1000  # What is waited for is given in seconds, or in milliseconds.


class SocketWatch(Watch):
    """Sockets, each with what is to be done when it is ready. The compiled build's is in `calls.pyx`, on Linux."""

    def __init__(self) -> None:
        self._poll: Any = select.epoll() if _HAS_EPOLL else select.poll()
        self._actions: dict[int, Callable[[], None]] = {}

    def register(self, which: socket.socket, events: int, action: Callable[[], None]) -> None:
        number = which.fileno()
        self._poll.register(number, events)
        self._actions[number] = action

    def modify(self, which: socket.socket, events: int) -> None:
        self._poll.modify(which.fileno(), events)

    def unregister(self, which: socket.socket) -> None:
        number = which.fileno()
        del self._actions[number]
        self._poll.unregister(number)

    def ready(self, seconds: float) -> list[Callable[[], None]]:
        """Return what is to be done now; wait for something, for so long at the most."""
        polled = self._poll.poll(seconds * _UNIT)
        return [self._actions[number] for number, _ in polled] if polled else []

    def close(self) -> None:
        if _HAS_EPOLL:
            self._poll.close()


if not cython.compiled:
    EpollWatch = SocketWatch


def socket_watch() -> SocketWatch:
    """Return the fastest that there is here."""
    return EpollWatch() if _HAS_EPOLL else SocketWatch()


_LEAST = READ_LEAST
_MANY = 64  # Turns and what is done in them, taken together.
_OVER = Phase.OVER
_LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ServerConnection:
    """One connection of a server. `gone` is called when it is closed."""

    def __init__(
        self,
        connection: socket.socket,
        tls: ssl.SSLContext | None,
        host: Host,
        sockets: SocketWatch,
        gone: Callable[[ServerConnection], None],
        clock: MonotonicClock,
    ) -> None:
        configure(connection, host.limits.unreachable_s).setblocking(False)
        self._handshaking = self._tls = tls is not None
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        self._socket = connection
        self._calls: Any = SocketCalls(connection, tls is None, False)
        self._host = host
        self._sockets = sockets
        self._size = READ_LEAST  # How much it reads at a time.
        self._gone = gone
        self._clock = clock
        self._closed = False
        self._process: int | None = None  # The other end's, once it was looked for.
        self._looked = False
        self._last_sent = False  # Nothing more will be sent.
        self._closing_since: float | None = None
        self.session: Session = host.open(self._clock.read())
        self.session.owner = self
        self._events = READ
        sockets.register(connection, self._events, self.act)

    def act(self) -> None:
        """Do what the socket is ready for."""
        if self._closed:  # By what another socket was ready for.
            return
        if self._handshaking and not self._shake_hands():
            return
        session = self.session
        if self._events & WRITE:
            self.write()
            if self._closed or session.paused:
                return
        if session.busy:  # What has come in before is heard first.
            return
        self._read(session)

    def _read(self, session: Session) -> None:
        frames, host = session.frames, self._host
        # What is decrypted already must be read in any case: the selector won't tell of it.
        room = None if self._tls else frames.room()
        data = b""
        try:
            if room is not None:
                size = self._socket.recv_into(room)
            else:
                if self._calls.takes_frames(self._size) and host.hears(session):
                    kept = None if host.rejoining is None else session.bodies
                    came = self._calls.hear_events(frames.longest, EVENTS_AT_ONCE, kept)
                    if type(came) is list:
                        host.hear(session, came, self._clock.read())
                        return
                else:
                    came = self._calls.received(self._size, 0)
                if came is None:
                    return
                data, size = came, len(came)
                while self._tls and self._socket.pending():  # type: ignore[attr-defined]
                    data += self._socket.recv(self._size)
        except _LATER:
            return
        except OSError as error:
            self.close(f"its connection broke: {breakage(error)}")
            return
        if not size:
            self.close("its connection was closed, and it hadn't left")
            return
        if room is not None:
            frames.fill([size])
        elif self._size != _LEAST or size >= _LEAST:
            self._size = next_read(self._size, size)
        host.receive(session, data, self._clock.read())

    def write(self) -> None:
        """Send as much as fits, and see to it that the rest follows."""
        session = self.session
        if self._handshaking and session.closing:
            self.close("it never finished connecting")
        if self._closed or self._handshaking:
            return
        out, trunk = session.out, session.trunk
        if trunk is not None:
            trunk.fill()
        if out and not self._last_sent:
            try:
                sent = self._calls.pass_on(out)
            except _LATER:
                sent = 0
            except OSError as error:
                self.close(f"its connection broke: {breakage(error)}")
                return
            if sent:
                session.sent = self._clock.read()
        if trunk is not None and not out:
            trunk.fill()  # What is left over, for when there is room for it.
        if session.closing and not out and not self._last_sent:
            self._say_last()
        self._watch((0 if session.paused else READ) | (WRITE if out else 0))

    def carry(self) -> Trunk:
        return Trunk(self._host, self.session)

    def other_end(self) -> OtherEnd:
        return OtherEnd(self._find_process(), max(self.session.sent, self.session.spoke))

    def finish(self) -> None:
        """Come to an end as soon as all is sent."""
        if self.session.stopped:  # It takes nothing, and its going isn't waited for.
            self.close("its process is stopped")
            return
        self.session.closing = True
        self.session.paused = False
        self.write()

    def look(self, now: float) -> None:
        """See whether the other end is still there, if it has said nothing for a while."""
        limits, session = self._host.limits, self.session
        if is_unreachable(self._socket, limits.unreachable_s):
            self.close(f"its machine hasn't answered for {limits.unreachable_s:.0f} seconds")
        elif not (session.name or session.trunk) or now - session.heard < 2 * limits.heartbeat_s or session.paused:
            session.stopped = None  # Nor is it looked for who a stranger is: that takes long, and they may be many.
        else:
            session.stopped = is_stopped(self._find_process())

    def _find_process(self) -> int | None:
        if not self._looked:
            self._looked = True
            self._process = process_of(self._socket)
        return self._process

    def expire(self, now: float, patience_s: float) -> None:
        """End it if it is to end and hasn't for so long, because the other end doesn't read or doesn't go."""
        if not self.session.closing:
            return
        if self._closing_since is None:
            self._closing_since = now
        elif now - self._closing_since > patience_s:
            self.close("it didn't go")

    def close(self, cause: str) -> None:
        """End it here and now."""
        if self._closed:
            return
        self._closed = True
        self._watch(0)
        self._calls.close()
        self._socket.close()
        self._gone(self)
        self._host.closed(self.session, cause)

    def disown(self) -> None:
        """Let go of it in a forked process: the other end hears nothing of that."""
        self._closed = True
        self._calls.close()
        self._socket.close()

    def _say_last(self) -> None:
        self._last_sent = True
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:  # The other end was quicker.
            self.close(f"its connection broke: {breakage(error)}")

    def _shake_hands(self) -> bool:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self._watch(READ)
            return False
        except ssl.SSLWantWriteError:
            self._watch(WRITE)
            return False
        except OSError as error:
            self.close(f"TLS failed: {error}")
            return False
        self._handshaking = False
        self.write()
        return not self._closed

    def _watch(self, events: int) -> None:
        if events == self._events or (self._closed and not self._events):
            return
        if not self._events:
            self._sockets.register(self._socket, events, self.act)
        elif not events:
            self._sockets.unregister(self._socket)
        else:
            self._sockets.modify(self._socket, events)
        self._events = events


class ServerTurns:
    """What a server does over and over: listens to its sockets, does what is ready, and sends what follows."""

    def __init__(self, host: Host, sockets: SocketWatch, clock: MonotonicClock) -> None:
        self._host = host
        self._sockets = sockets
        self._clock = clock
        self._eagerness = Eagerness(clock)
        self._done = 0  # Turns, and what was done in them.
        self.now = 0.0  # When it last looked at its clock.
        self.timer = 0.0  # When there is something to do but to listen.

    def take(self, patient: bool) -> bool:
        """Serve all connections once; if `patient`, sleep until there is something to do. Whether the timer is due."""
        host, sockets, eagerness = self._host, self._sockets, self._eagerness
        before = self.now
        sleeps_s = max(0.0, self.timer - before) if patient and not host.busy else 0.0
        asks = sleeps_s > 0 and eagerness.asks(before)
        ready = sockets.ready(0.0 if asks else sleeps_s)
        if asks and not ready:
            while not ready and eagerness.asks_again(before):
                ready = sockets.ready(0.0)
            ready = ready or sockets.ready(sleeps_s)
        if host.busy:  # Before others are read, who may have more to say than one turn is enough for.
            host.work()
        for act in ready:
            act()
        self._done += 1 + len(ready)
        if host.dirty:
            self.send_all()
        host.arbiter.tell_if_due()  # While those who were answered compute.
        self.now = self._clock.read()
        eagerness.came(before, self.now)
        return self.now >= self.timer

    def take_many(self, resting: list[Any]) -> bool:
        """Take patient turns, as long as there is nothing else to do; whether the timer is due.

        Not for long, since handlers of signals and other threads may not get to run as long as there is much to do.
        """
        self._done = 0
        while self._done < _MANY:
            if self.take(True):
                return True
            if resting or self._host.arbiter.phase is _OVER:
                break
        return False

    def send_all(self) -> None:
        host = self._host
        while host.dirty:
            dirty, host.dirty = host.dirty, []
            for session in dirty:
                session.owner.write()


_FILES_KEPT = 4  # For what the server itself opens now and then.


class ServerConnections:
    """All connections of a server, and the socket on which it listens for more.

    Those of strangers, and of participants that were sent away, are kept from taking the files that others need.
    """

    def __init__(
        self,
        host: Host,
        sockets: SocketWatch,
        clock: MonotonicClock,
        tls: ssl.SSLContext | None,
        *,
        asks_for_user: bool,
    ) -> None:
        self._host = host
        self._sockets = sockets
        self._clock = clock
        self._tls = tls
        self._asks_for_user = asks_for_user
        self.opened: dict[ServerConnection, None] = {}  # The oldest first.
        self.listener: socket.socket | None = None
        self._is_deaf = False  # There was no file free for a connection,
        self.shortage = ""  # and that was said.
        plan = host.arbiter.plan
        self._places = len(plan.roster) + len(plan.guests) + plan.vacancies
        self._room = sys.maxsize  # How many connections there are files for.

    def listen(self, listener: socket.socket) -> None:
        self.listener = listener
        self._room = files_left() - _FILES_KEPT
        self._sockets.register(listener, READ, self.accept)

    def listen_again(self) -> None:
        """Listen again, if there was no file free."""
        if self._is_deaf:
            assert self.listener is not None
            self._is_deaf = False
            self._sockets.register(self.listener, READ, self.accept)

    def stop_listening(self) -> bool:
        """Listen no more; return whether it did."""
        if self.listener is None:
            return False
        if not self._is_deaf:
            self._sockets.unregister(self.listener)
        self.listener.close()
        return True

    def remarks(self) -> list[str]:
        """Say so if there is no file free."""
        return [self.shortage] if self._is_deaf else []

    def accept(self) -> None:
        """Take a connection that a peer has made."""
        assert self.listener is not None
        try:
            accepted, _ = self.listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._room = len(self.opened) - _FILES_KEPT
                self._make_room()
                if len(self.opened) > self._room:
                    self._be_deaf()
            return  # Or the one that knocked has gone.
        self.take(accepted, self._tls)

    def take(self, accepted: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Serve a connection, which may have to be encrypted."""
        is_foreign = self._asks_for_user and is_another_users(accepted)  # Before TLS takes the socket over.
        try:
            connection = ServerConnection(accepted, tls, self._host, self._sockets, self.opened.pop, self._clock)
        except OSError:  # It has gone already.
            accepted.close()
        else:
            self.opened[connection] = None
            self._make_room(connection)
            connection.session.is_foreign = is_foreign

    def look(self, now: float) -> None:
        for connection in list(self.opened):
            connection.look(now)

    def expire(self, now: float, patience_s: float) -> None:
        for connection in list(self.opened):
            connection.expire(now, patience_s)

    def finish(self) -> None:
        for connection in list(self.opened):
            connection.finish()

    def are_awaited(self) -> bool:
        """Whether one still has to hear something, or to go. An operator may stay: it has nothing more to say."""
        return any(each.session.out or not isinstance(each.session.trunk, OperatorDesk) for each in self.opened)

    def close(self, cause: str) -> None:
        for connection in list(self.opened):
            connection.close(cause)

    def disown(self) -> None:
        """Let go of all of them in a forked process."""
        for connection in self.opened:
            connection.disown()
        if self.listener is not None:
            self.listener.close()

    def _be_deaf(self) -> None:
        """Listen no more until the next tick: participants alone take all files."""
        assert self.listener is not None
        self._sockets.unregister(self.listener)
        self._is_deaf = True
        if not self.shortage:
            self.shortage = no_file_left(max(0, self._places - len(self._host.sessions)))
            self._host.owner.notices.append(self.shortage)

    def _make_room(self, newest: ServerConnection | None = None) -> None:
        host = self._host
        while len(self.opened) > self._room and self._send_one_away(newest):
            pass
        if len(self.opened) - len(host.sessions) > 2 * host.limits.strangers_max:
            self._close_one_sent_away()

    def _send_one_away(self, newest: ServerConnection | None) -> bool:
        """End a connection that isn't a participant's, the oldest, but not the newest; return whether there was one."""
        if self._close_one_sent_away():
            return True
        host = self._host
        for connection in self.opened:
            if connection is not newest and host.is_stranger(connection.session):
                host.send_away(connection.session)
                connection.write()
                connection.close("it made room for others")
                return True
        return False

    def _close_one_sent_away(self) -> bool:
        """Don't wait any longer for one to go that has been sent away."""
        for connection in self.opened:
            if connection.session.closing and not connection.session.name:
                connection.close("it didn't go")
                return True
        return False
