"""What stands in frames: all comes back as it went in, and nothing that a stranger writes does more than raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack, structs

from tests.wire.strategies import ANSWERS, EVENTS, GREETINGS, answers, events, messages, times
from worldline.lock.events import Advance, Grant, Join, Leave, Next, ParticipantEvent, Peek, Publish, Subscription
from worldline.model.errors import PeerError
from worldline.model.message import Message
from worldline.model.time import FOREVER
from worldline.wire.codec import (
    FRAME_MAX,
    Frames,
    add_grant,
    decode_answer,
    decode_events,
    encode_answer,
    encode_events,
)
from worldline.wire.handshake import Answer, Challenge, Deliver, Fail, Hello, Told, Welcome


def bodies(data: bytes, longest: int = FRAME_MAX, largest: int = 0) -> list[bytes]:
    frames = Frames(longest)
    if largest:
        frames.admit(largest)
    found = list(frames.feed(data))
    assert not frames.is_cut_short()
    return found


# --- There and back ---


def test_every_kind_is_tried() -> None:
    assert set(EVENTS) == {*ParticipantEvent.__args__, Fail}
    assert set(ANSWERS) == set(Answer.__args__)
    assert set(GREETINGS) == {Challenge, Hello, Welcome}


@given(answers)
def test_each_answer_comes_back(answer: Any) -> None:
    (body,) = bodies(encode_answer(answer))
    assert decode_answer(body) == answer


@pytest.mark.parametrize("kind", GREETINGS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_each_greeting_comes_back(kind: type, data: st.DataObject) -> None:
    greeting = data.draw(GREETINGS[kind])
    assert msgpack.decode(msgpack.encode(greeting), type=kind) == greeting


@given(st.lists(events, max_size=6))
def test_a_list_of_events_comes_back_in_its_order(said: list[Any]) -> None:
    (body,) = bodies(encode_events(said))
    assert decode_events(body) == said


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        (["join"], Join()),
        (["join", None, [["t"]]], Join(None, (Subscription("t"),))),
        (["next", 5], Next(5, FOREVER)),
        (["peek", 5], Peek(5, FOREVER)),
        (["leave", 5], Leave(5, b"", False, {})),
        (["advance", 5, "from a later version"], Advance(5)),
    ],
)
def test_fields_with_defaults_may_be_missing_and_further_ones_are_ignored(short: list[object], whole: Told) -> None:
    assert decode_events(msgpack.encode([short])) == [whole]


# --- What doesn't fit into one frame ---


@given(st.lists(messages, max_size=30), times, st.booleans())
def test_a_long_grant_is_delivered_in_parts(granted: list[Message], horizon: int, final: bool) -> None:
    parts = [decode_answer(body) for body in bodies(encode_answer(Grant("b", horizon, granted, final), 300), 300)]
    assert all(isinstance(part, Deliver) for part in parts[:-1])
    last = parts[-1]
    assert isinstance(last, Grant)
    assert [message for part in parts for message in part.messages] == granted  # type: ignore[union-attr]
    assert structs.replace(last, messages=[]) == Grant("b", horizon, [], final)


def test_a_grant_that_just_fits_is_one_frame_and_one_byte_more_makes_two() -> None:
    longest = 200

    def grant(size: int) -> Grant:
        return Grant("b", 9, [Message(2, 1, "a", 0, 0, "t", b""), Message(2, 1, "a", 1, 0, "t", bytes(size))])

    overhead = len(msgpack.encode(grant(0)))
    assert len(bodies(encode_answer(grant(longest - overhead), longest), longest)) == 1
    assert len(bodies(encode_answer(grant(longest - overhead + 1), longest), longest)) == 2


@given(st.lists(st.builds(Publish, st.just("t"), st.binary(max_size=90), times), max_size=30))
def test_a_long_list_of_events_is_said_in_several_frames(said: list[ParticipantEvent]) -> None:
    parts = [decode_events(body) for body in bodies(encode_events(said, 150), 150)]
    assert [event for part in parts for event in part] == said
    assert all(parts) or parts == [[]]


def test_the_largest_payload_fits_under_the_longest_names() -> None:
    name = "\U0001f600" * 255
    size = 2**20
    message = Message(2**62, 2**62, name, 2**62, 1, name, bytes(size))
    (body,) = bodies(encode_answer(Grant(name, 2**62, [message]), 2**18), 2**18, size)
    assert decode_answer(body) == Grant(name, 2**62, [message])
    (body,) = bodies(encode_events([Publish(name, bytes(size), 2**62)], 2**18), 2**18, size)
    assert decode_events(body) == [Publish(name, bytes(size), 2**62)]


@given(st.lists(st.integers(0, 5 * 2**16), min_size=1, max_size=4), st.integers(2**16, 2**17))
def test_messages_and_events_of_any_size_are_said_and_understood(sizes: list[int], longest: int) -> None:
    messages = [Message(2, 1, "a", number, 0, "t", bytes(size)) for number, size in enumerate(sizes)]
    *first, last = map(decode_answer, bodies(encode_answer(Grant("b", 9, messages), longest), longest, 2**19))
    assert [message for part in (*first, last) for message in part.messages] == messages  # type: ignore[union-attr]
    out = bytearray(b"before")
    add_grant(out, Grant("b", 9, messages), longest)
    *first, last = map(decode_answer, bodies(bytes(out.removeprefix(b"before")), longest, 2**19))
    assert [message for part in (*first, last) for message in part.messages] == messages  # type: ignore[union-attr]
    assert isinstance(last, Grant)
    events: list[ParticipantEvent] = [*(Publish("t", bytes(size), 1) for size in sizes), Next(5)]
    said = [decode_events(body) for body in bodies(encode_events(events, longest), longest, 2**19)]
    assert [event for part in said for event in part] == events


# --- What strangers write ---

_DEEP = 100_000
GARBAGE: dict[str, bytes] = {
    "empty": b"",
    "never used": b"\xc1",
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "nil": b"\xc0",
    "a number": b"\x05",
    "a map": b"\x80",
    "deep arrays": b"\x91" * _DEEP,
    "deep maps": b"\x81\x01" * _DEEP,
    "deep in a field": b"\x91\x92\xa7promise" + b"\x91" * _DEEP,
    "deep in an ignored field": b"\x91\x93\xa7promise\x01" + b"\x91" * _DEEP + b"\x01",
    "deep maps in an ignored field": b"\x91\x93\xa7promise\x01" + b"\x81\x01" * _DEEP + b"\x01",
    "an array of 2^32 - 1": b"\xdd\xff\xff\xff\xff",
    "an array of 2^32 - 1 in a field": b"\x91\x93\xa4join\xc0\xdd\xff\xff\xff\xff",
    "a map of 2^32 - 1": b"\x91\x95\xa5leave\x00\xc4\x00\xc2\xdf\xff\xff\xff\xff",
    "a text of 2^32 - 1": b"\x91\x92\xdb\xff\xff\xff\xff",
    "bytes of 2^32 - 1": b"\x91\x94\xa7publish\xa1t\xc6\xff\xff\xff\xff",
    "an extension of 2^32 - 1": b"\x91\x93\xa7promise\x01\xc9\xff\xff\xff\xff\x05",
    "no UTF-8": b"\x91\x94\xa7publish\xa1\xff\xc4\x00\x01",
    "half a surrogate pair": b"\x91\x94\xa7publish\xa3\xed\xa0\x80\xc4\x00\x01",
    "a kind that isn't UTF-8": b"\x91\x92\xa1\xff\x01",
    "a trailing byte": b"\x91\x92\xa7promise\x01\x00",
    "two values": b"\x90\x90",
    "cut short": b"\x91\x92\xa7promis",
    "not in a list": msgpack.encode(["promise", 1]),
    "an empty event": msgpack.encode([[]]),
    "an unknown kind": msgpack.encode([["bogus", 1]]),
    "an operator's word": msgpack.encode([["barrier", 1]]),
    "a server's word": msgpack.encode([["grant", "a", 1, []]]),
    "a stranger's word": msgpack.encode([["hello", 1, "", "a", b"", b""]]),
    "a missing field": msgpack.encode([["publish", "t", b"x"]]),
    "a float for a time": msgpack.encode([["promise", 5.0]]),
    "a bool for a time": msgpack.encode([["promise", True]]),
    "text for a time": msgpack.encode([["promise", "5ms"]]),
    "nil for a time": msgpack.encode([["promise", None]]),
    "a timestamp for a time": b"\x91\x92\xa7promise\xd6\xff\x00\x00\x00\x01",
    "text for a payload": msgpack.encode([["publish", "t", "x", 1]]),
    "bytes for a topic": msgpack.encode([["publish", b"t", b"x", 1]]),
    "a buffer as an array": msgpack.encode([["join", None, [["t", [1, True]]]]]),
    "a number for a kind": msgpack.encode([[1, 2]]),
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_a_peers_error(body: bytes) -> None:
    with pytest.raises(PeerError, match=rf"a frame of {len(body):,} bytes can't be read"):
        decode_events(body)
    with pytest.raises(PeerError, match=rf"a frame of {len(body):,} bytes can't be read"):
        decode_answer(body)


def harmless(body: bytes) -> None:
    """Decode; whatever is read must be plain data of the right kinds, and whatever isn't must be a peer's error."""
    try:
        said = decode_events(body)
    except PeerError:
        pass
    else:
        assert all(type(event) in EVENTS for event in said)
    try:
        answer = decode_answer(body)
    except PeerError:
        pass
    else:
        assert type(answer) in ANSWERS


@given(st.binary(max_size=200))
def test_random_bytes_give_a_peers_error_and_nothing_else(body: bytes) -> None:
    harmless(body)


@given(st.one_of(st.lists(events, max_size=3), answers), st.data())
def test_damaged_frames_give_a_peers_error_or_something_of_the_right_kind(value: object, data: st.DataObject) -> None:
    body = bytearray(msgpack.encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body)))
        what = data.draw(st.sampled_from(("change", "insert", "remove", "cut")))
        if what == "insert":
            body.insert(place, data.draw(st.integers(0, 255)))
        elif what == "cut":
            del body[place:]
        elif place < len(body):
            if what == "change":
                body[place] = data.draw(st.integers(0, 255))
            else:
                del body[place]
    harmless(bytes(body))


def test_an_errors_text_doesnt_grow_with_what_was_sent() -> None:
    with pytest.raises(PeerError) as info:
        decode_events(msgpack.encode([["p" * 100_000, 1]]))
    assert len(str(info.value)) < 1_000
