"""What comes in over a connection as frames: how long they may be, and what is said of what can't be one.

An empty frame is a heartbeat: it says that its sender is alive.
"""

from __future__ import annotations

from worldline.model.errors import PeerError, WorldlineError
from worldline.model.frames import HEADER_SIZE, PIECE_LEAST, Cutter
from worldline.wire.handshake import foreign

SAID_MAX = 2**16
"""What has to be said about a payload is shorter than this."""

FRAME_MAX = 2**24 + SAID_MAX
"""The longest frame, unless the welcome says otherwise; what is longer goes into several."""

HEARTBEAT = bytes(HEADER_SIZE)

_LOOKED_AT = 100  # Bytes of what can't be a frame.


class Frames(Cutter):
    """Cuts what a peer says; heartbeats are empty bodies."""

    def __init__(self, longest: int = FRAME_MAX) -> None:
        super().__init__(longest)

    def admit(self, payload_max: int) -> None:
        """Let payloads of this size come, in several frames if need be."""
        self.whole = payload_max + SAID_MAX

    def _too_long(self, length: int) -> WorldlineError:
        return foreign(self._rest[self._at : self._at + _LOOKED_AT]) or PeerError(
            f"a frame of {length:,} bytes is too long", advice=f"the limit is {self.longest:,}"
        )

    def _too_short(self, length: int) -> WorldlineError:
        return PeerError(
            f"a frame of {length:,} bytes that goes on in the next one is too short",
            advice=f"all but the last have at least {PIECE_LEAST:,}",
        )

    def _too_much(self, length: int) -> WorldlineError:
        limit = f"the limit is {self.whole:,}: the largest payload (limits.payload) and {SAID_MAX:,}"
        return PeerError(f"{length:,} bytes in several frames are too many", advice=limit)
