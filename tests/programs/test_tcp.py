"""The stack of a computer, without Python's sockets: data arrives whole, whatever the network does to segments."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.segments import Datagram, Segment, read_datagram, read_segment
from worldline.programs.ports import Directory, failure
from worldline.programs.stack import Stack, StreamSocket

MS, SECOND = 1_000_000, 1_000_000_000


class Wire:
    """Two computers and a network between them that loses, repeats, damages and reorders."""

    def __init__(self, seed: int = 0, loss: float = 0, repeats: float = 0, damage: float = 0) -> None:
        self.now = 0
        names = Directory(["a", "b"])
        self.stacks = {name: Stack(name, names) for name in ("a", "b")}
        self.sent = 0
        self.deaf: set[str] = set()  # Who hears nothing.
        self._draws = random.Random(seed)
        self._shares = loss, repeats, damage
        self._travelling: list[tuple[int, int, str, str, str, bytes]] = []

    def step(self) -> bool:
        """Let time pass up to the next event; False if there is none."""
        for name, stack in self.stacks.items():
            for protocol, receiver, payload in stack.take_outgoing():
                self._send(name, receiver, protocol, payload)
        self._travelling.sort()
        times = [stack.due for stack in self.stacks.values()] + [each[0] for each in self._travelling[:1]]
        if min(times) >= 2**62:
            return False
        self.now = min(times)
        for stack in self.stacks.values():
            stack.now = self.now
        while self._travelling and self._travelling[0][0] <= self.now:
            _, _, sender, receiver, protocol, payload = self._travelling.pop(0)
            if receiver not in self.deaf:
                self.stacks[receiver].hear(protocol, sender, payload)
        for stack in self.stacks.values():
            stack.pass_time()
        return True

    def _send(self, sender: str, receiver: str, protocol: str, payload: bytes) -> None:
        loss, repeats, damage = self._shares
        for _ in range(1 + (self._draws.random() < repeats)):
            self.sent += 1
            if self._draws.random() < loss:
                continue
            data = bytearray(payload)
            if self._draws.random() < damage:
                data[self._draws.randrange(len(data))] ^= 1 << self._draws.randrange(8)
            arrives = self.now + self._draws.randrange(MS, 4 * MS)
            self._travelling.append((arrives, self.sent, sender, receiver, protocol, bytes(data)))

    def connected(self) -> tuple[StreamSocket, StreamSocket]:
        listener = StreamSocket(self.stacks["b"])
        listener.bind(("0.0.0.0", 80))
        listener.listen(5)
        client = StreamSocket(self.stacks["a"])
        with pytest.raises(BlockingIOError):
            client.connect(("10.0.0.2", 80))
        while not listener.is_readable():
            assert self.step()
        return client, listener.accept()

    def transfer(self, sender: StreamSocket, receiver: StreamSocket, data: bytes) -> bytes:
        sent, received = 0, bytearray()
        while len(received) < len(data):
            try:
                while sent < len(data):
                    sent += sender.send(memoryview(data)[sent : sent + 100_000])
            except BlockingIOError:
                pass
            try:
                while True:
                    received += receiver.receive(50_000)
            except BlockingIOError:
                pass
            assert self.step(), f"stuck after {len(received):,} bytes"
        return bytes(received)


def test_five_megabytes_through_a_bad_network() -> None:
    wire = Wire(seed=1, loss=0.05, repeats=0.02, damage=0.02)
    client, server = wire.connected()
    data = random.Random(2).randbytes(5_000_000)
    assert wire.transfer(client, server, data) == data


@given(st.integers(0, 2**32), st.floats(0, 0.3), st.integers(1, 300_000))
def test_data_arrives_whole_both_ways_and_ends(seed: int, share: float, size: int) -> None:
    wire = Wire(seed, share, share, share)
    client, server = wire.connected()
    data = random.Random(seed).randbytes(size)
    assert wire.transfer(client, server, data) == data
    assert wire.transfer(server, client, data[:1000]) == data[:1000]
    client.close()
    while not server.is_readable():
        assert wire.step()
    assert server.receive(1) == b""
    server.close()
    while wire.step():
        pass
    assert wire.now < 1000 * SECOND


def test_an_echo_takes_two_messages() -> None:
    wire = Wire()
    client, server = wire.connected()
    wire.transfer(client, server, b"begin")
    before = wire.sent
    for _ in range(10):
        wire.transfer(client, server, b"ping")
        wire.transfer(server, client, b"pong")
    assert 20 <= wire.sent - before <= 21  # Acknowledgements travel with data; the first one may be late.


def test_a_slow_reader_stops_the_sender_and_lets_it_go_on() -> None:
    wire = Wire(loss=0.2, seed=3)
    client, server = wire.connected()
    sent = 0
    with suppress(BlockingIOError):
        while sent < 10_000_000:
            sent += client.send(bytes(10_000))
            wire.step()
    assert sent < 1_000_000
    for _ in range(200):
        wire.step()
    received = 0
    while received < sent:
        try:
            received += len(server.receive(10_000))
        except BlockingIOError:
            assert wire.step()


def until_told(wire: Wire, end: StreamSocket) -> int:
    while not (error := end.take_error()):
        assert wire.step()
    return error


def test_who_answers_nothing_is_given_up_after_minutes() -> None:
    wire = Wire()
    client = StreamSocket(wire.stacks["a"])
    wire.deaf.add("b")
    with pytest.raises(BlockingIOError):
        client.connect(("10.0.0.2", 80))
    assert until_told(wire, client) == errno.ETIMEDOUT
    assert wire.now == 127 * SECOND  # As on Linux: 1 + 2 + 4 + … + 64 s.


def test_data_that_is_never_acknowledged_is_given_up_after_a_quarter_of_an_hour() -> None:
    wire = Wire()
    client, _ = wire.connected()
    wire.deaf.add("b")
    client.send(b"x")
    assert until_told(wire, client) == errno.ETIMEDOUT
    assert 900 * SECOND < wire.now < 1000 * SECOND


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_machine_that_was_off_answers_with_a_reset(share: float) -> None:
    wire = Wire(loss=share, seed=5)
    client, _ = wire.connected()
    wire.stacks["b"] = Stack("b", Directory(["a", "b"]), incarnation=1)
    wire.stacks["b"].now = wire.now
    client.send(b"x")
    assert until_told(wire, client) == errno.ECONNRESET


def test_a_full_queue_lets_the_other_end_try_again() -> None:
    wire = Wire()
    listener = StreamSocket(wire.stacks["b"])
    listener.bind(("0.0.0.0", 80))
    listener.listen(0)
    clients = [StreamSocket(wire.stacks["a"]) for _ in range(2)]
    for client in clients:
        with pytest.raises(BlockingIOError):
            client.connect(("10.0.0.2", 80))
    while not clients[0].is_writable():
        wire.step()
    while wire.now < SECOND // 2:
        wire.step()
    assert [client.is_writable() for client in clients] == [True, False]
    listener.accept()
    while not clients[1].is_writable():
        wire.step()
    assert wire.now > SECOND


@given(st.binary(max_size=300), st.integers(0, 10_000))
def test_damaged_messages_are_noticed(data: bytes, where: int) -> None:
    pairs: list[tuple[bytes, Callable[[bytes], object]]] = [
        (Segment(3, 1, 65_535, 2**32 - 1, 2**62, 7, 2**20, data).encoded(), read_segment),
        (Datagram(5, 6, data).encoded(), read_datagram),
    ]
    for whole, read in pairs:
        assert read(whole) is not None
        damaged = bytearray(whole)
        damaged[where % len(whole)] ^= 1 << where % 8
        assert read(bytes(damaged)) is None
        assert read(whole[: where % len(whole)]) is None


def test_errors_are_those_of_python() -> None:
    assert type(failure(errno.ECONNREFUSED)) is ConnectionRefusedError
    assert type(failure(errno.EAGAIN)) is BlockingIOError
