"""Frames: how a stream of bytes is cut into units, wherever there is one.

A frame is its length, four bytes, the most significant first, and as many bytes of body. A frame counts when it is
whole; what is cut short was never sent.

Where both ends have agreed on it, a body that is too long for one frame comes in several, its *pieces*: the highest bit
of the length says that the body goes on in the next frame. So a reader never waits for a frame without end, and a
heartbeat may come in between. Every piece but the last has a size worth its while, or a peer could keep us busy with
pieces of next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

HEADER_SIZE = _HEADER = 4

# A body of which only a part has come, if it is at least so long, is gathered in a place of its own; shorter ones are
# put together anew with everything that comes.
_LONG = 2**12
_ROOM_LEAST = 2**16  # If so much of it is missing, it is worth while to read right into that place.
_AHEAD = bytes(2**20)  # It grows by so much at a time: what has been announced and doesn't come takes no memory.

PIECE_LEAST = 2**16
"""The shortest piece of a body that goes on after it."""

_GOES_ON = 2**31

_HEADERS = [length.to_bytes(HEADER_SIZE, "big") for length in range(2**10)]  # Those of ordinary frames.


def header(length: int) -> bytes:
    """Return what stands before a body of this length."""
    return _HEADERS[length] if length < 2**10 else length.to_bytes(HEADER_SIZE, "big")


def frame(body: bytes) -> bytes:
    """Return a body as a frame."""
    return header(len(body)) + body


def frames(body: bytes, longest: int) -> bytes:
    """Return a body as one frame, or as several of which none is longer than `longest`."""
    if len(body) <= longest:
        return frame(body)
    view = memoryview(body)
    last = (len(body) - 1) // longest * longest
    goes_on = header(_GOES_ON | longest)
    parts: list[bytes | memoryview] = []
    for start in range(0, last, longest):
        parts += (goes_on, view[start : start + longest])
    return b"".join([*parts, header(len(body) - last), view[last:]])


class Cutter:
    """Cuts what comes in over one connection into the bodies of frames; `longest` is how long one may be.

    `whole` is how long a body in several frames may be; 0: each is one frame, and all bits are its length's.

    `push` and `cut` may be interrupted anywhere, by a signal's handler that raises, and called again: nothing is lost
    then, and nothing taken twice. Handlers run after calls and in loops, so where things belong together, the only call
    is the last of them.
    """

    def __init__(self, longest: int = 2 ** (8 * HEADER_SIZE) - 1) -> None:
        self.longest = longest
        self.whole = 0
        self._rest = b""  # What has come in last; all before `_at` has been cut.
        self._at = 0
        self._long: bytearray | None = None  # A long body of which a part is missing: the place for it,
        self._filled = 0  # how much of it is there,
        self._length = 0  # how long it will be, as far as that is known,
        self._goes_on = False  # and whether it goes on in another frame then.

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what has come in; yield each body that is whole now.

        All of it must be consumed before the next call. A length above the limit raises at once: its body is never
        waited for.
        """
        self._rest = self._rest[self._at :] + data
        self._at = 0
        bodies: list[bytes] = []
        while self.cut(bodies):
            yield bodies.pop()

    def push(self, unread: list[bytes]) -> None:
        """Take the first that has come in, to be cut."""
        data = unread[0]
        fresh = self._at == len(self._rest) and type(data) is bytes
        self._rest = data if fresh else self._rest[self._at :] + data
        self._at = 0
        del unread[0]

    def cut(self, bodies: list[bytes]) -> bool:
        """Put the next body that is whole behind the others; return whether there was one."""
        while True:
            rest, at = self._rest, self._at
            there = len(rest) - at
            if self._long is not None:
                filled = self._filled
                missing = self._length - filled
                if there > 0 and missing > 0:
                    taken = missing if missing < there else there
                    self._long[filled : filled + taken] = rest[at : at + taken]
                    self._filled = filled + taken
                    self._at = at = at + taken
                    there -= taken
                    missing -= taken
                if missing > 0:
                    return False
                if not self._goes_on:
                    whole, self._long = self._long, None
                    bodies.append(whole)  # type: ignore[arg-type] # It isn't changed any more.
                    return True
            if there < _HEADER:
                return False
            length = rest[at]
            length = length << 24 | rest[at + 1] << 16 | rest[at + 2] << 8 | rest[at + 3]
            start = at + _HEADER
            if length > self.longest or self._long is not None:
                if length == 0:
                    self._at = start
                    bodies.append(b"")  # A heartbeat.
                    return True
                length = self._piece(length)
                begun = bytearray() if self._long is None else self._long
                length += len(begun)
                goes_on = rest[at] >= 0x80
                self._filled, self._length, self._goes_on = len(begun), length, goes_on
                self._long, self._at = begun, start
                continue
            end = start + length
            if end > len(rest):
                if length >= _LONG:
                    begun = bytearray(rest[start:])
                    self._filled, self._length, self._goes_on = there - _HEADER, length, False
                    self._long, self._rest, self._at = begun, b"", 0
                return False
            view = rest
            body = view[start:end]
            self._at = end
            bodies.append(body)
            return True

    def _piece(self, said: int) -> int:
        """Return the length of a frame that holds a piece of a body, if it may come here."""
        length = said & ~_GOES_ON if self.whole else said
        if length > self.longest:
            raise self._too_long(length)
        if said & _GOES_ON and length < min(PIECE_LEAST, self.longest):
            raise self._too_short(length)
        if self.gathered() + length > self.whole:
            raise self._too_much(self.gathered() + length)
        return length

    def room(self) -> memoryview | None:
        """Return where to read what comes next, if much of a long body is still to come.

        `fill` says then how much has come.
        """
        if self._long is None or self._length - self._filled < _ROOM_LEAST:
            return None
        if self._filled == len(self._long):
            self._long += memoryview(_AHEAD)[: self._length - self._filled]
        return memoryview(self._long)[self._filled :]

    def fill(self, sizes: list[int]) -> None:
        """Take the first size: so much has come into the room."""
        self._filled += sizes[0]
        del sizes[0]

    def _too_long(self, length: int) -> Exception:
        return ValueError(f"a frame of {length:,} bytes is longer than {self.longest:,}")

    def _too_short(self, length: int) -> Exception:
        return ValueError(f"a frame of {length:,} bytes that goes on in the next is shorter than {PIECE_LEAST:,}")

    def _too_much(self, length: int) -> Exception:
        return ValueError(f"{length:,} bytes in several frames are more than {self.whole:,}")

    def gathered(self) -> int:
        """How much has come of a long body of which a part is missing."""
        return 0 if self._long is None else self._filled

    def is_cut_short(self) -> bool:
        """Whether the stream, if it ended here, would end within a frame."""
        return self._long is not None or self._at < len(self._rest)
