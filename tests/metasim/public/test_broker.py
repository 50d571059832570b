"""The broker: several subscribers with patterns, and nobody who misbehaves harms it, or whoever publishes."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import threading
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.federation.transports import eventually
from worldline.metasim.public.broker import ChannelPattern, TcpqBroker
from worldline.metasim.public.mirror import encode_time
from worldline.metasim.public.tcpq import (
    CLIENT_MAGIC,
    DATA_MAX,
    PUBLISH,
    SERVER_MAGIC,
    SUBSCRIBE,
    TIME_CHANNEL,
    UNSUBSCRIBE,
    TcpqDecoder,
    TcpqFrame,
    dial_broker,
    greeting,
    tcpq_address,
)
from worldline.model.errors import LossError, UsageError

_PATIENCE_S = 20.0
pytestmark = [pytest.mark.once, pytest.mark.usefixtures("tidy")]


@pytest.fixture
def broker() -> Iterator[TcpqBroker]:
    with TcpqBroker() as broker:
        yield broker


class Subscriber:
    """A program at the other end."""

    def __init__(self, broker: TcpqBroker, *patterns: str) -> None:
        self.socket = dial_broker(broker.url, _PATIENCE_S)
        self.socket.settimeout(_PATIENCE_S)
        self._decoder = TcpqDecoder(SERVER_MAGIC)
        self._decoder.feed(greeting(SERVER_MAGIC))
        self._ahead: list[TcpqFrame] = []
        for pattern in patterns:
            self.send(TcpqFrame(SUBSCRIBE, pattern))
        self.settle()

    def send(self, frame: TcpqFrame) -> None:
        self.socket.sendall(frame.encode())

    def publish(self, channel: str, data: bytes) -> None:
        self.send(TcpqFrame(PUBLISH, channel, data))

    def settle(self) -> None:
        """Wait until the broker has done what it was told: it tells a subscriber in the same order."""
        mark = f"settled-{id(self)}"
        self.send(TcpqFrame(SUBSCRIBE, mark))
        self.publish(mark, b"")
        while self._next() != (mark, b""):
            pass
        self.send(TcpqFrame(UNSUBSCRIBE, mark))

    def next(self) -> tuple[str, bytes]:
        """Return the next message, but for marks, which whoever subscribes to everything gets, too."""
        while (message := self._next())[0].startswith("settled-"):
            pass
        return message

    def _next(self) -> tuple[str, bytes]:
        while not self._ahead:
            data = self.socket.recv(2**16)
            assert data, "the broker hung up"
            self._ahead += self._decoder.feed(data)
        frame = self._ahead.pop(0)
        return frame.channel, frame.data

    def was_dropped(self) -> bool:
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(2**16):
                pass
        return True

    def close(self) -> None:
        self.socket.close()


@contextlib.contextmanager
def subscribers(broker: TcpqBroker, *patterns: str) -> Iterator[list[Subscriber]]:
    found = [Subscriber(broker, pattern) for pattern in patterns]
    try:
        yield found
    finally:
        for each in found:
            each.close()


def test_each_gets_what_its_pattern_matches_as_a_whole(broker: TcpqBroker) -> None:
    with subscribers(broker, ".*", "A|B", "B.*") as (all_of_them, some, others):
        for number, channel in enumerate(["A", "B", "AB", "BA", "END|B", "B"]):
            broker.publish(channel, b"%d" % number)
        assert [all_of_them.next()[1] for _ in range(6)] == [b"0", b"1", b"2", b"3", b"4", b"5"]
        assert [some.next() for _ in range(3)] == [("A", b"0"), ("B", b"1"), ("B", b"5")]
        assert [others.next()[1] for _ in range(3)] == [b"1", b"3", b"5"]


def test_what_a_program_publishes_is_passed_on_and_heard() -> None:
    heard: list[tuple[str, bytes]] = []
    with TcpqBroker(heard=lambda *told: heard.append(told)) as broker, subscribers(broker, "X", "Y") as (one, other):
        one.publish("Y", b"hello")
        assert other.next() == ("Y", b"hello")
        other.send(TcpqFrame(UNSUBSCRIBE, "Y"))
        other.settle()
        one.publish("Y", b"into the blue")
        one.settle()
        other.publish("X", b"last")
        assert one.next() == ("X", b"last")
        eventually(lambda: ("X", b"last") in heard)
        published = [told for told in heard if not told[0].startswith("settled")]
        assert published == [("Y", b"hello"), ("Y", b"into the blue"), ("X", b"last")]


def test_large_messages_pass(broker: TcpqBroker) -> None:
    data = bytes(range(256)) * 2**14  # 4 MiB
    with subscribers(broker, "BIG") as (reader,):
        broker.publish("BIG", data)
        broker.publish("BIG", b"small")
        assert reader.next() == ("BIG", data)
        assert reader.next() == ("BIG", b"small")


def test_who_does_not_read_loses_whole_messages_which_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.metasim.public.broker.UNREAD_MAX", 1_000_000)
    data = b"x" * 100_000
    with TcpqBroker() as broker, subscribers(broker, "A", "A") as (slow, quick):
        for number in range(200):
            broker.publish("A", struct.pack(">I", number) + data)
            assert quick.next()[1][:4] == struct.pack(">I", number)
        assert broker.lost > 0
        got = []
        while len(got) + broker.lost < 200:
            (number,) = struct.unpack(">I", slow.next()[1][:4])
            got.append(number)
        assert got == sorted(set(got))
        slow.settle()  # It is as readable as ever.


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "isn't LCM's tcpq protocol"),
        (greeting(CLIENT_MAGIC) + b"\xff" * 100, "no frames of kind"),
        (greeting(CLIENT_MAGIC) + struct.pack(">III", 1, 0, DATA_MAX + 1), "longer than"),
        (greeting(CLIENT_MAGIC) + TcpqFrame(SUBSCRIBE, "(?=x)").encode(), "can't be subscribed to"),
        (
            greeting(CLIENT_MAGIC) + b"".join(TcpqFrame(SUBSCRIBE, f"c{n}").encode() for n in range(300)),
            "too many patterns",
        ),
        (
            greeting(CLIENT_MAGIC) + TcpqFrame(PUBLISH, "x" * 64, b"").encode(),
            "on a channel whose name has 64 bytes",
        ),
    ],
)
def test_who_breaks_the_rules_is_dropped_and_nobody_else(broker: TcpqBroker, said: bytes, reason: str) -> None:
    with subscribers(broker, "A") as (decent,), socket.create_connection(broker_address(broker)) as stranger:
        stranger.settimeout(_PATIENCE_S)
        stranger.sendall(said)
        with contextlib.suppress(ConnectionError):
            while stranger.recv(4096):
                pass
        assert any(reason in told for told in broker.dismissed)
        broker.publish("A", b"still there")
        assert decent.next() == ("A", b"still there")


def test_who_finds_a_fault_of_the_broker_is_dropped_and_nobody_else(
    broker: TcpqBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(text: str) -> NoReturn:
        raise RecursionError(text)

    with subscribers(broker, "A", "B") as (decent, stranger):
        monkeypatch.setattr("worldline.metasim.public.broker.ChannelPattern", fail)
        stranger.send(TcpqFrame(SUBSCRIBE, "deep"))
        assert stranger.was_dropped()
        assert broker.dismissed == ["the broker can't deal with it: RecursionError('deep')"]
        broker.publish("A", b"still there")
        assert decent.next() == ("A", b"still there")


def test_a_broker_that_fails_ends_and_says_so(broker: TcpqBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("broken")

    with subscribers(broker, "A") as (reader,):
        monkeypatch.setattr(broker, "_watch", fail)
        with pytest.raises(LossError, match=r"the LCM broker at tcpq://.* has ended: RuntimeError\('broken'\)"):
            eventually(lambda: broker.publish("A", b"in vain"))
        assert reader.was_dropped()
    with pytest.raises(LossError, match="can be reached"):
        dial_broker(broker.url, _PATIENCE_S)


def test_subscriptions_come_and_go(broker: TcpqBroker) -> None:
    with subscribers(broker, "A|B") as (reader,):

        def told(kind: int, pattern: str) -> list[str]:
            reader.send(TcpqFrame(kind, pattern))
            reader.settle()
            return [name for name in "ABC" if not broker.wait_for_subscribers([name], 0.0)]

        assert told(SUBSCRIBE, "A") == ["A", "B"]
        assert told(UNSUBSCRIBE, "A|B") == ["A"]
        assert told(UNSUBSCRIBE, "never") == ["A"]
        assert told(UNSUBSCRIBE, "A") == []
        assert told(SUBSCRIBE, "A") == ["A"]
        assert told(SUBSCRIBE, "[BC]") == ["A", "B", "C"]
        assert told(UNSUBSCRIBE, "A") == ["B", "C"]


def test_no_name_is_matched_twice(broker: TcpqBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    matches = ChannelPattern.matches

    def counted(pattern: ChannelPattern, name: str) -> bool:
        asked.append((pattern.text, name))
        return matches(pattern, name)

    monkeypatch.setattr(ChannelPattern, "matches", counted)
    with subscribers(broker, "X", "A") as (reader, other):
        for pattern in ("Y", "Z"):
            other.send(TcpqFrame(SUBSCRIBE, pattern))
            other.settle()
            broker.publish("A", b"")
            broker.publish("B", b"")
        other.send(TcpqFrame(UNSUBSCRIBE, "Y"))
        other.settle()
        broker.publish("B", b"")
        reader.settle()
    found = [each for each in asked if each[1] in ("A", "B") and not each[0].startswith("settled")]
    assert len(found) == len(set(found))


def test_a_publication_waits_for_nobody_else_s(broker: TcpqBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    matching, published = threading.Event(), threading.Event()
    in_time: list[bool] = []
    matches = ChannelPattern.matches

    def slow(pattern: ChannelPattern, name: str) -> bool:
        if name == "COSTLY":
            matching.set()
            in_time.append(published.wait(_PATIENCE_S))
        return matches(pattern, name)

    monkeypatch.setattr(ChannelPattern, "matches", slow)
    with subscribers(broker, "A") as (reader,):
        reader.publish("COSTLY", b"")
        assert matching.wait(_PATIENCE_S)
        broker.publish("A", b"here")
        published.set()
        assert reader.next() == ("A", b"here")
    assert in_time == [True]


def test_what_a_turn_is_too_short_for_is_obeyed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.metasim.public.broker._TURN_S", -1.0)
    with TcpqBroker() as broker, subscribers(broker, "A", "B") as (reader, writer):
        frames = (TcpqFrame(PUBLISH, "A", b"%d" % number) for number in range(100))
        writer.socket.sendall(b"".join(frame.encode() for frame in frames))
        assert [reader.next()[1] for _ in range(100)] == [b"%d" % number for number in range(100)]


def test_all_patterns_together_are_limited(broker: TcpqBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.metasim.public.broker._ALL_PATTERNS_SIZE_MAX", 150)
    with subscribers(broker, "A", "[B]{50}") as (reader, greedy), subscribers(broker, "[C]{30}"):
        greedy.send(TcpqFrame(SUBSCRIBE, "[D]{80}"))
        assert greedy.was_dropped()
        assert broker.dismissed == ["all subscribe to too many patterns, and it to the most"]
        broker.publish("A", b"still there")
        assert reader.next() == ("A", b"still there")


def test_at_the_end_it_obeys_nobody() -> None:
    heard: list[str] = []

    def hear(channel: str, _: bytes) -> None:
        if channel == "A":
            heard.append(channel)
            eventually(lambda: broker._closing)

    broker = TcpqBroker(heard=hear).open()
    with subscribers(broker, "B") as (writer,):
        writer.socket.sendall(TcpqFrame(PUBLISH, "A", b"").encode() * 100)
        eventually(lambda: heard)
        broker.close()
    assert heard == ["A"]


def test_what_holds_it_up_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.metasim.public.broker._LINGER_S", 0.0)
    monkeypatch.setattr("worldline.metasim.public.broker._END_S", 0.0)
    begun, over = threading.Event(), threading.Event()

    def hear(channel: str, _: bytes) -> None:
        if channel == "A":
            begun.set()
            over.wait(_PATIENCE_S)

    broker = TcpqBroker(heard=hear).open()
    with subscribers(broker, "B") as (writer,):
        writer.publish("A", b"")
        assert begun.wait(_PATIENCE_S)
        broker.close()
        assert broker.trouble == "it can't be ended: something holds it up"
        over.set()
        assert writer.was_dropped()


def test_who_has_missed_the_time_is_told_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.metasim.public.broker.UNREAD_MAX", 1_000_000)
    with TcpqBroker() as broker, subscribers(broker, ".*") as (slow,):
        published = 0
        while not broker.lost:
            broker.publish("A", bytes(100_000))
            published += 1
        now, lost = 0, 0
        while now == 0 or broker.lost == lost:  # Up to a time that it isn't told.
            now, lost = now + 1, broker.lost
            broker.publish(TIME_CHANNEL, encode_time(now, now))
            published += 1
        for _ in range(published - broker.lost):
            slow.next()
        broker.publish("A", b"later")
        broker.publish("A", b"and later")
        assert slow.next() == (TIME_CHANNEL, encode_time(now, now))
        assert [slow.next()[1] for _ in range(2)] == [b"later", b"and later"]


def test_whoever_comes_late_is_told_the_time_first(broker: TcpqBroker) -> None:
    broker.publish(TIME_CHANNEL, encode_time(1, 2))
    with subscribers(broker, "mine") as (reader,):
        reader.send(TcpqFrame(SUBSCRIBE, ".*"))
        assert broker.wait_for_subscribers(["A"], _PATIENCE_S) == []
        broker.publish("A", b"first")
        assert [reader.next() for _ in range(2)] == [(TIME_CHANNEL, encode_time(1, 2)), ("A", b"first")]


def test_half_frames_wait_and_hold_up_nobody(broker: TcpqBroker) -> None:
    frame = TcpqFrame(PUBLISH, "A", b"x" * 1000).encode()
    with subscribers(broker, "A", "B") as (reader, writer):
        writer.socket.sendall(frame[:500])
        broker.publish("A", b"meanwhile")
        assert reader.next() == ("A", b"meanwhile")
        writer.socket.sendall(frame[500:])
        assert reader.next() == ("A", b"x" * 1000)


def test_silent_strangers_leave_room_for_others(broker: TcpqBroker) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(70):
            stack.enter_context(socket.create_connection(broker_address(broker)))
        (decent,) = stack.enter_context(subscribers(broker, "A"))
        broker.publish("A", b"here")
        assert decent.next() == ("A", b"here")


def test_without_a_free_file_it_listens_again_later(broker: TcpqBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    accept, refusals = socket.socket.accept, []

    def refuse_first(listener: socket.socket) -> tuple[socket.socket, object]:
        if not refusals:
            refusals.append(OSError(errno.EMFILE, "Too many open files"))
            raise refusals[0]
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", refuse_first)
    with subscribers(broker, "A") as (reader,):
        assert len(refusals) == 1
        broker.publish("A", b"here")
        assert reader.next() == ("A", b"here")


def test_what_is_never_completed_takes_no_more_than_its_share(
    broker: TcpqBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worldline.metasim.public.broker._INCOMPLETE_MAX", 100_000)
    head = TcpqFrame(PUBLISH, "A", b"x" * 1_000_000).encode()[:60_000]
    with subscribers(broker, "A", "B", "C") as (reader, first, second):
        first.socket.sendall(head)
        second.socket.sendall(head)
        eventually(lambda: "too much is waiting for the rest of its frame" in broker.dismissed)
        broker.publish("A", b"here")
        assert reader.next() == ("A", b"here")


def test_a_flood_is_read_at_a_bounded_share_of_time(broker: TcpqBroker) -> None:
    with subscribers(broker, "A", "NOTHING") as (reader, flooder):
        flood = TcpqFrame(PUBLISH, "FLOOD", b"").encode() * 5000
        flooder.socket.setblocking(False)
        accepted = 0
        for number in range(200):
            with contextlib.suppress(BlockingIOError):
                accepted += flooder.socket.send(flood)
            broker.publish("A", b"%d" % number)
            assert reader.next() == ("A", b"%d" % number)
        assert accepted < 200 * len(flood)


def test_who_waits_is_told_when_somebody_listens(broker: TcpqBroker) -> None:
    assert broker.wait_for_subscribers(["A", "B"], 0.0) == ["A", "B"]
    with subscribers(broker, "A"):
        assert broker.wait_for_subscribers(["A", "B"], 0.0) == ["B"]
        with subscribers(broker, "[B-D]"):
            assert broker.wait_for_subscribers(["A", "B"], _PATIENCE_S) == []


def test_what_is_under_way_at_the_end_is_delivered() -> None:
    broker = TcpqBroker().open()
    with subscribers(broker, "A") as (reader,):
        for number in range(1000):
            broker.publish("A", b"%d" % number)
        broker.close()
        assert [reader.next()[1] for _ in range(1000)] == [b"%d" % number for number in range(1000)]
        assert reader.was_dropped()
    assert broker.lost == 0


def test_what_can_not_be_opened_or_reached_is_said(broker: TcpqBroker) -> None:
    with pytest.raises(UsageError, match="can listen on"):
        TcpqBroker(broker.url).open()
    with pytest.raises(UsageError, match="isn't an address"):
        TcpqBroker("nonsense:port")
    with pytest.raises(UsageError, match="tcpq protocol"):
        TcpqBroker("unix:///tmp/x:y")
    with pytest.raises(LossError, match="no LCM broker can be reached"):
        dial_broker("tcpq://127.0.0.1:1", _PATIENCE_S)


def test_addresses_default_as_in_lcm() -> None:
    assert str(tcpq_address("tcpq://")) == "tcp://127.0.0.1:7700"
    assert str(tcpq_address("tcpq://host")) == "tcp://host:7700"
    assert str(tcpq_address("[::1]:80")) == "tcp://[::1]:80"


def broker_address(broker: TcpqBroker) -> tuple[str, int]:
    address = tcpq_address(broker.url)
    return address.place, address.port
