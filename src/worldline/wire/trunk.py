"""What is said on a trunk: one connection that carries the conversations of several participants.

    server  Challenge(protocol, version, nonce), as on any connection
    worker  OpenTrunk(version)

From then on there are two kinds of frames. One whose body begins with a number, four bytes below 2**31, holds a *piece*
of what is said on the *circuit* of that number: any part of the stream of bytes that a connection of that participant's
own would carry, beginning with its hello. The challenge is that of the trunk. A piece without any bytes ends the
circuit. All other frames are about the trunk itself: MessagePack arrays, whose first byte is never below 0x80.

So a circuit needs no words of its own, and a long frame of one doesn't keep the others waiting.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, msgpack

from worldline.model.errors import PeerError
from worldline.model.frames import HEADER_SIZE, frame
from worldline.wire.codec import checked
from worldline.wire.handshake import HELLO_MAX, VERSION, Refused

NUMBER_SIZE = 4
PIECE_MAX = 2**18
"""The longest piece."""

LONGEST = NUMBER_SIZE + PIECE_MAX
FIRST_LONGEST = NUMBER_SIZE + HEADER_SIZE + HELLO_MAX
"""The longest frames on a trunk, and before a participant has been admitted on it."""


class OpenTrunk(Struct, frozen=True, array_like=True, tag="trunk"):
    """This connection is a trunk."""

    version: int


class HoldCircuit(Struct, frozen=True, array_like=True, tag="hold"):
    """Say no more on this circuit for now: its participant is far ahead of others, or has said too much."""

    circuit: int


class ResumeCircuit(Struct, frozen=True, array_like=True, tag="resume"):
    """Go on."""

    circuit: int


class RunningCircuit(Struct, frozen=True, array_like=True, tag="running"):
    """The program behind this circuit has been running for so many seconds; all others in its process wait for it.

    The server can't tell: for all it knows, each participant that has been answered is running.
    """

    circuit: int
    seconds: int


TrunkWord = HoldCircuit | ResumeCircuit | Refused
"""What a server says about a trunk itself."""

_encode = msgpack.Encoder().encode
_decode_word: Callable[[bytes], TrunkWord] = msgpack.Decoder(TrunkWord).decode
_decode_running: Callable[[bytes], RunningCircuit] = msgpack.Decoder(RunningCircuit).decode


def opening() -> bytes:
    """Return the frame that makes a connection a trunk."""
    return frame(_encode(OpenTrunk(VERSION)))


def word(said: TrunkWord | RunningCircuit) -> bytes:
    """Return what is said about the trunk as a frame."""
    return frame(_encode(said))


def piece(circuit: int, said: bytes | bytearray) -> bytes:
    """Return what is said on a circuit as a frame; it is no longer than a piece may be."""
    return (NUMBER_SIZE + len(said)).to_bytes(HEADER_SIZE, "big") + circuit.to_bytes(NUMBER_SIZE, "big") + said


def pieces(circuit: int, stream: bytes) -> list[bytes]:
    """Return what is said on a circuit as frames, however long it is."""
    if len(stream) <= PIECE_MAX:
        return [piece(circuit, stream)]
    return [piece(circuit, stream[start : start + PIECE_MAX]) for start in range(0, len(stream), PIECE_MAX)]


def is_piece(body: bytes) -> bool:
    """Whether a frame's body is a piece of what is said on a circuit, and not about the trunk."""
    return body[0] < 0x80


def circuit_of(body: bytes) -> int:
    """Return the circuit that a piece belongs to."""
    if len(body) < NUMBER_SIZE:
        raise PeerError(f"a frame of {len(body):,} bytes is too short to be a piece of any circuit")
    return int.from_bytes(body[:NUMBER_SIZE], "big")


def decode_word(body: bytes) -> TrunkWord:
    """Read what the server says about the trunk."""
    return checked(_decode_word, body)


def decode_running(body: bytes) -> RunningCircuit:
    """Read what a worker says about the trunk."""
    return checked(_decode_running, body)
