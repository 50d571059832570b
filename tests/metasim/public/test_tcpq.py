"""The tcpq codec: the same frames however they are cut, and whatever isn't the protocol is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.metasim.public.tcpq import (
    CLIENT_MAGIC,
    DATA_MAX,
    NAME_MAX,
    PUBLISH,
    SERVER_MAGIC,
    SUBSCRIBE,
    UNSUBSCRIBE,
    TcpqDecoder,
    TcpqFrame,
    greeting,
)
from worldline.model.errors import PeerError

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
frames = st.builds(TcpqFrame, st.just(PUBLISH), names, st.binary(max_size=40)) | st.builds(
    TcpqFrame, st.sampled_from([SUBSCRIBE, UNSUBSCRIBE]), names, st.just(b"")
)


def test_the_bytes_are_those_of_lcm() -> None:
    assert greeting(CLIENT_MAGIC) == bytes.fromhex("287617fb00000100")
    assert TcpqFrame(PUBLISH, "AB", b"xyz").encode() == bytes.fromhex("000000010000000241420000000378797a")
    assert TcpqFrame(SUBSCRIBE, ".*").encode() == bytes.fromhex("00000002000000022e2a")


@given(st.lists(frames, max_size=6), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_frames_come_out_as_they_went_in_however_they_are_cut(sent: list[TcpqFrame], sizes: list[int]) -> None:
    data = greeting(SERVER_MAGIC) + b"".join(frame.encode() for frame in sent)
    decoder = TcpqDecoder(SERVER_MAGIC)
    received, turn = [], 0
    while data:
        size = sizes[turn % len(sizes)]
        received += decoder.feed(data[:size])
        data, turn = data[size:], turn + 1
    assert received == sent
    assert decoder.greeted
    assert len(decoder) == 0


@given(st.binary(max_size=200))
def test_hostile_bytes_are_refused_or_wait(data: bytes) -> None:
    decoder = TcpqDecoder(CLIENT_MAGIC)
    decoder.feed(greeting(CLIENT_MAGIC))
    try:
        decoder.feed(data)
    except PeerError:
        return
    assert len(decoder) <= len(data)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "isn't LCM's tcpq protocol"),
        (greeting(SERVER_MAGIC), "isn't LCM's tcpq protocol"),
        (greeting(CLIENT_MAGIC) + struct.pack(">II", 4, 0), "no frames of kind 4"),
        (greeting(CLIENT_MAGIC) + struct.pack(">II", 1, NAME_MAX + 1), "longer than"),
        (greeting(CLIENT_MAGIC) + struct.pack(">III", 1, 0, DATA_MAX + 1), "longer than"),
        (greeting(CLIENT_MAGIC) + struct.pack(">II", 2, 1) + b"\xff", "isn't UTF-8"),
    ],
)
def test_what_is_wrong_is_said_before_more_is_taken_in(data: bytes, problem: str) -> None:
    with pytest.raises(PeerError, match=problem):
        TcpqDecoder(CLIENT_MAGIC).feed(data)
