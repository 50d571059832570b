"""Frames: however a stream of bytes is cut up on its way, the same bodies come out of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.errors import PeerError
from worldline.model.frames import HEADER_SIZE, PIECE_LEAST, frame, frames
from worldline.wire.codec import FRAME_MAX, HEARTBEAT, SAID_MAX, Frames


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


def test_how_long_frames_are_is_part_of_the_protocol() -> None:
    assert FRAME_MAX == 16_842_752


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
    assert frames.is_cut_short() == (stream != b"".join(frame(body) for body in found))


def test_a_stream_between_two_frames_isnt_cut_short() -> None:
    frames = Frames()
    assert not frames.is_cut_short()
    assert list(frames.feed(b"\x00\x00")) == []
    assert frames.is_cut_short()
    assert list(frames.feed(b"\x00\x01")) == []
    assert frames.is_cut_short()
    assert list(frames.feed(b"x")) == [b"x"]
    assert not frames.is_cut_short()


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
    assert frames.is_cut_short()
    room = frames.room()
    assert room is not None
    assert len(room) == 2**20


# --- Bodies in several frames ---

LONGEST = 8
sizes = st.one_of(
    st.integers(0, 3 * LONGEST + 1), st.sampled_from([k * LONGEST + d for k in (1, 5) for d in (-1, 0, 1)])
)


def gathering(most: int = 100, longest: int = LONGEST) -> Frames:
    found = Frames(longest)
    found.admit(most - SAID_MAX)
    return found


@given(st.lists(sizes, max_size=6), st.lists(st.integers(0, 300), max_size=8), st.sets(st.integers(0, 30)))
def test_bodies_that_are_too_long_for_a_frame_come_whole_out_of_several(
    lengths: list[int], places: list[int], beats: set[int]
) -> None:
    bodies = [bytes(range(length)) for length in lengths]
    cutter = gathering()
    sent, stream = 0, b""
    for body in bodies:
        said = frames(body, LONGEST)
        while said:  # A heartbeat may come between any two frames.
            end = HEADER_SIZE + (int.from_bytes(said[:HEADER_SIZE], "big") & 0x7FFFFFFF)
            stream += (HEARTBEAT if sent in beats else b"") + said[:end]
            said, sent = said[end:], sent + 1
    found = [body for piece in split(stream, places) for body in cutter.feed(piece)]
    assert [body for body in found if body] == [body for body in bodies if body]
    assert len(found) == len(bodies) + len(beats & set(range(sent)))
    assert not cutter.is_cut_short()


@pytest.mark.long
@given(st.integers(1, 5 * 2**16), st.integers(2**16, 2**17), st.data())
def test_what_is_read_right_into_its_place_is_the_same(length: int, longest: int, data: st.DataObject) -> None:
    body = bytes(length)[:-1] + b"x"
    stream = memoryview(frames(body, longest))
    cutter = gathering(length, longest)
    bodies: list[bytes] = []
    while stream:
        room = cutter.room()
        size = data.draw(st.sampled_from([5, 2**12, 2**17]))
        if room is not None:
            size = min(size, len(room), len(stream))
            room[:size] = stream[:size]
            room.release()
            cutter.fill([size])
        else:
            cutter.push([bytes(stream[:size])])
        stream = stream[size:]
        while cutter.cut(bodies):
            pass
    assert bodies == [body]


def test_a_body_that_fits_is_one_frame_as_ever_and_one_byte_more_makes_two() -> None:
    assert frames(b"12345678", 8) == frame(b"12345678")
    assert frames(b"123456789", 8) == b"\x80\x00\x00\x0812345678\x00\x00\x00\x019"


GOES_ON = 0x80000000


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ([GOES_ON], "a frame of 0 bytes that goes on in the next one is too short"),
        (
            [GOES_ON | PIECE_LEAST - 1],
            f"a frame of {PIECE_LEAST - 1:,} bytes that goes on in the next one is too short",
        ),
        ([GOES_ON | 2**17 + 1], "a frame of 131,073 bytes is too long"),
        ([GOES_ON | 2**17, 2**17 + 1], "a frame of 131,073 bytes is too long"),
        ([GOES_ON | 2**17] * 3, r"393,216 bytes in several frames are too many \(the limit is 300,000"),
        ([GOES_ON | 2**17, GOES_ON | 2**17, 40_000], "302,144 bytes in several frames are too many"),
        ([GOES_ON | 2**17, GOES_ON], "a frame of 0 bytes that goes on in the next one is too short"),
    ],
    ids=str,
)
def test_pieces_that_lead_nowhere_are_refused_before_the_next_of_them_is_there(said: list[int], complaint: str) -> None:
    cutter = gathering(300_000, 2**17)
    for header in said[:-1]:
        assert list(cutter.feed(header.to_bytes(4, "big") + bytes(header & ~GOES_ON))) == []
    with pytest.raises(PeerError, match=complaint):
        list(cutter.feed(said[-1].to_bytes(4, "big")))


def test_only_where_it_is_agreed_on_do_bodies_come_in_several_frames() -> None:
    with pytest.raises(PeerError, match="a frame of 2,147,549,184 bytes is too long"):
        list(Frames().feed((GOES_ON | 2**16).to_bytes(4, "big")))


def test_what_hasnt_come_yet_of_many_frames_takes_no_memory() -> None:
    cutter = gathering(2**27, 2**24)
    list(cutter.feed((GOES_ON | 2**24).to_bytes(4, "big")))
    room = cutter.room()
    assert room is not None
    assert len(room) == 2**20
    assert cutter.gathered() == 0
