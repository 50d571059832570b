"""Trunks to a house's host, byte by byte: plain lists in on a circuit, plain lists out."""

from __future__ import annotations

from typing import Any

from msgspec import msgpack

from tests.wire.peers import BEAT, House, Peer
from worldline.model.frames import Cutter, frame
from worldline.wire.trunk import PIECE_MAX


class TrunkPeer(Peer):
    """A connection that has said that it is a trunk."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.heard: dict[int, bytearray] = {}  # What came over each circuit and hasn't been read.
        self.ended: list[int] = []  # The circuits that the host has ended.
        self.words: list[Any] = []  # What it has said of the trunk itself.
        self.cutter = Cutter()
        self.send(frame(msgpack.encode(["trunk", 1])))

    def circuit(self, number: int) -> CircuitPeer:
        return CircuitPeer(self, number)

    def admit(self, *names: str) -> list[CircuitPeer]:
        """Return circuits that have been welcomed under these names."""
        circuits = [self.circuit(number) for number in range(len(names))]
        for circuit, name in zip(circuits, names, strict=True):
            circuit.greet(name)
            assert circuit.read()[0][0] == "welcome"
        return circuits

    def join(self, *names: str) -> list[CircuitPeer]:
        circuits = self.admit(*names)
        for circuit in circuits:
            circuit.say(["join", None, [["t"]], 0, False])
        return circuits

    def pump(self) -> None:
        """Take what the host has put out, as a server's connection does."""
        host, session = self.house.host, self.session
        while host.dirty:
            dirty, host.dirty = host.dirty, []
            for each in dirty:
                each.owner.write()
        while True:
            if session.trunk is not None:
                session.trunk.fill()
            if not session.out:
                break
            for body in self.cutter.feed(bytes(session.out)):
                self._take(body)
            session.out.clear()
            session.sent = self.house.clock
        if session.closing and not self.gone:
            self.gone = True
            host.closed(session, "it was told to go")

    def _take(self, body: bytes) -> None:
        if not body or body[0] >= 0x80:
            self.words.append(msgpack.decode(body) if body else BEAT)
            return
        number = int.from_bytes(body[:4], "big")
        assert number not in self.ended
        if len(body) == 4:
            self.ended.append(number)
        self.heard.setdefault(number, bytearray()).extend(body[4:])


class CircuitPeer(Peer):
    """One circuit of a trunk, used as if it were a connection."""

    def __init__(self, trunk: TrunkPeer, number: int) -> None:
        self.house = trunk.house
        self.trunk = trunk
        self.number = number
        self.nonce = trunk.nonce

    @property
    def gone(self) -> bool:  # type: ignore[override]
        return self.number in self.trunk.ended

    def piece(self, data: bytes) -> bytes:
        """Return what would be sent as a frame of the trunk."""
        return frame(self.number.to_bytes(4, "big") + data)

    def send(self, data: bytes) -> None:
        for start in range(0, max(1, len(data)), PIECE_MAX):
            self.trunk.send(self.piece(data[start : start + PIECE_MAX]))
        self.trunk.pump()

    def stream(self) -> bytes:
        """Take the bytes that have come over this circuit."""
        self.trunk.pump()
        return bytes(self.trunk.heard.pop(self.number, b""))

    def read(self) -> list[Any]:
        cutter = Cutter()
        answers = [msgpack.decode(body) if body else BEAT for body in cutter.feed(self.stream())]
        assert not cutter.is_cut_short(), "the host has put out half a frame"
        return answers

    def hang_up(self, cause: str = "") -> None:
        self.send(b"")
