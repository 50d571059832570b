"""The calls of a connection: the compiled build's own and those of Python do the same."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from worldline.builds import build
from worldline.federation import sockets
from worldline.federation.server.connection import READ, WRITE, SocketWatch, socket_watch
from worldline.federation.sockets import wake_every

KINDS: dict[str, Any] = {"Python": sockets.SocketCalls}
if build == "compiled":
    KINDS["C"] = import_module("worldline.federation.calls").SocketCalls

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_what_is_sent_is_received(kind: Any, pair: Pair) -> None:
    for end in pair:
        end.setblocking(False)
    one, other = (kind(end, True, False) for end in pair)
    assert one.send_some(b"hello", 2) == 3
    assert one.send_some(bytearray(b"!"), 0) == 1
    assert other.received(448, 0) == b"llo!"
    assert other.received(448, 0) is None
    unread: list[bytes] = []
    assert not other.receive(448, 0, unread)
    sent: list[int] = []
    assert one.send(bytes(10_000), 1_000, sent)
    assert sent == [9_000]
    assert other.receive(2**18, 0, unread)  # More than the compiled one reads on its stack.
    assert unread == [bytes(9_000)]


def test_where_there_is_no_room_nothing_is_sent(kind: Any, pair: Pair) -> None:
    pair[0].setblocking(False)
    one, sent = kind(pair[0], True, False), list[int]()
    while one.send(bytes(2**18), 0, sent):
        pass
    assert sent
    assert one.send_some(b"more", 0) == 0


def test_a_call_that_waits_ends_when_its_time_is_over(kind: Any, pair: Pair) -> None:
    wake_every(pair[0], 0.001)
    one, sent = kind(pair[0], True, True), list[int]()
    assert one.received(448, 0) is None
    assert one.received(448, socket.MSG_DONTWAIT) is None
    while one.send(bytes(2**18), 0, sent):
        pass
    assert sent


def test_the_end_of_a_connection_is_empty_and_a_broken_one_raises(kind: Any, pair: Pair) -> None:
    one = kind(pair[0], True, False)
    pair[1].close()
    assert one.received(448, 0) == b""
    with pytest.raises(BrokenPipeError):
        one.send_some(b"hello", 0)


def test_what_is_closed_isnt_used_whatever_has_its_number_now(kind: Any, pair: Pair) -> None:
    one = kind(pair[0], True, False)
    one.close()
    pair[0].close()
    read, write = os.pipe()
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            one.send_some(b"hello", 0)
        with pytest.raises(OSError, match="Bad file descriptor"):
            one.received(448, 0)
    finally:
        os.close(read)
        os.close(write)


class RungError(Exception):
    pass


def test_a_handler_raises_out_of_a_call_that_waits(kind: Any, pair: Pair) -> None:
    def raise_it(*_: object) -> None:
        raise RungError

    before = signal.signal(signal.SIGUSR1, raise_it)
    one, main = kind(pair[0], True, True), threading.get_ident()
    ringing = threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGUSR1))

    def wait() -> None:  # Whether it rings before that, or then.
        ringing.start()
        one.received(448, 0)

    try:
        with pytest.raises(RungError):
            wait()
    finally:
        ringing.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("watch", [SocketWatch, socket_watch], ids=["Python", "the fastest"])
def test_a_watch_tells_what_is_ready(watch: Any, pair: Pair) -> None:
    one, other = pair
    sockets = watch()
    try:
        sockets.register(one, READ, lambda: "read")
        assert sockets.ready(0) == []
        other.send(b"hello")
        assert [act() for act in sockets.ready(1)] == ["read"]
        sockets.modify(one, 0)
        assert sockets.ready(0) == []
        sockets.modify(one, WRITE)
        assert [act() for act in sockets.ready(1)] == ["read"]
        sockets.unregister(one)
        assert sockets.ready(0.001) == []
    finally:
        sockets.close()
