"""Frames: how a stream of bytes is cut into units.

A frame is its length, four bytes, the most significant first, and as many bytes of body. An empty frame is a heartbeat:
it says that its sender is alive. A frame counts when it is whole; what is cut short was never sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from worldline.model.errors import PeerError
from worldline.model.payload import PAYLOAD_MAX
from worldline.wire.foreign import foreign

HEADER_SIZE = 4
SAID_MAX = 2**16
"""What has to be said about a payload is shorter than this."""

FRAME_MAX = PAYLOAD_MAX + SAID_MAX
"""The longest body, unless the welcome says otherwise: the largest payload, and what has to be said about it."""

HEARTBEAT = bytes(HEADER_SIZE)

_LOOKED_AT = 100  # Bytes of what can't be a frame.


def frame(body: bytes) -> bytes:
    """Return a body as a frame."""
    return len(body).to_bytes(HEADER_SIZE, "big") + body


class Frames:
    """Cuts what comes in over one connection into the bodies of frames."""

    def __init__(self, longest: int = FRAME_MAX) -> None:
        self.longest = longest
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Take what has come in; return each body that is whole now, heartbeats as empty ones.

        All of it must be consumed before the next call. A length above the limit raises at once: its body is never
        waited for.
        """
        length = len(data) - HEADER_SIZE
        if not self._rest and length >= 0 and int.from_bytes(data[:HEADER_SIZE], "big") == length <= self.longest:
            return (data[HEADER_SIZE:],)  # Nearly always it is one whole frame, which needn't be copied about.
        return self._cut(data)

    def _cut(self, data: bytes) -> Iterator[bytes]:
        rest = self._rest
        rest += data
        start, size = 0, len(rest)
        try:
            while size - start >= HEADER_SIZE:
                end = start + HEADER_SIZE + self._length_at(start)
                if end > size:
                    break
                body = bytes(rest[start + HEADER_SIZE : end])
                start = end
                yield body
        finally:
            del rest[:start]

    def move(self, unread: deque[bytes], bodies: list[bytes]) -> bool:
        """Take the first that has come in, and put each body that is whole now behind the others, but heartbeats.

        Return whether there was one.

        It may be interrupted anywhere, by a signal's handler that raises, and called again: nothing is lost then, and
        nothing taken twice. Handlers run after calls and in loops, so what belongs together has neither in between.
        """
        if unread:
            data = unread[0]
            self._rest += data
            del unread[0]
        moved = False
        while len(self._rest) >= HEADER_SIZE:
            end = HEADER_SIZE + self._length_at(0)
            if end > len(self._rest):
                break
            body = bytes(self._rest[HEADER_SIZE:end])
            if body:
                bodies += (body,)
                moved = True
            del self._rest[:end]
        return moved

    def _length_at(self, start: int) -> int:
        length = int.from_bytes(self._rest[start : start + HEADER_SIZE], "big")
        if length > self.longest:
            raise foreign(bytes(self._rest[start : start + _LOOKED_AT])) or PeerError(
                f"a frame of {length:,} bytes is too long", advice=f"the limit is {self.longest:,}"
            )
        return length

    @property
    def is_cut_short(self) -> bool:
        """Whether the stream, if it ended here, would end within a frame."""
        return bool(self._rest)
