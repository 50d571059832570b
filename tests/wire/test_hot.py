"""The quick readers of frames agree with the codec on all that they read, and leave everything else to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import msgpack

from tests.wire.strategies import answers, events, messages, payloads, texts, times
from worldline.lock.events import Advance, Grant, Next, Publish
from worldline.model.errors import PeerError
from worldline.model.message import Message
from worldline.model.time import FOREVER
from worldline.wire.codec import decode_answer, decode_events
from worldline.wire.hot import Said, ShortReader, read_grant

encode = msgpack.Encoder().encode
long_payloads = st.sampled_from((b"", bytes(31), bytes(255), bytes(256), bytes(2000)))
names = texts | st.sampled_from(("", "a" * 31, "a" * 32, "ü" * 100, "a" * 255))
publications = st.builds(Publish, names, payloads | long_payloads, times)
requests = st.builds(Next, times, times) | st.builds(Advance, times)
usual = st.tuples(st.lists(publications, max_size=20), st.lists(requests, max_size=1)).map(
    lambda said: [*said[0], *said[1]]
)
edges = st.sampled_from([2**power + offset for power in (0, 7, 8, 16, 32, 61) for offset in (-1, 0, 1)])


def said(body: bytes) -> list[Any] | None:
    """Read a frame, after another one of which nothing may be left."""
    reader = Said()
    assert reader.read(encode([Publish("before", b"before", 7), Next(8, 9)]))
    return reader.events() if reader.read(body) else None


def agree_on_said(body: bytes) -> bool:
    """Whether it is read quickly; if so, it is what the codec reads, and in the form that the codec writes."""
    found = said(body)
    if found is not None:
        assert decode_events(body) == found
        assert encode(found) == body
    return found is not None


def agree_on_granted(body: bytes) -> bool:
    found = read_grant(ShortReader(), body)
    if found is not None:
        assert decode_answer(body) == found
        assert encode(found) == body
        assert {type(message) for message in found.messages} <= {Message}
    return found is not None


@given(usual.filter(bool))
@example([Publish("t", b"x", 0), Next(FOREVER, FOREVER)])
def test_what_is_usually_said_is_read(frame: list[Any]) -> None:
    assert agree_on_said(encode(frame))


@given(edges, edges)
def test_numbers_are_read_at_the_edges_of_their_forms(one: int, other: int) -> None:
    assert agree_on_said(encode([Publish("t", b"", one), Next(one, other)]))


@given(st.builds(Grant, names, times | edges, st.lists(messages, max_size=20), st.booleans()))
def test_grants_are_read(grant: Grant) -> None:
    assert agree_on_granted(encode(grant))


@given(st.lists(events, max_size=4))
def test_of_all_that_is_said_nothing_is_read_otherwise(frame: list[Any]) -> None:
    agree_on_said(encode(frame))


@given(answers)
def test_of_all_answers_nothing_is_read_otherwise(answer: Any) -> None:
    assert agree_on_granted(encode(answer)) <= isinstance(answer, Grant)


@st.composite
def mangled(draw: st.DrawFn, bodies: st.SearchStrategy[bytes]) -> bytes:
    """Draw a frame in which some bytes are others, or missing, or too many."""
    body = bytearray(draw(bodies))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        body[start : start + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(body)


@given(mangled(usual.map(encode)) | st.binary(max_size=80))
def test_hostile_frames_are_read_as_the_codec_reads_them_or_not_at_all(body: bytes) -> None:
    agree_on_said(body)
    agree_on_granted(body)


@given(mangled(st.builds(Grant, texts, times, st.lists(messages, max_size=3), st.booleans()).map(encode)))
def test_hostile_grants_are_read_as_the_codec_reads_them_or_not_at_all(body: bytes) -> None:
    agree_on_granted(body)
    agree_on_said(body)


@given(usual.filter(bool).map(encode), st.data())
def test_what_is_cut_short_is_never_read(body: bytes, data: st.DataObject) -> None:
    assert said(body[: data.draw(st.integers(0, len(body) - 1))]) is None


ODD = {
    "nothing": b"",
    "no event": b"\x90",
    "a number in a longer form": b"\x91\x92\xa7advance\xcc\x05",
    "a text in a longer form": b"\x91\x92\xd9\x07advance\x05",
    "an array in a longer form": b"\xdc\x00\x01\x92\xa7advance\x05",
    "a number below zero": b"\x91\x92\xa7advance\xff",
    "a field left out": b"\x91\x92\xa4next\x05",
    "a field too many": b"\x91\x93\xa7advance\x05\x06",
    "a request that isn't the last": encode([Advance(5), Publish("t", b"", 5)]),
    "something behind it": encode([Advance(5)]) + b"\x00",
    "text that isn't any": b"\x91\x94\xa7publish\xa1\xff\xc4\x00\x05",
    "half a character": b"\x91\x94\xa7publish\xa1\xc3\xc4\x00\x05",
    "a number of 64 bits": b"\x91\x92\xa7advance\xcf" + b"\xff" * 8,
    "a long payload": encode([Publish("t", bytes(2**16), 5)]),
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_what_is_odd_is_left_to_the_codec(body: bytes) -> None:
    assert said(body) is None
    assert said(bytearray(body)) is None  # type: ignore[arg-type]


def test_names_are_forgotten_where_there_are_too_many() -> None:
    reader = Said()
    for number in range(3000):
        assert reader.read(encode([Publish(f"topic {number}", b"", 0)]))
        assert reader.topics == [f"topic {number}"]


def test_the_codec_says_what_is_wrong() -> None:
    for name in ("text that isn't any", "a number of 64 bits", "something behind it"):
        with pytest.raises(PeerError, match="can't be read"):
            decode_events(ODD[name])
