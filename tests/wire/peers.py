"""A host with a clock and entropy that tests decide, and raw connections to it: plain lists in, plain lists out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import msgpack

from worldline.federation.server.host import EVENTS_AT_ONCE, Host
from worldline.federation.server.limits import Limits
from worldline.federation.server.rejoining import Rejoining
from worldline.federation.server.session import OtherEnd, Session
from worldline.federation.server.trunk import Trunk
from worldline.lock import Advance, Next, Promise, Publish, Reached
from worldline.model import Network, Plan, Rule, link, plan
from worldline.model.errors import PeerError
from worldline.model.frames import HEADER_SIZE, frame
from worldline.wire.codec import HEARTBEAT, decode_events
from worldline.wire.handshake import Challenge, client_proof

BEAT = ["heartbeat"]
"""How an empty frame shows among the answers that a peer reads."""

MINE = bytes(range(16, 32))


def journaled_host(plan: Plan, journal: Path | str | None, *, rejoins: bool) -> Host:
    """Return a host with a journal, to which participants that are lost may come back."""
    host = Host(plan, entropy=bytes)
    host.rejoining = Rejoining(host, journal, rejoins=rejoins)
    return host


_ORDINARY = (Publish, Next, Advance, Promise, Reached)


def _alone(data: bytes) -> list[Any] | None:
    """Return the events that a compiled server reads at once: those of one frame that is short and all there."""
    if not 4 < len(data) < 4096 or int.from_bytes(data[:4], "big") != len(data) - 4:
        return None
    try:
        events: list[Any] = decode_events(data[4:])
    except PeerError:
        return None
    return events if len(events) <= EVENTS_AT_ONCE and all(type(each) in _ORDINARY for each in events) else None


class House:
    """A host, and the time of its wall clock."""

    def __init__(
        self,
        *roster: str,
        guests: Iterable[str] = (),
        token: bytes = b"",
        operator_token: bytes = b"",
        federation: str = "",
        end: int | None = None,
        limits: Limits | None = None,
        latency: str = "1ms",
        rules: tuple[Rule, ...] = (),
        vacancies: int = 0,
        agreement: dict[str, str] | None = None,
        estop: int | None = None,
        faults: Iterable[str] = (),
        declared: dict[str, Any] | None = None,
    ) -> None:
        self.clock = 0.0
        self.token = token
        self._opened = 0
        self.host = Host(
            plan(
                roster or (() if vacancies else ("a", "b")),
                guests=guests,
                network=Network(default=link(latency), rules=rules, estop=estop),
                until=end,
                vacancies=vacancies,
                faults=faults,
            ),
            federation=federation,
            token=token,
            operator_token=operator_token,
            agreement=agreement,
            declared=declared,
            limits=limits,
            entropy=self._entropy,
        )

    def _entropy(self, size: int) -> bytes:
        self._opened += 1
        return self._opened.to_bytes(size, "big")

    def connect(self) -> Peer:
        return Peer(self)

    def admit(self, name: str) -> Peer:
        """Return a connection that has been welcomed under this name."""
        peer = self.connect()
        peer.greet(name)
        (welcome,) = peer.read()
        assert welcome[0] == "welcome", welcome
        return peer

    def join(self, name: str, publishes: object = None, subscribes: object = (), controls: bool = False) -> Peer:
        """Return a connection that has joined: it will be answered when everybody has."""
        peer = self.admit(name)
        peer.say(["join", publishes, subscribes, 0, controls])
        return peer

    def pass_time(self, seconds: float) -> None:
        """Let time go by in steps of a second, as a server does."""
        deadline = self.clock + seconds
        while self.clock < deadline:
            self.clock = min(deadline, self.clock + 1.0)
            self.host.tick(self.clock)


class Peer:
    """One connection to a house's host, byte by byte."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.session: Session = house.host.open(house.clock)
        self.session.owner = self
        self.gone = False
        answers = self.read()
        self.nonce: bytes = answers[0][3] if answers[0][0] == "challenge" else b""
        self.first = answers[0]

    def write(self) -> None:
        """Do nothing: what the host has put out is read by whoever wants to."""

    def carry(self) -> Trunk | None:
        return Trunk(self.house.host, self.session)

    def other_end(self) -> OtherEnd:
        return OtherEnd(17, self.session.sent)

    def send(self, data: bytes) -> None:
        """Say it in one piece: a short frame of ordinary events is handed over as a compiled server does."""
        host = self.house.host
        events = _alone(data) if host.hears(self.session) else None
        if events is None:
            host.receive(self.session, data, self.house.clock)
        else:
            if host.rejoining is not None:
                self.session.bodies.append(data[HEADER_SIZE:])
            host.hear(self.session, events, self.house.clock)
            assert not self.session.bodies
        while self.house.host.busy:
            self.house.host.work()

    def greet(self, name: str, federation: str = "", **wrong: Any) -> None:
        self.send(frame(msgpack.encode(self.hello(name, federation, **wrong))))

    def hello(
        self,
        name: str,
        federation: str = "",
        *,
        token: bytes | None = None,
        version: int = 1,
        proof: bytes = b"",
        agreement: Any = None,
    ) -> list[object]:
        key = self.house.token if token is None else token
        made = proof or client_proof(key, Challenge("worldline", 1, self.nonce), federation, name, MINE, agreement)
        return ["hello", version, federation, name, MINE, made, *([] if agreement is None else [agreement])]

    def say(self, *events: list[object]) -> None:
        self.send(frame(msgpack.encode(events)))

    def beat(self) -> None:
        self.send(HEARTBEAT)

    def read(self) -> list[Any]:
        """Take what the host has put out, as a socket that is read at once would; hang up if it says so."""
        data = bytes(self.session.out)
        self.session.out.clear()
        if data:
            self.session.sent = self.house.clock
        if self.session.closing and not self.gone:
            self.gone = True
            self.house.host.closed(self.session, "it was told to go")
        answers: list[Any] = []
        begun = b""  # A body that goes on in the next frame.
        while data:
            length = int.from_bytes(data[:4], "big")
            goes_on, length = divmod(length, 2**31)
            body, data = begun + data[4 : 4 + length], data[4 + length :]
            assert len(body) == len(begun) + length, "the host has put out half a frame"
            begun = body if goes_on else b""
            if goes_on:
                continue
            answers.append(msgpack.decode(body) if body else BEAT)
        return answers

    def hang_up(self, cause: str = "its connection was closed") -> None:
        self.gone = True
        self.house.host.closed(self.session, cause)
