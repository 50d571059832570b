"""What a recorder, or anybody else who looks on, is told of a run.

A witness is told things as the arbiter learns of them, in an order that luck decides. What it makes of them must not
show that order: a message is final once nobody can act before its expiry any more (`Arbiter.floor`).
"""

from __future__ import annotations

from typing import Protocol


class Witness(Protocol):
    """Sees every message, where it goes, and who takes part from when to when."""

    def started(self, name: str, at: int) -> None:
        """A participant takes part from then on."""

    def published(self, sender: str, sequence: int, topic: str, sent: int, payload: bytes, expiry: int) -> None:
        """A message was sent. No arrival of it is added or taken back once nobody acts at `expiry` or before."""

    def arrives(self, sender: str, sequence: int, receiver: str, arrival: int, copy: int, lost: str | None) -> None:
        """It reaches a receiver then; or would, but gets lost for a reason. Not yet final: see `closed`."""

    def lasts(self, sender: str, sequence: int, expiry: int) -> None:
        """It may be under way for longer than was said: somebody has come to whom it has to queue."""

    def closed(self, receiver: str, topic: str, until: int) -> None:
        """Nothing on this topic reaches the receiver at `until` or later, whatever was said, unless said anew."""

    def left(self, name: str, at: int, digest: bytes) -> None:
        """A participant has left; its digest is the hash of all that it received and sent."""
