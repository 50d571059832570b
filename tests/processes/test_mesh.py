"""Frames between local processes: of all sizes, in pieces, in both directions at once, and to somebody who is gone."""

from __future__ import annotations

import multiprocessing
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from random import Random

import pytest

from tests.federation.transports import PATIENCE_S, Strand, eventually
from worldline.model.frames import frame as framed
from worldline.processes.mesh import Mesh, PeerGone

MORE_THAN_A_SOCKET_HOLDS = 5_000_000


class Pair:
    """Two meshes of one socket each; each is the other's number 0 and 1. The test is their parent."""

    def __init__(self) -> None:
        ends = socket.socketpair()
        pipes: list[tuple[Connection, Connection]] = [multiprocessing.Pipe() for _ in range(2)]
        self.ends = ends
        self.parents = [mine for mine, _ in pipes]
        self.meshes = [Mesh({1: ends[0]}, pipes[0][1]), Mesh({0: ends[1]}, pipes[1][1])]
        self._theirs = [theirs for _, theirs in pipes]

    def close(self) -> None:
        for mesh in self.meshes:
            mesh.close()
        for pipe in (*self.parents, *self._theirs):
            pipe.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    with closing(Pair()) as made:
        yield made


@pytest.fixture
def raw() -> Iterator[tuple[socket.socket, Mesh]]:
    """A mesh, and the bare other end of its socket."""
    with closing(Pair()) as made:
        yield made.ends[0], made.meshes[1]


def everything(mesh: Mesh, count: int) -> list[bytes]:
    """Wait for so many frames."""
    heard: list[bytes] = []
    while len(heard) < count:
        heard += [frame for _, frame in mesh.wait()]
    return heard


def test_frames_of_all_sizes_arrive_whole_and_in_order(pair: Pair) -> None:
    sizes = [0, 1, 2, 3, 4, 5, 255, 256, 65_535, 65_536, 2**18 - 4, 2**18 - 3, 2**18, 1, 0, 3 * 2**18 + 7]
    frames = [Random(number).randbytes(size) for number, size in enumerate(sizes)]
    first, second = pair.meshes

    def send() -> None:
        for frame in frames:
            first.post(1, frame)
        first.wait()  # The answer; until then it keeps sending what the socket didn't take at once.

    sending = Strand(send)
    assert everything(second, len(frames)) == frames
    second.post(0, b"thanks")
    sending.result()
    assert second.poll() == []


def test_both_send_more_than_a_socket_holds(pair: Pair) -> None:
    """Neither reads before it has said all it has to say, and still both get everything."""
    frames = [bytes([number]) * (MORE_THAN_A_SOCKET_HOLDS // 10) for number in range(10)]
    all_said = threading.Barrier(2)
    heard: list[list[bytes]] = [[], []]

    def talk(me: int) -> None:
        for frame in frames:
            pair.meshes[me].post(1 - me, frame)
        all_said.wait(PATIENCE_S)
        heard[me] = everything(pair.meshes[me], len(frames))
        pair.meshes[me].linger()

    strands = [Strand(lambda me=me: talk(me)) for me in range(2)]
    eventually(lambda: all(heard))
    for parent, strand in zip(pair.parents, strands, strict=True):
        parent.close()
        strand.result()
    assert heard == [frames, frames]


def test_a_frame_in_pieces_is_heard_when_it_is_whole(raw: tuple[socket.socket, Mesh]) -> None:
    other, mesh = raw
    other.setblocking(True)
    stream = framed(b"first") + framed(b"") + framed(b"third")
    heard = []
    for place in range(len(stream)):
        other.sendall(stream[place : place + 1])
        heard += [(place + 1, frame) for _, frame in mesh.poll()]
    assert heard == [(9, b"first"), (13, b""), (22, b"third")]


def test_many_frames_and_a_half_in_one_piece(raw: tuple[socket.socket, Mesh]) -> None:
    other, mesh = raw
    other.setblocking(True)
    last = framed(b"the last one")
    other.sendall(framed(b"a") + framed(b"bc") + last[:7])
    assert mesh.poll() == [(0, b"a"), (0, b"bc")]
    assert mesh.poll() == []
    other.sendall(last[7:])
    assert mesh.wait() == [(0, b"the last one")]


def test_waiting_for_a_frame_in_pieces(raw: tuple[socket.socket, Mesh]) -> None:
    """A piece of a frame isn't a frame: the wait goes on."""
    other, mesh = raw
    other.setblocking(True)
    other.sendall(framed(b"whole")[:6])
    waiting = Strand(mesh.wait)
    for byte in framed(b"whole")[6:]:
        assert not waiting.done
        other.sendall(bytes([byte]))
    assert waiting.result() == [(0, b"whole")]


def test_poll_returns_at_once(pair: Pair) -> None:
    assert pair.meshes[0].poll() == []


@pytest.mark.parametrize("ask", [Mesh.poll, Mesh.wait])
def test_a_peer_that_is_gone_is_named(pair: Pair, ask: object) -> None:
    assert callable(ask)
    pair.meshes[0].close()
    with pytest.raises(PeerGone, match="worker 0 is gone") as gone:
        ask(pair.meshes[1])
    assert gone.value.facts == {"worker": 0}


def test_what_a_peer_said_before_it_left_is_heard(pair: Pair) -> None:
    first, second = pair.meshes
    first.post(1, b"last words")
    first.close()
    assert second.wait() == [(0, b"last words")]
    with pytest.raises(PeerGone):
        second.wait()


def test_half_a_frame_and_then_the_end(raw: tuple[socket.socket, Mesh]) -> None:
    other, mesh = raw
    other.setblocking(True)
    other.sendall(framed(b"broken off")[:8])
    assert mesh.poll() == []
    other.close()
    with pytest.raises(PeerGone):
        mesh.poll()


def test_posting_to_a_peer_that_is_gone_does_no_harm(pair: Pair) -> None:
    """Reading tells; a worker that only sends finds out when it reads next."""
    first, second = pair.meshes
    first.post(1, b"x" * MORE_THAN_A_SOCKET_HOLDS)
    second.close()
    for _ in range(3):
        first.post(1, b"more")
    with pytest.raises(PeerGone):
        first.wait()


def test_wait_ends_when_the_parent_is_gone(pair: Pair) -> None:
    waiting = Strand(pair.meshes[0].wait)
    pair.parents[0].close()
    assert isinstance(waiting.failure(), EOFError)


def test_lingering_sends_the_rest_and_ends_with_the_parent(pair: Pair) -> None:
    first, second = pair.meshes
    frame = b"x" * MORE_THAN_A_SOCKET_HOLDS
    first.post(1, frame)
    lingering = Strand(first.linger)
    assert everything(second, 1) == [frame]
    assert not lingering.done
    pair.parents[0].close()
    lingering.result()


def test_lingering_for_a_peer_that_is_gone_ends_with_the_parent(pair: Pair) -> None:
    first, second = pair.meshes
    first.post(1, b"x" * MORE_THAN_A_SOCKET_HOLDS)
    second.close()
    lingering = Strand(first.linger)
    pair.parents[0].close()
    lingering.result()


def test_frames_among_four_keep_the_order_of_each_pair() -> None:
    """Everybody sends everybody numbered frames of drawn sizes, reading only now and then."""
    count, each = 4, 60
    ends: list[dict[int, socket.socket]] = [{} for _ in range(count)]
    for here in range(count):
        for there in range(here):
            ends[here][there], ends[there][here] = socket.socketpair()
    pipes: list[tuple[Connection, Connection]] = [multiprocessing.Pipe() for _ in range(count)]
    meshes = [Mesh(sockets, theirs) for sockets, (_, theirs) in zip(ends, pipes, strict=True)]

    heard: list[dict[int, list[int]]] = [{other: [] for other in sockets} for sockets in ends]

    def hear(me: int, frames: list[tuple[int, bytes]]) -> bool:
        for other, frame in frames:
            heard[me][other].append(int.from_bytes(frame[:4], "little"))
        return all(len(numbers) == each for numbers in heard[me].values())

    def talk(me: int) -> None:
        sizes = Random(me)
        for number in range(each):
            for other in ends[me]:
                meshes[me].post(other, number.to_bytes(4, "little") + bytes(sizes.choice((0, 10, 100_000))))
            if number % 7 == 0:
                hear(me, meshes[me].poll())
        while not hear(me, []):
            hear(me, meshes[me].wait())
        meshes[me].linger()

    strands = [Strand(lambda me=me: talk(me)) for me in range(count)]
    try:
        eventually(lambda: all(hear(me, []) for me in range(count)))
        for strand, (mine, _) in zip(strands, pipes, strict=True):
            assert not strand.done
            mine.close()
            strand.result()
    finally:
        for mesh, (_, theirs) in zip(meshes, pipes, strict=True):
            mesh.close()
            theirs.close()
    assert all(numbers == list(range(each)) for of_one in heard for numbers in of_one.values())
