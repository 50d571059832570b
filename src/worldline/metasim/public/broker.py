"""A broker of LCM's tcpq protocol: a thread to which programs connect that can't use multicast.

It is written for strangers at the other end and a simulation on this one, which must not suffer from them:

B1. `publish` never waits. What a subscriber doesn't read is kept up to a limit; beyond that it isn't given the rest,
    which is counted. Frames are left out whole, so that a connection stays readable.
B2. What comes in is limited too: connections, patterns, and bytes of frames that aren't complete. A client
    that exceeds a limit, or doesn't speak the protocol, is disconnected; the others don't notice.
B3. To read and obey takes at most a share of the thread's time, however much is sent: Python's threads take turns, so a
    thread that is always busy would slow down the run. Frames that it has no time for wait, and no more are read.
B4. Patterns are matched in bounded time (`ChannelPattern`): names have LCM's length, and all patterns of all
    connections together a limited size. For what a subscriber publishes, they are matched without the lock, which
    `publish` would have to wait for.
B5. A subscriber that has missed something is told the time again before the next message.
"""

from __future__ import annotations

import contextlib
import errno
import re
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal, Self

from worldline.federation.address import Address
from worldline.metasim.public.tcpq import (
    CHANNEL_BYTES_MAX,
    CLIENT_MAGIC,
    PUBLISH,
    SERVER_MAGIC,
    SUBSCRIBE,
    TIME_CHANNEL,
    TcpqDecoder,
    TcpqFrame,
    greeting,
    tcpq_address,
)
from worldline.model.errors import LossError, PeerError, UsageError, WorldlineError, shortened, shown

# Patterns of channel names: regular expressions, matched in a time that is bounded whatever they are. Pure.
#
# LCM's subscriptions are regular expressions from strangers. Python's own matcher goes back over its decisions, so that
# ``(a|a)*b`` takes years, and it lets no other thread run meanwhile. This one follows all alternatives at once: a name
# costs at most its length times the pattern's size. It knows what names of channels need: literals, ``.``, sets such as
# ``[^a-z]``, ``\d \w \s``, ``* + ? {2,5}``, ``|``, groups, and ``^`` and ``$``, which mean nothing, since a pattern
# matches whole names. Whatever else regular expressions have is refused.

SIZE_MAX = 500
_CHOICES_MAX = 16
_DEPTH_MAX = 20

_Accepts = Callable[[str], bool]
_Maker = Callable[[int], int]
"""Adds a piece of a pattern to its states, anew for each repetition: given the state behind it, returns its first."""

_TOKEN = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\{[^}]*\}|\(\?:|.", re.DOTALL)
_MEMBER = re.compile(r"(\\.|.)(?:-(\\.|.))?", re.DOTALL)
_BRACES = re.compile(r"\{([0-9]{0,3})(,?)([0-9]{0,3})\}")
_CLASSES: dict[str, _Accepts] = {
    "d": str.isdecimal,
    "w": lambda character: character.isalnum() or character == "_",
    "s": str.isspace,
}
_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class ChannelPattern:
    """A regular expression of a subscription, which must match a whole name. `size` is about what a character costs.

    Its states are numbered: where one accepts a character, that leads to all that are ahead of it, and where it accepts
    None, nothing is needed for that. State 0 is the end.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _TOKEN.findall(text)[::-1]  # The next is the last.
        self._states: list[tuple[_Accepts | None, list[int]]] = [(None, [])]
        whole = self._alternatives(0)
        if self._tokens:
            raise self._refusal("a bracket is closed that was never opened")
        self._first = whole(0)
        self.size = len(self._states)

    def matches(self, name: str) -> bool:
        """Whether it is the pattern of a name."""
        places = self._reached([self._first])
        for character in name:
            answers: dict[_Accepts, bool] = {}  # Repetitions of a piece share what they accept: it is asked once.
            found: list[int] = []
            for place in places:
                accepts, ahead = self._states[place]
                if accepts is not None:
                    if accepts not in answers:
                        answers[accepts] = accepts(character)
                    if answers[accepts]:
                        found += ahead
            places = self._reached(found)
            if not places:
                return False
        return 0 in places

    def _reached(self, places: list[int]) -> dict[int, None]:
        """Return the states, and those to which one gets from them without a character."""
        found: dict[int, None] = {}
        while places:
            place = places.pop()
            if place not in found:
                found[place] = None
                accepts, ahead = self._states[place]
                if accepts is None:
                    places += ahead
        return found

    # --- Reading it, from left to right ---

    def _refusal(self, problem: str) -> UsageError:
        return UsageError(f"{shown(self.text)} can't be subscribed to: {problem}")

    def _skip(self, token: str) -> bool:
        found = self._tokens[-1:] == [token]
        if found:
            self._tokens.pop()
        return found

    def _state(self, accepts: _Accepts | None, ahead: list[int]) -> int:
        if len(self._states) > SIZE_MAX:
            raise self._refusal("it is too large")
        self._states.append((accepts, ahead))
        return len(self._states) - 1

    def _alternatives(self, depth: int) -> _Maker:
        if depth > _DEPTH_MAX:
            raise self._refusal("it is nested too deeply")
        choices = [self._sequence(depth)]
        while self._skip("|"):
            choices.append(self._sequence(depth))
        return lambda ahead: self._state(None, [choice(ahead) for choice in choices])

    def _sequence(self, depth: int) -> _Maker:
        pieces: list[_Maker] = []
        while self._tokens and self._tokens[-1] not in ("|", ")"):
            pieces.append(self._repeated(depth))

        def made(ahead: int) -> int:
            for piece in reversed(pieces):
                ahead = piece(ahead)
            return ahead

        return made

    def _repeated(self, depth: int) -> _Maker:
        piece = self._atom(depth)
        counts = self._counts()
        if counts is None:
            return piece
        least, most = counts
        self._skip("?")  # Lazy or not, whole names are the same.
        if self._counts() is not None:  # Only groups nest, since their depth is limited.
            raise self._refusal("it repeats a repetition")

        def made(ahead: int) -> int:
            if most is None:
                loop = self._state(None, [ahead])
                self._states[loop][1].append(piece(loop))
                ahead = loop
            for _ in range(least, most or least):
                ahead = self._state(None, [ahead, piece(ahead)])
            for _ in range(least):
                ahead = piece(ahead)
            return ahead

        return made

    def _counts(self) -> tuple[int, int | None] | None:
        """Read how often something may come, if it says so; None for the most is any number of times."""
        token = self._tokens[-1] if self._tokens else ""
        if token[:1] not in (*_COUNTS, "{"):
            return None
        self._tokens.pop()
        if token in _COUNTS:
            return _COUNTS[token]
        braces = _BRACES.fullmatch(token)
        if braces is None or not (braces[1] or braces[3]):
            raise self._refusal("braces need numbers")
        low = int(braces[1] or 0)
        high = low if not braces[2] else int(braces[3]) if braces[3] else None
        if high is not None and high < low:
            raise self._refusal("braces need the smaller number first")
        return low, high

    def _atom(self, depth: int) -> _Maker:
        token = self._tokens.pop()
        if token in ("(", "(?:"):
            if token == "(" and self._tokens[-1:] == ["?"]:
                raise self._refusal("only plain groups are understood")
            whole = self._alternatives(depth + 1)
            if not self._skip(")"):
                raise self._refusal("a bracket isn't closed")
            return whole
        if token[0] in "*+?{":
            raise self._refusal(f"{token} repeats nothing")
        if token in "[\\":
            raise self._refusal("it ends too early")
        accepts = None if token in "^$" else self._accepts(token)
        return lambda ahead: self._state(accepts, [ahead])

    def _accepts(self, token: str) -> _Accepts:
        if token == ".":
            return lambda _: True
        if token[0] != "[":
            return self._member(token, "")
        is_negated = token[1] == "^"
        members = _MEMBER.findall(token[2 if is_negated else 1 : -1])
        if not members:
            raise self._refusal("a bracket isn't closed")
        if len(members) > _CHOICES_MAX:
            raise self._refusal(f"a set has more than {_CHOICES_MAX} parts")
        choices = [self._member(low, high) for low, high in members]
        return lambda character: any(choice(character) for choice in choices) is not is_negated

    def _member(self, low: str, high: str) -> _Accepts:
        """Return what a character, a class of them or a range accepts."""
        kind = low[1:].lower()
        if kind in _CLASSES and not high:
            accepts = _CLASSES[kind]
            return accepts if low[1].islower() else lambda character: not accepts(character)
        ends = (low, high or low)
        for token in ends:
            if len(token) > 1 and token[1].isascii() and token[1].isalnum():
                raise self._refusal(f"{token} isn't understood")
        first, last = (token[-1] for token in ends)
        if last < first:
            raise self._refusal("a range needs two characters, the lower one first")
        return lambda character: first <= character <= last


UNREAD_MAX = 2**23
"""Bytes that are kept for a subscriber that doesn't read."""

_CONNECTIONS_MAX = 64
_SUBSCRIPTIONS_MAX = 256
_PATTERNS_SIZE_MAX = 4000
_ALL_PATTERNS_SIZE_MAX = 10_000  # Of all connections together, but for the subscriptions of one.
_NAMES_KEPT = 1024
_INCOMPLETE_MAX = 2**27  # Bytes of frames that aren't complete, of all connections together.
_READ_SIZE = 2**16
_WRITE_SIZE = 2**18
_READING_SHARE = 0.2
_READING_BURST_S = 0.05
_TURN_S = 0.01  # How long one connection is obeyed before it is others' turn.
_LINGER_S = 2.0
_TICK_S = 0.5
_END_S = 10.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Subscriber:
    """One connection, and what is on its way there."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.decoder = TcpqDecoder(CLIENT_MAGIC)
        self.frames: deque[TcpqFrame] = deque()  # What it has said, and hasn't been obeyed.
        self.patterns_size = 0
        self.unsent: deque[bytes] = deque()
        self.unsent_size = 0
        self.needs_time = True
        self._patterns: dict[str, tuple[int, ChannelPattern]] = {}  # In the order of their numbers.
        self._count = 0
        # Name → the number below which no pattern matches, and the pattern of that number if it does. Two threads write
        # here, without a lock: whatever they write is true.
        self._known: dict[str, tuple[int, ChannelPattern | None]] = {}

    def wants(self, channel: str) -> bool:
        """Whether a pattern matches. There are few names, and each is asked for again and again: no pattern twice."""
        begin, match = self._known.get(channel, (0, None))
        if match is not None and self._patterns.get(match.text) == (begin, match):
            return True
        if match is None and begin == self._count:
            return False
        found = (each for each in self._patterns.values() if each[0] >= begin and each[1].matches(channel))
        known = next(found, (self._count, None))
        if len(self._known) >= _NAMES_KEPT:
            self._known.clear()
        self._known[channel] = known
        return known[1] is not None

    def subscribe(self, text: str) -> None:
        if text in self._patterns:
            return
        pattern = ChannelPattern(text)
        if len(self._patterns) >= _SUBSCRIPTIONS_MAX or self.patterns_size + pattern.size > _PATTERNS_SIZE_MAX:
            raise PeerError("it subscribes to too many patterns")
        self._patterns[text] = self._count, pattern
        self._count += 1
        self.patterns_size += pattern.size
        self.needs_time = True  # Perhaps it is the time that it has subscribed to.

    def unsubscribe(self, text: str) -> None:
        _, pattern = self._patterns.pop(text, (0, None))
        if pattern is not None:
            self.patterns_size -= pattern.size

    def add(self, data: bytes) -> None:
        self.unsent.append(data)
        self.unsent_size += len(data)

    def send(self) -> None:
        """Send as much as the connection takes."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                self._forget(self.socket.send(self._next()))

    def _next(self) -> bytes:
        """Return what is to be sent next, in as few pieces as is sensible."""
        frames, size = [], 0
        for frame in self.unsent:
            frames.append(frame)
            size += len(frame)
            if size > _WRITE_SIZE:
                break
        return b"".join(frames)

    def _forget(self, sent: int) -> None:
        self.unsent_size -= sent
        while sent >= len(self.unsent[0]):
            sent -= len(self.unsent.popleft())
            if not self.unsent:
                return
        self.unsent[0] = self.unsent[0][sent:]


class TcpqBroker:
    """Passes LCM messages on between its subscribers, and from its owner. ``127.0.0.1:0`` picks a free port.

    `heard` is told of everything that subscribers publish, in the broker's thread. `trouble` says why it ended, if
    it wasn't closed.
    """

    def __init__(
        self,
        address: str | Address = "127.0.0.1:0",
        *,
        heard: Callable[[str, bytes], None] | None = None,
    ) -> None:
        self._address = tcpq_address(address)
        self._heard = heard
        self._changed = threading.Condition(threading.Lock())  # The lock of all that follows.
        self._subscribers: dict[socket.socket, _Subscriber] = {}
        self._state: Literal["open", "closing", "ended"] = "open"
        self._alarmed = False
        self._had_connection = False
        self._time: bytes | None = None  # The last frame that said the time.
        self.lost = 0
        self.trouble = ""
        self.dismissed: list[str] = []
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<TcpqBroker at {self.url}, {self._state}, {len(self._subscribers)} subscribers>"

    @property
    def url(self) -> str:
        """What an LCM program has to be given to connect."""
        return str(self._address).replace("tcp://", "tcpq://", 1)

    # --- From outside, in any thread ---

    def open(self) -> Self:
        """Listen from now on."""
        try:
            family = socket.AF_INET6 if ":" in self._address.place else socket.AF_INET
            self._listener = socket.create_server((self._address.place, self._address.port), family=family)
        except (OSError, UnicodeError) as error:
            problem = getattr(error, "strerror", None) or error
            raise UsageError(
                f"no LCM broker can listen on {self.url}: {problem}", advice="choose another port"
            ) from error
        self._address = Address("tcp", self._address.place, self._listener.getsockname()[1])
        self._listener.setblocking(False)
        self._alarm = socket.socketpair()
        for end in self._alarm:
            end.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._alarm[1], selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="worldline lcm broker", daemon=True)
        self._thread.start()
        return self

    def publish(self, channel: str, data: bytes) -> None:
        """Give a message to all that have subscribed to its channel, now or as soon as they read."""
        with self._changed:
            self.check()
            frame = TcpqFrame(PUBLISH, channel, data)
            if channel == TIME_CHANNEL:
                self._time = frame.encode()
            self._pass_on(frame, self._wanting(channel))

    def check(self) -> None:
        """Raise `LossError` if it has ended."""
        if self._state == "ended":
            raise LossError(f"the LCM broker at {self.url} has ended{self.trouble and f': {self.trouble}'}")

    def wait_for_connection(self, timeout_s: float) -> bool:
        """Wait until an LCM program has connected; return whether one has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._had_connection, timeout_s)

    def wait_for_subscribers(self, channels: Iterable[str], timeout_s: float) -> list[str]:
        """Wait until each channel has a subscriber; return those that have none after that time."""
        wanted = list(channels)

        def missing() -> list[str]:
            return [name for name in wanted if not any(each.wants(name) for each in self._subscribers.values())]

        with self._changed:
            self._changed.wait_for(lambda: not missing(), timeout_s)
            return missing()

    def close(self) -> None:
        """Stop, when subscribers have read what there is for them; not for long."""
        if self._thread is not None:
            with self._changed:
                self._state = "closing"
                self._wake()
            self._thread.join(_LINGER_S + _END_S)
            if self._thread.is_alive():
                self.trouble = "it can't be ended: something holds it up"
            self._thread = None

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wake(self) -> None:
        if not self._alarmed:
            self._alarmed = True
            with contextlib.suppress(OSError):  # Full: it is awake. Closed: it is over.
                self._alarm[0].send(b"!")

    def _wanting(self, channel: str) -> list[_Subscriber]:
        return [each for each in self._subscribers.values() if each.wants(channel)]

    def _pass_on(self, frame: TcpqFrame, receivers: list[_Subscriber]) -> None:
        data = frame.encode() if receivers else b""
        for subscriber in receivers:
            last = self._time if subscriber.needs_time and subscriber.wants(TIME_CHANNEL) else None  # (B5)
            told = data if last is None or last == data else last + data
            if subscriber.unsent and subscriber.unsent_size + len(told) > UNREAD_MAX:
                self.lost += 1  # (B1)
                subscriber.needs_time = True
            else:
                subscriber.add(told)
                subscriber.needs_time = False
                self._wake()

    # --- In its own thread ---

    def _serve(self) -> None:
        try:
            self._work()
        except Exception as error:  # It has no caller to tell; the next that publishes is told instead.
            self.trouble = shortened(f"{error!r}")
        finally:
            self._end()

    def _work(self) -> None:
        deadline: float | None = None
        before = time.monotonic()
        credit_s = _READING_BURST_S  # How long it may read (B3).
        while True:
            now = time.monotonic()
            credit_s = min(_READING_BURST_S, credit_s + (now - before) * _READING_SHARE)
            before = now
            writers = [each for each in list(self._subscribers.values()) if each.unsent and not self._send(each)]
            if self._state == "closing":
                deadline = deadline or now + _LINGER_S
                if now > deadline or not any(each.unsent for each in self._subscribers.values()):
                    break
            self._watch(writers, reading=credit_s > 0 and self._state == "open")
            waiting = [each for each in self._subscribers.values() if each.frames and credit_s > 0]
            pause_s = -credit_s / _READING_SHARE if credit_s <= 0 else 0.0 if waiting else _TICK_S
            ready = self._selector.select(min(pause_s, _TICK_S))
            begin = time.monotonic()
            for key, events in ready:
                credit_s -= self._attend(key.fileobj, events)  # type: ignore[arg-type]
            for subscriber in waiting:
                if subscriber.frames:  # Or it has been dismissed.
                    self._listen(subscriber)
            credit_s -= time.monotonic() - begin

    def _send(self, subscriber: _Subscriber) -> bool:
        """Send what there is for a subscriber; return whether it took all of it."""
        try:
            with self._changed:
                subscriber.send()
                return not subscriber.unsent
        except OSError:
            self._dismiss(subscriber, None)
            return True

    def _watch(self, writers: list[_Subscriber], *, reading: bool) -> None:
        """Wait for what is of interest: room to write where there is something to write, and (B3) what comes in."""
        writing = {each.socket for each in writers}
        waiting = {each.socket for each in self._subscribers.values() if each.frames}
        for connection in (self._listener, *self._subscribers):
            events = selectors.EVENT_READ if reading and connection not in waiting else 0
            events |= selectors.EVENT_WRITE if connection in writing else 0
            key = self._selector.get_map().get(connection)
            if key is not None and not events:
                self._selector.unregister(connection)
            elif key is None and events:
                self._selector.register(connection, events)
            elif key is not None and key.events != events:
                self._selector.modify(connection, events)

    def _attend(self, ready: socket.socket, events: int) -> float:
        """Do what a socket is ready for; return for how long nothing is to be read, besides the time that it takes."""
        if ready is self._alarm[1]:
            with self._changed, contextlib.suppress(OSError):
                self._alarmed = False
                ready.recv(64)
        elif ready is self._listener:
            return self._accept()
        elif events & selectors.EVENT_READ and (subscriber := self._subscribers.get(ready)) is not None:
            self._listen(subscriber)
        return 0.0

    def _listen(self, subscriber: _Subscriber) -> None:
        """Obey what a subscriber has said, for its turn; and read on when that is done."""
        begin = time.monotonic()
        try:
            if not subscriber.frames:
                self._read(subscriber)
            while subscriber.frames and self._state == "open":
                self._obey(subscriber, subscriber.frames.popleft())
                if time.monotonic() - begin > _TURN_S:
                    break
        except WorldlineError as error:
            self._dismiss(subscriber, error.problem)
        except OSError:
            self._dismiss(subscriber, None)
        except Exception as error:  # Whatever it has found, the others don't notice (B2).
            self._dismiss(subscriber, shortened(f"the broker can't deal with it: {error!r}"))
        if sum(each.patterns_size for each in self._subscribers.values()) > _ALL_PATTERNS_SIZE_MAX:
            greediest = max(self._subscribers.values(), key=lambda each: each.patterns_size)
            self._dismiss(greediest, "all subscribe to too many patterns, and it to the most")

    def _accept(self) -> float:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            # If there is no file for it, it would knock again at once; or it has gone.
            return _READING_BURST_S + _READING_SHARE * _TICK_S if error.errno in _EXHAUSTED else 0.0
        if len(self._subscribers) >= _CONNECTIONS_MAX:
            silent = next((each for each in self._subscribers.values() if not each.decoder.greeted), None)
            if silent is None:
                connection.close()
                self._note("there are too many connections")
                return 0.0
            self._dismiss(silent, "there are too many connections, and it hasn't said anything")
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            self._subscribers[connection] = _Subscriber(connection)
        return 0.0

    def _read(self, subscriber: _Subscriber) -> None:
        try:
            data = subscriber.socket.recv(_READ_SIZE)
        except BlockingIOError:
            return
        if not data:
            self._dismiss(subscriber, None)
            return
        was_greeted = subscriber.decoder.greeted
        subscriber.frames += subscriber.decoder.feed(data)
        if subscriber.decoder.greeted and not was_greeted:
            with self._changed:
                subscriber.add(greeting(SERVER_MAGIC))
                self._had_connection = True
                self._changed.notify_all()
        if len(subscriber.decoder) and sum(len(each.decoder) for each in self._subscribers.values()) > _INCOMPLETE_MAX:
            raise PeerError("too much is waiting for the rest of its frame")

    def _obey(self, subscriber: _Subscriber, frame: TcpqFrame) -> None:
        if frame.kind == PUBLISH:
            if (size := len(frame.channel.encode())) > CHANNEL_BYTES_MAX:
                raise PeerError(
                    f"it publishes on a channel whose name has {size:,} bytes; LCM's have {CHANNEL_BYTES_MAX}"
                )
            receivers = self._wanting(frame.channel)  # Only this thread changes who there is, and what they want (B4).
            with self._changed:
                self._pass_on(frame, receivers)
            if self._heard is not None:
                self._heard(frame.channel, frame.data)
            return
        with self._changed:
            if frame.kind == SUBSCRIBE:
                subscriber.subscribe(frame.channel)
            else:
                subscriber.unsubscribe(frame.channel)
            self._changed.notify_all()

    def _dismiss(self, subscriber: _Subscriber, reason: str | None) -> None:
        """End a connection; with a reason, it was the other end's fault."""
        with self._changed:
            self._subscribers.pop(subscriber.socket, None)
            subscriber.frames.clear()
        if reason is not None:
            self._note(reason)
        if subscriber.socket in self._selector.get_map():
            self._selector.unregister(subscriber.socket)
        subscriber.socket.close()

    def _note(self, reason: str) -> None:
        if len(self.dismissed) < _CONNECTIONS_MAX:
            self.dismissed.append(reason)

    def _end(self) -> None:
        with self._changed:
            self.lost += sum(len(each.unsent) for each in self._subscribers.values())
            for connection in (*self._subscribers, self._listener, *self._alarm):
                connection.close()
            self._subscribers.clear()
            self._state = "ended"
            self._changed.notify_all()
        self._selector.close()
