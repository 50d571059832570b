"""How a primary and its secondaries find each other on a network, and notice when one goes."""

from worldline.world.discovery.discovery import Discovery
from worldline.world.discovery.peers import (
    MEETING_POINT,
    DepartedBy,
    DiscoveryOptions,
    Peer,
    PeerConflict,
    PeerDeparted,
    PeerRole,
)

__all__ = [
    "MEETING_POINT",
    "DepartedBy",
    "Discovery",
    "DiscoveryOptions",
    "Peer",
    "PeerConflict",
    "PeerDeparted",
    "PeerRole",
]
