"""Frames: however a stream of bytes is cut up on its way, the same bodies come out of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.errors import PeerError
from worldline.model.frames import HEADER_SIZE, frame
from worldline.model.payload import PAYLOAD_MAX
from worldline.wire.frames import FRAME_MAX, HEARTBEAT, Frames


def fed(pieces: list[bytes], longest: int = FRAME_MAX) -> list[bytes]:
    frames = Frames(longest)
    return [body for piece in pieces for body in frames.feed(piece)]


def split(stream: bytes, places: list[int]) -> list[bytes]:
    cuts = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(cuts)]


def test_a_frame_is_its_length_and_its_body() -> None:
    assert frame(b"abc") == b"\x00\x00\x00\x03abc"
    assert frame(b"") == HEARTBEAT == bytes(4)
    assert frame(bytes(70_000))[:4] == b"\x00\x01\x11\x70"


def test_the_longest_frame_holds_the_largest_payload_and_what_is_said_of_it() -> None:
    assert FRAME_MAX == PAYLOAD_MAX + 2**16 == 16_842_752


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 300), max_size=8))
def test_any_split_of_a_stream_gives_the_same_bodies(bodies: list[bytes], places: list[int]) -> None:
    stream = b"".join(frame(body) for body in bodies)
    assert fed(split(stream, places)) == bodies


def test_every_split_of_three_frames_in_two_places() -> None:
    bodies = [b"ab", b"", b"c"]
    stream = b"".join(frame(body) for body in bodies)
    for first in range(len(stream) + 1):
        for second in range(first, len(stream) + 1):
            assert fed(split(stream, [first, second])) == bodies


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=4), st.integers(1, 10))
def test_a_stream_that_is_cut_short_gives_what_was_whole(bodies: list[bytes], missing: int) -> None:
    stream = b"".join(frame(body) for body in bodies)[:-missing]
    frames = Frames()
    found = list(frames.feed(stream))
    assert found == bodies[: len(found)]
    assert frames.is_cut_short == (stream != b"".join(frame(body) for body in found))


def test_a_stream_between_two_frames_isnt_cut_short() -> None:
    frames = Frames()
    assert not frames.is_cut_short
    assert list(frames.feed(b"\x00\x00")) == []
    assert frames.is_cut_short
    assert list(frames.feed(b"\x00\x01")) == []
    assert frames.is_cut_short
    assert list(frames.feed(b"x")) == [b"x"]
    assert not frames.is_cut_short


def test_many_frames_at_once() -> None:
    assert fed([frame(b"x") * 10_000]) == [b"x"] * 10_000
    assert fed([HEARTBEAT * 10_000]) == [b""] * 10_000


@pytest.mark.parametrize("in_one_piece", [True, False])
def test_the_longest_frame_passes_and_a_longer_one_doesnt(in_one_piece: bool) -> None:
    def pieces(stream: bytes) -> list[bytes]:
        return [stream] if in_one_piece else [stream[index : index + 1] for index in range(len(stream))]

    assert fed(pieces(frame(b"12345678")), longest=8) == [b"12345678"]
    with pytest.raises(PeerError, match=r"a frame of 9 bytes is too long \(the limit is 8\)"):
        fed(pieces(frame(b"123456789")), longest=8)


def test_a_length_beyond_the_limit_is_refused_before_its_body_is_there() -> None:
    frames = Frames()
    list(frames.feed(b"\xff\xff\xff"))
    with pytest.raises(PeerError, match="4,294,967,295 bytes"):
        list(frames.feed(b"\xff"))


def test_what_stands_before_a_frame_that_is_too_long_is_given() -> None:
    frames = Frames(8)
    bodies = iter(frames.feed(frame(b"good") + b"\x00\x00\x00\x09"))
    assert next(bodies) == b"good"
    with pytest.raises(PeerError):
        next(bodies)


def test_the_limit_can_be_raised_between_two_frames_that_came_together() -> None:
    frames = Frames(4)
    found = []
    for body in frames.feed(frame(b"hi") + frame(b"much longer")):
        found.append(body)
        frames.longest = 100
    assert found == [b"hi", b"much longer"]


def test_what_hasnt_come_yet_takes_no_memory() -> None:
    frames = Frames()
    list(frames.feed(FRAME_MAX.to_bytes(HEADER_SIZE, "big")))
    assert frames.is_cut_short
    room = frames.room()
    assert room is not None
    assert len(room) == 2**20
