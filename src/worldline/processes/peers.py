"""The way from one worker to the others, whatever carries it.

Frames between two workers keep their order. Local processes have a `Mesh`, the ranks of MPI a `RankPeers`.
"""

from __future__ import annotations

from typing import Protocol


class Peers(Protocol):
    """Carries frames to other workers, by number, and brings theirs, with the number of who sent them."""

    def post(self, other: int, frame: bytes) -> None:
        """Send a frame; never wait."""

    def poll(self) -> list[tuple[int, bytes]]:
        """Return the frames that have come."""

    def wait(self) -> list[tuple[int, bytes]]:
        """Wait until there are frames, and return them."""
