"""What can happen on the network of discovery."""

from __future__ import annotations

from msgspec import Struct


class SaidByPeer(Struct, frozen=True):
    payload: bytes


class ConnectionFound(Struct, frozen=True):
    """Somebody can hear us now."""


class ConnectionLost(Struct, frozen=True):
    instance: str


NetworkEvent = SaidByPeer | ConnectionFound | ConnectionLost
