"""What can happen on the network of discovery."""

from __future__ import annotations

from msgspec import Struct


class SaidByPeer(Struct, frozen=True):
    """What was said under the key of an instance, by whoever could write to the network."""

    instance: str
    payload: bytes


class ConnectionFound(Struct, frozen=True):
    """A peer is connected, and can hear us now."""

    instance: str


class ConnectionLost(Struct, frozen=True):
    instance: str


NetworkEvent = SaidByPeer | ConnectionFound | ConnectionLost
