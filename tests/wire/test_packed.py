"""The frames that are written and read in C: byte for byte what msgspec writes, and nothing read that it wouldn't."""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import msgpack

from tests.wire.strategies import EVENTS, answers, events, messages, numbers, texts
from worldline.builds import build
from worldline.lock.events import Advance, Grant, Next, Promise, Publish, Reached
from worldline.model.frames import frame
from worldline.model.message import Message
from worldline.wire.codec import FRAME_MAX
from worldline.wire.handshake import Answer, Told

pytestmark = pytest.mark.skipif(build != "compiled", reason="only the compiled build has them")

packed: Any = import_module("worldline.wire.packed") if build == "compiled" else None

said_most = st.one_of(*(EVENTS[kind] for kind in (Publish, Next, Advance, Promise, Reached)))
lengths = st.sampled_from([0, 1, 15, 16, 31, 32, 63, 64, 65, 127, 128, 255, 256, 2**14, 2**16 - 1, 2**16])
long_texts = st.builds(lambda size, letter: letter * size, lengths, st.sampled_from(["t", "ü", "日"]))
grants = st.builds(Grant, texts | long_texts, numbers, st.lists(messages, max_size=20), st.booleans())
many = st.lists(events | said_most, max_size=20)


def _by_msgspec(kind: Any, body: bytes) -> Any:
    try:
        return msgpack.decode(body, type=kind)
    except (msgspec.DecodeError, ValueError) as error:
        return type(error)


@given(many | st.lists(st.builds(Publish, long_texts, st.builds(bytes, lengths), numbers), max_size=2))
@example([Publish("t", b"x" * 16_000, 1)])
def test_events_are_written_as_msgspec_writes_them(said: list[Any]) -> None:
    data = packed.packed_events(said, FRAME_MAX)
    assert data is None or data == frame(msgpack.encode(said))


@given(grants)
def test_a_grant_is_written_as_msgspec_writes_it(grant: Grant) -> None:
    out = bytearray(b"before")
    data = packed.packed_grant(grant, FRAME_MAX)
    assert data is None or data == frame(msgpack.encode(grant))
    assert packed.pack_grant(out, grant, FRAME_MAX) == (data is not None)
    assert out == b"before" + (data or b"")


@given(st.lists(said_most, max_size=20))
def test_events_are_read_as_msgspec_reads_them(said: list[Any]) -> None:
    events_read = packed.unpacked_events(msgpack.encode(said))
    assert events_read is None or (events_read == said and list(map(type, events_read)) == list(map(type, said)))


@given(grants | answers)
def test_a_grant_is_read_as_msgspec_reads_it(answer: Answer) -> None:
    read = packed.unpacked_grant(msgpack.encode(answer))
    assert read is None or (read == answer and all(type(message) is Message for message in read.messages))


@pytest.mark.parametrize("size", [0, 1, 20, 200, 300, 10_000])
def test_what_most_hops_take_is_written_and_read(size: int) -> None:
    """A function that always leaves it to msgspec would pass all other tests."""
    said = [Publish("straße", bytes(size), 7), Promise(200), Reached(2**16), Advance(2**40), Next(2**61, 300)]
    data = packed.packed_events(said, FRAME_MAX)
    assert packed.unpacked_events(data[4:]) == said
    message = Message(2**33, 2**32, "sender", 128, 0, "straße", bytes(size))
    grant = Grant("t", 2**61, [message] * (30 if size < 300 else 1), True)
    out = bytearray()
    assert packed.pack_grant(out, grant, FRAME_MAX)
    assert packed.unpacked_grant(bytes(out[4:])) == grant
    assert packed.packed_grant(grant, FRAME_MAX) == out


def test_what_isnt_of_the_usual_types_is_left_to_msgspec() -> None:
    class Text(str):
        __slots__ = ()

    for event in (Publish(Text("t"), b"", 1), Publish("t", bytearray(), 1), Publish("\ud800", b"", 1)):  # type: ignore[arg-type]
        assert packed.packed_events([event], FRAME_MAX) is None
    for number in (-1, 2**64, True, 1.0, None):
        assert packed.packed_events([Advance(number)], FRAME_MAX) is None  # type: ignore[arg-type]
        assert not packed.pack_grant(bytearray(), Grant("t", number, []), FRAME_MAX)  # type: ignore[arg-type]
    assert not packed.pack_grant(bytearray(), Grant("t", 1, [(1, 1, "s", 0, 0, "t", b"")]), FRAME_MAX)  # type: ignore[list-item]
    assert not packed.pack_grant(bytearray(), Grant("t", 1, [], 1), FRAME_MAX)  # type: ignore[arg-type]


def test_what_is_too_long_for_a_frame_is_left_to_msgspec() -> None:
    event, grant = Publish("t", bytes(100), 1), Grant("t", 1, [Message(1, 1, "s", 0, 0, "t", bytes(100))])
    whole, said = len(msgpack.encode([event])), len(msgpack.encode(grant))
    assert packed.packed_events([event], whole) is not None
    assert packed.packed_events([event], whole - 1) is None
    assert packed.pack_grant(bytearray(), grant, said)
    assert not packed.pack_grant(bytearray(), grant, said - 1)


# Bodies that are nearly right: cut short, with bytes changed, put in or left out, or with numbers of another width.
_WIDER = (
    b"\xcc\x05",
    b"\xcd\x00\x05",
    b"\xce\x00\x00\x00\x05",
    b"\xcf" + bytes(7) + b"\x05",
    b"\xd0\x05",
    b"\xcf" + b"\xff" * 8,
)
_PARTS = (
    *_WIDER,
    b"\xc0",
    b"\xc2",
    b"\x90",
    b"\xdc\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xda\xff\xff",
    b"\xc6\xff\xff\xff\xff",
)


@st.composite
def hostile(draw: st.DrawFn, right: st.SearchStrategy[Any]) -> bytes:
    body = msgpack.encode(draw(right))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(start + 2, len(body))))
        body = body[:start] + draw(st.sampled_from(_PARTS) | st.binary(max_size=3)) + body[end:]
    return body[: draw(st.integers(0, len(body)))] if draw(st.booleans()) else body


@given(hostile(st.lists(said_most, min_size=1, max_size=3)) | st.binary(max_size=40))
@example(msgpack.encode([["publish", "t", b"", 5], ["next", 5]]))
@example(msgpack.encode([["publish", "t", "text", 5]]))
@example(msgpack.encode([["advance", 5, "more"]]))
@example(msgpack.encode([["advance", 2**62 + 1]]))
@example(b"\x91\x94\xa7publish\xa1\xff\xc4\x00\x05")
@example(b"")
def test_of_hostile_events_none_is_read_that_msgspec_would_refuse(body: bytes) -> None:
    read = packed.unpacked_events(body)
    assert read is None or read == _by_msgspec(list[Told], body)


@given(
    hostile(st.builds(Grant, texts, numbers, st.lists(messages, max_size=2), st.booleans())) | st.binary(max_size=40)
)
@example(msgpack.encode(["grant", "t", 5, []]))
@example(msgpack.encode(["grant", "t", 5, [], True, "more"]))
@example(msgpack.encode(["grant", "t", 5, [[1, 1, "s", 0, 0, "t", b"", 1]], True]))
@example(msgpack.encode(["grant", "t", 5, [[1, 1, "s", 0, 0, "t"]], True]))
@example(b"\x95\xa5grant\xa1\xff\x05\x90\xc2")
def test_of_hostile_grants_none_is_read_that_msgspec_would_refuse(body: bytes) -> None:
    read = packed.unpacked_grant(body)
    assert read is None or read == _by_msgspec(Answer, body)


@pytest.mark.soak
def test_both_agree_on_very_many_bodies() -> None:
    draw = Random(34)
    said: list[Any] = [
        Publish("topic", b"payload", 2**33),
        Next(2**61, 2**61),
        Advance(5),
        Promise(300),
        Reached(2**17),
    ]
    grant = Grant(
        "me", 2**61, [Message(5, 4, "sender", 3, 0, "topic", b"payload"), Message(2**40, 9, "s", 70_000, 1, "t", b"")]
    )
    kept = 0
    for kind, read, whole in (
        (list[Told], packed.unpacked_events, msgpack.encode(said)),
        (Answer, packed.unpacked_grant, msgpack.encode(grant)),
    ):
        for _ in range(200_000):
            body = bytearray(whole)
            for _ in range(draw.randint(1, 4)):
                place = draw.randrange(len(body))
                part = draw.choice(_PARTS) if draw.random() < 0.3 else draw.randbytes(draw.randint(0, 2))
                body[place : place + draw.randint(0, 2)] = part
            found = read(bytes(body))
            kept += found is not None
            assert found is None or found == _by_msgspec(kind, bytes(body)), bytes(body)
    assert kept > 1_000


def test_names_come_in_as_they_are_and_short_ones_are_shared() -> None:
    def topic(name: str) -> Any:
        return packed.unpacked_events(msgpack.encode([Publish(name, b"", 1)]))[0].topic

    assert topic("a" * 64) is topic("a" * 64)
    assert topic("b" * 65) == "b" * 65
    names = [f"{prefix}{number}" for prefix in ("t", "ü") for number in range(200)]
    assert [topic(name) for name in names] == names
