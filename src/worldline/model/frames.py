"""Frames: how a stream of bytes is cut into units, wherever there is one.

A frame is its length, four bytes, the most significant first, and as many bytes of body. A frame counts when it is
whole; what is cut short was never sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

HEADER_SIZE = 4


def frame(body: bytes) -> bytes:
    """Return a body as a frame."""
    return len(body).to_bytes(HEADER_SIZE, "big") + body


class Cutter:
    """Cuts what comes in over one connection into the bodies of frames; `longest` is how long one may be."""

    def __init__(self, longest: int = 2 ** (8 * HEADER_SIZE) - 1) -> None:
        self.longest = longest
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Take what has come in; return each body that is whole now.

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
        while end := self._end():
            body = bytes(rest[HEADER_SIZE:end])
            del rest[:end]
            yield body

    def move(self, unread: deque[bytes], bodies: list[bytes]) -> bool:
        """Take the first that has come in, and put each body that is whole now behind the others, but empty ones.

        Return whether there was one.

        It may be interrupted anywhere, by a signal's handler that raises, and called again: nothing is lost then, and
        nothing taken twice. Handlers run after calls and in loops, so what belongs together has neither in between.
        """
        if unread:
            data = unread[0]
            self._rest += data
            del unread[0]
        moved = False
        while end := self._end():
            body = bytes(self._rest[HEADER_SIZE:end])
            if body:
                bodies += (body,)
                moved = True
            del self._rest[:end]
        return moved

    def _end(self) -> int:
        """Return where the first frame ends, or 0 if it isn't whole yet."""
        rest = self._rest
        if len(rest) < HEADER_SIZE:
            return 0
        length = int.from_bytes(rest[:HEADER_SIZE], "big")
        if length > self.longest:
            raise self._too_long(length)
        return HEADER_SIZE + length if HEADER_SIZE + length <= len(rest) else 0

    def _too_long(self, length: int) -> Exception:
        return ValueError(f"a frame of {length:,} bytes is longer than {self.longest:,}")

    @property
    def is_cut_short(self) -> bool:
        """Whether the stream, if it ended here, would end within a frame."""
        return bool(self._rest)
