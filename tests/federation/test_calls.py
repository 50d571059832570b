"""The calls of a connection: the compiled build's own and those of Python do the same."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from worldline.builds import build
from worldline.federation import sockets
from worldline.federation.server import run_journal
from worldline.federation.server.connection import SocketWatch, socket_watch
from worldline.federation.sockets import READ, WRITE, wake_every
from worldline.lock import Abort, Grant, Next, Publish, Subscribe, Subscription
from worldline.model import FOREVER, Message
from worldline.wire.codec import FRAME_MAX, HEARTBEAT, encode_answer, encode_events

CALLS: Any = import_module("worldline.federation.calls") if build == "compiled" else None
KINDS: dict[str, Any] = {"Python": sockets.SocketCalls}
if build == "compiled":
    KINDS["C"] = CALLS.SocketCalls

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


# --- Locks, the clock and records ---

LOCKS: dict[str, Any] = {"Python": (threading.Lock, threading.RLock)}
if build == "compiled":
    calls = import_module("worldline.federation.calls")
    LOCKS["C"] = (calls.Mutex, calls.ReentrantMutex)


@pytest.mark.parametrize("kinds", LOCKS.values(), ids=LOCKS)
def test_a_lock_keeps_other_threads_out(kinds: tuple[Any, Any]) -> None:
    for kind in kinds:
        lock, seen = kind(), list[bool]()

        def look(lock: Any = lock, seen: list[bool] = seen) -> None:
            seen.append(lock.acquire(blocking=False))

        looks = threading.Thread(target=look)
        with lock:
            looks.start()
            looks.join()
        assert seen == [False]
        with pytest.raises(KeyError), lock:
            raise KeyError
        assert lock.acquire(blocking=False)
        waits = threading.Thread(target=lock.__enter__)
        waits.start()
        lock.release()
        waits.join(10)
        assert not waits.is_alive()


@pytest.mark.parametrize("kinds", LOCKS.values(), ids=LOCKS)
def test_of_many_threads_each_gets_a_lock_and_one_at_a_time(kinds: tuple[Any, Any]) -> None:
    for kind in kinds:
        lock, held, most = kind(), list[int](), list[int]()

        def work(lock: Any = lock, held: list[int] = held, most: list[int] = most) -> None:
            for _ in range(100):
                with lock:
                    held.append(1)
                    os.sched_yield()  # So that others ask for it meanwhile.
                    most.append(len(held))
                    held.pop()

        workers = [threading.Thread(target=work, daemon=True) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert most == [1] * 800


@pytest.mark.parametrize("kinds", LOCKS.values(), ids=LOCKS)
def test_only_a_reentrant_lock_can_be_taken_twice(kinds: tuple[Any, Any]) -> None:
    once, often = (kind() for kind in kinds)
    with once, often, often:
        assert not once.acquire(blocking=False)
        assert often.acquire(blocking=False)
        often.release()
        left: list[bool] = []
        asks = threading.Thread(target=lambda: left.append(often.acquire(blocking=False)))
        asks.start()
        asks.join()
        assert left == [False]
    assert once.acquire(blocking=False)


@pytest.mark.parametrize("kinds", LOCKS.values(), ids=LOCKS)
def test_a_handler_that_raises_ends_the_wait_for_a_lock(kinds: tuple[Any, Any]) -> None:
    has_rung = False

    def interrupt(*_: object) -> None:
        nonlocal has_rung
        if not has_rung:  # On a busy machine it may ring again while this one is heard.
            has_rung = True
            raise InterruptedError

    def wait() -> None:  # Whether it rings before that, or then.
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        with lock:
            pass

    lock = kinds[0]()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with lock, pytest.raises(InterruptedError):
            wait()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with lock:
        pass


@pytest.mark.skipif(build != "compiled", reason="there is only one of each")
def test_the_compiled_clock_and_records_are_those_of_python() -> None:
    before = time.monotonic()
    assert before <= calls.monotonic() <= time.monotonic()
    rooms = bytearray(100), bytearray(100)
    check = 0xFFFFFFFF
    for place, body in ((3, b""), (23, b"a record" * 4), (75, bytearray(b"more"))):
        facts = (place, check, 2**63 + 5, 2 << 24 | 70_000, body)
        check = run_journal._written(rooms[0], *facts)
        assert calls.write_record(rooms[1], *facts) == check
        assert rooms[0] == rooms[1]
    with pytest.raises(ValueError, match="no room"):
        calls.write_record(rooms[1], 90, 0, 0, 0, b"")


# --- Whole frames ---


@pytest.mark.parametrize("much", [False, True], ids=["all of it", "what fits"])
def test_what_was_passed_on_is_taken_out(kind: Any, pair: Pair, much: bool) -> None:
    pair[0].setblocking(False)
    out = bytearray(range(256)) * (2**14 if much else 1)
    before, here = bytes(out), kind(pair[0], True, False)
    done = here.pass_on(out)
    assert (done < len(before)) == much
    assert bytes(out) == before[done:]
    if much:
        assert here.pass_on(out) == 0
        assert bytes(out) == before[done:]
    pair[1].setblocking(False)
    assert pair[1].recv(done)[:256] == bytes(range(256))
    out.clear()
    assert here.pass_on(out) == 0
    pair[1].close()
    out += b"x"
    with pytest.raises(BrokenPipeError):
        here.pass_on(out)
    assert out == b"x"


def test_only_compiled_calls_of_plain_sockets_take_frames_and_only_short_ones(kind: Any, pair: Pair) -> None:
    assert kind(pair[0], True, False).takes_frames(448) == (kind is not sockets.SocketCalls)
    assert not kind(pair[0], True, False).takes_frames(4096)
    assert not kind(pair[0], False, False).takes_frames(448)
    closed = kind(pair[0], True, False)
    closed.close()
    assert not closed.takes_frames(448)


SAID: list[Any] = [Publish("t", b"payload", 5), Next(7, FOREVER)]
GRANT = Grant("a", 9, [Message(5, 3, "b", 0, 0, "t", b"payload")])
TOO_LONG = Grant("a", 9, [Message(5, 3, "b", 0, 0, "t", bytes(4096))])

if build == "compiled":  # Nothing else has these.

    def unwaiting(end: socket.socket) -> Any:
        end.setblocking(False)
        return CALLS.SocketCalls(end, True, False)

    def test_events_are_said_as_a_frame(pair: Pair) -> None:
        said = list(SAID)
        assert unwaiting(pair[0]).say(said, FRAME_MAX) == b""
        assert said == []
        assert pair[1].recv(4096) == encode_events(list(SAID))

    def test_what_doesnt_fit_is_left_over(pair: Pair) -> None:
        here, other = unwaiting(pair[0]), unwaiting(pair[1])
        filled = 0
        while done := here.send_some(bytes(1000), 0):
            filled += done
        said = list(SAID)
        assert here.say(said, FRAME_MAX) == encode_events(list(SAID))
        assert said == []
        came = b""
        while (more := other.received(2**18, 0)) is not None:
            came += more
        assert came == bytes(filled)

    def test_of_a_frame_that_fits_in_part_the_rest_is_left_over(pair: Pair) -> None:
        here, other = unwaiting(pair[0]), unwaiting(pair[1])
        pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4608)
        whole = sent = b""
        for number in range(1000):
            said = [Publish("t", bytes([number % 256]) * 9000, number)]
            frame = encode_events(list(said))
            rest = here.say(said, FRAME_MAX)
            assert said == []
            whole += frame
            sent += frame[: len(frame) - len(rest)]
            if rest:
                break
        assert rest
        came = b""
        while (more := other.received(2**18, 0)) is not None:
            came += more
        assert came == sent == whole[: -len(rest)]

    @pytest.mark.parametrize(
        ("said", "longest"),
        [([Subscribe(Subscription("t"), 0, 0)], FRAME_MAX), (SAID, len(encode_events(list(SAID))) - 5)],
        ids=["another event", "too long"],
    )
    def test_what_isnt_said_here_stays_in_the_list(pair: Pair, said: list[Any], longest: int) -> None:
        here = unwaiting(pair[0])
        given = list(said)
        assert here.say(given, longest) is None
        assert given == said
        assert unwaiting(pair[1]).received(448, 0) is None

    def test_events_stay_in_the_list_if_the_connection_is_broken(pair: Pair) -> None:
        pair[1].close()
        said = list(SAID)
        with pytest.raises(BrokenPipeError):
            unwaiting(pair[0]).say(said, FRAME_MAX)
        assert said == SAID

    def test_a_grant_that_comes_alone_is_read_at_once(pair: Pair) -> None:
        here = unwaiting(pair[0])
        assert here.hear_grant(FRAME_MAX, 0) is None
        pair[1].sendall(encode_answer(GRANT))
        assert here.hear_grant(FRAME_MAX, 0) == GRANT

    @pytest.mark.parametrize(
        "came",
        [
            HEARTBEAT,
            HEARTBEAT + encode_answer(GRANT),
            encode_answer(GRANT) + HEARTBEAT,
            2 * encode_answer(GRANT),
            encode_answer(GRANT)[:-1],
            encode_answer(GRANT)[:3],
            b"\x80" + encode_answer(GRANT)[1:],
            encode_answer(GRANT)[:4] + bytes(len(encode_answer(GRANT)) - 4),
            encode_answer(Abort("a", "no reason")),
            encode_answer(TOO_LONG)[:4096],
        ],
    )
    def test_anything_else_is_returned_as_it_came(pair: Pair, came: bytes) -> None:
        for hear in (lambda here: here.hear_grant(FRAME_MAX, 0), lambda here: here.hear_events(FRAME_MAX, 64)):
            pair[1].sendall(came)
            assert hear(unwaiting(pair[0])) == came
        pair[1].shutdown(socket.SHUT_WR)
        assert unwaiting(pair[0]).hear_grant(FRAME_MAX, 0) == unwaiting(pair[0]).hear_events(FRAME_MAX, 64) == b""

    def test_a_frame_is_read_up_to_its_limits(pair: Pair) -> None:
        here, data = unwaiting(pair[0]), encode_events(list(SAID))
        bodies: list[bytes] = []
        pair[1].sendall(data)
        assert here.hear_events(len(data) - 4, 2, bodies) == SAID
        assert bodies == [data[4:]]  # Which is what a journal keeps.
        pair[1].sendall(data)
        assert here.hear_events(len(data) - 5, 2, bodies) == data
        assert len(bodies) == 1
        pair[1].sendall(data)
        assert here.hear_events(FRAME_MAX, 1) == data
        whole = bytes(4096 - 4 - len(encode_events([Publish("t", bytes(1000), 5)])) + 4 + 1000)
        data = encode_events([Publish("t", whole, 5)])
        assert len(data) == 4096
        pair[1].sendall(data)
        assert here.hear_events(FRAME_MAX, 64) == [Publish("t", whole, 5)]
