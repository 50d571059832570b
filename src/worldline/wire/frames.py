"""What comes in over a connection as frames: how long they may be, and what is said of what can't be one.

An empty frame is a heartbeat: it says that its sender is alive.
"""

from __future__ import annotations

from worldline.model.errors import PeerError, WorldlineError
from worldline.model.frames import HEADER_SIZE, Cutter
from worldline.model.payload import PAYLOAD_MAX
from worldline.wire.foreign import foreign

SAID_MAX = 2**16
"""What has to be said about a payload is shorter than this."""

FRAME_MAX = PAYLOAD_MAX + SAID_MAX
"""The longest body, unless the welcome says otherwise: the largest payload, and what has to be said about it."""

HEARTBEAT = bytes(HEADER_SIZE)

_LOOKED_AT = 100  # Bytes of what can't be a frame.


class Frames(Cutter):
    """Cuts what a peer says; heartbeats are empty bodies."""

    def __init__(self, longest: int = FRAME_MAX) -> None:
        super().__init__(longest)

    def _too_long(self, length: int) -> WorldlineError:
        return foreign(self._rest[self._at : self._at + _LOOKED_AT]) or PeerError(
            f"a frame of {length:,} bytes is too long", advice=f"the limit is {self.longest:,}"
        )
