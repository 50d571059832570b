"""What happens to a node: a message of its algorithm, or something that the simulator does to it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Protocol(Struct, frozen=True, gc=False):
    """A message of the algorithm, and the local link that it came in by."""

    message: Any
    link: int


class Meta(Struct, frozen=True):
    """What isn't part of the algorithm: the simulator acts on the node."""

    def __str__(self) -> str:
        """Write it as traces do: ``Start``, ``Link down 2``, ``Timer election``."""
        name = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(self).__name__).strip()
        values = [str(getattr(self, field)) for field in self.__struct_fields__]
        return " ".join((name.capitalize(), *values)).rstrip()


class Start(Meta, frozen=True):
    """The algorithm begins at this node."""


class Recover(Meta, frozen=True):
    """The node is back after a crash: new, but for what it keeps in its `stable` attributes."""


class LinkDown(Meta, frozen=True):
    """A link carries nothing any more, until it is up again."""

    link: int


class LinkUp(Meta, frozen=True):
    """A link that was down carries messages again."""

    link: int


class NeighborAdded(Meta, frozen=True):
    """There is a new link; it has the next free number."""

    link: int


class NeighborRemoved(Meta, frozen=True):
    """A link is gone for good; its number isn't used again."""

    link: int


class Timer(Meta, frozen=True):
    """A timer that the node has set has run out."""

    name: str


Event = Protocol | Meta
