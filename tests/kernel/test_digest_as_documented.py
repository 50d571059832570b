"""The digest of a small run, computed by hand from what docs/kernel.md says of it."""

from __future__ import annotations

from collections.abc import Generator
from hashlib import blake2b
from typing import Any

from msgspec import msgpack

from worldline.kernel import Entity, Simulation, process
from worldline.model import MS, SECOND
from worldline.model.time import FOREVER

PRIME = 14029467366897019727
NEVER = 2**61


class Sender(Entity):
    def start(self) -> None:
        for payload in (None, -7, (1, 2), "hello", "long" * 20):
            self.send("taker", "hi", payload)
        self.schedule("tick", delay="1s")

    def on_tick(self, _: None) -> None:
        self.record("x", 5)
        self.create(process(short_lived), "child")


class Taker(Entity):
    def on_hi(self, payload: Any) -> Generator[str, Any, None]:
        if payload == "hello":
            yield "1ms"

    def on_out(self, _: Any) -> None:
        pass


def short_lived(me: Entity) -> Generator[str, Any, None]:
    yield "1ms"


def link(*numbers: int) -> int:
    return hash(numbers) % 2**60


def of_bytes(encoded: bytes) -> int:
    short = encoded if len(encoded) <= 64 else blake2b(encoded, digest_size=8).digest()
    return int.from_bytes(b"\x01" + short, "big") % (2**60 - 93)


def of_text(text: str) -> int:
    return of_bytes(text.encode())


def of_payload(payload: Any) -> int:
    if payload is None:
        return 0
    if isinstance(payload, int):
        return (payload * PRIME + 1) % 2**60
    if isinstance(payload, tuple):
        return hash(payload) % 2**60
    return of_bytes(msgpack.encode(payload))


def test_the_digest_is_what_the_page_says() -> None:
    simulation = Simulation()
    simulation.add("sender", Sender())
    simulation.add("taker", Taker())
    simulation.send("taker", "out", 7, at="2s")
    simulation.send("taker", "out", None, at="3s")
    result = simulation.run()

    sender = link(0, 0, 2, of_text("sender"))  # Number 1 is its start.
    taker = 0
    for number, payload in enumerate((None, -7, (1, 2), "hello", "long" * 20), 2):
        what = of_text("taker") ^ of_text("topic hi") ^ of_payload(payload)
        sender = link(sender, 1, 2 * number, what)
        taker = link(taker, 1, 2 * number, of_text("sender"))
    sender = link(sender, SECOND, 14, of_text("sender"))
    sender = link(sender, SECOND, 0, of_bytes(msgpack.encode(("x", 5))))
    taker = link(taker, 1 + MS, 2, 0)
    taker = link(link(taker, 2 * SECOND, 0, 0), 3 * SECOND, 2, 0)
    assert result.members["taker"].chain == f"{taker:x} 1".encode()

    child = link(0, SECOND, 2, of_text("sender/child"))
    child = link(child, SECOND + MS, 4, 0)
    sender = of_text(f"{sender:x} {child:x} 2 sender/child")
    assert result.members["sender"].chain == f"{sender:x} 7".encode()

    outside = 0
    for time, sent in ((2 * SECOND, 7), (3 * SECOND, None)):
        outside = of_text(f"{outside:x} {time:x} {of_bytes(msgpack.encode(sent)):x} out taker")
    ends = [
        ["", NEVER, f"{outside:x}".encode()],
        ["sender", NEVER, f"{sender:x} 7".encode()],
        ["taker", NEVER, f"{taker:x} 1".encode()],
    ]
    assert NEVER == FOREVER
    assert result.digest == blake2b(b"".join(map(msgpack.encode, ends)), digest_size=16).digest()
